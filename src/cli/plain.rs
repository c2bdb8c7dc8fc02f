//! Text that has passed through others' files, with nothing in it that a terminal would obey.

use block::plain::steers;
use std::borrow::Cow;
use std::path::Path;
use std::sync::OnceLock;

/// The text with control characters, and those that change the direction of text, written as JSON
/// writes them: `\u001b`. Lines and tabs stay; the colours of our own tables do if `coloured`.
pub fn text(text: &str, coloured: bool) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let kept = match rest {
            _ if !steers(letter) => Some(letter.len_utf8()),
            _ if rest.starts_with("\r\n") => Some(2),
            _ => colour(rest).filter(|_| coloured),
        };
        let (now, later) = rest.split_at(kept.unwrap_or(letter.len_utf8()));
        match kept {
            Some(_) => plain += now,
            None => plain += &format!("\\u{:04x}", u32::from(letter)),
        }
        rest = later;
    }
    Cow::Owned(plain)
}

/// A path on one line: a name with line breaks would pass for lines of ours.
pub fn line(path: &Path) -> String {
    path.display().to_string().replace('\n', BREAK)
}

/// The same with the names that the user gives in what is about to be printed.
pub fn given(text: &str) -> Cow<'_, str> {
    static NAMES: OnceLock<Vec<String>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let all = std::env::args_os().map(|given| given.to_string_lossy().into_owned());
        let names = all.flat_map(|given| given.split('/').map(str::to_owned).collect::<Vec<_>>());
        names.filter(|name| name.contains('\n')).collect()
    });
    let mut text = Cow::Borrowed(text);
    for name in names {
        text = Cow::Owned(text.replace(name, &name.replace('\n', BREAK)));
    }
    text
}

/// A line break, as JSON writes it.
const BREAK: &str = "\\u000a";

/// The length of the command that `text` begins with, if that only changes colours.
fn colour(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\x1b[")?;
    let end = numbers.find(|letter: char| !letter.is_ascii_digit() && letter != ';')?;
    numbers[end..].starts_with('m').then_some(end + 3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::plain::word;

    #[test]
    fn nothing_steers_a_terminal() {
        for (given, plain) in [
            ("a b\tc\nd", "a b\tc\nd"),
            ("ü → Ω\r\n", "ü → Ω\r\n"),
            (
                "\x1b[31mred\x1b]0;title\x07",
                "\\u001b[31mred\\u001b]0;title\\u0007",
            ),
            ("a\rb\x08\u{9b}2J", "a\\u000db\\u0008\\u009b2J"),
            ("gpj.\u{202e}exe", "gpj.\\u202eexe"),
            ("\u{2066}\u{200f}\u{61c}", "\\u2066\\u200f\\u061c"),
        ] {
            assert_eq!(text(given, false), plain);
        }
        assert_eq!(text("\x1b[1;32mgood\x1b[0m", true), "\x1b[1;32mgood\x1b[0m");
        assert_eq!(text("\x1b[2J\x1b[31", true), "\\u001b[2J\\u001b[31");
    }

    #[test]
    fn a_shell_reads_the_path_again() {
        for path in [
            "a/b.img",
            "a b",
            "it's",
            "",
            "$HOME `x` \"",
            "\x1b[31m'\\",
            "\u{202e}\n\tü",
            "-n",
        ] {
            let line = format!("printf '[%s]' {}", word(Path::new(path)));
            assert_eq!(text(&line, false), line);
            let mut shell = block::program::command("bash");
            shell.env("LC_ALL", "C.UTF-8").args(["-c", &line]);
            let said = match shell.output() {
                Ok(output) => output.stdout,
                Err(_) => return println!("skipped: there is no bash"),
            };
            assert_eq!(String::from_utf8(said).unwrap(), format!("[{path}]"));
        }
    }

    /// What is printed as JSON means the same.
    #[test]
    fn json_stays_json() {
        let value = serde_json::json!({ "name": "a\u{202e}b\u{1b}" });
        let printed = value.to_string();
        let read: serde_json::Value = serde_json::from_str(&text(&printed, false)).unwrap();
        assert_eq!(read, value);
    }
}
