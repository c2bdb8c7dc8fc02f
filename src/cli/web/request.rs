//! [`Request`]: what a browser asks for.

use httparse::Header;
use std::str;
use zeroize::Zeroizing;

/// Lines of a request's head, at most.
const LINES: usize = 100;

/// The result of reading the beginning of a request.
pub(super) enum Asked<'a> {
    Whole(Head<'a>),
    /// More is to come.
    Partly,
    TooLong,
    Malformed,
}

/// A request as it was sent.
pub(super) struct Head<'a> {
    pub(super) method: &'a str,
    /// The host of a whole address, by which a proxy is asked.
    authority: Option<&'a str>,
    pub(super) path: &'a str,
    query: &'a str,
    /// Names and values of the head's lines.
    lines: Vec<(&'a str, &'a [u8])>,
    form: &'a [u8],
}

impl<'a> Head<'a> {
    /// Reads a request from what came so far.
    pub(super) fn parse(bytes: &'a [u8]) -> Asked<'a> {
        let mut lines = [httparse::EMPTY_HEADER; LINES];
        let mut request = httparse::Request::new(&mut lines);
        let length = match request.parse(bytes) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) => return Asked::Partly,
            Err(httparse::Error::TooManyHeaders) => return Asked::TooLong,
            Err(_) => return Asked::Malformed,
        };
        let (Some(method), Some(target)) = (request.method, request.path) else {
            return Asked::Malformed;
        };
        let (authority, target) = match target.strip_prefix("http://") {
            Some(rest) => {
                let (authority, _) = rest.split_once('/').unwrap_or((rest, ""));
                (Some(authority), &rest[authority.len()..])
            }
            None => (None, target),
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let lines = request.headers.iter();
        let mut head = Self {
            method,
            authority,
            path,
            query,
            lines: lines.map(|&Header { name, value }| (name, value)).collect(),
            form: &[],
        };
        if method != "POST" {
            return Asked::Whole(head);
        }
        let mut lengths = head.named("content-length");
        let form = match (lengths.next().map(str::parse::<usize>), lengths.next()) {
            (Some(Ok(form)), None) => form,
            _ => return Asked::Malformed,
        };
        drop(lengths);
        match (form > super::REQUEST - length, bytes.len() - length < form) {
            (true, _) => Asked::TooLong,
            (_, true) => Asked::Partly,
            _ => {
                head.form = &bytes[length..length + form];
                Asked::Whole(head)
            }
        }
    }

    /// The values of the lines with this name. A value that is not text equals no expected value.
    fn named(&self, name: &'static str) -> impl Iterator<Item = &'a str> {
        let lines = self.lines.iter();
        let lines = lines.filter(move |(known, _)| known.eq_ignore_ascii_case(name));
        lines.map(|(_, value)| str::from_utf8(value).unwrap_or("?"))
    }

    /// Whether a browser was sent here by its user, and not by another host's page:
    /// under our own name only, and from no other origin.
    pub(super) fn is_for(&self, port: u16) -> bool {
        let names = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
        let ours = |name: &str| {
            // Browsers omit the usual port.
            let name = match (port, name.contains(':')) {
                (80, false) => format!("{name}:80"),
                _ => name.to_owned(),
            };
            names.iter().any(|own| own.eq_ignore_ascii_case(&name))
        };
        let mut hosts = self.named("host");
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) => ours(host),
            _ => false,
        };
        let authority = self.authority.is_none_or(ours);
        let mut origins = self.named("origin");
        let origin = origins.all(|origin| origin.strip_prefix("http://").is_some_and(ours));
        let mut sites = self.named("sec-fetch-site");
        let site = sites.all(|site| matches!(site, "none" | "same-origin"));
        host && authority && origin && site
    }

    /// Whether it says which page it comes from.
    pub(super) fn names_its_origin(&self) -> bool {
        self.named("origin").next().is_some()
    }
}

