//! Formats that bytes at one place cannot identify: short magics beside fields with a limited range
//! of values, places counted from the end, and checksums.

use super::magics::{BCACHEFS, BCACHEFS_MAGIC, FAT, HIBERNATION, SWAP, UDF};
use super::view::View;

const EXT2: &str = "an ext2 file system";
const EXT3: &str = "an ext3 file system";
const EXT4: &str = "an ext4 file system";
const JBD: &str = "the journal of an ext3 or ext4 file system";
const HFS: &str = "an HFS file system";
const HFS_PLUS: &str = "an HFS+ file system";
const MINIX: &str = "a Minix file system";
const UFS: &str = "a UFS file system";
const NILFS2: &str = "a NILFS2 file system";
pub(super) const MD: &str = "a member of a Linux software RAID";
pub(super) const ZFS: &str = "a member of a ZFS pool";
pub(super) const GPT_BACKUP: &str = "the backup of a GPT partition table";
pub(super) const MBR: &str = "an MBR partition table";
pub(super) const BOOT: &str = "a boot sector";
const DASD: &str = "a DASD disk label";

/// Those that may begin anywhere: asked of each place where a volume may begin.
pub(super) const ANYWHERE: &[fn(&View) -> Option<&'static str>] = &[
    ext,
    hfs,
    minix,
    ufs,
    nilfs2,
    udf,
    fat,
    swap,
    lvm1,
    xfs_log,
    sysv,
    core_storage,
];

/// Those that belong to a whole device.
pub(super) const WHOLE: &[fn(&View) -> Option<&'static str>] = &[
    raid,
    zfs,
    backup_gpt,
    apple_map,
    sun,
    atari,
    dasd,
    boot_sector,
    at_the_end,
    firmware_raid,
    nilfs2_backup,
];

fn ext(view: &View) -> Option<&'static str> {
    const SUPER: u64 = 1024;
    let plausible = view.is(SUPER + 0x38, b"\x53\xef")
        && view.le32(SUPER + 4)? > 0
        && view.le32(SUPER + 0x18)? <= 6
        && view.le32(SUPER + 0x4c)? <= 1;
    let compatible = view.le32(SUPER + 0x5c)?;
    let incompatible = view.le32(SUPER + 0x60)?;
    let read_only = view.le32(SUPER + 0x64)?;
    // Filetype, recovery and meta_bg are all that ext3 has; the rest is ext4's.
    plausible.then_some(if incompatible & 8 != 0 {
        JBD
    } else if incompatible & !0x16 != 0 || read_only & !7 != 0 {
        EXT4
    } else if compatible & 4 != 0 {
        EXT3
    } else {
        EXT2
    })
}

fn hfs(view: &View) -> Option<&'static str> {
    if view.is(1024, b"H+\0\x04") || view.is(1024, b"HX\0\x05") {
        return Some(HFS_PLUS);
    }
    let unit = view.be32(1024 + 20)?;
    let is = view.is(1024, b"BD") && unit > 0 && unit.is_multiple_of(512);
    is.then_some(match view.is(1024 + 0x7c, b"H+") {
        true => HFS_PLUS,
        false => HFS,
    })
}

/// Two bytes of magic, of either byte order, and bitmaps that have room for what
/// they describe.
fn minix(view: &View) -> Option<&'static str> {
    if view.is(1024, b"\xe2\xe1\xf5\xe0") || ext(view).is_some() {
        return None;
    }
    let super_block = view.at(1024, 32)?;
    let number = |place: usize, swapped: bool| {
        let bytes = [super_block[place], super_block[place + 1]];
        u64::from(match swapped {
            true => u16::from_be_bytes(bytes),
            false => u16::from_le_bytes(bytes),
        })
    };
    let long = |place: usize, swapped: bool| match swapped {
        true => number(place, true) << 16 | number(place + 2, true),
        false => number(place + 2, false) << 16 | number(place, false),
    };
    let found = [false, true].into_iter().any(|swapped| {
        let small = number(0x10, swapped);
        let (inodes, zones, maps) = match small {
            0x137f | 0x138f => (number(0, swapped), number(2, swapped), 4),
            0x2468 | 0x2478 => (number(0, swapped), long(20, swapped), 4),
            _ if number(0x18, swapped) == 0x4d5a => (long(0, swapped), long(20, swapped), 6),
            _ => return false,
        };
        let first = number(maps + 4, swapped);
        inodes > 0
            && number(maps + 6, swapped) == 0
            && number(maps, swapped) * 8192 > inodes
            && first <= zones
            && number(maps + 2, swapped) * 8192 > zones - first
    });
    found.then_some(MINIX)
}

