//! Volumes made: what they are, what is left of what was there, and what is asked.

use super::run::Run;
use super::{Bench, MIB, OFFSET, ONE, new, options, outcome, secret, text};
use block::layer::{Effect, Fault, Rule, Trigger};
use block::{BlockDevice, OperationKind, RamDevice};
use cipher::Key;
use cryptmark_volume::judge::{self, State, Use};
use cryptmark_volume::operate::{
    Change, Creation, KeySlotCost, NewKey, Reencrypted, check_blank, check_create, check_in_place,
    create, unwatched,
};
use cryptmark_volume::{Argon2Variant, Format, Hash, KdfKind, Place, Site, VolumeError};
use std::fs::File;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

const UUID: &str = "11111111-2222-3333-4444-555555555555";

/// A creation by words: the format, and `name=value` of what is chosen.
fn creation(words: &str) -> Creation {
    let mut words = words.split(' ');
    let format = Format::named(words.next().unwrap()).unwrap();
    let mut creation = Creation::new(format);
    creation.parameters.veracrypt_pim = (format == Format::Veracrypt).then_some(1);
    creation.quick = super::is_tcrypt(format);
    creation.uuid = (!super::is_tcrypt(format)).then(|| UUID.to_owned());
    for word in words {
        let (name, value) = word.split_once('=').unwrap();
        let (text, said) = (value.to_owned(), &mut creation.parameters);
        match name {
            "cipher" => said.cipher = Some(text),
            "bits" => said.key_size = Some(value.parse().unwrap()),
            "sector" => said.sector_size = Some(value.parse().unwrap()),
            "offset" => said.offset = Some(value.parse().unwrap()),
            "hash" => said.hash = Some(text),
            "integrity" => creation.integrity = Some(text),
            "uuid" => creation.uuid = Some(text),
            "pim" => said.veracrypt_pim = Some(value.parse().unwrap()),
            "key" => creation.volume_key = Some(Key::from(vec![1; value.parse().unwrap()])),
            _ => panic!("{name}"),
        }
    }
    creation
}

/// What is made in a file of 24 MiB: the cipher and the bits of its key, the derivation, and the
/// first byte and the length of the data.
const MADE: &str = "
luks1 | aes-xts-plain64 512 pbkdf2-sha256-1000 2097152 23068672
luks1 cipher=aes-cbc-essiv:sha256 bits=128 offset=4194304 hash=sha512 | aes-cbc-essiv:sha256 128 pbkdf2-sha512-1000 4194304 20971520
luks2 | aes-xts-plain64 512 pbkdf2-sha256-1000 16777216 8388608
luks2 cipher=serpent-xts-plain64 bits=256 offset=4194304 sector=512 hash=sha1 | serpent-xts-plain64 256 pbkdf2-sha1-1000 4194304 20971520
luks2 cipher=aes-cbc-essiv:sha256 | aes-cbc-essiv:sha256 256 pbkdf2-sha256-1000 16777216 8388608
luks2 integrity=hmac-sha256 | aes-xts-plain64 with hmac(sha256) 768 pbkdf2-sha256-1000 0 8118272
luks2 cipher=aes-gcm-random integrity=aead | aes-gcm-random with aead 256 pbkdf2-sha256-1000 0 8134656
tcrypt | aes-xts-plain64 512 sha512 131072 24903680
veracrypt cipher=serpent-twofish-aes hash=sha256 | serpent-twofish-aes-xts-plain64 1536 sha256 131072 24903680
plain |  0  0 25165824
";

