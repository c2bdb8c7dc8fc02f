//! Volumes whose sectors have tags: a byte array to who has the key, cut off
//! at any write, and an error where anything was changed.

use block::layer::{Count, Effect, Fault, Rule, Trigger, WriteCache};
use block::model::Model;
use block::{BlockDevice, BlockError, OperationKind, RamDevice};
use cipher::{IvSector, Key, SectorSize};
use cryptmark_volume::{Access, SealedDevice, SealedMapping, VolumeError};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::path::Path;

/// Where the superblock is.
const OFFSET: u64 = 8192;

/// Encryption, integrity, key and tag bytes: one of each kind.
const METHODS: &[(&str, &str, usize, u64)] = &[
    ("aes-gcm-random", "aead", 32, 28),
    ("capi:gcm(aes)-plain64", "aead", 16, 16),
    ("chacha20-random", "poly1305", 32, 28),
    ("chacha20-plain64", "poly1305", 32, 16),
    ("aes-xts-random", "hmac(sha256)", 96, 48),
    ("serpent-xts-random", "hmac(sha512)", 128, 80),
    ("aes-xts-plain64", "hmac(sha1)", 84, 20),
    ("twofish-cbc-plain64", "hmac(sha256)", 64, 32),
    ("aes-xts-random", "none", 64, 16),
    ("aes-gcm-random", "aead", 24, 28),
    ("aegis128-random", "aead", 16, 32),
    ("aegis128-plain64", "aead", 16, 16),
    ("aes-cbc-essiv:sha256", "hmac(sha256)", 48, 32),
];

/// The fields of a superblock.
#[derive(Clone, Copy)]
struct Shape {
    sector: SectorSize,
    tag_bytes: u64,
    log2_area_sectors: u8,
    sections: u32,
    blocks: u64,
}

impl Shape {
    const SMALL: Self = Self {
        sector: SectorSize::B512,
        tag_bytes: 28,
        log2_area_sectors: 5,
        sections: 3,
        blocks: 256,
    };

    fn block_sectors(self) -> u64 {
        self.sector.bytes() as u64 / 512
    }

    fn entry_bytes(self) -> u64 {
        (8 + 8 * self.block_sectors() + self.tag_bytes).next_multiple_of(8)
    }

    fn entries(self) -> u64 {
        504 / self.entry_bytes() * 8
    }

    fn section_sectors(self) -> u64 {
        8 + self.entries() * self.block_sectors()
    }

    fn superblock(self) -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes[..8].copy_from_slice(b"integrt\0");
        bytes[8] = 4;
        bytes[9] = self.log2_area_sectors;
        bytes[10..12].copy_from_slice(&(self.tag_bytes as u16).to_le_bytes());
        bytes[12..16].copy_from_slice(&self.sections.to_le_bytes());
        bytes[16..24].copy_from_slice(&(self.blocks * self.block_sectors()).to_le_bytes());
        bytes[24] = 8;
        bytes[28] = self.block_sectors().ilog2() as u8;
        bytes
    }

    /// Superblock and empty journal, as the kernel makes them.
    fn format(self) -> RamDevice {
        let mut bytes = vec![0; OFFSET as usize + 4096];
        bytes[OFFSET as usize..][..64].copy_from_slice(&self.superblock());
        for section in 0..u64::from(self.sections) {
            for number in 0..self.section_sectors() {
                let mut sector = [0; 512];
                if number < 8 {
                    for entry in 0..self.entries() / 8 {
                        sector[(entry * self.entry_bytes()) as usize + 4..][..4].fill(0xff);
                    }
                }
                let id = 0x3333_3333_3333_3333 ^ (section << 32 | number);
                sector[504..].copy_from_slice(&id.to_le_bytes());
                bytes.extend_from_slice(&sector);
            }
        }
        let area_blocks = (1 << self.log2_area_sectors) / self.block_sectors();
        let run = (area_blocks * self.tag_bytes).next_multiple_of(4096);
        let area = run + area_blocks * self.block_sectors() * 512;
        let data = self.blocks.div_ceil(area_blocks) * area;
        let device = RamDevice::new(bytes.len() as u64 + data);
        device.write_at(0, &bytes).unwrap();
        device
    }
}