fn ufs(view: &View) -> Option<&'static str> {
    const MAGICS: [u32; 6] = [
        0x0001_1954,
        0x1954_0119,
        0x0019_5612,
        0x0009_5014,
        0x0061_2195,
        0x0523_1994,
    ];
    let found = [0, 8192, 65_536, 262_144].into_iter().any(|place: u64| {
        let magic = place + 1372;
        let read = [view.le32(magic), view.be32(magic)];
        read.into_iter()
            .flatten()
            .any(|read| MAGICS.contains(&read))
    });
    found.then_some(UFS)
}

fn is_nilfs2(view: &View, place: u64) -> bool {
    view.is(place + 6, b"\x34\x34") && view.le32(place) == Some(2)
}

fn nilfs2(view: &View) -> Option<&'static str> {
    is_nilfs2(view, 1024).then_some(NILFS2)
}

/// The last whole block of 4096 bytes.
fn nilfs2_backup(view: &View) -> Option<&'static str> {
    let place = (view.size() / 4096).checked_sub(1)? * 4096;
    is_nilfs2(view, place).then_some(NILFS2)
}

/// A descriptor of UDF's behind those of ISO 9660, which a disk may have as well.
fn udf(view: &View) -> Option<&'static str> {
    let mut places = (1..64).map(|index| 0x8001 + index * 2048);
    let found = places.any(|place| {
        let kinds: [&[u8]; 3] = [b"BEA01", b"NSR02", b"NSR03"];
        kinds.into_iter().any(|kind| view.is(place, kind))
    });
    found.then_some(UDF)
}

/// Without the text that newer programs write: a jump, and a BIOS parameter block
/// whose fields are possible.
fn fat(view: &View) -> Option<&'static str> {
    let boot = view.at(0, 512)?;
    let sector = u16::from_le_bytes([boot[11], boot[12]]);
    let plausible = matches!(boot[0], 0xeb | 0xe9)
        && matches!(sector, 512 | 1024 | 2048 | 4096)
        && boot[13].is_power_of_two()
        && (boot[14], boot[15]) != (0, 0)
        && (1..=4).contains(&boot[16])
        && (boot[21] == 0xf0 || boot[21] >= 0xf8)
        && boot[510..] == [0x55, 0xaa];
    plausible.then_some(FAT)
}

/// The signatures of swap space, at the end of the first page of any size.
pub(super) const SWAP_MAGICS: [&[u8; 10]; 2] = [b"SWAPSPACE2", b"SWAP-SPACE"];
pub(super) const HIBERNATION_MAGICS: [&[u8]; 4] =
    [b"S1SUSPEND", b"S2SUSPEND", b"ULSUSPEND", b"LINHIB0001"];
pub(super) const PAGES: [u64; 5] = [4096, 8192, 16384, 32768, 65536];

fn swap(view: &View) -> Option<&'static str> {
    let has = |magic: &[u8]| PAGES.iter().any(|page| view.is(page - 10, magic));
    if HIBERNATION_MAGICS.into_iter().any(has) {
        return Some(HIBERNATION);
    }
    SWAP_MAGICS.iter().any(|magic| has(*magic)).then_some(SWAP)
}

fn lvm1(view: &View) -> Option<&'static str> {
    let found = view.is(0, b"HM\x01\0") || view.is(0, b"HM\x02\0");
    found.then_some("an LVM1 physical volume")
}

/// A log of its own device: a record's header in one of the first 512 sectors.
fn xfs_log(view: &View) -> Option<&'static str> {
    let mut sectors = (0..512).map(|sector| sector * 512);
    if sectors.clone().any(|place| view.is(place, b"XFSB")) {
        return None;
    }
    let found = sectors.any(|place| {
        view.is(place, b"\xfe\xed\xba\xbe")
            && matches!(view.be32(place + 8), Some(1 | 2))
            && matches!(view.be32(place + 300), Some(1..=3))
    });
    found.then_some("the log of an XFS file system")
}

fn sysv(view: &View) -> Option<&'static str> {
    let found = [0, 9, 15, 18].into_iter().any(|block: u64| {
        let magic = block * 1024 + 512 + 504;
        view.is(magic, b"\x20\x7e\x18\xfd") || view.is(magic, b"\xfd\x18\x7e\x20")
    });
    found.then_some("a System V file system")
}