#[test]
fn what_is_made_is_said() {
    for line in MADE.lines().skip(1) {
        let (words, wanted) = line.split_once(" | ").unwrap();
        let bench = Bench::new();
        let mut creation = creation(words);
        if words == "plain" {
            creation = Creation::new(Format::Plain);
        }
        let mut place = Place::create(&bench.path("v"), None, Some(24 * MIB)).unwrap();
        assert!(
            check_create(&place, &creation).unwrap().is_empty(),
            "{line}"
        );
        let made = create(&mut place, Some(&new(ONE)), &creation, &unwatched).unwrap();
        let data = (made.data.offset, made.data.length);
        let said = format!(
            "{} {} {} {} {}",
            made.cipher, made.key_bits, made.derivation, data.0, data.1
        );
        assert_eq!(said, wanted, "{line}");
        assert_eq!((made.uuid, made.leaves_old_data), (creation.uuid, false));
        // Where nothing was, nothing is written but the header.
        if words.starts_with("luks") && creation.integrity.is_none() {
            let after = &bench.read("v")[made.data.offset as usize..];
            assert!(after.iter().all(|byte| *byte == 0), "{line}");
        }
        // Key material is spread by the chosen hash as well.
        if let (Format::Luks2, Some(hash)) = (creation.format, &creation.parameters.hash) {
            let header = bench.read("v")[..16 << 10].to_vec();
            let spread = format!("\"stripes\":4000,\"hash\":\"{hash}\"");
            assert!(String::from_utf8_lossy(&header).contains(&spread), "{line}");
        }
    }
    // A file is encrypted by its blocks, if it has whole ones.
    for (bytes, sector) in [(24 * MIB, 4096), (24 * MIB + 512, 512)] {
        let bench = Bench::new();
        let mut place = Place::create(&bench.path("v"), None, Some(bytes)).unwrap();
        create(&mut place, Some(&new(ONE)), &creation("luks2"), &unwatched).unwrap();
        drop(place);
        let volume = bench.open("v", None, Format::Luks2, false, ONE).unwrap();
        assert_eq!(volume.info()["mappings"][0]["sector_size"], sector);
    }
}

/// What no place makes possible, before any is looked at; and what is not possible there.
#[test]
fn what_cannot_be_made_is_refused_at_once() {
    for words in [
        "luks1 sector=512",
        "luks1 hash=md6",
        "luks1 uuid=mine",
        "luks2 cipher=aes-nothing",
        "luks2 cipher=aes-gcm-random",
        "luks2 cipher=cipher_null-ecb",
        "luks2 integrity=nothing",
        "luks2 cipher=aes-ctr-plain64 integrity=hmac-sha256",
        "luks2 cipher=aes-gcm-random bits=8 integrity=aead",
        "luks2 bits=24",
        "luks2 sector=100",
        "tcrypt cipher=aes-serpent-aes-aes",
        "tcrypt cipher=aes-gcm-random",
        "veracrypt hash=md6",
        "tcrypt bits=256",
    ] {
        assert!(creation(words).check().is_err(), "{words}");
    }
    let needs = creation("luks2 cipher=aes-gcm-random").check();
    assert_eq!(
        outcome(needs),
        "aes-gcm-random needs room for tags or IVs beside the sectors"
    );
    for (words, secret, wanted) in [
        (
            "luks2 key=64",
            ONE,
            "both halves of the volume key are the same: XTS needs two keys",
        ),
        ("luks2", "", "the new passphrase is empty"),
        ("luks1", "", "the new passphrase is empty"),
        ("tcrypt", "", "the new passphrase is empty"),
        ("veracrypt", "short", "weak: would be weak: a PIM below 485"),
        (
            "veracrypt pim=484",
            "short",
            "weak: would be weak: a PIM below 485",
        ),
        ("veracrypt pim=485", "short", "Created"),
        ("tcrypt", "short", "Created"),
        (
            "luks2 cipher=aes-cbc-plain64 bits=256 key=32",
            ONE,
            "Created",
        ),
    ] {
        let bench = Bench::new();
        let mut place = Place::create(&bench.path("v"), None, Some(24 * MIB)).unwrap();
        let said = outcome(create(
            &mut place,
            Some(&new(secret)),
            &creation(words),
            &unwatched,
        ));
        assert!(said.starts_with(wanted), "{words}: {said}");
        drop(place);
        assert_eq!(bench.path("v").exists(), wanted == "Created", "{words}");
    }
    for bytes in [2 * MIB + 100, 2 * MIB + 512] {
        let bench = Bench::new();
        let mut place = Place::create(&bench.path("v"), None, Some(bytes)).unwrap();
        let made = create(&mut place, Some(&new(ONE)), &creation("tcrypt"), &unwatched);
        assert_eq!(made.is_ok(), bytes % 512 == 0, "{made:?}");
    }
    // Whoever allows it may have an empty one.
    let empty = NewKey {
        allow_empty: true,
        ..new("")
    };
    for words in ["luks1", "luks2"] {
        let bench = Bench::new();
        let mut place = Place::create(&bench.path("v"), None, Some(24 * MIB)).unwrap();
        create(&mut place, Some(&empty), &creation(words), &unwatched).unwrap();
        drop(place);
        let format = Format::named(words).unwrap();
        assert!(bench.open("v", None, format, false, "").is_ok());
        if format == Format::Luks2 {
            let run = Run {
                secret: secret(""),
                ..Run::new(&bench, Change::Anew)
            };
            run.done();
            assert!(bench.open("v", None, format, false, "").is_ok());
        }
    }
}