fn mapping(method: (&str, &str, usize, u64), shape: Shape, access: Access) -> SealedMapping {
    SealedMapping {
        encryption: method.0.into(),
        integrity: method.1.into(),
        key: Key::from((0..method.2 as u8).collect::<Vec<u8>>()),
        mac_key_bytes: None,
        sector_size: shape.sector,
        offset: OFFSET,
        size: None,
        first: IvSector::new(0),
        access,
    }
}

fn gcm(shape: Shape, access: Access) -> SealedMapping {
    mapping(METHODS[0], shape, access)
}

/// A device with zeros in all of its blocks.
fn wiped(method: (&str, &str, usize, u64), shape: Shape) -> RamDevice {
    let ram = shape.format();
    let sealed = SealedDevice::open(&ram, &mapping(method, shape, Access::Write)).unwrap();
    let size = sealed.geometry().size;
    assert_eq!(size, shape.blocks * shape.sector.bytes() as u64);
    sealed.write_at(0, &vec![0; size as usize]).unwrap();
    ram
}

/// A new volume has all the room that there is, and every sector that was written opens.
#[test]
fn new_volumes_behave_as_a_byte_array_and_are_there_again() {
    for (seed, &method) in (0..).zip(METHODS) {
        for (sector, size) in [
            (SectorSize::B512, 4 << 20),
            // One of them has a second area.
            (
                SectorSize::B4096,
                if seed == 0 { 20 << 20 } else { 2 << 20 },
            ),
            (SectorSize::B2048, 3_000_320),
        ] {
            let ram = RamDevice::new(size);
            ram.write_at(0, &vec![0xee; size as usize]).unwrap();
            let shape = Shape {
                sector,
                ..Shape::SMALL
            };
            let write = mapping(method, shape, Access::Write);
            let fresh = SealedDevice::fresh(&ram, &write).unwrap();
            assert_eq!(
                all(&ram),
                vec![0xee; size as usize],
                "nothing is written yet"
            );
            fresh.format().unwrap();
            let room = fresh.geometry().size;
            // Journal, superblock and the tags of areas of 16 MiB take the rest.
            let block = sector.bytes() as u64;
            let tags = size.div_ceil(16 << 20) * ((16 << 20) / block * method.3 + 4096);
            assert!(
                room < size && room + size / 64 + tags + (1 << 18) + OFFSET > size,
                "{method:?}"
            );
            fresh.write_at(0, &vec![0; room as usize]).unwrap();
            Model {
                steps: 20,
                ..Model::new(seed)
            }
            .run(&fresh);
            let held = all(&fresh);
            drop(fresh);
            let mut outside = vec![0; OFFSET as usize];
            ram.read_at(0, &mut outside).unwrap();
            assert!(outside.iter().all(|&byte| byte == 0xee));
            let opened = SealedDevice::open(&ram, &write).unwrap();
            assert!(all(&opened) == held, "{method:?}");
            Model {
                steps: 10,
                ..Model::new(seed)
            }
            .run(&opened);
            let held = all(&opened);
            drop(opened);
            let read = mapping(method, shape, Access::Read);
            assert!(all(&SealedDevice::open(&ram, &read).unwrap()) == held);
        }
    }
}

