//! Volumes that TrueCrypt, VeraCrypt, tcplay and a writer of our own made,
//! from `tests/golden`.

use block::{BlockDevice, RamDevice};
use cipher::{CipherSpec, Key};
use cryptmark_volume::tcrypt::{Family, Keyfiles, Opening, Place, Prf, Unlocked};
use cryptmark_volume::{CryptDevice, Limits, Secret, Verdict, VolumeError};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The folder and those of its cases that are of the two programs.
fn samples() -> (PathBuf, Vec<Value>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let manifest = fs::read(folder.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let mut cases = manifest["cases"].as_array().unwrap().clone();
    cases.retain(|case| case["format"] == "veracrypt" || case["format"] == "truecrypt");
    (folder, cases)
}

fn named<'a>(cases: &'a [Value], id: &str) -> &'a Value {
    cases.iter().find(|case| case["id"] == id).unwrap()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn device(folder: &Path, case: &Value) -> RamDevice {
    let image = fs::read(folder.join(text(case, "path"))).unwrap();
    let image = match text(case, "compression") {
        "zstd" => zstd::decode_all(&image[..]).unwrap(),
        _ => image,
    };
    let device = RamDevice::new(image.len() as u64);
    device.write_at(0, &image).unwrap();
    device
}

/// The opening of a case, without its ciphers.
fn opening(folder: &Path, case: &Value) -> Opening {
    let family = match text(case, "format") {
        "veracrypt" => Family::VeraCrypt,
        _ => Family::TrueCrypt,
    };
    let mut keyfiles = Keyfiles::none();
    for file in case["keyfiles"].as_array().unwrap() {
        let content = fs::read(folder.join(file.as_str().unwrap())).unwrap();
        keyfiles.add(&content).unwrap();
    }
    Opening {
        place: match (&case["hidden"], &case["use_backup_header"]) {
            (Value::Bool(true), Value::Bool(true)) => Place::HiddenBackup,
            (Value::Bool(true), _) => Place::Hidden,
            (_, Value::Bool(true)) => Place::NormalBackup,
            _ => Place::Normal,
        },
        pim: case["pim"].as_u64().map(|pim| pim as u32),
        prf: Prf::named(text(case, "hash")),
        keyfiles,
        ..Opening::new(family)
    }
}

fn passphrase(secret: &Value) -> Secret {
    Secret::Passphrase(Key::from_slice(text(secret, "value").as_bytes()))
}

