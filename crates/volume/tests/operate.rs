//! Changes of key slots, as libraries make them.

use block::{BlockDevice, BlockError, FileDevice, FileOptions};
use cipher::Key;
use cryptmark_volume::judge::{State, Use};
use cryptmark_volume::luks2::{Creation, Header};
use cryptmark_volume::operate::{
    Answers, Change, KeyOptions, KeySlotCost, NewKey, Options, add_key, change_key, reencrypt,
    remove_key, repair_header, set_names, unwatched,
};
use cryptmark_volume::{
    Access, Format, Hash, Kdf, LuksHeader, OpenOptions, Place, Secret, Site, Volume, VolumeError,
};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

const KDF: Kdf = Kdf::Pbkdf2 {
    hash: Hash::Sha256,
    iterations: 1000,
};

/// A volume whose passphrase is `one`, and its volume key.
fn volume(folder: &Path, format: Format) -> (PathBuf, Key) {
    let path = folder.join(format.name());
    File::create(&path).unwrap().set_len(18 << 20).unwrap();
    let options = FileOptions {
        write: true,
        ..FileOptions::default()
    };
    let device = FileDevice::open(&path, &options).unwrap();
    let key = Key::random(64).unwrap();
    Header::create(&device, &Creation::new(KDF), &key, &Key::from_slice(b"one")).unwrap();
    LuksHeader::convert(&device, format).unwrap();
    device.flush().unwrap();
    (path, key)
}

fn passphrase(text: &str) -> Secret {
    Secret::Passphrase(Key::from_slice(text.as_bytes()))
}

fn new(text: &str) -> NewKey {
    NewKey {
        secret: Key::from_slice(text.as_bytes()),
        cost: KeySlotCost::from(KDF),
        allow_empty: false,
    }
}

/// Those of the passphrases that open the volume.
fn opening<'a>(path: &Path, header: Option<&Path>, all: &[&'a str]) -> Vec<&'a str> {
    let options = OpenOptions {
        header: header.map(Path::to_owned),
        ..OpenOptions::default()
    };
    let opens = |text: &&&str| Volume::open(path, Some(&passphrase(text)), &options).is_ok();
    all.iter().filter(opens).copied().collect()
}

#[test]
fn keys_are_added_changed_and_removed_in_the_volume_and_apart() {
    let folder = tempfile::tempdir().unwrap();
    let all = ["one", "two", "three"];
    for format in [Format::Luks1, Format::Luks2] {
        for is_apart in [false, true] {
            let (path, _) = volume(folder.path(), format);
            let copy = folder.path().join("header");
            fs::copy(&path, &copy).unwrap();
            let header = is_apart.then_some(&*copy);
            let place = || Place::open(&path, header, Use::ChangeHeader).unwrap();
            let options = KeyOptions::default();
            let to_five = KeyOptions {
                new_slot: Some(5),
                ..options
            };
            let slot = add_key(&place(), &passphrase("one"), &new("two"), &to_five).unwrap();
            assert_eq!(slot, 5);
            assert_eq!(opening(&path, header, &all), ["one", "two"]);
            let slot = change_key(&place(), &passphrase("two"), &new("three"), &options).unwrap();
            assert_eq!(slot, if format == Format::Luks1 { 1 } else { 5 });
            assert_eq!(opening(&path, header, &all), ["one", "three"]);
            let first = KeyOptions {
                slot: Some(0),
                ..options
            };
            assert_eq!(
                remove_key(&place(), &passphrase("three"), &first).unwrap(),
                0
            );
            assert_eq!(opening(&path, header, &all), ["three"]);
            let last = remove_key(&place(), &passphrase("three"), &options).unwrap_err();
            assert!(matches!(last, VolumeError::LastKeyslot { .. }));
            let last_too = KeyOptions {
                last_too: true,
                ..options
            };
            remove_key(&place(), &passphrase("three"), &last_too).unwrap();
            assert!(opening(&path, header, &all).is_empty());
            // The other header knows nothing of it.
            if is_apart {
                assert_eq!(opening(&path, None, &all), ["one"]);
            }
        }
    }
}

