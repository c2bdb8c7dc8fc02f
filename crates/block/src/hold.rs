//! [`Hold`]: what is open for writing is held, so that no two programs write to it.
//!
//! Linux locks the open file description, by inode, and opens block devices
//! exclusively. The lock goes with the last descriptor, however a program ends.

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod metadata;
#[cfg(target_os = "linux")]
mod processes;

#[cfg(not(target_os = "linux"))]
use elsewhere as system;
#[cfg(target_os = "linux")]
use linux as system;

#[cfg(target_os = "linux")]
pub use metadata::{MetadataLock, lock_resource, resource_users};

#[cfg(target_os = "linux")]
pub(crate) use linux::{Identity, Number, loop_backing};

use crate::{BlockError, PathKind, folder_of};
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How what is opened is held, and against whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Hold {
    /// A writer keeps out all others; a reader keeps out none.
    #[default]
    Usual,
    /// As `Usual`, for a hold that ends within seconds: other programs wait for it.
    Brief,
    /// Readers keep out writers, so that nothing changes below them.
    Steady,
    /// Not at all: another process has lent what it holds itself.
    Lent,
}

/// Gives up what [`open`] has taken when it goes. The kernel would do so, too, but for
/// files that a ring has used a little after the program has ended. A forked process, which
/// shares the lock, gives up nothing.
pub(crate) struct Held {
    file: Arc<File>,
    process: u32,
}

impl Held {
    pub(crate) fn of(file: &Arc<File>) -> Self {
        Self {
            file: Arc::clone(file),
            process: std::process::id(),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if std::process::id() == self.process {
            system::release(&self.file);
        }
    }
}

/// Something that uses a file or device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum User {
    /// A process that has it open.
    Process {
        /// Its name.
        name: String,
        /// Its number.
        pid: u32,
        /// When it began, RFC 3339.
        since: Option<String>,
    },
    /// A device that stands on it.
    Device(PathBuf),
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { name, pid, since } => {
                write!(f, "{name} (process {pid}")?;
                match since {
                    Some(since) => write!(f, ", since {since})"),
                    None => f.write_str(")"),
                }
            }
            Self::Device(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The users of a file or device, as far as this user may see them. `Display` writes ` by this and
/// that`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Users(pub Vec<User>);

impl fmt::Display for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            // It hides what it has open, as this program does, or is another user's.
            return f.write_str(" by another process");
        }
        for (nth, user) in self.0.iter().enumerate() {
            let before = match nth {
                0 => " by ",
                _ if nth + 1 == self.0.len() => " and ",
                _ => ", ",
            };
            write!(f, "{before}{user}")?;
        }
        Ok(())
    }
}

/// Opens the file or block device at `path` for reading, and for writing if `write`, and holds it
/// for as long as it is open.
///
/// A writer is refused what others hold or use: [`BlockError::Mounted`], [`BlockError::Swap`] and
/// [`BlockError::InUse`]. The last means that another program has locked it, a device stands on it,
/// or a file below it is held. If another program holds it only briefly, this waits.
///
/// # Errors
/// Those, [`BlockError::Open`] and [`BlockError::NotADevice`].
pub fn open(path: &Path, write: bool, hold: Hold) -> Result<File, BlockError> {
    // Opening a pipe would block.
    let kind = kind(path)?;
    system::open(path, kind, write, hold)
}

/// The programs and devices that have the file or device at `path` open for writing, or stand on
/// it. Empty if this cannot be known.
pub fn writers(path: &Path) -> Vec<User> {
    system::writers(path)
}

/// Whether two paths lead to the same file or device: through links, by another
/// node of the device, or by a loop device on the file. Of what is not there yet,
/// the names count.
pub fn is_same(one: &Path, other: &Path) -> bool {
    system::is_same(one, other).unwrap_or_else(|_| {
        let whole = |path: &Path| to_come(path).or_else(|| std::path::absolute(path).ok());
        whole(one).is_some_and(|one| Some(one) == whole(other))
    })
}

/// Where a file would be made by the name `path`, which may be a link there.
fn to_come(path: &Path) -> Option<PathBuf> {
    let path = match path.read_link() {
        Ok(target) => folder_of(path).join(target),
        Err(_) => path.to_owned(),
    };
    let folder = folder_of(&path).canonicalize().ok()?;
    Some(folder.join(path.file_name()?))
}

fn kind(path: &Path) -> Result<PathKind, BlockError> {
    let metadata = std::fs::metadata(path).map_err(|source| unopened(path, source))?;
    PathKind::of(&metadata).ok_or_else(|| BlockError::NotADevice {
        path: path.to_owned(),
    })
}

fn unopened(path: &Path, source: io::Error) -> BlockError {
    BlockError::Open {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_read_as_a_sentence() {
        let process = User::Process {
            name: "qemu".into(),
            pid: 12,
            since: Some("2026-01-02T03:04:05Z".into()),
        };
        let device = User::Device("/dev/loop0".into());
        let said = |users: &[&User]| Users(users.iter().copied().cloned().collect()).to_string();
        assert_eq!(said(&[]), " by another process");
        assert_eq!(
            said(&[&process]),
            " by qemu (process 12, since 2026-01-02T03:04:05Z)"
        );
        assert_eq!(
            said(&[&device, &device, &device]),
            " by /dev/loop0, /dev/loop0 and /dev/loop0"
        );
    }
}
