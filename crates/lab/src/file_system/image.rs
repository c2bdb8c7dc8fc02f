//! [`Image`]: the bytes below all stacks of a job, and how the kernel forgets what it has cached.

use super::error::unusable;
use super::exposure::Tree;
use super::{Backing, FileSystem, Job};
use crate::error::LabError;
use crate::record::Shown;
use block::{FileDevice, TestFile};
use std::fs::{self, File};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

/// The bytes below all stacks of a job.
pub(super) enum Image {
    /// A file that vanishes with this program.
    File(FileDevice),
    /// A file or device that the user gave.
    Named(PathBuf),
    /// A directory of its own, which goes with its content.
    Directory(TempDir),
}

impl Image {
    /// Makes the image of `job`, full of noise.
    pub(super) fn new(job: &Job, stop: &AtomicBool) -> Result<Self, LabError> {
        let directory = match &job.backing {
            Backing::Named(path) => return Ok(Self::Named(path.clone())),
            Backing::File(directory) => directory,
            Backing::Ram => &job.scratch,
        };
        if job.file_system == FileSystem::Directory {
            return Ok(Self::Directory(own_directory(directory, &job.id)?));
        }
        let file = TestFile::create(directory, job.size, job.seed, &mut |_| match stop
            .load(Ordering::Relaxed)
        {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })?;
        Ok(Self::File(file.device(None)?))
    }

    pub(super) fn path(&self) -> PathBuf {
        match self {
            Self::File(device) => device.path_for_others().expect("Linux has such paths"),
            Self::Named(path) => path.clone(),
            Self::Directory(directory) => directory.path().to_owned(),
        }
    }

    /// Removes everything in it, if it is a directory.
    pub(super) fn clear(&self) -> Result<(), LabError> {
        let Self::Directory(directory) = self else {
            return Ok(());
        };
        let failed = |source| unusable("cannot remove", directory.path(), source);
        for entry in fs::read_dir(directory.path()).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let removed = match path.is_dir() {
                true => fs::remove_dir_all(&path),
                false => fs::remove_file(&path),
            };
            removed.map_err(failed)?;
        }
        Ok(())
    }

    /// Whether it is a block device without a loop device.
    pub(super) fn is_device(&self) -> bool {
        let kind = |path: &PathBuf| Some(fs::metadata(path).ok()?.file_type());
        match self {
            Self::File(_) | Self::Directory(_) => false,
            Self::Named(path) => kind(path).is_some_and(|kind| kind.is_block_device()),
        }
    }

    /// The part of a tree that it shows: content and names.
    pub(super) fn shown(&self, tree: &Tree) -> io::Result<(Shown, Shown)> {
        tree.on_device(&self.path())
    }

    /// Lets the kernel forget what it has cached of it.
    pub(super) fn forget(&self) -> Result<(), LabError> {
        forget(&self.path())
    }
}

/// Lets the kernel forget what it has cached of a file or a block device.
pub(super) fn forget(path: &Path) -> Result<(), LabError> {
    let failed = |source| unusable("cannot forget", path, source);
    let file = File::open(path).map_err(failed)?;
    if path.is_dir() {
        rustix::fs::syncfs(&file).map_err(|errno| failed(errno.into()))?;
        return forget_files(path).map_err(failed);
    }
    file.sync_all().map_err(failed)?;
    let forget = rustix::fs::Advice::DontNeed;
    rustix::fs::fadvise(&file, 0, None, forget).map_err(|errno| failed(errno.into()))
}

/// Lets the kernel forget the content of the files in `directory` and below, which have been
/// written.
pub(super) fn forget_files(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => forget_files(&entry.path())?,
            false => {
                let file = File::open(entry.path())?;
                rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
            }
        }
    }
    Ok(())
}

/// Forgets everything that is cached of `image`, and all that can be forgotten.
pub(super) fn drop_caches(image: &Image) -> Result<(), LabError> {
    rustix::fs::sync();
    image.forget()?;
    match fs::write(DROP_CACHES, "3") {
        Err(_) if !can_drop_caches() && matches!(image, Image::Directory(_)) => Ok(()),
        dropped => dropped.map_err(|source| unusable("cannot write", DROP_CACHES.as_ref(), source)),
    }
}

/// Makes the kernel forget files, directories and inodes.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Whether this process may make the kernel forget.
pub(super) fn can_drop_caches() -> bool {
    fs::OpenOptions::new().write(true).open(DROP_CACHES).is_ok()
}

/// The prefix of a directory's name in the place that the user gave, followed by the id of the
/// process whose job it is for.
const OWN: &str = ".cryptmark-files-";

/// Makes a directory in `place` for a job of the process `id` begins with, and removes those of
/// processes that were killed.
fn own_directory(place: &Path, id: &str) -> Result<TempDir, LabError> {
    let failed = |source| unusable("cannot make a directory in", place, source);
    for entry in fs::read_dir(place).map_err(failed)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let rest = name.strip_prefix(OWN).unwrap_or_default();
        let process = rest.split('-').next().unwrap_or_default();
        let is_number = !process.is_empty() && process.bytes().all(|byte| byte.is_ascii_digit());
        let own = entry.metadata().is_ok_and(|found| {
            found.is_dir() && found.uid() == rustix::process::geteuid().as_raw()
        });
        if is_number && own && !Path::new("/proc").join(process).exists() {
            // Links in it are removed, and not followed.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    tempfile::Builder::new()
        .prefix(&format!("{OWN}{id}-"))
        .tempdir_in(place)
        .map_err(failed)
}
