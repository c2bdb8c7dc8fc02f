//! Disks with tables that are as small as they may be, and checksums put right again.

/// A disk's bytes.
pub const DISK: usize = 256 << 10;

const SECTOR: usize = 512;

/// Where the header of LVM's metadata is, and its text.
pub const AREA: usize = 4096;
pub const TEXT: usize = AREA + 512;

/// The text of LVM's metadata: `root` in two pieces, `far` partly on another disk, `thin`, `slow`
/// in stripes, `old` with a snapshot, and `hidden`.
pub const GROUP: &str = r#"vg { id = "x" extent_size = 8
physical_volumes { pv0 { id = "000000-1111-2222-3333-4444-5555-666666" pe_start = 32 pe_count = 30 } pv1 { id = "b" pe_start = 32 pe_count = 30 } }
logical_volumes {
root { id = "r" status = ["READ", "WRITE", "VISIBLE"] segment2 { start_extent = 2 extent_count = 1 type = "striped" stripes = ["pv0", 9] } segment1 { start_extent = 0 extent_count = 2 type = "striped" stripes = ["pv0", 0] } }
far { id = "f" status = ["READ", "WRITE", "VISIBLE"] segment1 { start_extent = 0 extent_count = 2 type = "striped" stripes = ["pv1", 0] } }
thin { id = "t" status = ["READ", "WRITE", "VISIBLE"] segment1 { start_extent = 0 extent_count = 2 type = "thin" } }
slow { id = "s" status = ["READ", "WRITE", "VISIBLE"] segment1 { start_extent = 0 extent_count = 2 type = "striped" stripes = ["pv0", 2, "pv1", 2] } }
old { id = "o" status = ["READ", "WRITE", "VISIBLE"] segment1 { start_extent = 0 extent_count = 1 type = "striped" stripes = ["pv0", 4] } }
snapshot0 { id = "n" status = ["READ", "WRITE"] segment1 { start_extent = 0 extent_count = 1 type = "snapshot" origin = "old" } }
hidden { id = "h" status = ["READ", "WRITE"] segment1 { start_extent = 0 extent_count = 1 type = "striped" stripes = ["pv0", 5] } }
} }
"#;

/// The identity of `pv0`.
const OWN: &[u8; 32] = b"00000011112222333344445555666666";

fn set(disk: &mut [u8], at: usize, bytes: &[u8]) {
    disk[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Two partitions, of 64 sectors from 64 on and of 128 from 256 on, in a table of four.
pub fn gpt() -> Vec<u8> {
    let mut disk = vec![0; DISK];
    let last = DISK / SECTOR - 1;
    disk[446 + 4] = 0xee;
    set(&mut disk, 510, b"\x55\xaa");
    for (here, other, table) in [(1, last, 2), (last, 1, last - 1)] {
        let at = here * SECTOR;
        set(&mut disk, at, b"EFI PART\x00\x00\x01\x00\x5c\x00\x00\x00");
        for (field, value) in [
            (24, here),
            (32, other),
            (40, 34),
            (48, last - 34),
            (72, table),
        ] {
            set(&mut disk, at + field, &(value as u64).to_le_bytes());
        }
        set(&mut disk, at + 80, &4_u32.to_le_bytes());
        set(&mut disk, at + 84, &128_u32.to_le_bytes());
        for (nth, name, first, end) in [(0, "one", 64_u64, 127_u64), (2, "three", 256, 383)] {
            let entry = table * SECTOR + nth * 128;
            set(&mut disk, entry, &[7; 16]);
            set(&mut disk, entry + 16, &[nth as u8 + 1; 16]);
            set(&mut disk, entry + 32, &first.to_le_bytes());
            set(&mut disk, entry + 40, &end.to_le_bytes());
            for (place, unit) in name.encode_utf16().enumerate() {
                set(&mut disk, entry + 56 + 2 * place, &unit.to_le_bytes());
            }
        }
    }
    mend(&mut disk);
    disk
}

/// A partition, and two logical ones in an extended one.
pub fn mbr() -> Vec<u8> {
    let mut disk = vec![0; DISK];
    let mut entry = |sector: usize, nth: usize, kind: u8, start: u32, count: u32| {
        let at = sector * SECTOR + 446 + 16 * nth;
        disk[at + 4] = kind;
        set(&mut disk, at + 8, &start.to_le_bytes());
        set(&mut disk, at + 12, &count.to_le_bytes());
        set(&mut disk, sector * SECTOR + 510, b"\x55\xaa");
    };
    entry(0, 0, 0x83, 8, 16);
    entry(0, 1, 0x05, 32, 400);
    entry(32, 0, 0x83, 2, 30);
    entry(32, 1, 0x05, 64, 100);
    entry(96, 0, 0x8e, 4, 60);
    disk
}

/// A physical volume of the group above.
pub fn lvm() -> Vec<u8> {
    lvm_of(GROUP)
}

/// The same of another group.
pub fn lvm_of(group: &str) -> Vec<u8> {
    let area = (group.len() + 1 + 512).next_multiple_of(8192);
    let mut disk = vec![0; DISK.max(AREA + area)];
    let whole = disk.len();
    set(&mut disk, SECTOR, b"LABELONE");
    disk[SECTOR + 8] = 1;
    disk[SECTOR + 20] = 32;
    set(&mut disk, SECTOR + 24, b"LVM2 001");
    set(&mut disk, SECTOR + 32, OWN);
    let areas = [whole, 16 << 10, 0, 0, 0, AREA, area, 0, 0];
    for (nth, value) in areas.into_iter().enumerate() {
        set(
            &mut disk,
            SECTOR + 64 + 8 * nth,
            &(value as u64).to_le_bytes(),
        );
    }
    set(&mut disk, AREA + 4, b" LVM2 x[5A%r0N*>");
    disk[AREA + 20] = 1;
    for (field, value) in [(24, AREA), (32, area), (40, 512), (48, group.len() + 1)] {
        set(&mut disk, AREA + field, &(value as u64).to_le_bytes());
    }
    set(&mut disk, TEXT, group.as_bytes());
    mend(&mut disk);
    disk
}

/// One of two disks of a mirror, of version 1.2: 128 sectors of data from 64 on.
pub fn raid() -> Vec<u8> {
    let mut disk = vec![0; DISK];
    let at = 4096;
    set(&mut disk, at, &0xa92b_4efc_u32.to_le_bytes());
    disk[at + 4] = 1;
    set(&mut disk, at + 16, &[9; 16]);
    set(&mut disk, at + 32, b"host:0");
    for (field, value) in [(80, 128_u64), (128, 64), (136, 400), (144, 8)] {
        set(&mut disk, at + field, &value.to_le_bytes());
    }
    for (field, value) in [(72, 1_u32), (92, 2), (220, 4)] {
        set(&mut disk, at + field, &value.to_le_bytes());
    }
    set(&mut disk, at + 258, &[1, 0, 0xff, 0xff, 0xff, 0xff]);
    mend(&mut disk);
    disk
}

/// The same of version 0.90: all before the superblock are data.
pub fn old_raid() -> Vec<u8> {
    let mut disk = vec![0; DISK];
    let at = DISK - (64 << 10);
    let words = [
        (0, 0xa92b_4efc_u32),
        (2, 90),
        (7, 1),
        (8, 192),
        (10, 2),
        (996, 0b110),
    ];
    for (word, value) in words {
        set(&mut disk, at + 4 * word, &value.to_le_bytes());
    }
    mend(&mut disk);
    disk
}

fn crc(bytes: &[u8], start: u32) -> u32 {
    bytes.iter().fold(start, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            crc >> 1 ^ 0xedb8_8320 & (crc & 1).wrapping_neg()
        })
    })
}