/// Two letters, version and checksum of Core Storage: FileVault, and macOS's RAID.
fn core_storage(view: &View) -> Option<&'static str> {
    let found = view.is(88, b"CS") && view.is(8, b"\x01\0\x10\0") && view.le32(90) == Some(1);
    found.then_some("a Core Storage volume of macOS (FileVault)")
}

pub(super) const MD_MAGICS: [&[u8; 4]; 2] = [b"\xfc\x4e\x2b\xa9", b"\xa9\x2b\x4e\xfc"];

/// Versions 1.1 and 1.2 at the start, 1.0 and 0.90 near the end.
fn raid(view: &View) -> Option<&'static str> {
    let places = [
        Some(0),
        Some(4096),
        view.before_end(8192).map(|place| place & !4095),
        (view.size() & !0xffff).checked_sub(0x1_0000),
    ];
    let found = places
        .into_iter()
        .flatten()
        .any(|place| MD_MAGICS.iter().any(|magic| view.is(place, *magic)));
    found.then_some(MD)
}

pub(super) const ZFS_LABEL: u64 = 256 << 10;
pub(super) const ZFS_MAGICS: [&[u8; 8]; 2] = [b"\x0c\xb1\xba\0\0\0\0\0", b"\0\0\0\0\0\xba\xb1\x0c"];

/// Two labels at each end; the second half of a label is a ring of überblocks,
/// each at a multiple of 1 KiB.
fn zfs(view: &View) -> Option<&'static str> {
    let end = view.size() & !(ZFS_LABEL - 1);
    let labels = [
        Some(0),
        Some(ZFS_LABEL),
        end.checked_sub(2 * ZFS_LABEL),
        end.checked_sub(ZFS_LABEL),
    ];
    let found = labels.into_iter().flatten().any(|label| {
        (0..128).any(|index| {
            let place = label + ZFS_LABEL / 2 + index * 1024;
            ZFS_MAGICS.iter().any(|magic| view.is(place, *magic))
        })
    });
    found.then_some(ZFS)
}

fn backup_gpt(view: &View) -> Option<&'static str> {
    let found = [512, 4096]
        .into_iter()
        .filter_map(|sector| view.before_end(sector))
        .any(|place| view.is(place, b"EFI PART"));
    found.then_some(GPT_BACKUP)
}

/// A driver descriptor, and the map's first entry one block behind it.
fn apple_map(view: &View) -> Option<&'static str> {
    let block = u64::from(view.be16(2)?);
    let block = if block == 0 { 512 } else { block };
    let found = view.is(0, b"ER") && (view.is(block, b"PM") || view.is(block, b"TS"));
    found.then_some("an Apple partition map")
}

/// The magic at the end of the sector, whose words give zero together.
fn sun(view: &View) -> Option<&'static str> {
    let sector = view.at(0, 512)?;
    let words = sector.chunks_exact(2);
    let sum = words.fold(0, |sum, word| sum ^ u16::from_be_bytes([word[0], word[1]]));
    (sector[508..510] == [0xda, 0xbe] && sum == 0).then_some("a Sun disk label")
}

/// Four entries of twelve bytes: a flag, three letters, start and length.
fn atari(view: &View) -> Option<&'static str> {
    const KINDS: [&[u8]; 8] = [
        b"GEM", b"BGM", b"LNX", b"SWP", b"RAW", b"XGM", b"UNX", b"MIX",
    ];
    let entries = view.at(0x1c6, 48)?;
    let found = entries.chunks_exact(12).any(|entry| {
        matches!(entry[0], 0x01 | 0x81) && KINDS.contains(&&entry[1..4]) && entry[8..12] != [0; 4]
    });
    found.then_some("an Atari partition table")
}

/// VOL1, LNX1 or CMS1 in EBCDIC, in the third block of any size, or the second.
fn dasd(view: &View) -> Option<&'static str> {
    const LABELS: [&[u8]; 3] = [
        b"\xe5\xd6\xd3\xf1",
        b"\xd3\xd5\xe7\xf1",
        b"\xc3\xd4\xe2\xf1",
    ];
    let found = [512, 1024, 2048, 4096, 8192]
        .into_iter()
        .any(|place| LABELS.iter().any(|label| view.is(place, label)));
    found.then_some(DASD)
}

