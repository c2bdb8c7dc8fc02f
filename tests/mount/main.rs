//! Volumes that are mounted, as files and as file systems: what is in them
//! stays in them, and nothing is left behind.

mod ending;
mod file_systems;
mod mounts;
mod served;
mod suites;

use block::model::{Discarded, Model};
use block::{BlockDevice, FileDevice, FileOptions};
use mounts::{MIB, Mounts, PROGRAM};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use testkit::{CHEAP, Expect as _, have};

fn read_and_write(path: &Path) -> File {
    File::options().read(true).write(true).open(path).unwrap()
}

#[test]
fn the_file_equals_the_model() {
    // LUKS2's header takes 16 MiB.
    let Some(sandbox) = Mounts::new(18) else {
        return;
    };
    for (seed, policy) in (0..).zip(["block", "pass", "zero"]) {
        sandbox.mount(&["--as", "file", "--trim", policy]);
        for direct in [false, true] {
            let options = FileOptions {
                write: true,
                direct,
                engine: Some(block::Engine::Threads),
                hold: block::Hold::Usual,
            };
            let device = FileDevice::open(&sandbox.path("d/volume"), &options).unwrap();
            assert_eq!(device.is_direct(), direct);
            assert_eq!(
                device.geometry().discard_granularity.is_some(),
                policy != "block"
            );
            Model {
                discarded: Discarded::Zeros,
                longest: MIB + 4096,
                steps: 120,
                ..Model::new(seed)
            }
            .run(&device);
        }
        sandbox.umount();
    }
}

/// What an observer of the image sees of 8 MiB that are discarded, and what
/// they read as, then and later.
#[test]
fn discards_follow_the_policy() {
    let Some(sandbox) = Mounts::new(40) else {
        return;
    };
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let (start, length) = (4 * MIB, 8 * MIB);
    let image = sandbox.path("x.img");
    let digest = || Sha256::digest(fs::read(&image).unwrap());
    let taken = || fs::metadata(&image).unwrap().blocks() * 512;
    let read = || {
        let file = read_and_write(&sandbox.path("d/volume"));
        let mut data = vec![1; length as usize];
        file.read_exact_at(&mut data, start).unwrap();
        data
    };
    for policy in ["block", "zero", "pass"] {
        sandbox.mount(&["--as", "file", "--trim", policy]);
        let file = read_and_write(&sandbox.path("d/volume"));
        let size = file.metadata().unwrap().len();
        file.write_all_at(&vec![7; size as usize], 0).unwrap();
        file.sync_all().unwrap();
        let (before, full) = (digest(), taken());
        let punched = fallocate(&file, hole, start, length);
        file.sync_all().unwrap();
        drop(file);
        match policy {
            "block" => {
                assert_eq!(punched, Err(Errno::OPNOTSUPP));
                assert!(digest() == before, "nothing may reach the image");
                assert!(read().iter().all(|&byte| byte == 7));
            }
            "zero" => {
                punched.unwrap();
                assert!(digest() != before);
                assert_eq!(taken(), full);
                assert!(read().iter().all(|&byte| byte == 0));
            }
            _ => {
                punched.unwrap();
                assert!(taken() <= full - length, "{full} bytes are still taken");
                assert!(read().iter().all(|&byte| byte == 0));
            }
        }
        sandbox.umount();
        sandbox.mount(&["--as", "file", "--trim", policy]);
        let expected = if policy == "block" { 7 } else { 0 };
        assert!(read().iter().all(|&byte| byte == expected), "{policy}");
        sandbox.umount();
    }
}

