//! Every signature from a handmade header, and what counts as blank.

use super::magics::{HIBERNATION, LUKS, NTFS, SWAP};
use super::shapes::{
    FROM_THE_END, HIBERNATION_MAGICS, MD, MD_MAGICS, PAGES, SWAP_MAGICS, ZFS, ZFS_LABEL, ZFS_MAGICS,
};
use super::*;
use crate::positioned::write_all_at;
use crate::{BlockDevice, RamDevice};

const SIZE: usize = 24 << 20;

fn with(pieces: &[(usize, &[u8])]) -> Vec<u8> {
    let mut device = vec![0; SIZE];
    for (offset, bytes) in pieces {
        device[*offset..offset + bytes.len()].copy_from_slice(bytes);
    }
    device
}

/// Through a file, as users' files are looked at, and as a disk, which has to be the
/// same but for what only a file can tell.
fn look(bytes: &[u8]) -> Content {
    let file = tempfile::tempfile().unwrap();
    write_all_at(&file, bytes, 0).unwrap();
    let size = bytes.len() as u64;
    let as_file = Content::of_file(&file, size, true).unwrap();
    let as_disk = Content::of_file(&file, size, false).unwrap();
    assert_eq!(as_file.found, as_disk.found);
    assert_eq!(as_file.is_blank(), as_disk.is_blank());
    as_file
}

fn names_of(bytes: &[u8]) -> Vec<&'static str> {
    look(bytes).found.iter().map(|found| found.name).collect()
}

fn is_unknown(content: &Content) -> bool {
    content.found.is_empty() && content.data.is_some()
}

#[test]
fn blank_is_all_zeros_or_all_ones() {
    for blank in [&[][..], &[0; 512], &vec![0; SIZE], &vec![0xff; SIZE]] {
        assert!(look(blank).is_blank(), "{}", blank.len());
    }
}

#[test]
fn one_odd_byte_anywhere_in_a_file_is_data() {
    for place in [0, 12345, (1 << 20) - 1, 5 << 20, (16 << 20) + 1, SIZE - 1] {
        let content = look(&with(&[(place, &[1])]));
        assert!(is_unknown(&content), "{place}");
        assert_eq!(content.data.unwrap().first, place as u64);
    }
    assert!(is_unknown(&look(&[7; 512])), "uniform is not enough");
    let mut mixed = vec![0; SIZE];
    mixed[1 << 19..].fill(0xff);
    assert!(is_unknown(&look(&mixed)));
}

#[test]
fn holes_are_not_read_and_data_behind_them_is_found() {
    let file = tempfile::tempfile().unwrap();
    let size = 1 << 42;
    if let Err(error) = file.set_len(size) {
        println!("skipped: a file of 4 TiB: {error}");
        return;
    }
    assert!(Content::of_file(&file, size, true).unwrap().is_blank());
    let place = size / 3 + 12_345;
    write_all_at(&file, b"letter", place).unwrap();
    let content = Content::of_file(&file, size, true).unwrap();
    let data = content.data.unwrap();
    assert_eq!(data.first, place);
    assert!(data.stored.unwrap() < 1 << 20, "{data:?}");
    // Nothing but holes, and ones: what was erased reads as one of both.
    file.set_len(0).unwrap();
    write_all_at(&file, &[0xff; 4096], 0).unwrap();
    file.set_len(1 << 20).unwrap();
    assert!(!Content::of_file(&file, 1 << 20, true).unwrap().is_blank());
}

#[test]
fn a_file_system_anywhere_on_a_disk_is_found() {
    // A disk cannot report its empty ranges. Data that fills a hundredth of it in one piece is met
    // by a sample at any place.
    let size = 2_u64 << 30;
    let file = tempfile::tempfile().unwrap();
    file.set_len(size).unwrap();
    for place in [3 << 20, 33 << 20, 700 << 20, size - (30 << 20)] {
        write_all_at(&file, &vec![5; 21 << 20], place).unwrap();
        let content = Content::of_file(&file, size, false).unwrap();
        let first = content.data.unwrap().first;
        assert!(
            (place..place + (21 << 20)).contains(&first),
            "{place}: {first}"
        );
        write_all_at(&file, &vec![0; 21 << 20], place).unwrap();
    }
    assert!(Content::of_file(&file, size, false).unwrap().is_blank());
}

/// A disk of 64 MiB is read whole, so a short text on it is found.
#[test]
fn a_disk_that_can_be_read_in_seconds_is_read_whole() {
    let size = 64_u64 << 20;
    let file = tempfile::tempfile().unwrap();
    file.set_len(size).unwrap();
    let read = |offset, into: &mut [u8]| positioned::read_exact_at(&file, into, offset);
    assert_eq!(readable(size, read).unwrap(), None);
    let place = (8 << 20) + (66 << 10);
    let text: Vec<u8> = b"letters\n".iter().copied().cycle().take(60_000).collect();
    write_all_at(&file, &text, place).unwrap();
    let content = Content::of_file(&file, size, false).unwrap();
    assert_eq!(content.data.map(|data| data.first), Some(place));
    assert_eq!(readable(size, read).unwrap(), Some(place));
}

