//! Volumes that others wrote, from `tests/golden`: those whose key is
//! known without a key derivation, as dm-crypt's tables and plain volumes, and
//! TrueCrypt's with a cheap one.

use std::fs;
use std::path::{Path, PathBuf};

use cryptmark_cipher::{CipherSpec, IvSector, Key, SectorCipher, SectorLayout, SectorSize};
use pbkdf2::pbkdf2_hmac;
use serde_json::Value;
use sha2::{Digest, Sha256, Sha512};

use crate::vectors::hex;

/// The folder and its cases.
fn samples() -> (PathBuf, Vec<Value>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let manifest = fs::read(folder.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    (folder, manifest["cases"].as_array().unwrap().clone())
}

#[test]
fn volumes_that_linux_wrote() {
    let (folder, cases) = samples();
    let (mut run, mut unknown) = (Vec::new(), Vec::new());
    for case in &cases {
        let id = case["id"].as_str().unwrap();
        let Some(key) = raw_key(case) else { continue };
        let notation = case["cipher"].as_str().unwrap();
        if !case["compression"].is_null() {
            continue;
        }
        let Ok(spec) = notation.parse::<CipherSpec>() else {
            unknown.push(notation.to_owned());
            continue;
        };
        let number = |field: &str| case[field].as_u64().unwrap_or(0);
        let layout = SectorLayout {
            size: SectorSize::from_bytes(number("sector_size") as u32).unwrap(),
            large_iv: case["iv_large_sectors"].as_bool().unwrap_or(false),
        };
        let skip = number("skip_sectors");
        let first = match layout.large_iv {
            true => skip / (layout.size.bytes() as u64 / 512),
            false => skip,
        };
        let image = fs::read(folder.join(case["path"].as_str().unwrap())).unwrap();
        let offset = number("offset_sectors") as usize * 512;
        let size = number_of(&case["expected"]["size"]) as usize;
        let expected = case["expected"]["sha256"].as_str().unwrap();
        for backend in spec.backends() {
            let cipher = spec.cipher(&Key::from_slice(&key), layout, Some(backend));
            let cipher = cipher.unwrap_or_else(|error| panic!("{id}: {error}"));
            let mut data = image[offset..offset + size].to_vec();
            cipher.decrypt(IvSector::new(first), &mut data);
            assert_eq!(
                Sha256::digest(&data).as_slice(),
                hex(expected),
                "{id} {backend}"
            );
            cipher.encrypt(IvSector::new(first), &mut data);
            assert!(data == image[offset..offset + size], "{id} {backend}");
        }
        run.push(format!("{id} ({notation})"));
    }
    println!("{} volumes run:", run.len());
    for volume in &run {
        println!("  {volume}");
    }
    println!("not run, cannot be built yet: {}", unknown.join(", "));
    assert!(run.len() >= 12);
}

/// TrueCrypt 7: the cipher of the header, then that of the data, whose key the
/// header holds.
#[test]
fn volumes_for_truecrypt() {
    const ITERATIONS: u32 = 1000;
    let (folder, cases) = samples();
    let mut run = 0;
    for case in cases {
        let of_sha512 = case["hash"] == "sha512" && case["hidden"] == false;
        if case["format"] != "truecrypt" || !of_sha512 || !case["compression"].is_null() {
            continue;
        }
        let id = case["id"].as_str().unwrap();
        let cipher = case["cipher"].as_str().unwrap();
        let spec: CipherSpec = match cipher.contains('-') {
            true => cipher.parse().unwrap(),
            false => format!("{cipher}-xts-plain64").parse().unwrap(),
        };
        let image = fs::read(folder.join(case["path"].as_str().unwrap())).unwrap();
        let (salt, encrypted) = image[..512].split_at(64);
        let passphrase = case["secrets"][0]["value"].as_str().unwrap().as_bytes();
        let key_bytes = *spec.key_sizes().last().unwrap();
        let mut key = vec![0; key_bytes];
        pbkdf2_hmac::<Sha512>(passphrase, salt, ITERATIONS, &mut key);
        for backend in spec.backends() {
            let decrypt = |key: &[u8], first: u64, data: &mut [u8]| {
                let layout = SectorLayout::default();
                let cipher = spec.cipher(&Key::from_slice(key), layout, Some(backend));
                cipher.unwrap().decrypt(IvSector::new(first), data);
            };
            // The header ends 64 bytes before its sector would.
            let mut header = [0; 512];
            header[..448].copy_from_slice(encrypted);
            decrypt(&key, 0, &mut header);
            assert_eq!(header[..4], *b"TRUE", "{id} {backend}");
            let volume_key = &header[192..][..key_bytes];

            let start = 131_072;
            let size = number_of(&case["expected"]["size"]) as usize;
            let mut data = image[start..start + size].to_vec();
            decrypt(volume_key, start as u64 / 512, &mut data);
            let expected = case["expected"]["sha256"].as_str().unwrap();
            assert_eq!(
                Sha256::digest(&data).as_slice(),
                hex(expected),
                "{id} {backend}"
            );
        }
        println!("run: {id} ({spec})");
        run += 1;
    }
    assert!(run >= 4);
}

fn raw_key(case: &Value) -> Option<Vec<u8>> {
    let in_table = || {
        let secret = &case["secrets"][0];
        (secret["type"] == "hexkey").then(|| secret["value"].as_str())?
    };
    let derived = || case["expected"]["raw_key_hex"].as_str();
    Some(hex(derived().or_else(in_table)?))
}

fn number_of(value: &Value) -> u64 {
    value.as_u64().unwrap()
}
