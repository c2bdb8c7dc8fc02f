//! A header that another program has changed since it was read. Nothing is written then, neither
//! over the header nor over key material that may be in use by now.

use block::{BlockDevice, RamDevice};
use cipher::Key;
use cryptmark_volume::judge::State;
use cryptmark_volume::luks2::KeyslotOptions;
use cryptmark_volume::{Hash, Kdf, VolumeError, luks1, luks2};

/// The cheapest key derivation that is accepted.
const KDF: Kdf = Kdf::Pbkdf2 {
    hash: Hash::Sha256,
    iterations: 1000,
};

fn key(name: &str) -> Key {
    Key::from_slice(name.as_bytes())
}

fn device() -> RamDevice {
    RamDevice::new(20 << 20)
}

fn content(device: &RamDevice) -> Vec<u8> {
    let mut bytes = vec![0; device.geometry().size as usize];
    device.read_at(0, &mut bytes).unwrap();
    bytes
}

/// Asserts that `late` refuses a header that is no longer the device's, and writes nothing.
fn refuses(
    device: &RamDevice,
    what: &str,
    late: impl FnOnce(&RamDevice) -> Result<(), VolumeError>,
) {
    let before = content(device);
    let outcome = late(device);
    assert!(
        matches!(outcome, Err(VolumeError::HeaderChanged { .. })),
        "{what}: {outcome:?}"
    );
    assert!(content(device) == before, "{what} has written");
}

#[test]
fn luks1_headers() {
    let device = device();
    let creation = luks1::Creation {
        spec: "aes-xts-plain64".parse().unwrap(),
        key_bytes: 64,
        hash: Hash::Sha256,
        iterations: 1000,
        payload_offset: None,
        detached: false,
        uuid: None,
    };
    let volume_key = Key::random(64).unwrap();
    let mut first = luks1::Header::create(&device, &creation, &volume_key, &key("one")).unwrap();
    let stale = first.clone();
    first
        .add_key(&device, &volume_key, &key("two"), 1000, None)
        .unwrap();
    refuses(&device, "adding a key", |device| {
        let mut header = stale.clone();
        let added = header.add_key(device, &volume_key, &key("three"), 1000, None);
        added.map(drop)
    });
    refuses(&device, "changing a key", |device| {
        let mut header = stale.clone();
        let changed = header.change_key(device, 0, &volume_key, &key("three"), 1000);
        changed.map(drop)
    });
    refuses(&device, "removing a key", |device| {
        stale.clone().kill_key(device, 0, true)
    });
    refuses(&device, "another UUID", |device| {
        stale.clone().set_uuid(device, None)
    });
}

#[test]
fn luks2_headers() {
    let device = device();
    let options = KeyslotOptions::new(KDF);
    let creation = luks2::Creation {
        cipher: luks2::DataCipher::Plain("aes-xts-plain64".parse().unwrap()),
        key_bytes: 64,
        sector_size: Default::default(),
        keyslot: options,
        data_offset: None,
        detached: false,
        label: String::new(),
        subsystem: String::new(),
        uuid: None,
    };
    let volume_key = Key::random(64).unwrap();
    let mut first = luks2::Header::create(&device, &creation, &volume_key, &key("one")).unwrap();
    let stale = first.clone();
    first
        .add_key(&device, &volume_key, &key("two"), &options, None)
        .unwrap();
    refuses(&device, "adding a key", |device| {
        let mut header = stale.clone();
        let added = header.add_key(device, &volume_key, &key("three"), &options, None);
        added.map(drop)
    });
    refuses(&device, "changing a key", |device| {
        let mut header = stale.clone();
        header.change_key(device, 0, &volume_key, &key("three"), &options)
    });
    refuses(&device, "removing a key", |device| {
        stale.clone().kill_key(device, 0, true)
    });
    refuses(&device, "another label", |device| {
        stale.clone().set_labels(device, Some("late"), None)
    });
}

/// A key that is not the data's, or an empty passphrase, would make a volume that nothing opens,
/// or that anyone opens.
#[test]
fn keys_of_callers_are_verified_before_anything_is_written() {
    let key64 = || Key::random(64).unwrap();
    let volume_key = key64();
    let cut = || Key::from_slice(&volume_key.as_bytes()[..32]);
    let padded = || Key::from(([volume_key.as_bytes(), &[0; 8]]).concat());
    let wrong: [&dyn Fn() -> Key; 4] = [&key64, &cut, &padded, &|| Key::from_slice(&[])];
    let options = KeyslotOptions::new(KDF);
    let two = key("two");

    let device2 = device();
    let creation = luks2::Creation::new(KDF);
    let header = luks2::Header::create(&device2, &creation, &volume_key, &key("one")).unwrap();
    let target = luks2::Target {
        spec: "serpent-xts-plain64".parse().unwrap(),
        sector_size: cipher::SectorSize::default(),
        keyslot: options,
    };
    let device1 = device();
    let creation1 = luks1::Creation {
        spec: "aes-xts-plain64".parse().unwrap(),
        key_bytes: 64,
        hash: Hash::Sha256,
        iterations: 1000,
        payload_offset: None,
        detached: false,
        uuid: None,
    };
    let header1 = luks1::Header::create(&device1, &creation1, &volume_key, &key("one")).unwrap();
    let before = [content(&device1), content(&device2)];
    for wrong in wrong {
        let (mut header, mut header1) = (header.clone(), header1.clone());
        let keys = || luks2::Keys {
            old: wrong(),
            new: key64(),
        };
        let kept = [(0, &two)];
        let outcomes = [
            header
                .add_key(&device2, &wrong(), &two, &options, None)
                .map(drop),
            header.change_key(&device2, 0, &wrong(), &two, &options),
            header.begin_reencryption(&device2, &device2, &target, &keys(), &kept, &State::ALL),
            header.begin_decryption(&device2, &device2, &keys(), true, &[]),
            header.begin_decryption(&device2, &device2, &keys(), false, &[]),
            header1
                .add_key(&device1, &wrong(), &two, 1000, None)
                .map(drop),
            header1
                .change_key(&device1, 0, &wrong(), &two, 1000)
                .map(drop),
        ];
        for (nth, outcome) in outcomes.into_iter().enumerate() {
            let refused = matches!(outcome, Err(VolumeError::WrongVolumeKey));
            assert!(refused, "{nth}: {outcome:?}");
        }
    }
    // A new volume has the key that its header speaks of, and a passphrase.
    let none = key("");
    let mut header = header;
    let outcomes = [
        luks2::Header::create(&device2, &creation, &cut(), &two).map(drop),
        luks1::Header::create(&device1, &creation1, &cut(), &two).map(drop),
        luks2::Header::create(&device2, &creation, &volume_key, &none).map(drop),
        header
            .add_key(&device2, &volume_key, &none, &options, None)
            .map(drop),
        header.change_key(&device2, 0, &volume_key, &none, &options),
    ];
    for (nth, outcome) in outcomes.into_iter().enumerate() {
        let refused = matches!(
            outcome,
            Err(VolumeError::SecretLength { .. } | VolumeError::EmptyPassphrase)
        );
        assert!(refused, "{nth}: {outcome:?}");
    }
    assert!(before == [content(&device1), content(&device2)]);
    let allowed = KeyslotOptions {
        allow_empty: true,
        ..options
    };
    header
        .add_key(&device2, &volume_key, &none, &allowed, None)
        .unwrap();
}
