//! The text of LVM2's metadata: sections, and values that are numbers, strings or lists.
//!
//! ```text
//! vg {
//!     extent_size = 8192      # sectors
//!     logical_volumes {
//!         root { segment1 { stripes = ["pv0", 0] } }
//!     }
//! }
//! ```

use std::borrow::Cow;

/// How deep sections may lie in sections.
const MOST_DEEP: usize = 8;

/// Most names and values of a text. A large group has some tens of thousands.
const MOST_VALUES: usize = 200_000;

/// The value of a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Number(u64),
    Text(Cow<'a, str>),
    List(Vec<Value<'a>>),
    Section(Section<'a>),
}

/// Names and their values, in their order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Section<'a>(Vec<(&'a str, Value<'a>)>);

impl<'a> Section<'a> {
    /// The sections in it, with their names.
    pub(super) fn sections(&self) -> impl Iterator<Item = (&str, &Self)> {
        self.0.iter().filter_map(|(name, value)| match value {
            Value::Section(section) => Some((*name, section)),
            _ => None,
        })
    }

    fn get(&self, name: &str) -> Option<&Value<'a>> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value)
    }

    pub(super) fn section(&self, name: &str) -> Option<&Self> {
        let mut named = self.sections().filter(|(known, _)| *known == name);
        named.next().map(|(_, section)| section)
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        match self.get(name)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn list(&self, name: &str) -> &[Value<'a>] {
        match self.get(name) {
            Some(Value::List(list)) => list,
            _ => &[],
        }
    }

    /// Whether a list has this text.
    pub(super) fn lists(&self, name: &str, text: &str) -> bool {
        let is = |value: &Value| matches!(value, Value::Text(known) if *known == text);
        self.list(name).iter().any(is)
    }
}

/// The names and values in a text; `None` if the text doesn't have this form.
/// It also has no more than [`MOST_VALUES`].
pub(super) fn parse(text: &str) -> Option<Section<'_>> {
    let mut reader = Reader {
        rest: text,
        left: MOST_VALUES,
    };
    reader.section(0)
}

struct Reader<'a> {
    rest: &'a str,
    /// Values that it may still have.
    left: usize,
}

impl<'a> Reader<'a> {
    /// All up to the end of the section, or of the text.
    fn section(&mut self, depth: usize) -> Option<Section<'a>> {
        let mut section = Section::default();
        loop {
            self.skip();
            let end = match depth {
                0 => self.rest.is_empty(),
                _ => self.takes('}'),
            };
            if end {
                return Some(section);
            }
            let name = self.word()?;
            self.left = self.left.checked_sub(1)?;
            self.skip();
            let value = if self.takes('{') {
                if depth == MOST_DEEP {
                    return None;
                }
                Value::Section(self.section(depth + 1)?)
            } else if self.takes('=') {
                self.value()?
            } else {
                return None;
            };
            section.0.push((name, value));
        }
    }

    fn value(&mut self) -> Option<Value<'a>> {
        self.skip();
        if !self.takes('[') {
            return self.scalar();
        }
        let mut list = Vec::new();
        loop {
            self.skip();
            if self.takes(']') {
                return Some(Value::List(list));
            }
            list.push(self.scalar()?);
            self.skip();
            self.takes(',');
        }
    }

    fn scalar(&mut self) -> Option<Value<'a>> {
        self.left = self.left.checked_sub(1)?;
        if !self.takes('"') {
            return Some(match self.word()?.parse() {
                Ok(number) => Value::Number(number),
                // Negative numbers and fractions say nothing about places.
                Err(_) => Value::Text(Cow::Borrowed("")),
            });
        }
        let mut escaped = None;
        let mut letters = self.rest.char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '"' => {
                    let text = escaped.map_or(Cow::Borrowed(&self.rest[..at]), Cow::Owned);
                    self.rest = &self.rest[at + 1..];
                    return Some(Value::Text(text));
                }
                '\\' => {
                    let text = escaped.get_or_insert_with(|| self.rest[..at].to_owned());
                    text.push(letters.next()?.1);
                }
                letter => escaped.iter_mut().for_each(|text| text.push(letter)),
            }
        }
        None
    }

    /// Letters of a name or a number, of which there is one at least.
    fn word(&mut self) -> Option<&'a str> {
        let of_word = |letter: char| letter.is_ascii_alphanumeric() || "_-.+#@:/".contains(letter);
        let end = self
            .rest
            .find(|letter| !of_word(letter))
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }

    fn takes(&mut self, letter: char) -> bool {
        match self.rest.strip_prefix(letter) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Goes over white space and comments.
    fn skip(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            match self.rest.strip_prefix('#') {
                Some(comment) => {
                    self.rest = comment.split_once('\n').map_or("", |(_, rest)| rest);
                }
                None => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_sections_values_and_comments() {
        let text = "vg0 { # a comment }\n id = \"a\\\"b\"\n seqno = 3\n part = -1.5\n\
                    status = [\"READ\", \"WRITE\"]\n inner { n = 7 } }\nversion = 1";
        let parsed = parse(text).unwrap();
        assert_eq!(parsed.number("version"), Some(1));
        let group = parsed.section("vg0").unwrap();
        assert_eq!(group.text("id"), Some("a\"b"));
        assert_eq!(group.number("seqno"), Some(3));
        assert_eq!(group.number("part"), None);
        assert!(group.lists("status", "WRITE"));
        assert!(!group.lists("status", "VISIBLE"));
        assert_eq!(group.section("inner").unwrap().number("n"), Some(7));
    }

    #[test]
    fn refuses_what_has_another_form() {
        for text in ["a {", "a = [1", "a = \"b", "= 1", "a b", "a = \"b\\", "}"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse(&"a {".repeat(100_000)), None);
        let deep = "a {".repeat(MOST_DEEP) + &"}".repeat(MOST_DEEP);
        assert!(parse(&deep).is_some());
    }
}
