//! [`Layout`]: what the keys of a keyboard type.

use std::fmt;
use std::str::FromStr;

named! {
    /// A keyboard layout of a PC.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Layout {
        /// United States.
        Us = "us",
        /// United Kingdom.
        Uk = "uk",
        /// Germany and Austria.
        De = "de",
        /// France, AZERTY.
        Fr = "fr",
        /// Spain.
        Es = "es",
        /// Italy.
        It = "it",
        /// Switzerland, German.
        Ch = "ch",
    }
}

/// Stands for a key that the layout does not have, or that types nothing.
const NONE: char = '\0';

/// The characters that the keys type without and with Shift, in the order of the physical keys. The
/// rows are 13 keys from the digits, 12 from `q`, 12 from `a`, and 11 from `z`. The row from `z`
/// begins with the extra key of ISO keyboards. The space bar comes last.
///
/// A dead key is listed as its accent.
type Table = [&'static str; 2];

impl Layout {
    /// Whose keyboard it is, with its article.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Us => "a US",
            Self::Uk => "a British",
            Self::De => "a German",
            Self::Fr => "a French",
            Self::Es => "a Spanish",
            Self::It => "an Italian",
            Self::Ch => "a Swiss",
        }
    }

    const fn table(self) -> Table {
        match self {
            Self::Us => [
                "`1234567890-=qwertyuiop[]asdfghjkl;'\\\0zxcvbnm,./ ",
                "~!@#$%^&*()_+QWERTYUIOP{}ASDFGHJKL:\"|\0ZXCVBNM<>? ",
            ],
            Self::Uk => [
                "`1234567890-=qwertyuiop[]asdfghjkl;'#\\zxcvbnm,./ ",
                "¬!\"£$%^&*()_+QWERTYUIOP{}ASDFGHJKL:@~|ZXCVBNM<>? ",
            ],
            Self::De => [
                "^1234567890ß´qwertzuiopü+asdfghjklöä#<yxcvbnm,.- ",
                "°!\"§$%&/()=?`QWERTZUIOPÜ*ASDFGHJKLÖÄ'>YXCVBNM;:_ ",
            ],
            Self::Fr => [
                "²&é\"'(-è_çà)=azertyuiop^$qsdfghjklmù*<wxcvbn,;:! ",
                "\x001234567890°+AZERTYUIOP¨£QSDFGHJKLM%µ>WXCVBN?./§ ",
            ],
            Self::Es => [
                "º1234567890'¡qwertyuiop`+asdfghjklñ´ç<zxcvbnm,.- ",
                "ª!\"·$%&/()=?¿QWERTYUIOP^*ASDFGHJKLÑ¨Ç>ZXCVBNM;:_ ",
            ],
            Self::It => [
                "\\1234567890'ìqwertyuiopè+asdfghjklòàù<zxcvbnm,.- ",
                "|!\"£$%&/()=?^QWERTYUIOPé*ASDFGHJKLç°§>ZXCVBNM;:_ ",
            ],
            Self::Ch => [
                "§1234567890'^qwertzuiopü¨asdfghjklöä$<yxcvbnm,.- ",
                "°+\"*ç%&/()=?`QWERTZUIOPè!ASDFGHJKLéà£>YXCVBNM;:_ ",
            ],
        }
    }

    /// The character that the same key types on `other`. `None` if one of the two keyboards needs
    /// AltGr for it, or has no such key.
    pub fn typed_on(self, other: Self, character: char) -> Option<char> {
        if character == NONE {
            return None;
        }
        let mut levels = self.table().into_iter().zip(other.table());
        levels.find_map(|(here, there)| {
            let key = here.chars().position(|typed| typed == character)?;
            there.chars().nth(key).filter(|typed| *typed != NONE)
        })
    }
}

/// A text that names no layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("use one of: us, uk, de, fr, es, it, ch")]
pub struct UnknownLayout;

impl FromStr for Layout {
    type Err = UnknownLayout;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::named(name).ok_or(UnknownLayout)
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys of the four rows and the space bar.
    const KEYS: usize = 49;

    #[test]
    fn every_table_has_every_key_once() {
        for layout in Layout::ALL {
            let mut seen = Vec::new();
            for level in layout.table() {
                assert_eq!(level.chars().count(), KEYS, "{layout}: {level}");
                let typed = level.chars().filter(|typed| *typed != NONE);
                seen.extend(typed.filter(|typed| *typed != ' '));
            }
            let count = seen.len();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), count, "{layout} types something by two keys");
        }
    }

    #[test]
    fn letters_and_digits_come_back() {
        let all = ('a'..='z').chain('A'..='Z').chain('0'..='9');
        for character in all {
            for here in Layout::ALL {
                for there in Layout::ALL {
                    let typed = here.typed_on(there, character).unwrap();
                    let back = there.typed_on(here, typed);
                    assert_eq!(back, Some(character), "{here} {there} {typed}");
                }
            }
        }
    }

    #[test]
    fn known_pairs() {
        for (here, there, character, typed) in [
            ("us", "de", 'z', Some('y')),
            ("us", "de", 'Y', Some('Z')),
            ("de", "us", 'ö', Some(';')),
            ("de", "us", 'ß', Some('-')),
            ("de", "us", '_', Some('?')),
            ("us", "fr", 'a', Some('q')),
            ("us", "fr", '1', Some('&')),
            ("fr", "us", 'm', Some(';')),
            ("fr", "us", '5', Some('%')),
            ("us", "uk", '@', Some('"')),
            ("uk", "us", '£', Some('#')),
            ("us", "es", ';', Some('ñ')),
            ("it", "us", 'ò', Some(';')),
            ("ch", "us", 'z', Some('y')),
            ("ch", "de", '+', Some('!')),
            ("de", "us", ' ', Some(' ')),
            // The key beside the left Shift, which US keyboards lack, and AltGr.
            ("de", "us", '<', None),
            ("de", "us", '@', None),
            ("us", "de", 'ß', None),
            ("us", "de", '\0', None),
        ] {
            let here: Layout = here.parse().unwrap();
            let there: Layout = there.parse().unwrap();
            assert_eq!(here.typed_on(there, character), typed, "{here} {there}");
        }
        assert_eq!("dvorak".parse::<Layout>(), Err(UnknownLayout));
    }
}
