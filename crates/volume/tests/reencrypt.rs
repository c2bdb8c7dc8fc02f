//! Power cuts in the middle of a reencryption. The volume opens each time with all of its data, and
//! the reencryption continues to its end.

use block::layer::{Effect, Fault, Rule, Trigger, WriteCache};
use block::{BlockDevice, OperationKind, RamDevice};
use cipher::{Algorithm, Key, SectorSize};
use cryptmark_volume::judge::State;
use cryptmark_volume::luks2::{Creation, DataCipher, Header, Keys, KeyslotOptions, Target};
use cryptmark_volume::{
    Access, CryptDevice, Hash, Kdf, Limits, Opening, Secret, Terms, VolumeError, tcrypt,
};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::ops::ControlFlow;

const PASSPHRASE: &str = "a passphrase";

/// So little room for the journal that the data takes several steps.
const HEADER: u64 = 800 << 10;
const DATA: u64 = 600 << 10;
const SIZE: u64 = HEADER + DATA;

const LOSSES: u64 = 4;

/// The distance by which data moves to make room for a header, bytes.
const SHIFT: u64 = 580 << 10;

const KDF: Kdf = Kdf::Pbkdf2 {
    hash: Hash::Sha256,
    iterations: 1000,
};

fn passphrase() -> Key {
    Key::from_slice(PASSPHRASE.as_bytes())
}

fn secret() -> Secret {
    Secret::Passphrase(passphrase())
}

fn content(device: &dyn BlockDevice) -> Vec<u8> {
    let mut bytes = vec![0; device.geometry().size as usize];
    device.read_at(0, &mut bytes).unwrap();
    bytes
}

fn copy(of: &RamDevice) -> RamDevice {
    let device = RamDevice::new(of.geometry().size);
    device.write_at(0, &content(of)).unwrap();
    device
}

fn plaintext() -> Vec<u8> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let mut bytes = vec![0; DATA as usize];
    random.fill_bytes(&mut bytes);
    bytes
}

fn creation(spec: &str, data_offset: u64, detached: bool) -> Creation {
    Creation {
        cipher: DataCipher::Plain(spec.parse().unwrap()),
        key_bytes: 64,
        sector_size: SectorSize::B512,
        keyslot: KeyslotOptions::new(KDF),
        data_offset: Some(data_offset),
        detached,
        label: String::new(),
        subsystem: String::new(),
        uuid: None,
    }
}

/// Opens the volume and compares all of it.
fn holds(header: &dyn BlockDevice, data: &dyn BlockDevice, access: Access, expected: &[u8]) {
    let opening = Opening::Luks2 { slot: None };
    let opened = opening.unlock(
        header,
        data,
        &secret(),
        &Terms {
            access,
            ..Terms::reading(&Limits::default(), &unwatched)
        },
    );
    let device = opened.unwrap().device(header, data).unwrap();
    // Where data has moved, what was room for it is part of the volume at the end.
    let left = device.geometry().size - expected.len() as u64;
    assert!(left == 0 || left == SHIFT);
    assert!(content(&device)[..expected.len()] == *expected);
}

