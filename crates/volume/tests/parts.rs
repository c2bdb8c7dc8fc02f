//! Tables of disks that lie: each is refused, or the part that it concerns is.

#[path = "parts/maker.rs"]
mod maker;

use block::{BlockDevice, ByteRange, RamDevice};
use cryptmark_volume::parts::{Obstacle, Part, PartError, Parts};
use maker::{AREA, DISK, GROUP, TEXT, gpt, lvm, mbr, mend, old_raid, raid};

fn find(disk: &[u8]) -> Parts {
    let device = RamDevice::new(disk.len() as u64);
    device.write_at(0, disk).unwrap();
    Parts::find(&device).unwrap()
}

fn names(parts: &Parts) -> Vec<&str> {
    parts.all.iter().map(|part| part.name.as_str()).collect()
}

fn sectors(part: &Part) -> Vec<(u64, u64)> {
    let in_sectors = |range: &ByteRange| (range.offset / 512, range.length / 512);
    part.ranges.iter().map(in_sectors).collect()
}

fn reason(part: &Part) -> &str {
    match &part.obstacle {
        Some(Obstacle::Unusable(reason) | Obstacle::ReadOnly(reason)) => reason,
        None => "",
    }
}

#[test]
fn every_kind_is_found() {
    let parts = find(&gpt());
    assert_eq!(names(&parts), ["1", "3"]);
    assert_eq!(parts.all[1].label.as_deref(), Some("three"));
    assert_eq!(sectors(&parts.all[0]), [(64, 64)]);
    assert_eq!(sectors(&parts.all[1]), [(256, 128)]);
    assert!(parts.remarks.is_empty());

    let parts = find(&mbr());
    assert_eq!(names(&parts), ["1", "5", "6"]);
    let places: Vec<_> = parts.all.iter().flat_map(sectors).collect();
    assert_eq!(places, [(8, 16), (34, 30), (100, 60)]);

    let parts = find(&lvm());
    let group = ["vg/root", "vg/far", "vg/thin", "vg/slow", "vg/old"];
    assert_eq!(names(&parts), group);
    assert_eq!(sectors(&parts.all[0]), [(32, 16), (104, 8)]);
    let reasons: Vec<&str> = parts.all.iter().map(reason).collect();
    assert_eq!(reasons[0], "");
    assert_eq!(reasons[1], "part of it is on another disk");
    assert!(reasons[2].contains("an LVM volume of type `thin`"));
    assert!(reasons[3].contains("striped across several disks"));
    assert_eq!(reasons[4], "writing would change a snapshot of it");

    for (disk, place) in [(raid(), (64, 128)), (old_raid(), (0, 384))] {
        let parts = find(&disk);
        assert_eq!(names(&parts), ["raid"]);
        assert_eq!(sectors(&parts.all[0]), [place]);
        assert!(reason(&parts.all[0]).contains("one of 2 disks of a mirror"));
    }
    assert!(find(&vec![0; DISK]).all.is_empty());
}

/// A group in a mirror in a partition: what is inside cannot be written either.
#[test]
fn parts_inside_parts_are_ranges_of_the_disk() {
    let mut disk = gpt();
    disk.resize(4 * DISK, 0);
    let inner = {
        let mut mirror = raid();
        mirror.resize(3 * DISK, 0);
        mirror[4096 + 80..4096 + 88].copy_from_slice(&(DISK as u64 / 512).to_le_bytes());
        mend(&mut mirror);
        mirror[64 * 512..][..DISK].copy_from_slice(&lvm());
        mirror
    };
    let last = disk[1024 + 40..].first_chunk_mut::<8>().unwrap();
    *last = (64 + inner.len() as u64 / 512 - 1).to_le_bytes();
    disk[64 * 512..][..inner.len()].copy_from_slice(&inner);
    // The second partition would lie on the first.
    disk[1024 + 256..][..128].fill(0);
    mend(&mut disk);
    let parts = find(&disk);
    assert_eq!(names(&parts)[..3], ["1", "1/raid", "1/raid/vg/root"]);
    assert_eq!(
        sectors(&parts.all[2]),
        [(64 + 64 + 32, 16), (64 + 64 + 104, 8)]
    );
    assert!(parts.choose("vg/root", false).is_ok());
    assert!(matches!(
        parts.choose("1/raid/vg/root", true),
        Err(PartError::Obstacle { writing: true, .. })
    ));
}

/// The result for a disk with false metadata: the number of usable parts, that of unusable ones,
/// and whether there is a remark about the table.
#[derive(Debug, PartialEq)]
struct Seen(usize, usize, bool);

