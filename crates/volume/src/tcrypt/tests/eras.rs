//! Volumes of all eras, as their sources and an encryption of one block at a
//! time have them.

use super::*;
use cipher::{IvSector, Mode, SectorCipher, SectorLayout};

/// A block cipher, one block at a time.
fn encrypt_block(cipher: Algorithm, key: &[u8], block: &mut [u8]) {
    let spec = spec(&format!("{}-ecb", cipher.name()));
    let ecb = spec.cipher(&super::key(key), SectorLayout::default(), None);
    let mut sector = [0; 512];
    sector[..block.len()].copy_from_slice(block);
    ecb.unwrap().encrypt(IvSector::new(0), &mut sector);
    block.copy_from_slice(&sector[..block.len()]);
}

/// The ciphers with their keys, in the order of encryption.
fn keyed<'a>(spec: &CipherSpec, keys: &'a [u8]) -> Vec<(Algorithm, &'a [u8])> {
    let mut at = 0;
    let mut layers = Vec::new();
    for &cipher in spec.algorithms().iter().rev() {
        let length = *cipher.key_sizes().last().unwrap();
        layers.push((cipher, &keys[at..at + length]));
        at += length;
    }
    layers
}

/// The product in GF(2^128), bits in the order of LRW: the last bit of the last
/// byte is the constant.
fn times(a: u128, b: u128) -> u128 {
    (0..128).rev().fold(0, |sum: u128, bit| {
        let times_x = (sum << 1) ^ ((sum >> 127) * 0x87);
        times_x ^ (if b >> bit & 1 == 1 { a } else { 0 })
    })
}

/// The same in GF(2^64), as TrueCrypt 4 has it for blocks of 8 bytes.
fn times_64(a: u64, b: u64) -> u64 {
    (0..64).rev().fold(0, |sum: u64, bit| {
        let times_x = (sum << 1) ^ ((sum >> 63) * 0x1b);
        times_x ^ (if b >> bit & 1 == 1 { a } else { 0 })
    })
}

/// Encrypts a header as TrueCrypt 3 and 4 did.
fn encrypt_header(spec: &CipherSpec, material: &[u8], header: &mut [u8]) {
    let (secret, keys) = material.split_at(32);
    let layers = keyed(spec, keys);
    if spec.mode() == Mode::Lrw {
        let block_bytes = layers[0].0.block_bytes();
        let tweak_key = u128::from_be_bytes(*secret.first_chunk().unwrap());
        for (index, block) in (1..).zip(header.chunks_mut(block_bytes)) {
            let tweak = match block_bytes {
                16 => times(tweak_key, index).to_be_bytes().to_vec(),
                _ => times_64((tweak_key >> 64) as u64, index as u64)
                    .to_be_bytes()
                    .to_vec(),
            };
            let whiten = |block: &mut [u8]| {
                for (byte, tweak) in block.iter_mut().zip(&tweak) {
                    *byte ^= tweak;
                }
            };
            whiten(block);
            for (cipher, key) in &layers {
                encrypt_block(*cipher, key, block);
            }
            whiten(block);
        }
        return;
    }
    let block_bytes = layers[0].0.block_bytes();
    let one_size = layers.iter().all(|(c, _)| c.block_bytes() == block_bytes);
    let passes: Vec<&[_]> = match one_size {
        true => vec![&layers],
        false => layers.chunks(1).collect(),
    };
    for pass in passes {
        let block_bytes = pass[0].0.block_bytes();
        let mut chain = secret[..block_bytes].to_vec();
        for block in header.chunks_mut(block_bytes) {
            for (byte, before) in block.iter_mut().zip(&chain) {
                *byte ^= before;
            }
            for (cipher, key) in pass {
                encrypt_block(*cipher, key, block);
            }
            chain.copy_from_slice(block);
        }
        for (byte, white) in header.iter_mut().zip(secret[8..16].iter().cycle()) {
            *byte ^= white;
        }
    }
}

/// A header of an old version, with fields as those had them.
fn old_header(version: u16, hidden_size: u64) -> Header {
    Header {
        version,
        least_program: 0x0100,
        hidden_size,
        volume_size: 0,
        data_offset: 0,
        encrypted_bytes: 0,
        ..good_header(Normal)
    }
}

const OLD_SIZE: u64 = 40_960;
const HIDDEN_SIZE: u64 = 19_456;

/// A device with a header of that version under a passphrase.
fn old_device(spec: &CipherSpec, prf: Prf, version: u16, hidden: bool) -> RamDevice {
    let device = RamDevice::new(OLD_SIZE);
    let (at, hidden_size) = match hidden {
        true => (OLD_SIZE - 1536, HIDDEN_SIZE),
        false => (0, 0),
    };
    let kdf = prf.kdf(TrueCrypt, Normal, None).unwrap();
    let material = kdf.derive(OLD, &SALT, 192, &Limits::default());
    let sector = old_header(version, hidden_size).to_sector();
    let mut encrypted = sector[..ENCRYPTED_BYTES].to_vec();
    encrypt_header(spec, material.unwrap().as_bytes(), &mut encrypted);
    device
        .write_at(at, &[&SALT[..], &encrypted].concat())
        .unwrap();
    device
}

fn before_xts() -> impl Iterator<Item = CipherSpec> {
    let all = specs(TrueCrypt).into_iter();
    all.filter(|spec| spec.mode() != Mode::Xts)
}

