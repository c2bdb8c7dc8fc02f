//! Which directories are listed.

use super::super::directories::{Candidate, Look, ask_all, choose};
use super::super::{Machine, Mounts, places};
use super::{Simulated, paths};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[test]
fn a_file_system_is_listed_once_with_the_current_directory_first() {
    let mut machine = Simulated::new();
    machine.disk("sdb", "8:16", "");
    machine.mount("8:16", "/", "/mnt/my\\040disk", "ext4 /dev/sdb");
    machine.mount("8:16", "/docker", "/var/lib/docker", "ext4 /dev/sdb");
    machine.folder("/mnt/my disk/here");
    machine.folder("/home/me");
    machine.link("/link", "/mnt/my disk/here");
    machine.current = Some("/link".into());
    machine.home = Some("/home/me".into());
    assert_eq!(
        paths(&machine.directories()),
        ["/mnt/my disk/here", "/home/me"]
    );
    machine.current = None;
    machine.home = None;
    // The mount of the whole file system comes before the bind mount.
    assert_eq!(paths(&machine.directories()), ["/", "/mnt/my disk"]);
    let in_use = machine.disk_at("/dev/sdb").in_use;
    assert_eq!(in_use.as_deref(), Some("mounted at /mnt/my disk"));
}

#[test]
fn mounts_that_hold_no_files_of_users_are_left_out() {
    let mut machine = Simulated::new();
    machine.disk("loop0", "7:0", "");
    machine.file(
        "sys/devices/loop0/loop/backing_file",
        "/var/lib/snapd/x.snap\n",
    );
    machine.disk("sdb", "8:16", "");
    for (number, point, what) in [
        ("0:20", "/proc", "proc proc"),
        ("0:21", "/sys", "sysfs sysfs"),
        ("0:22", "/dev", "devtmpfs udev"),
        ("0:23", "/run", "tmpfs tmpfs"),
        ("0:24", "/var/lib/docker/x", "overlay overlay"),
        ("0:25", "/run/user/1/doc", "fuse.portal portal"),
        ("0:26", "/net", "autofs systemd-1"),
        ("7:0", "/snap/x", "squashfs /dev/loop0"),
        ("8:16", "/boot/efi", "vfat /dev/sdb"),
        ("0:27", "/tmp", "tmpfs tmpfs"),
        ("0:28", "/dev/shm", "tmpfs tmpfs"),
        ("0:29", "/mnt/nas", "nfs4 nas:/export"),
        ("0:30", "/tank", "zfs pool/open"),
        ("0:31", "/tank/secret", "zfs pool/secret"),
        ("259:9", "/data", "ext4 /dev/not-seen"),
    ] {
        machine.mount(number, "/", point, what);
    }
    let read_only = b"99 2 8:17 / /cd ro - iso9660 /dev/sdb ro\n";
    machine.mounts.extend(read_only);
    machine.folder("/cd");
    let sites = machine.directories();
    let expected = [
        "/",
        "/tmp",
        "/dev/shm",
        "/mnt/nas",
        "/tank",
        "/tank/secret",
        "/data",
    ];
    assert_eq!(paths(&sites), expected);
    let media: Vec<_> = sites.iter().map(|site| site.medium.as_str()).collect();
    assert_eq!(
        media,
        [
            "ssd", "ram", "ram", "unknown", "unknown", "unknown", "unknown"
        ]
    );
    assert_eq!(sites[4].encrypted_by, [""; 0]);
    assert_eq!(sites[5].encrypted_by, ["ZFS"]);
}

#[test]
fn the_root_of_a_container_is_listed() {
    let mut machine = Simulated::new();
    machine.mounts.clear();
    machine.points.clear();
    machine.mount("0:40", "/", "/", "overlay overlay");
    machine.file("/etc/hosts", "");
    machine
        .mounts
        .extend(b"9 2 8:1 /x/hosts /etc/hosts rw - ext4 /dev/sda1 rw\n");
    let sites = machine.directories();
    assert_eq!(paths(&sites), ["/"]);
    assert_eq!(
        (sites[0].device.as_deref(), sites[0].medium.as_str()),
        (None, "unknown")
    );
}

#[test]
fn btrfs_is_found_by_its_source() {
    let mut machine = Simulated::new();
    machine.mapped("dm-0", "253:0", "crypt", "CRYPT-LUKS2-00-crypt", &["sda1"]);
    machine.link("dev/mapper/crypt", "dev/dm-0");
    machine.mount("0:30", "/@home", "/home", "btrfs /dev/mapper/crypt");
    machine.mount("0:30", "/@", "/mnt", "btrfs /dev/mapper/crypt");
    let sites = machine.directories();
    assert_eq!(paths(&sites), ["/", "/home"]);
    assert_eq!(sites[1].encrypted_by, ["dm-crypt (LUKS2)"]);
    let in_use = machine.disk_at("/dev/mapper/crypt").in_use;
    assert_eq!(in_use.as_deref(), Some("mounted at /home"));
}