#[test]
fn noise_is_data_whatever_it_is_taken_for() {
    use rand_core::{Rng, SeedableRng};
    let mut noise = vec![0; SIZE];
    for seed in 0..8 {
        rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(&mut noise);
        assert!(is_unknown(&look(&noise)));
    }
}

#[test]
fn noise_is_told_from_what_can_be_read() {
    use rand_core::{Rng, SeedableRng};
    let find = |bytes: &[u8]| {
        let read = |offset: u64, into: &mut [u8]| {
            let start = offset as usize;
            into.copy_from_slice(&bytes[start..start + into.len()]);
            Ok::<_, ()>(())
        };
        readable(bytes.len() as u64, read).unwrap()
    };
    let mut noise = vec![0; SIZE];
    rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(1).fill_bytes(&mut noise);
    assert_eq!(find(&noise), None);
    // A volume of which little was written yet.
    noise[5 << 20..].fill(0);
    assert_eq!(find(&noise), None);
    let text = b"Dear reader, this is no noise. ".repeat(40);
    noise[(9 << 20) + 700..][..text.len()].copy_from_slice(&text);
    assert_eq!(find(&noise), Some((9 << 20) + 512));
}

#[test]
fn every_magic_is_found_at_its_place() {
    for (offset, magic, name) in MAGICS {
        let device = with(&[(*offset as usize, magic)]);
        assert_eq!(names_of(&device), [*name], "{magic:x?}");
    }
    for (distance, magic, name) in FROM_THE_END {
        let device = with(&[(SIZE - *distance as usize, magic)]);
        assert_eq!(names_of(&device)[0], *name, "{magic:x?}");
    }
    for page in PAGES {
        for magic in SWAP_MAGICS {
            let device = with(&[(page as usize - 10, magic)]);
            assert_eq!(names_of(&device), [SWAP]);
        }
        for magic in HIBERNATION_MAGICS {
            let device = with(&[(page as usize - 10, magic)]);
            assert_eq!(names_of(&device), [HIBERNATION]);
        }
    }
}

#[test]
fn what_stood_in_a_partition_is_found_behind_a_table_that_is_gone() {
    for base in BASES {
        let device = with(&[(base as usize + 0x1_0040, b"_BHRfS_M")]);
        let content = look(&device);
        let found = &content.found[0];
        assert_eq!((found.name, found.at), ("a Btrfs file system", base));
    }
}

#[test]
fn label_and_uuid_are_told_and_cannot_harm_a_terminal() {
    let uuid: Vec<u8> = (0x10..0x20).collect();
    let xfs = with(&[(0, b"XFSB"), (32, &uuid), (108, b"my \x1b[2Jdata")]);
    let told = look(&xfs).to_string();
    assert!(
        told.contains("10111213-1415-1617-1819-1a1b1c1d1e1f"),
        "{told}"
    );
    assert!(told.contains("\"my \\u{1b}[2Jdata\""), "{told}");
}

#[test]
fn a_disk_that_cannot_be_read_is_not_blank() {
    let ram = RamDevice::new(1 << 20);
    assert!(ram.content().unwrap().is_blank());
    ram.write_at(4096, &[1; 512]).unwrap();
    assert!(is_unknown(&ram.content().unwrap()));
}

#[test]
fn second_luks2_headers_are_found_everywhere() {
    for shift in 14..=22 {
        let device = with(&[(1 << shift, b"SKUL\xba\xbe")]);
        assert_eq!(names_of(&device), [LUKS], "at 2^{shift}");
    }
}

#[test]
fn raid_and_zfs_are_found_at_both_ends() {
    for place in [0, 4096, SIZE - 8192, SIZE - 0x1_0000] {
        for magic in MD_MAGICS {
            assert_eq!(names_of(&with(&[(place, magic)])), [MD]);
        }
    }
    let label = ZFS_LABEL as usize;
    for start in [0, label, SIZE - 2 * label, SIZE - label] {
        let device = with(&[(start + label / 2 + 5 * 1024, ZFS_MAGICS[0])]);
        assert_eq!(names_of(&device), [ZFS], "{start}");
    }
}

#[test]
fn partition_tables() {
    let gpt = ["the backup of a GPT partition table"];
    assert_eq!(names_of(&with(&[(SIZE - 512, b"EFI PART")])), gpt);
    assert_eq!(names_of(&with(&[(SIZE - 4096, b"EFI PART")])), gpt);
    let entry = [0x80, 0, 1, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0];
    let mbr = with(&[(446, &entry), (510, &[0x55, 0xaa])]);
    assert_eq!(names_of(&mbr), ["an MBR partition table"]);
    let boot = with(&[(0, &[0xeb]), (510, &[0x55, 0xaa])]);
    assert_eq!(names_of(&boot), ["a boot sector"]);
}

#[test]
fn boot_sectors_of_file_systems_keep_their_names() {
    let ntfs = with(&[(3, b"NTFS    "), (510, &[0x55, 0xaa])]);
    assert_eq!(names_of(&ntfs), [NTFS]);
}

#[test]
fn small_and_odd_sizes_are_no_trouble() {
    for size in [1, 511, 513, 1025, 4095, 65537, (1 << 20) + 1] {
        let mut device = vec![0; size];
        assert!(look(&device).is_blank());
        device[size - 1] = 1;
        assert!(is_unknown(&look(&device)));
    }
}
