//! `cryptmark volume header backup`.

use super::BackupOptions;
use crate::cli::volume::backups::{self, TCRYPT_HEADERS};
use crate::cli::{Failure, print};
use block::{BlockDevice, ByteRange};
use std::io;
use volume::{LuksHeader, VolumeError};

/// Copies header and keyslots to a new file.
pub fn run(options: &BackupOptions) -> Result<(), Failure> {
    let devices = options.volume.devices(false)?;
    let device = devices.header();
    let size = device.geometry().size;
    let (length, of) = match options.volume.family() {
        // Whether it holds headers, nobody can tell.
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
            let header = luks(LuksHeader::read(device))?;
            if header.is_reencrypting() {
                eprintln!(
                    "warning: the volume is being reencrypted: as soon as more of it is done, this \
                     backup is of no use"
                );
            }
            let length = backups::bounded(header.bytes_with_keyslots().min(size))?;
            (
                length,
                format!("the {} volume {}", header.format(), header.uuid()),
            )
        }
    };
    let mut bytes = Vec::new();
    let unread = backups::read(device, ByteRange::new(0, length), &mut bytes)?;
    let path = &options.output;
    backups::save(path, &bytes).map_err(|error| match error.kind() {
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
            "Give a name on a disk with more room; nothing was left of that one.",
        ),
    })?;
    if unread > 0 {
        eprintln!("warning: {unread} bytes could not be read, and are zeros in the backup");
    }
    print(&format!("{length} bytes of {of}\n"))
}

/// Says what is missing where there is no header of LUKS.
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