#[test]
fn a_new_volume_needs_room() {
    for (size, fits) in [
        (0, false),
        (OFFSET, false),
        (OFFSET + 4096, false),
        (1 << 19, false),
        (2 << 20, true),
    ] {
        let ram = RamDevice::new(size);
        let made = SealedDevice::fresh(&ram, &gcm(Shape::SMALL, Access::Write)).map(drop);
        match made {
            Ok(()) => assert!(fits, "{size}"),
            Err(VolumeError::TooSmall { size: told, needed }) => {
                assert!(!fits && told == size && needed > size, "{size} {needed}");
                let enough = RamDevice::new(needed);
                let mapping = gcm(Shape::SMALL, Access::Write);
                assert!(SealedDevice::fresh(&enough, &mapping).is_ok(), "{needed}");
            }
            Err(other) => panic!("{size}: {other}"),
        }
    }
}

fn all(device: &impl BlockDevice) -> Vec<u8> {
    let mut bytes = vec![0; device.geometry().size as usize];
    device.read_at(0, &mut bytes).unwrap();
    bytes
}

fn copy(of: &RamDevice) -> RamDevice {
    let device = RamDevice::new(of.geometry().size);
    device.write_at(0, &all(of)).unwrap();
    device
}

#[test]
fn every_method_behaves_as_a_byte_array_and_is_there_again() {
    for (seed, &method) in (0..).zip(METHODS) {
        for (sector, sections) in [
            (SectorSize::B512, 1),
            (SectorSize::B512, 4),
            (SectorSize::B4096, 1),
            (SectorSize::B4096, 2),
        ] {
            let shape = Shape {
                sector,
                tag_bytes: method.3,
                log2_area_sectors: 7,
                sections,
                blocks: 100,
            };
            let ram = wiped(method, shape);
            let write = mapping(method, shape, Access::Write);
            let sealed = SealedDevice::open(&ram, &write).unwrap();
            Model {
                steps: 60,
                ..Model::new(seed)
            }
            .run(&sealed);
            let held = all(&sealed);
            drop(sealed);
            let read = mapping(method, shape, Access::Read);
            let again = SealedDevice::open(&ram, &read).unwrap();
            assert!(all(&again) == held, "{method:?}");
            let refused = again.write_at(0, &held[..4096]).unwrap_err();
            assert!(matches!(refused, BlockError::ReadOnly));
            let again = SealedDevice::open(&ram, &write).unwrap();
            assert!(all(&again) == held, "{method:?}");
        }
    }
}

/// One flipped bit in a sector's data or tag is an error for that sector, and
/// for no other.
#[test]
fn what_was_changed_is_never_plaintext() {
    for &method in METHODS.iter().filter(|method| method.1 != "none") {
        // The journal holds no copy of the first blocks any more.
        let shape = Shape {
            tag_bytes: method.3,
            sections: 1,
            ..Shape::SMALL
        };
        let original = wiped(method, shape);
        let first_area = OFFSET + 4096 + u64::from(shape.sections) * shape.section_sectors() * 512;
        let run = (32 * shape.tag_bytes).next_multiple_of(4096);
        let block = 7;
        let tag = first_area + block * shape.tag_bytes;
        let data = first_area + run + block * 512;
        for at in [data, data + 511, tag, tag + shape.tag_bytes - 1] {
            let ram = copy(&original);
            let mut sector = [0; 512];
            let start = at / 512 * 512;
            ram.read_at(start, &mut sector).unwrap();
            sector[(at - start) as usize] ^= 0x10;
            ram.write_at(start, &sector).unwrap();
            let sealed = SealedDevice::open(&ram, &mapping(method, shape, Access::Read)).unwrap();
            let mut read = [0xee; 3 * 512];
            let error = sealed.read_at((block - 1) * 512, &mut read).unwrap_err();
            assert!(
                matches!(error, BlockError::Tampered { offset, length: 512 } if offset == block * 512),
                "{method:?} {at}: {error}"
            );
            assert_eq!(error.errno(), 84);
            assert_eq!(read, [0; 3 * 512]);
            sealed.read_at((block - 1) * 512, &mut read[..512]).unwrap();
            sealed.read_at((block + 1) * 512, &mut read[..512]).unwrap();
        }
    }
}

