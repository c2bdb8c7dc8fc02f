//! The places of a service, taken away again; those of a killed one, too.

use super::{Place, Record, ServiceError, within};
use crate::fuse::{FuseError, Unmount, unmount};
use crate::nbd;
use block::{LoopDevice, signature};
use serde::{Deserialize, Serialize};
use std::fs::Metadata;
use std::path::Path;
use std::time::Duration;

/// How long what was in use a moment ago may take until it is not.
const PATIENCE: Duration = Duration::from_secs(20);

/// The places to undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Undo {
    /// Only places that are not in use.
    Unused,
    /// Everything, as far as that is possible.
    Now,
    /// The remains of a killed server. File systems in use stay, but nothing waits for the server.
    Left,
}

/// Undoes the places of a service, the last one first; false if one of them is in use. Places that
/// are gone already are skipped, and so are the mounts of others that are at such a place by now.
pub(super) fn undo(service: &Record, how: Undo) -> Result<bool, ServiceError> {
    let places = &service.places;
    let unmounting = match how {
        Undo::Now => Unmount::Detached,
        Undo::Unused | Undo::Left => Unmount::Unused,
    };
    for (index, place) in places.iter().enumerate().rev() {
        // The mounts on it release it a little later.
        let patience = match index + 1 < places.len() {
            true => PATIENCE,
            false => Duration::ZERO,
        };
        let ours = |source: &Path| service.has_mounted(index, source);
        let free = match place {
            Place::FileSystem(at) | Place::Fuse2fs(at) => {
                take_away(at, ours, unmounting, Duration::ZERO)?
            }
            Place::Fuse(at) | Place::FuseFile(at) => {
                let how = match how {
                    Undo::Left => Unmount::Detached,
                    _ => unmounting,
                };
                take_away(at, ours, how, patience)?
            }
            Place::Loop(device) => {
                let ours = || {
                    LoopDevice::backing_of(device).is_some_and(|backing| {
                        places[..index].iter().any(|place| match place {
                            Place::Fuse(at) => backing.starts_with(at),
                            _ => false,
                        })
                    })
                };
                // It goes by itself when no program has it open any more.
                if !within(patience, || !ours()) && how != Undo::Unused {
                    LoopDevice::detach(device)?;
                }
                !ours() || how == Undo::Now
            }
            Place::Directory(at) => {
                // It is empty, or something is still mounted there.
                let _ = std::fs::remove_dir(at);
                true
            }
            Place::EmptyFile(at) => {
                let empty = |found: &Metadata| found.is_file() && found.len() == 0;
                if std::fs::symlink_metadata(at).is_ok_and(|found| empty(&found)) {
                    // Another program may be faster.
                    let _ = std::fs::remove_file(at);
                }
                true
            }
            Place::Nbd(at) => {
                if how == Undo::Left {
                    nbd::Place::parse(at.as_ref())?.tidy();
                }
                true
            }
            Place::Disk(at) => {
                let free = !signature::is_held(at);
                if how != Undo::Unused {
                    forget(at)?;
                }
                free || how != Undo::Unused
            }
        };
        if !free {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Has the driver forget a disk whose server was killed.
#[cfg(feature = "ublk")]
fn forget(disk: &Path) -> Result<(), ServiceError> {
    Ok(crate::ublk::forget(disk)?)
}

/// Another build of this program has made it.
#[cfg(not(feature = "ublk"))]
fn forget(disk: &Path) -> Result<(), ServiceError> {
    let path = disk.to_owned();
    Err(ServiceError::NoUblk { path })
}

/// Unmounts what is mounted on `directory`, if its source is `ours`; false
/// if it is in use for longer than `patience`.
fn take_away(
    directory: &Path,
    ours: impl Fn(&Path) -> bool,
    how: Unmount,
    patience: Duration,
) -> Result<bool, ServiceError> {
    let mut outcome = Ok(());
    let free = within(patience, || {
        if !is_mounted(directory, &ours) {
            outcome = Ok(());
            return true;
        }
        outcome = unmount(directory, how);
        !matches!(outcome, Err(FuseError::Busy { .. }))
    });
    match (free, outcome) {
        (false, _) => Ok(false),
        (true, Ok(())) => Ok(true),
        // Another program was faster.
        (true, Err(_)) if !is_mounted(directory, &ours) => Ok(true),
        (true, Err(error)) => Err(error.into()),
    }
}

/// Whether another program has unmounted the file system of a service.
pub(super) fn is_gone(service: &Record) -> bool {
    let gone = |(number, place): (usize, &Place)| match place {
        Place::FileSystem(at) | Place::Fuse2fs(at) => {
            !is_mounted(at, |source| service.has_mounted(number, source))
        }
        _ => false,
    };
    service.places.iter().enumerate().any(gone)
}

/// Whether the topmost mount on `directory` has a source that is `ours`.
fn is_mounted(directory: &Path, ours: impl Fn(&Path) -> bool) -> bool {
    let mounts = signature::mounts().unwrap_or_default();
    let there = mounts
        .iter()
        .rev()
        .find(|mount| mount.mount_point == directory);
    there.is_some_and(|mount| ours(&mount.device))
}
