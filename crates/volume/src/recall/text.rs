//! A secret as characters, and from there to the bytes that a program made of it.

use super::pattern::Spot;
use super::recipe::{Dress, Ending, Form, Layouts, Recipe, Slip};
use super::shape::Shape;
use super::{MOST_SHAPES, RecallError};
use unicode_normalization::UnicodeNormalization;
use zeroize::Zeroizing;

/// The encoding of a secret that is text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    Latin1,
}

impl Encoding {
    /// The encoding of `bytes`; `None` if they are not one line of text, which has no control
    /// characters.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let is_control = |byte: &u8| *byte < b' ' || *byte == 0x7F;
        if bytes.iter().any(is_control) {
            return None;
        }
        if std::str::from_utf8(bytes).is_ok() {
            return Some(Self::Utf8);
        }
        let is_latin1 = bytes.iter().all(|byte| !(0x80..0xA0).contains(byte));
        is_latin1.then_some(Self::Latin1)
    }

    /// The characters of `bytes`, which are in this encoding.
    pub(super) fn decoded(self, bytes: &[u8]) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::with_capacity(2 * bytes.len()));
        match (self, std::str::from_utf8(bytes)) {
            (Self::Utf8, Ok(utf8)) => text.push_str(utf8),
            _ => text.extend(bytes.iter().map(|byte| char::from(*byte))),
        }
        text
    }
}

/// The line end of a secret; empty if it does not end in one.
pub(super) fn line_end(bytes: &[u8]) -> &'static [u8] {
    match bytes {
        [.., b'\r', b'\n'] => b"\r\n",
        [.., b'\n'] => b"\n",
        [.., b'\r'] => b"\r",
        _ => b"",
    }
}

