//! The errors of a cipher specification, a key or a forced backend.

use std::fmt::Display;

use crate::spec::MOST_KEYS;
use crate::{
    Algorithm, Backend, CipherSpec, EssivHash, IvGenerator, Mode, SectorSize, StreamCipher,
};

/// The reason why a cipher cannot be made, for the user to act on.
///
/// `Display` is the first line to print: what happened. [`remedy`](Self::remedy) is the second:
/// what is possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CipherError {
    /// The text is not in the form `cipher-mode-iv` or `capi:mode(cipher)-iv`.
    #[error("`{}` is not a cipher specification", shown(.text))]
    Notation {
        /// The text that the user wrote.
        text: String,
    },
    /// No cipher of that name is built in.
    #[error("unknown cipher `{}`", shown(.name))]
    UnknownCipher {
        /// The name as the user wrote it.
        name: String,
    },
    /// No stream cipher of that name is built in.
    #[error("unknown stream cipher `{}`", shown(.name))]
    UnknownStream {
        /// The name as the user wrote it.
        name: String,
    },
    /// The mode needs a stream cipher and the specification names none.
    #[error("the mode `{mode}` needs a stream cipher before the block cipher")]
    MissingStream {
        /// The mode that was asked for.
        mode: Mode,
        /// The block cipher that was asked for.
        cipher: Algorithm,
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
    /// No hash of that name is built in, or `essiv` names none.
    #[error("unknown hash `{}` for essiv", shown(.name))]
    UnknownHash {
        /// The name as the user wrote it.
        name: String,
    },
    /// The number of keys is none that a multi-key cipher can have.
    #[error("a cipher cannot have `{}` keys", shown(.text))]
    KeyCount {
        /// The number as the user wrote it.
        text: String,
    },
    /// More ciphers in a row than any volume format has.
    #[error("a cascade of {length} ciphers is too long")]
    LongCascade {
        /// How many the user named.
        length: usize,
        /// How many there can be.
        longest: usize,
    },
    /// The mode does not exist for these ciphers.
    #[error("the mode `{mode}` is not possible for {ciphers}")]
    UnfitMode {
        /// The notation of the ciphers that were asked for.
        ciphers: String,
        /// The mode that was asked for.
        mode: Mode,
        /// The modes that are possible instead.
        possible: Vec<Mode>,
    },
    /// The IV generator does not exist for this mode of these ciphers.
    #[error("the IV generator `{iv}` is not possible for {ciphers}-{mode}")]
    UnfitIv {
        /// The notation of the ciphers that were asked for.
        ciphers: String,
        /// The mode that was asked for.
        mode: Mode,
        /// The IV generator that was asked for.
        iv: IvGenerator,
        /// The IV generators that are possible instead.
        possible: Vec<IvGenerator>,
    },
    /// The cipher has no key of the length of the hash's digest.
    #[error("essiv:{hash} is not possible for {cipher}: {cipher} has no {}-bit key", hash.digest_bytes() * 8)]
    UnfitHash {
        /// The cipher that was asked for.
        cipher: Algorithm,
        /// The hash that was asked for.
        hash: EssivHash,
        /// The hashes that are possible instead.
        possible: Vec<EssivHash>,
    },
    /// The IV generator is not defined for sectors of that size.
    #[error("{spec} cannot have sectors of {} bytes", got.bytes())]
    SectorSize {
        /// The cipher that was asked for.
        spec: CipherSpec,
        /// The sector size that was asked for.
        got: SectorSize,
        /// The sector sizes that are possible instead.
        possible: Vec<SectorSize>,
    },
    /// The mode needs an IV generator and the specification names none.
    #[error("the mode `{mode}` needs an IV generator")]
    MissingIv {
        /// The mode that was asked for.
        mode: Mode,
        /// The IV generators that are possible.
        possible: Vec<IvGenerator>,
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
        /// The backends that can be forced instead, the best first.
        available: Vec<Backend>,
    },
    /// The operating system gave no threads to share work among cores.
    #[error("the system could not start {count} threads: {kind}")]
    Threads {
        /// How many threads there were to be.
        count: usize,
        /// Why it refused.
        kind: std::io::ErrorKind,
    },
    /// The operating system gave no random bytes for a key.
    #[error("the system's random number generator failed")]
    Random(#[from] getrandom::Error),
}

impl CipherError {
    /// The remedy, as one line to print below the error.
    pub fn remedy(&self) -> String {
        match self {
            Self::Notation { .. } => format!(
                "Write cipher-mode-iv as dm-crypt does, for example {}.",
                list(EXAMPLES)
            ),
            Self::UnknownCipher { name } => choice(name, Algorithm::ALL.map(Algorithm::name)),
            Self::UnknownStream { name } => choice(name, StreamCipher::ALL.map(StreamCipher::name)),
            Self::MissingStream { mode, cipher } => {
                let named = StreamCipher::ALL.map(|stream| format!("{stream},{cipher}-{mode}"));
                format!("Begin with one of: {}.", list(named))
            }
            Self::UnknownMode { name } => choice(name, Mode::ALL.map(Mode::name)),
            Self::UnknownIv { name } => choice(name, IvGenerator::ALL.map(IvGenerator::name)),
            Self::UnknownHash { name } => choice(name, EssivHash::ALL.map(EssivHash::name)),
            Self::KeyCount { .. } => format!("Use a power of two up to {MOST_KEYS}."),
            Self::LongCascade { longest, .. } => format!("Name at most {longest} ciphers."),
            Self::UnfitMode { possible, .. } if possible.is_empty() => {
                "No mode is possible with that. Name one cipher with one key.".to_owned()
            }
            Self::UnfitMode { possible, .. } => format!("Use one of: {}.", list(possible)),
            Self::UnfitIv { possible, .. } => format!("Use one of: {}.", list(possible)),
            Self::UnfitHash { possible, .. } if possible.is_empty() => {
                "No hash is possible with that. Choose another IV generator.".to_owned()
            }
            Self::UnfitHash { possible, .. } => format!("Use one of: {}.", list(possible)),
            Self::SectorSize { possible, .. } => {
                let bytes = possible.iter().map(|size| size.bytes());
                format!("Use one of: {} bytes.", list(bytes))
            }
            Self::MissingIv { possible, .. } => format!(
                "Append one of: {}.",
                list(possible.iter().map(|iv| format!("-{iv}")))
            ),
            Self::KeySize { possible_bits, .. } => {
                format!("Use one of: {} bits.", list(possible_bits))
            }
            Self::UnknownBackend { name } => choice(name, Backend::ALL.map(Backend::name)),
            Self::BackendUnavailable { available, .. } => {
                format!("Use one of: {}.", list(available))
            }
            Self::Threads { .. } => {
                "Use fewer cores, or raise the limit on threads (ulimit -u).".to_owned()
            }
            Self::Random(_) => "Check whether a sandbox blocks getrandom(2).".to_owned(),
        }
    }
}

/// One of each kind of notation.
const EXAMPLES: [&str; 4] = [
    "aes-xts-plain64",
    "aes-cbc-essiv:sha256",
    "aes-twofish-serpent",
    "capi:xts(aes)-plain64",
];

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
        Some(meant) => format!("Did you mean `{meant}`? Use one of: {}.", list(known)),
        None => format!("Use one of: {}.", list(known)),
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