/// Where there are data that may be lost, none of them is readable as the volume's own, and their
/// key material is gone.
#[test]
fn old_data_are_overwritten_where_they_would_be_found() {
    for words in ["luks1", "luks2", "tcrypt", "luks2 integrity=hmac-sha256"] {
        for wipe in [false, true] {
            if wipe && words.len() > 5 {
                continue;
            }
            for there in [Format::Luks1, Format::Luks2, Format::Tcrypt] {
                let bench = Bench::volume(there);
                let file = File::options().write(true).open(bench.path("v")).unwrap();
                file.set_len(24 * MIB).unwrap();
                let before = bench.read("v");
                let mut creation = creation(words);
                creation.accepted = vec![State::Data];
                creation.wipe = wipe;
                creation.parameters.offset = words.starts_with("luks").then_some(OFFSET);
                let mut place = Place::create(&bench.path("v"), None, None).unwrap();
                assert!(check_create(&place, &creation).unwrap().is_empty());
                let made = create(&mut place, Some(&new(ONE)), &creation, &unwatched).unwrap();
                drop(place);
                let leaves = words.starts_with("luks") && !wipe && creation.integrity.is_none();
                assert_eq!(made.leaves_old_data, leaves, "{words} {wipe}");
                let now = bench.read("v");
                // The key material of before, which a header of LUKS has.
                if there != Format::Tcrypt {
                    let old = 200 << 10..204 << 10;
                    assert!(now[old.clone()] != before[old], "{words} {there:?}");
                }
                let volume = bench.open("v", None, creation.format, false, ONE).unwrap();
                let size = volume.size() as usize;
                let mut bytes = vec![1; size];
                if volume.read_at(0, &mut bytes).is_err() || creation.quick {
                    continue;
                }
                let edges = [&bytes[..1 << 20], &bytes[size - (1 << 20)..]].concat();
                assert!(edges.iter().all(|byte| *byte == 0), "{words} {wipe}");
                let middle = &bytes[4 << 20..5 << 20];
                let is_wiped = middle.iter().all(|byte| *byte == 0);
                assert_eq!(
                    is_wiped,
                    wipe || creation.integrity.is_some(),
                    "{words} {wipe}"
                );
            }
        }
    }
}

/// What was not looked at, and what is weak, is said before.
#[test]
fn what_was_not_looked_at_is_said() {
    for (mib, is_said) in [(1, false), (2048, true)] {
        let place = Place::of(Arc::new(RamDevice::new(mib * MIB)), None);
        let said = check_create(&place, &creation("tcrypt")).unwrap();
        assert_eq!(said.len(), usize::from(is_said), "{said:?}");
        for said in said {
            assert!(said.starts_with("no data were found in the "), "{said}");
            assert!(
                said.contains(" MiB that were looked at, of 2048 MiB: data between"),
                "{said}"
            );
        }
    }
    let device = Arc::new(RamDevice::new(2048 * MIB));
    device.write_at(0, &text(512)).unwrap();
    let mut creation = creation("luks2 cipher=aes-ecb bits=256");
    creation.accepted = vec![State::Data, State::Weak];
    let place = Place::of(device, None);
    let said = check_create(&place, &creation).unwrap();
    assert_eq!(
        said,
        ["aes-ecb: equal blocks of data show as equal blocks on the disk"]
    );
    // A short block is weak only where there are many of them.
    creation.parameters.cipher = Some("blowfish-cbc-plain64".into());
    creation.parameters.key_size = Some(128);
    for (gib, is_weak) in [(1, false), (64, true)] {
        creation.accepted = vec![State::Data];
        let place = Place::of(Arc::new(RamDevice::new(gib * 1024 * MIB)), None);
        let said = outcome(check_create(&place, &creation));
        assert_eq!(said.starts_with("weak: "), is_weak, "{said}");
        creation.accepted.push(State::Weak);
        assert!(check_create(&place, &creation).unwrap()[0].starts_with("blowfish"));
    }
}

