//! The input of every instrument: the rows, and the requests of each.

use std::collections::BTreeMap;

use cryptmark_cipher::{CipherSpec, SectorSize};

use crate::combination::{self, Combinations};
use crate::controls::Control;

/// Sectors of a request: what kernels take side by side and what is left over,
/// the short one first.
const LENGTHS: [(usize, SectorSize); 4] = [
    (1, SectorSize::B512),
    (5, SectorSize::B512),
    (67, SectorSize::B512),
    (2, SectorSize::B4096),
];

/// Key sizes of a cipher that are all tried.
const FEW_SIZES: usize = 8;

/// How much is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every combination with all key sizes.
    All,
    /// One combination of every kind with its default key size.
    Known,
    /// A few combinations and short requests: seconds.
    Few,
}

/// The ciphers of [`Scope::Few`]: one of every family of kernels, and one whose key setup loads
/// from tables on every backend.
const FEW: [&str; 6] = [
    "aes-xts-plain64",
    "aes-cbc-essiv:wp256",
    "serpent-xts-plain64",
    "twofish-xts-plain64",
    "des3_ede-cbc-plain64",
    "xchacha12,aes-adiantum-plain64",
];

impl Scope {
    const ALL: [Self; 3] = [Self::All, Self::Known, Self::Few];

    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Known => "known",
            Self::Few => "few",
        }
    }

    /// The scope that [`Self::name`] names.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }

    pub fn combinations(self) -> Combinations {
        match self {
            Self::All => combination::all(),
            Self::Known => combination::known(),
            Self::Few => combination::of(&FEW),
        }
    }

    /// The requests of one specification, the short ones first. The first
    /// specification of a row is examined with all key sizes: what the others
    /// have of their own are IVs.
    pub fn requests(self, spec: CipherSpec, is_first: bool) -> Vec<Request> {
        let sizes = spec.key_sizes();
        let default = spec.default_key_size();
        let keys = match self == Self::All && is_first {
            false => vec![default],
            true if sizes.len() <= FEW_SIZES => sizes,
            true => vec![sizes[0], default, sizes[sizes.len() - 1]],
        };
        let lengths = match self {
            Self::Few => &LENGTHS[..2],
            _ => &LENGTHS[..],
        };
        let known = spec.sector_sizes();
        let of_key = |key_bytes| {
            let lengths = lengths.iter().filter(|(_, size)| known.contains(size));
            lengths.map(move |&(sectors, size)| Request {
                key_bytes,
                sectors,
                size,
            })
        };
        keys.into_iter().flat_map(of_key).collect()
    }
}

/// Key setup, encryption and decryption of so much.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub key_bytes: usize,
    pub sectors: usize,
    pub size: SectorSize,
}

impl Request {
    pub const fn data_bytes(&self) -> usize {
        self.sectors * self.size.bytes()
    }
}

/// The findings of an instrument, by the name of the row: `None` if nothing depends on a secret,
/// else a description.
pub type Findings = BTreeMap<String, Option<String>>;

/// Why an instrument has no answer.
pub enum Silence {
    /// It cannot be used here, and what would help.
    Absent(&'static str),
    /// It was there and failed.
    Failed(String),
}

/// A line for [`read`].
pub fn print(name: &str, found: Option<&str>) {
    println!("{name}\t{}", found.unwrap_or(CLEAN));
}

/// Parses the lines that [`print`] printed.
pub fn read(output: &[u8]) -> Findings {
    let line = |line: &str| {
        let (name, found) = line.split_once('\t')?;
        let found = (found != CLEAN).then(|| found.to_owned());
        Some((name.to_owned(), found))
    };
    let text = String::from_utf8_lossy(output);
    text.lines().filter_map(line).collect()
}

const CLEAN: &str = "clean";

/// Takes the controls out of what was found, and says which are misjudged: an
/// instrument that does not see what is planted proves nothing.
pub fn judge(
    findings: &mut Findings,
    controls: impl Iterator<Item = Control>,
) -> Result<(), Silence> {
    let misjudged: Vec<String> = controls
        .filter_map(|control| {
            let name = control.name();
            match findings.remove(&name) {
                Some(found) if found.is_some() == control.leak.is_some() => None,
                Some(found) => Some(format!("{name}: {}", found.as_deref().unwrap_or(CLEAN))),
                None => Some(format!("{name}: not run")),
            }
        })
        .collect();
    match misjudged.is_empty() {
        true => Ok(()),
        false => Err(Silence::Failed(format!(
            "what is planted is misjudged: {}",
            misjudged.join("; ")
        ))),
    }
}
