//! Power cuts in the middle of every change of a header: whatever reached the
//! disk, the volume opens, and with the right key.

use block::layer::{Effect, Fault, Rule, Trigger, WriteCache};
use block::{BlockDevice, OperationKind, RamDevice};
use cipher::Key;
use cryptmark_volume::luks2::KeyslotOptions;
use cryptmark_volume::{
    Format, Hash, Kdf, Limits, Opening, Secret, Terms, Verdict, VolumeError, luks1, luks2,
};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::ops::ControlFlow;

const OLD: &str = "the old passphrase";
const NEW: &str = "the new passphrase";

/// Small enough to copy hundreds of times.
const SIZE: u64 = 5 << 20;

const KDF: Kdf = Kdf::Pbkdf2 {
    hash: Hash::Sha256,
    iterations: 1000,
};

/// Ways in which a disk loses what was not flushed, for every cut.
const LOSSES: u64 = 4;

fn key(text: &str) -> Key {
    Key::from_slice(text.as_bytes())
}

fn go_on(_: u64, _: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn copy(of: &RamDevice) -> RamDevice {
    let device = RamDevice::new(SIZE);
    let mut bytes = vec![0; SIZE as usize];
    of.read_at(0, &mut bytes).unwrap();
    device.write_at(0, &bytes).unwrap();
    device
}

/// A volume with [`OLD`] in keyslot 0, and its key.
fn volume(format: Format) -> (RamDevice, Key) {
    let device = RamDevice::new(SIZE);
    let volume_key = Key::random(64).unwrap();
    let spec = "aes-xts-plain64".parse().unwrap();
    match format {
        Format::Luks1 => {
            let creation = luks1::Creation {
                spec,
                key_bytes: 64,
                hash: Hash::Sha256,
                iterations: 1000,
                payload_offset: None,
                detached: false,
                uuid: None,
            };
            luks1::Header::create(&device, &creation, &volume_key, &key(OLD)).unwrap();
        }
        _ => {
            let creation = luks2::Creation {
                cipher: luks2::DataCipher::Plain(spec),
                data_offset: Some(4 << 20),
                ..luks2::Creation::new(KDF)
            };
            luks2::Header::create(&device, &creation, &volume_key, &key(OLD)).unwrap();
        }
    }
    (device, volume_key)
}

/// Whether the passphrase opens the volume, and then with the right key.
fn opens(device: &RamDevice, format: Format, passphrase: &str, volume_key: &Key) -> bool {
    let opening = match format {
        Format::Luks1 => Opening::Luks1 { slot: None },
        _ => Opening::Luks2 { slot: None },
    };
    let secret = Secret::Passphrase(key(passphrase));
    match opening.unlock(
        device,
        device,
        &secret,
        &Terms::reading(&Limits::default(), &go_on),
    ) {
        Ok(opened) => {
            assert_eq!(opened.rows[0].mapping.key.as_bytes(), volume_key.as_bytes());
            true
        }
        Err(error) => {
            assert_eq!(error.verdict(), Verdict::WrongSecret, "{error}");
            false
        }
    }
}

/// Makes a change on copies of a volume, each cut off at another write. `judge` checks each result,
/// and gets whether each passphrase opens it.
fn cut_at_every_write(
    format: Format,
    change: impl Fn(&dyn BlockDevice, &Key) -> Result<(), VolumeError>,
    judge: impl Fn(bool, bool) -> bool,
) {
    let (original, volume_key) = volume(format);
    let mut cuts = 0;
    for nth in 1.. {
        let mut done = false;
        for seed in 0..LOSSES {
            let disk = copy(&original);
            let cache = WriteCache::new(&disk);
            let cut = Effect::Torn { keep: seed * 1024 };
            let rules = [
                Rule::on(OperationKind::Write, Trigger::Nth(nth), cut),
                Rule::on(OperationKind::Write, Trigger::From(nth), Effect::Fail(5)),
                Rule::on(
                    OperationKind::Flush,
                    Trigger::From(nth + 1),
                    Effect::Fail(5),
                ),
            ];
            let faulty = Fault::new(&cache, rules);
            done = change(&faulty, &volume_key).is_ok();
            let mut random = Xoshiro256PlusPlus::seed_from_u64(nth << 8 | seed);
            // All is lost, all survives, or each block as it happens.
            let survives = |_| match seed {
                0 => false,
                1 => true,
                _ => random.next_u64() & 1 == 1,
            };
            cache.power_cut(survives).unwrap();
            let old = opens(&disk, format, OLD, &volume_key);
            let new = opens(&disk, format, NEW, &volume_key);
            assert!(
                judge(old, new),
                "{format}, write {nth}, loss {seed}: old {old}, new {new}"
            );
        }
        if done {
            break;
        }
        cuts += 1;
    }
    println!("{format}: {cuts} writes cut, {LOSSES} losses each");
    assert!(cuts >= 2);
}

#[test]
fn adding_a_key() {
    cut_at_every_write(
        Format::Luks2,
        |device, volume_key| {
            let mut header = luks2::Header::read(device)?;
            let options = KeyslotOptions::new(KDF);
            header.add_key(device, volume_key, &key(NEW), &options, None)?;
            Ok(())
        },
        |old, _| old,
    );
    cut_at_every_write(
        Format::Luks1,
        |device, volume_key| {
            let mut header = luks1::Header::read(device)?;
            header.add_key(device, volume_key, &key(NEW), 1000, None)?;
            Ok(())
        },
        |old, _| old,
    );
}

#[test]
fn changing_a_key() {
    cut_at_every_write(
        Format::Luks2,
        |device, volume_key| {
            let mut header = luks2::Header::read(device)?;
            let options = KeyslotOptions::new(KDF);
            header.change_key(device, 0, volume_key, &key(NEW), &options)
        },
        |old, new| old || new,
    );
    cut_at_every_write(
        Format::Luks1,
        |device, volume_key| {
            let mut header = luks1::Header::read(device)?;
            header.change_key(device, 0, volume_key, &key(NEW), 1000)?;
            Ok(())
        },
        |old, new| old || new,
    );
}

#[test]
fn killing_a_key() {
    cut_at_every_write(
        Format::Luks2,
        |device, volume_key| {
            let mut header = luks2::Header::read(device)?;
            let options = KeyslotOptions::new(KDF);
            let slot = header.add_key(device, volume_key, &key(NEW), &options, None)?;
            header.kill_key(device, slot, false)
        },
        |old, _| old,
    );
    cut_at_every_write(
        Format::Luks1,
        |device, volume_key| {
            let mut header = luks1::Header::read(device)?;
            let slot = header.add_key(device, volume_key, &key(NEW), 1000, None)?;
            header.kill_key(device, slot, false)
        },
        |old, _| old,
    );
}

#[test]
fn labelling() {
    cut_at_every_write(
        Format::Luks2,
        |device, _| luks2::Header::read(device)?.set_labels(device, Some("mine"), None),
        |old, _| old,
    );
    cut_at_every_write(
        Format::Luks1,
        |device, _| {
            let mut header = luks1::Header::read(device)?;
            header.set_uuid(device, None)?;
            header.set_uuid(device, None)
        },
        |old, _| old,
    );
}

/// A volume that is made over an older one. Afterwards there is the old one, none, or the new one.
/// There is never one that opens to the wrong key.
#[test]
fn creating_over_another_volume() {
    for format in [Format::Luks1, Format::Luks2] {
        let (original, old_key) = volume(format);
        for nth in 1.. {
            let disk = copy(&original);
            let rule = Rule::on(OperationKind::Write, Trigger::From(nth), Effect::Fail(5));
            let faulty = Fault::new(&disk, [rule]);
            let creation = luks2::Creation {
                data_offset: Some(4 << 20),
                ..luks2::Creation::new(KDF)
            };
            let new_key = Key::random(64).unwrap();
            let done = luks2::Header::create(&faulty, &creation, &new_key, &key(NEW)).is_ok();
            match Format::detect(&disk).unwrap() {
                None => assert!(!done),
                Some(Format::Luks2) if opens(&disk, Format::Luks2, NEW, &new_key) => {}
                Some(found) => {
                    assert_eq!(found, format);
                    assert!(opens(&disk, format, OLD, &old_key) && !done);
                }
            }
            if done {
                break;
            }
        }
    }
}

#[test]
fn a_copy_that_was_lost_is_made_again() {
    for place in [0, 16 << 10] {
        let (disk, volume_key) = volume(Format::Luks2);
        disk.write_at(place, &[0xa5; 4096]).unwrap();
        assert!(opens(&disk, Format::Luks2, OLD, &volume_key));
        let mut header = luks2::Header::read(&disk).unwrap();
        assert!(header.repair(&disk, false).unwrap());
        assert!(
            !luks2::Header::read(&disk)
                .unwrap()
                .repair(&disk, false)
                .unwrap()
        );
        // Now the other one may be lost.
        disk.write_at((16 << 10) - place, &[0xa5; 4096]).unwrap();
        assert!(opens(&disk, Format::Luks2, OLD, &volume_key));
    }
}