/// A file that was made for a volume goes also when it was written in part, and no old data are
/// said to be lost.
#[test]
fn a_new_file_goes_when_it_is_stopped() {
    let stop = |done, _| match done > 0 {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    for there in [false, true] {
        let bench = Bench::new();
        if there {
            bench.write("v", vec![0; 24 << 20]);
        }
        let mut place = Place::create(&bench.path("v"), None, Some(24 * MIB)).unwrap();
        let made = create(&mut place, None, &Creation::new(Format::Plain), &stop).unwrap_err();
        assert_eq!(
            matches!(made, VolumeError::Overwritten { .. }),
            there,
            "{made}"
        );
        drop(place);
        assert_eq!(bench.path("v").exists(), there);
    }
}

/// Cost by cost: whether it is possible for LUKS1 and for LUKS2.
#[test]
fn no_secret_costs_what_is_impossible() {
    let pbkdf2 = KdfKind::Pbkdf2(Hash::Sha256);
    let argon2 = KdfKind::Argon2(Argon2Variant::Id);
    for (kind, iterations, memory_kib, lanes, possible) in [
        (None, 1000, None, None, [true, true]),
        (Some(pbkdf2), 1000, None, None, [true, true]),
        (Some(pbkdf2), 999, None, None, [false, false]),
        (None, 999, None, None, [false, true]),
        (Some(pbkdf2), 1000, Some(64), None, [false, false]),
        (Some(pbkdf2), 1000, None, Some(1), [false, false]),
        (None, 4, Some(32), Some(1), [false, true]),
        (Some(argon2), 4, Some(32), Some(4), [false, true]),
        (Some(argon2), 3, Some(32), Some(1), [false, false]),
        (Some(argon2), 4, Some(31), Some(1), [false, false]),
        (
            Some(argon2),
            4,
            Some((4 << 20) + 1),
            Some(1),
            [false, false],
        ),
        (Some(argon2), 4, Some(32), Some(0), [false, false]),
        (Some(argon2), 4, Some(32), Some(5), [false, false]),
    ] {
        let cost = |time| KeySlotCost {
            kind,
            time,
            iterations: Some(iterations),
            memory_kib,
            lanes,
        };
        let kdf = |format, time| cost(time).kdf(format, None).is_ok();
        let zero = Some(Duration::ZERO);
        for (format, possible) in [Format::Luks1, Format::Luks2].into_iter().zip(possible) {
            assert_eq!(kdf(format, None), possible, "{:?} {format:?}", cost(None));
            assert!(!kdf(format, zero));
            assert_eq!(kdf(format, Some(Duration::from_secs(1))), possible);
        }
    }
}

/// A header beside a volume that records nothing yet goes back, and is not changed before.
#[test]
fn a_header_left_beside_goes_back() {
    let bench = Bench::volume(Format::Luks2);
    let [path, side] = ["v", "v.cryptmark-header"].map(|name| bench.path(name));
    let sound = bench.files();
    let site = Site::new(&path, None);
    check_in_place(&site).unwrap();
    bench.write("v.cryptmark-header", &bench.read("v")[..OFFSET as usize]);
    let left = check_in_place(&site);
    assert!(left.unwrap_err().to_string().contains("left behind"));
    check_in_place(&Site::new(&path, Some(&side))).unwrap();
    let options = options(Format::Luks2, &[]);
    let run = |change, left| {
        let left = super::stopped::Left::new(left);
        super::stopped::work(&bench, (change, false), &options, &left)
    };
    assert_eq!(run(Change::Anew, u32::MAX).unwrap(), Reencrypted::PutBack);
    assert!(bench.files() == sound);
    // One that records a change is the one that goes on.
    let begins = |left: &u32| {
        bench.put_back(&sound);
        run(Change::Decrypt, *left).is_err() && side.exists() && check_in_place(&site).is_ok()
    };
    (1..).find(begins).unwrap();
    run(Change::Decrypt, u32::MAX).unwrap();
    assert!(bench.read("v") == text(OFFSET));
}

/// A device of which no place can be read tells nothing, but that it may not be overwritten.
#[test]
fn what_cannot_be_read_is_no_reason_to_write() {
    let device = RamDevice::new(4 * MIB);
    let fail = Rule::on(OperationKind::Read, Trigger::From(1), Effect::Fail(5));
    let device = Fault::new(device, [fail]);
    assert!(check_blank(&device, &[]).is_err());
    assert!(check_blank(&device, &[State::Weak]).is_err());
    assert!(check_blank(&device, &[State::Data]).unwrap());
    judge::check_device(Use::WriteData, &device, &[]).unwrap();
    let blank = RamDevice::new(4 * MIB);
    judge::check_together(Use::WriteData, &device, &blank, &[]).unwrap();
}