/// A request behind the secret.
pub struct Request {
    /// The path behind the secret, without a slash at its start.
    pub path: String,
    /// Whether it is a form that may change something.
    pub is_form: bool,
    /// The fields of the address or of the form, as they were sent.
    fields: Zeroizing<Vec<u8>>,
}

impl Request {
    pub(super) fn new(head: &Head<'_>, path: &str) -> Self {
        let is_form = head.method == "POST";
        let fields = if is_form {
            head.form
        } else {
            head.query.as_bytes()
        };
        Self {
            path: path.to_owned(),
            is_form,
            fields: Zeroizing::new(fields.to_vec()),
        }
    }

    /// The first field with this name; empty if there is none.
    pub fn field(&self, name: &str) -> String {
        self.secret(name).to_string()
    }

    /// The same for a secret, of which no copy stays in memory.
    pub fn secret(&self, name: &str) -> Zeroizing<String> {
        let mut fields = self.fields.split(|byte| *byte == b'&');
        let value = fields.find_map(|field| {
            let at = field.iter().position(|byte| *byte == b'=')?;
            let known = decoded(&field[..at]);
            (known.as_slice() == name.as_bytes()).then(|| decoded(&field[at + 1..]))
        });
        let value = value.unwrap_or_default();
        let text = String::from_utf8_lossy(&value);
        Zeroizing::new(text.into_owned())
    }
}

/// Undoes the encoding of a form (`application/x-www-form-urlencoded`, WHATWG URL, section 5.1).
fn decoded(field: &[u8]) -> Zeroizing<Vec<u8>> {
    // As long as the field at most: a larger vector would leave its first part behind in memory.
    let mut bytes = Zeroizing::new(Vec::with_capacity(field.len()));
    let digit = |at: usize| {
        let byte = *field.get(at)?;
        Some(char::from(byte).to_digit(16)? as u8)
    };
    let mut at = 0;
    while at < field.len() {
        let (byte, length) = match (field[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => (high << 4 | low, 3),
            (b'+', ..) => (b' ', 1),
            (byte, ..) => (byte, 1),
        };
        bytes.push(byte);
        at += length;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(fields: &[u8]) -> Request {
        Request {
            path: String::new(),
            is_form: true,
            fields: Zeroizing::new(fields.to_vec()),
        }
    }

    #[test]
    fn fields_are_decoded() {
        let request = asked(b"path=%2Fhome%2Fa+b&passphrase=%C3%A4%26%3D%25&empty=&path=second");
        assert_eq!(request.field("path"), "/home/a b");
        assert_eq!(*request.secret("passphrase"), "ä&=%");
        assert_eq!(request.field("empty"), "");
        assert_eq!(request.field("other"), "");
        for broken in [&b"%"[..], b"%2", b"%zz", b"a=%", b"&&=&==", b"a=\xff"] {
            let request = asked(broken);
            assert!(request.field("a").len() < 8, "{broken:?}");
        }
    }

    #[test]
    fn forms_are_read_whole_and_bounded() {
        let parse = |length: &str, form: &str| {
            let text = format!("POST /s/x HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{form}");
            match Head::parse(text.as_bytes()) {
                Asked::Whole(head) => format!("whole {}", head.form.len()),
                Asked::Partly => "partly".into(),
                Asked::TooLong => "too long".into(),
                Asked::Malformed => "malformed".into(),
            }
        };
        assert_eq!(parse("3", "a=b"), "whole 3");
        assert_eq!(parse("3", "a=bc"), "whole 3");
        assert_eq!(parse("4", "a=b"), "partly");
        assert_eq!(parse("100000000", "a=b"), "too long");
        for length in ["-1", "x", "", "99999999999999999999999"] {
            assert_eq!(parse(length, "a=b"), "malformed", "{length}");
        }
        assert_eq!(parse("3\r\nContent-Length: 2", "a=b"), "malformed");
    }
}
