//! Headers that open but must be refused. Each line of the table states the fault and the expected
//! message.

use super::*;
use crate::crc::crc32;

const CASES: &str = include_str!("../../../tests/vectors/tcrypt-hostile.tsv");

/// Name, offset and length of what the table changes.
const FIELDS: [(&str, usize, usize); 15] = [
    ("magic", 0, 4),
    ("version", 4, 2),
    ("key_checksum", 8, 4),
    ("volume_time", 12, 8),
    ("header_time", 20, 8),
    ("hidden_size", 28, 8),
    ("volume_size", 36, 8),
    ("data_offset", 44, 8),
    ("encrypted_size", 52, 8),
    ("flags", 60, 4),
    ("sector_size", 64, 4),
    ("last_reserved", 187, 1),
    ("checksum", 188, 4),
    ("first_key", 192, 1),
    ("last_key", 447, 1),
];

/// Makes one change: `field=value`.
fn change(header: &mut [u8], text: &str) {
    let (name, value) = text.split_once('=').unwrap();
    let value = match value.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => value.parse(),
    };
    let (_, at, length) = FIELDS.into_iter().find(|field| field.0 == name).unwrap();
    let bytes = value.unwrap().to_be_bytes();
    header[at..at + length].copy_from_slice(&bytes[8 - length..]);
}

fn make_right(header: &mut [u8], checksums: &str) {
    if checksums == "both" {
        let checksum = crc32(&header[192..]);
        header[8..12].copy_from_slice(&checksum.to_be_bytes());
    }
    if checksums != "none" {
        let checksum = crc32(&header[..188]);
        header[188..192].copy_from_slice(&checksum.to_be_bytes());
    }
}

#[test]
fn hostile_headers_are_refused_by_name() {
    let mut refused = 0;
    for line in CASES.lines().filter(|line| !line.starts_with('#')) {
        let [name, place, changes, checksums, expected] = line.split('\t').collect::<Vec<_>>()[..]
        else {
            panic!("{line}");
        };
        let (place, offset) = match place {
            "normal" => (Normal, 0),
            "hidden" => (Hidden, HIDDEN_AT),
            "old-hidden" => (Hidden, SIZE - OLD_HIDDEN_BEFORE_END),
            "system" => (System, SYSTEM_AT),
            other => panic!("{other}"),
        };
        let device = device_with(place, offset, |header| {
            for text in changes.split(' ') {
                change(header, text);
            }
            make_right(header, checksums);
        });
        let error = match open(&opening(TrueCrypt, place, SHA512), &device) {
            Err(error) => error,
            Ok((unlocked, _)) => panic!("{name}: opened as {:?}", unlocked.header),
        };
        let said = error.to_string();
        assert!(said.contains(expected), "{name}: {said}");
        assert!(!error.remedy().is_empty(), "{name}");
        refused += 1;
    }
    println!("{refused} hostile headers refused");
    assert!(refused >= 60);
}

#[test]
fn any_flipped_bit_is_noticed() {
    let sealed = sealed(good_header(Normal).to_sector());
    for bit in (0..512 * 8).step_by(5) {
        let device = RamDevice::new(SIZE);
        let mut flipped = sealed;
        flipped[bit / 8] ^= 1 << (bit % 8);
        device.write_at(0, &flipped).unwrap();
        let error = open(&opening(TrueCrypt, Normal, SHA512), &device);
        assert!(error.is_err(), "bit {bit} of the header does not matter");
    }
}

#[test]
fn devices_too_short_for_a_header_say_so() {
    for (place, size, needed) in [
        (Normal, 0, 512),
        (NormalBackup, 65_536, 131_072),
        (Hidden, 1024, 66_048),
        (HiddenBackup, 65_024, 65_536),
        (System, 31_744, 32_256),
    ] {
        let device = RamDevice::new(size);
        let error = open(&opening(TrueCrypt, place, SHA512), &device);
        let said = error.err().unwrap().to_string();
        let expected = format!("it needs {needed} bytes, and the file or device has {size}");
        assert!(said.ends_with(&expected), "{said}");
    }
}
