//! What can be wrong with a cipher specification, a key or a forced backend.

use std::fmt::Display;

use crate::{Algorithm, Backend, CipherSpec, IvGenerator, Mode};

/// What a user can act on when a cipher cannot be made.
///
/// `Display` is the first line to print: what happened.
/// [`remedy`](Self::remedy) is the second: what is possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CipherError {
    /// The text is not in the form `cipher-mode-iv` or `capi:mode(cipher)-iv`.
    #[error("`{}` is not a cipher specification", shown(.text))]
    Notation {
        /// What the user wrote.
        text: String,
    },
    /// No cipher of that name is built in.
    #[error("unknown cipher `{}`", shown(.name))]
    UnknownCipher {
        /// The name as the user wrote it.
        name: String,
    },
    /// No block mode of that name is built in.
    #[error("unknown mode `{}`", shown(.name))]
    UnknownMode {
        /// The name as the user wrote it.
        name: String,
    },
    /// No IV generator of that name is built in.
    #[error("unknown IV generator `{}`", shown(.name))]
    UnknownIv {
        /// The name as the user wrote it, with its parameter.
        name: String,
    },
    /// The mode needs an IV generator and the specification names none.
    #[error("the mode `{mode}` needs an IV generator")]
    MissingIv {
        /// The mode that was asked for.
        mode: Mode,
    },
    /// The cipher does not take keys of that length.
    #[error("{spec} cannot take a key of {got_bits} bits")]
    KeySize {
        /// The cipher that was asked for.
        spec: CipherSpec,
        /// The length of the key that was given, in bits.
        got_bits: usize,
        /// The lengths it takes, in bits, as cryptsetup counts them.
        possible_bits: Vec<usize>,
    },
    /// No backend has that name.
    #[error("unknown backend `{}`", shown(.name))]
    UnknownBackend {
        /// The name as the user wrote it.
        name: String,
    },
    /// The backend does not exist for this cipher on this CPU.
    #[error("{spec} has no backend `{backend}` on this CPU")]
    BackendUnavailable {
        /// The cipher that was asked for.
        spec: CipherSpec,
        /// The backend that was forced.
        backend: Backend,
        /// The backends that can be forced instead, the fastest first.
        available: Vec<Backend>,
    },
    /// The operating system gave no random bytes for a key.
    #[error("the system's random number generator failed")]
    Random(#[from] getrandom::Error),
}

impl CipherError {
    /// What to do about it, as one line to print below the error.
    pub fn remedy(&self) -> String {
        match self {
            Self::Notation { .. } => format!(
                "Write cipher-mode-iv as dm-crypt does, for example {}.",
                list(CipherSpec::KNOWN)
            ),
            Self::UnknownCipher { name } => choice(name, Algorithm::ALL.map(Algorithm::name)),
            Self::UnknownMode { name } => choice(name, Mode::ALL.map(Mode::name)),
            Self::UnknownIv { name } => choice(name, IvGenerator::ALL.map(IvGenerator::name)),
            Self::MissingIv { .. } => format!(
                "Append one of {}.",
                list(IvGenerator::ALL.map(|iv| format!("-{iv}")))
            ),
            Self::KeySize { possible_bits, .. } => {
                format!("Possible are {} bits.", list(possible_bits))
            }
            Self::UnknownBackend { name } => choice(name, Backend::ALL.map(Backend::name)),
            Self::BackendUnavailable { available, .. } => {
                format!("Possible are {}.", list(available))
            }
            Self::Random(_) => "Look for a sandbox that hides getrandom(2).".to_owned(),
        }
    }
}

/// Longest part of the user's own text that an error repeats, in characters.
const SHOWN_CHARS: usize = 60;

/// User input as an error may print it: short, and without control characters.
fn shown(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(SHOWN_CHARS)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

fn choice<const N: usize>(name: &str, known: [&'static str; N]) -> String {
    match suggestion(name, &known) {
        Some(meant) => format!("Did you mean `{meant}`? Known are {}.", list(known)),
        None => format!("Known are {}.", list(known)),
    }
}

/// The known name that `name` is most likely a slip of.
fn suggestion(name: &str, known: &[&'static str]) -> Option<&'static str> {
    /// Below this share of unchanged characters a suggestion is noise.
    const SIMILAR: f64 = 0.5;
    if name.chars().nth(SHOWN_CHARS).is_some() {
        return None;
    }
    let name = name.to_lowercase();
    known
        .iter()
        .map(|&known| (known, strsim::normalized_damerau_levenshtein(&name, known)))
        .filter(|&(_, similarity)| similarity >= SIMILAR)
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(known, _)| known)
}

fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    items
        .into_iter()
        .map(|item| item.to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_noise_is_not() {
        let known = ["aes", "serpent", "twofish"];
        assert_eq!(suggestion("serpant", &known), Some("serpent"));
        assert_eq!(suggestion("AES", &known), Some("aes"));
        assert_eq!(suggestion("two-fish", &known), Some("twofish"));
        assert_eq!(suggestion("zzz", &known), None);
        assert_eq!(suggestion("", &known), None);
        assert_eq!(suggestion(&"a".repeat(10_000), &known), None);
    }

    #[test]
    fn long_and_hostile_text_is_cut_and_escaped() {
        let error = CipherError::UnknownCipher {
            name: format!("a\u{1b}[2J{}", "b".repeat(1_000_000)),
        };
        let printed = error.to_string();
        assert!(printed.chars().count() < 100, "{printed}");
        assert!(!printed.contains('\u{1b}'));
    }
}
