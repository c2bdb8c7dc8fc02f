//! A file or device that is open for writing is held against others, by every path that leads to
//! it.
#![cfg(target_os = "linux")]

use block::hold::{self, MetadataLock, User, lock_resource};
use block::{BlockError, FileDevice, FileOptions, Hold};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A file in a directory of its own.
struct Directory {
    folder: tempfile::TempDir,
}

impl Directory {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), [7; 4096]).unwrap();
        Self { folder }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("file")
    }

    /// Other names of the file.
    fn others(&self) -> [PathBuf; 2] {
        let [hard, soft] = ["hard", "soft"].map(|name| self.folder.path().join(name));
        fs::hard_link(self.file(), &hard).unwrap();
        std::os::unix::fs::symlink("file", &soft).unwrap();
        [hard, soft]
    }
}

/// The users that are in the way; `None` if it can be opened.
fn refused(path: &Path, write: bool, hold: Hold) -> Option<Vec<User>> {
    match hold::open(path, write, hold) {
        Ok(_) => None,
        Err(BlockError::InUse { path: named, users }) => {
            assert_eq!(named, path);
            Some(users.0)
        }
        Err(other) => panic!("{other:?}"),
    }
}

fn is_us(users: &[User]) -> bool {
    matches!(users, [User::Process { pid, since: Some(_), .. }] if *pid == std::process::id())
}

#[test]
fn a_writer_keeps_out_all_others() {
    let directory = Directory::new();
    let file = hold::open(&directory.file(), true, Hold::Usual).unwrap();
    for path in directory.others().iter().chain([&directory.file()]) {
        for (write, hold) in [
            (true, Hold::Usual),
            (true, Hold::Brief),
            (true, Hold::Steady),
            (false, Hold::Steady),
        ] {
            let users = refused(path, write, hold);
            assert!(
                is_us(&users.expect("it is held")),
                "{path:?} {write} {hold:?}"
            );
        }
        for (write, hold) in [
            (false, Hold::Usual),
            (false, Hold::Brief),
            (false, Hold::Lent),
            (true, Hold::Lent),
        ] {
            assert_eq!(
                refused(path, write, hold),
                None,
                "{path:?} {write} {hold:?}"
            );
        }
    }
    // A duplicate keeps it.
    let duplicate = file.try_clone().unwrap();
    drop(file);
    assert!(refused(&directory.file(), true, Hold::Usual).is_some());
    drop(duplicate);
    assert_eq!(refused(&directory.file(), true, Hold::Usual), None);
}

#[test]
fn readers_share() {
    let directory = Directory::new();
    let _reader = hold::open(&directory.file(), false, Hold::Steady).unwrap();
    assert_eq!(refused(&directory.file(), false, Hold::Steady), None);
    assert!(is_us(
        &refused(&directory.file(), true, Hold::Usual).unwrap()
    ));
    assert!(is_us(
        &refused(&directory.file(), true, Hold::Brief).unwrap()
    ));
}

#[test]
fn a_brief_hold_is_waited_for() {
    let directory = Directory::new();
    let brief = hold::open(&directory.file(), true, Hold::Brief).unwrap();
    let ending = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        drop(brief);
    });
    let begun = Instant::now();
    hold::open(&directory.file(), true, Hold::Brief).unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(200));
    ending.join().unwrap();
}

#[test]
fn who_waits_gets_what_the_path_leads_to_then() {
    let directory = Directory::new();
    let brief = hold::open(&directory.file(), true, Hold::Brief).unwrap();
    let path = directory.file();
    let waiting = std::thread::spawn(move || hold::open(&path, true, Hold::Brief).unwrap());
    std::thread::sleep(Duration::from_millis(100));
    let new = directory.folder.path().join("new");
    fs::write(&new, "new").unwrap();
    fs::rename(&new, directory.file()).unwrap();
    drop(brief);
    let length = waiting.join().unwrap().metadata().unwrap().len();
    assert_eq!(length, 3);
}

#[test]
fn flock_of_another_program_counts() {
    let directory = Directory::new();
    let other = File::open(directory.file()).unwrap();
    flock(&other, FlockOperation::LockShared).unwrap();
    assert_eq!(refused(&directory.file(), true, Hold::Usual), None);
    flock(&other, FlockOperation::LockExclusive).unwrap();
    assert!(is_us(
        &refused(&directory.file(), true, Hold::Usual).unwrap()
    ));
    assert_eq!(refused(&directory.file(), false, Hold::Steady), None);
    flock(&other, FlockOperation::Unlock).unwrap();
    let _writer = hold::open(&directory.file(), true, Hold::Usual).unwrap();
    // Nothing of it is kept: cryptsetup waits for it.
    flock(&other, FlockOperation::NonBlockingLockExclusive).unwrap();
}

