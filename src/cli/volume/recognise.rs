//! Explains a file that is not a volume of the requested type: its content, and the type that was
//! meant.

use crate::cli::Failure;
use block::BlockDevice;
use block::signature::{self, Wrapped};
use std::path::Path;
use volume::{Format, VolumeError};

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

/// Words in the names of contents in which `volume find` finds parts.
const PARTED: [&str; 3] = ["partition", "an LVM physical volume", "software RAID"];

/// A file without the signature of a volume, with what it holds instead.
pub fn unsigned(path: &Path, device: &dyn BlockDevice) -> Result<Failure, VolumeError> {
    let name_it = "Name its --type (plain, tcrypt, veracrypt, cryptoloop and loopaes volumes have \
                   no signature), or the file with its --header. An interrupted encryption or \
                   decryption needs its file IMAGE.cryptmark-header beside the volume.";
    if let Some(wrapped) = wrapped(path, device)? {
        return Ok(wrapped);
    }
    let path = path.display();
    let content = signature::content(device)?;
    let found = match content.found.first() {
        Some(known) => Found::Content(known.name),
        None if content.is_blank() && device.geometry().size > 0 => Found::Blank,
        None => Found::Nothing,
    };
    Ok(match found {
        Found::Content(what) if UNSUPPORTED.iter().any(|(_, known, _)| *known == what) => {
            Failure::new(
                2,
                format!("{path} holds {what}, which is not supported"),
                "Open it with the system that made it.",
            )
        }
        Found::Content(what) if PARTED.iter().any(|word| what.contains(word)) => Failure::new(
            2,
            format!("{path} holds {what}, and no signature of a volume"),
            "List its parts with `cryptmark volume find`, and name one with --partition.",
        ),
        Found::Content(what) => Failure::new(
            2,
            format!("{path} holds {what}, and no signature of a volume"),
            "Name the right file; if it is encrypted all the same, its --type, or the file with \
             its --header.",
        ),
        Found::Blank => Failure::new(
            2,
            format!("{path} is blank, and has no signature of a volume"),
            name_it,
        ),
        Found::Nothing => Failure::new(2, format!("{path} has no signature of a volume"), name_it),
    })
}

/// Refuses to search for a TrueCrypt or VeraCrypt header if a header of another format is there.
/// The search would take minutes, and find none.
pub fn check_searched(format: Format, device: &dyn BlockDevice) -> Result<(), Failure> {
    let there = match format {
        // A second copy of LUKS2's may be left behind a header that is one of these.
        Format::Tcrypt | Format::Veracrypt if begins_as_luks(device) => {
            Format::detect(device).ok().flatten()
        }
        _ => None,
    };
    match there {
        Some(other @ (Format::Luks1 | Format::Luks2)) => Err(Failure::new(
            2,
            format!("this is a {} volume, not {}", other.title(), format.title()),
            format!("Omit --type, or give --type {other}."),
        )),
        _ => Ok(()),
    }
}

fn begins_as_luks(device: &dyn BlockDevice) -> bool {
    let mut start = vec![0; device.geometry().logical_block.max(512) as usize];
    device.read_at(0, &mut start).is_ok() && start.starts_with(b"LUKS\xba\xbe")
}

/// A file that wraps an image in another format, if it is one.
pub fn wrapped(path: &Path, device: &dyn BlockDevice) -> Result<Option<Failure>, VolumeError> {
    let geometry = device.geometry();
    let unit = u64::from(geometry.logical_block).max(512);
    let start = if geometry.size >= unit {
        let mut start = vec![0; unit as usize];
        device.read_at(0, &mut start)?;
        start
    } else if path.metadata().is_ok_and(|found| found.len() < unit) {
        // A text may be shorter than a block.
        std::fs::read(path).unwrap_or_default()
    } else {
        return Ok(None);
    };
    let Some(wrapped) = Wrapped::known(&start) else {
        return Ok(None);
    };
    let (what, remedy) = match wrapped {
        Wrapped::Archive(what) => (what, "Unpack it, and name the unpacked file."),
        // With the program, it would be open.
        Wrapped::Image {
            what,
            driver: Some(_),
        } if cfg!(target_os = "linux") => (
            what,
            "Install qemu-nbd (in Debian's package qemu-utils), which opens it, or convert it with \
             `qemu-img convert -O raw`.",
        ),
        Wrapped::Image { what, .. } => (
            what,
            "Convert it with `qemu-img convert -O raw`, or serve it with `qemu-nbd` and give the URI \
             of the export.",
        ),
    };
    Ok(Some(Failure::new(
        2,
        format!(
            "{} holds {what}, and no signature of a volume",
            path.display()
        ),
        remedy,
    )))
}

enum Found {
    Content(&'static str),
    Blank,
    Nothing,
}
