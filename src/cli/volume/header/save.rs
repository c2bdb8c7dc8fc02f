//! `cryptmark volume header backup`.

use super::BackupOptions;
use crate::cli::volume::disk::Names;
use crate::cli::{Failure, print_done};
use std::io;
use volume::judge::Use;
use volume::{check_new_name, operate};

/// Copies header and keyslots to a new file.
pub fn run(options: &BackupOptions, names: &Names) -> Result<(), Failure> {
    let volume = options.volume.with(names);
    check_new_name(&options.output)?;
    let place = volume.devices(Use::Read)?.place();
    if volume.family().is_none() {
        volume.check_luks(place.header())?;
    }
    let backup = operate::backup_header(&place, &volume.options(false)?);
    let backup = backup.map_err(|error| volume.at(error))?;
    if backup.is_passing {
        eprintln!(
            "warning: the volume is being reencrypted: as soon as more data is converted, this \
             backup is useless"
        );
    }
    let path = &options.output;
    block::save(path, &backup.bytes).map_err(|error| match error.kind() {
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
    if let Some(warning) = block::warn_of_memory(path, options.volume.image()) {
        eprintln!("warning: {warning}");
    }
    if backup.unread > 0 {
        eprintln!(
            "warning: {} bytes could not be read, and are zeros in the backup",
            backup.unread
        );
    }
    print_done(&format!("{} bytes of {}\n", backup.bytes.len(), backup.of));
    Ok(())
}