/// A sector put in the place of another, with its tag, is not taken.
#[test]
fn sectors_do_not_open_in_other_places() {
    for &method in METHODS.iter().filter(|method| method.1 != "none") {
        let shape = Shape {
            tag_bytes: method.3,
            sections: 1,
            ..Shape::SMALL
        };
        let ram = wiped(method, shape);
        let area = (32 * shape.tag_bytes).next_multiple_of(4096) + 32 * 512;
        let first = OFFSET + 4096 + u64::from(shape.sections) * shape.section_sectors() * 512;
        let mut bytes = vec![0; area as usize];
        ram.read_at(first, &mut bytes).unwrap();
        ram.write_at(first + area, &bytes).unwrap();
        let sealed = SealedDevice::open(&ram, &mapping(method, shape, Access::Read)).unwrap();
        let mut sector = [0; 512];
        assert!(sealed.read_at(0, &mut sector).is_ok());
        let moved = sealed.read_at(32 * 512, &mut sector).unwrap_err();
        assert!(matches!(moved, BlockError::Tampered { .. }), "{method:?}");
    }
}

/// Power is cut at every write and every flush of a few random writes. Acknowledged data are there,
/// and every other sector is old or new. This stays true if the power is cut again during the
/// recovery.
#[test]
fn cut_at_every_write() {
    for (sections, sector) in [
        (1, SectorSize::B512),
        (2, SectorSize::B512),
        (5, SectorSize::B512),
        (3, SectorSize::B4096),
    ] {
        let shape = Shape {
            sections,
            sector,
            blocks: if sector == SectorSize::B512 { 200 } else { 60 },
            ..Shape::SMALL
        };
        let original = wiped(METHODS[0], shape);
        let mut cuts = 0;
        for operation in [OperationKind::Write, OperationKind::Flush] {
            for nth in 1.. {
                let mut done = false;
                for seed in 0..4 {
                    let mut random = Xoshiro256PlusPlus::seed_from_u64(nth << 8 | seed);
                    let disk = copy(&original);
                    let (acknowledged, tried, whole) = write_until_cut(
                        &disk,
                        shape,
                        Cut {
                            operation,
                            nth,
                            seed,
                        },
                        &mut random,
                    );
                    done = whole;
                    judge(&disk, shape, &acknowledged, &tried);
                    if nth % 4 == seed {
                        cut_the_mending(&disk, shape, &mut random);
                    }
                }
                if done {
                    break;
                }
                cuts += 1;
            }
        }
        println!("{sections} sections: {cuts} cuts");
        assert!(cuts >= 20, "{cuts}");
    }
}

struct Cut {
    operation: OperationKind,
    nth: u64,
    seed: u64,
}

/// Opens the device for writing and writes to it until the power is cut. Gives
/// the stamp that every block must have, that of the write that failed, and
/// whether none did.
fn write_until_cut(
    disk: &RamDevice,
    shape: Shape,
    cut: Cut,
    random: &mut Xoshiro256PlusPlus,
) -> (Vec<u8>, Vec<u8>, bool) {
    let cache = WriteCache::new(disk);
    let effect = match cut.operation {
        OperationKind::Write => Effect::Torn {
            keep: cut.seed * 1536,
        },
        _ => Effect::Fail(5),
    };
    let rules = [
        Rule::on(cut.operation, Trigger::Nth(cut.nth), effect),
        Rule::on(cut.operation, Trigger::From(cut.nth), Effect::Fail(5)),
    ];
    let faulty = Fault::new(&cache, rules);
    let block_bytes = shape.sector.bytes();
    let mut acknowledged = vec![0; shape.blocks as usize];
    let mut tried = acknowledged.clone();
    let mut whole = false;
    if let Ok(sealed) = SealedDevice::open(&faulty, &gcm(shape, Access::Write)) {
        // The same writes for every cut, so that in the end none is cut.
        let mut ranges = Xoshiro256PlusPlus::seed_from_u64(77);
        whole = (1..=5).all(|stamp| {
            let count = match stamp {
                3 => shape.blocks - 10,
                _ => 1 + ranges.next_u64() % (shape.blocks / 2),
            };
            let first = ranges.next_u64() % (shape.blocks - count + 1);
            let range = first as usize..(first + count) as usize;
            tried[range.clone()].fill(stamp);
            let data = vec![stamp; count as usize * block_bytes];
            if sealed.write_at(first * block_bytes as u64, &data).is_err() {
                let refused = sealed.write_at(0, &data[..block_bytes]);
                assert!(refused.is_err(), "written after a failed write");
                return false;
            }
            acknowledged[range].fill(stamp);
            true
        });
    }
    let survives = |_| match cut.seed {
        0 => false,
        1 => true,
        _ => random.next_u64() & 1 == 1,
    };
    cache.power_cut(survives).unwrap();
    (acknowledged, tried, whole)
}

