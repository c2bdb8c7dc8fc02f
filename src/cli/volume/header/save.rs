//! `cryptmark volume header backup`.

use super::BackupOptions;
use crate::cli::volume::backups::{self, TCRYPT_HEADERS};
use crate::cli::volume::disk::Disk;
use crate::cli::volume::volatile;
use crate::cli::{Failure, print_done, whole};
use block::{BlockDevice, ByteRange};
use std::io;
use volume::judge::Use;
use volume::{LuksHeader, VolumeError, luks1};

/// Copies header and keyslots to a new file.
pub fn run(options: &BackupOptions) -> Result<(), Failure> {
    let devices = options.volume.devices(Use::Read)?;
    let device = devices.header();
    let size = device.geometry().size;
    let (length, of) = match options.volume.family() {
        // It is unknown whether it holds headers.
        Some(family) if size >= TCRYPT_HEADERS => (
            TCRYPT_HEADERS,
            format!("the {} volume that says nothing of itself", family.format()),
        ),
        Some(_) => {
            return Err(Failure::new(
                2,
                format!("the volume has less than {TCRYPT_HEADERS} bytes"),
                "Name a volume of TrueCrypt 6 or later, or of VeraCrypt.",
            ));
        }
        None => {
            let header = match LuksHeader::read(device) {
                // To copy it, nothing of it need be known but how long it is.
                Err(VolumeError::Unsupported { .. }) => return unusable(options, device),
                header => luks(header)?,
            };
            if header.is_reencrypting() {
                eprintln!(
                    "warning: the volume is being reencrypted: as soon as more data is converted, this \
                     backup is useless"
                );
            }
            let length = backups::bounded(header.bytes_with_keyslots().min(size))?;
            (
                length,
                format!("the {} volume {}", header.format(), header.uuid()),
            )
        }
    };
    write(options, device, length, &of)
}

/// The same of a header of LUKS1 with something in it that is not supported.
fn unusable(options: &BackupOptions, device: &Disk) -> Result<(), Failure> {
    let outline = luks1::Outline::read(device)?;
    let length = outline.bytes_with_keyslots().min(device.geometry().size);
    let of = format!("the LUKS1 volume {}", outline.texts.uuid.lossy());
    write(options, device, backups::bounded(length)?, &of)
}

/// Writes the first bytes of the device, which are `of` something, to a new file.
fn write(options: &BackupOptions, device: &Disk, length: u64, of: &str) -> Result<(), Failure> {
    let (bytes, unread) = steady(device, length)?;
    let path = &options.output;
    whole::save(path, &bytes).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists
        | io::ErrorKind::NotFound
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::PermissionDenied
        | io::ErrorKind::ReadOnlyFilesystem => Failure::new(
            2,
            format!("cannot make {}: {error}", path.display()),
            "Give a new name in a folder that can be written.",
        ),
        _ => Failure::new(
            1,
            format!("cannot write {}: {error}", path.display()),
            "Give a name on a disk with more room. No part of the backup was kept.",
        ),
    })?;
    volatile::warn(path, options.volume.image());
    if unread > 0 {
        eprintln!("warning: {unread} bytes could not be read, and are zeros in the backup");
    }
    print_done(&format!("{length} bytes of {of}\n"));
    Ok(())
}

/// The first bytes of the device, and how many of them cannot be read. Another program may be
/// changing them: metadata of before and key material of afterwards would open with nothing.
fn steady(device: &Disk, length: u64) -> Result<(Vec<u8>, u64), Failure> {
    let read = || -> Result<_, Failure> {
        let mut bytes = Vec::new();
        let unread = backups::read(device, ByteRange::new(0, length), &mut bytes)?;
        Ok((bytes, unread))
    };
    let mut last = read()?;
    for _ in 0..TIMES {
        let again = read()?;
        if again == last {
            return Ok(last);
        }
        last = again;
    }
    Err(Failure::new(
        4,
        "another program is changing the header",
        "Make the backup when that is done.",
    ))
}

/// How often a header is read until nothing has changed meanwhile.
const TIMES: usize = 20;

/// Adds an explanation to the error if there is no LUKS header.
pub fn luks(header: Result<LuksHeader, VolumeError>) -> Result<LuksHeader, Failure> {
    header.map_err(|error| match error {
        VolumeError::NotThis { .. } => Failure::new(
            2,
            "there is no LUKS header",
            "Only headers of LUKS volumes are saved in this way; name the --type of a TrueCrypt or VeraCrypt volume.",
        ),
        error => error.into(),
    })
}