#[test]
fn what_is_refused_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for format in [Format::Luks1, Format::Luks2] {
        let (path, key) = volume(folder.path(), format);
        let before = fs::read(&path).unwrap();
        let place = Place::open(&path, None, Use::ChangeHeader).unwrap();
        let options = KeyOptions::default();
        let (one, key) = (passphrase("one"), Secret::VolumeKey(key));
        let used = KeyOptions {
            new_slot: Some(0),
            ..options
        };
        let argon2 = NewKey {
            cost: KeySlotCost::from(Kdf::Argon2 {
                variant: cryptmark_volume::Argon2Variant::Id,
                time: 4,
                memory_kib: 64,
                lanes: 1,
            }),
            ..new("two")
        };
        let empty = add_key(&place, &one, &new(""), &options).unwrap_err();
        assert!(matches!(empty, VolumeError::EmptyPassphrase));
        let wrong = add_key(&place, &passphrase("no"), &new("two"), &options).unwrap_err();
        assert!(matches!(wrong, VolumeError::NoKeyslotFits { .. }));
        let used = add_key(&place, &one, &new("two"), &used).unwrap_err();
        assert!(matches!(used, VolumeError::KeyslotInUse { slot: 0 }));
        for unnamed in [
            change_key(&place, &key, &new("two"), &options),
            remove_key(&place, &key, &options),
        ] {
            assert!(matches!(unnamed, Err(VolumeError::Impossible { .. })));
        }
        if format == Format::Luks1 {
            let lacks = add_key(&place, &one, &argon2, &options).unwrap_err();
            assert_eq!(lacks.to_string(), "LUKS1 has no Argon2");
        }
        drop(place);
        assert!(fs::read(&path).unwrap() == before);
        assert_eq!(LuksHeader::read(&*opened(&path)).unwrap().format(), format);
    }
}

fn opened(path: &Path) -> Box<dyn BlockDevice> {
    Box::new(FileDevice::open(path, &FileOptions::default()).unwrap())
}

#[test]
fn a_place_that_others_use_or_that_holds_something_else_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = volume(folder.path(), Format::Luks2);
    let to_write = OpenOptions {
        access: Access::Write,
        ..OpenOptions::default()
    };
    let used = Volume::open(&path, Some(&passphrase("one")), &to_write).unwrap();
    let refused = Place::open(&path, None, Use::ChangeHeader).unwrap_err();
    assert!(matches!(
        refused,
        VolumeError::Block(BlockError::InUse { .. })
    ));
    drop(used);
    // A partition table was written over the start, and the second header is stale.
    let mut bytes = fs::read(&path).unwrap();
    bytes[..4096].fill(0);
    bytes[446..462].copy_from_slice(&[0x80, 0, 2, 0, 0x83, 0, 9, 0, 1, 0, 0, 0, 0, 64, 0, 0]);
    bytes[510..512].copy_from_slice(&[0x55, 0xAA]);
    fs::write(&path, bytes).unwrap();
    let refused = Place::open(&path, None, Use::ChangeHeader).unwrap_err();
    assert!(
        matches!(&refused, VolumeError::Judged(found) if found.state == State::StaleHeader),
        "{refused}"
    );
}

/// A program that changes a header takes `flock` of its file, as cryptsetup does. It waits from a
/// write to the end of the flush after it, and what it has changed by then ends all writing.
#[cfg(target_os = "linux")]
#[test]
fn no_header_changes_between_a_write_and_its_flush() {
    let folder = tempfile::tempdir().unwrap();
    for format in [Format::Luks1, Format::Luks2] {
        for is_apart in [false, true] {
            let (path, _) = volume(folder.path(), format);
            let copy = folder.path().join("header");
            fs::copy(&path, &copy).unwrap();
            let at = if is_apart { &copy } else { &path };
            let options = OpenOptions {
                access: Access::Write,
                header: is_apart.then(|| copy.clone()),
                accepted: &[State::Unencrypted, State::Unknown],
                ..OpenOptions::default()
            };
            let device = Volume::open(&path, Some(&passphrase("one")), &options).unwrap();
            let file = File::options().read(true).write(true).open(at).unwrap();
            let is_free = || {
                let free = file.try_lock().is_ok();
                file.unlock().unwrap();
                free
            };
            assert!(is_free(), "{format:?}: before all");
            let bytes = [7; 512];
            for _ in 0..2 {
                for at in [0, 4096] {
                    device.write_at(at, &bytes).unwrap();
                    assert!(!is_free(), "{format:?}: written");
                }
                device.flush().unwrap();
                assert!(is_free(), "{format:?}: flushed");
            }
            // Another volume key for the same data.
            let other = folder.path().join("other");
            fs::create_dir(&other).unwrap();
            let (other_path, _) = volume(&other, format);
            let start = fs::read(other_path).unwrap();
            std::os::unix::fs::FileExt::write_all_at(&file, &start[..32 << 10], 0).unwrap();
            fs::remove_dir_all(other).unwrap();
            for _ in 0..2 {
                let written = device.write_at(0, &bytes).unwrap_err();
                assert!(
                    matches!(written, VolumeError::Block(BlockError::Changed { .. })),
                    "{written}"
                );
                assert!(is_free(), "{format:?}: refused");
                assert!(device.flush().is_err());
            }
        }
    }
}