#[test]
fn the_lock_of_a_header_is_cryptsetups() {
    let directory = Directory::new();
    let options = FileOptions {
        write: true,
        direct: false,
        ..FileOptions::default()
    };
    let device = FileDevice::open(&directory.file(), &options).unwrap();
    let lock = MetadataLock::of(&device, &directory.file()).unwrap();
    let other = File::open(directory.file()).unwrap();
    assert!(flock(&other, FlockOperation::NonBlockingLockShared).is_err());
    drop(lock);
    flock(&other, FlockOperation::NonBlockingLockExclusive).unwrap();
    flock(&other, FlockOperation::Unlock).unwrap();
    let shared = MetadataLock::shared(&device, &directory.file()).unwrap();
    assert!(flock(&other, FlockOperation::NonBlockingLockExclusive).is_err());
    flock(&other, FlockOperation::NonBlockingLockShared).unwrap();
    drop(shared);
    flock(&other, FlockOperation::NonBlockingLockExclusive).unwrap();
    flock(&other, FlockOperation::Unlock).unwrap();
    // The hold outlives it.
    assert!(refused(&directory.file(), true, Hold::Usual).is_some());
}

#[test]
fn a_name_is_locked_once_and_leaves_nothing() {
    let name = format!("cryptmark-test-{}", std::process::id());
    let lock = match lock_resource(&name) {
        Ok(lock) => lock,
        Err(error) => {
            println!("skipped: locks in /run/cryptsetup: {error}");
            return;
        }
    };
    let path = Path::new("/run/cryptsetup").join(format!("LN_{name}"));
    assert!(path.exists());
    assert!(matches!(
        lock_resource(&name),
        Err(BlockError::InUse { .. })
    ));
    drop(lock);
    assert!(!path.exists());
    drop(lock_resource(&name).unwrap());
}

#[test]
fn one_file_is_the_same_by_every_path() {
    let directory = Directory::new();
    let copy = directory.folder.path().join("copy");
    fs::copy(directory.file(), &copy).unwrap();
    for other in directory.others() {
        assert!(hold::is_same(&directory.file(), &other));
    }
    assert!(!hold::is_same(&directory.file(), &copy));
    let missing = directory.folder.path().join("missing");
    assert!(!hold::is_same(&directory.file(), &missing));
    // It is about to be made.
    assert!(hold::is_same(
        &missing,
        &directory.folder.path().join("./missing")
    ));
}

#[test]
fn who_writes_is_told_but_not_oneself() {
    let directory = Directory::new();
    let _writer = hold::open(&directory.file(), true, Hold::Usual).unwrap();
    assert_eq!(hold::writers(&directory.file()), []);
    assert_eq!(hold::writers(Path::new("/nowhere")), []);
}

/// Another program that opens the file by this redirection of a shell, and takes no lock.
fn shell(directory: &Directory, redirection: &str) -> Child {
    let mut child = Command::new("sh")
        .arg("-c")
        .arg(format!("exec 3{redirection}; echo; read line"))
        .current_dir(directory.folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It has opened the file.
    let mut said = child.stdout.take().unwrap();
    said.read_exact(&mut [0]).unwrap();
    child
}

#[test]
fn a_writer_without_a_lock_counts() {
    let directory = Directory::new();
    directory.others();
    let path = directory.file();
    for (redirection, writes) in [
        ("<>file", true),
        (">>file", true),
        ("<>hard", true),
        (">>soft", true),
        ("<file", false),
    ] {
        let mut child = shell(&directory, redirection);
        let users = refused(&path, true, Hold::Usual);
        let named = |user: &User| matches!(user, User::Process { pid, .. } if *pid == child.id());
        let is_named = users
            .as_deref()
            .is_some_and(|users| users.iter().any(named));
        assert_eq!(
            (users.is_some(), is_named),
            (writes, writes),
            "{redirection}"
        );
        assert!(
            refused(&path, false, Hold::Usual).is_none(),
            "{redirection}"
        );
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(refused(&path, true, Hold::Usual).is_none(), "{redirection}");
    }
}
