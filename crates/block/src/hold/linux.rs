//! Linux: locks of open file descriptions, `flock`, O_EXCL, and what stands below.

use super::processes::{Opened, with_lock, with_open, with_writing};
use super::{Hold, User, Users, unopened};
use crate::signature::standing_on;
use crate::sys::ioctl;
use crate::sys::lock::{self, Against, Time};
use crate::{BlockError, PathKind};
use rustix::fs::{FlockOperation, OFlags, flock, major, minor};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The pause between two attempts to hold a file.
pub(super) const PAUSE: Duration = Duration::from_millis(20);

/// The longest wait for a brief hold to end.
const BRIEF: Duration = Duration::from_secs(30);

/// How long the kernel may take to close what a program had open that has just
/// ended: its rings are given up a little later.
const ENDED: Duration = Duration::from_secs(3);

/// How long another program may have locked a file to change a header.
const FOREIGN: Duration = Duration::from_secs(2);

/// Major and minor number of a block device.
pub(crate) type Number = (u32, u32);

/// The object that a path leads to, the same for every path that leads to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// A file.
    Inode { device: u64, inode: u64 },
    /// A block device.
    Device(Number),
}

impl Identity {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        match metadata.file_type().is_block_device() {
            true => Self::Device((major(metadata.rdev()), minor(metadata.rdev()))),
            false => Self::Inode {
                device: metadata.dev(),
                inode: metadata.ino(),
            },
        }
    }
}

/// The outcome of an attempt to open and hold a file.
enum Attempt {
    Held(File),
    /// Another program holds it. The caller waits for it up to this long.
    Refused(Users, Duration),
    /// The path leads to something else by now.
    Moved,
}

pub(super) fn open(
    path: &Path,
    kind: PathKind,
    write: bool,
    hold: Hold,
) -> Result<File, BlockError> {
    let begun = Instant::now();
    loop {
        match attempt(path, kind, write, hold)? {
            Attempt::Held(file) => return Ok(file),
            Attempt::Refused(users, patience) if begun.elapsed() >= patience => {
                return Err(BlockError::InUse {
                    path: path.to_owned(),
                    users,
                });
            }
            Attempt::Refused(..) | Attempt::Moved => std::thread::sleep(PAUSE),
        }
    }
}

fn attempt(path: &Path, kind: PathKind, write: bool, hold: Hold) -> Result<Attempt, BlockError> {
    let refused = |source| unopened(path, source);
    let against = match (hold, write) {
        (Hold::Lent, _) | (Hold::Usual | Hold::Brief, false) => None,
        (Hold::Steady, false) => Some(Against::Writers),
        (_, true) => Some(Against::Anybody),
    };
    let alone = against == Some(Against::Anybody);
    let mut options = OpenOptions::new();
    options.read(true).write(write);
    if alone && kind == PathKind::BlockDevice {
        options.custom_flags(OFlags::EXCL.bits() as i32);
    }
    let file = match options.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => return busy(path),
        Err(error) => return Err(refused(error)),
    };
    let Some(against) = against else {
        return Ok(Attempt::Held(file));
    };
    let identity = Identity::of(&file.metadata().map_err(refused)?);
    if alone {
        if is_read_only(identity) {
            // Opening it for writing works, and writing does not.
            return Err(refused(Errno::ROFS.into()));
        }
        standing_on(identity)?.check(path)?;
    }
    if let Some(attempt) = locked(&file, identity, against) {
        return Ok(attempt);
    }
    if alone && let Some(attempt) = locked_by_flock(&file, identity) {
        return Ok(attempt);
    }
    let time = match hold {
        Hold::Brief => Time::Brief,
        _ => Time::Open,
    };
    match lock::set(&file, against, time) {
        Ok(true) => {}
        // Another program was faster.
        Ok(false) => return Ok(Attempt::Moved),
        Err(error) if is_unsupported(&error) => {}
        Err(error) => return Err(refused(error)),
    }
    if alone {
        // Not every program takes a lock.
        let mut users = match identity {
            Identity::Device(number) => users_below(number),
            Identity::Inode { .. } => Vec::new(),
        };
        users.extend(with_writing(identity));
        users.retain(|user| !is_this_process(user));
        if !users.is_empty() {
            return Ok(Attempt::Refused(Users(users), FOREIGN));
        }
    }
    let now = fs::metadata(path).map_err(refused)?;
    Ok(match Identity::of(&now) == identity {
        true => Attempt::Held(file),
        false => Attempt::Moved,
    })
}