fn silent(_: u64, _: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn unlock(opening: &Opening, device: &RamDevice, secret: &Secret) -> Result<Unlocked, VolumeError> {
    opening.unlock(device, secret, &Limits::default(), &silent)
}

/// Size and digest of the whole plaintext.
fn content(unlocked: &Unlocked, device: &RamDevice) -> (u64, String) {
    let mapping = unlocked.mapping(device).unwrap();
    let volume = CryptDevice::new(device, mapping).unwrap();
    let mut plain = vec![0; volume.geometry().size as usize];
    volume.read_at(0, &mut plain).unwrap();
    let digest = Sha256::digest(&plain);
    let hex = digest.iter().map(|byte| format!("{byte:02x}"));
    (plain.len() as u64, hex.collect())
}

fn expected(case: &Value) -> (u64, String) {
    let expected = &case["expected"];
    (
        expected["size"].as_u64().unwrap(),
        text(expected, "sha256").to_owned(),
    )
}

/// Named ciphers where the manifest has VeraCrypt's order.
fn algorithms(case: &Value) -> Option<Vec<cipher::Algorithm>> {
    let spec: CipherSpec = text(case, "cipher").parse().ok()?;
    Some(spec.algorithms().to_vec())
}

#[test]
fn every_sample_opens_with_its_secrets_and_no_others() {
    let (folder, cases) = samples();
    for case in &cases {
        let id = text(case, "id");
        let device = device(&folder, case);
        for secret in case["secrets"].as_array().unwrap() {
            let mut opening = opening(&folder, case);
            if secret["expect"] == "open" {
                let unlocked = unlock(&opening, &device, &passphrase(secret));
                let unlocked = unlocked.unwrap_or_else(|error| panic!("{id}: {error}"));
                assert_eq!(content(&unlocked, &device), expected(case), "{id}");
                if let Some(algorithms) = algorithms(case) {
                    assert_eq!(unlocked.spec.algorithms(), algorithms, "{id}");
                }
                println!("opened: {id} ({}, {})", unlocked.spec, unlocked.prf);
            } else {
                // To try all ciphers takes three times as long.
                opening.algorithms = algorithms(case);
                let error = unlock(&opening, &device, &passphrase(secret)).unwrap_err();
                assert_eq!(error.verdict(), Verdict::WrongSecret, "{id}: {error}");
                assert!(matches!(error, VolumeError::NoHeaderFits), "{id}: {error}");
            }
        }
    }
    assert!(cases.len() >= 19);
}

/// The key derivation is found as well, and the copy of the header opens too.
#[test]
fn nothing_need_be_known_but_the_passphrase() {
    let (folder, cases) = samples();
    for (id, backup) in [
        ("tc7_sta_sha512_hidden", Place::NormalBackup),
        ("tc7_sta_sha512_hidden-hidden", Place::HiddenBackup),
        ("tcplay_ats", Place::NormalBackup),
        ("tcplay_twofish_ripemd160", Place::NormalBackup),
        ("vc_a_sha512_key3", Place::NormalBackup),
    ] {
        let case = named(&cases, id);
        let device = device(&folder, case);
        let mut opening = opening(&folder, case);
        opening.prf = None;
        let secret = passphrase(&case["secrets"][0]);
        let from_first = unlock(&opening, &device, &secret).unwrap();
        assert_eq!(from_first.prf.name(), text(case, "hash"), "{id}");
        assert_eq!(content(&from_first, &device), expected(case), "{id}");
        opening.place = backup;
        opening.prf = Some(from_first.prf);
        let from_copy = unlock(&opening, &device, &secret).unwrap();
        assert_ne!(from_first.offset, from_copy.offset);
        assert_eq!(content(&from_copy, &device), expected(case), "{id}");
    }
}

#[test]
fn each_program_opens_its_own_volumes_only() {
    let (folder, cases) = samples();
    let case = named(&cases, "tc7_a_sha512");
    let device = device(&folder, case);
    let secret = passphrase(&case["secrets"][0]);
    let mut opening = Opening {
        // With the least PIM this is TrueCrypt's derivation, but for its cost.
        pim: Some(1),
        prf: Prf::named("sha512"),
        ..Opening::new(Family::VeraCrypt)
    };
    let error = unlock(&opening, &device, &secret).unwrap_err();
    assert!(matches!(error, VolumeError::NoHeaderFits), "{error}");
    opening.family = Family::TrueCrypt;
    let error = unlock(&opening, &device, &secret).unwrap_err();
    assert_eq!(error.to_string(), "TrueCrypt has no PIM");
}

/// Noise of the size of a volume, for what must not depend on a header.
fn noise() -> RamDevice {
    let device = RamDevice::new(1 << 20);
    let bytes: Vec<u8> = (0..1 << 20_u32)
        .map(|i: u32| (i.wrapping_mul(i) >> 7) as u8)
        .collect();
    device.write_at(0, &bytes).unwrap();
    device
}

#[test]
fn progress_grows_and_ends_with_all_the_work() {
    let (most, total) = (AtomicU64::new(0), AtomicU64::new(0));
    let watch = |done, all| {
        assert!(done <= all);
        most.fetch_max(done, Ordering::Relaxed);
        total.store(all, Ordering::Relaxed);
        ControlFlow::Continue(())
    };
    let secret = Secret::Passphrase(Key::from_slice(b"none"));
    let opening = Opening::new(Family::TrueCrypt);
    let error = opening.unlock(&noise(), &secret, &Limits::default(), &watch);
    assert!(matches!(error, Err(VolumeError::NoHeaderFits)));
    assert!(total.load(Ordering::Relaxed) > 0);
    assert_eq!(most.load(Ordering::Relaxed), total.load(Ordering::Relaxed));
}

#[test]
fn a_search_ends_when_it_is_told_to() {
    let secret = Secret::Passphrase(Key::from_slice(b"none"));
    let calls = AtomicU64::new(0);
    let watch = |done, total| {
        calls.fetch_add(1, Ordering::Relaxed);
        assert!(done < total);
        ControlFlow::Break(())
    };
    let mut opening = Opening::new(Family::VeraCrypt);
    // So many iterations that the test would not end without the interruption.
    opening.pim = Some(90_000);
    let error = opening.unlock(&noise(), &secret, &Limits::default(), &watch);
    assert_eq!(error.unwrap_err().to_string(), "interrupted");
    assert!(calls.load(Ordering::Relaxed) < 1000);
}

/// These openings are refused before a header is read or a key derived.
#[test]
fn impossible_openings_are_refused_at_once() {
    let typed = |length| Secret::Passphrase(Key::from_slice(&vec![b'x'; length]));
    let veracrypt = Opening::new(Family::VeraCrypt);
    let truecrypt = Opening::new(Family::TrueCrypt);
    let with_pim = |pim| Opening {
        pim: Some(pim),
        ..veracrypt.clone()
    };
    let argon2id = |pim| Opening {
        prf: Some(Prf::Argon2id),
        ..with_pim(pim)
    };
    let of = |opening: &Opening, cipher: &str| Opening {
        algorithms: Some(cipher.parse::<CipherSpec>().unwrap().algorithms().to_vec()),
        ..opening.clone()
    };
    for (opening, secret, expected) in [
        (
            &veracrypt,
            typed(129),
            "the passphrase has 129 bytes, and 128 is the maximum in VeraCrypt",
        ),
        (
            &truecrypt,
            typed(65),
            "the passphrase has 65 bytes, and 64 is the maximum in TrueCrypt",
        ),
        (
            &truecrypt,
            Secret::VolumeKey(Key::from_slice(&[1; 64])),
            "a TrueCrypt volume cannot be opened with a volume key",
        ),
        (
            &with_pim(2_147_469),
            typed(1),
            "the PIM is 2147469, and the maximum is 2147468",
        ),
        (
            &with_pim(2_147_468),
            typed(1),
            "the key derivation takes about 3221 s on one core, and the limit is 188 s",
        ),
        (
            &argon2id(500),
            typed(1),
            "the key derivation takes about 353 s on one core, and the limit is 188 s",
        ),
        (
            &of(&truecrypt, "camellia-xts-plain64"),
            typed(1),
            "TrueCrypt has no cipher camellia",
        ),
        (
            &of(&veracrypt, "aes-serpent"),
            typed(1),
            "VeraCrypt has no cipher aes-serpent",
        ),
    ] {
        let error = unlock(opening, &RamDevice::new(0), &secret).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.verdict(), Verdict::BadInput);
        assert!(!error.remedy().is_empty());
    }
}
