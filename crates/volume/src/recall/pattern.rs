//! A pattern: the known characters of a passphrase, and what may stand between them.

use super::RecallError;
use std::ops::RangeInclusive;
use std::str::FromStr;
use zeroize::{Zeroize, Zeroizing};

/// The characters that may stand at one place of a passphrase: one if it is known.
#[derive(Clone)]
pub(super) struct Spot(Zeroizing<Vec<char>>);

impl Spot {
    /// A place whose character is known.
    pub(super) fn known(character: char) -> Self {
        Self(Zeroizing::new(vec![character]))
    }

    /// The possible characters of this place, the likely ones first.
    pub(super) fn choices(&self) -> &[char] {
        &self.0
    }

    /// The same place with its characters mapped by `change`. Characters that map to nothing are
    /// left out.
    pub(super) fn mapped(&self, change: impl Fn(char) -> Option<char>) -> Self {
        let mut choices = Zeroizing::new(Vec::with_capacity(self.0.len()));
        for changed in self.0.iter().filter_map(|character| change(*character)) {
            if !choices.contains(&changed) {
                choices.push(changed);
            }
        }
        Self(choices)
    }
}

/// The most characters of a set.
const MOST_CHARACTERS: usize = 4096;

/// The characters that `?` stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Characters(Vec<char>);

impl Default for Characters {
    /// Printable ASCII, the likely ones first.
    fn default() -> Self {
        let letters_and_digits = ('a'..='z').chain('0'..='9').chain('A'..='Z');
        let others = (' '..='~').filter(|character| !character.is_ascii_alphanumeric());
        Self(letters_and_digits.chain(others).collect())
    }
}

/// A set of characters that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownSet {
    /// It has no characters.
    #[error("the set is empty")]
    Empty,
    /// A range begins behind its end.
    #[error("a range must go from the first character to the last, as in a-z")]
    Range,
    /// There are too many.
    #[error("the set has more than {MOST_CHARACTERS} characters")]
    Many,
    /// A backslash stands at its end.
    #[error("a backslash comes before an ordinary character")]
    Escape,
}

impl FromStr for Characters {
    type Err = UnknownSet;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut signs = Vec::new();
        let mut rest = text.chars();
        while let Some(character) = rest.next() {
            signs.push(match character {
                '\\' => Sign::literal(rest.next().ok_or(UnknownSet::Escape)?),
                other => Sign::plain(other),
            });
        }
        Ok(Self(set(&signs)?.to_vec()))
    }
}

/// A character of a set, as it is written.
#[derive(Clone, Copy)]
struct Sign {
    character: char,
    /// Whether a backslash stands before it.
    literal: bool,
}

impl Sign {
    const fn plain(character: char) -> Self {
        Self {
            character,
            literal: false,
        }
    }

    const fn literal(character: char) -> Self {
        Self {
            character,
            literal: true,
        }
    }
}

impl Zeroize for Sign {
    fn zeroize(&mut self) {
        self.character.zeroize();
    }
}

/// The characters and ranges of a set.
fn ranges(signs: &[Sign]) -> impl Iterator<Item = RangeInclusive<char>> {
    let mut rest = signs;
    std::iter::from_fn(move || {
        let first = rest.first()?.character;
        let (last, length) = match rest.get(1..3) {
            Some([dash, last]) if dash.character == '-' && !dash.literal => (last.character, 3),
            _ => (first, 1),
        };
        rest = &rest[length..];
        Some(first..=last)
    })
}

/// The characters of a set, each once, in their order.
fn set(signs: &[Sign]) -> Result<Zeroizing<Vec<char>>, UnknownSet> {
    let mut count = 0;
    for range in ranges(signs) {
        if range.is_empty() {
            return Err(UnknownSet::Range);
        }
        count += range.take(MOST_CHARACTERS + 1).count();
    }
    let mut found = Zeroizing::new(Vec::with_capacity(count.min(MOST_CHARACTERS)));
    for character in ranges(signs).flatten() {
        if found.contains(&character) {
            continue;
        }
        if found.len() == MOST_CHARACTERS {
            return Err(UnknownSet::Many);
        }
        found.push(character);
    }
    match found.is_empty() {
        true => Err(UnknownSet::Empty),
        false => Ok(found),
    }
}

