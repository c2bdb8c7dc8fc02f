//! LUKS1 headers made ones of LUKS2, and back: whatever a power cut leaves opens
//! with every passphrase, and goes on from there.

use block::layer::{Effect, Fault, Rule, Trigger, WriteCache};
use block::{BlockDevice, OperationKind, RamDevice};
use cipher::{Key, SectorSize};
use cryptmark_volume::judge::{self, State, Use};
use cryptmark_volume::luks2::{
    Creation, DataCipher, Header, Keys, KeyslotOptions, Recovered, Target, wipe_copies,
};
use cryptmark_volume::{
    Argon2Variant, Format, Hash, Kdf, Limits, Opening, Secret, Terms, VolumeError, luks1,
};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::ops::ControlFlow;

const LOSSES: u64 = 5;
const SECTOR: usize = 512;

fn passphrase(slot: u32) -> Key {
    Key::from_slice(format!("the passphrase of {slot}").as_bytes())
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

/// A volume with these keyslots, and its key.
struct Volume {
    device: RamDevice,
    key: Key,
    slots: Vec<u32>,
}

impl Volume {
    /// With data from `payload_offset` on, or from where cryptsetup has them.
    fn new(spec: &str, key_bytes: usize, slots: &[u32], payload_offset: Option<u64>) -> Self {
        let device = RamDevice::new((2 << 20) + 4096);
        let key = Key::random(key_bytes).unwrap();
        let creation = luks1::Creation {
            spec: spec.parse().unwrap(),
            key_bytes,
            hash: Hash::Sha1,
            iterations: 1000,
            payload_offset,
            detached: payload_offset == Some(0),
            uuid: None,
        };
        let mut header = luks1::Header::create(&device, &creation, &key, &passphrase(0)).unwrap();
        for &slot in slots.iter().filter(|&&slot| slot != 0) {
            header
                .add_key(&device, &key, &passphrase(slot), 1000, Some(slot))
                .unwrap();
        }
        if !slots.contains(&0) {
            header.kill_key(&device, 0, false).unwrap();
        }
        Self {
            device,
            key,
            slots: slots.to_vec(),
        }
    }

    /// Whether `device` opens with every passphrase, by its keyslot, to the key.
    fn opens(&self, device: &RamDevice) {
        let format = Format::detect(device).unwrap().unwrap();
        for &slot in &self.slots {
            let secret = Secret::Passphrase(passphrase(slot));
            let limits = Limits::default();
            let unlocked = match format {
                Format::Luks1 => luks1::Header::read(device).unwrap().unlock(
                    device,
                    &secret,
                    Some(slot),
                    &limits,
                ),
                _ => Header::read(device)
                    .unwrap()
                    .unlock(device, &secret, Some(slot), &limits),
            };
            assert_eq!(unlocked.unwrap().key.as_bytes(), self.key.as_bytes());
        }
    }

    /// Asserts that `device` is converted, and that no key material is left in its old place.
    fn is_converted(&self, device: &RamDevice) {
        self.opens(device);
        let header = Header::read(device).unwrap();
        assert_eq!(header.recovered, Recovered::Both);
        let slots: Vec<u32> = header.metadata.keyslots.keys().copied().collect();
        assert_eq!(slots, self.slots);
        let old = luks1::Header::read(&self.device).unwrap();
        assert_eq!(header.binary.uuid, old.uuid);
        let (before, after) = (content(&self.device), content(device));
        for keyslot in old.keyslots.iter().filter(|keyslot| keyslot.active) {
            let material = &before[keyslot.offset as usize..][..SECTOR];
            let found = after.chunks(SECTOR).filter(|sector| *sector == material);
            assert_eq!(found.count(), 1);
        }
        if old.payload_offset > 0 {
            let data = old.payload_offset as usize;
            assert!(before[data..] == after[data..]);
        }
    }

    /// Whether `device`, which was `of_luks2`, is a LUKS1 volume again, and no copy of
    /// the other header is left.
    fn is_converted_back(&self, device: &RamDevice, of_luks2: &RamDevice) {
        self.opens(device);
        assert_eq!(Format::detect(device).unwrap(), Some(Format::Luks1));
        let header = luks1::Header::read(device).unwrap();
        let old = luks1::Header::read(&self.device).unwrap();
        assert_eq!(header.uuid, old.uuid);
        for (new, old) in header.keyslots.iter().zip(&old.keyslots) {
            assert_eq!((new.active, new.stripes), (old.active, old.stripes));
        }
        let (before, after) = (content(of_luks2), content(device));
        assert_ne!(after[16 << 10..][..6], *b"SKUL\xba\xbe");
        assert!(
            !after[..32 << 10]
                .windows(10)
                .any(|text| text == b"\"keyslots\"")
        );
        if old.payload_offset > 0 {
            let data = old.payload_offset as usize;
            assert!(before[data..] == after[data..]);
        }
    }
}

/// Converts, or goes on.
fn convert(device: &dyn BlockDevice) -> Result<(), VolumeError> {
    match Format::detect(device)? {
        Some(Format::Luks1) => Header::convert(device, luks1::Header::read(device)?).map(drop),
        _ => Header::read(device)?.repair(device, false).map(drop),
    }
}

/// Converts back to LUKS1, or goes on.
fn convert_back(device: &dyn BlockDevice) -> Result<(), VolumeError> {
    match Format::detect(device)? {
        Some(Format::Luks1) => wipe_copies(device, &luks1::Header::read(device)?),
        _ => Header::read(device)?.into_luks1(device).map(drop),
    }
}

/// Cuts `change` of `from` at every write. `volume` and `is_done` check the disk before and after
/// it continues. Returns the number of writes.
fn cut_at_every_write(
    volume: &Volume,
    from: &RamDevice,
    change: impl Fn(&dyn BlockDevice) -> Result<(), VolumeError>,
    is_done: impl Fn(&RamDevice),
) -> u32 {
    let mut cuts = 0;
    for nth in 1.. {
        let mut done = false;
        for seed in 0..LOSSES {
            let disk = copy(from);
            let cache = WriteCache::new(&disk);
            let torn = Effect::Torn {
                keep: seed * SECTOR as u64,
            };
            let rules = [
                Rule::on(OperationKind::Write, Trigger::Nth(nth), torn),
                Rule::on(OperationKind::Write, Trigger::From(nth), Effect::Fail(5)),
            ];
            done = change(&Fault::new(&cache, rules)).is_ok();
            let mut random = Xoshiro256PlusPlus::seed_from_u64(nth << 8 | seed);
            let survives = |_| match seed {
                0 => false,
                1 => true,
                _ => random.next_u64() & 1 == 1,
            };
            cache.power_cut(survives).unwrap();
            volume.opens(&disk);
            // What it has left is its own, so that it can be written and goes on.
            for use_ in [Use::WriteData, Use::ChangeHeader, Use::ChangeLayout] {
                judge::check_device(use_, &disk, &[]).unwrap();
            }
            change(&disk).unwrap();
            is_done(&disk);
        }
        if done {
            break;
        }
        cuts += 1;
    }
    println!("{cuts} writes cut, {LOSSES} losses each");
    cuts
}

#[test]
fn a_conversion_survives_any_cut() {
    const XTS: &str = "aes-xts-plain64";
    for (spec, key_bytes, slots, offset) in [
        (XTS, 64, &[0][..], None),
        (XTS, 64, &[0, 2, 7], None),
        // The only free place is one that another sector of the header names.
        (XTS, 64, &[0, 1, 2, 3, 4, 5, 6], None),
        (XTS, 64, &[6, 7], None),
        // All keyslots, and a free place behind them.
        (XTS, 32, &[0, 1, 2, 3, 4, 5, 6, 7], Some(2 << 20)),
        (XTS, 64, &[0, 5], Some(0)),
        ("blowfish-cbc-plain64", 8, &[0, 1], None),
    ] {
        let volume = Volume::new(spec, key_bytes, slots, offset);
        let least = if slots.contains(&0) { 5 } else { 3 };
        let done = |disk: &RamDevice| volume.is_converted(disk);
        assert!(cut_at_every_write(&volume, &volume.device, convert, done) >= least);
        let of_luks2 = copy(&volume.device);
        convert(&of_luks2).unwrap();
        let done = |disk: &RamDevice| volume.is_converted_back(disk, &of_luks2);
        assert!(cut_at_every_write(&volume, &of_luks2, convert_back, done) >= 3);
    }
}

/// Features that LUKS1 lacks are refused, and nothing is written.
#[test]
fn what_luks1_lacks_is_not_converted_back() {
    let secret = passphrase(0);
    let kdf = |hash| Kdf::Pbkdf2 {
        hash,
        iterations: 1000,
    };
    let usual = || KeyslotOptions::new(kdf(Hash::Sha256));
    let of_another_cipher = || KeyslotOptions {
        spec: "serpent-xts-plain64".parse().unwrap(),
        ..usual()
    };
    let argon2 = || {
        KeyslotOptions::new(Kdf::Argon2 {
            variant: Argon2Variant::Id,
            time: 4,
            memory_kib: 32,
            lanes: 1,
        })
    };
    for (keyslot, sector_size, label, lacking) in [
        (usual(), SectorSize::B512, "", None),
        (
            usual(),
            SectorSize::B4096,
            "",
            Some("sectors of 4096 bytes"),
        ),
        (usual(), SectorSize::B512, "disk", Some("label")),
        (argon2(), SectorSize::B512, "", Some("Argon2")),
        (
            of_another_cipher(),
            SectorSize::B512,
            "",
            Some("another cipher"),
        ),
        (
            KeyslotOptions::new(kdf(Hash::Sha512)),
            SectorSize::B512,
            "",
            Some("another cipher or hash"),
        ),
    ] {
        let device = RamDevice::new(18 << 20);
        let creation = Creation {
            cipher: DataCipher::Plain("aes-xts-plain64".parse().unwrap()),
            key_bytes: 64,
            sector_size,
            keyslot,
            data_offset: None,
            detached: false,
            label: label.to_owned(),
            subsystem: String::new(),
            uuid: None,
        };
        let key = Key::random(64).unwrap();
        let header = Header::create(&device, &creation, &key, &secret).unwrap();
        let before = content(&device);
        match (header.into_luks1(&device), lacking) {
            (Ok(header), None) => {
                let given = Secret::Passphrase(passphrase(0));
                let unlocked = header.unlock(&device, &given, None, &Limits::default());
                assert_eq!(unlocked.unwrap().key.as_bytes(), key.as_bytes());
            }
            (Err(VolumeError::Lacks { what, .. }), Some(lacking)) => {
                assert!(what.contains(lacking), "{what}");
                assert!(content(&device) == before, "{lacking}");
            }
            (result, lacking) => panic!("{result:?} {lacking:?}"),
        }
    }
}

/// The first copy of LUKS2's header, half written or lost, never counts.
#[test]
fn a_torn_first_copy_is_made_again_from_the_second() {
    let volume = Volume::new("aes-xts-plain64", 64, &[0, 6], None);
    let disk = copy(&volume.device);
    convert(&disk).unwrap();
    let converted = content(&disk);
    for sectors in 1..32 {
        let torn = RamDevice::new(disk.geometry().size);
        torn.write_at(0, &converted).unwrap();
        let rest = sectors * SECTOR..16 << 10;
        torn.write_at(rest.start as u64, &content(&volume.device)[rest])
            .unwrap();
        assert_eq!(Format::detect(&torn).unwrap(), Some(Format::Luks2));
        volume.opens(&torn);
        convert(&torn).unwrap();
        volume.is_converted(&torn);
    }
}

#[test]
fn what_cannot_be_converted_is_left_alone() {
    let full: Vec<u32> = (0..8).collect();
    let narrow = Some(4096 + 8 * (128 << 10));
    let cases = [
        Volume::new("aes-xts-plain64", 64, &full, None),
        Volume::new("aes-xts-plain64", 32, &full, narrow),
    ];
    for volume in &cases {
        let refused = convert(&volume.device);
        assert!(
            refused
                .unwrap_err()
                .to_string()
                .contains("no room before the data")
        );
        volume.opens(&volume.device);
        assert_eq!(Format::detect(&volume.device).unwrap(), Some(Format::Luks1));
    }
    // Key material that is not encrypted, which current programs do not make.
    let null = Volume::new("aes-xts-plain64", 32, &[0], None).device;
    let mut first = content(&null)[..4096].to_vec();
    first[8..40].fill(0);
    first[8..19].copy_from_slice(b"cipher_null");
    first[40..72].fill(0);
    first[40..43].copy_from_slice(b"ecb");
    null.write_at(0, &first).unwrap();
    assert!(matches!(convert(&null), Err(VolumeError::Lacks { .. })));
    assert_eq!(content(&null)[..4096], first);
    // One keyslot less, and there is room.
    let mut header = luks1::Header::read(&cases[0].device).unwrap();
    header.kill_key(&cases[0].device, 3, false).unwrap();
    convert(&cases[0].device).unwrap();
    assert!(
        Header::read(&cases[0].device)
            .unwrap()
            .metadata
            .keyslots
            .len()
            == 7
    );
}

#[test]
fn metadata_of_other_programs_is_not_destroyed() {
    let volume = Volume::new("aes-xts-plain64", 64, &[0], None);
    let behind = 4096 + 8 * 63 * 4096;
    let mut page = vec![0; 4096];
    page[..8].copy_from_slice(b"LUKSMETA");
    volume.device.write_at(behind, &page).unwrap();
    let before = content(&volume.device);
    assert!(matches!(
        convert(&volume.device),
        Err(VolumeError::Unsupported { .. })
    ));
    assert!(content(&volume.device) == before);
}

/// A LUKS1 header of 2 MiB has room for the journal beside several keyslots.
#[test]
fn a_converted_volume_is_reencrypted() {
    let volume = Volume::new("aes-xts-plain64", 64, &[0, 1, 4], None);
    let device = &volume.device;
    let plaintext = || {
        let opened = Opening::Luks2 { slot: None }.unlock(
            device,
            device,
            &Secret::Passphrase(passphrase(1)),
            &Terms::reading(&Limits::default(), &|_, _| ControlFlow::Continue(())),
        );
        content(&*opened.unwrap().device(device, device).unwrap())
    };
    convert(device).unwrap();
    let expected = plaintext();
    let mut header = Header::read(device).unwrap();
    let kdf = Kdf::Pbkdf2 {
        hash: Hash::Sha256,
        iterations: 1000,
    };
    let target = Target {
        spec: "serpent-xts-plain64".parse().unwrap(),
        sector_size: Default::default(),
        keyslot: KeyslotOptions::new(kdf),
    };
    let opened = header.unlock(
        device,
        &Secret::Passphrase(passphrase(1)),
        None,
        &Limits::default(),
    );
    let keys = Keys {
        old: opened.unwrap().key,
        new: Key::random(64).unwrap(),
    };
    header
        .begin_reencryption(
            device,
            device,
            &target,
            &keys,
            &[(1, &passphrase(1))],
            &State::ALL,
        )
        .unwrap();
    let secret = Secret::Passphrase(passphrase(1));
    let keys = header
        .unlock_both(device, &secret, &Limits::default())
        .unwrap();
    header
        .reencrypt(device, device, &keys, &|_| ControlFlow::Continue(()))
        .unwrap();
    assert!(plaintext() == expected);
}