fn le32(disk: &[u8], at: usize) -> usize {
    u32::from_le_bytes(disk[at..at + 4].try_into().unwrap()) as usize
}

fn le64(disk: &[u8], at: usize) -> usize {
    u64::from_le_bytes(disk[at..at + 8].try_into().unwrap()) as usize
}

/// Makes all checksums right, of whatever is there: a disk of 64 KiB or more.
pub fn mend(disk: &mut [u8]) {
    let last = disk.len() / SECTOR - 1;
    for at in [SECTOR, 4096, last * SECTOR] {
        mend_gpt(disk, at);
    }
    const LVM: u32 = 0xf597_a6cf;
    for at in (0..4).map(|sector| sector * SECTOR) {
        if disk[at..].starts_with(b"LABELONE") {
            let sum = crc(&disk[at + 20..at + SECTOR], LVM);
            set(disk, at + 16, &sum.to_le_bytes());
        }
    }
    if disk[AREA + 4..].starts_with(b" LVM2 x[5A%r0N*>") {
        let (start, length) = (le64(disk, AREA + 40), le64(disk, AREA + 48));
        let text = AREA
            .checked_add(start)
            .and_then(|start| disk.get(start..start.checked_add(length)?));
        if let Some(text) = text {
            let sum = crc(text, LVM);
            set(disk, AREA + 56, &sum.to_le_bytes());
        }
        let sum = crc(&disk[AREA + 4..AREA + 512], LVM);
        set(disk, AREA, &sum.to_le_bytes());
    }
    let near_the_end = (disk.len() - (8 << 10)) & !4095;
    for at in [0, 4096, near_the_end] {
        if le32(disk, at) == 0xa92b_4efc && le32(disk, at + 4) == 1 {
            set(disk, at + 216, &[0; 4]);
            let length = 256 + 2 * le32(disk, at + 220).min(384);
            let sum = sum(&disk[at..at + length.min(disk.len() - at)]);
            set(disk, at + 216, &sum.to_le_bytes());
        }
    }
    let at = (disk.len() & !0xffff) - (64 << 10);
    if le32(disk, at) == 0xa92b_4efc {
        set(disk, at + 4 * 38, &[0; 4]);
        let sum = sum(&disk[at..at + 4096]);
        set(disk, at + 4 * 38, &sum.to_le_bytes());
    }
}

fn mend_gpt(disk: &mut [u8], at: usize) {
    if !disk[at..].starts_with(b"EFI PART") {
        return;
    }
    let sector = if at == 4096 { 4096 } else { SECTOR };
    let bytes = le32(disk, at + 80).saturating_mul(le32(disk, at + 84));
    let table = le64(disk, at + 72).checked_mul(sector);
    let table = table.and_then(|start| disk.get(start..start.checked_add(bytes)?));
    if let Some(table) = table {
        let sum = !crc(table, u32::MAX);
        set(disk, at + 88, &sum.to_le_bytes());
    }
    set(disk, at + 16, &[0; 4]);
    let length = le32(disk, at + 12).min(SECTOR);
    let sum = !crc(&disk[at..at + length], u32::MAX);
    set(disk, at + 16, &sum.to_le_bytes());
}

fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks(4).map(|word| {
        let mut whole = [0; 4];
        whole[..word.len()].copy_from_slice(word);
        u64::from(u32::from_le_bytes(whole))
    });
    let sum: u64 = words.sum();
    (sum as u32).wrapping_add((sum >> 32) as u32)
}