fn seen(disk: &[u8]) -> Seen {
    let parts = find(disk);
    let unusable = |part: &&Part| matches!(part.obstacle, Some(Obstacle::Unusable(_)));
    let bad = parts.all.iter().filter(unusable).count();
    for part in &parts.all {
        for range in &part.ranges {
            assert!(range.end().unwrap() <= disk.len() as u64, "{part:?}");
        }
    }
    Seen(parts.all.len() - bad, bad, !parts.remarks.is_empty())
}

type Lie = (&'static str, fn() -> Vec<u8>, usize, &'static [u8], Seen);

/// Both copies of the GPT lie: of a lie in one, the other is read.
const BACKUP: usize = DISK - 512;

#[test]
fn lies_of_one_field() {
    const MAX32: &[u8] = &[0xff; 4];
    const MAX64: &[u8] = &[0xff; 8];
    let lies: &[Lie] = &[
        (
            "gpt: header of 0 bytes",
            gpt,
            512 + 12,
            &[0],
            Seen(2, 0, true),
        ),
        (
            "gpt: header of 4 GiB",
            gpt,
            512 + 12,
            MAX32,
            Seen(2, 0, true),
        ),
        (
            "gpt: it is elsewhere",
            gpt,
            512 + 24,
            &[2],
            Seen(2, 0, true),
        ),
        (
            "gpt: its table is behind the end",
            gpt,
            512 + 72,
            MAX64,
            Seen(2, 0, true),
        ),
        (
            "gpt: its table is itself",
            gpt,
            512 + 72,
            &[1],
            Seen(2, 0, true),
        ),
        ("gpt: 2^32 entries", gpt, 512 + 80, MAX32, Seen(2, 0, true)),
        ("gpt: no entries", gpt, 512 + 80, &[0; 4], Seen(2, 0, true)),
        (
            "gpt: entries of 0 bytes",
            gpt,
            512 + 84,
            &[0; 4],
            Seen(2, 0, true),
        ),
        (
            "gpt: entries of 4 GiB",
            gpt,
            512 + 84,
            MAX32,
            Seen(2, 0, true),
        ),
        (
            "gpt: entries of 64 bytes",
            gpt,
            512 + 84,
            &[64],
            Seen(2, 0, true),
        ),
        (
            "gpt: it begins at the end of time",
            gpt,
            1024 + 32,
            MAX64,
            Seen(1, 1, false),
        ),
        (
            "gpt: it ends at the end of time",
            gpt,
            1024 + 40,
            MAX64,
            Seen(1, 1, false),
        ),
        (
            "gpt: it ends before it begins",
            gpt,
            1024 + 40,
            &[1],
            Seen(1, 1, false),
        ),
        (
            "gpt: it ends behind the disk",
            gpt,
            1024 + 41,
            &[9],
            Seen(1, 1, false),
        ),
        (
            "gpt: a name without an end",
            gpt,
            1024 + 56,
            &[0xff; 72],
            Seen(2, 0, false),
        ),
        ("mbr: no signature", mbr, 510, &[0], Seen(0, 0, false)),
        (
            "mbr: code where the table is",
            mbr,
            446,
            b"\xeb\x3c",
            Seen(0, 0, false),
        ),
        (
            "mbr: a partition of nothing",
            mbr,
            446 + 12,
            &[0; 4],
            Seen(0, 0, false),
        ),
        (
            "mbr: it begins with the table",
            mbr,
            446 + 8,
            &[0; 4],
            Seen(0, 0, false),
        ),
        (
            "mbr: it ends behind the disk",
            mbr,
            446 + 12,
            MAX32,
            Seen(2, 1, false),
        ),
        (
            "mbr: the chain begins behind the disk",
            mbr,
            462 + 8,
            MAX32,
            Seen(1, 0, false),
        ),
        (
            "mbr: a logical one behind the disk",
            mbr,
            32 * 512 + 454,
            MAX32,
            Seen(2, 1, false),
        ),
        (
            "mbr: the chain goes on behind the disk",
            mbr,
            32 * 512 + 470,
            MAX32,
            Seen(2, 0, false),
        ),
        (
            "lvm: its header is behind its sector",
            lvm,
            512 + 20,
            MAX32,
            Seen(0, 0, true),
        ),
        (
            "lvm: it is another disk",
            lvm,
            512 + 32,
            b"9",
            Seen(0, 0, true),
        ),
        (
            "lvm: no areas of metadata",
            lvm,
            512 + 104,
            &[0; 8],
            Seen(0, 0, true),
        ),
        (
            "lvm: metadata behind the disk",
            lvm,
            512 + 104,
            MAX64,
            Seen(0, 0, true),
        ),
        (
            "lvm: a text of 2^64 bytes",
            lvm,
            AREA + 48,
            MAX64,
            Seen(0, 0, true),
        ),
        (
            "lvm: a text behind its area",
            lvm,
            AREA + 40,
            MAX64,
            Seen(0, 0, true),
        ),
        (
            "lvm: a text in its header",
            lvm,
            AREA + 40,
            &[1, 0],
            Seen(0, 0, true),
        ),
        ("lvm: no text", lvm, AREA + 40, &[0, 0], Seen(0, 0, true)),
        (
            "lvm: ignored metadata",
            lvm,
            AREA + 60,
            &[1],
            Seen(0, 0, true),
        ),
        (
            "lvm: a text that is none",
            lvm,
            TEXT,
            &[0xff; 40],
            Seen(0, 0, true),
        ),
        (
            "lvm: brackets without an end",
            lvm,
            TEXT,
            b"a { b { c {",
            Seen(0, 0, true),
        ),
        (
            "raid: another place",
            raid,
            4096 + 144,
            &[9],
            Seen(0, 0, false),
        ),
        (
            "raid: 2^32 roles",
            raid,
            4096 + 220,
            MAX32,
            Seen(0, 0, false),
        ),
        (
            "raid: no roles",
            raid,
            4096 + 220,
            &[0; 4],
            Seen(0, 1, false),
        ),
        (
            "raid: a disk that is none of its",
            raid,
            4096 + 160,
            MAX32,
            Seen(0, 1, false),
        ),
        ("raid: a spare", raid, 4096 + 160, &[2], Seen(0, 1, false)),
        (
            "raid: being rebuilt",
            raid,
            4096 + 8,
            &[2],
            Seen(0, 1, false),
        ),
        ("raid: level 5", raid, 4096 + 72, &[5], Seen(0, 1, false)),
        ("raid: level -1", raid, 4096 + 72, MAX32, Seen(0, 1, false)),
        (
            "raid: data of 2^64 sectors",
            raid,
            4096 + 80,
            MAX64,
            Seen(0, 1, false),
        ),
        ("raid: no data", raid, 4096 + 80, &[0; 8], Seen(0, 1, false)),
        (
            "raid: data behind the disk",
            raid,
            4096 + 128,
            MAX64,
            Seen(0, 1, false),
        ),
        (
            "old raid: data of 4 TiB",
            old_raid,
            DISK - 65536 + 32,
            MAX32,
            Seen(0, 1, false),
        ),
        (
            "old raid: a spare",
            old_raid,
            DISK - 65536 + 4 * 996,
            &[0],
            Seen(0, 1, false),
        ),
        (
            "old raid: level 0",
            old_raid,
            DISK - 65536 + 28,
            &[0],
            Seen(0, 1, false),
        ),
    ];
    for (what, make, at, bytes, expected) in lies {
        let mut disk = make();
        disk[*at..at + bytes.len()].copy_from_slice(bytes);
        mend(&mut disk);
        assert_eq!(seen(&disk), *expected, "{what}");
    }
}

