//! Explains a file that is not a volume of the requested type: its content, and the type that was
//! meant.

use super::losses;
use crate::cli::Failure;
use block::BlockDevice;
use block::signature::Wrapped;
use std::path::Path;
use volume::{Format, VolumeError};

/// The longest text that is not a block, bytes.
const SHORT: u64 = 512;

/// Names of types that other programs and people use.
const OTHER_NAMES: [(&str, &str); 18] = [
    ("luks-1", "luks1"),
    ("luks-2", "luks2"),
    ("crypto_luks", "luks"),
    ("truecrypt", "tcrypt"),
    ("tc", "tcrypt"),
    ("tcrypt-veracrypt", "veracrypt"),
    ("vera", "veracrypt"),
    ("vc", "veracrypt"),
    ("dm-crypt", "plain"),
    ("dmcrypt", "plain"),
    ("loop-aes", "loopaes"),
    ("best-crypt", "bestcrypt"),
    ("bitlocker", "bitlk"),
    ("filevault", "fvault2"),
    ("filevault2", "fvault2"),
    ("corestorage", "fvault2"),
    ("bde", "bitlk"),
    ("fve", "bitlk"),
];

/// Types that are known and not opened: names, what signatures call them, titles.
const UNSUPPORTED: [(&str, &str, &str); 2] = [
    ("apfs", "an APFS container", "APFS"),
    ("geli", "a GELI volume", "GELI"),
];

/// Whether this is the content of a type that is known and not opened.
pub fn is_unsupported(what: &str) -> bool {
    UNSUPPORTED.iter().any(|(_, known, _)| *known == what)
}

/// A type that is none, with the one that was meant.
pub fn unknown_type(name: &str) -> Failure {
    let small = name.to_lowercase();
    if let Some((_, _, title)) = UNSUPPORTED.iter().find(|(name, ..)| *name == small) {
        return Failure::new(
            2,
            format!("{title} volumes are not supported"),
            "Open it with the system that made it.",
        );
    }
    let mut names = Format::ALL.map(Format::name).into_iter().chain(["luks"]);
    let meant = names.find(|known| *known == small).or_else(|| {
        let mut others = OTHER_NAMES.into_iter();
        others
            .find(|(other, _)| *other == small)
            .map(|(_, known)| known)
    });
    let names = Format::ALL.map(Format::name).join(", ");
    Failure::new(
        2,
        format!("unknown volume type `{name}`"),
        match meant {
            Some(meant) => {
                format!("Did you mean --type {meant}? Otherwise use one of: luks, {names}.")
            }
            None => format!("Use one of: luks, {names}."),
        },
    )
}

/// An error of a file without a signature, with what it holds. A text that describes an image may be
/// shorter than a block.
pub fn with_text(path: &Path, error: VolumeError) -> VolumeError {
    let text = || std::fs::read(path).unwrap_or_default();
    match error {
        VolumeError::NoSignature { holds: None, .. }
            if path.metadata().is_ok_and(|found| found.len() < SHORT) =>
        {
            VolumeError::NoSignature {
                holds: Wrapped::known(&text()).map(Wrapped::name),
                is_blank: false,
            }
        }
        error => error,
    }
}

/// Refuses to look for parts of an image that another program has wrapped.
pub fn check_unwrapped(path: &Path, device: &dyn BlockDevice) -> Result<(), Failure> {
    let none = VolumeError::NoSignature {
        holds: volume::wrapped(device).map(Wrapped::name),
        is_blank: false,
    };
    match with_text(path, none) {
        VolumeError::NoSignature { holds: None, .. } => Ok(()),
        wrapped => Err(losses::at(path, wrapped)),
    }
}