/// Every cipher of TrueCrypt 3 and 4, found among all.
#[test]
fn volumes_before_xts_open_in_every_cipher() {
    let mut opened = 0;
    for spec in before_xts() {
        for hidden in [false, true] {
            let lrw = spec.mode() == Mode::Lrw;
            let version = if lrw { 2 } else { 1 };
            let prf = Prf::Pbkdf2(if lrw { Hash::Ripemd160 } else { Hash::Sha1 });
            let device = old_device(&spec, prf, version, hidden);
            let (place, start, length) = match hidden {
                true => (Hidden, OLD_SIZE - 1536 - HIDDEN_SIZE, HIDDEN_SIZE),
                false => (Normal, 512, OLD_SIZE - 512),
            };
            let (unlocked, _) = open(&opening(TrueCrypt, place, prf), &device)
                .unwrap_or_else(|error| panic!("{spec}: {error}"));
            assert_eq!((unlocked.spec, unlocked.header.version), (spec, version));
            let mapping = unlocked.mapping(&device).unwrap();
            assert_eq!((mapping.data.offset, mapping.data.length), (start, length));
            assert_eq!(mapping.first.get(), if lrw { 0 } else { 1 }, "{spec}");
            opened += 1;
        }
    }
    assert_eq!(opened, 2 * (11 + 13));
}

/// The header of a hidden volume in the old layout is within the data of the outer one.
#[test]
fn what_an_outer_volume_must_leave_includes_an_old_header() {
    let prf = Prf::Pbkdf2(Hash::Sha1);
    let device = old_device(&before_xts().next().unwrap(), prf, 1, true);
    let opening = opening(TrueCrypt, Hidden, prf);
    let (unlocked, _) = open(&opening, &device).unwrap();
    let left = unlocked.within_outer(&device).unwrap();
    let protected = block::layer::Protected::new(&device, left);
    for (at, passes) in [
        (OLD_SIZE - 1536 - HIDDEN_SIZE - 512, true),
        (OLD_SIZE - 1024, true),
        (OLD_SIZE - 1536 - HIDDEN_SIZE, false),
    ] {
        assert_eq!(protected.write_at(at, &[1; 512]).is_ok(), passes, "{at}");
    }
    let protected = block::layer::Protected::new(&device, left);
    assert!(protected.write_at(OLD_SIZE - 1536, &[1; 512]).is_err());
    open(&opening, &device).unwrap();
}

/// The key of the data, if the cipher crate and TrueCrypt order its parts differently.
#[test]
fn keys_are_cut_from_the_key_area_as_truecrypt_did() {
    let area: Vec<u8> = (0..=255).collect();
    let key = |notation: &str| super::super::layers::key(spec(notation), &area);
    let bytes = |ranges: &[(u8, u8)]| -> Vec<u8> {
        let whole = ranges.iter().flat_map(|&(start, end)| start..end);
        whole.collect()
    };
    for (notation, expected) in [
        ("aes-xts-plain64", bytes(&[(0, 64)])),
        ("aes-twofish-xts-plain64", bytes(&[(0, 128)])),
        ("aes-lrw-benbi", bytes(&[(32, 64), (0, 16)])),
        ("twofish-serpent-lrw-benbi", bytes(&[(0, 96)])),
        ("cast5-lrw-benbi", bytes(&[(32, 48), (0, 8)])),
        ("des3_ede-lrw-benbi", bytes(&[(32, 56), (0, 8)])),
        ("blowfish_le-lrw-benbi", bytes(&[(32, 88), (0, 8)])),
        ("aes-cbc-tcw", bytes(&[(32, 64), (0, 32)])),
        ("cast5-cbc-tcw", bytes(&[(32, 48), (0, 24)])),
        ("des3_ede-cbc-tcw", bytes(&[(32, 56), (0, 24)])),
        ("blowfish_le-cbc-tcw", bytes(&[(32, 88), (0, 24)])),
        ("aes-blowfish_le-serpent-cbc-tcw", bytes(&[(0, 152)])),
    ] {
        assert_eq!(key(notation).as_bytes(), expected, "{notation}");
    }
}

/// A version 3 volume uses XTS, and its data begin right behind the header.
#[test]
fn version_3_begins_at_unit_1() {
    let device = RamDevice::new(OLD_SIZE);
    let header = Header {
        volume_size: OLD_SIZE - 512,
        encrypted_bytes: OLD_SIZE - 512,
        ..old_header(3, 0)
    };
    device.write_at(0, &sealed(header.to_sector())).unwrap();
    let (unlocked, volume) = open(&opening(TrueCrypt, Normal, SHA512), &device).unwrap();
    assert_eq!(volume.geometry().size, OLD_SIZE - 512);
    assert_eq!(unlocked.mapping(&device).unwrap().first.get(), 1);
}

/// The names of the cascades are those of the cipher crate and cryptsetup.
#[test]
fn veracrypt_has_fifteen_ciphers() {
    let names: Vec<_> = specs(VeraCrypt).iter().map(ToString::to_string).collect();
    assert_eq!(names.len(), 15);
    assert!(names.contains(&"kuznyechik-serpent-camellia-xts-plain64".to_owned()));
    assert_eq!(specs(TrueCrypt).len(), 8 + 11 + 13);
}
