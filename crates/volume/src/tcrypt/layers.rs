//! The ciphers that a header may be in, and how headers are encrypted.
//!
//! ```text
//! key material, XTS    data keys, then tweak keys, both in the order of encryption
//! before XTS           32 bytes, then the keys in the order of encryption
//!                      LRW: the tweak key first in the 32; CBC: IV, then whitening
//! ```
//!
//! That holds for what a passphrase gives and for the key area in a header.

use super::{Family, SALT_BYTES};
use crate::{Instead, VolumeError};
use cipher::{Algorithm, CipherSpec, IvSector, Key, Mode, SectorCipher, SectorLayout};
use zeroize::Zeroizing;

/// The length of the encrypted part of a header, bytes.
pub(super) const ENCRYPTED_BYTES: usize = 512 - SALT_BYTES;

/// A sector that begins with an encrypted header, or a decrypted one.
pub(super) type Sector = Zeroizing<[u8; 512]>;

/// Lengths in the modes before XTS, bytes: the secret that stands before the keys, and the
/// whitening in it.
const SECRET_BYTES: usize = 32;
const WHITENING_BYTES: usize = 16;

/// VeraCrypt's names, of which the last encrypts first. TrueCrypt has them in every mode.
const TRUECRYPT: [&str; 8] = [
    "aes",
    "serpent",
    "twofish",
    "aes-twofish",
    "aes-twofish-serpent",
    "serpent-aes",
    "serpent-twofish-aes",
    "twofish-serpent",
];
const VERACRYPT: [&str; 7] = [
    "camellia",
    "kuznyechik",
    "camellia-kuznyechik",
    "camellia-serpent",
    "kuznyechik-aes",
    "kuznyechik-serpent-camellia",
    "kuznyechik-twofish",
];

/// Ciphers of 64-bit blocks, which only the modes before XTS take, and cascades with one of them,
/// which only CBC takes.
const NARROW: [&str; 3] = ["blowfish_le", "cast5", "des3_ede"];
const MIXED: [&str; 2] = ["aes-blowfish_le", "aes-blowfish_le-serpent"];

/// Every cipher that a header of `family` may be in, the likely ones first.
pub fn specs(family: Family) -> Vec<CipherSpec> {
    let lists: &[(&[&str], &str)] = match family {
        Family::TrueCrypt => &[
            (&TRUECRYPT, "xts-plain64"),
            (&TRUECRYPT, "lrw-benbi"),
            (&NARROW, "lrw-benbi"),
            (&TRUECRYPT, "cbc-tcw"),
            (&NARROW, "cbc-tcw"),
            (&MIXED, "cbc-tcw"),
        ],
        Family::VeraCrypt => &[(&TRUECRYPT, "xts-plain64"), (&VERACRYPT, "xts-plain64")],
    };
    let in_mode = |(names, mode): &(&[&str], &str)| -> Vec<CipherSpec> {
        let notations = names.iter().map(|name| format!("{name}-{mode}"));
        notations.map(|notation| parsed(&notation)).collect()
    };
    lists.iter().flat_map(in_mode).collect()
}

/// Those of [`specs`] that are made of `algorithms`, which are named as in
/// them, in whatever mode.
pub(super) fn specs_of(
    family: Family,
    algorithms: &[Algorithm],
) -> Result<Vec<CipherSpec>, VolumeError> {
    let all = specs(family);
    let fit: Vec<_> = all
        .iter()
        .copied()
        .filter(|spec| spec.algorithms() == algorithms)
        .collect();
    if fit.is_empty() {
        let mut names: Vec<_> = all.iter().map(|spec| name(spec.algorithms())).collect();
        names.sort_unstable();
        names.dedup();
        return Err(VolumeError::Lacks {
            format: family.format(),
            what: format!("cipher {}", name(algorithms)).into(),
            instead: Instead::OneOf(names),
        });
    }
    Ok(fit)
}

/// VeraCrypt's name of a cipher, in small letters: `aes-twofish`.
fn name(algorithms: &[Algorithm]) -> String {
    let names: Vec<_> = algorithms.iter().map(|cipher| cipher.name()).collect();
    names.join("-")
}