#[test]
fn hostile_and_missing_files_are_endured() {
    let empty = tempfile::tempdir().unwrap();
    let machine = Machine::new(empty.path(), Some("/x".into()), None, |_| false);
    assert!(machine.directories().is_empty() && machine.disks().is_empty());

    let mut machine = Simulated::new();
    machine.mapped("dm-0", "253:0", "\u{1b}[2J\n", "CRYPT-LUKS2", &["sda1"]);
    machine.mapped("dm-1", "253:1", "../../../etc", "CRYPT", &["dm-0"]);
    // A circle.
    machine.stack("dm-0", &["dm-1"]);
    machine.disk("loop0", "7:0", "");
    machine.file(
        "sys/devices/loop0/loop/backing_file",
        "relative (deleted)\n",
    );
    machine.mount("253:1", "/", "/a", "ext4 /dev/dm-1");
    machine.file("sys/devices/sda/size", "99999999999999999999999\n");
    machine.file("sys/devices/sda/sda1/size", &format!("{}\n", u64::MAX));
    machine.file("sys/devices/sda/queue/rotational", "\u{0}maybe");
    fs::write(machine.at("sys/devices/dm-0/dm/name"), b"\xff\xfe").unwrap();
    machine.file(
        "proc/swaps",
        "\u{0}\n\n   \n/dev\n/dev/\n/dev/..\n/dev/../sys\n\\777",
    );
    machine
        .mounts
        .extend(b"\n\xff\n5 2 253:1\n6 2 8:1 /../.. /../../x rw - ext4 /dev/../.. rw\n");
    machine
        .mounts
        .extend(b"7 2 0:9 / /\xff rw - btrfs /dev/../../../etc rw\n");
    let machine = machine.build();
    let sites = [machine.directories(), machine.disks()].concat();
    assert!(sites.iter().any(|site| site.path == Path::new("/a")));
    let layers = sites.iter().find(|site| site.path == Path::new("/a"));
    assert_eq!(layers.unwrap().encrypted_by, ["dm-crypt (LUKS2)"]);
}

#[test]
fn the_first_directory_that_can_be_written_is_chosen() {
    let machine = {
        let mut machine = Simulated::new();
        machine.mount("8:2", "/", "/data", "ext4 /dev/sda2");
        machine.mount("0:20", "/", "/proc", "proc proc");
        machine.build()
    };
    let candidate = |path: &str, own| {
        let path = PathBuf::from(path);
        let mount = machine.mounts.holding(&path).unwrap();
        Candidate { path, mount, own }
    };
    let look = |writable, encrypted| Look {
        size: 10,
        free: 5,
        writable,
        encrypted,
    };
    let chosen = |seen: Vec<(Candidate, Look)>| -> Vec<(String, bool)> {
        let chosen = choose(seen.into_iter()).into_iter();
        chosen
            .map(|(candidate, look)| (candidate.path.display().to_string(), look.writable))
            .collect()
    };
    let pair = |path: &str, writable| (path.to_owned(), writable);

    // The directory of the current file system stays in front.
    let seen = vec![
        (candidate("/etc", true), look(false, false)),
        (candidate("/data/home", true), look(true, false)),
        (candidate("/", false), look(false, false)),
        (candidate("/var/tmp", false), look(true, false)),
        (candidate("/tmp", false), look(true, false)),
    ];
    let expected = [pair("/var/tmp", true), pair("/data/home", true)];
    assert_eq!(chosen(seen), expected);

    // Own directories are listed even so, others are not.
    let seen = vec![
        (candidate("/etc", true), look(false, false)),
        (candidate("/data", false), look(false, false)),
    ];
    assert_eq!(chosen(seen), [pair("/etc", false)]);

    // fscrypt encrypts the home and not the rest.
    let seen = vec![
        (candidate("/home/me", true), look(true, true)),
        (candidate("/", false), look(false, false)),
        (candidate("/tmp", false), look(true, false)),
    ];
    assert_eq!(chosen(seen), [pair("/home/me", true), pair("/tmp", true)]);

    let none = Look {
        size: 0,
        ..look(true, false)
    };
    assert_eq!(chosen(vec![(candidate("/proc", true), none)]), []);
}

#[test]
fn a_file_system_that_does_not_answer_is_left_alone() {
    let ask = |path: &Path| {
        if path == Path::new("/gone") {
            std::thread::sleep(Duration::from_secs(60));
        }
        Some(path.to_owned())
    };
    let begin = Instant::now();
    let paths = ["/gone", "/here", "/gone"].map(PathBuf::from).to_vec();
    let answers = ask_all(paths, ask, Duration::from_secs(1));
    assert_eq!(answers, [None, Some("/here".into()), None]);
    assert!(begin.elapsed() < Duration::from_secs(30));
}

#[test]
fn this_machine_has_places() {
    let sites = places();
    assert!(
        sites
            .iter()
            .all(|site| site.size > 0 && !site.medium.is_empty())
    );
    let mounts = Mounts::read(Path::new("/proc"));
    let current = std::env::current_dir().unwrap();
    let first = mounts.holding(&sites[0].path).unwrap();
    assert_eq!(first.number, mounts.holding(&current).unwrap().number);
    let medium = crate::probe::describe(&sites[0].path).kind;
    assert_eq!(sites[0].medium, medium);
}
