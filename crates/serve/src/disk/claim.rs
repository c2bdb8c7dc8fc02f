//! [`Claim`]: locks an NBD export against other processes of this program, as a file is locked.
//! Servers let several clients write, and have no locks.
//!
//! An export without a name may be any of its server's. Many servers have one export that they give
//! by any name, and ours gives its first one. So files are locked for it and for all others:
//!
//! ```text
//!                  keeps its lock of            must be able to lock for a moment
//! named, writes    the export; named writers    the export without a name
//! named, reads     the export; named readers    the export without a name, beside readers
//! without a name   the export without a name    named writers; to write, named readers, too
//! ```

use super::DiskError;
use crate::nbd::{NbdDevice, Uri};
use crate::service::directory_of_locks;
use block::BlockError;
use block::hold::{Hold, Users};
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long others may still have it: a process that has just ended.
const PATIENCE: Duration = Duration::from_millis(300);

/// How long those wait that meet a change of a header, as they do for files.
const BRIEF: Duration = Duration::from_secs(30);

/// How often it is looked whether something is free.
const PAUSE: Duration = Duration::from_millis(5);

/// Names of locks that belong to no export, because the name of an export has no NUL.
const WRITERS: &str = "\0writers";
const READERS: &str = "\0readers";
const CHANGES: &str = "\0changes";

/// Gives the export up when it goes.
pub struct Claim {
    _locked: Vec<File>,
}

/// Whom a lock keeps out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Out {
    Anybody,
    /// All but those that lock it so as well.
    Others,
}

impl Claim {
    /// Claims the export at `uri`, which the user calls `place`. Writers lock out all others that
    /// claim it, and steady readers lock out writers. Changes of a header are waited for. `warn` hears
    /// why there can be no locks.
    ///
    /// # Errors
    /// [`BlockError::InUse`] and [`DiskError::MaybeInUse`].
    pub fn new(
        uri: &Uri,
        place: &Path,
        write: bool,
        hold: Hold,
        warn: &dyn Fn(&DiskError),
    ) -> Result<Self, DiskError> {
        let mut locked = Vec::new();
        if !write && hold != Hold::Steady {
            return Ok(Self { _locked: locked });
        }
        for server in uri.servers() {
            match Locks::of(&server, uri.export()) {
                Ok(locks) => locked.extend(locks.take(place, write, hold)?),
                Err(error) => {
                    warn(&error);
                    break;
                }
            }
        }
        Ok(Self { _locked: locked })
    }

    /// Connects to the export at `uri`, and holds it as long as the device lives.
    ///
    /// # Errors
    /// [`DiskError::Client`].
    pub fn connect(self, uri: &Uri) -> Result<NbdDevice, DiskError> {
        Ok(NbdDevice::open(uri)?.kept_by(self))
    }
}

/// The files that stand for a server's exports, as an export of it sees them.
struct Locks {
    /// That of the export.
    own: File,
    /// That of the export without a name, if it is another.
    nameless: Option<File>,
    writers: File,
    readers: File,
    /// Locked while the header of any export is changed.
    changes: File,
}

impl Locks {
    fn of(server: &str, export: &str) -> Result<Self, DiskError> {
        let file = |name: &str| open(&format!("{server}/{name}"));
        Ok(Self {
            own: file(export)?,
            nameless: match export {
                "" => None,
                _ => Some(file("")?),
            },
            writers: file(WRITERS)?,
            readers: file(READERS)?,
            changes: file(CHANGES)?,
        })
    }

    fn take(self, place: &Path, write: bool, hold: Hold) -> Result<Vec<File>, DiskError> {
        let out = match write {
            true => Out::Anybody,
            false => Out::Others,
        };
        if !self.lock(&self.own, out) {
            let path = place.to_owned();
            let users = Users::default();
            return Err(BlockError::InUse { path, users }.into());
        }
        let named = self.nameless.is_some();
        let free = match &self.nameless {
            Some(nameless) => {
                let kind = if write { &self.writers } else { &self.readers };
                self.lock(kind, Out::Others) && self.is_free(nameless, out)
            }
            None => {
                self.is_free(&self.writers, Out::Anybody)
                    && (!write || self.is_free(&self.readers, Out::Anybody))
            }
        };
        if !free {
            let path = place.to_owned();
            return Err(DiskError::MaybeInUse { path, named });
        }
        if hold == Hold::Brief {
            // Others lock it for a moment, to see whether it is. Without it they do not wait.
            let _ = self.changes.lock_shared();
        }
        Ok(vec![self.own, self.writers, self.readers, self.changes])
    }

    /// Locks a file, if its holder gives it up soon.
    fn lock(&self, file: &File, out: Out) -> bool {
        let begun = Instant::now();
        let mut unchanged = begun;
        loop {
            if try_lock(file, out) {
                return true;
            }
            match try_lock(&self.changes, Out::Anybody) {
                true => {
                    // It goes with the file at the latest.
                    let _ = self.changes.unlock();
                }
                false => unchanged = Instant::now(),
            }
            if unchanged.elapsed() >= PATIENCE || begun.elapsed() >= BRIEF {
                return false;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Whether a file could be locked; it is not any more.
    fn is_free(&self, file: &File, out: Out) -> bool {
        let free = self.lock(file, out);
        // It goes with the file at the latest.
        let _ = file.unlock();
        free
    }
}

/// Whether `file` could be locked by this process. On a system without locks no other process has
/// one, so it is true there.
fn try_lock(file: &File, out: Out) -> bool {
    let locked = match out {
        Out::Anybody => file.try_lock(),
        Out::Others => file.try_lock_shared(),
    };
    !matches!(locked, Err(TryLockError::WouldBlock))
}

/// The file that stands for a name. It stays, because removing it could remove another program's.
fn open(name: &str) -> Result<File, DiskError> {
    let path = directory_of_locks()?.join(format!("nbd-{:016x}.lock", mark(name)));
    let mut options = File::options();
    options.write(true).create(true).truncate(false).mode(0o600);
    options
        .open(&path)
        .map_err(|source: io::Error| DiskError::Lock { path, source })
}

/// A short number for a name, the same in every version of the program (FNV-1a).
fn mark(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |mark, byte| {
        (mark ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}
