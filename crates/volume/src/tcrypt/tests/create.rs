//! Volumes made, changed and grown.

use super::super::create::data_bytes;
use super::*;
use crate::Verdict;
use crate::crc::crc32;
use block::layer::{Protected, Trace};
use block::{BlockError, OperationKind};

#[test]
fn what_is_created_opens_from_both_headers() {
    for (family, prf, pim, ciphers) in [
        (TrueCrypt, "ripemd160", None, "aes-xts-plain64"),
        (TrueCrypt, "whirlpool", None, "serpent-twofish-aes"),
        (VeraCrypt, "sha256", Some(1), "twofish-xts-plain64"),
        (VeraCrypt, "blake2s-256", Some(2), "camellia-kuznyechik"),
        (
            VeraCrypt,
            "argon2id",
            Some(1),
            "kuznyechik-serpent-camellia",
        ),
    ] {
        let device = RamDevice::new(SIZE);
        let mut keyfiles = Keyfiles::none();
        keyfiles.add(b"content of a key file").unwrap();
        let prf = Prf::named(prf).unwrap();
        let creation = Creation {
            family,
            algorithms: spec(ciphers).algorithms().to_vec(),
            sealing: Sealing {
                prf,
                pim,
                keyfiles: keyfiles.clone(),
            },
        };
        let limits = Limits::default();
        let made = creation.create(&device, &key(OLD), &limits).unwrap();
        let data = pattern(SIZE - 2 * HEADERS_BYTES);
        volume(&made, &device).write_at(0, &data).unwrap();
        for place in NORMAL {
            let mut opening = Opening {
                pim,
                keyfiles: keyfiles.clone(),
                ..opening(family, place, prf)
            };
            let (opened, plaintext) = open(&opening, &device).unwrap();
            assert_eq!(opened.spec, made.spec);
            assert_eq!(bytes(&plaintext), data, "{family:?} {ciphers}");
            opening.keyfiles = Keyfiles::none();
            opening.algorithms = Some(creation.algorithms.clone());
            let without = open(&opening, &device).map(drop);
            assert!(matches!(without, Err(VolumeError::NoHeaderFits)));
        }
    }
}

/// Nothing of a header repeats, and nothing of the header areas is left zero.
#[test]
fn headers_stand_among_noise() {
    let device = RamDevice::new(SIZE);
    create(&device, OLD).unwrap();
    let all = bytes(&device);
    let area = HEADERS_BYTES as usize;
    let (first, last) = (&all[..area], &all[all.len() - area..]);
    for area in [first, last] {
        for (at, sector) in area.chunks(512).enumerate() {
            let ones: u32 = sector.iter().map(|byte| byte.count_ones()).sum();
            assert!((1700..2400).contains(&ones), "sector {at} has {ones} ones");
        }
    }
    assert_ne!(first[..64], last[..64], "both headers have one salt");
    assert_ne!(first[64..512], last[64..512]);
}

#[test]
fn sizes_are_those_of_both_programs() {
    // Of volumes that TrueCrypt and VeraCrypt made.
    assert_eq!(data_bytes(299_008, 512), 36_864);
    assert_eq!(data_bytes(348_160, 512), 86_016);
    for (size, hidden, offset) in [(312_320, 19_456, 157_696), (348_160, 47_104, 165_888)] {
        let device = RamDevice::new(size);
        let outer = create(&device, OLD).unwrap();
        let made = hide(&device, &outer, hidden).unwrap();
        assert_eq!(made.header.data_offset, offset);
    }
}

#[test]
fn hidden_volumes_live_in_normal_ones() {
    let device = RamDevice::new(8 << 20);
    let outer = create(&device, OLD).unwrap();
    let most = (8 << 20) - 2 * HEADERS_BYTES - 65_536 - 512;
    for size in [0, 511, most + 512, u64::MAX - 511] {
        let error = hide(&device, &outer, size).unwrap_err();
        assert!(error.to_string().contains("hidden volume of"), "{error}");
        assert!(opens(&device, Hidden, NEW).is_none());
    }
    let made = hide(&device, &outer, most).unwrap();
    let data = pattern(most);
    volume(&made, &device).write_at(0, &data).unwrap();
    for place in HIDDEN {
        let opened = opens(&device, place, NEW).unwrap();
        assert_eq!(content(&opened, &device), data);
        assert!(opens(&device, place, OLD).is_none());
    }
    assert!(opens(&device, Normal, OLD).is_some());
    assert!(opens(&device, Normal, NEW).is_none());
    let nested = hide(&device, &made, 512);
    assert!(matches!(nested, Err(VolumeError::Unsupported { .. })));
}