fn judge(disk: &RamDevice, shape: Shape, acknowledged: &[u8], tried: &[u8]) {
    let held = all(&SealedDevice::open(disk, &gcm(shape, Access::Read)).unwrap());
    let blocks = held.chunks(shape.sector.bytes());
    for (block, (old, new)) in blocks.zip(acknowledged.iter().zip(tried)) {
        assert!(block.iter().all(|byte| byte == &block[0]), "a torn sector");
        assert!(block[0] == *old || block[0] == *new);
    }
}

/// Opens for writing, which replays the journal, with the power cut at every
/// write of that.
fn cut_the_mending(disk: &RamDevice, shape: Shape, random: &mut Xoshiro256PlusPlus) {
    let held = all(&SealedDevice::open(disk, &gcm(shape, Access::Read)).unwrap());
    let writes = writes_of_opening(disk, shape);
    if writes == 0 {
        return;
    }
    let nth = 1 + random.next_u64() % writes;
    let cut = copy(disk);
    let cache = WriteCache::new(&cut);
    let rule = Rule::on(OperationKind::Write, Trigger::From(nth), Effect::Fail(5));
    let faulty = Fault::new(&cache, [rule]);
    let opened = SealedDevice::open(&faulty, &gcm(shape, Access::Write)).map(drop);
    assert!(matches!(opened, Ok(()) | Err(VolumeError::Block(_))));
    cache.power_cut(|_| random.next_u64() & 1 == 1).unwrap();
    let read = SealedDevice::open(&cut, &gcm(shape, Access::Read)).unwrap();
    assert!(all(&read) == held);
    let write = SealedDevice::open(&cut, &gcm(shape, Access::Write)).unwrap();
    assert!(all(&write) == held);
}

/// How often opening for writing writes.
fn writes_of_opening(disk: &RamDevice, shape: Shape) -> u64 {
    let count = Count::new(copy(disk));
    drop(SealedDevice::open(&count, &gcm(shape, Access::Write)).unwrap());
    count.of(OperationKind::Write).operations
}

