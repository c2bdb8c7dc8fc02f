//! [`Claim`]: an NBD export is held against other processes of this program as a file is.
//! Servers let several clients write, and know of no locks.

use crate::cli::Failure;
use crate::cli::volume::backups::mark;
use crate::cli::volume::service::{record, within};
use block::BlockError;
use block::hold::{Hold, Users};
use serve::nbd::Uri;
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;
use volume::VolumeError;

/// How long others may still have it: a process that has just ended, or one that changes a
/// header.
const PATIENCE: Duration = Duration::from_millis(300);

/// Gives the export up when it goes.
pub struct Claim {
    _locked: Vec<File>,
}

impl Claim {
    /// Claims the export at `uri`, which the user calls `place`: writers keep out everybody
    /// who claims it, and steady readers keep out writers.
    ///
    /// # Errors
    /// Exit code 4 if another process has it.
    pub fn new(uri: &Uri, place: &Path, write: bool, hold: Hold) -> Result<Self, Failure> {
        let mut locked = Vec::new();
        if !write && hold != Hold::Steady {
            return Ok(Self { _locked: locked });
        }
        for name in uri.names() {
            let file = match open(&name) {
                Ok(file) => file,
                Err(failure) => {
                    eprintln!(
                        "warning: other processes are not kept from {}: {}",
                        place.display(),
                        failure.what()
                    );
                    break;
                }
            };
            let lock = || match write {
                true => file.try_lock(),
                false => file.try_lock_shared(),
            };
            if !within(PATIENCE, || {
                !matches!(lock(), Err(TryLockError::WouldBlock))
            }) {
                return Err(VolumeError::Block(BlockError::InUse {
                    path: place.to_owned(),
                    users: Users::default(),
                })
                .into());
            }
            locked.push(file);
        }
        Ok(Self { _locked: locked })
    }
}

/// The file that stands for a name. It stays: whoever removed it could remove another's.
fn open(name: &str) -> Result<File, Failure> {
    let path = record::directory()?.join(format!("nbd-{}.lock", mark(Path::new(name))));
    let mut options = File::options();
    options.write(true).create(true).truncate(false).mode(0o600);
    options.open(&path).map_err(|error: io::Error| {
        Failure::new(
            1,
            format!("cannot use {}: {error}", path.display()),
            "Check the folder and its permissions.",
        )
    })
}