impl Ending {
    /// Its bytes, where `given` stood.
    pub(super) const fn bytes(self, given: &'static [u8]) -> &'static [u8] {
        match self {
            Self::Given => given,
            Self::Nothing => b"",
            Self::LineFeed => b"\n",
            Self::ReturnAndLineFeed => b"\r\n",
            Self::Return => b"\r",
            Self::Space => b" ",
            Self::Zero => b"\0",
        }
    }
}

impl Dress {
    /// `bytes` so dressed, with `ending`; `None` if they are not text that can be, or it changes
    /// nothing. `is_file` says that the whole file counts, and not its first line.
    pub(super) fn put_on(
        self,
        bytes: &[u8],
        ending: &[u8],
        is_file: bool,
    ) -> Option<Zeroizing<Vec<u8>>> {
        const MARK: &[u8] = b"\xEF\xBB\xBF";
        let plain = plain(bytes);
        let text = || std::str::from_utf8(bytes).ok();
        Some(Zeroizing::new(match self {
            Self::Given => [bytes, ending].concat(),
            Self::Plain => return plain.filter(|plain| plain[..] != *bytes),
            // It is dressed already.
            _ if plain.is_some_and(|plain| plain[..] != *bytes) => return None,
            Self::Marked => [MARK, text()?.as_bytes(), ending].concat(),
            Self::Utf16 | Self::Utf16Bare => {
                let units = |text: &str| text.encode_utf16().collect::<Vec<_>>();
                let mut all = units(text()?);
                all.extend(ending.iter().map(|byte| u16::from(*byte)));
                if self == Self::Utf16 {
                    all.insert(0, 0xFEFF);
                }
                let mut dressed: Vec<u8> = all.iter().flat_map(|unit| unit.to_le_bytes()).collect();
                // The first line ends with the byte of the line feed.
                if !is_file && ending.ends_with(b"\n") {
                    dressed.truncate(dressed.len() - 2);
                }
                dressed
            }
        }))
    }
}

/// The text in `bytes`, which may be UTF-16 with a mark, without what may be around it.
fn plain(bytes: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let text = match bytes {
        [0xFF, 0xFE, rest @ ..] => {
            let units = rest
                .as_chunks()
                .0
                .iter()
                .map(|unit| u16::from_le_bytes(*unit));
            let mut text = Zeroizing::new(String::with_capacity(2 * rest.len()));
            for character in char::decode_utf16(units) {
                text.push(character.ok()?);
            }
            text
        }
        bytes => Zeroizing::new(std::str::from_utf8(bytes).ok()?.to_owned()),
    };
    let text = text.trim_start_matches('\u{feff}');
    let text = text.trim_end_matches(['\0', ' ', '\t', '\r', '\n']);
    Some(Zeroizing::new(text.as_bytes().to_vec()))
}

/// The same places as other keys or slips make them.
///
/// # Errors
/// [`RecallError::NoKey`] if a known character, or all that may stand at a place, need a key that
/// a layout lacks.
pub(super) fn changed(spots: &[Spot], recipe: &Recipe) -> Result<Vec<Spot>, RecallError> {
    let mut spots = spots.to_vec();
    if recipe.slip == Slip::FirstLetter {
        let has_letter = |spot: &Spot| spot.choices().iter().any(|c| c.is_alphabetic());
        if let Some(first) = spots.iter_mut().find(|spot| has_letter(spot)) {
            *first = first.mapped(|character| Some(other_case(character)));
        }
    }
    if let Some(Layouts { typed_on, meant }) = recipe.layouts {
        for spot in &mut spots {
            *spot = spot.mapped(|character| meant.typed_on(typed_on, character));
            if spot.choices().is_empty() {
                return Err(RecallError::NoKey { meant, typed_on });
            }
        }
    }
    if recipe.slip == Slip::CapsLock {
        for spot in &mut spots {
            *spot = spot.mapped(|character| Some(other_case(character)));
        }
    }
    Ok(spots)
}

/// A letter in its other case, if that is one letter.
fn other_case(character: char) -> char {
    fn only(mut cased: impl Iterator<Item = char>) -> Option<char> {
        cased.next().filter(|_| cased.next().is_none())
    }
    let other = match character.is_lowercase() {
        true => only(character.to_uppercase()),
        false => only(character.to_lowercase()),
    };
    other.unwrap_or(character)
}

/// The choices at a place whose bytes are the same but for the last.
struct Group {
    before: Zeroizing<Vec<u8>>,
    last: Zeroizing<Vec<u8>>,
}

/// The bytes of `spots` in `form`, with `ending`; none if the form does not have a character.
///
/// # Errors
/// [`RecallError::Tangled`] for more than [`MOST_SHAPES`].
pub(super) fn shapes(
    spots: &[Spot],
    form: Form,
    given: Encoding,
    ending: &[u8],
    recipe: usize,
) -> Result<Vec<Shape>, RecallError> {
    // Known characters are put together first: an accent may belong to the letter before.
    let mut parts: Vec<Vec<Group>> = Vec::new();
    let known = |spot: &Spot| spot.choices().len() == 1;
    for part in spots.chunk_by(|one, next| known(one) && known(next)) {
        let groups = match part {
            [spot] if !known(spot) => groups(spot, form, given),
            part => literal(part, form, given).into_iter().collect(),
        };
        if groups.is_empty() {
            return Ok(Vec::new());
        }
        parts.push(groups);
    }
    let counts = parts.iter().map(Vec::len);
    let count = counts.fold(1, usize::saturating_mul);
    if count > MOST_SHAPES {
        return Err(RecallError::Tangled);
    }
    Ok((0..count)
        .map(|number| combined(&parts, number, ending, recipe))
        .collect())
}

/// One group of each part.
fn combined(parts: &[Vec<Group>], number: usize, ending: &[u8], recipe: usize) -> Shape {
    let mut rest = number;
    let mut chosen = Vec::new();
    for groups in parts {
        chosen.push(&groups[rest % groups.len()]);
        rest /= groups.len();
    }
    let length: usize = chosen.iter().map(|group| group.before.len() + 1).sum();
    let mut text = Zeroizing::new(Vec::with_capacity(length + ending.len()));
    let mut sets: Vec<(usize, &[u8])> = Vec::new();
    for group in chosen {
        text.extend_from_slice(&group.before);
        if let Some(last) = group.last.first() {
            sets.push((text.len(), &group.last));
            text.push(*last);
        }
    }
    text.extend_from_slice(ending);
    Shape::new(&text, &sets, recipe)
}

/// The bytes of known characters.
fn literal(spots: &[Spot], form: Form, given: Encoding) -> Option<Group> {
    let mut text = Zeroizing::new(String::with_capacity(4 * spots.len()));
    text.extend(spots.iter().flat_map(Spot::choices));
    let bytes = encoded(&text, form, given)?;
    Some(Group {
        before: bytes,
        last: Zeroizing::new(Vec::new()),
    })
}

/// The bytes of what may stand at a place; what the form does not have is left out.
fn groups(spot: &Spot, form: Form, given: Encoding) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for character in spot.choices() {
        let text = Zeroizing::new(character.to_string());
        let Some(bytes) = encoded(&text, form, given) else {
            continue;
        };
        let Some((last, before)) = bytes.split_last() else {
            continue;
        };
        let found = groups.iter_mut().find(|group| *group.before == before);
        match found {
            Some(group) if group.last.contains(last) => {}
            Some(group) => group.last.push(*last),
            None => {
                // No more than all bytes, so that none is left behind by growing.
                let mut choices = Zeroizing::new(Vec::with_capacity(256));
                choices.push(*last);
                groups.push(Group {
                    before: Zeroizing::new(before.to_vec()),
                    last: choices,
                });
            }
        }
    }
    groups
}

/// The bytes of `text`; `None` if Latin-1 does not have a character.
fn encoded(text: &str, form: Form, given: Encoding) -> Option<Zeroizing<Vec<u8>>> {
    let latin1 = |text: &str| {
        let mut bytes = Zeroizing::new(Vec::with_capacity(text.len()));
        for character in text.chars() {
            bytes.push(u8::try_from(character).ok()?);
        }
        Some(bytes)
    };
    match (form, given) {
        (Form::Given, Encoding::Utf8) => Some(Zeroizing::new(text.as_bytes().to_vec())),
        (Form::Given, Encoding::Latin1) => latin1(text),
        (Form::Composed, _) => Some(utf8(|| text.nfc())),
        (Form::Decomposed, _) => Some(utf8(|| text.nfd())),
        (Form::Latin1, _) => {
            let composed = utf8(|| text.nfc());
            latin1(std::str::from_utf8(&composed).expect("it was made of characters"))
        }
    }
}

/// Characters as UTF-8, in memory that need not grow.
fn utf8<I: Iterator<Item = char>>(characters: impl Fn() -> I) -> Zeroizing<Vec<u8>> {
    let length = characters().map(char::len_utf8).sum();
    let mut bytes = Zeroizing::new(Vec::with_capacity(length));
    for character in characters() {
        let mut room = Zeroizing::new([0; 4]);
        bytes.extend_from_slice(character.encode_utf8(&mut room[..]).as_bytes());
    }
    bytes
}
