//! The combinations that are proved one by one: ciphers, mode, kind of IV generator, backend.

use std::collections::BTreeMap;
use std::fmt;

use cryptmark_cipher::{Algorithm, Backend, CipherSpec, EssivHash, IvGenerator, Mode};

/// The name of a row of the results.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Combination {
    /// As in dm-crypt's notation: `aes`, `aes:64`, `xchacha12,aes`.
    pub ciphers: String,
    pub mode: String,
    /// IV generators that differ in public numbers only are one, `counted`, and
    /// so are the hashes of `essiv`, Whirlpool's apart.
    pub ivs: String,
    pub backend: String,
}

impl Combination {
    fn new(spec: CipherSpec, backend: Backend) -> Self {
        let iv = spec.iv().map_or_else(String::new, |iv| format!("-{iv}"));
        let mode_and_iv = format!("-{}{iv}", spec.mode());
        let notation = spec.to_string();
        let ciphers = notation.strip_suffix(&mode_and_iv).unwrap_or(&notation);
        let ivs = match spec.iv() {
            None => "none",
            Some(
                IvGenerator::Null
                | IvGenerator::Plain
                | IvGenerator::Plain64
                | IvGenerator::Plain64Be
                | IvGenerator::Benbi,
            ) => "counted",
            Some(IvGenerator::Essiv(EssivHash::Wp256 | EssivHash::Wp384 | EssivHash::Wp512)) => {
                "essiv:wp"
            }
            Some(iv) => iv.name(),
        };
        Self {
            ciphers: ciphers.to_owned(),
            mode: spec.mode().to_string(),
            ivs: ivs.to_owned(),
            backend: backend.to_string(),
        }
    }

    /// The backend that does the work.
    pub fn backend(&self) -> Backend {
        self.backend.parse().expect("made from a backend")
    }
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            ciphers,
            mode,
            ivs,
            backend,
        } = self;
        f.pad(&format!("{ciphers} {mode} {ivs} {backend}"))
    }
}

/// The specifications that share a row, by their row.
pub type Combinations = BTreeMap<Combination, Vec<CipherSpec>>;

/// Every cipher in every mode with every IV generator, and what is known of
/// several keys and cascades, by every backend of this CPU.
pub fn all() -> Combinations {
    let hashes = EssivHash::ALL.map(IvGenerator::Essiv);
    let ivs: Vec<String> = IvGenerator::ALL
        .iter()
        .chain(&hashes)
        .map(|iv| format!("-{iv}"))
        .chain([String::new()])
        .collect();
    let mut specs = Vec::new();
    for cipher in Algorithm::ALL {
        for mode in Mode::ALL {
            let ciphers = match mode {
                Mode::Adiantum(stream) => format!("{stream},{cipher}"),
                _ => cipher.to_string(),
            };
            let notations = ivs.iter().map(|iv| format!("{ciphers}-{mode}{iv}"));
            specs.extend(notations.flat_map(|notation| notation.parse::<CipherSpec>()));
        }
    }
    specs.extend(known().into_values().flatten());
    by_row(specs)
}

/// The combinations that these notations stand for.
pub fn of(notations: &[&str]) -> Combinations {
    let parsed = |notation: &&str| notation.parse().expect("a specification");
    by_row(notations.iter().map(parsed).collect())
}

/// One of every kind.
pub fn known() -> Combinations {
    of(CipherSpec::KNOWN)
}

fn by_row(specs: Vec<CipherSpec>) -> Combinations {
    let mut rows = Combinations::new();
    for spec in specs {
        for backend in spec.backends() {
            let row = rows.entry(Combination::new(spec, backend)).or_default();
            if !row.contains(&spec) {
                row.push(spec);
            }
        }
    }
    rows
}