fn parsed(notation: &str) -> CipherSpec {
    notation
        .parse()
        .expect("the cipher crate has what TrueCrypt has")
}

/// Bytes of key material that `spec` needs.
pub(super) fn material_bytes(spec: CipherSpec) -> usize {
    match spec.mode() {
        Mode::Xts => 2 * keys_bytes(spec),
        _ => SECRET_BYTES + keys_bytes(spec),
    }
}

fn keys_bytes(spec: CipherSpec) -> usize {
    spec.algorithms().iter().map(|&c| longest_key(c)).sum()
}

fn longest_key(cipher: Algorithm) -> usize {
    cipher.key_sizes().last().copied().unwrap_or(0)
}

/// The key of `spec` as the cipher crate takes it, of `material`, which has
/// [`material_bytes`] at least.
pub(super) fn key(spec: CipherSpec, material: &[u8]) -> Key {
    if spec.mode() == Mode::Xts || spec.is_cascade() {
        return Key::from_slice(&material[..material_bytes(spec)]);
    }
    // Of one cipher, dm-crypt has the key first.
    let (secret, keys) = material.split_at(SECRET_BYTES);
    let cipher_key = &keys[..keys_bytes(spec)];
    let block_bytes = spec.algorithms()[0].block_bytes();
    let secret = match spec.mode() {
        Mode::Lrw => &secret[..block_bytes],
        _ => &secret[..block_bytes + WHITENING_BYTES],
    };
    Key::from_slice(&Zeroizing::new([cipher_key, secret].concat()))
}

/// Decrypts a header in place: `material` is of the passphrase.
pub(super) fn decrypt(
    spec: CipherSpec,
    material: &[u8],
    sector: &mut Sector,
) -> Result<(), VolumeError> {
    match spec.mode() {
        Mode::Cbc => decrypt_cbc(spec, material, sector),
        // Unit 0 of XTS; block 1 of LRW, which is the first of sector 0.
        _ => {
            let cipher = spec.cipher(&key(spec, material), SectorLayout::default(), None)?;
            cipher.decrypt(IvSector::new(0), &mut sector[..]);
            Ok(())
        }
    }
}

/// Encrypts a header in place, in XTS.
pub(super) fn encrypt(
    spec: CipherSpec,
    material: &[u8],
    sector: &mut Sector,
) -> Result<(), VolumeError> {
    let cipher = spec.cipher(&key(spec, material), SectorLayout::default(), None)?;
    cipher.encrypt(IvSector::new(0), &mut sector[..]);
    Ok(())
}

/// A header's CBC is not that of sectors: the IV is the secret itself, and 8
/// bytes of it whiten everything.
fn decrypt_cbc(spec: CipherSpec, material: &[u8], sector: &mut Sector) -> Result<(), VolumeError> {
    let (secret, keys) = material.split_at(SECRET_BYTES);
    let named = spec.algorithms();
    let block_bytes = named[0].block_bytes();
    if named.iter().all(|c| c.block_bytes() == block_bytes) {
        return decrypt_pass(named, secret, &keys[..keys_bytes(spec)], sector);
    }
    let mut end = keys_bytes(spec);
    for cipher in named {
        let start = end - longest_key(*cipher);
        decrypt_pass(&[*cipher], secret, &keys[start..end], sector)?;
        end = start;
    }
    Ok(())
}

/// One CBC around `ciphers`, whose blocks have one size.
fn decrypt_pass(
    ciphers: &[Algorithm],
    secret: &[u8],
    keys: &[u8],
    sector: &mut Sector,
) -> Result<(), VolumeError> {
    for (byte, white) in sector.iter_mut().zip(secret[8..16].iter().cycle()) {
        *byte ^= white;
    }
    let spec = parsed(&format!("{}-cbc-null", name(ciphers)));
    let cipher = spec.cipher(&Key::from_slice(keys), SectorLayout::default(), None)?;
    cipher.decrypt(IvSector::new(0), &mut sector[..]);
    let iv = &secret[..ciphers[0].block_bytes()];
    for (byte, iv) in sector.iter_mut().zip(iv) {
        *byte ^= iv;
    }
    Ok(())
}
