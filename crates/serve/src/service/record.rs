//! [`Record`]: the facts about a service, in a file that other commands read.
//!
//! The file is locked for as long as its service lives. So the remains of a killed service are told
//! apart from a running one.

use super::{Ending, ServiceError, within};
use block::LoopDevice;
use rustix::process::{Pid, PidfdFlags, Signal};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Read, Seek};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a service takes to write its record, at most, and how often it is looked.
const WRITTEN: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(1);

const SUFFIX: &str = "json";

/// What a service says of itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The volume; absolute.
    pub image: PathBuf,
    /// Further volumes that the same server serves; absolute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<PathBuf>,
    /// `read` or `write`.
    pub access: String,
    /// The treatment of discards: `block`, `pass` or `zero`.
    pub trim: String,
    /// The process that serves it.
    pub pid: u32,
    /// Since when: RFC 3339.
    pub since: String,
    /// How others get at it, in the order in which it was made.
    pub places: Vec<Place>,
    /// Connections of an NBD server to clients.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub connections: usize,
    /// The errors of the device below, each kind once.
    pub errors: Vec<String>,
    /// What the kernel does not confine, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unconfined: Option<String>,
    /// The final message, if not all went well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
}

impl Record {
    /// Whether the volume `image` is served.
    pub fn has(&self, image: &Path) -> bool {
        self.image == image || self.others.iter().any(|other| other == image)
    }

    /// The name of its mounts in the system's list. No other service has the same name, so a later
    /// mount in the same place is told apart.
    pub fn mount_name(&self) -> String {
        format!("cryptmark:{}:{}", self.pid, self.since)
    }

    /// Whether the mount that comes from `source`, at the place of this number, is this service's.
    pub fn has_mounted(&self, number: usize, source: &Path) -> bool {
        let before = &self.places[..number];
        // In a directory of its own, whose name no other service has.
        let private = |file: &Path| {
            let holds = |place: &Place| matches!(place, Place::Fuse(at) if file.starts_with(at));
            before.iter().any(holds)
        };
        match &self.places[number] {
            Place::Fuse(_) | Place::FuseFile(_) => source == Path::new(&self.mount_name()),
            Place::FileSystem(_) => {
                before.contains(&Place::Loop(source.to_owned()))
                    && LoopDevice::backing_of(source).is_some_and(|file| private(&file))
            }
            Place::Fuse2fs(_) => private(source),
            _ => false,
        }
    }

    /// The final message for a service that was killed. Programs that wrote to a file system on the
    /// volume saw no error. But the kernel or fuse2fs may not have passed on the data yet.
    fn ending_of_killed(&self) -> Option<Ending> {
        let caches = |place: &Place| {
            matches!(
                place,
                Place::FileSystem(_) | Place::Fuse2fs(_) | Place::Disk(_)
            )
        };
        (self.access == "write" && self.places.iter().any(caches)).then(|| Ending {
            what: format!(
                "the server of {} was killed, and what was written last and not synced may be \
                 missing",
                self.image.display()
            ),
            remedy: "Check the file system in the volume, and repeat the writes that are missing."
                .into(),
        })
    }
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// A way to the plaintext.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// A directory of this program's own, which is removed in the end.
    Directory(PathBuf),
    /// An empty file of this program's own, which is removed in the end.
    EmptyFile(PathBuf),
    /// A directory with the plaintext as a file.
    Fuse(PathBuf),
    /// A file that shows the plaintext.
    FuseFile(PathBuf),
    /// A loop device.
    Loop(PathBuf),
    /// A file system that the kernel has mounted on a directory.
    FileSystem(PathBuf),
    /// A file system that `fuse2fs` has mounted on a directory.
    Fuse2fs(PathBuf),
    /// The address of an NBD server.
    Nbd(String),
    /// A disk of the kernel's ublk driver.
    Disk(PathBuf),
}

/// A record that was found.
#[derive(Debug)]
pub struct Found {
    /// The content of the record.
    pub record: Record,
    /// Whether its service lives.
    pub alive: bool,
    path: PathBuf,
    /// Says what it says in the end, even if its name has gone.
    file: File,
}

impl Found {
    /// The record in this file, and whether its service lives; nothing if it has just ended.
    pub fn at(path: PathBuf) -> Option<Self> {
        let file = File::open(&path).ok()?;
        // Shared, so that who else asks at the same time is not taken for the service.
        let alive = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
        let begun = Instant::now();
        let record = loop {
            match parse(&file) {
                // Its service has just written it, in the middle of what was read.
                None if alive && begun.elapsed() < WRITTEN => std::thread::sleep(PAUSE),
                record => break record?,
            }
        };
        Some(Self {
            record,
            alive,
            path,
            file,
        })
    }

    /// Removes what a dead service has left of its record.
    pub(super) fn remove(&self) {
        // Its service may have done so just now.
        let _ = fs::remove_file(&self.path);
    }

    /// Asks its service to end.
    pub(super) fn ask_to_end(&self) -> io::Result<()> {
        let pid = Pid::from_raw(self.record.pid.cast_signed());
        let pid = pid.ok_or(io::ErrorKind::InvalidData)?;
        let Ok(process) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else {
            return Ok(());
        };
        // The process that was found by its number is the right one, if the
        // service still lives now.
        match self.wait(Duration::ZERO) {
            true => Ok(()),
            false => Ok(rustix::process::pidfd_send_signal(process, Signal::TERM)?),
        }
    }

