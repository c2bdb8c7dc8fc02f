//! The processes that have a file or device open: /proc/PID/fd, and the locks that fdinfo lists.

use super::{Identity, User};
use rustix::fs::{AtFlags, CWD, FileType, OFlags, StatxFlags, makedev, statx};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A process's access to, and locks on, a file or device that it has open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Opened {
    /// It may write.
    pub write: bool,
    /// It has a lock that keeps out writers: of the kinds that `fcntl` and `flock` make.
    pub shared: bool,
    /// It has such a lock that keeps out everybody.
    pub alone: bool,
}

/// The processes that write to `target`, or will as soon as a client comes.
pub(super) fn with_writing(target: Identity) -> Vec<User> {
    let mut users = with_open(target, |opened| opened.write);
    users.extend(lazy_servers(target));
    users
}

/// Servers that open their file when a client connects, and not before: they are known by their
/// names and arguments.
fn lazy_servers(target: Identity) -> Vec<User> {
    const LAZY: [&str; 1] = ["nbdkit"];
    let mut users = Vec::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let place = process.path();
        let name = fs::read_to_string(place.join("comm")).unwrap_or_default();
        let pid = process
            .file_name()
            .to_str()
            .and_then(|pid| pid.parse().ok());
        if let (Some(pid), true) = (pid, LAZY.contains(&name.trim_end()))
            && names_in_arguments(&place, target)
        {
            users.push(describe(pid, &place));
        }
    }
    users
}

/// Whether a process was started with the path of `target` as an argument, or behind the `=` of
/// one. A server has left the folder in which it was started, and its environment tells it.
fn names_in_arguments(place: &Path, target: Identity) -> bool {
    let read = |name: &str| fs::read(place.join(name)).unwrap_or_default();
    let (arguments, environment) = (read("cmdline"), read("environ"));
    let folder = environment
        .split(|byte| *byte == 0)
        .find_map(|variable| variable.strip_prefix(b"PWD="));
    let folder = Path::new(OsStr::from_bytes(folder.unwrap_or(b"/")));
    let arguments: Vec<&[u8]> = arguments.split(|byte| *byte == 0).collect();
    let is_read_only = |argument: &&[u8]| matches!(*argument, b"-r" | b"--readonly");
    let values = arguments.iter().flat_map(|argument| {
        let behind = argument.iter().position(|byte| *byte == b'=');
        [Some(*argument), behind.map(|at| &argument[at + 1..])]
    });
    !arguments.iter().any(is_read_only)
        && values
            .flatten()
            .filter(|value| !value.is_empty())
            .any(|value| {
                let path = folder.join(OsStr::from_bytes(value));
                fs::metadata(path).is_ok_and(|found| Identity::of(&found) == target)
            })
}

/// The processes that have `target` open in a way that `counts`; those of other users
/// are seen by root alone.
pub(super) fn with_open(target: Identity, counts: impl Fn(Opened) -> bool) -> Vec<User> {
    let mut users = Vec::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = process
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let place = process.path();
        let descriptors = fs::read_dir(place.join("fd"));
        let found = descriptors
            .into_iter()
            .flatten()
            .flatten()
            .any(|descriptor| {
                is_open_at(&descriptor.path(), target) && {
                    let info = place.join("fdinfo").join(descriptor.file_name());
                    fs::read_to_string(info).is_ok_and(|info| counts(parse(&info)))
                }
            });
        if found {
            users.push(describe(pid, &place));
        }
    }
    users
}

/// The processes that have locked `target` in a way that names them to all users: those
/// of `fcntl` and `flock`, and not those of open file descriptions.
pub(super) fn with_lock(target: Identity) -> Vec<User> {
    let Identity::Inode { device, inode } = target else {
        return Vec::new();
    };
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let mut users: Vec<_> = lockers(&locks, device, inode)
        .map(|pid| describe(pid, &Path::new("/proc").join(pid.to_string())))
        .collect();
    users.dedup();
    users
}

/// Lines as `1: FLOCK  ADVISORY  WRITE 4711 fe:00:123 0 EOF`, and with `->` before the kind
/// for those that wait.
fn lockers(locks: &str, device: u64, inode: u64) -> impl Iterator<Item = u32> {
    let place = format!(
        "{:02x}:{:02x}:{inode}",
        rustix::fs::major(device),
        rustix::fs::minor(device)
    );
    locks.lines().filter_map(move |line| {
        let words: Vec<_> = line.split_whitespace().collect();
        match words.as_slice() {
            [_, _, _, _, pid, at, ..] if *at == place => pid.parse().ok(),
            _ => None,
        }
    })
}