/// Something that writes to a volume or its header.
type Changing = fn(&Path) -> Result<(), VolumeError>;

const CHANGES: [(&str, Changing); 4] = [
    ("another key", |path| {
        let place = Place::open(path, None, Use::ChangeHeader)?;
        let options = KeyOptions::default();
        add_key(&place, &passphrase("one"), &new("two"), &options).map(drop)
    }),
    ("data", |path| {
        let options = OpenOptions {
            access: Access::Write,
            ..OpenOptions::default()
        };
        Volume::open(path, Some(&passphrase("one")), &options)?.write_at(0, b"written")
    }),
    ("a label", |path| {
        let place = Place::open(path, None, Use::ChangeHeader)?;
        set_names(&place, Format::Luks2, (Some("label"), None), None)
    }),
    ("reencryption", |path| {
        let secret = passphrase("one");
        let answers = Answers {
            cost: KeySlotCost::from(KDF),
            ..Answers::new(&secret, &unwatched)
        };
        let site = Site::new(path, None);
        reencrypt(&site, Change::Anew, &Options::default(), &answers).map(drop)
    }),
];

/// The second header counts only where the first one may have been damaged: other data there are
/// another owner's, whether they have a name or not.
#[test]
fn what_stands_where_the_first_header_was_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = volume(folder.path(), Format::Luks2);
    let good = fs::read(&path).unwrap();
    let noise = Key::random(4096).unwrap();
    let noise = noise.as_bytes();
    let photo = [&b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01"[..], &noise[..3000]].concat();
    let diary = b"my diary ".repeat(400);
    let spoilt = [&b"LUKS\xba\xbe\0\x02"[..], noise].concat();
    let own = [&noise[..8], &good[8..4096]].concat();
    let cases: [(&str, usize, &[u8], bool); 9] = [
        ("a header of TrueCrypt or VeraCrypt", 0, &noise[..512], true),
        ("a page of an encrypted device", 0, noise, true),
        ("a photo", 0, &photo, true),
        ("a text", 0, &diary, true),
        (
            "an ISO image in the room of the first header",
            32_769,
            b"CD001",
            true,
        ),
        ("zeros", 0, &[0; 4096], false),
        ("bytes of an erased flash", 0, &[0xFF; 4096], false),
        ("its magic number, and noise", 0, &spoilt[..4096], false),
        ("all of it but the magic number", 0, &own, false),
    ];
    for (what, at, bytes, is_other) in cases {
        let mut now = good.clone();
        if at > 0 {
            now[..4096].fill(0);
        }
        now[at..at + bytes.len()].copy_from_slice(bytes);
        fs::write(&path, &now).unwrap();
        for (name, change) in CHANGES {
            fs::write(&path, &now).unwrap();
            let changed = change(&path);
            assert_eq!(changed.is_err(), is_other, "{what}, {name}: {changed:?}");
            let is_left = fs::read(&path).unwrap() == now;
            assert!(is_left || !is_other, "{what}, {name}");
        }
        fs::write(&path, &now).unwrap();
        let place = Place::open(&path, None, Use::MendHeader).unwrap();
        let mended = repair_header(&place, None, None, &Options::default(), &unwatched);
        assert_eq!(mended.is_err(), is_other, "{what}: {mended:?}");
        drop(place);
        assert_eq!(fs::read(&path).unwrap() == now, is_other, "{what}");
    }
}

/// A header that is removed, or replaced by another file, takes with it what is written.
#[cfg(target_os = "linux")]
#[test]
fn a_flush_fails_once_the_header_has_no_name() {
    let folder = tempfile::tempdir().unwrap();
    for is_replaced in [false, true] {
        let (path, _) = volume(folder.path(), Format::Luks2);
        let header = folder.path().join("header");
        fs::copy(&path, &header).unwrap();
        let options = OpenOptions {
            access: Access::Write,
            header: Some(header.clone()),
            accepted: &[State::Unencrypted, State::Unknown],
            ..OpenOptions::default()
        };
        let volume = Volume::open(&path, Some(&passphrase("one")), &options).unwrap();
        volume.write_at(0, b"kept").unwrap();
        volume.flush().unwrap();
        match is_replaced {
            true => fs::rename(&path, &header).unwrap(),
            false => fs::remove_file(&header).unwrap(),
        }
        volume.write_at(0, b"lost").unwrap();
        let flushed = volume.flush();
        assert!(
            matches!(flushed, Err(VolumeError::Block(BlockError::Removed))),
            "{flushed:?}"
        );
    }
}
