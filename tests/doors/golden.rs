//! The golden volumes, by their manifest.

use crate::asked::{Given, Kind, bytes};
use crate::corpus::{Base, Case, Image};
use crate::damage;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The volumes in `tests/golden`.
pub fn all() -> Vec<Base> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let manifest = fs::read(folder.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let cases = manifest["cases"].as_array().unwrap();
    let tried = cases.iter().filter(|case| !takes_seconds(case));
    tried.map(|case| golden_base(&folder, case)).collect()
}

/// Whether each door would search for seconds. `tests/volumes.rs` opens these with the program.
fn takes_seconds(case: &Value) -> bool {
    let hashes = ["ripemd160", "blake2s", "whirlpool", "argon2id"];
    case["format"] == "veracrypt"
        && case["pim"].is_null()
        && hashes.iter().any(|hash| case["hash"] == *hash)
}

fn golden_base(folder: &Path, entry: &Value) -> Base {
    let format = match entry["format"].as_str().unwrap() {
        "dm-crypt-table" => "plain",
        "loop-aes" => "loopaes",
        "truecrypt" => "tcrypt",
        other => other,
    };
    let text = |name: &str| entry[name].as_str().map(str::to_owned);
    let number = |name: &str, unit: u64| {
        let number = entry[name].as_u64().filter(|&number| number != 0);
        number.map(|number| (number * unit).to_string())
    };
    let flag = |name: &str| (entry[name] == true).then(|| "1".to_owned());
    let secrets = entry["secrets"].as_array().unwrap();
    let named = |entry: &Value| golden_secret(folder, entry);
    let is_headless = ["plain", "cryptoloop", "loopaes"].contains(&format);
    let is_tcrypt = ["tcrypt", "veracrypt"].contains(&format);
    let hex = secrets[0]["type"] == "hexkey";
    let derivation = text("key_derivation").map(|how| how.replace(' ', "-"));
    let said = [
        ("cipher", is_headless, text("cipher")),
        ("key_size", is_headless && !hex, number("key_bits", 1)),
        ("hash", is_headless || is_tcrypt, text("hash")),
        ("offset", is_headless, number("offset_sectors", 512)),
        ("skip", is_headless, number("skip_sectors", 1)),
        ("key_derivation", is_headless, derivation),
        ("veracrypt_pim", is_tcrypt, number("pim", 1)),
        ("tcrypt_hidden", is_tcrypt, flag("hidden")),
        ("tcrypt_backup", is_tcrypt, flag("use_backup_header")),
        ("sector_size", format == "plain", number("sector_size", 1)),
        ("iv_large_sectors", true, flag("iv_large_sectors")),
    ];
    let mut options = vec![("format", format.to_owned())];
    options.extend(said.into_iter().filter_map(|(name, has_it, value)| {
        let value = value.filter(|_| has_it)?;
        Some((name, value))
    }));
    let keyfiles = entry["keyfiles"].as_array().into_iter().flatten();
    options.extend(keyfiles.map(|file| {
        let path = folder.join(file.as_str().unwrap());
        ("keyfile", path.into_os_string().into_string().unwrap())
    }));
    let pim = entry["pim"].as_u64().unwrap_or(485);
    let size = entry["expected"]["size"].as_u64().unwrap();
    let digest = entry["expected"]["sha256"].as_str().unwrap().to_owned();
    let id = entry["id"].as_str().unwrap();
    let case = Case {
        header: entry["header"].is_object().then(|| {
            let header = golden_file(folder, &entry["header"]);
            Image::File(Arc::new(header), damage::NONE)
        }),
        options,
        secret: Some(named(&secrets[0])),
        plaintext: (size <= crate::asked::ENDS as u64).then_some(digest),
        is_costly: format.starts_with("luks") || (format == "veracrypt" && pim > 100),
        ..Case::new(id, golden_file(folder, entry))
    };
    let others = secrets.iter().enumerate().skip(1);
    Base {
        others: match format {
            // A wrong secret takes as long as the right one.
            "veracrypt" => Vec::new(),
            _ => others
                .map(|(nth, secret)| (format!("secret {nth}"), named(secret)))
                .collect(),
        },
        kind: format!("{format} {}", case.header.is_some()),
        case,
    }
}

fn golden_secret(folder: &Path, entry: &Value) -> Given {
    let value = entry["value"].as_str().unwrap_or_default();
    let (kind, bytes) = match entry["type"].as_str().unwrap() {
        "passphrase" => (Kind::Passphrase, value.as_bytes().to_vec()),
        "hexkey" => (Kind::VolumeKey, bytes(value)),
        "keyfile" => {
            let path = folder.join(entry["path"].as_str().unwrap());
            (Kind::KeyFile, fs::read(path).unwrap())
        }
        other => panic!("{other}"),
    };
    Given { kind, bytes }
}

fn golden_file(folder: &Path, entry: &Value) -> Vec<u8> {
    let path: PathBuf = folder.join(entry["path"].as_str().unwrap());
    let stored = fs::read(path).unwrap();
    match entry["compression"].is_null() {
        true => stored,
        false => zstd::decode_all(&stored[..]).unwrap(),
    }
}