/// A journal that is not whole is erased, and whichever of its sections are
/// lost with that, none of them brings old blocks back.
#[test]
fn erasing_the_journal_brings_nothing_old_back() {
    let shape = Shape {
        sections: 5,
        ..Shape::SMALL
    };
    let disk = wiped(METHODS[0], shape);
    let section = vec![0; shape.entries() as usize * 512];
    let stamped = |stamp: u8| section.iter().map(|_| stamp).collect::<Vec<u8>>();
    let sealed = SealedDevice::open(&disk, &gcm(shape, Access::Write)).unwrap();
    for stamp in 1..=9 {
        sealed.write_at(0, &stamped(stamp)).unwrap();
    }
    drop(sealed);
    let replayed = writes_of_opening(&disk, shape);
    // The tenth write ends within its section of the journal.
    let torn = Rule::on(
        OperationKind::Write,
        Trigger::From(replayed + 1),
        Effect::Torn { keep: 5 * 512 },
    );
    let faulty = Fault::new(&disk, [torn]);
    let sealed = SealedDevice::open(&faulty, &gcm(shape, Access::Write)).unwrap();
    assert!(sealed.write_at(0, &stamped(10)).is_err());
    drop(sealed);

    let all_writes = writes_of_opening(&disk, shape);
    for nth in all_writes - 4..=all_writes {
        for survivors in 0..1 << shape.sections {
            let cut = copy(&disk);
            let cache = WriteCache::new(&cut);
            let rule = Rule::on(OperationKind::Write, Trigger::From(nth), Effect::Fail(5));
            let faulty = Fault::new(&cache, [rule]);
            assert!(SealedDevice::open(&faulty, &gcm(shape, Access::Write)).is_err());
            let section_of = |at: u64| (at - OFFSET - 4096) / (shape.section_sectors() * 512);
            cache
                .power_cut(|at| survivors >> section_of(at) & 1 == 1)
                .unwrap();
            let read = SealedDevice::open(&cut, &gcm(shape, Access::Read)).unwrap();
            let mut found = section.clone();
            read.read_at(0, &mut found).unwrap();
            assert!(
                found == stamped(9),
                "write {nth}, {survivors:05b}: {}",
                found[0]
            );
        }
    }
}

/// Superblocks that cannot be: what is wrong, where, the bytes there, and what
/// the error must speak of.
const BAD: &[(&str, usize, &[u8], &str)] = &[
    ("another magic", 0, b"j", "superblock"),
    ("version 0", 8, &[0], "version 0"),
    ("version 6", 8, &[6], "version 6"),
    ("areas of one sector", 9, &[0], "log2_interleave_sectors"),
    (
        "areas of 2^255 sectors",
        9,
        &[255],
        "log2_interleave_sectors",
    ),
    ("no tags", 10, &[0, 0], "integrity_tag_size"),
    ("tags of 64 KiB", 10, &[255, 255], "integrity_tag_size"),
    ("no journal", 12, &[0; 4], "journal_sections"),
    ("a journal beyond all", 12, &[255; 4], "journal_sections"),
    ("no data", 16, &[0; 8], "provided_data_sectors"),
    ("data beyond all", 16, &[255; 8], "provided_data_sectors"),
    ("a journal with a MAC", 24, &[9], "journal with integrity"),
    ("recalculating", 24, &[10], "calculated"),
    ("a dirty bitmap", 24, &[12], "bitmap"),
    ("inline tags", 24, &[0x28], "metadata of the drive"),
    ("a flag of tomorrow", 27, &[0x80], "unknown flags"),
    ("blocks of 4096 bytes", 28, &[3], "log2_sectors_per_block"),
    (
        "blocks of 2^255 sectors",
        28,
        &[255],
        "log2_sectors_per_block",
    ),
];

#[test]
fn bad_superblocks_are_refused() {
    for (name, at, bytes, speaks_of) in BAD {
        let ram = Shape::SMALL.format();
        let mut sector = [0; 512];
        ram.read_at(OFFSET, &mut sector).unwrap();
        sector[*at..][..bytes.len()].copy_from_slice(bytes);
        ram.write_at(OFFSET, &sector).unwrap();
        for access in [Access::Read, Access::Write] {
            let error = SealedDevice::open(&ram, &gcm(Shape::SMALL, access))
                .map(drop)
                .expect_err(name);
            assert!(error.to_string().contains(speaks_of), "{name}: {error}");
        }
    }
}

#[test]
fn a_device_that_ends_too_early_is_refused() {
    let whole = Shape::SMALL.format();
    let size = whole.geometry().size;
    for cut in [
        0,
        512,
        OFFSET,
        OFFSET + 512,
        OFFSET + 4096,
        OFFSET + 8192,
        size - 512,
    ] {
        let short = RamDevice::new(cut);
        let mut bytes = vec![0; cut as usize];
        whole.read_at(0, &mut bytes).unwrap();
        short.write_at(0, &bytes).unwrap();
        let opened = SealedDevice::open(&short, &gcm(Shape::SMALL, Access::Write));
        assert!(
            matches!(
                opened.map(drop),
                Err(VolumeError::Header { .. } | VolumeError::Cut { .. })
            ),
            "{cut}"
        );
    }
}

