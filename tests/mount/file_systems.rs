//! File systems in volumes: made, filled, checked, and there again after a
//! restart.

use crate::mounts::{MIB, Mounts};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use testkit::{Expect as _, have};

/// Files of many sizes, some of them removed again.
fn fill(folder: &Path, seed: u64) -> BTreeMap<String, Vec<u8>> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut files = BTreeMap::new();
    for number in 0..60 {
        let length = match random.next_u64() % 8 {
            0 => random.next_u64() % (2 * MIB),
            _ => random.next_u64() % 40_000,
        };
        let mut data = vec![0; length as usize];
        random.fill_bytes(&mut data);
        let name = format!("file-{number}");
        fs::write(folder.join(&name), &data).unwrap();
        files.insert(name, data);
    }
    for number in (0..60).step_by(3) {
        let name = format!("file-{number}");
        fs::remove_file(folder.join(&name)).unwrap();
        files.remove(&name);
    }
    files
}

fn compare(folder: &Path, files: &BTreeMap<String, Vec<u8>>) {
    for (name, data) in files {
        assert!(fs::read(folder.join(name)).unwrap() == *data, "{name}");
    }
}

/// Makes a file system, fills and checks it, in two lives of the server.
fn stays_whole(size: u64, make: &[&str], check: &[&str]) {
    if !have(&[make[0], check[0]]) {
        return;
    }
    let Some(sandbox) = Mounts::new(size) else {
        return;
    };
    let on_file = |program: &[&str]| {
        sandbox.mount(&["--as", "file"]);
        let mut command = Command::new(program[0]);
        command
            .args(&program[1..])
            .arg(sandbox.path("d/volume"))
            .succeeds();
        sandbox.umount();
    };
    let folder = sandbox.path("d");
    on_file(make);
    sandbox.mount(&["--trim", "pass"]);
    let first = fill(&folder, 1);
    compare(&folder, &first);
    sandbox.umount();
    on_file(check);
    sandbox.mount(&["--trim", "pass", "--mount-options", "noatime"]);
    compare(&folder, &first);
    fs::create_dir(folder.join("more")).unwrap();
    let second = fill(&folder.join("more"), 2);
    sandbox.umount();
    on_file(check);
    sandbox.mount(&["--read-only"]);
    compare(&folder, &first);
    compare(&folder.join("more"), &second);
    assert!(fs::write(folder.join("new"), "").is_err());
    sandbox.umount();
}

#[test]
fn ext4() {
    stays_whole(80, &["mkfs.ext4", "-q"], &["e2fsck", "-fn"]);
}

#[test]
fn ext2() {
    stays_whole(80, &["mkfs.ext2", "-q"], &["e2fsck", "-fn"]);
}

#[test]
fn xfs() {
    stays_whole(340, &["mkfs.xfs", "-q", "-f"], &["xfs_repair", "-n"]);
}

/// `fstrim` in the file system reaches the image, if it may.
#[test]
fn trimming_a_file_system() {
    let Some(sandbox) = Mounts::new(80) else {
        return;
    };
    if !have(&["fstrim", "mkfs.ext4"]) {
        return;
    }
    sandbox.mount(&["--as", "file"]);
    Command::new("mkfs.ext4")
        .arg("-q")
        .arg(sandbox.path("d/volume"))
        .succeeds();
    sandbox.umount();
    let taken = || fs::metadata(sandbox.path("x.img")).unwrap().blocks() * 512;
    for policy in ["pass", "zero", "block"] {
        sandbox.mount(&["--trim", policy]);
        let kept = fill(&sandbox.path("d"), 3);
        sandbox.write("d/large", vec![5; 30 * MIB as usize]);
        Command::new("sync")
            .arg("-f")
            .arg(sandbox.path("d"))
            .succeeds();
        let full = taken();
        fs::remove_file(sandbox.path("d/large")).unwrap();
        // What was freed in a transaction that is open is not trimmed.
        Command::new("sync")
            .arg("-f")
            .arg(sandbox.path("d"))
            .succeeds();
        // A loop device says that it has discarded what was refused.
        Command::new("fstrim").arg(sandbox.path("d")).succeeds();
        match policy {
            "pass" => assert!(taken() <= full - 25 * MIB, "{full} bytes are still taken"),
            _ => assert!(taken() >= full, "{policy}"),
        }
        compare(&sandbox.path("d"), &kept);
        sandbox.umount();
    }
}

/// A user gets at ext4 by `fuse2fs`, and at the rest by the file.
#[test]
fn without_root() {
    if !have(&["setpriv", "fusermount3"]) {
        return;
    }
    let Some(sandbox) = Mounts::of_user(60) else {
        return;
    };
    sandbox.mount(&[]);
    assert!(sandbox.has_mounts_at("d"));
    sandbox.subcommand("mount").args(["x.img", "d"]).fails(4);
    let program = if have(&["mkfs.ext4"]) {
        "mkfs.ext4"
    } else {
        return;
    };
    let mut make = Command::new("setpriv");
    make.args([
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        program,
        "-q",
    ]);
    make.args(["-E", "root_owner=65534:65534"]);
    make.arg(sandbox.path("d/volume")).succeeds();
    sandbox.umount();
    if !have(&["fuse2fs"]) {
        return;
    }
    for round in 0..2 {
        sandbox.mount(&["--as", "fs"]);
        let mut shell = Command::new("setpriv");
        shell.args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "sh",
            "-c",
        ]);
        let script = match round {
            0 => "mkdir d/m && echo content > d/m/file",
            _ => "test \"$(cat d/m/file)\" = content",
        };
        shell.arg(script).current_dir(sandbox.path("")).succeeds();
        sandbox.umount();
    }
}

/// Who has written the volume elsewhere is not root here, unless root says so.
#[test]
fn programs_of_root_and_devices_are_none_in_a_volume() {
    if !have(&["mkfs.ext4"]) {
        return;
    }
    let Some(sandbox) = Mounts::new(20) else {
        return;
    };
    sandbox.mount(&["--as", "file"]);
    Command::new("mkfs.ext4")
        .arg("-q")
        .arg(sandbox.path("d/volume"))
        .succeeds();
    sandbox.umount();
    let folder = sandbox.path("d").canonicalize().unwrap();
    let options = || {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let at = format!(" {} ", folder.display());
        let line = mounts.lines().find(|line| line.contains(&at)).unwrap();
        line.split(' ').nth(3).unwrap().to_owned()
    };
    sandbox.mount(&[]);
    let usual = options();
    sandbox.umount();
    sandbox.mount(&["--mount-options", "suid,dev"]);
    let insisted = options();
    sandbox.umount();
    for word in ["nosuid", "nodev"] {
        assert!(usual.split(',').any(|it| it == word), "{usual}");
        assert!(!insisted.split(',').any(|it| it == word), "{insisted}");
    }
}