    /// Returns when its service has ended, or is not done after `patience`;
    /// tells which.
    pub fn wait(&self, patience: Duration) -> bool {
        within(patience, || {
            // Only a held lock is a reason to wait; other errors are not.
            !matches!(self.file.try_lock_shared(), Err(TryLockError::WouldBlock))
        })
    }

    /// Connections to clients now.
    pub(super) fn connections(&self) -> usize {
        parse(&self.file).map_or(0, |record| record.connections)
    }

    /// The final message of a service that has ended or was found killed; `None` if all is well.
    pub fn last_words(&self) -> Option<Ending> {
        let record = parse(&self.file)?;
        let killed = || record.ending_of_killed().filter(|_| !self.alive);
        record.ending.clone().or_else(killed)
    }
}

/// Where this user's records are, and private directories: made if need be.
fn directory() -> Result<PathBuf, ServiceError> {
    let user = rustix::process::geteuid();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    // Root may have inherited another user's, who could replace what is in it.
    let own = |path: &PathBuf| !user.is_root() || is_own(path);
    private(match runtime.filter(own) {
        Some(runtime) => runtime.join("cryptmark"),
        None => fixed(),
    })
}

/// The directory of the locks of exports: one for each user, whatever the environment says.
///
/// # Errors
/// [`ServiceError::Directory`].
pub fn directory_of_locks() -> Result<PathBuf, ServiceError> {
    private(fixed())
}

fn is_own(path: &PathBuf) -> bool {
    fs::metadata(path).is_ok_and(|found| found.uid() == rustix::process::geteuid().as_raw())
}

fn fixed() -> PathBuf {
    let user = rustix::process::geteuid();
    if user.is_root() {
        return "/run/cryptmark".into();
    }
    // In the folder of all users, another one may have made it before.
    let own = Path::new("/run/user").join(user.as_raw().to_string());
    match is_own(&own) {
        true => own.join("cryptmark"),
        false => std::env::temp_dir().join(format!("cryptmark-{}", user.as_raw())),
    }
}

/// Makes a directory that only this user reaches.
fn private(path: PathBuf) -> Result<PathBuf, ServiceError> {
    let made = || -> io::Result<()> {
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let found = fs::symlink_metadata(&path)?;
        let is_own = found.uid() == rustix::process::geteuid().as_raw();
        match found.is_dir() && is_own && found.mode() & 0o077 == 0 {
            true => Ok(()),
            false => Err(io::ErrorKind::PermissionDenied.into()),
        }
    };
    match made() {
        Ok(()) => Ok(path),
        Err(source) => Err(ServiceError::Directory { path, source }),
    }
}

/// All services of this user, the oldest first, and what killed ones have left.
///
/// # Errors
/// [`ServiceError::Directory`].
pub fn list() -> Result<Vec<Found>, ServiceError> {
    let entries = fs::read_dir(directory()?).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let records = paths.filter(|path| path.extension().is_some_and(|suffix| suffix == SUFFIX));
    let mut found: Vec<Found> = records.filter_map(Found::at).collect();
    found.sort_by(|a, b| a.record.since.cmp(&b.record.since));
    Ok(found)
}

fn parse(mut file: &File) -> Option<Record> {
    let mut text = Vec::new();
    file.rewind().ok()?;
    file.read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// The record of this process's own service.
#[derive(Debug)]
pub struct OwnRecord {
    file: File,
    path: PathBuf,
    record: Record,
    /// It stays when its service has ended.
    kept: bool,
}

impl OwnRecord {
    /// Writes `record`, for others to see.
    ///
    /// # Errors
    /// [`ServiceError::Directory`] and [`ServiceError::Record`].
    pub fn new(record: Record) -> Result<Self, ServiceError> {
        let directory = directory()?;
        let made = || -> io::Result<Self> {
            // Commands do not take it for dead before it is locked.
            let new = tempfile::Builder::new()
                .prefix("service-")
                .suffix(".new")
                .tempfile_in(directory)?;
            new.as_file().try_lock().map_err(io::Error::from)?;
            let path = new.path().with_extension(SUFFIX);
            let own = Self {
                file: new.persist(&path)?,
                path,
                record,
                kept: false,
            };
            own.write()?;
            Ok(own)
        };
        made().map_err(ServiceError::Record)
    }

    /// The content of the record.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it stays when its service has ended.
    pub(super) fn is_kept(&self) -> bool {
        self.kept
    }

    /// Where a directory of this service's own can be.
    pub(super) fn private_directory(&self) -> PathBuf {
        self.path.with_extension("mount")
    }

    /// Changes what it says.
    ///
    /// # Errors
    /// [`ServiceError::Record`].
    pub fn change(&mut self, change: impl FnOnce(&mut Record)) -> Result<(), ServiceError> {
        change(&mut self.record);
        self.write().map_err(ServiceError::Record)
    }

    /// Keeps it after its service has ended, until a command has read it.
    pub(super) fn keep(&mut self) {
        self.kept = true;
    }

    fn write(&self) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(&self.record)?;
        // One write that leaves nothing of a longer text: others may be reading.
        let before = self.file.metadata()?.len() as usize;
        text.resize(before.max(text.len()), b'\n');
        self.file.write_all_at(&text, 0)
    }
}

impl Drop for OwnRecord {
    fn drop(&mut self) {
        if !self.kept {
            // Another command may have removed it already.
            let _ = fs::remove_file(&self.path);
        }
    }
}
