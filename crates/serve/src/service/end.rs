//! Services of other processes ended, and what killed ones have left removed.

use super::undo::{Undo, undo};
use super::{Ending, Found, Place, ServiceError, list};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The time for which a volume that is to be unmounted may still be in use.
const MOMENT: Duration = Duration::from_millis(500);

/// How long a server may take to count who is connected.
const COUNTED: Duration = Duration::from_millis(100);

/// How long its user waits before being told for what.
const LONG: Duration = Duration::from_secs(3);

/// How long a server may take to make everything durable.
const ENDING: Duration = Duration::from_secs(300);

/// Removes the remains of killed servers of `images`, which are absolute, and returns what these say
/// of their ends.
///
/// # Errors
/// [`ServiceError::Served`] if a running server has one of them, and one of both writes; those of
/// [`Found::tidy`].
pub fn make_way(images: &[PathBuf], read_only: bool) -> Result<Vec<Ending>, ServiceError> {
    let mut said = Vec::new();
    for other in list()? {
        let Some(image) = images.iter().find(|image| other.record.has(image)) else {
            continue;
        };
        if !other.alive {
            other.tidy()?;
            said.extend(other.last_words());
        } else if !read_only || other.record.access == "write" {
            return Err(ServiceError::Served {
                image: image.clone(),
                pid: other.record.pid,
            });
        }
    }
    Ok(said)
}

impl Found {
    /// Whether it serves `path`, or has made it; `name` is the same as the user calls it.
    pub fn is_at(&self, path: &Path, name: &Path) -> bool {
        let there = |place: &Place| match place {
            Place::Nbd(at) => name.to_str() == Some(at) || path.to_str() == Some(at),
            place => visible(place).is_some_and(|at| *at == path),
        };
        self.record.has(path) || self.record.places.iter().any(there)
    }

    /// Ends the service, or removes the remains of a dead one. `waits` is told once of a server that
    /// takes long.
    ///
    /// # Errors
    /// [`ServiceError::Removed`], [`ServiceError::InUse`] and [`ServiceError::Connected`],
    /// [`ServiceError::Stuck`] if it does
    /// not end, and [`ServiceError::Ended`] if it has not stored all that was written.
    pub fn end(&self, waits: &dyn Fn(u32)) -> Result<(), ServiceError> {
        if !self.alive {
            self.tidy()?;
            return self.outcome();
        }
        if let Some(image) = self.removed() {
            let (image, pid) = (image.clone(), self.record.pid);
            return Err(ServiceError::Removed { image, pid });
        }
        let places = &self.record.places;
        // The record of an NBD server lists its clients a little later.
        if places.iter().any(|place| matches!(place, Place::Nbd(_))) {
            std::thread::sleep(COUNTED);
        }
        let undone = || {
            let undone = undo(&self.record, Undo::Unused)?;
            Ok::<_, ServiceError>(undone && self.connections() == 0)
        };
        let mut free = undone()?;
        let retry = Instant::now() + MOMENT;
        while !free && Instant::now() < retry {
            // A process that was started while a file was open has it until it
            // becomes another program.
            std::thread::sleep(Duration::from_millis(20));
            free = undone()?;
        }
        if !free {
            return Err(self.in_use(false));
        }
        let pid = self.record.pid;
        // A mount's user sees that it is gone.
        let unseen = |place: &Place| matches!(place, Place::Nbd(_) | Place::Disk(_));
        if places.iter().any(unseen) {
            let asked = self.ask_to_end();
            asked.map_err(|source| ServiceError::Signal { pid, source })?;
        }
        // A client may have come in the meantime, for whom the server waits.
        let asked = Instant::now();
        let mut is_told = false;
        while !self.wait(MOMENT) {
            if !is_told && asked.elapsed() >= LONG {
                waits(pid);
                is_told = true;
            }
            if self.connections() > 0 {
                return Err(self.in_use(true));
            }
            if asked.elapsed() >= ENDING {
                return Err(ServiceError::Stuck { pid });
            }
        }
        self.outcome()
    }

    /// An image whose data end with the server: it was removed, and the server has it open. If the
    /// open files may not be listed, an image that is not in its place is taken to be such a one.
    fn removed(&self) -> Option<&PathBuf> {
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.record.pid)).ok();
        let open: Option<Vec<PathBuf>> = open.map(|open| {
            // The node of a device goes with the device, of which no data are left.
            let is_file = |file: &Path| file.metadata().is_ok_and(|found| found.is_file());
            let paths = open.flatten().map(|file| file.path());
            let files = paths.filter(|file| is_file(file));
            files.filter_map(|file| file.read_link().ok()).collect()
        });
        let is_elsewhere = |image: &Path| !image.is_absolute() || image.starts_with("/dev");
        let is_gone = |image: &&PathBuf| {
            let mut name = image.as_os_str().to_owned();
            name.push(" (deleted)");
            match &open {
                Some(open) => open.contains(&PathBuf::from(name)),
                None => !is_elsewhere(image) && image.symlink_metadata().is_err(),
            }
        };
        let images = std::iter::once(&self.record.image).chain(&self.record.others);
        images.into_iter().find(is_gone)
    }

    /// Removes the remains of a dead service.
    ///
    /// # Errors
    /// [`ServiceError::InUse`].
    pub fn tidy(&self) -> Result<(), ServiceError> {
        // A service that has ended by itself has removed its places. Others may have them by now.
        match self.record.ending.is_some() || undo(&self.record, Undo::Left)? {
            true => self.remove(),
            false => return Err(self.in_use(false)),
        }
        Ok(())
    }

    /// The final message of a service that has ended, as an error. Its record is removed.
    fn outcome(&self) -> Result<(), ServiceError> {
        let Some(ending) = self.last_words() else {
            return Ok(());
        };
        self.remove();
        Err(ServiceError::Ended(ending))
    }

    fn in_use(&self, asked: bool) -> ServiceError {
        let (record, connections) = (&self.record, self.connections());
        if connections > 0 {
            return ServiceError::Connected {
                image: record.image.clone(),
                pid: record.pid,
                connections,
                asked,
            };
        }
        let seen = record.places.iter().rev().find_map(visible);
        ServiceError::InUse {
            path: seen.unwrap_or(&record.image).clone(),
        }
    }
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