/// What is left of a device that was cut off can be read, as far as its last whole block.
#[test]
fn what_is_left_of_a_device_is_read() {
    let whole = wiped(METHODS[0], Shape::SMALL);
    let opened = SealedDevice::open(&whole, &gcm(Shape::SMALL, Access::Write)).unwrap();
    let expected = pattern(opened.geometry().size as usize);
    opened.write_at(0, &expected).unwrap();
    opened.flush().unwrap();
    drop(opened);
    let (bytes, mut last) = (all(&whole), u64::MAX);
    for sector in (OFFSET / 512..whole.geometry().size / 512).rev() {
        let cut = sector * 512;
        let short = RamDevice::new(cut);
        short.write_at(0, &bytes[..cut as usize]).unwrap();
        let refused = SealedDevice::open(&short, &gcm(Shape::SMALL, Access::Write));
        assert!(refused.is_err(), "{cut}");
        let Ok(opened) = SealedDevice::open(&short, &gcm(Shape::SMALL, Access::Read)) else {
            last = 0;
            continue;
        };
        let size = opened.geometry().size;
        assert!(size <= last.min(expected.len() as u64) && size > 0, "{cut}");
        assert!(last == u64::MAX || last - size <= 512, "{cut}");
        assert!(all(&opened) == expected[..size as usize], "{cut}");
        last = size;
    }
    assert_eq!(last, 0);
}

