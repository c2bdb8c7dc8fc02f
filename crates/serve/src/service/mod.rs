//! Services: exports that other programs find, end and tidy up after.
//!
//! A [`Service`] writes down what it serves and where, in a [`Record`] that [`list`] reads. It ends
//! by a signal, or when it is idle. [`Found::end`] ends the service of another process, and removes
//! what a killed one has left.

mod end;
mod error;
mod file_system;
mod folder;
mod mounted;
mod pinned;
mod record;
mod run;
mod running;
mod spot;
mod undo;
mod unmounter;

pub use end::make_way;
pub use error::{Ending, ServiceError};
pub use file_system::FileSystem;
pub use folder::{check, check_file, check_folder, mount_point};
pub use mounted::{FILE, Mounted};
pub use pinned::Pinned;
pub use record::{Found, OwnRecord, Place, Record, directory_of_locks, list};
pub use run::{End, Served, Service, Terms, joined};
#[cfg(feature = "ublk")]
pub use running::OnDisk;
pub use running::OverNbd;
pub use spot::Spot;
pub use undo::Undo;
pub use unmounter::{Unmounter, obey};

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Whether `done` becomes true within `patience`.
fn within(patience: Duration, mut done: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    loop {
        if done() {
            return true;
        }
        if begun.elapsed() >= patience {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The absolute path of what may be a mount whose server is dead.
///
/// # Errors
/// Those of finding it.
pub fn absolute(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize().or_else(|error| {
        let parent = block::folder_of(path);
        match (error.raw_os_error(), path.file_name()) {
            (Some(code), Some(name)) if code == rustix::io::Errno::NOTCONN.raw_os_error() => {
                Ok(parent.canonicalize()?.join(name))
            }
            _ => Err(error),
        }
    })
}
