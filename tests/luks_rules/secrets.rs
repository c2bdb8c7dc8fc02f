//! Headers of an attacker's, and keys that only look like the right one.

use super::{DATA, SIZE, bytes_of, device_of, kdf, limits};
use block::{BlockDevice, RamDevice};
use cipher::{Key, SectorSize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use volume::luks2::{DataCipher, KeyslotOptions};
use volume::{Secret, VolumeError, luks1, luks2};

const STRIPES: usize = 4000;

/// Stripes of zeros and a last one that make `key`, as the splitter of LUKS
/// merges them with SHA-256.
fn stripes(key: &[u8]) -> Vec<u8> {
    let mut sum = vec![0; key.len()];
    for _ in 1..STRIPES {
        let mut next = Vec::new();
        for (number, block) in (0_u32..).zip(sum.chunks(32)) {
            let digest = Sha256::digest([&number.to_be_bytes(), block].concat());
            next.extend_from_slice(&digest[..block.len()]);
        }
        sum = next;
    }
    let mut stripes = vec![0; key.len() * (STRIPES - 1)];
    stripes.extend(sum.iter().zip(key).map(|(sum, key)| sum ^ key));
    stripes
}

fn passphrase(text: &[u8]) -> Secret {
    Secret::Passphrase(Key::from_slice(text))
}

fn luks2(key: &Key) -> RamDevice {
    let device = RamDevice::new(SIZE);
    let creation = luks2::Creation {
        cipher: DataCipher::Plain("aes-xts-plain64".parse().unwrap()),
        key_bytes: key.len(),
        sector_size: SectorSize::default(),
        keyslot: KeyslotOptions {
            key_bytes: 32,
            ..KeyslotOptions::new(kdf())
        },
        data_offset: Some(DATA),
        detached: false,
        label: String::new(),
        subsystem: String::new(),
        uuid: None,
    };
    luks2::Header::create(&device, &creation, key, &Key::from_slice(b"one")).unwrap();
    device
}

fn luks1(key: &Key) -> RamDevice {
    let device = RamDevice::new(SIZE);
    let creation = luks1::Creation {
        spec: "aes-cbc-essiv:sha256".parse().unwrap(),
        key_bytes: key.len(),
        hash: volume::Hash::Sha256,
        iterations: 1000,
        payload_offset: Some(DATA),
        detached: false,
        uuid: None,
    };
    luks1::Header::create(&device, &creation, key, &Key::from_slice(b"one")).unwrap();
    device
}

/// Changes the JSON of both copies.
fn edit(device: &RamDevice, edit: impl FnOnce(&mut Value)) {
    const HEADER: usize = 16 << 10;
    let mut bytes = bytes_of(device);
    let end = 4096 + bytes[4096..].iter().position(|&byte| byte == 0).unwrap();
    let mut json = serde_json::from_slice(&bytes[4096..end]).unwrap();
    edit(&mut json);
    let text = json.to_string();
    for copy in bytes[..2 * HEADER].chunks_mut(HEADER) {
        copy[4096..].fill(0);
        copy[4096..4096 + text.len()].copy_from_slice(text.as_bytes());
        copy[448..512].fill(0);
        let digest = Sha256::digest(&*copy);
        copy[448..480].copy_from_slice(&digest);
    }
    device.write_at(0, &bytes).unwrap();
}

/// CVE-2025-59054: key material under the null cipher opens with anything.
#[test]
fn key_material_that_is_not_encrypted_opens_nothing() {
    let key = Key::random(32).unwrap();
    for cipher in [
        "cipher_null-ecb",
        "cipher_null",
        "null",
        "capi:ecb(cipher_null)-plain64",
    ] {
        let device = luks2(&key);
        device.write_at(32 << 10, &stripes(key.as_bytes())).unwrap();
        edit(&device, |json| {
            json["keyslots"]["0"]["area"]["encryption"] = json!(cipher)
        });
        let header = luks2::Header::read(&device).unwrap();
        for (text, slot) in [(&b"one"[..], None), (b"anything", None), (b"", Some(0))] {
            let opened = header.unlock(&device, &passphrase(text), slot, &limits());
            let refused = matches!(opened, Err(VolumeError::NullKeyslot { slot: 0 }));
            assert!(refused, "{cipher}: {opened:?}");
        }
        let volume_key = Secret::VolumeKey(Key::from_slice(key.as_bytes()));
        header
            .unlock(&device, &volume_key, None, &limits())
            .unwrap();
    }
    let key = Key::random(16).unwrap();
    let device = luks1(&key);
    let mut bytes = bytes_of(&device);
    bytes[8..72].fill(0);
    bytes[8..19].copy_from_slice(b"cipher_null");
    bytes[40..43].copy_from_slice(b"ecb");
    bytes[4096..][..16 * STRIPES].copy_from_slice(&stripes(key.as_bytes()));
    let device = device_of(&bytes);
    let mut header = luks1::Header::read(&device).unwrap();
    for (text, slot) in [(&b"one"[..], None), (b"anything", None), (b"", Some(0))] {
        let opened = header.unlock(&device, &passphrase(text), slot, &limits());
        let refused = matches!(opened, Err(VolumeError::NullKeyslot { slot: 0 }));
        assert!(refused, "{opened:?}");
    }
    let volume_key = Secret::VolumeKey(Key::from_slice(key.as_bytes()));
    let unlocked = header
        .unlock(&device, &volume_key, None, &limits())
        .unwrap();
    let two = Key::from_slice(b"two");
    let added = header.add_key(&device, &unlocked.key, &two, 1000, None);
    assert!(
        matches!(added, Err(VolumeError::NullKeyslot { .. })),
        "{added:?}"
    );
    assert_eq!(bytes_of(&device), bytes, "no key is written in the clear");
}

/// To PBKDF2 a key with zeros behind it is the same key.
#[test]
fn a_key_with_zeros_behind_it_is_another_key() {
    let padded = |key: &Key, zeros: usize| {
        Secret::VolumeKey(Key::from_slice(&[key.as_bytes(), &vec![0; zeros]].concat()))
    };
    let key = Key::random(32).unwrap();
    let device = luks2(&key);
    let erased = luks2(&key);
    let mut header = luks2::Header::read(&erased).unwrap();
    header.kill_key(&erased, 0, true).unwrap();
    // Another keyslot says that the key is longer than it is.
    let lying = luks2(&key);
    edit(&lying, |json| {
        let mut keyslot = json["keyslots"]["0"].clone();
        keyslot["key_size"] = json!(64);
        keyslot["area"]["offset"] = json!("524288");
        keyslot["area"]["size"] = json!("258048");
        json["keyslots"]["1"] = keyslot;
        json["digests"]["0"]["keyslots"] = json!(["0", "1"]);
    });
    for device in [&device, &erased, &lying] {
        let header = luks2::Header::read(device).unwrap();
        header
            .unlock(device, &padded(&key, 0), None, &limits())
            .unwrap();
        for zeros in [8, 16, 32] {
            let opened = header.unlock(device, &padded(&key, zeros), None, &limits());
            assert!(
                matches!(opened, Err(VolumeError::WrongVolumeKey)),
                "{zeros}: {opened:?}"
            );
        }
    }
    let key = Key::random(16).unwrap();
    let device = luks1(&key);
    let header = luks1::Header::read(&device).unwrap();
    header
        .unlock(&device, &padded(&key, 0), None, &limits())
        .unwrap();
    let opened = header.unlock(&device, &padded(&key, 16), None, &limits());
    assert!(
        matches!(opened, Err(VolumeError::WrongVolumeKey)),
        "{opened:?}"
    );
}