fn unwatched(_: u64, _: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn go_on(_: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn finish(header_device: &dyn BlockDevice, data: &dyn BlockDevice) -> Result<(), VolumeError> {
    let mut header = Header::read(header_device)?;
    let keys = header.unlock_both(header_device, &secret(), &Limits::default())?;
    header.reencrypt(header_device, data, &keys, &go_on)
}

/// Cuts `work` at every write to either device, checks the result, continues from there, and checks
/// again. `before` says whether the volume may be unchanged, as it is before `work` has written to
/// the header.
fn cut_at_every_write(
    start: (&RamDevice, &RamDevice),
    work: impl Fn(&dyn BlockDevice, &dyn BlockDevice) -> Result<(), VolumeError>,
    look: impl Fn(&RamDevice, &RamDevice),
) {
    let one_device = std::ptr::eq(start.0, start.1);
    let mut cuts = 0;
    for nth in 1.. {
        let mut done = false;
        for seed in 0..LOSSES {
            let header_disk = copy(start.0);
            let data_disk = copy(start.1);
            let data_disk = if one_device { &header_disk } else { &data_disk };
            let header_cache = WriteCache::new(&header_disk);
            let data_cache = WriteCache::new(data_disk);
            {
                // One device has one count of writes; two stop at the same time,
                // because the first failure ends the work.
                let rules = |nth| {
                    let torn = Effect::Torn { keep: seed * 1024 };
                    [
                        Rule::on(OperationKind::Write, Trigger::Nth(nth), torn),
                        Rule::on(OperationKind::Write, Trigger::From(nth), Effect::Fail(5)),
                    ]
                };
                if one_device {
                    let faulty = Fault::new(&header_cache, rules(nth));
                    done = work(&faulty, &faulty).is_ok();
                } else {
                    // Odd cuts are of the header's device, even ones of the data's.
                    let never = u64::MAX;
                    let (header_cut, data_cut) = match nth % 2 {
                        1 => (nth.div_ceil(2), never),
                        _ => (never, nth / 2),
                    };
                    let header_faulty = Fault::new(&header_cache, rules(header_cut));
                    let data_faulty = Fault::new(&data_cache, rules(data_cut));
                    done = work(&header_faulty, &data_faulty).is_ok() && nth % 2 == 1;
                }
            }
            let mut random = Xoshiro256PlusPlus::seed_from_u64(nth << 8 | seed);
            let mut survives = |_| match seed {
                0 => false,
                1 => true,
                _ => random.next_u64() & 1 == 1,
            };
            header_cache.power_cut(&mut survives).unwrap();
            data_cache.power_cut(&mut survives).unwrap();
            look(&header_disk, data_disk);
        }
        if done {
            break;
        }
        cuts += 1;
    }
    println!("{cuts} writes cut, {LOSSES} losses each");
    assert!(cuts > 10);
}

fn volume(spec: &str) -> (RamDevice, Key) {
    let device = RamDevice::new(SIZE);
    let key = Key::random(64).unwrap();
    let header = Header::create(&device, &creation(spec, HEADER, false), &key, &passphrase());
    let mapping = header
        .unwrap()
        .mapping(Key::from_slice(key.as_bytes()), &device);
    let crypt = CryptDevice::new(&device, mapping.unwrap()).unwrap();
    crypt.write_at(0, &plaintext()).unwrap();
    drop(crypt);
    (device, key)
}

fn begin(device: &dyn BlockDevice, keys: &Keys) -> Result<(), VolumeError> {
    let mut header = Header::read(device)?;
    let target = Target {
        spec: "serpent-xts-plain64".parse().unwrap(),
        sector_size: SectorSize::B4096,
        keyslot: KeyslotOptions::new(KDF),
    };
    header.begin_reencryption(device, device, &target, keys, &[(0, &passphrase())], &[])
}

fn only_old(old: &Key) -> Keys {
    Keys {
        old: Key::from_slice(old.as_bytes()),
        new: Key::from_slice(&[]),
    }
}

fn keys(old: &Key) -> Keys {
    Keys {
        old: Key::from_slice(old.as_bytes()),
        new: Key::random(64).unwrap(),
    }
}

#[test]
fn a_reencryption_survives_any_cut() {
    let (original, old_key) = volume("aes-xts-plain64");
    let expected = plaintext();
    let keys = keys(&old_key);
    cut_at_every_write(
        (&original, &original),
        |device, _| {
            begin(device, &keys)?;
            let mut header = Header::read(device)?;
            header.reencrypt(device, device, &keys, &go_on)
        },
        |device, _| {
            holds(device, device, Access::Read, &expected);
            let header = Header::read(device).unwrap();
            if header.is_reencrypting() {
                finish(device, device).unwrap();
            }
            holds(device, device, Access::Read, &expected);
            let header = Header::read(device).unwrap();
            assert!(!header.is_reencrypting());
            assert_eq!(header.metadata.segments.len(), 1);
        },
    );
}

#[test]
fn a_volume_can_be_written_between_two_runs() {
    let (device, old_key) = volume("aes-xts-plain64");
    begin(&device, &keys(&old_key)).unwrap();
    let mut expected = plaintext();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    for round in 0.. {
        let mut header = Header::read(&device).unwrap();
        let limits = Limits::default();
        let keys = header.unlock_both(&device, &secret(), &limits).unwrap();
        // One step, and stop.
        match header.reencrypt(&device, &device, &keys, &|_| ControlFlow::Break(())) {
            Err(VolumeError::Stopped) => {}
            Ok(()) => {
                assert!(round > 1);
                break;
            }
            Err(error) => panic!("{error}"),
        }
        holds(&device, &device, Access::Read, &expected);
        let opened = Opening::Luks2 { slot: None }
            .unlock(
                &device,
                &device,
                &secret(),
                &Terms {
                    access: Access::Write,
                    ..Terms::reading(&limits, &unwatched)
                },
            )
            .unwrap();
        let open = opened.device(&device, &device).unwrap();
        for _ in 0..20 {
            let at = random.next_u64() % (DATA / 4096) * 4096;
            let mut bytes = vec![0; 4096];
            random.fill_bytes(&mut bytes);
            open.write_at(at, &bytes).unwrap();
            expected[at as usize..][..4096].copy_from_slice(&bytes);
        }
        drop(open);
        holds(&device, &device, Access::Read, &expected);
    }
    holds(&device, &device, Access::Read, &expected);
}

#[test]
fn an_encryption_that_makes_room_survives_any_cut() {
    // Less room than the data moves by, and data that overlaps itself.
    let data = RamDevice::new(DATA + 2 * SHIFT);
    let expected = plaintext();
    data.write_at(0, &expected).unwrap();
    let header_device = RamDevice::new(HEADER);
    let key = Key::random(64).unwrap();
    let creation = creation("aes-xts-plain64", SHIFT, true);
    let header =
        Header::begin_encryption(&header_device, &data, &creation, DATA, &key, &passphrase())
            .unwrap();
    header.put_before(&header_device, &data).unwrap();
    cut_at_every_write((&header_device, &data), finish, |header_disk, data_disk| {
        holds(header_disk, data_disk, Access::Read, &expected);
        if Header::read(header_disk).unwrap().is_reencrypting() {
            finish(header_disk, data_disk).unwrap();
        }
        holds(header_disk, data_disk, Access::Read, &expected);
    });
}

#[test]
fn a_decryption_survives_any_cut() {
    let (original, key) = volume("aes-xts-plain64");
    let header_device = RamDevice::new(HEADER);
    header_device
        .write_at(0, &content(&original)[..HEADER as usize])
        .unwrap();
    let mut header = Header::read(&header_device).unwrap();
    header
        .begin_decryption(
            &header_device,
            &original,
            &only_old(&key),
            true,
            &State::ALL,
        )
        .unwrap();
    let expected = plaintext();
    cut_at_every_write(
        (&header_device, &original),
        finish,
        |header_disk, data_disk| {
            if Header::read(header_disk).unwrap().is_reencrypting() {
                holds(header_disk, data_disk, Access::Read, &expected);
                finish(header_disk, data_disk).unwrap();
            }
            assert!(content(data_disk)[..DATA as usize] == expected[..]);
        },
    );
}

/// A TrueCrypt volume, whose passphrase costs little to try.
fn truecrypt() -> (RamDevice, tcrypt::Opening, tcrypt::Unlocked) {
    let device = RamDevice::new(DATA + (256 << 10));
    let prf = tcrypt::Prf::named("sha512").unwrap();
    let creation = tcrypt::Creation {
        family: tcrypt::Family::TrueCrypt,
        algorithms: vec![Algorithm::Aes],
        sealing: tcrypt::Sealing::new(prf),
    };
    let made = creation.create(&device, &passphrase(), &Limits::default());
    let made = made.unwrap();
    let crypt = CryptDevice::new(&device, made.mapping(&device).unwrap()).unwrap();
    crypt.write_at(0, &plaintext()).unwrap();
    drop(crypt);
    let mut opening = tcrypt::Opening::new(tcrypt::Family::TrueCrypt);
    opening.prf = Some(prf);
    (device, opening, made)
}

/// Whether header and copy open, with the keys of the data and this cipher.
fn truecrypt_holds(device: &RamDevice, opening: &tcrypt::Opening, cipher: &str, expected: &[u8]) {
    for place in [tcrypt::Place::Normal, tcrypt::Place::NormalBackup] {
        let opening = tcrypt::Opening {
            place,
            ..opening.clone()
        };
        let unlocked = opening
            .unlock(device, &secret(), &Limits::default(), &unwatched)
            .unwrap();
        assert_eq!(unlocked.spec.to_string(), cipher);
        let mapping = unlocked.mapping(device).unwrap();
        assert!(content(&CryptDevice::new(device, mapping).unwrap()) == expected);
    }
}

#[test]
fn a_truecrypt_volume_gets_other_keys_whatever_is_cut() {
    let (original, opening, made) = truecrypt();
    let expected = plaintext();
    truecrypt_holds(&original, &opening, "aes-xts-plain64", &expected);
    // Room for both keys, and for a journal with which the data take several steps.
    let side = RamDevice::new(266 * 4096);
    let cascade = [Algorithm::Serpent, Algorithm::Aes];
    let sealing = tcrypt::Sealing::new(made.prf);
    let limits = Limits::default();
    let next = made.rekeyed(&original, Some(&cascade), &sealing, &passphrase(), &limits);
    let next = next.unwrap();
    assert_eq!(next.headers.len(), 2);
    let old = made.mapping(&original).unwrap();
    assert_ne!(old.key.as_bytes(), next.mapping.key.as_bytes());
    Header::begin_for_another(
        (&side, &original),
        (&old, &next.mapping),
        &next.headers,
        &KeyslotOptions::new(KDF),
        &passphrase(),
    )
    .unwrap();
    // Nothing has happened to the volume yet, and its new headers wait.
    truecrypt_holds(&original, &opening, "aes-xts-plain64", &expected);
    assert!(
        Header::read(&side)
            .unwrap()
            .put_headers(&original, &next.mapping.key)
            .is_err()
    );
    let work = |side: &dyn BlockDevice, data: &dyn BlockDevice| {
        Header::read(side)?.take_headers(data)?;
        if Header::read(side)?.is_reencrypting() {
            finish(side, data)?;
        }
        Header::read(side)?.put_headers(data, &next.mapping.key)
    };
    cut_at_every_write((&side, &original), work, |side, data| {
        holds(side, data, Access::Read, &expected);
        assert!(Header::read(side).unwrap().is_for_another());
        work(side, data).unwrap();
        truecrypt_holds(data, &opening, "serpent-aes-xts-plain64", &expected);
    });
}

/// The journal goes on with nothing but the volume that it began with, as it left that.
#[test]
fn a_journal_knows_its_volume() {
    let (original, opening, made) = truecrypt();
    let side = RamDevice::new(266 * 4096);
    let sealing = tcrypt::Sealing::new(made.prf);
    let limits = Limits::default();
    let next = made.rekeyed(&original, None, &sealing, &passphrase(), &limits);
    let next = next.unwrap();
    let old = made.mapping(&original).unwrap();
    let keys = Keys {
        old: Key::from_slice(old.key.as_bytes()),
        new: Key::from_slice(next.mapping.key.as_bytes()),
    };
    let data = copy(&original);
    let mut header = Header::begin_for_another(
        (&side, &data),
        (&old, &next.mapping),
        &next.headers,
        &KeyslotOptions::new(KDF),
        &passphrase(),
    )
    .unwrap();
    let (other, ..) = truecrypt();
    let refused = |header: &Header, data: &RamDevice| {
        let before = content(data);
        let taken = header.take_headers(data);
        assert!(matches!(taken, Err(VolumeError::OtherData)), "{taken:?}");
        assert!(content(data) == before);
    };
    refused(&header, &other);
    header.take_headers(&data).unwrap();
    header.take_headers(&data).unwrap();
    // It is not taken for an intact volume.
    let opened = opening.unlock(&data, &secret(), &limits, &unwatched);
    assert!(matches!(opened, Err(VolumeError::NoHeaderFits)));
    let stopped = header.reencrypt(&side, &data, &keys, &|_| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(VolumeError::Stopped)));
    // It was put back from a backup meanwhile.
    refused(&header, &original);
    header.reencrypt(&side, &data, &keys, &go_on).unwrap();
    refused(&header, &original);
    header.put_headers(&data, &keys.new).unwrap();
    header.take_headers(&data).unwrap();
}

/// A header in a file of its own, and data that are not those with which it began.
#[test]
fn a_header_apart_knows_its_data() {
    let expected = plaintext();
    let key = Key::random(64).unwrap();
    let stop = |_: u64| ControlFlow::Break(());
    // Encrypted where they are, decrypted where they are, and decrypted to their start.
    for task in ["encrypt", "decrypt", "move"] {
        let header_device = RamDevice::new(HEADER);
        let (data, keys) = match task {
            "encrypt" => {
                let data = RamDevice::new(DATA);
                data.write_at(0, &expected).unwrap();
                let creation = creation("aes-xts-plain64", 0, true);
                Header::begin_encryption(
                    &header_device,
                    &data,
                    &creation,
                    DATA,
                    &key,
                    &passphrase(),
                )
                .unwrap();
                let keys = Keys {
                    old: Key::from_slice(&[]),
                    new: Key::from_slice(key.as_bytes()),
                };
                (data, keys)
            }
            _ => {
                let (data, key) = volume("aes-xts-plain64");
                header_device
                    .write_at(0, &content(&data)[..HEADER as usize])
                    .unwrap();
                (data, only_old(&key))
            }
        };
        let before = copy(&data);
        let mut header = Header::read(&header_device).unwrap();
        if task != "encrypt" {
            let to_start = task == "move";
            if !to_start {
                // Otherwise it would not be apart.
                data.write_at(0, &[0; 64 << 10]).unwrap();
                before.write_at(0, &[0; 64 << 10]).unwrap();
            }
            header
                .begin_decryption(&header_device, &data, &keys, to_start, &State::ALL)
                .unwrap();
        }
        // So little data moves in one go; its start has moved.
        if task != "move" {
            let stopped = header.reencrypt(&header_device, &data, &keys, &stop);
            assert!(
                matches!(stopped, Err(VolumeError::Stopped)),
                "{task}: {stopped:?}"
            );
        }
        let there = content(&before);
        let gone_on = header.reencrypt(&header_device, &before, &keys, &go_on);
        assert!(
            matches!(gone_on, Err(VolumeError::OtherData)),
            "{task}: {gone_on:?}"
        );
        assert!(content(&before) == there, "{task}");
        header
            .reencrypt(&header_device, &data, &keys, &go_on)
            .unwrap();
        assert!(
            !content(&header_device)[..64 << 10]
                .windows(14)
                .any(|text| text == b"cryptmark-data")
                || task != "encrypt"
        );
    }
}

#[test]
fn headers_that_would_lie_elsewhere_are_not_written() {
    let (device, _, made) = truecrypt();
    let limits = Limits::default();
    let sealing = tcrypt::Sealing::new(made.prf);
    let next = made.rekeyed(&device, None, &sealing, &passphrase(), &limits);
    let next = next.unwrap();
    let old = made.mapping(&device).unwrap();
    let size = device.geometry().size;
    for offset in [size - 511, size, u64::MAX - 511, u64::MAX] {
        let side = RamDevice::new(4 << 20);
        let device = copy(&device);
        let mut headers = next.headers.clone();
        headers[1].offset = offset;
        let options = KeyslotOptions::new(KDF);
        let both = (&old, &next.mapping);
        let devices: (&dyn BlockDevice, &dyn BlockDevice) = (&side, &device);
        Header::begin_for_another(devices, both, &headers, &options, &passphrase()).unwrap();
        finish(&side, &device).unwrap();
        let before = content(&device);
        let put = Header::read(&side)
            .unwrap()
            .put_headers(&device, &next.mapping.key);
        assert!(matches!(put, Err(VolumeError::Unsupported { .. })));
        assert!(content(&device) == before);
    }
}

/// A hidden volume keeps its place, and the outer one all that is its own.
#[test]
fn a_hidden_volume_gets_other_keys() {
    let (device, opening, outer) = truecrypt();
    let creation = tcrypt::Creation {
        family: tcrypt::Family::TrueCrypt,
        algorithms: outer.spec.algorithms().to_vec(),
        sealing: tcrypt::Sealing::new(outer.prf),
    };
    let limits = Limits::default();
    let other = Key::from_slice(b"hidden");
    let hidden = creation
        .create_hidden(&device, &outer, 64 << 10, &other, &limits)
        .unwrap();
    let old = hidden.mapping(&device).unwrap();
    let before = content(&CryptDevice::new(&device, hidden.mapping(&device).unwrap()).unwrap());
    let next = hidden
        .rekeyed(&device, None, &creation.sealing, &other, &limits)
        .unwrap();
    assert_eq!(next.mapping.data, old.data);
    let side = RamDevice::new(4 << 20);
    let mut header = Header::begin_for_another(
        (&side, &device),
        (&old, &next.mapping),
        &next.headers,
        &KeyslotOptions::new(KDF),
        &other,
    )
    .unwrap();
    let keys = Keys {
        old: Key::from_slice(old.key.as_bytes()),
        new: Key::from_slice(next.mapping.key.as_bytes()),
    };
    header.reencrypt(&side, &device, &keys, &go_on).unwrap();
    header.put_headers(&device, &keys.new).unwrap();
    for place in [tcrypt::Place::Hidden, tcrypt::Place::HiddenBackup] {
        let opening = tcrypt::Opening {
            place,
            ..opening.clone()
        };
        let secret = Secret::Passphrase(Key::from_slice(b"hidden"));
        let unlocked = opening
            .unlock(&device, &secret, &limits, &unwatched)
            .unwrap();
        assert_eq!(unlocked.key().as_bytes(), keys.new.as_bytes());
        let mapping = unlocked.mapping(&device).unwrap();
        assert!(content(&CryptDevice::new(&device, mapping).unwrap()) == before);
    }
    // The outer one opens as before, and has what is before the hidden one.
    let outer = opening
        .unlock(&device, &secret(), &limits, &unwatched)
        .unwrap();
    let mapping = outer.mapping(&device).unwrap();
    let length = (old.data.offset - mapping.data.offset) as usize;
    let plain = content(&CryptDevice::new(&device, mapping).unwrap());
    assert!(plain[..length] == plaintext()[..length]);
}

#[test]
fn other_keyslots_are_not_lost_by_accident() {
    let (device, key) = volume("aes-xts-plain64");
    let mut header = Header::read(&device).unwrap();
    let other = Key::from_slice(b"another");
    let options = KeyslotOptions::new(KDF);
    header
        .add_key(&device, &key, &other, &options, None)
        .unwrap();
    let before = content(&device);
    let refused = begin(&device, &keys(&key));
    assert!(matches!(
        refused,
        Err(VolumeError::Judged(finding)) if finding.state == State::Keyslots
    ));
    assert!(content(&device) == before);
}

#[test]
fn keyslots_whose_passphrases_are_given_stay() {
    // Two keyslots, two more, and a journal.
    let device = RamDevice::new((2 << 20) + DATA);
    let key = Key::random(64).unwrap();
    let creation = creation("aes-xts-plain64", 2 << 20, false);
    let mut header = Header::create(&device, &creation, &key, &passphrase()).unwrap();
    let (second, third) = (Key::from_slice(b"second"), Key::from_slice(b"third"));
    let options = KeyslotOptions::new(KDF);
    header
        .add_key(&device, &key, &second, &options, Some(4))
        .unwrap();
    let target = Target {
        spec: "aes-cbc-essiv:sha256".parse().unwrap(),
        sector_size: SectorSize::B512,
        keyslot: options,
    };
    let keys = Keys {
        old: Key::from_slice(key.as_bytes()),
        new: Key::random(32).unwrap(),
    };
    let new_key = &keys.new;
    let begin = |header: &mut Header, kept: &[(u32, &Key)], accepted: &[State]| {
        header.begin_reencryption(&device, &device, &target, &keys, kept, accepted)
    };
    let first = passphrase();
    let before = content(&device);
    assert!(matches!(
        begin(&mut header, &[(0, &first)], &[]),
        Err(VolumeError::Judged(finding)) if finding.state == State::Keyslots
    ));
    assert!(matches!(
        begin(&mut header, &[(0, &first), (1, &third)], &[]),
        Err(VolumeError::EmptyKeyslot { slot: 1 })
    ));
    assert!(content(&device) == before);
    begin(&mut header, &[(0, &first), (4, &second)], &[]).unwrap();
    for finds in [&first, &second] {
        let secret = Secret::Passphrase(Key::from_slice(finds.as_bytes()));
        let keys = header.unlock_both(&device, &secret, &Limits::default());
        assert_eq!(keys.unwrap().new.as_bytes(), new_key.as_bytes());
    }
    finish(&device, &device).unwrap();
    let header = Header::read(&device).unwrap();
    assert_eq!(header.keyslots_of_data().unwrap(), [1, 2]);
    for (slot, opens) in [(1, &first), (2, &second)] {
        let secret = Secret::Passphrase(Key::from_slice(opens.as_bytes()));
        let found = header.unlock(&device, &secret, Some(slot), &Limits::default());
        assert_eq!(found.unwrap().key.as_bytes(), new_key.as_bytes());
    }
}

#[test]
fn no_keyslot_goes_while_the_data_are_reencrypted() {
    let (device, key) = volume("aes-xts-plain64");
    begin(&device, &keys(&key)).unwrap();
    let before = content(&device);
    let mut header = Header::read(&device).unwrap();
    let options = KeyslotOptions::new(KDF);
    let slots: Vec<u32> = header.metadata.keyslots.keys().copied().collect();
    assert_eq!(slots.len(), 3);
    for slot in slots {
        let killed = header.kill_key(&device, slot, true);
        assert!(matches!(killed, Err(VolumeError::Reencrypting)));
        let changed = header.change_key(&device, slot, &key, &passphrase(), &options);
        assert!(matches!(changed, Err(VolumeError::Reencrypting)));
    }
    assert!(content(&device) == before);
}

/// Writes that a killed run left in the cache count for the next run, although they are not on the
/// disk.
#[test]
fn what_a_killed_run_did_not_flush_is_on_the_disk_before_the_next_goes_on() {
    let (original, old_key) = volume("aes-xts-plain64");
    begin(&original, &keys(&old_key)).unwrap();
    let expected = plaintext();
    let writes = (1..8).map(|nth| (OperationKind::Write, nth));
    let flushes = (1..4).map(|nth| (OperationKind::Flush, nth));
    let cuts: Vec<_> = writes.chain(flushes).collect();
    let mut runs = 0;
    for flush in 1.. {
        let mut ended = false;
        for &(operation, nth) in &cuts {
            for lost in [0..HEADER, HEADER..SIZE] {
                let disk = copy(&original);
                let cache = WriteCache::new(&disk);
                let fail = |operation, nth| {
                    let rule = Rule::on(operation, Trigger::From(nth), Effect::Fail(5));
                    Fault::new(&cache, [rule])
                };
                let killed = fail(OperationKind::Flush, flush);
                ended = finish(&killed, &killed).is_ok();
                let cut = fail(operation, nth);
                let _ = finish(&cut, &cut);
                cache.power_cut(|offset| !lost.contains(&offset)).unwrap();
                holds(&disk, &disk, Access::Read, &expected);
                if Header::read(&disk).unwrap().is_reencrypting() {
                    finish(&disk, &disk).unwrap();
                }
                holds(&disk, &disk, Access::Read, &expected);
                runs += 1;
            }
        }
        if ended {
            break;
        }
    }
    assert!(runs > 100, "{runs} runs");
}