/// What has read as zeros reads as zeros in every later opening, of whatever format, also after a
/// reencryption and in a copy without holes.
#[test]
fn punched_holes_are_zeros_in_every_later_opening() {
    let Some(sandbox) = Mounts::new(20) else {
        return;
    };
    let vera = "--type veracrypt --veracrypt-pim 1 --hash sha512";
    let plain = "--type plain --cipher aes-xts-plain64 --key-size 256 --hash sha256";
    for line in [
        &format!("create 1.img --type luks1 --size 4MiB --passphrase-file line {CHEAP}"),
        "create v.hc --type veracrypt --veracrypt-pim 1 --size 4MiB --quick --yes --passphrase-file line",
        "create p.img --type plain --size 4MiB",
    ] {
        sandbox.volume(line);
    }
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let range = 65_536..65_536 + MIB as usize;
    for (image, options) in [
        ("x.img", ""),
        ("1.img", ""),
        ("v.hc", vera),
        ("p.img", plain),
    ] {
        let words: Vec<&str> = options.split_whitespace().collect();
        let mut mount = sandbox.subcommand("mount");
        mount.args([
            image, "d", "--daemon", "--as", "file", "--trim", "pass", "--yes",
        ]);
        mount.args(&words).succeeds();
        let file = read_and_write(&sandbox.path("d/volume"));
        file.write_all_at(&vec![7; 2 * MIB as usize], 0).unwrap();
        file.sync_all().unwrap();
        fallocate(&file, hole, range.start as u64, range.len() as u64).unwrap();
        file.sync_all().unwrap();
        drop(file);
        sandbox.subcommand("umount").arg(image).succeeds();
        let check = |image: &str, what: &str| {
            let _ = fs::remove_file(sandbox.path("out"));
            let mut export = sandbox.subcommand("export");
            export
                .args([image, "--output", "out"])
                .args(&words)
                .succeeds();
            let out = sandbox.read("out");
            let (before, rest) = out[..2 * MIB as usize].split_at(range.start);
            let (punched, after) = rest.split_at(range.len());
            assert!(punched.iter().all(|&byte| byte == 0), "{image}: {what}");
            let others = before.iter().chain(after);
            assert!(others.into_iter().all(|&byte| byte == 7), "{image}: {what}");
        };
        check(image, "opened without --trim pass");
        fs::write(sandbox.path("copy"), sandbox.read(image)).unwrap();
        check("copy", "a copy without holes");
        if image == "x.img" {
            let line = format!("reencrypt x.img {CHEAP} --passphrase-file line --no-progress");
            sandbox.volume(&line);
            check(image, "reencrypted");
        }
    }
}

/// A directory, or one above it, is replaced by a link while a passphrase is asked for.
#[test]
fn a_place_that_is_replaced_meanwhile_is_not_mounted_on() {
    let Some(sandbox) = Mounts::new(20) else {
        return;
    };
    let path = |name: &str| sandbox.path(name);
    fs::create_dir_all(path("above/at")).unwrap();
    fs::create_dir_all(path("precious/at")).unwrap();
    sandbox.write("precious/file", "");
    let fifo = path("asked");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).unwrap();
    for (command, changed, leads_to) in [
        ("mount x.img above/at --as file", "above/at", "precious/at"),
        ("mount x.img above/at --as fs", "above/at", "precious/at"),
        ("mount x.img above/at --as file", "above", "precious"),
        ("serve x.img --fuse above/file", "above", "precious"),
        ("serve x.img --fuse above/new", "above", "precious"),
    ] {
        sandbox.write("above/file", "");
        let mut command = sandbox.volume_command(&format!("{command} --passphrase-file asked"));
        let child = command
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // It opens when the passphrase is read.
        let mut asked = File::options().write(true).open(&fifo).unwrap();
        fs::rename(path(changed), path("moved")).unwrap();
        symlink(path(leads_to), path(changed)).unwrap();
        asked.write_all(b"a passphrase\n").unwrap();
        drop(asked);
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(4), "{said}");
        assert!(said.contains("moved or replaced"), "{said}");
        assert!(!path("precious/new").exists() && !path("moved/new").exists());
        fs::remove_file(path(changed)).unwrap();
        fs::rename(path("moved"), path(changed)).unwrap();
        assert!(sandbox.is_tidy());
    }
}

#[test]
fn who_only_reads_changes_nothing() {
    let Some(sandbox) = Mounts::new(20) else {
        return;
    };
    sandbox.mount(&["--as", "file", "--read-only"]);
    let path = sandbox.path("d/volume");
    let refused = File::options().write(true).open(&path).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(Errno::ROFS.raw_os_error()));
    // Two may read.
    fs::create_dir(sandbox.path("second")).unwrap();
    let read_only = ["x.img", "second", "--daemon", "--as", "file", "--read-only"];
    sandbox.subcommand("mount").args(read_only).succeeds();
    assert_eq!(fs::read(&path).unwrap(), sandbox.read("second/volume"));
    sandbox.subcommand("umount").arg("second").succeeds();
    sandbox.umount();
}

#[test]
fn what_cannot_be_mounted_is_said() {
    let Some(sandbox) = Mounts::new(20) else {
        return;
    };
    sandbox.write("wrong", "another passphrase\n");
    sandbox.write("file", "");
    fs::create_dir(sandbox.path("full")).unwrap();
    sandbox.write("full/x", "");
    let mount = |arguments: &[&str]| {
        let mut command = sandbox.subcommand("mount");
        command.args(arguments).args(["--as", "file"]);
        command
    };
    for daemon in [&[][..], &["--daemon"]] {
        for (directory, code) in [("nowhere", 2), ("file", 2), ("full", 4)] {
            mount(&[&["x.img", directory], daemon].concat()).fails(code);
        }
        mount(&[&["nothing.img", "d"], daemon].concat()).fails(2);
        let mut wrong = std::process::Command::new(PROGRAM);
        wrong.args([
            "volume",
            "mount",
            "x.img",
            "d",
            "--passphrase-file",
            "wrong",
        ]);
        wrong.args(daemon).current_dir(sandbox.path("")).fails(3);
        // A fresh volume has no file system.
        let mut empty = sandbox.subcommand("mount");
        empty.args(["x.img", "d"]).args(daemon).fails(1);
        assert!(sandbox.is_tidy());
    }
    sandbox.subcommand("umount").arg("d").fails(2);
    mount(&["x.img", "d"]).args(["--fs-type", "ext4"]).fails(2);

    sandbox.mount(&["--as", "file"]);
    fs::create_dir(sandbox.path("second")).unwrap();
    for options in [&[][..], &["--read-only"]] {
        mount(&["x.img", "second"]).args(options).fails(4);
    }
    sandbox.umount();
}