/// Whether a descriptor is of `target`. The file system is not asked: its server may
/// hang, or be this process.
fn is_open_at(descriptor: &Path, target: Identity) -> bool {
    let wanted = StatxFlags::INO | StatxFlags::TYPE;
    let Ok(found) = statx(CWD, descriptor, AtFlags::STATX_DONT_SYNC, wanted) else {
        return false;
    };
    let kind = FileType::from_raw_mode(found.stx_mode.into());
    match target {
        Identity::Inode { device, inode } => {
            found.stx_ino == inode && makedev(found.stx_dev_major, found.stx_dev_minor) == device
        }
        Identity::Device((major, minor)) => {
            kind == FileType::BlockDevice
                && (found.stx_rdev_major, found.stx_rdev_minor) == (major, minor)
        }
    }
}

/// Lines as `flags: 0100002` and `lock: 1: OFDLCK  ADVISORY  WRITE -1 fe:00:123 0 EOF`.
fn parse(info: &str) -> Opened {
    let mut opened = Opened::default();
    for line in info.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("flags:") => {
                let flags = words
                    .next()
                    .and_then(|flags| u32::from_str_radix(flags, 8).ok());
                let access = OFlags::from_bits_retain(flags.unwrap_or(0)) & OFlags::ACCMODE;
                opened.write = access != OFlags::RDONLY;
            }
            Some("lock:") => match words.nth(3) {
                Some("WRITE") => opened.alone = true,
                Some("READ") => opened.shared = true,
                _ => {}
            },
            _ => {}
        }
    }
    opened
}

fn describe(pid: u32, place: &Path) -> User {
    let name = fs::read_to_string(place.join("comm")).unwrap_or_default();
    User::Process {
        name: name.trim_end().to_owned(),
        pid,
        since: began(place),
    }
}

/// When a process began.
fn began(place: &Path) -> Option<String> {
    let stat = fs::read_to_string(place.join("stat")).ok()?;
    let machine = fs::read_to_string("/proc/stat").ok()?;
    let seconds = start(&stat, &machine, rustix::param::clock_ticks_per_second())?;
    Some(jiff::Timestamp::from_second(seconds).ok()?.to_string())
}

/// Field 22 of /proc/PID/stat is in ticks since the machine was started. The name of
/// the process, in parentheses, can hold anything.
fn start(stat: &str, machine: &str, ticks: u64) -> Option<i64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let begun: u64 = fields.split(' ').nth(19)?.parse().ok()?;
    let booted = machine
        .lines()
        .find_map(|line| line.strip_prefix("btime "))?;
    let booted: u64 = booted.trim().parse().ok()?;
    i64::try_from(booted.checked_add(begun.checked_div(ticks)?)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_read() {
        let info = "pos:\t0\nflags:\t02100002\nmnt_id:\t29\nino:\t11\n\
                    lock:\t1: OFDLCK ADVISORY  WRITE -1 fe:00:11 0 EOF\n";
        let writer = Opened {
            write: true,
            alone: true,
            shared: false,
        };
        assert_eq!(parse(info), writer);
        let info = "flags:\t0100000\nlock:\t1: FLOCK  ADVISORY  READ 72 fe:00:11 0 EOF\n";
        let reader = Opened {
            write: false,
            alone: false,
            shared: true,
        };
        assert_eq!(parse(info), reader);
        assert_eq!(parse("lock:\nflags: x\n"), Opened::default());
    }

    #[test]
    fn lockers_are_read() {
        let locks = "1: FLOCK  ADVISORY  WRITE 4711 fe:10:123 0 EOF\n\
                     1: -> FLOCK  ADVISORY  WRITE 4712 fe:10:123 0 EOF\n\
                     2: OFDLCK ADVISORY  WRITE -1 fe:10:123 0 EOF\n\
                     3: POSIX  ADVISORY  READ 4713 fe:10:1234 0 EOF\n\n";
        let found: Vec<_> = lockers(locks, makedev(0xfe, 0x10), 123).collect();
        assert_eq!(found, [4711]);
    }

    #[test]
    fn the_begin_of_a_process_is_read() {
        let stat = "12 (a) b) S 1 12 12 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4500 9 9";
        let machine = "cpu 1 2\nbtime 1700000000\nprocesses 5\n";
        assert_eq!(start(stat, machine, 100), Some(1_700_000_045));
        assert_eq!(start(stat, machine, 0), None);
        assert_eq!(start("12 (a", machine, 100), None);
        assert_eq!(start(stat, "", 100), None);
    }
}
