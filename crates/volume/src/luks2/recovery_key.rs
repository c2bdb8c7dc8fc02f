//! Recovery keys of systemd: 32 bytes in modhex, as in
//! `cbdefghi-jklnrtuv-…`, eight groups of eight letters. The text opens the keyslot, and people
//! type it with capitals or without dashes.

use super::read::Header;
use cipher::Key;
use zeroize::Zeroizing;

/// The type of the token of a keyslot that a recovery key opens.
const TOKEN_KIND: &str = "systemd-recovery";

/// The digits of modhex: letters that lie alike on most keyboards.
const DIGITS: &[u8] = b"cbdefghijklnrtuv";

const LETTERS: usize = 64;
const GROUP: usize = 8;

/// The recovery key that `typed` is meant to be, as systemd writes it; `None`
/// if it is not one, or is written so already.
pub(super) fn rewritten(typed: &[u8]) -> Option<Key> {
    let mut letters = Zeroizing::new(Vec::with_capacity(LETTERS));
    for byte in typed.iter().filter(|byte| **byte != b'-') {
        let letter = byte.to_ascii_lowercase();
        if letters.len() == LETTERS || !DIGITS.contains(&letter) {
            return None;
        }
        letters.push(letter);
    }
    if letters.len() != LETTERS {
        return None;
    }
    let mut text = Zeroizing::new(Vec::with_capacity(LETTERS + LETTERS / GROUP));
    for group in letters.chunks(GROUP) {
        if !text.is_empty() {
            text.push(b'-');
        }
        text.extend_from_slice(group);
    }
    (text[..] != *typed).then(|| Key::from_slice(&text))
}

impl Header {
    /// Whether a token says that a recovery key opens keyslot `slot`.
    pub(super) fn takes_recovery_key(&self, slot: u32) -> bool {
        let mut tokens = self.metadata.tokens.iter();
        tokens.any(|(number, kind)| {
            kind == TOKEN_KIND && self.keyslots_of_token(*number).contains(&slot)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: &str = "cbdefghi-jklnrtuv-cccccccc-vvvvvvvv-bbbbbbbb-dddddddd-rtrtrtrt-ununcbcb";

    fn text(typed: &str) -> Option<String> {
        let key = rewritten(typed.as_bytes())?;
        Some(String::from_utf8(key.as_bytes().to_vec()).unwrap())
    }

    #[test]
    fn what_is_typed_otherwise_is_rewritten() {
        let without = RIGHT.replace('-', "");
        for typed in [
            without.clone(),
            RIGHT.to_uppercase(),
            without.to_uppercase(),
            RIGHT.replacen('-', "", 3),
            RIGHT.replacen("-", "--", 1),
        ] {
            assert_eq!(text(&typed).as_deref(), Some(RIGHT), "{typed}");
        }
    }

    #[test]
    fn other_texts_are_left_as_they_are() {
        for typed in [
            RIGHT,
            "",
            "-",
            "a passphrase",
            &RIGHT[1..],
            &RIGHT.replacen('c', "a", 1),
            &RIGHT.replacen('c', "cc", 1),
            &RIGHT.replace('-', " "),
        ] {
            assert_eq!(text(typed), None, "{typed}");
        }
    }
}
