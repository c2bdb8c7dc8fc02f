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
    Return,
    Space,
    Zero,
}

/// What an editor puts around a text, or leaves away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dress {
    /// As it was given.
    Given,
    /// A byte order mark before it.
    Marked,
    /// UTF-16, little endian, with a byte order mark.
    Utf16,
    /// UTF-16, little endian, without one.
    Utf16Bare,
    /// UTF-8 without a mark, and without spaces and zeros at its end.
    Plain,
}

/// The changes to make to the secret that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recipe {
    pub(super) layouts: Option<Layouts>,
    pub(super) slip: Slip,
    pub(super) form: Form,
    pub(super) ending: Ending,
    pub(super) dress: Dress,
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
                            dress: Dress::Given,
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

    /// What an editor or another program makes of a passphrase in a file. None of it is combined
    /// with other changes, because each candidate takes as long as an unlock.
    pub(super) fn of_files() -> impl Iterator<Item = Self> {
        let lines = [
            Ending::Nothing,
            Ending::Return,
            Ending::LineFeed,
            Ending::ReturnAndLineFeed,
        ];
        let ends = [Ending::Return, Ending::Space, Ending::Zero];
        let ends = ends.map(|ending| (Dress::Given, ending)).into_iter();
        let dressed = [Dress::Marked, Dress::Utf16, Dress::Utf16Bare].into_iter();
        let dressed = dressed.flat_map(move |dress| lines.map(|ending| (dress, ending)));
        let all = ends.chain(dressed).chain([(Dress::Plain, Ending::Nothing)]);
        all.map(|(dress, ending)| Self {
            layouts: None,
            slip: Slip::None,
            form: Form::Given,
            ending,
            dress,
        })
    }

    /// Whether it is one of those.
    pub(super) fn is_of_files(&self) -> bool {
        self.dress != Dress::Given
            || matches!(self.ending, Ending::Return | Ending::Space | Ending::Zero)
    }

    /// Whether it takes away what an editor has put around a text.
    pub(super) fn is_undressed(&self) -> bool {
        self.dress == Dress::Plain
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
            Slip::CapsLock => Some("with Caps Lock on"),
            Slip::FirstLetter => Some("with the other case of its first letter"),
        };
        let form = match self.form {
            Form::Given => None,
            Form::Composed => Some("with composed characters (Unicode NFC)"),
            Form::Decomposed => Some("with decomposed characters (Unicode NFD)"),
            Form::Latin1 => Some("in Latin-1"),
        };
        let dress = match self.dress {
            Dress::Given => None,
            Dress::Marked => Some("with a byte order mark"),
            Dress::Utf16 => Some("in UTF-16 with a byte order mark"),
            Dress::Utf16Bare => Some("in UTF-16"),
            Dress::Plain => Some("without a byte order mark, spaces and zeros around it"),
        };
        let ending = match self.ending {
            Ending::Given => None,
            // What is put around a text has no line end of its own but that which is added.
            Ending::Nothing if dress.is_some() => None,
            Ending::Nothing => Some("without its line end"),
            Ending::LineFeed => Some("with a line feed at its end"),
            Ending::ReturnAndLineFeed => Some("with a carriage return and a line feed at its end"),
            Ending::Return => Some("with a carriage return at its end"),
            Ending::Space => Some("with a space at its end"),
            Ending::Zero => Some("with a zero byte at its end"),
        };
        let said = [slip, form, dress, ending].into_iter().flatten();
        let typed = self.layouts.map(Change::Typed).into_iter();
        typed.chain(said.map(Change::Said))
    }
}

/// Something that is changed in a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Typed(Layouts),
    /// What these words say.
    Said(&'static str),
    Pim(u32),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Typed(layouts) => write!(f, "typed on {} keyboard", layouts.typed_on.title()),
            Self::Said(words) => f.write_str(words),
            Self::Pim(pim) => write!(f, "PIM {pim}"),
        }
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