#[test]
fn what_cannot_be_created_is_refused_before_anything_is_written() {
    let with = |prf: &str, pim, cipher: &str| Creation {
        family: VeraCrypt,
        algorithms: spec(cipher).algorithms().to_vec(),
        sealing: Sealing {
            pim,
            ..Sealing::new(Prf::named(prf).unwrap())
        },
    };
    let narrow = Creation {
        algorithms: vec![Algorithm::Cast5],
        ..creation()
    };
    let small = "the device has 262144 bytes, but the header and some data need 262656";
    let empty = "the passphrase has 0 bytes, and the minimum is 1";
    let long = "the passphrase has 65 bytes, and 64 is the maximum";
    let no_sha1 = "VeraCrypt has no key derivation with sha1";
    let no_cipher = "VeraCrypt has no cipher aes-camellia";
    let no_xts = "TrueCrypt has no XTS with a cipher of 64-bit blocks";
    let aes = "aes-xts-plain64";
    for (creation, size, passphrase, expected) in [
        (creation(), 262_144, OLD, small),
        (creation(), SIZE, b"", empty),
        (creation(), SIZE, &[b'x'; 65], long),
        (with("sha1", None, aes), SIZE, OLD, no_sha1),
        (
            with("sha512", Some(3_000_000), aes),
            SIZE,
            OLD,
            "the PIM is 3000000",
        ),
        (
            with("argon2id", Some(400), aes),
            SIZE,
            OLD,
            "the key derivation takes about ",
        ),
        (
            with("sha512", Some(1), "aes-camellia"),
            SIZE,
            OLD,
            no_cipher,
        ),
        (narrow, SIZE, OLD, no_xts),
    ] {
        let device = Trace::new(RamDevice::new(size));
        let refused = creation.create(&device, &key(passphrase), &Limits::default());
        let said = refused.unwrap_err().to_string();
        assert!(said.starts_with(expected), "{said}");
        let is_write = |entry: &block::layer::TraceEntry| entry.operation == OperationKind::Write;
        assert!(!device.take().iter().any(is_write), "{said}");
    }
}

#[test]
fn a_changed_passphrase_is_the_only_one() {
    let (device, data) = full();
    change(&mut opens(&device, Normal, OLD).unwrap(), &device).unwrap();
    for place in NORMAL {
        assert!(opens(&device, place, OLD).is_none());
        let opened = opens(&device, place, NEW).unwrap();
        assert_eq!(content(&opened, &device), data);
    }
}

#[test]
fn a_destroyed_header_is_restored_from_its_copy() {
    for ([place, backup], offset) in [(NORMAL, 0), (HIDDEN, HIDDEN_AT)] {
        let device = RamDevice::new(SIZE);
        let outer = create(&device, NEW).unwrap();
        hide(&device, &outer, 65_536).unwrap();
        device.write_at(offset, &[0; 512]).unwrap();
        assert!(opens(&device, place, NEW).is_none());
        let opened = opens(&device, backup, NEW).unwrap();
        restore(&opened, &device).unwrap();
        let again = opens(&device, place, NEW).unwrap();
        assert_eq!(again.header.to_sector(), opened.header.to_sector());
        assert!(opens(&device, backup, NEW).is_some());
    }
}

