//! LUKS1: the header field by field.

use super::{
    GOOD_LUKS1, Opens, Reads, Refused, Row, Seen, bytes_of, check, device_of, limits, row, secret,
};
use volume::luks1::{Header, Outline};

type Spoil = fn(&mut Vec<u8>);

const fn slot(number: usize, field: usize) -> usize {
    208 + 48 * number + field
}

fn put(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

fn word(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + 32].fill(0);
    bytes[at..at + value.len()].copy_from_slice(value);
}

fn spoilt(spoil: Spoil) -> Vec<u8> {
    let mut bytes = GOOD_LUKS1.clone();
    spoil(&mut bytes);
    bytes
}

/// Reads it, opens it, and gives it a UUID, which changes nothing else.
fn see(bytes: &[u8]) -> Seen {
    let device = device_of(bytes);
    let told = Outline::read(&device).is_ok();
    let Ok(mut header) = Header::read(&device) else {
        assert!(told || bytes[7] != 1, "what can be told is told");
        return Seen {
            ours: Refused,
            writes: false,
            written: Vec::new(),
        };
    };
    let opened = header.unlock(&device, &secret(), None, &limits());
    let written = header.set_uuid(&device, Some("00000000-0000-4000-8000-000000000000"));
    let after = bytes_of(&device);
    match written {
        Ok(()) => {
            let same = |range: std::ops::Range<usize>| after[range.clone()] == bytes[range];
            assert!(same(0..168) && same(208..bytes.len()), "the rest is kept");
        }
        Err(_) => assert_eq!(after, bytes, "nothing is written on an error"),
    }
    Seen {
        ours: if opened.is_ok() { Opens } else { Reads },
        writes: written.is_ok(),
        written: after,
    }
}

const ROWS: &[Row<Spoil>] = &[
    row("luks1-sound", Opens, Opens, true, |_| ()),
    row("luks1-version-3", Refused, Refused, false, |b| b[7] = 3),
    row("luks1-hash-unknown", Refused, Refused, false, |b| {
        word(b, 72, b"crc32")
    }),
    row("luks1-hash-in-capitals", Opens, Opens, true, |b| {
        word(b, 72, b"SHA256")
    }),
    row("luks1-cipher-unknown", Reads, Refused, false, |b| {
        word(b, 8, b"rot13")
    }),
    row("luks1-cipher-null", Reads, Reads, true, |b| {
        word(b, 8, b"cipher_null");
        word(b, 40, b"ecb");
    }),
    row("luks1-uuid-of-no-utf8", Opens, Opens, true, |b| {
        b[168] = 0xe9
    }),
    row("luks1-text-behind-the-hash", Opens, Opens, true, |b| {
        b[80..87].copy_from_slice(b"garbage")
    }),
    row("luks1-key-of-0-bytes", Refused, Refused, false, |b| {
        put(b, 108, 0)
    }),
    row("luks1-payload-in-a-keyslot", Refused, Refused, false, |b| {
        put(b, 104, 16)
    }),
    row(
        "luks1-payload-in-a-free-keyslot",
        Refused,
        Opens,
        false,
        |b| put(b, 104, 8 + 2 * 128),
    ),
    row("luks1-slot-in-the-header", Refused, Refused, false, |b| {
        put(b, slot(1, 40), 1)
    }),
    row("luks1-slot-upon-another", Refused, Refused, false, |b| {
        put(b, slot(1, 40), 9)
    }),
    row("luks1-free-slot-upon-another", Refused, Opens, false, |b| {
        put(b, slot(6, 40), 9)
    }),
    row(
        "luks1-free-slot-behind-the-data",
        Refused,
        Opens,
        false,
        |b| put(b, slot(6, 40), u32::MAX),
    ),
    row("luks1-slot-stripes-1", Refused, Opens, false, |b| {
        put(b, slot(1, 44), 1)
    }),
    row("luks1-free-slot-stripes-0", Refused, Opens, false, |b| {
        put(b, slot(6, 44), 0)
    }),
    row("luks1-slot-state-unknown", Opens, Opens, true, |b| {
        put(b, slot(6, 0), 0x55AA)
    }),
    row("luks1-slot-iterations-0", Opens, Opens, true, |b| {
        put(b, slot(1, 4), 0)
    }),
    row("luks1-cut-in-the-keyslots", Refused, Refused, false, |b| {
        b.truncate(8192)
    }),
];

#[test]
fn luks1_headers_are_read_and_written_by_cryptsetups_rules() {
    check(ROWS, spoilt, see);
}

/// What a backup copies is neither huge nor less than a header, whatever free
/// keyslots say.
#[test]
fn a_header_takes_a_possible_place() {
    let all_free =
        |bytes: &mut Vec<u8>| (0..8).for_each(|number| put(bytes, slot(number, 0), 0xDEAD));
    let detached = spoilt(|bytes| {
        put(bytes, 104, 0);
        put(bytes, slot(6, 40), u32::MAX);
        put(bytes, slot(7, 44), u32::MAX);
    });
    let header = Header::read(&device_of(&detached)).unwrap();
    assert!((4096..2 << 20).contains(&header.bytes_with_keyslots()));
    for payload in [1, 2, 7] {
        let mut bytes = GOOD_LUKS1.clone();
        all_free(&mut bytes);
        put(&mut bytes, 104, payload);
        assert!(Header::read(&device_of(&bytes)).is_err(), "{payload}");
    }
    let mut bytes = GOOD_LUKS1.clone();
    all_free(&mut bytes);
    put(&mut bytes, 104, 8);
    let header = Header::read(&device_of(&bytes)).unwrap();
    assert_eq!(header.bytes_with_keyslots(), 4096);
}
