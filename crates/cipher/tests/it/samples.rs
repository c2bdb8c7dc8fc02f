//! Volumes that Linux wrote, from `../shared/samples`: those whose key is
//! known without a key derivation, as dm-crypt's tables and plain volumes.

use std::fs;
use std::path::Path;

use cryptmark_cipher::{CipherSpec, IvSector, Key, SectorLayout, SectorSize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::vectors::hex;

#[test]
fn volumes_that_linux_wrote() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/samples");
    let Ok(manifest) = fs::read(folder.join("manifest.json")) else {
        println!("NOT RUN: ../shared/samples is not present");
        return;
    };
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let (mut run, mut unknown) = (Vec::new(), Vec::new());
    for case in manifest["cases"].as_array().unwrap() {
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
