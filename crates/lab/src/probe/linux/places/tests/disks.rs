//! Which disks are listed, and why they are busy.

use super::{Simulated, paths};
use crate::probe::SiteKind;
use std::fs;

#[test]
fn members_of_a_raid_are_busy_and_their_layers_count_once() {
    let mut machine = Simulated::new();
    let mapping = |name: &str, number: &str, disk: &str| {
        machine.disk(
            disk,
            &format!("8:{}", number.replace(':', "")),
            &format!("model of {disk}"),
        );
        machine.mapped(
            name,
            number,
            &format!("{disk}_crypt"),
            "CRYPT-LUKS1-00-x",
            &[disk],
        );
    };
    mapping("dm-0", "253:0", "sdb");
    mapping("dm-1", "253:1", "sdc");
    machine.disk("md0", "9:0", "");
    machine.stack("md0", &["dm-0", "dm-1"]);
    machine.mount("9:0", "/", "/srv", "xfs /dev/md0");
    let sites = machine.directories();
    assert_eq!(sites[1].encrypted_by, ["dm-crypt (LUKS1)"]);
    let device = sites[1].device.as_deref();
    assert_eq!(device, Some("model of sdb (sdb), model of sdc (sdc)"));
    let in_use = machine.disk_at("/dev/dm-0").in_use;
    assert_eq!(in_use.as_deref(), Some("part of md0"));
    let in_use = machine.disk_at("/dev/md0").in_use;
    assert_eq!(in_use.as_deref(), Some("mounted at /srv"));
}

#[test]
fn a_mounted_partition_makes_its_disk_busy_and_not_its_neighbours() {
    let machine = Simulated::new();
    machine.partition("sda", "sda2", "8:2");
    machine.partition("sda", "sda10", "8:10");
    let disks = machine.disks();
    let paths_found = paths(&disks);
    assert_eq!(
        paths_found,
        ["/dev/sda", "/dev/sda1", "/dev/sda2", "/dev/sda10"]
    );
    let in_use: Vec<_> = disks.iter().map(|site| site.in_use.as_deref()).collect();
    let expected = [
        Some("sda1 is mounted at /"),
        Some("mounted at /"),
        None,
        None,
    ];
    assert_eq!(in_use, expected);
    assert!(
        disks
            .iter()
            .all(|site| site.kind == SiteKind::Disk && site.writable)
    );
}

#[test]
fn a_disk_that_is_part_of_another_device_keeps_its_partitions_busy() {
    let machine = Simulated::new();
    machine.disk("sdb", "8:16", "");
    machine.partition("sdb", "sdb1", "8:17");
    machine.mapped("dm-0", "253:0", "mpath", "mpath-0", &["sdb"]);
    let in_use = machine.disk_at("/dev/sdb1").in_use;
    assert_eq!(in_use.as_deref(), Some("sdb is part of mpath (dm-0)"));
    assert_eq!(machine.disk_at("/dev/dm-0").in_use, None);
}

#[test]
fn swap_is_in_use() {
    let machine = Simulated::new();
    machine.partition("sda", "sda2", "8:2");
    machine.mapped("dm-0", "253:0", "swap", "CRYPT-PLAIN-swap", &["sda2"]);
    machine.link("dev/mapper/swap", "dev/dm-0");
    let swaps =
        "Filename\tType\tSize\n/dev/mapper/swap partition 1 0 -2\n/swap\\040file file 1 0 -3\n\n";
    machine.file("proc/swaps", swaps);
    let disk = machine.disk_at("/dev/mapper/swap");
    assert_eq!(disk.in_use.as_deref(), Some("swap"));
    assert_eq!(disk.encrypted_by, ["dm-crypt (plain)"]);
}

#[test]
fn devices_that_are_not_disks_are_left_out() {
    let machine = Simulated::new();
    for (name, number) in [
        ("ram0", "1:0"),
        ("zram0", "251:0"),
        ("sr0", "11:0"),
        ("fd0", "2:0"),
        ("loop0", "7:0"),
        ("nbd0", "43:0"),
        ("nvme0c0n1", "259:0"),
        ("sdr", "65:16"),
        ("sdb", "8:16"),
        ("cciss!c0d0", "104:0"),
        ("loop1", "7:1"),
        ("sdaa", "65:160"),
    ] {
        machine.disk(name, number, "");
    }
    machine.file("sys/devices/nbd0/size", "0\n");
    machine.file("sys/devices/nvme0c0n1/hidden", "1\n");
    machine.file("sys/devices/sdb/ro", "1\n");
    machine.file("sys/devices/loop1/loop/backing_file", "/x.img\n");
    // Another user's device, or one that this container does not have.
    machine.disk("sdc", "8:32", "");
    fs::remove_file(machine.at("/dev/sdc")).unwrap();
    // An extended partition.
    machine.partition("sda", "sda4", "8:4");
    machine.file("sys/devices/sda/sda4/size", "2\n");
    let expected = [
        "/dev/sda",
        "/dev/sda1",
        "/dev/sdr",
        "/dev/sdaa",
        "/dev/loop1",
        "/dev/cciss/c0d0",
    ];
    assert_eq!(paths(&machine.disks()), expected);
}