#[test]
fn damage_that_no_checksum_hides() {
    type Damage = (fn() -> Vec<u8>, &'static [usize], Seen);
    let disks: [Damage; 6] = [
        (gpt, &[512 + 40], Seen(2, 0, true)),
        (gpt, &[512 + 40, BACKUP + 40], Seen(0, 0, true)),
        (gpt, &[1024 + 60, BACKUP - 512 + 60], Seen(0, 0, true)),
        (lvm, &[512 + 40], Seen(0, 0, false)),
        (lvm, &[TEXT + 3], Seen(0, 0, true)),
        (raid, &[4096 + 20], Seen(0, 0, false)),
    ];
    for (make, places, expected) in disks {
        let mut disk = make();
        for place in places {
            disk[*place] ^= 1;
        }
        assert_eq!(seen(&disk), expected, "{places:?}");
    }
}

/// False values in the text of LVM's metadata about `root`, and whether the volume can still be
/// used.
#[test]
fn lies_of_a_text() {
    for (what, by, expected) in [
        (
            "extent_count = 2 type = \"striped\" stripes = [\"pv0\", 0]",
            "type = \"striped\" stripes = [\"pv0\", 0]",
            false,
        ),
        ("start_extent = 2", "start_extent = 3", false),
        ("[\"pv0\", 9]", "[\"pv0\", 30]", false),
        ("[\"pv0\", 9]", "[\"pv0\", 18446744073709551615]", false),
        ("[\"pv0\", 9]", "[9, \"pv0\"]", false),
        (
            "extent_size = 8",
            "extent_size = 18446744073709551615",
            false,
        ),
        ("extent_size = 8", "extent_size = -8", false),
        ("pe_start = 32", "pe_start = 400000", false),
        ("pe_count = 30", "pe_count = 4", false),
        ("extent_size = 8", "extent_size = 4", true),
    ] {
        let text = GROUP.replacen(what, by, 1);
        assert_ne!(text, GROUP, "{what}");
        let mut disk = lvm();
        disk[TEXT..TEXT + GROUP.len()].fill(0);
        disk[TEXT..TEXT + text.len()].copy_from_slice(text.as_bytes());
        disk[AREA + 48..AREA + 56].copy_from_slice(&(text.len() as u64 + 1).to_le_bytes());
        mend(&mut disk);
        let parts = find(&disk);
        assert_eq!(parts.choose("vg/root", true).is_ok(), expected, "{by}");
    }
}

#[test]
fn a_ring_of_logical_partitions_ends() {
    let mut disk = mbr();
    // The second table names itself as the next.
    disk[96 * 512 + 462 + 4] = 5;
    disk[96 * 512 + 462 + 8] = 64;
    let parts = find(&disk);
    assert!(parts.all.len() <= 130, "{}", parts.all.len());
    assert_eq!(names(&parts)[..3], ["1", "5", "6"]);
}

/// What is written to one of two that overlap is lost to the other.
#[test]
fn partitions_that_overlap_are_only_read() {
    // Sectors from the first one to the one behind the last, and which may be written.
    for (places, free) in [
        ([(8, 40), (40, 80), (80, 100)], [true, true, true]),
        ([(8, 40), (39, 80), (80, 100)], [false, false, true]),
        ([(8, 90), (20, 30), (80, 100)], [false, false, false]),
        ([(50, 60), (8, 100), (100, 110)], [false, false, true]),
        ([(8, 20), (8, 20), (20, 21)], [false, false, true]),
    ] {
        let mut disk = vec![0; DISK];
        disk[510..512].copy_from_slice(b"\x55\xaa");
        for (nth, (first, end)) in (0..).zip(places) {
            let entry = 446 + 16 * nth;
            disk[entry + 4] = 0x83;
            disk[entry + 8..entry + 12].copy_from_slice(&u32::to_le_bytes(first));
            disk[entry + 12..entry + 16].copy_from_slice(&u32::to_le_bytes(end - first));
        }
        let parts = find(&disk);
        for (name, is_free) in ["1", "2", "3"].into_iter().zip(free) {
            assert!(parts.choose(name, false).is_ok(), "{places:?} {name}");
            let written = parts.choose(name, true);
            assert_eq!(written.is_ok(), is_free, "{places:?} {name}: {written:?}");
        }
    }
}

/// Tables whose parts contain their own table, and texts with more than any group has: the work is
/// bounded, and what was found is told.
#[test]
fn tables_in_tables_end() {
    let mut disk = gpt();
    let last = (DISK / 512 - 1) as u64;
    for table in [2, last as usize - 1] {
        for nth in 0..4 {
            let entry = table * 512 + nth * 128;
            disk[entry..entry + 32].fill(9);
            disk[entry + 32..entry + 40].fill(0);
            disk[entry + 40..entry + 48].copy_from_slice(&last.to_le_bytes());
        }
    }
    mend(&mut disk);
    let ring = find(&disk);
    assert!(ring.all.len() < 10_000, "{}", ring.all.len());
    let is_told = |remark: &String| remark.contains("more than any disk has");
    assert!(ring.remarks.iter().any(is_told));

    let volume = "{ status = [\"VISIBLE\"] segment1 { start_extent = 0 extent_count = 1 \
                  type = \"striped\" stripes = [\"pv0\", 1] } }";
    let (group, _) = GROUP.split_once("logical_volumes").unwrap();
    for (count, most) in [(10, 10), (900, 900), (6000, 6000), (60_000, 0)] {
        let many: String = (0..count).map(|nth| format!("v{nth} {volume}\n")).collect();
        let found = find(&maker::lvm_of(&format!(
            "{group} logical_volumes {{ {many} }} }}"
        )));
        assert_eq!(found.all.len(), most, "{:?}", found.remarks);
        assert_eq!(found.remarks.is_empty(), count < 1000);
    }
}
