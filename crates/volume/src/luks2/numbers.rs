//! Numbers in JSON that no type here can hold, kept digit for digit.
//!
//! Another program may have written an integer of any length or a fraction. In memory the JSON has
//! such a number as a text that begins with a mark. So it is written exactly as it was read.

use serde::de::IgnoredAny;

/// The first character of such a text. It is a noncharacter, so no other text needs it.
const MARK: char = '\u{fdd0}';

/// The same mark within a JSON text, written as an escape.
const ESCAPED: &[u8] = b"\\ufdd0";

/// `json` with such numbers as texts. Texts that begin with the mark get
/// another one.
pub(super) fn hide(json: &[u8]) -> Vec<u8> {
    let mut hidden = Vec::with_capacity(json.len());
    let mut mark = [0; 4];
    let mark = MARK.encode_utf8(&mut mark).as_bytes();
    let mut at = 0;
    while let Some(&byte) = json.get(at) {
        let rest = &json[at..];
        let length = match byte {
            b'"' => {
                let length = text_length(rest);
                let inner = &rest[1..length];
                hidden.push(b'"');
                if inner.starts_with(mark) || starts_escaped(inner) {
                    hidden.extend_from_slice(mark);
                }
                hidden.extend_from_slice(inner);
                length
            }
            b'-' | b'0'..=b'9' => {
                let length = rest.iter().take_while(|byte| is_of_number(byte)).count();
                let token = &rest[..length];
                match is_number(token) && !is_plain(token) {
                    true => {
                        hidden.push(b'"');
                        hidden.extend_from_slice(mark);
                        hidden.extend_from_slice(token);
                        hidden.push(b'"');
                    }
                    false => hidden.extend_from_slice(token),
                }
                length
            }
            other => {
                hidden.push(other);
                1
            }
        };
        at += length;
    }
    hidden
}

/// The number that `text` stands for, if it does, or the text that it is.
pub(super) fn shown(text: &str) -> Shown<'_> {
    match text.strip_prefix(MARK) {
        None => Shown::Text(text),
        Some(rest) if is_number(rest.as_bytes()) => Shown::Number(rest),
        Some(rest) if rest.starts_with(MARK) => Shown::Text(rest),
        Some(_) => Shown::Text(text),
    }
}

/// The meaning of a text in memory: a text or a number in the JSON.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Shown<'a> {
    /// A text.
    Text(&'a str),
    /// A number.
    Number(&'a str),
}

/// The length of the text that `json` begins with, quotes and all.
fn text_length(json: &[u8]) -> usize {
    let mut at = 1;
    while let Some(&byte) = json.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    json.len()
}

fn starts_escaped(inner: &[u8]) -> bool {
    let start = inner.get(..ESCAPED.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(ESCAPED) && start[1] == b'u')
}

/// Whether it is written again as it stands there.
fn is_plain(token: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(token) else {
        return false;
    };
    let unsigned = text.parse::<u64>().map(|number| number.to_string());
    let signed = text.parse::<i64>().map(|number| number.to_string());
    unsigned.is_ok_and(|again| again == text) || signed.is_ok_and(|again| again == text)
}

/// Whether it is a number of JSON (RFC 8259, section 6). No other value has these bytes alone.
fn is_number(token: &[u8]) -> bool {
    token.iter().all(is_of_number) && serde_json::from_slice::<IgnoredAny>(token).is_ok()
}

/// Whether a number may have this byte.
const fn is_of_number(byte: &u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_other_programs_are_hidden_and_shown() {
        for token in [
            "18446744073709551616",
            "-9223372036854775809",
            "1.50",
            "-0",
            "1E+3",
            "0.1e-9",
        ] {
            let json = format!("{{\"a\":[{token}]}}");
            let hidden = hide(json.as_bytes());
            let value: serde_json::Value = serde_json::from_slice(&hidden).unwrap();
            let text = value["a"][0].as_str().unwrap();
            assert_eq!(shown(text), Shown::Number(token));
        }
        for token in [
            "0",
            "18446744073709551615",
            "-9223372036854775808",
            "01",
            "1.",
            ".5",
            "--1",
            "1e",
        ] {
            assert_eq!(hide(token.as_bytes()), token.as_bytes());
        }
    }

    #[test]
    fn a_text_that_looks_hidden_stays_a_text() {
        for json in [
            "\"\u{fdd0}1.5\"",
            "\"\\uFDD01.5\"",
            "\"\u{fdd0}\u{fdd0}1.5\"",
            "\"\u{fdd0}\"",
        ] {
            let said: String = serde_json::from_str(json).unwrap();
            let kept: String = serde_json::from_slice(&hide(json.as_bytes())).unwrap();
            assert_eq!(shown(&kept), Shown::Text(&said), "{json}");
        }
    }

    #[test]
    fn texts_are_left_alone_up_to_their_end() {
        for json in [r#"{"1.5":"2.5\"3.5"}"#, r#"["\\",1]"#, "\"1.5", "\"\\"] {
            assert_eq!(hide(json.as_bytes()), json.as_bytes(), "{json}");
        }
    }
}