/// The first 128 KiB in a file of their own, as VeraCrypt backs headers up.
#[test]
fn both_headers_are_written_from_a_backup() {
    for (places, passphrase) in [(NORMAL, OLD), (HIDDEN, NEW)] {
        let (device, _) = full();
        let outer = opens(&device, Normal, OLD).unwrap();
        let hidden = hide(&device, &outer, 65_536).unwrap();
        let backup = RamDevice::new(HEADERS_BYTES);
        let nothing = vec![0; HEADERS_BYTES as usize];
        backup
            .write_at(0, &bytes(&device)[..nothing.len()])
            .unwrap();
        device.write_at(0, &nothing).unwrap();
        device.write_at(SIZE - HEADERS_BYTES, &nothing).unwrap();
        assert!(rescued(&device, NORMAL, &[OLD]).is_none());

        let saved = opens(&backup, places[0], passphrase).unwrap();
        let write =
            |device| saved.write_headers(device, &sealing(), &key(b"another"), &Limits::default());
        write(&device).unwrap();
        let expected = match places {
            NORMAL => content(&outer, &device),
            _ => content(&hidden, &device),
        };
        for place in places {
            let opened = opens(&device, place, b"another").unwrap();
            assert_eq!(content(&opened, &device), expected);
        }
        let small = RamDevice::new(SIZE - HEADERS_BYTES - 512);
        assert!(write(&small).is_err());
        assert!(rescued(&small, places, &[b"another"]).is_none());
    }
}

#[test]
fn headers_without_a_copy_are_left_alone() {
    let system = device_with(System, SYSTEM_AT, |_| {});
    let mut opened = opens(&system, System, OLD).unwrap();
    let error = change(&mut opened, &system);
    assert!(matches!(error, Err(VolumeError::Unsupported { .. })));
    assert!(restore(&opened, &system).is_err());
    assert!(grow(&mut opened, &system, NEW).is_err());
    assert!(opens(&system, System, OLD).is_some());
}

#[test]
fn a_volume_grows_with_its_device() {
    for growth in [512, 65_536, HEADERS_BYTES, 1 << 20] {
        let (small, _) = full();
        let outer = opens(&small, Normal, OLD).unwrap();
        hide(&small, &outer, 65_536).unwrap();
        let data = pattern(SIZE - 2 * HEADERS_BYTES);
        volume(&outer, &small).write_at(0, &data).unwrap();

        let device = enlarged(&small, SIZE + growth);
        let mut opened = opens(&device, Normal, OLD).unwrap();
        grow(&mut opened, &device, OLD).unwrap();
        for place in NORMAL {
            let all = content(&opens(&device, place, OLD).unwrap(), &device);
            assert_eq!(all.len() as u64, data.len() as u64 + growth);
            assert_eq!(all[..data.len()], data);
        }
        for place in HIDDEN {
            assert!(opens(&device, place, NEW).is_some(), "{growth}");
        }
        let error = grow(&mut opened, &device, OLD);
        assert!(matches!(error, Err(VolumeError::TooSmall { .. })));
    }
}

#[test]
fn a_volume_that_is_encrypted_in_part_does_not_grow() {
    let small = device_with(Normal, 0, |header| {
        header[52..60].copy_from_slice(&512_u64.to_be_bytes());
        header[63] = 2;
        let checksum = crc32(&header[..188]);
        header[188..192].copy_from_slice(&checksum.to_be_bytes());
    });
    let device = enlarged(&small, SIZE + 4096);
    let mut opened = opens(&device, Normal, OLD).unwrap();
    let error = grow(&mut opened, &device, NEW);
    assert!(matches!(error, Err(VolumeError::Unsupported { .. })));
    assert!(opens(&device, Normal, OLD).is_some());
}

/// As the outer volume is written with protection: up to the hidden one, and
/// not into it.
#[test]
fn a_hidden_volume_can_be_protected() {
    let (device, _) = full();
    let outer = opens(&device, Normal, OLD).unwrap();
    let hidden = hide(&device, &outer, 65_536).unwrap();
    let data = pattern(65_536);
    volume(&hidden, &device).write_at(0, &data).unwrap();

    let range = hidden.mapping(&device).unwrap().data;
    let guarded = Protected::new(&device, range);
    let mapping = outer.mapping(&device).unwrap();
    let before = range.offset - mapping.data.offset;
    let written = CryptDevice::new(&guarded, mapping).unwrap();
    written.write_at(before - 4096, &[5; 4096]).unwrap();
    let error = written.write_at(before - 512, &[6; 1024]).unwrap_err();
    assert!(matches!(error, BlockError::Protected { .. }), "{error}");
    assert_eq!(VolumeError::from(error).verdict(), Verdict::Protected);
    assert!(guarded.has_refused());

    assert_eq!(content(&hidden, &device), data);
    let rest = &content(&outer, &device)[before as usize - 4096..][..4096];
    assert_eq!(rest, [5; 4096]);
}
