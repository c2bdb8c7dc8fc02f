//! Locks of open file descriptions, for which there is no safe wrapper.

use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::AsRawFd;

/// The locks of others that a lock conflicts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Against {
    /// A shared lock, which conflicts with exclusive locks only.
    Writers,
    /// An exclusive lock, which conflicts with every other lock.
    Anybody,
}

/// The time for which a lock is kept. Other programs can see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    /// For seconds.
    Brief,
    /// For an unknown time.
    Open,
}

/// Locks the whole file until all duplicates of the descriptor are closed; false
/// where another description has a lock that conflicts.
pub(crate) fn set(file: &File, against: Against, time: Time) -> io::Result<bool> {
    match call(file, libc::F_OFD_SETLK, &mut request(against, time)) {
        Ok(()) => Ok(true),
        Err(error) => match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EACCES) => Ok(false),
            _ => Err(error),
        },
    }
}

/// Gives up the locks of this description.
pub(crate) fn release(file: &File) -> io::Result<()> {
    let mut lock = request(Against::Anybody, Time::Open);
    lock.l_type = libc::F_UNLCK as libc::c_short;
    call(file, libc::F_OFD_SETLK, &mut lock)
}

/// How long a lock is kept that would conflict; nothing where there is none.
pub(crate) fn conflict(file: &File, against: Against) -> io::Result<Option<Time>> {
    let mut lock = request(against, Time::Open);
    call(file, libc::F_OFD_GETLK, &mut lock)?;
    Ok(match (i32::from(lock.l_type), lock.l_len) {
        (libc::F_UNLCK, _) => None,
        (_, BRIEF) => Some(Time::Brief),
        _ => Some(Time::Open),
    })
}

/// The length of a brief lock: all bytes that a file can have but the last, so that
/// the kernel tells it from one to the end.
const BRIEF: libc::off_t = libc::off_t::MAX - 1;

fn request(against: Against, time: Time) -> libc::flock {
    // SAFETY: all fields are numbers, of which every one may be 0.
    let mut lock: libc::flock = unsafe { mem::zeroed() };
    lock.l_type = match against {
        Against::Writers => libc::F_RDLCK,
        Against::Anybody => libc::F_WRLCK,
    } as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_len = match time {
        Time::Brief => BRIEF,
        Time::Open => 0,
    };
    lock
}

fn call(file: &File, command: libc::c_int, lock: &mut libc::flock) -> io::Result<()> {
    // SAFETY: the descriptor is open for as long as the file is borrowed, and the
    // kernel reads and writes one `struct flock` through the pointer.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, std::ptr::from_mut(lock)) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