pub(super) fn release(file: &File) {
    // Where there are no locks, none is left.
    let _ = lock::release(file);
}

/// File systems can be without locks; then there are none to hold.
fn is_unsupported(error: &io::Error) -> bool {
    let without = [Errno::INVAL, Errno::NOLCK, Errno::NOSYS, Errno::OPNOTSUPP];
    without
        .map(Errno::raw_os_error)
        .iter()
        .any(|&errno| error.raw_os_error() == Some(errno))
}

/// The refusal for a block device that another program has opened exclusively, with its users.
fn busy(path: &Path) -> Result<Attempt, BlockError> {
    let refused = |source| unopened(path, source);
    let file = File::open(path).map_err(refused)?;
    let identity = Identity::of(&file.metadata().map_err(refused)?);
    standing_on(identity)?.check(path)?;
    if let Some(attempt) = locked(&file, identity, Against::Anybody) {
        return Ok(attempt);
    }
    let users = with_open(identity, |opened| opened.write);
    let patience = patience(None, &users);
    Ok(Attempt::Refused(Users(users), patience))
}

/// The refusal, if another description has a lock that conflicts.
fn locked(file: &File, identity: Identity, against: Against) -> Option<Attempt> {
    // A file system without locks has no conflicting one.
    let time = lock::conflict(file, against).ok().flatten()?;
    let conflicts = |opened: Opened| match against {
        Against::Anybody => opened.alone || opened.shared,
        Against::Writers => opened.alone,
    };
    let users = with_open(identity, conflicts);
    let patience = patience(Some(time), &users);
    Some(Attempt::Refused(Users(users), patience))
}

fn patience(time: Option<Time>, users: &[User]) -> Duration {
    match time {
        Some(Time::Brief) => BRIEF,
        _ if users.is_empty() => ENDED,
        _ => Duration::ZERO,
    }
}

/// The refusal, if another program has locked the file by `flock`. The lock is not
/// kept: cryptsetup, which this is to work beside, waits for it.
fn locked_by_flock(file: &File, identity: Identity) -> Option<Attempt> {
    match flock(file, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => {
            let mut users = with_open(identity, |opened| opened.alone);
            if users.is_empty() {
                users = with_lock(identity);
            }
            Some(Attempt::Refused(Users(users), FOREIGN))
        }
        // Without support for such locks, no program has one.
        Err(_) => None,
        Ok(()) => {
            // It goes at the latest when the file is closed.
            let _ = flock(file, FlockOperation::Unlock);
            None
        }
    }
}

pub(super) fn writers(path: &Path) -> Vec<User> {
    let Ok(metadata) = fs::metadata(path) else {
        return Vec::new();
    };
    let identity = Identity::of(&metadata);
    let devices = standing_on(identity).unwrap_or_default().holders;
    let mut users: Vec<User> = devices.into_iter().map(User::Device).collect();
    users.extend(with_open(identity, |opened| opened.write && opened.alone));
    users.retain(|user| !is_this_process(user));
    users
}

pub(super) fn is_same(one: &Path, other: &Path) -> io::Result<bool> {
    let identities = |path: &Path| -> io::Result<Vec<Identity>> {
        let identity = Identity::of(&fs::metadata(path)?);
        let backing = match identity {
            Identity::Device(number) => loop_backing(&sysfs(number)),
            Identity::Inode { .. } => None,
        };
        Ok([identity].into_iter().chain(backing).collect())
    };
    let others = identities(other)?;
    Ok(identities(one)?.iter().any(|one| others.contains(one)))
}

