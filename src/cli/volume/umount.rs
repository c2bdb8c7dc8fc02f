//! `cryptmark volume umount`: everything that mounting or serving has made,
//! taken away again; and the same for who mounted it.

use super::disk::whole_name;
use super::service::record::{self, Ending, Found, Place, Record};
use super::service::within;
use crate::cli::Failure;
use ::serve::fuse::{FuseError, Unmount, unmount};
use ::serve::nbd;
use block::{LoopDevice, signature};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long what was in use a moment ago may take until it is not.
const PATIENCE: Duration = Duration::from_secs(20);

/// The time for which a volume that is to be unmounted may still be in use.
const MOMENT: Duration = Duration::from_millis(500);

/// How long a server may take to count who is connected.
const COUNTED: Duration = Duration::from_millis(100);

/// How long a server may take to make everything durable.
const ENDING: Duration = Duration::from_secs(300);

impl From<FuseError> for Failure {
    fn from(error: FuseError) -> Self {
        let code = match &error {
            FuseError::Busy { .. } => 4,
            _ => 1,
        };
        Self::of(code, &error, error.remedy())
    }
}

/// Options of `cryptmark volume umount`.
#[derive(Debug, Args)]
pub struct UmountOptions {
    /// Where it is mounted or served, or the volume
    #[arg(value_name = "PLACE|IMAGE")]
    what: PathBuf,
}

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

/// Runs the command.
pub fn run(options: &UmountOptions) -> Result<(), Failure> {
    let path = whole_name(&options.what).unwrap_or_else(|_| options.what.clone());
    let mut found = record::all()?;
    found.retain(|found| {
        let places = &found.record.places;
        let there = |place: &Place| match place {
            Place::Nbd(at) => options.what.to_str() == Some(at) || path.to_str() == Some(at),
            place => visible(place).is_some_and(|at| *at == path),
        };
        found.record.has(&path) || places.iter().any(there)
    });
    if found.is_empty() {
        return Err(Failure::new(
            2,
            format!(
                "{} is neither mounted nor served by cryptmark",
                options.what.display()
            ),
            "List what is mounted or served: cryptmark volume status.",
        ));
    }
    let mut failed: Option<Failure> = None;
    for failure in found.iter().filter_map(|found| end(found).err()) {
        // All are tried, and the last failure is the outcome.
        if let Some(before) = failed.replace(failure) {
            let _ = before.print();
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Ends a service, or removes the remains of a dead one.
///
/// # Errors
/// Exit code 4 if it is in use; 1 if it does not end, or has not stored all that was written.
fn end(found: &Found) -> Result<(), Failure> {
    if !found.alive {
        tidy(found)?;
        return last_words(found);
    }
    // The record of an NBD server lists its clients a little later.
    let places = &found.record.places;
    if places.iter().any(|place| matches!(place, Place::Nbd(_))) {
        std::thread::sleep(COUNTED);
    }
    let undone =
        || Ok::<_, Failure>(undo(&found.record, Undo::Unused)? && found.connections() == 0);
    let mut free = undone()?;
    let retry = Instant::now() + MOMENT;
    while !free && Instant::now() < retry {
        // A process that was started while a file was open has it until it
        // becomes another program.
        std::thread::sleep(Duration::from_millis(20));
        free = undone()?;
    }
    if !free {
        return Err(in_use(found, Asked::No));
    }
    // A mount's user sees that it is gone.
    let unseen = |place: &Place| matches!(place, Place::Nbd(_) | Place::Disk(_));
    if found.record.places.iter().any(unseen) {
        found.ask_to_end().map_err(|error| {
            Failure::new(
                1,
                format!("cannot end process {}: {error}", found.record.pid),
                "Check whose it is.",
            )
        })?;
    }
    // A client may have come in the meantime, for whom the server waits.
    let asked = Instant::now();
    let mut ended = found.wait(MOMENT);
    while !ended && asked.elapsed() < ENDING {
        if found.connections() > 0 {
            return Err(in_use(found, Asked::Yes));
        }
        ended = found.wait(MOMENT);
    }
    if !ended {
        return Err(Failure::new(
            1,
            format!("process {} does not end", found.record.pid),
            "It isn't in use. Look into the kernel log (dmesg) for what blocks the process.",
        ));
    }
    last_words(found)
}

/// The final message of a service that has ended, as an error. Its record is removed.
fn last_words(found: &Found) -> Result<(), Failure> {
    match found.last_words() {
        Some(Ending { what, remedy }) => {
            found.remove();
            Err(Failure::new(1, what, remedy))
        }
        None => Ok(()),
    }
}

/// Removes the remains of a dead service.
///
/// # Errors
/// Exit code 4 if it is in use.
pub fn tidy(found: &Found) -> Result<(), Failure> {
    // A service that has ended by itself has removed its places. Others may have them by now.
    match found.record.ending.is_some() || undo(&found.record, Undo::Left)? {
        true => found.remove(),
        false => return Err(in_use(found, Asked::No)),
    }
    Ok(())
}

/// The path of a place, if the user sees it in the file system.
fn visible(place: &Place) -> Option<&PathBuf> {
    match place {
        Place::Fuse(at)
        | Place::FuseFile(at)
        | Place::FileSystem(at)
        | Place::Fuse2fs(at)
        | Place::Disk(at) => Some(at),
        Place::Directory(_) | Place::EmptyFile(_) | Place::Loop(_) | Place::Nbd(_) => None,
    }
}

/// Whether a server was asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    No,
    /// It ends as soon as it is not in use.
    Yes,
}

fn in_use(found: &Found, asked: Asked) -> Failure {
    let connections = found.connections();
    if connections > 0 {
        let pid = found.record.pid;
        return Failure::new(
            4,
            format!(
                "{} is in use: its NBD server has {connections} open connections",
                found.record.image.display()
            ),
            match asked {
                Asked::No => format!(
                    "Disconnect the clients, then try again. Or send SIGTERM to process {pid} \
                     twice, a second apart, which cuts off all of them."
                ),
                Asked::Yes => format!(
                    "It ends when the clients have left. SIGTERM to process {pid} cuts them off."
                ),
            },
        );
    }
    let seen = found.record.places.iter().rev().find_map(visible);
    Failure::new(
        4,
        format!(
            "{} is in use",
            seen.unwrap_or(&found.record.image).display()
        ),
        "Close the files that are open there and leave the directory, then try again. fuser -vm lists the processes.",
    )
}

/// Undoes the places of a service, the last one first; false if one of them is in use. Places that
/// are gone already are skipped, and so are the mounts of others that are at such a place by now.
pub fn undo(service: &Record, how: Undo) -> Result<bool, Failure> {
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
                    LoopDevice::detach(device).map_err(::volume::VolumeError::Block)?;
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
#[cfg(all(feature = "ublk", target_os = "linux"))]
fn forget(disk: &Path) -> Result<(), Failure> {
    Ok(::serve::ublk::forget(disk)?)
}

/// Another build of this program has made it.
#[cfg(not(all(feature = "ublk", target_os = "linux")))]
fn forget(disk: &Path) -> Result<(), Failure> {
    Err(Failure::new(
        1,
        format!(
            "this program was built without ublk, and {} is a disk of that driver",
            disk.display()
        ),
        "Do the same with a program that was built with --features ublk.",
    ))
}

/// Unmounts what is mounted on `directory`, if its source is `ours`; false
/// if it is in use for longer than `patience`.
fn take_away(
    directory: &Path,
    ours: impl Fn(&Path) -> bool,
    how: Unmount,
    patience: Duration,
) -> Result<bool, Failure> {
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
pub fn is_gone(service: &Record) -> bool {
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
