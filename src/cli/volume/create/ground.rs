//! [`Ground`]: what a new volume is written over, from the first look at it until it stays.

use super::Extent;
use crate::cli::volume::backups;
use crate::cli::volume::disk::{self, Disk};
use crate::cli::volume::losses;
use crate::cli::{Failure, whole};
use block::signature;
use std::cell::Cell;
use std::fs::{File, Metadata};
use std::io;
use std::path::Path;
use volume::judge::Use;

/// The room for the data of the smallest volume, bytes.
const LEAST_FILE: u64 = 1 << 20;

/// A file or device that is held and may be overwritten: blank, or its loss is confirmed.
pub struct Ground<'a> {
    /// The open file or device.
    pub device: Disk,
    path: &'a Path,
    /// The user has said that whatever it holds may go.
    confirmed: bool,
    /// It holds something.
    full: bool,
    made: Option<Made<'a>>,
}

impl<'a> Ground<'a> {
    /// Takes what is at `path`, if it may be overwritten, or makes a file of this size.
    ///
    /// # Errors
    /// Exit code 4 if it is in use, and if it holds anything, unless `yes`.
    pub fn take(path: &'a Path, size: Option<Extent>, yes: bool) -> Result<Self, Failure> {
        if disk::is_remote(path) || path.exists() {
            let device = disk::take_over(path, yes)?;
            // Otherwise it would have been refused.
            let full = yes && device.content(path).map_or(true, |found| !found.is_blank());
            return Ok(Self {
                device,
                path,
                confirmed: yes,
                full,
                made: None,
            });
        }
        let Some(Extent { bytes }) = size.filter(|size| size.bytes >= LEAST_FILE) else {
            return Err(Failure::new(
                2,
                format!(
                    "{} does not exist, and no --size of 1 MiB or more is given",
                    path.display()
                ),
                "Give the --size of the file to make, or a file or device that exists.",
            ));
        };
        let failed = |error| unwritable(path, &error);
        let file = new_file(path).map_err(failed)?;
        let made = Some(Made {
            path: Some(path),
            file: file.metadata().map_err(failed)?,
            written: Cell::new(false),
        });
        file.set_len(bytes).map_err(failed)?;
        Ok(Self {
            device: Disk::open(path, Use::Overwrite)?,
            path,
            // That was said before there was anything.
            confirmed: false,
            full: false,
            made,
        })
    }

    /// Whether it held anything.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Looks once more, right before the first write: passphrases have been asked for
    /// meanwhile, and not every program asks who holds a file.
    ///
    /// # Errors
    /// Exit code 4 if it holds anything now.
    pub fn begin(&self) -> Result<(), Failure> {
        if !self.confirmed {
            losses::guard_content(self.path, &self.device)?;
        }
        if let Some(made) = &self.made {
            made.written.set(true);
        }
        Ok(())
    }

    /// Adds to a failure what it has left of the data that were there. A file that was made for the
    /// volume goes again.
    pub fn overwritten(&self, failure: Failure) -> Failure {
        if self.made.is_some() {
            return failure;
        }
        let kept = match backups::kept() {
            Some(path) => format!(" The header that was there is kept in {}.", path.display()),
            None => String::new(),
        };
        failure.after(
            format!(
                "{} is overwritten in part, and holds no finished volume",
                self.path.display()
            ),
            format!("Run the command again with --yes to make the volume.{kept}"),
        )
    }

    /// Keeps a new file, and makes sure that its name is on the disk.
    ///
    /// # Errors
    /// Those of its folder.
    pub fn keep(mut self) -> Result<(), Failure> {
        if let Some(made) = &mut self.made {
            whole::sync_name(self.path).map_err(|error| unwritable(self.path, &error))?;
            made.path = None;
        }
        Ok(())
    }
}

/// A file that was made for the volume, and goes again if that fails.
struct Made<'a> {
    path: Option<&'a Path>,
    /// The metadata of the new file, which identify it even if its name now belongs to another
    /// file.
    file: Metadata,
    /// Whether it has anything of the volume.
    written: Cell<bool>,
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        let own = |path: &&Path| {
            std::fs::symlink_metadata(path).is_ok_and(|there| is_same_file(&there, &self.file))
        };
        let Some(path) = self.path.filter(own) else {
            return;
        };
        // Any content that it has before it is written is another program's.
        let blank = || signature::inspect(path).is_ok_and(|found| found.content.is_blank());
        if self.written.get() || blank() {
            // This error is not reported, because the first error is the one that counts.
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(unix)]
fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Windows gives no file another's name while it is open.
#[cfg(not(unix))]
fn is_same_file(_: &Metadata, _: &Metadata) -> bool {
    true
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(
        1,
        format!("cannot make {}: {error}", path.display()),
        "Check the folder, its permissions and the free space.",
    )
}

/// A file that only its owner may read, whatever the umask allows: it will have keys.
fn new_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
