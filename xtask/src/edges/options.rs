//! Texts of published crates name no options of the program, because other programs, C and Python use
//! these crates too: a remedy names the parameter, as in `key_slot`, and the program prints that as
//! its option. Commands stand between backticks.

use crate::prose::texts;
use std::path::Path;

/// The crates that other programs use.
const PUBLISHED: &[&str] = &["cipher", "block", "drive", "serve", "volume", "lab"];

/// Commands for the lab kernel, and no messages.
const LAB_KERNEL: &str = "crates/lab/src/kernel";

/// The texts of `file` that name options of the program.
pub fn offences(file: &Path, source: &str) -> Vec<String> {
    let sources = |name: &&str| file.starts_with(Path::new("crates").join(name).join("src"));
    let is_test = file.iter().any(|part| part == "tests");
    if !PUBLISHED.iter().any(sources) || file.starts_with(LAB_KERNEL) || is_test {
        return Vec::new();
    }
    let texts = match texts(source) {
        Ok(texts) => texts,
        Err(error) => return vec![format!("{}: {error}", file.display())],
    };
    let named = |(line, text): (usize, String)| {
        let found = named_in_sentence(&text)?;
        Some(format!(
            "{}:{line}: a library may not name {found:?}; name the parameter between backticks, and \
             list it in src/cli/remedy.rs",
            file.display()
        ))
    };
    texts.into_iter().filter_map(named).collect()
}

/// The first option in `text` outside of backticks. A single word is an argument of another
/// program, and no sentence.
fn named_in_sentence(text: &str) -> Option<&str> {
    let is_sentence = text.trim().contains(' ');
    let mut unquoted = text.split('`').step_by(2);
    unquoted.find_map(option_in).filter(|_| is_sentence)
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
    fn options_in_sentences_are_found() {
        for text in [
            "Give the --key-file.",
            "Try (--type luks2).",
            "`other` takes no --yes.",
        ] {
            assert!(named_in_sentence(text).is_some(), "{text}");
        }
        for text in [
            "Give the `key_file`.",
            "Run `cryptmark lab build --kernel 6.1`.",
            "--socket=x",
            "-----BEGIN CERTIFICATE-----",
            "a -- b, 3--4",
        ] {
            assert_eq!(named_in_sentence(text), None);
        }
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
        assert_eq!(count("crates/lab/src/experiment/error.rs"), 2);
        assert_eq!(count("crates/lab/src/kernel/build.rs"), 0);
        assert_eq!(count("src/cli/remedy.rs"), 0);
    }
}