/// Moves the volume to a disk that is too small for all of it.
fn to_a_small_disk(sandbox: &Mounts) -> Unmounted {
    let small = sandbox.path("small");
    fs::create_dir(&small).unwrap();
    let mut tmpfs = std::process::Command::new("mount");
    let options = ["-t", "tmpfs", "-o", "size=24m", "none"];
    tmpfs.args(options).arg(&small).succeeds();
    let unmounted = Unmounted(small.clone());
    // Sparse, as it was made.
    let mut copy = std::process::Command::new("cp");
    copy.arg("--sparse=always")
        .arg(sandbox.path("x.img"))
        .arg(&small)
        .succeeds();
    fs::remove_file(sandbox.path("x.img")).unwrap();
    std::os::unix::fs::symlink(small.join("x.img"), sandbox.path("x.img")).unwrap();
    unmounted
}

/// Who unmounts hears that there were writes that failed.
fn umount_after_failures(sandbox: &Mounts) {
    let said = sandbox.subcommand("umount").arg("d").fails(1);
    for words in [
        "writes and flushes of",
        "their data may be missing",
        "No space left on device",
        "Free some space",
    ] {
        assert!(said.contains(words), "{said}");
    }
    assert!(sandbox.is_tidy());
}

/// A full disk below: the writer hears of it each time, the user once, and the
/// server goes on.
#[test]
fn a_full_disk_below_is_told() {
    let Some(sandbox) = Mounts::new(64) else {
        return;
    };
    let _unmounted = to_a_small_disk(&sandbox);
    sandbox.mount(&["--as", "file"]);
    let file = read_and_write(&sandbox.path("d/volume"));
    let data = vec![7; MIB as usize];
    let mut full = 0;
    for at in 0..40 {
        match file.write_all_at(&data, at * MIB) {
            Ok(()) => assert_eq!(full, 0),
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(Errno::NOSPC.raw_os_error()));
                full += 1;
            }
        }
    }
    assert!(full > 2, "{full} writes did not fit");
    let mut found = vec![0; MIB as usize];
    file.read_exact_at(&mut found, 0).unwrap();
    assert!(found == data);
    drop(file);
    let status = sandbox.status().unwrap();
    let errors = status["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 1, "{errors:?}");
    umount_after_failures(&sandbox);
}

/// What a file system writes later has nobody who could be told, but for who unmounts.
#[test]
fn writes_of_a_file_system_that_came_too_late_are_told() {
    if !have(&["mkfs.ext4"]) {
        return;
    }
    let Some(sandbox) = Mounts::new(64) else {
        return;
    };
    let _unmounted = to_a_small_disk(&sandbox);
    sandbox.mount(&["--as", "file"]);
    let mut make = std::process::Command::new("mkfs.ext4");
    make.args(["-q", "-O", "^has_journal", "-E", "nodiscard"]);
    make.arg(sandbox.path("d/volume")).succeeds();
    sandbox.umount();
    sandbox.mount(&[]);
    sandbox.write("d/large", vec![7; 30 * MIB as usize]);
    umount_after_failures(&sandbox);
}

/// A server that nobody unmounts says it in its end.
#[test]
fn a_server_in_the_foreground_that_could_not_write_ends_with_1() {
    let Some(sandbox) = Mounts::new(64) else {
        return;
    };
    let _unmounted = to_a_small_disk(&sandbox);
    let mut server = sandbox.in_foreground(&["--as", "file"]);
    let file = read_and_write(&sandbox.path("d/volume"));
    let data = vec![7; MIB as usize];
    let full = (0..40).filter(|at| file.write_all_at(&data, at * MIB).is_err());
    assert!(full.count() > 2);
    drop(file);
    mounts::kill(sandbox.pid(), rustix::process::Signal::TERM);
    assert_eq!(server.wait().unwrap().code(), Some(1));
    assert!(sandbox.is_tidy());
}

struct Unmounted(PathBuf);

impl Drop for Unmounted {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount")
            .arg("-l")
            .arg(&self.0)
            .output();
    }
}