/// The file behind the loop device with this folder in sysfs; nothing where it is free
/// or none.
pub(crate) fn loop_backing(sysfs: &Path) -> Option<Identity> {
    let name = fs::read(sysfs.join("loop/backing_file")).ok()?;
    let device = fs::canonicalize(sysfs).ok()?;
    let told = File::open(Path::new("/dev").join(device.file_name()?))
        .and_then(|device| ioctl::loop_backing(&device));
    match told {
        Ok((device, inode)) => Some(Identity::Inode { device, inode }),
        // Without the right to open it, its name is what there is.
        Err(_) => {
            let path = Path::new(OsStr::from_bytes(name.strip_suffix(b"\n").unwrap_or(&name)));
            fs::metadata(path).ok().map(|found| Identity::of(&found))
        }
    }
}

/// The other processes that hold, or write to, a file on which the device stands: by loop devices,
/// below partitions and the device mapper. Other loop devices on that file count as well, if they
/// are in use.
fn users_below(number: Number) -> Vec<User> {
    let mut seen = BTreeSet::new();
    let mut left = vec![number];
    let mut users = Vec::new();
    while let Some(number) = left.pop() {
        if !seen.insert(number) {
            continue;
        }
        let folder = sysfs(number);
        if let Some(file) = loop_backing(&folder) {
            users.extend(with_open(file, |opened| {
                opened.alone || opened.shared || opened.write
            }));
            users.extend(twins(file, &folder));
        }
        let slaves = fs::read_dir(folder.join("slaves"))
            .into_iter()
            .flatten()
            .flatten();
        left.extend(slaves.filter_map(|slave| number_in(&slave.path())));
        if folder.join("partition").exists()
            && let Ok(partition) = fs::canonicalize(&folder)
        {
            left.extend(partition.parent().and_then(number_in));
        }
    }
    users.retain(|user| !is_this_process(user));
    users
}

/// The other loop devices on the part of `file` that the one with this folder in sysfs has, if
/// something uses them.
fn twins(file: Identity, sysfs: &Path) -> Vec<User> {
    let (own, part) = (number_in(sysfs), loop_part(sysfs));
    let loops = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let others = loops.filter(|folder| {
        let folder = folder.path();
        loop_backing(&folder) == Some(file)
            && number_in(&folder) != own
            && overlap(&part, &loop_part(&folder))
    });
    let used = others.filter(|folder| {
        number_in(&folder.path())
            .map(Identity::Device)
            .is_some_and(|device| {
                let path = Path::new("/dev").join(folder.file_name());
                let stands = standing_on(device).is_ok_and(|usage| usage.check(&path).is_err());
                stands || !with_open(device, |opened| opened.write).is_empty()
            })
    });
    used.map(|folder| User::Device(Path::new("/dev").join(folder.file_name())))
        .collect()
}

/// The bytes of its file that a loop device has.
fn loop_part(sysfs: &Path) -> Range<u64> {
    let number = |name: &str| {
        let text = fs::read_to_string(sysfs.join("loop").join(name)).unwrap_or_default();
        text.trim().parse::<u64>().unwrap_or(0)
    };
    let start = number("offset");
    match number("sizelimit") {
        0 => start..u64::MAX,
        size => start..start.saturating_add(size),
    }
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

/// Whether the kernel writes to a device at all.
fn is_read_only(identity: Identity) -> bool {
    let Identity::Device(number) = identity else {
        return false;
    };
    fs::read_to_string(sysfs(number).join("ro")).is_ok_and(|says| says.trim() == "1")
}

fn sysfs((major, minor): Number) -> PathBuf {
    format!("/sys/dev/block/{major}:{minor}").into()
}

fn number_in(folder: &Path) -> Option<Number> {
    let text = fs::read_to_string(folder.join("dev")).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

pub(super) fn is_this_process(user: &User) -> bool {
    matches!(user, User::Process { pid, .. } if *pid == std::process::id())
}
