//! Texts of published crates name no options of the program, and those of the engine crates no
//! commands either, because other programs use these crates too. The program adds them:
//! `src/cli/remedy.rs`.

use crate::prose::texts;
use std::path::Path;

/// The crates that other programs use.
const ENGINE: &[&str] = &["cipher", "block", "drive", "serve", "volume"];

/// The lab may name commands between backticks, because its runs are read with the program.
const LAB: &str = "crates/lab/src";

/// Commands for the lab kernel, and no messages.
const LAB_KERNEL: &str = "crates/lab/src/kernel";

/// Sources that start other programs. A single word there is an argument, and no message.
const STARTERS: &[&str] = &[
    "crates/serve/src/disk/image.rs",
    "crates/serve/src/service/file_system.rs",
];

/// How commands of the program begin. The second form leaves out its name.
const COMMANDS: &[&str] = &["cryptmark ", "volume "];

/// Other programs. Their commands may be named, with options, between backticks.
const OTHERS: &[&str] = &[
    "blkid",
    "cryptsetup",
    "gpg",
    "nbdinfo",
    "nbdkit",
    "qemu-nbd",
];

/// The texts of `file` that name options or commands of the program.
pub fn offences(file: &Path, source: &str) -> Vec<String> {
    let find: fn(&str) -> Option<&str> = if STARTERS.iter().any(|it| file == Path::new(it)) {
        |text| named_in(text).filter(|_| text.trim().contains(' '))
    } else if is_of_engine(file) {
        named_in
    } else if file.starts_with(LAB) && !file.starts_with(LAB_KERNEL) && !is_test(file) {
        named_in_sentence
    } else {
        return Vec::new();
    };
    let texts = match texts(source) {
        Ok(texts) => texts,
        Err(error) => return vec![format!("{}: {error}", file.display())],
    };
    let named = |(line, text): (usize, String)| {
        let found = find(&text)?;
        Some(format!(
            "{}:{line}: a library may not name {found:?}; src/cli/remedy.rs may",
            file.display()
        ))
    };
    texts.into_iter().filter_map(named).collect()
}

/// Whether `file` is a source of an engine crate, and not a test.
fn is_of_engine(file: &Path) -> bool {
    let sources = |name: &&str| file.starts_with(Path::new("crates").join(name).join("src"));
    ENGINE.iter().any(sources) && !is_test(file)
}

fn is_test(file: &Path) -> bool {
    file.iter().any(|part| part == "tests")
}

/// The first option in `text` outside of backticks. A single word is an argument of another
/// program, and no sentence.
fn named_in_sentence(text: &str) -> Option<&str> {
    let is_sentence = text.trim().contains(' ');
    let mut unquoted = text.split('`').step_by(2);
    unquoted.find_map(option_in).filter(|_| is_sentence)
}

/// The first option or command of the program in `text`.
fn named_in(text: &str) -> Option<&str> {
    text.split('`').enumerate().find_map(|(number, part)| {
        let is_quoted = number % 2 == 1;
        if is_quoted && COMMANDS.iter().any(|command| part.starts_with(command)) {
            return Some(part);
        }
        let program = part.split(' ').next().unwrap_or_default();
        match is_quoted && OTHERS.contains(&program) {
            true => None,
            false => option_in(part),
        }
    })
}

/// The first word of `text` that begins with two hyphens and a small letter.
fn option_in(text: &str) -> Option<&str> {
    let is_option = |word: &&str| {
        let name = word.strip_prefix("--").unwrap_or_default();
        name.starts_with(|first: char| first.is_ascii_lowercase())
    };
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
        .find(is_option)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_and_commands_of_the_program_are_found() {
        for text in [
            "Give the --key-file.",
            "--yes",
            "Try (--type luks2).",
            "Run `cryptmark volume info`.",
            "Copy it with `volume export`.",
            "`cryptsetup repair` takes no --yes.",
            "`other --option`",
        ] {
            assert!(named_in(text).is_some(), "{text}");
        }
        for text in [
            "Give the key file.",
            "Run `cryptsetup reencrypt --resume-only`.",
            "`nbdinfo --list` and `blkid --probe --offset 0` show it.",
            "-----BEGIN CERTIFICATE-----",
            "a -- b, 3--4",
        ] {
            assert_eq!(named_in(text), None);
        }
    }

    #[test]
    fn the_lab_may_name_commands() {
        let text = "Build it with `cryptmark lab build --kernel 6.1`.";
        assert_eq!(named_in_sentence(text), None);
        assert_eq!(named_in_sentence("--socket=x"), None);
        assert_eq!(named_in_sentence("Give --at a disk."), Some("--at"));
    }

    #[test]
    fn only_texts_of_libraries_count() {
        let source = r##"
            /// `cryptmark volume info` in a comment, with --type.
            fn remedy() -> &'static str { r#"Give --yes."# }
            #[error("Omit \
                     --type.")]
            struct Error;
            #[cfg(test)]
            mod tests { const X: &str = "--yes"; }
        "##;
        let count = |file: &str| offences(Path::new(file), source).len();
        assert_eq!(count("crates/volume/src/error.rs"), 2);
        assert_eq!(count("crates/volume/src/tcrypt/tests/hostile.rs"), 0);
        assert_eq!(count("crates/volume/tests/kdf.rs"), 0);
        // A single word is no sentence in the lab.
        assert_eq!(count("crates/lab/src/experiment/error.rs"), 2);
        assert_eq!(count("crates/lab/src/kernel/build.rs"), 0);
        assert_eq!(count("src/cli/remedy.rs"), 0);
    }
}