/// Any bytes of the superblock and the journal are handled without a panic.
#[test]
fn any_bytes_have_an_answer() {
    let original = wiped(METHODS[0], Shape::SMALL);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    let (mut opened, mut refused) = (0, 0);
    let journal = 3 * Shape::SMALL.section_sectors() * 512;
    for round in 0..3000 {
        let ram = copy(&original);
        for _ in 0..1 + random.next_u64() % 4 {
            let (start, length) = match round % 2 {
                0 => (OFFSET, 64),
                _ => (OFFSET + 4096, journal),
            };
            let at = start + random.next_u64() % length;
            let sector_start = at / 512 * 512;
            let mut sector = [0; 512];
            ram.read_at(sector_start, &mut sector).unwrap();
            sector[(at - sector_start) as usize] = random.next_u64() as u8;
            ram.write_at(sector_start, &sector).unwrap();
        }
        for access in [Access::Read, Access::Write] {
            match SealedDevice::open(&ram, &gcm(Shape::SMALL, access)) {
                Ok(sealed) => {
                    opened += 1;
                    let mut bytes = vec![0; sealed.geometry().size as usize];
                    let _either = sealed.read_at(0, &mut bytes);
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(opened > 100 && refused > 100, "{opened} {refused}");
}

#[test]
fn unknown_methods_are_refused() {
    for (encryption, integrity) in [
        ("aes-gcm-random", "hmac(sha256)"),
        ("aes-xts-plain64", "aead"),
        ("aes-xts-plain64", "none"),
        ("aes-xts-plain64", "hmac(md5)"),
        ("aes-xts-plain", "hmac(sha256)"),
        ("aes-cbc-random", "hmac(sha256)"),
        ("aes-ctr-random", "hmac(sha256)"),
        ("camellia-cbc-random", "hmac(sha256)"),
        ("aes-xts-essiv:sha256", "hmac(sha256)"),
        ("aes-gcm-essiv:sha256", "aead"),
        ("aes-cbc-essiv:sha1", "hmac(sha256)"),
        ("blowfish-cbc-plain64", "hmac(sha256)"),
        ("cipher_null-ecb", "hmac(sha256)"),
        ("aes:2-xts-random", "none"),
        ("cipher_null-xts-random", "none"),
        ("blowfish-xts-random", "none"),
        ("aegis128-random", "aead"),
        ("", ""),
        ("-", "-"),
    ] {
        let method = (encryption, integrity, 96, 28);
        let opened = SealedDevice::open(
            Shape::SMALL.format(),
            &mapping(method, Shape::SMALL, Access::Read),
        );
        assert!(
            matches!(
                opened.map(drop),
                Err(VolumeError::Unsupported { .. } | VolumeError::Cipher(_))
            ),
            "{encryption} {integrity}"
        );
    }
}

/// The bytes that the kernel was given to write, and the volume keys.
fn pattern(length: usize) -> Vec<u8> {
    let byte = |number: u32| (number.wrapping_mul(2_654_435_761) >> 13) as u8;
    (0..length as u32).map(byte).collect()
}

/// The data areas that Linux 6.1.192 left. They belong to LUKS2 volumes that cryptsetup 2.6.1 made
/// with `--integrity-no-wipe`, and were copied while the volumes were open. The first 4096 bytes of
/// the pattern went to byte 0, the second to byte 12288, and the third to byte 0 again. Each write
/// was followed by a flush, and all were in the journal then.
const KERNELS: &[(&str, &str, &str, usize, SectorSize)] = &[
    (
        "aes-gcm-random",
        "aes-gcm-random",
        "aead",
        32,
        SectorSize::B512,
    ),
    (
        "aes-xts-plain64-sha256",
        "aes-xts-plain64",
        "hmac(sha256)",
        96,
        SectorSize::B4096,
    ),
    (
        "aes-xts-random-sha512",
        "aes-xts-random",
        "hmac(sha512)",
        128,
        SectorSize::B512,
    ),
    (
        "chacha20-random",
        "chacha20-random",
        "poly1305",
        32,
        SectorSize::B512,
    ),
    (
        "aes-cbc-plain64-sha1",
        "aes-cbc-plain64",
        "hmac(sha1)",
        52,
        SectorSize::B512,
    ),
    (
        "aes-xts-random-none",
        "aes-xts-random",
        "none",
        64,
        SectorSize::B512,
    ),
];

#[test]
fn what_the_kernel_left_in_its_journal_is_read_and_replayed() {
    let pattern = pattern(3 * 4096);
    for &(name, encryption, integrity, key_bytes, sector_size) in KERNELS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/integrity");
        let file = std::fs::File::open(path.join(format!("{name}.zst"))).unwrap();
        let bytes = zstd::stream::decode_all(file).unwrap();
        let device = RamDevice::new(bytes.len() as u64);
        device.write_at(0, &bytes).unwrap();
        let mapping = |access| SealedMapping {
            encryption: encryption.into(),
            integrity: integrity.into(),
            key: Key::from_slice(&pattern[..key_bytes]),
            mac_key_bytes: None,
            sector_size,
            offset: 0,
            size: None,
            first: IvSector::new(0),
            access,
        };
        for access in [Access::Read, Access::Write, Access::Read] {
            let sealed = SealedDevice::open(&device, &mapping(access)).unwrap();
            let mut read = vec![0; 4096];
            sealed.read_at(0, &mut read).unwrap();
            assert!(read == pattern[8192..], "{name}, {access:?}");
            sealed.read_at(12_288, &mut read).unwrap();
            assert!(read == pattern[4096..8192], "{name}, {access:?}");
            let never_written = sealed.read_at(4096, &mut read);
            assert_eq!(never_written.is_ok(), integrity == "none", "{name}");
        }
        let other = SealedMapping {
            key: Key::from_slice(&pattern[1..=key_bytes]),
            ..mapping(Access::Read)
        };
        let sealed = SealedDevice::open(&device, &other).unwrap();
        let mut read = vec![0; 4096];
        let with_another_key = sealed.read_at(0, &mut read);
        assert_eq!(with_another_key.is_ok(), integrity == "none", "{name}");
    }
}
