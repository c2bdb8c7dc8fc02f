//! Every signature from a handmade header, and from real tools where they are.

use super::*;
use crate::positioned::{read_exact_at, write_all_at};
use std::fs::File;

const SIZE: usize = 8 << 20;

fn with(pieces: &[(usize, &[u8])]) -> Vec<u8> {
    let mut device = vec![0; SIZE];
    for (offset, bytes) in pieces {
        device[*offset..offset + bytes.len()].copy_from_slice(bytes);
    }
    device
}

fn read(file: &File, size: u64) -> Content {
    Content::read(size, |offset, into| read_exact_at(file, into, offset)).unwrap()
}

/// Through a file, as users' devices are looked at.
fn look(device: &[u8]) -> Content {
    let file = tempfile::tempfile().unwrap();
    write_all_at(&file, device, 0).unwrap();
    read(&file, device.len() as u64)
}

#[test]
fn blank_is_all_zeros_or_all_ones() {
    assert_eq!(look(&[]), Content::Blank);
    assert_eq!(look(&[0; 512]), Content::Blank);
    assert_eq!(look(&vec![0; SIZE]), Content::Blank);
    assert_eq!(look(&vec![0xff; SIZE]), Content::Blank);
}

#[test]
fn one_odd_byte_is_data() {
    for place in [0, 12345, (1 << 20) - 1, SIZE - (128 << 10), SIZE - 1] {
        assert_eq!(look(&with(&[(place, &[1])])), Content::Unknown, "{place}");
    }
    assert_eq!(look(&[7; 512]), Content::Unknown, "uniform is not enough");
    let mut mixed = vec![0; SIZE];
    mixed[1 << 19..].fill(0xff);
    assert_eq!(look(&mixed), Content::Unknown);
}

#[test]
fn noise_is_data_whatever_it_is_taken_for() {
    use rand_core::{Rng, SeedableRng};
    let mut noise = vec![0; SIZE];
    for seed in 0..8 {
        rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(&mut noise);
        assert_eq!(look(&noise), Content::Unknown);
    }
}

#[test]
fn every_magic_is_found_at_its_place() {
    for (offset, magic, name) in MAGICS {
        let device = with(&[(*offset as usize, magic)]);
        assert_eq!(look(&device), Content::Known(name), "{magic:x?}");
    }
    for page in PAGES {
        for magic in SWAP_MAGICS {
            let device = with(&[(page as usize - 10, magic)]);
            assert_eq!(look(&device), Content::Known(SWAP));
        }
    }
}

#[test]
fn second_luks2_headers_are_found_everywhere() {
    for shift in 14..=22 {
        let device = with(&[(1 << shift, LUKS2_SECOND)]);
        assert_eq!(look(&device), Content::Known(LUKS), "at 2^{shift}");
    }
}

#[test]
fn raid_and_zfs_are_found_at_both_ends() {
    for place in [0, 4096, SIZE - 8192, SIZE - 0x1_0000] {
        for magic in MD_MAGICS {
            assert_eq!(look(&with(&[(place, magic)])), Content::Known(MD));
        }
    }
    let label = ZFS_LABEL as usize;
    for start in [0, label, SIZE - 2 * label, SIZE - label] {
        let device = with(&[(start + label / 2 + 5 * 1024, ZFS_MAGICS[0])]);
        assert_eq!(
            look(&device),
            Content::Known("a member of a ZFS pool"),
            "{start}"
        );
    }
}

#[test]
fn partition_tables() {
    let gpt = Content::Known("the backup of a GPT partition table");
    assert_eq!(look(&with(&[(SIZE - 512, b"EFI PART")])), gpt);
    assert_eq!(look(&with(&[(SIZE - 4096, b"EFI PART")])), gpt);
    let entry = [0x80, 0, 1, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0];
    let mbr = with(&[(446, &entry), (510, &[0x55, 0xaa])]);
    assert_eq!(look(&mbr), Content::Known("an MBR partition table"));
    let boot = with(&[(0, &[0xeb]), (510, &[0x55, 0xaa])]);
    assert_eq!(look(&boot), Content::Known("a boot sector"));
}

#[test]
fn boot_sectors_of_file_systems_keep_their_names() {
    let ntfs = with(&[(3, b"NTFS    "), (510, &[0x55, 0xaa])]);
    assert_eq!(look(&ntfs), Content::Known("an NTFS file system"));
}

#[test]
fn small_and_odd_sizes_are_no_trouble() {
    for size in [1, 511, 513, 1025, 4095, 65537, (1 << 20) + 1] {
        let mut device = vec![0; size];
        assert_eq!(look(&device), Content::Blank);
        device[size - 1] = 1;
        assert_eq!(look(&device), Content::Unknown);
    }
}

/// What the formatting tools of this machine write.
#[test]
fn real_tools_are_recognised() {
    use std::process::{Command, Stdio};
    let cases: &[(&[&str], &str)] = &[
        (&["mkfs.ext2", "-q", "-F"], EXT),
        (&["mkfs.ext4", "-q", "-F"], EXT),
        (&["mkfs.xfs", "-q", "-f"], "an XFS file system"),
        (&["mkfs.btrfs", "-q", "-f"], "a Btrfs file system"),
        (&["mkfs.f2fs", "-q", "-f"], "an F2FS file system"),
        (&["mkfs.vfat"], FAT),
        (&["mkfs.exfat"], "an exFAT file system"),
        (&["mkfs.ntfs", "-q", "-F"], "an NTFS file system"),
        (&["mkswap", "-q"], SWAP),
        (&["sgdisk", "-n", "1"], "a GPT partition table"),
    ];
    let empty = tempfile::tempdir().unwrap();
    for (command, name) in cases {
        let image = tempfile::NamedTempFile::new().unwrap();
        // Large enough for the greediest of them (XFS); a hole, not space.
        image.as_file().set_len(320 << 20).unwrap();
        run(Command::new(command[0])
            .args(&command[1..])
            .arg(image.path()))
        .map_or_else(
            |reason| println!("skipped: {}: {reason}", command[0]),
            |()| check(image.path(), name),
        );
    }
    for (tool, name) in [("mkfs.cramfs", CRAMFS), ("mksquashfs", SQUASHFS)] {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(empty.path().join("file"), [1; 5000]).unwrap();
        let image = directory.path().join("image");
        run(Command::new(tool).arg(empty.path()).arg(&image)).map_or_else(
            |reason| println!("skipped: {tool}: {reason}"),
            |()| check(&image, name),
        );
    }
    let image = tempfile::NamedTempFile::new().unwrap();
    run(Command::new("mkfs.jffs2")
        .arg("-r")
        .arg(empty.path())
        .arg("-o")
        .arg(image.path()))
    .map_or_else(
        |reason| println!("skipped: mkfs.jffs2: {reason}"),
        |()| check(image.path(), JFFS2),
    );

    fn run(command: &mut Command) -> Result<(), String> {
        let output = command.stdin(Stdio::null()).output();
        match output {
            Err(error) => Err(error.to_string()),
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    fn check(image: &std::path::Path, name: &'static str) {
        let file = File::open(image).unwrap();
        let size = file.metadata().unwrap().len();
        assert_eq!(read(&file, size), Content::Known(name));
    }
}