/// Four 16-byte entries from byte 446: status, …, type, …
fn boot_sector(view: &View) -> Option<&'static str> {
    let sector = view.at(0, 512)?;
    if sector[510..] != [0x55, 0xaa] {
        return None;
    }
    let entries = sector[446..510].chunks_exact(16);
    let valid = entries.clone().all(|entry| entry[0] & 0x7f == 0);
    let used = entries.clone().any(|entry| entry[4] != 0);
    match valid && used {
        true => Some(MBR),
        // A jump, or what boot programs begin with.
        false => matches!(sector[0], 0xeb | 0xe9 | 0xfa | 0x33).then_some(BOOT),
    }
}

const DRBD: &str = "a DRBD device";
const GEOM: &str = "a GEOM volume of FreeBSD";

/// Those with a part of their data elsewhere, beside the ones that are called members.
pub(super) const MEMBERS: [&str; 2] = [DRBD, GEOM];

/// Magics before the end: distance, bytes, name.
pub(super) const FROM_THE_END: &[(u64, &[u8], &str)] = &[
    (0x10_0000 - 0x18, BCACHEFS_MAGIC, BCACHEFS),
    (4096 - 60, b"\x83\x74\x02\x6b", DRBD),
    (4096 - 60, b"\x83\x74\x02\x6c", DRBD),
    (4096 - 60, b"\x83\x74\x02\x6d", DRBD),
    (512, b"GEOM::ELI", "a GELI volume"),
    (4096, b"GEOM::ELI", "a GELI volume"),
    (512, b"GEOM::", GEOM),
    (4096, b"GEOM::", GEOM),
    (512, b"conectix", "a VHD image"),
    (512, b"koly", "a disk image of macOS"),
    (
        1024,
        b"Intel Raid ISM Cfg Sig. ",
        "a member of an Intel RAID",
    ),
    (
        8192,
        b"Intel Raid ISM Cfg Sig. ",
        "a member of an Intel RAID",
    ),
    (512, b"\xde\x11\xde\x11", "a member of a DDF RAID"),
    (257 * 512, b"\xde\x11\xde\x11", "a member of a DDF RAID"),
    (512, b"\x37\xfc\x4d\x1e", "a member of an Adaptec RAID"),
    (
        11 * 512,
        b"\xf3\x16\x78\x5a",
        "a member of a HighPoint RAID",
    ),
    (
        11 * 512,
        b"\xfd\x16\x78\x5a",
        "a member of a HighPoint RAID",
    ),
    (512, b"$XIDE$", "a member of an LSI RAID"),
    (1024, b"NVIDIA  ", "a member of an NVIDIA RAID"),
];

fn at_the_end(view: &View) -> Option<&'static str> {
    // Some count from the last byte, others from the last whole sector.
    let ends = [view.size(), view.size() & !511];
    let found = FROM_THE_END.iter().find(|(distance, magic, _)| {
        let places = ends.iter().filter_map(|end| end.checked_sub(*distance));
        places.into_iter().any(|place| view.is(place, magic))
    });
    found.map(|&(_, _, name)| name)
}

/// The places of Promise's, and the checksums of those with short magics.
fn firmware_raid(view: &View) -> Option<&'static str> {
    const PROMISE: [u64; 13] = [
        63, 255, 256, 16, 399, 591, 675, 735, 911, 974, 991, 951, 3087,
    ];
    let sectors = view.size() / 512;
    let promise = PROMISE.iter().any(|distance| {
        let place = sectors.checked_sub(*distance);
        place.is_some_and(|place| view.is(place * 512, b"Promise Technology, Inc."))
    });
    if promise {
        return Some("a member of a Promise RAID");
    }
    let last = view.at(sectors.checked_sub(1)? * 512, 512)?;
    let words = last.chunks_exact(2);
    let sum = |count: usize| {
        let words = words.clone().take(count);
        words.fold(0_u16, |sum, word| {
            sum.wrapping_add(u16::from_le_bytes([word[0], word[1]]))
        })
    };
    if last.starts_with(b"JM") && sum(64) <= 1 && last[0x30] <= 5 {
        return Some("a member of a JMicron RAID");
    }
    let bytes = last[..50]
        .iter()
        .fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    if last.starts_with(b"\x55\xaa") && last[2] <= 2 && bytes == last[50] {
        return Some("a member of a VIA RAID");
    }
    let silicon = last[0x60..0x64] == [0, 0, 0, 0x2f] && last[0x116] < 8;
    let whole = sum(0x13e / 2).wrapping_neg() == u16::from_le_bytes([last[0x13e], last[0x13f]]);
    (silicon && whole).then_some("a member of a Silicon Image RAID")
}
