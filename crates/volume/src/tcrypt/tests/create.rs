//! Volumes made, changed and grown.

use super::super::create::data_bytes;
use super::volumes::*;
use super::*;
use crate::Verdict;
use crate::crc::crc32;
use block::layer::{Protected, Trace};
use block::{BlockError, OperationKind};
use cipher::Algorithm;

#[test]
fn what_is_created_opens_from_both_headers() {
    for (family, prf, pim, ciphers) in [
        (Family::TrueCrypt, "ripemd160", None, "aes-xts-plain64"),
        (Family::TrueCrypt, "whirlpool", None, "serpent-twofish-aes"),
        (Family::VeraCrypt, "sha256", Some(1), "twofish-xts-plain64"),
        (
            Family::VeraCrypt,
            "blake2s-256",
            Some(2),
            "camellia-kuznyechik",
        ),
        (
            Family::VeraCrypt,
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
        for place in [Place::Normal, Place::NormalBackup] {
            let mut opening = Opening {
                pim,
                keyfiles: keyfiles.clone(),
                ..opening(family, place, prf)
            };
            let unlock = |opening: &Opening| {
                let secret = Secret::Passphrase(key(OLD));
                opening.unlock(&device, &secret, &limits, &silent)
            };
            let opened = unlock(&opening).unwrap();
            assert_eq!(opened.spec, made.spec);
            assert_eq!(content(&opened, &device), data, "{family:?} {ciphers}");
            opening.keyfiles = Keyfiles::none();
            opening.algorithms = Some(creation.algorithms.clone());
            assert!(matches!(unlock(&opening), Err(VolumeError::NoHeaderFits)));
        }
    }
}

/// Nothing of a header repeats, and nothing of the header areas is left zero.
#[test]
fn headers_stand_among_noise() {
    let device = RamDevice::new(SIZE);
    create(&device, OLD).unwrap();
    let area = |offset| {
        let mut area = vec![0; HEADERS_BYTES as usize];
        device.read_at(offset, &mut area).unwrap();
        area
    };
    let (first, last) = (area(0), area(SIZE - HEADERS_BYTES));
    for area in [&first, &last] {
        let sectors: Vec<_> = area.chunks(512).collect();
        for (at, sector) in sectors.iter().enumerate() {
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
        let made = creation()
            .create_hidden(&device, &outer, hidden, &key(NEW), &Limits::default())
            .unwrap();
        assert_eq!(made.header.data_offset, offset);
    }
}

#[test]
fn hidden_volumes_live_in_normal_ones() {
    let device = RamDevice::new(8 << 20);
    let outer = create(&device, OLD).unwrap();
    let hidden =
        |size| creation().create_hidden(&device, &outer, size, &key(NEW), &Limits::default());
    let most = (8 << 20) - 2 * HEADERS_BYTES - 65_536 - 512;
    for size in [0, 511, most + 512, u64::MAX - 511] {
        let error = hidden(size).unwrap_err();
        assert!(error.to_string().contains("hidden volume of"), "{error}");
        assert!(opens(&device, Place::Hidden, NEW).is_none());
    }
    let made = hidden(most).unwrap();
    let data = pattern(most);
    volume(&made, &device).write_at(0, &data).unwrap();
    for place in [Place::Hidden, Place::HiddenBackup] {
        let opened = opens(&device, place, NEW).unwrap();
        assert_eq!(content(&opened, &device), data);
        assert!(opens(&device, place, OLD).is_none());
    }
    assert!(opens(&device, Place::Normal, OLD).is_some());
    assert!(opens(&device, Place::Normal, NEW).is_none());
    let nested = creation().create_hidden(&device, &made, 512, &key(NEW), &Limits::default());
    assert!(matches!(nested, Err(VolumeError::Unsupported { .. })));
}

#[test]
fn what_cannot_be_created_is_refused_before_anything_is_written() {
    let limits = Limits::default();
    let refused = |creation: &Creation, size, passphrase: &[u8]| {
        let device = Trace::new(RamDevice::new(size));
        let error = creation
            .create(&device, &key(passphrase), &limits)
            .unwrap_err();
        let written = device
            .take()
            .into_iter()
            .any(|entry| entry.operation == OperationKind::Write);
        assert!(!written, "{error}");
        error.to_string()
    };
    let with = |prf: &str, pim, cipher: &str| Creation {
        family: Family::VeraCrypt,
        algorithms: spec(cipher).algorithms().to_vec(),
        sealing: Sealing {
            pim,
            ..Sealing::new(Prf::named(prf).unwrap())
        },
    };
    let aes = "aes-xts-plain64";
    for (creation, size, passphrase, expected) in [
        (
            creation(),
            262_144,
            OLD,
            "the device has 262144 bytes, but the header and some data need 262656",
        ),
        (
            creation(),
            SIZE,
            b"",
            "the passphrase has 0 bytes, and the minimum is 1",
        ),
        (
            creation(),
            SIZE,
            &[b'x'; 65],
            "the passphrase has 65 bytes, and 64 is the maximum",
        ),
        (
            with("sha1", None, aes),
            SIZE,
            OLD,
            "VeraCrypt has no key derivation with sha1",
        ),
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
            "VeraCrypt has no cipher aes-camellia",
        ),
        (
            Creation {
                algorithms: vec![Algorithm::Cast5],
                ..creation()
            },
            SIZE,
            OLD,
            "TrueCrypt has no XTS with a cipher of 64-bit blocks",
        ),
    ] {
        let said = refused(&creation, size, passphrase);
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn a_changed_passphrase_is_the_only_one() {
    let device = RamDevice::new(SIZE);
    let made = create(&device, OLD).unwrap();
    let data = pattern(SIZE - 2 * HEADERS_BYTES);
    volume(&made, &device).write_at(0, &data).unwrap();
    let mut opened = opens(&device, Place::Normal, OLD).unwrap();
    opened
        .change_passphrase(
            &device,
            &Sealing::new(SHA512),
            &key(NEW),
            &Limits::default(),
        )
        .unwrap();
    for place in [Place::Normal, Place::NormalBackup] {
        assert!(opens(&device, place, OLD).is_none());
        let opened = opens(&device, place, NEW).unwrap();
        assert_eq!(content(&opened, &device), data);
    }
}

#[test]
fn a_destroyed_header_is_restored_from_its_copy() {
    for (place, backup) in [
        (Place::Normal, Place::NormalBackup),
        (Place::Hidden, Place::HiddenBackup),
    ] {
        let device = RamDevice::new(SIZE);
        let outer = create(&device, OLD).unwrap();
        creation()
            .create_hidden(&device, &outer, 65_536, &key(OLD), &Limits::default())
            .unwrap();
        let offset = if place == Place::Normal { 0 } else { HIDDEN_AT };
        device.write_at(offset, &[0; 512]).unwrap();
        assert!(opens(&device, place, OLD).is_none());
        let opened = opens(&device, backup, OLD).unwrap();
        opened
            .restore(
                &device,
                &Sealing::new(SHA512),
                &key(OLD),
                &Limits::default(),
            )
            .unwrap();
        let again = opens(&device, place, OLD).unwrap();
        assert_eq!(again.header.to_sector(), opened.header.to_sector());
        assert!(opens(&device, backup, OLD).is_some());
    }
}

/// The first 128 KiB in a file of their own, as VeraCrypt backs headers up.
#[test]
fn both_headers_are_written_from_a_backup() {
    for place in [Place::Normal, Place::Hidden] {
        let (device, _) = full();
        let outer = opens(&device, Place::Normal, OLD).unwrap();
        let hidden = creation()
            .create_hidden(&device, &outer, 65_536, &key(OLD), &Limits::default())
            .unwrap();
        let backup = RamDevice::new(HEADERS_BYTES);
        let mut area = vec![0; HEADERS_BYTES as usize];
        device.read_at(0, &mut area).unwrap();
        backup.write_at(0, &area).unwrap();
        area.fill(0);
        device.write_at(0, &area).unwrap();
        device.write_at(SIZE - HEADERS_BYTES, &area).unwrap();
        assert!(rescued(&device, NORMAL, &[OLD]).is_none());

        let saved = opens(&backup, place, OLD).unwrap();
        let write = |device| {
            saved.write_headers(device, &Sealing::new(SHA512), &key(NEW), &Limits::default())
        };
        write(&device).unwrap();
        let (places, expected) = match place {
            Place::Normal => (NORMAL, content(&outer, &device)),
            _ => (HIDDEN, content(&hidden, &device)),
        };
        for place in places {
            let opened = opens(&device, place, NEW).unwrap();
            assert_eq!(content(&opened, &device), expected);
        }
        let small = RamDevice::new(SIZE - HEADERS_BYTES - 512);
        assert!(write(&small).is_err());
        assert!(rescued(&small, places, &[NEW]).is_none());
    }
}

#[test]
fn headers_without_a_copy_are_left_alone() {
    let system = device_with(Place::System, SYSTEM_AT, |_| {});
    let mut opened = opens(&system, Place::System, PASSPHRASE).unwrap();
    let sealing = Sealing::new(SHA512);
    let limits = Limits::default();
    let error = opened.change_passphrase(&system, &sealing, &key(NEW), &limits);
    assert!(matches!(error, Err(VolumeError::Unsupported { .. })));
    assert!(
        opened
            .restore(&system, &sealing, &key(NEW), &limits)
            .is_err()
    );
    assert!(opened.grow(&system, &sealing, &key(NEW), &limits).is_err());
    assert!(opens(&system, Place::System, PASSPHRASE).is_some());
}

#[test]
fn a_volume_grows_with_its_device() {
    for growth in [512, 65_536, HEADERS_BYTES, 1 << 20] {
        let small = RamDevice::new(SIZE);
        let outer = create(&small, OLD).unwrap();
        creation()
            .create_hidden(&small, &outer, 65_536, &key(NEW), &Limits::default())
            .unwrap();
        let data = pattern(SIZE - 2 * HEADERS_BYTES);
        volume(&outer, &small).write_at(0, &data).unwrap();

        let device = enlarged(&small, SIZE + growth);
        let mut opened = opens(&device, Place::Normal, OLD).unwrap();
        let grow = |opened: &mut Unlocked| {
            opened.grow(
                &device,
                &Sealing::new(SHA512),
                &key(OLD),
                &Limits::default(),
            )
        };
        grow(&mut opened).unwrap();
        for place in [Place::Normal, Place::NormalBackup] {
            let opened = opens(&device, place, OLD).unwrap();
            let all = content(&opened, &device);
            assert_eq!(all.len() as u64, data.len() as u64 + growth);
            assert_eq!(all[..data.len()], data);
        }
        for place in [Place::Hidden, Place::HiddenBackup] {
            assert!(opens(&device, place, NEW).is_some(), "{growth}");
        }
        let error = grow(&mut opened);
        assert!(matches!(error, Err(VolumeError::TooSmall { .. })));
    }
}

#[test]
fn a_volume_that_is_encrypted_in_part_does_not_grow() {
    let small = device_with(Place::Normal, 0, |header| {
        header[52..60].copy_from_slice(&512_u64.to_be_bytes());
        header[63] = 2;
        let checksum = crc32(&header[..188]);
        header[188..192].copy_from_slice(&checksum.to_be_bytes());
    });
    let device = enlarged(&small, SIZE + 4096);
    let mut opened = opens(&device, Place::Normal, PASSPHRASE).unwrap();
    let error = opened.grow(
        &device,
        &Sealing::new(SHA512),
        &key(NEW),
        &Limits::default(),
    );
    assert!(matches!(error, Err(VolumeError::Unsupported { .. })));
    assert!(opens(&device, Place::Normal, PASSPHRASE).is_some());
}

/// As the outer volume is written with protection: up to the hidden one, and
/// not into it.
#[test]
fn a_hidden_volume_can_be_protected() {
    let (device, _) = full();
    let outer = opens(&device, Place::Normal, OLD).unwrap();
    let hidden = creation()
        .create_hidden(&device, &outer, 65_536, &key(NEW), &Limits::default())
        .unwrap();
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
    assert_eq!(
        content(&outer, &device)[before as usize - 4096..][..4096],
        [5; 4096]
    );
}
