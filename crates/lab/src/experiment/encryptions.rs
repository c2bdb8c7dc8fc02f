//! The ciphers of an experiment, with each of its key sizes and sector sizes.

use super::error::empty;
use super::within;
use crate::error::LabError;
use crate::system::{Backend, Encryption};
use serde::{Deserialize, Serialize};

/// Ciphers of a plan, times key sizes and sector sizes, at most.
const MOST: u64 = 10_000;

/// One size, or several: `4096` or `[512, 4096]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a size must be a number or a list of numbers")]
pub enum Sizes {
    /// The same for every cell.
    One(u32),
    /// Every cipher with each of them.
    Several(Vec<u32>),
}

impl Sizes {
    /// The sizes, in the plan's order.
    pub fn all(&self) -> &[u32] {
        match self {
            Self::One(size) => std::slice::from_ref(size),
            Self::Several(sizes) => sizes,
        }
    }
}

pub(super) fn sectors_of_4096() -> Sizes {
    Sizes::One(4096)
}

/// Every cipher of `ciphers` with each of its key sizes and each sector size, on `backend` if one
/// is forced.
///
/// # Errors
/// [`LabError`], also if a cipher has
/// none of several key sizes.
pub(super) fn encryptions(
    ciphers: &[String],
    key_size: Option<&Sizes>,
    sector_size: &Sizes,
    backend: Option<Backend>,
) -> Result<Vec<Encryption>, LabError> {
    let sectors = sector_size.all();
    if sectors.is_empty() {
        return Err(empty("sector sizes"));
    }
    if key_size.is_some_and(|sizes| sizes.all().is_empty()) {
        return Err(empty("key sizes"));
    }
    let lengths = [
        ciphers.len(),
        key_size.map_or(1, |sizes| sizes.all().len()),
        sectors.len(),
    ];
    let all = lengths
        .iter()
        .fold(1, |all: u64, n| all.saturating_mul(*n as u64));
    within("ciphers, times key sizes and sector sizes,", all, 0, MOST)?;
    let mut encryptions = Vec::new();
    for cipher in ciphers {
        for bits in key_sizes_of(cipher, key_size) {
            for size in sectors {
                encryptions.push(Encryption::parse(cipher, bits, *size, backend)?);
            }
        }
    }
    Ok(encryptions)
}

/// The key sizes to measure a cipher with. If it has none of the plan's sizes, one of these is
/// returned, so that the error names the possible ones.
fn key_sizes_of(cipher: &str, sizes: Option<&Sizes>) -> Vec<Option<u32>> {
    let Some(sizes) = sizes else {
        return vec![None];
    };
    let has = |bits: &&u32| Encryption::parse(cipher, Some(**bits), 512, None).is_ok();
    let possible: Vec<_> = sizes.all().iter().filter(has).copied().map(Some).collect();
    match possible.is_empty() {
        true => vec![sizes.all().first().copied()],
        false => possible,
    }
}

/// The ciphers that have a key of `bits`. If none has, all are kept, so that the error names the
/// possible sizes.
pub(super) fn with_key_size(ciphers: &mut Vec<String>, bits: u32) {
    let has = |cipher: &String| Encryption::parse(cipher, Some(bits), 512, None).is_ok();
    if ciphers.iter().any(has) {
        ciphers.retain(has);
    }
}

/// A list of sizes in words: `512 and 4096`.
pub(super) fn listed(sizes: &Sizes) -> String {
    let sizes: Vec<String> = sizes.all().iter().map(u32::to_string).collect();
    sizes.join(", ")
}
