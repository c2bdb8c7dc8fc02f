//! [`Recipe`]: what is changed in the secret that was given, and [`Changes`]: the same in words.

use super::layout::Layout;
use std::fmt;

/// The layouts of a passphrase that was typed on another keyboard than its owner meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layouts {
    /// The layout that typed the passphrase of the volume.
    pub typed_on: Layout,
    /// The layout on which the same keys type the passphrase that is given.
    pub meant: Layout,
}

/// A slip of the fingers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slip {
    None,
    CapsLock,
    FirstLetter,
}

/// How characters become bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As they were given.
    Given,
    /// UTF-8, normalisation form C.
    Composed,
    /// UTF-8, normalisation form D.
    Decomposed,
    Latin1,
}

/// The end of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The end that the given secret has.
    Given,
    Nothing,
    LineFeed,
    ReturnAndLineFeed,
}

/// The changes to make to the secret that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recipe {
    pub(super) layouts: Option<Layouts>,
    pub(super) slip: Slip,
    pub(super) form: Form,
    pub(super) ending: Ending,
}

impl Recipe {
    /// All recipes with at most `most` changes; changes of text only if there is `text`. Those that
    /// change less come first, then the likely ones.
    pub(super) fn all(text: bool, layouts: Option<Layouts>, most: usize) -> Vec<Self> {
        let mut all = Vec::new();
        let only_text = |recipe: &Self| {
            recipe.layouts.is_none() && recipe.slip == Slip::None && recipe.form == Form::Given
        };
        for form in [Form::Given, Form::Composed, Form::Decomposed, Form::Latin1] {
            for ending in [
                Ending::Given,
                Ending::Nothing,
                Ending::LineFeed,
                Ending::ReturnAndLineFeed,
            ] {
                for slip in [Slip::None, Slip::CapsLock, Slip::FirstLetter] {
                    for layouts in [None, layouts] {
                        all.push(Self {
                            layouts,
                            slip,
                            form,
                            ending,
                        });
                    }
                }
            }
        }
        all.dedup();
        all.retain(|recipe| recipe.count() <= most && (text || only_text(recipe)));
        all.sort_by_key(Self::count);
        all
    }

    /// How many things it changes.
    fn count(&self) -> usize {
        usize::from(self.layouts.is_some())
            + usize::from(self.slip != Slip::None)
            + usize::from(self.form != Form::Given)
            + usize::from(self.ending != Ending::Given)
    }

    /// Its changes, in the order in which they are made.
    fn changes(&self) -> impl Iterator<Item = Change> {
        let slip = match self.slip {
            Slip::None => None,
            Slip::CapsLock => Some(Change::CapsLock),
            Slip::FirstLetter => Some(Change::FirstLetter),
        };
        let form = match self.form {
            Form::Given => None,
            Form::Composed => Some(Change::Composed),
            Form::Decomposed => Some(Change::Decomposed),
            Form::Latin1 => Some(Change::Latin1),
        };
        let ending = match self.ending {
            Ending::Given => None,
            Ending::Nothing => Some(Change::NoLineEnd),
            Ending::LineFeed => Some(Change::LineFeed),
            Ending::ReturnAndLineFeed => Some(Change::ReturnAndLineFeed),
        };
        let typed = self.layouts.map(Change::Typed);
        [typed, slip, form, ending].into_iter().flatten()
    }
}

/// Something that is changed in a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Typed(Layouts),
    CapsLock,
    FirstLetter,
    Composed,
    Decomposed,
    Latin1,
    NoLineEnd,
    LineFeed,
    ReturnAndLineFeed,
    Pim(u32),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Typed(layouts) => {
                return write!(f, "typed on {} keyboard", layouts.typed_on.title());
            }
            Self::Pim(pim) => return write!(f, "PIM {pim}"),
            Self::CapsLock => "with Caps Lock on",
            Self::FirstLetter => "with the other case of its first letter",
            Self::Composed => "with composed characters (Unicode NFC)",
            Self::Decomposed => "with decomposed characters (Unicode NFD)",
            Self::Latin1 => "in Latin-1",
            Self::NoLineEnd => "without its line end",
            Self::LineFeed => "with a line feed at its end",
            Self::ReturnAndLineFeed => "with a carriage return and a line feed at its end",
        })
    }
}

/// The changes made to a secret. They are displayed in words, as in `typed on a German keyboard,
/// PIM 485`; `as it is` if there are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes(Vec<Change>);

impl Changes {
    /// Those of one candidate, and its PIM if there are several.
    pub(super) fn of(recipe: &Recipe, pim: Option<u32>) -> Self {
        Self(recipe.changes().chain(pim.map(Change::Pim)).collect())
    }

    /// The changes that any of `recipes` makes, each one once.
    pub(super) fn of_all<'a>(recipes: impl Iterator<Item = &'a Recipe>) -> Self {
        let mut changes = Vec::new();
        for change in recipes.flat_map(Recipe::changes) {
            if !changes.contains(&change) {
                changes.push(change);
            }
        }
        Self(changes)
    }

    /// Each in words.
    pub fn each(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(ToString::to_string)
    }
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words: Vec<String> = self.each().collect();
        if !matches!(self.0.first(), Some(first) if !matches!(first, Change::Pim(_))) {
            words.insert(0, "as it is".to_owned());
        }
        f.write_str(&words.join(", "))
    }
}