/// The signs of a set up to its closing bracket, which is consumed as well; `None` without one.
fn class(rest: &mut (impl Iterator<Item = (usize, char)> + Clone)) -> Option<Zeroizing<Vec<Sign>>> {
    let next = |rest: &mut dyn Iterator<Item = (usize, char)>| {
        Some(match rest.next()?.1 {
            '\\' => Sign::literal(rest.next()?.1),
            other => Sign::plain(other),
        })
    };
    let is_end = |sign: Sign| sign.character == ']' && !sign.literal;
    let (mut ahead, mut count) = (rest.clone(), 0);
    while !is_end(next(&mut ahead)?) {
        count += 1;
    }
    let mut signs = Zeroizing::new(Vec::with_capacity(count));
    for _ in 0..count {
        signs.push(next(rest)?);
    }
    next(rest)?;
    Some(signs)
}

/// The places of the pattern `text`. In it, `?` stands for any of `characters`, and `[abc]` and
/// `[a-c]` for one of these. A backslash before `?`, `[`, `]` or another backslash makes it
/// literal.
pub(super) fn parse(text: &str, characters: &Characters) -> Result<Vec<Spot>, RecallError> {
    let mut spots = Vec::with_capacity(text.len());
    let mut rest = (1..).zip(text.chars());
    while let Some((at, character)) = rest.next() {
        spots.push(match character {
            '?' => Spot(Zeroizing::new(characters.0.clone())),
            '\\' => match rest.next() {
                Some((_, literal @ ('?' | '[' | ']' | '\\'))) => Spot::known(literal),
                _ => return Err(RecallError::Escape { at }),
            },
            '[' => {
                let signs = class(&mut rest).ok_or(RecallError::Unclosed { at })?;
                Spot(set(&signs).map_err(|why| RecallError::Set { at, why })?)
            }
            known => Spot::known(known),
        });
    }
    Ok(spots)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<String> {
        let spots = parse(text, &"a-c9".parse().unwrap()).unwrap();
        spots
            .iter()
            .map(|spot| spot.choices().iter().collect())
            .collect()
    }

    #[test]
    fn signs_of_a_pattern() {
        assert_eq!(parsed("x?y"), ["x", "abc9", "y"]);
        assert_eq!(parsed(r"\?\\\[\]"), ["?", r"\", "[", "]"]);
        assert_eq!(parsed("[xyx]]"), ["xy", "]"]);
        assert_eq!(parsed(r"[a\-c\]-]?"), ["a-c]", "abc9"]);
        assert_eq!(parsed("[ä-ü1]"), ["äåæçèéêëìíîïðñòóôõö÷øùúûü1"]);
        assert_eq!(parsed(""), [""; 0]);
    }

    #[test]
    fn what_is_no_pattern_is_refused_by_its_place() {
        let fault = |text| parse(text, &Characters::default()).err().unwrap();
        assert_eq!(fault("ab[c"), RecallError::Unclosed { at: 3 });
        assert_eq!(fault(r"ab[c\"), RecallError::Unclosed { at: 3 });
        assert_eq!(fault(r"ä\n"), RecallError::Escape { at: 2 });
        assert_eq!(fault(r"ab\"), RecallError::Escape { at: 3 });
        let empty = UnknownSet::Empty;
        assert_eq!(fault("[]"), RecallError::Set { at: 1, why: empty });
        let range = UnknownSet::Range;
        assert_eq!(fault("a[z-a]"), RecallError::Set { at: 2, why: range });
        assert_eq!(
            fault("[\u{1}-\u{ffff}]"),
            RecallError::Set {
                at: 1,
                why: UnknownSet::Many
            }
        );
    }

    #[test]
    fn sets_of_characters() {
        let set = |text: &str| text.parse::<Characters>();
        assert_eq!(set("a-cb1").unwrap().0, ['a', 'b', 'c', '1']);
        assert_eq!(set("-a").unwrap().0, ['-', 'a']);
        assert_eq!(set(r"a\-c\\").unwrap().0, ['a', '-', 'c', '\\']);
        assert_eq!(set("").unwrap_err(), UnknownSet::Empty);
        assert_eq!(set(r"a\").unwrap_err(), UnknownSet::Escape);
        let mut printable = Characters::default().0;
        assert_eq!(printable[..2], ['a', 'b']);
        printable.sort_unstable();
        assert!(printable.into_iter().eq(' '..='~'));
    }
}
