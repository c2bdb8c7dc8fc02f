//! The recovery password: eight groups of six digits, each a number of 16 bits times 11.

use cipher::Key;
use std::fmt;
use zeroize::Zeroizing;

const GROUPS: usize = 8;
const DIGITS: usize = 6;

/// A typing error in a recovery password. It names the place and not the digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryDamage {
    /// There are not 8 groups.
    Groups(usize),
    /// A group does not have 6 digits.
    Length {
        /// Number of the group, from 1.
        group: usize,
        /// Its number of digits.
        digits: usize,
    },
    /// The group with this number has a wrong digit.
    Group(usize),
}

impl fmt::Display for RecoveryDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Groups(groups) => {
                write!(f, "it has {groups} groups of digits, and there must be 8")
            }
            Self::Length { group, digits } => {
                write!(f, "group {group} has {digits} digits, and there must be 6")
            }
            Self::Group(group) => write!(f, "a digit of group {group} is wrong"),
        }
    }
}

/// Whether `text` looks like a recovery password: groups of digits, or 48 digits in a row.
pub(super) fn is_meant(text: &str) -> bool {
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let others = |c: char| !c.is_ascii_digit() && !is_between(c);
    digits >= GROUPS * DIGITS / 2 && !text.contains(others) && groups(text).count() > 1
        || digits == GROUPS * DIGITS && digits == text.trim().len()
}

fn is_between(c: char) -> bool {
    c == '-' || c.is_ascii_whitespace()
}

fn groups(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_between).filter(|group| !group.is_empty())
}

/// The text of a file as Windows saves it: UTF-16, or UTF-8 with or without a mark. `None` if it is
/// not a text.
pub(super) fn text_of(file: &[u8]) -> Option<Zeroizing<String>> {
    let units: fn([u8; 2]) -> u16 = match file {
        [0xFF, 0xFE, ..] | [_, 0, ..] => u16::from_le_bytes,
        [0xFE, 0xFF, ..] | [0, _, ..] => u16::from_be_bytes,
        _ => return Some(unmarked(std::str::from_utf8(file).ok()?)),
    };
    let mut text = Zeroizing::new(String::with_capacity(2 * file.len()));
    let pairs = file.as_chunks().0.iter().map(|pair| units(*pair));
    for character in char::decode_utf16(pairs) {
        text.push(character.ok()?);
    }
    Some(unmarked(&text))
}

/// `text` without Unicode's byte order mark.
fn unmarked(text: &str) -> Zeroizing<String> {
    Zeroizing::new(text.trim_start_matches('\u{feff}').to_owned())
}

/// The keys of the recovery passwords in a text that says more.
pub(super) fn found(text: &str) -> Vec<Key> {
    const LENGTH: usize = GROUPS * (DIGITS + 1) - 1;
    let words = text.split(|c: char| !c.is_ascii_digit() && c != '-');
    let passwords = words.filter(|word| word.len() == LENGTH);
    passwords.filter_map(|word| key(word).ok()).collect()
}

/// Whether `file` is a text of several lines with a recovery password in it, such as the file in
/// which Windows saves one.
pub fn is_recovery_text(file: &[u8]) -> bool {
    let text = text_of(file);
    text.is_some_and(|text| !is_meant(&text) && !found(&text).is_empty())
}

/// The 128-bit key that the digits encode.
///
/// # Errors
/// The first group that is wrong.
pub(super) fn key(text: &str) -> Result<Key, RecoveryDamage> {
    let one_piece = groups(text).count() == 1 && text.trim().len() == GROUPS * DIGITS;
    let groups: Vec<&str> = match one_piece {
        true => (0..GROUPS)
            .map(|nth| &text.trim()[nth * DIGITS..][..DIGITS])
            .collect(),
        false => groups(text).collect(),
    };
    Key::filled(GROUPS * 2, |key| {
        for (nth, (group, part)) in groups.iter().zip(key.as_chunks_mut().0).enumerate() {
            let group_number = nth + 1;
            if group.len() != DIGITS {
                return Err(RecoveryDamage::Length {
                    group: group_number,
                    digits: group.len(),
                });
            }
            let wrong = RecoveryDamage::Group(group_number);
            let number: u32 = group.parse().map_err(|_| wrong)?;
            if !number.is_multiple_of(11) {
                return Err(wrong);
            }
            *part = u16::try_from(number / 11).map_err(|_| wrong)?.to_le_bytes();
        }
        match groups.len() {
            GROUPS => Ok(()),
            other => Err(RecoveryDamage::Groups(other)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of libbde's format specification.
    const EXAMPLE: &str = "471207-278498-422125-177177-561902-537405-468006-693451";

    #[test]
    fn digits_are_a_key() {
        let key = key(EXAMPLE).unwrap();
        let numbers = key.as_bytes().as_chunks().0;
        let numbers: Vec<u32> = numbers
            .iter()
            .map(|pair| u32::from(u16::from_le_bytes(*pair)) * 11)
            .collect();
        let groups = EXAMPLE
            .split('-')
            .map(|group| group.parse::<u32>().unwrap());
        assert_eq!(numbers, groups.collect::<Vec<_>>());
        for other in [
            EXAMPLE.replace('-', " "),
            EXAMPLE.replace('-', ""),
            format!(" {EXAMPLE}\n"),
        ] {
            assert!(is_meant(&other));
            assert_eq!(super::key(&other).unwrap().as_bytes(), key.as_bytes());
        }
    }

    #[test]
    fn typing_errors_are_named_by_their_place() {
        for (from, to, damage) in [
            ("422125", "422126", RecoveryDamage::Group(3)),
            ("422125", "422215", RecoveryDamage::Group(3)),
            // A multiple of 11, but of more than 16 bits.
            ("693451", "999999", RecoveryDamage::Group(8)),
            (
                "471207",
                "47120",
                RecoveryDamage::Length {
                    group: 1,
                    digits: 5,
                },
            ),
            ("-693451", "", RecoveryDamage::Groups(7)),
            ("693451", "693451-471207", RecoveryDamage::Groups(9)),
        ] {
            let typed = EXAMPLE.replace(from, to);
            assert!(is_meant(&typed), "{typed}");
            assert_eq!(key(&typed).err(), Some(damage), "{typed}");
        }
    }

    #[test]
    fn passphrases_are_no_recovery_passwords() {
        for passphrase in [
            "",
            "anaconda",
            "123456",
            "1234-5678",
            "471207-278498-422125-177177-561902-537405-468006-69345x",
            "123456789012345678901234567890",
        ] {
            assert!(!is_meant(passphrase), "{passphrase}");
        }
    }
}
