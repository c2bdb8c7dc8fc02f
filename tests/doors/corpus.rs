//! The volumes that the doors are asked about: the golden ones, those that tests make, all of them
//! damaged in every way of a table, and what is no volume. A new golden one joins by itself.

use crate::asked::{Given, Kind, bytes};
use crate::damage::{self, Damage};
use crate::kit::{Case as Hostile, Expected, begun, luks1, luks2};
use crate::{bitlk_maker as bitlk, fvault2_maker as fvault2, parts_maker as parts};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What stands at a path.
#[derive(Clone)]
pub enum Image {
    /// A file, and how its bytes are changed.
    File(Arc<Vec<u8>>, Damage),
    Directory,
    Pipe,
    Missing,
}

/// A volume, and how it is opened.
#[derive(Clone)]
pub struct Case {
    pub name: String,
    pub image: Image,
    /// The header, if it is apart.
    pub header: Option<Image>,
    /// What stands where an interrupted reencryption keeps the header.
    pub beside: Option<Arc<Vec<u8>>>,
    pub options: Vec<(&'static str, String)>,
    pub secret: Option<Given>,
    /// The digest of its ends, where a manifest tells it.
    pub plaintext: Option<String>,
    /// Whether it takes long to try a secret, so that the volume is only read.
    pub is_costly: bool,
}

/// A volume that is whole, and is going to be damaged.
struct Base {
    case: Case,
    /// Other secrets: names, and whether they open it.
    others: Vec<(String, Given)>,
    /// Volumes of one kind are damaged in all ways once.
    kind: String,
}

impl Case {
    fn new(name: impl Into<String>, image: Vec<u8>) -> Self {
        Self {
            name: name.into(),
            image: Image::File(Arc::new(image), damage::NONE),
            header: None,
            beside: None,
            options: Vec::new(),
            secret: Some(passphrase("a passphrase")),
            plaintext: None,
            is_costly: false,
        }
    }

    /// Whether nothing is changed of what some program has made.
    pub fn is_whole(&self) -> bool {
        !self.name.contains(", ")
    }

    fn with(&self, name: &str, change: impl FnOnce(&mut Self)) -> Self {
        let mut changed = Self {
            name: format!("{}, {name}", self.name),
            plaintext: None,
            ..self.clone()
        };
        change(&mut changed);
        changed
    }
}

fn passphrase(words: &str) -> Given {
    Given {
        kind: Kind::Passphrase,
        bytes: words.as_bytes().to_vec(),
    }
}

/// All of them.
pub fn all(hostile: Vec<Hostile>) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut seen = BTreeSet::new();
    for base in cheap().into_iter().chain(made()).chain(golden()) {
        let first = seen.insert(base.kind.clone());
        cases.extend(spoilt(base, first));
    }
    cases.extend(hostile.into_iter().map(of_hostile));
    cases.extend(foreign());
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), cases.len(), "two volumes have the same name");
    cases
}

/// A volume as it is, with other secrets and parameters, and damaged.
fn spoilt(base: Base, in_all_ways: bool) -> Vec<Case> {
    let Base { case, others, .. } = base;
    let mut cases = vec![case.clone()];
    for (name, secret) in others {
        cases.push(case.with(&name, |case| case.secret = Some(secret)));
    }
    let Image::File(whole, _) = &case.image else {
        return cases;
    };
    for damage in damage::ALL {
        if in_all_ways || (damage.for_every_volume && !case.is_costly) {
            cases.push(case.with(damage.name, |case| {
                case.image = Image::File(Arc::clone(whole), *damage);
            }));
            if let Some(Image::File(header, _)) = &case.header {
                cases.push(case.with(&format!("header: {}", damage.name), |case| {
                    case.header = Some(Image::File(Arc::clone(header), *damage));
                }));
            }
        }
    }
    if in_all_ways {
        cases.extend(asked_otherwise(&case, whole));
    }
    cases
}

/// The whole volume, asked for in ways that don't fit it.
fn asked_otherwise(case: &Case, whole: &Arc<Vec<u8>>) -> Vec<Case> {
    let set = |name: &'static str, value: &str| {
        case.with(&format!("{name} {value}"), |case| {
            case.options.retain(|(other, _)| *other != name);
            case.options.push((name, value.to_owned()));
        })
    };
    let mut cases = vec![
        set("key_slot", "7"),
        set("key_slot", "99"),
        set("cipher", "aes-xts-plain64"),
        set("cipher", "aes-nothing-at-all"),
        set("key_size", "100"),
        set("key_size", "256"),
        set("hash", "md17"),
        set("hash", "ripemd160"),
        set("hash", "blake2s"),
        set("hash", "streebog"),
        set("offset", "512"),
        set("offset", "1099511627776"),
        set("skip", "3"),
        set("size", "65536"),
        set("size", "1099511627776"),
        set("sector_size", "4096"),
        set("sector_size", "1000"),
        set("iv_large_sectors", "1"),
        set("tcrypt_hidden", "1"),
        set("tcrypt_backup", "1"),
        set("tcrypt_system", "1"),
        set("veracrypt_pim", "1"),
        set("veracrypt_pim", "4000000"),
        set("experimental", "1"),
        set("key_derivation", "util-linux"),
        set("key_derivation", "guessed"),
    ];
    for format in volume::Format::ALL {
        // The search for the header of a volume without a PIM takes a second.
        let mut otherwise = set("format", format.name());
        if format == volume::Format::Veracrypt {
            otherwise
                .options
                .retain(|(name, _)| !["veracrypt_pim", "hash"].contains(name));
            otherwise.options.push(("veracrypt_pim", "1".to_owned()));
            otherwise.options.push(("hash", "sha512".to_owned()));
        }
        if !case
            .options
            .iter()
            .any(|(name, value)| *name == "format" && value == format.name())
        {
            cases.push(otherwise);
        }
    }
    cases.push(case.with("no format", |case| {
        case.options.retain(|(name, _)| *name != "format")
    }));
    let secrets = [
        ("a wrong passphrase", Kind::Passphrase, &b"wrong"[..]),
        ("an empty passphrase", Kind::Passphrase, b""),
        ("a passphrase with a space", Kind::Passphrase, b"wrong "),
        ("a wrong key file", Kind::KeyFile, b"wrong\n"),
        ("a short volume key", Kind::VolumeKey, b"short"),
        ("a wrong volume key", Kind::VolumeKey, &[7; 64]),
    ];
    for (name, kind, bytes) in secrets {
        let bytes = bytes.to_vec();
        cases.push(case.with(name, |case| case.secret = Some(Given { kind, bytes })));
    }
    let reencrypted = begun("", |_| {}, Expected::Opens).bytes;
    let blank = Arc::new(vec![0; 1 << 20]);
    let noise = Arc::new(testkit::noise(1 << 20, 5));
    let file = |bytes: &Arc<Vec<u8>>| Image::File(Arc::clone(bytes), damage::NONE);
    for (name, header) in [
        ("no such header", Image::Missing),
        ("a folder as its header", Image::Directory),
        ("a blank header", file(&blank)),
        ("a header of noise", file(&noise)),
        ("its own start as its header", file(whole)),
    ] {
        cases.push(case.with(name, |case| case.header = Some(header)));
    }
    for (name, beside) in [
        ("noise beside it", noise),
        ("nothing beside it", Arc::new(Vec::new())),
        ("itself beside it", Arc::clone(whole)),
        ("a reencryption beside it", Arc::new(reencrypted)),
    ] {
        cases.push(case.with(name, |case| case.beside = Some(beside)));
    }
    cases
}

/// The volumes in `tests/golden`.
fn golden() -> Vec<Base> {
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

/// LUKS volumes with cheap key derivations, one of them in the middle of a reencryption.
fn cheap() -> Vec<Base> {
    let reencrypted = begun("", |_| {}, Expected::Opens);
    let volumes = [
        ("luks1 true", luks1("", |_| {}, Expected::Opens)),
        ("luks1 false", luks1("", |_| {}, Expected::Opens)),
        ("luks2 true", luks2("", |_| {}, Expected::Opens)),
        ("luks2 false", luks2("", |_| {}, Expected::Opens)),
        ("luks2 reencrypted", reencrypted),
    ];
    let base = |(kind, volume): (&str, Hostile)| {
        let mut case = of_hostile(volume);
        case.name = kind.to_owned();
        if kind.ends_with("true")
            && let Image::File(whole, _) = &case.image
        {
            let data = whole[crate::kit::DATA as usize..].to_vec();
            case.header = Some(case.image.clone());
            case.image = Image::File(Arc::new(data), damage::NONE);
        }
        Base {
            case,
            others: vec![("other secret".to_owned(), passphrase("another"))],
            kind: kind.to_owned(),
        }
    };
    volumes.into_iter().map(base).collect()
}

/// Volumes that only other systems make: tests of the engine make them too.
fn made() -> Vec<Base> {
    use bitlk::{CHUNK, Recipe, protection};
    let size = 5 << 20;
    let recipe = Recipe::default();
    let clear = vec![protection::CLEAR];
    let recipes = [
        (
            "bitlk with a clear key",
            Recipe {
                protectors: clear.clone(),
                ..recipe.clone()
            },
            passphrase(""),
        ),
        ("bitlk", recipe.clone(), passphrase(bitlk::PASSPHRASE)),
        (
            "bitlk recovery",
            recipe.clone(),
            passphrase(bitlk::RECOVERY),
        ),
        (
            "bitlk up to half",
            Recipe {
                up_to: size as u64 / 2,
                ..recipe.clone()
            },
            passphrase(bitlk::PASSPHRASE),
        ),
        (
            "bitlk but one chunk",
            Recipe {
                chunks: Some((0..size / CHUNK).map(|chunk| chunk != 20).collect()),
                up_to: size as u64,
                ..recipe.clone()
            },
            passphrase(bitlk::PASSPHRASE),
        ),
        (
            "bitlk decrypted",
            Recipe {
                state: [1, 1],
                protectors: clear,
                ..recipe.clone()
            },
            passphrase(""),
        ),
        (
            "bitlk of Vista",
            Recipe {
                version: 1,
                method: 0x8002,
                ..recipe
            },
            passphrase(bitlk::PASSPHRASE),
        ),
    ];
    let mut plain = testkit::noise(size, 9);
    plain[..11].copy_from_slice(b"\xeb\x52\x90NTFS    ");
    let mut bases: Vec<Base> = recipes
        .into_iter()
        .map(|(name, recipe, secret)| Base {
            case: Case {
                // A million hashes.
                is_costly: !secret.bytes.is_empty(),
                secret: Some(secret),
                ..Case::new(name, recipe.make(plain.clone()).image)
            },
            others: Vec::new(),
            kind: "bitlk".to_owned(),
        })
        .collect();
    let image = fvault2::volume(fvault2::metadata(), &fvault2::EXTENTS);
    bases.push(Base {
        case: Case {
            secret: Some(passphrase(fvault2::PASSPHRASES[0])),
            ..Case::new("fvault2", image)
        },
        others: vec![(
            "recovery key".to_owned(),
            passphrase(fvault2::PASSPHRASES[1]),
        )],
        kind: "fvault2".to_owned(),
    });
    bases
}

/// A bad volume of the engine's tests.
fn of_hostile(hostile: Hostile) -> Case {
    let mut case = Case {
        secret: Some(Given {
            kind: Kind::Passphrase,
            bytes: crate::kit::PASSPHRASE.to_vec(),
        }),
        ..Case::new(hostile.name, hostile.bytes)
    };
    case.options
        .push(("format", hostile.format.name().to_owned()));
    if let crate::kit::Attempt::OpenSlot(slot) = hostile.attempt {
        case.options.push(("key_slot", slot.to_string()));
    }
    case
}

/// What is no volume, asked for as some formats, and as none.
fn foreign() -> Vec<Case> {
    let at = |place: usize, bytes: &[u8]| {
        let mut image = vec![0; 1 << 20];
        image[place..][..bytes.len()].copy_from_slice(bytes);
        Image::File(Arc::new(image), damage::NONE)
    };
    let file = |bytes: Vec<u8>| Image::File(Arc::new(bytes), damage::NONE);
    let things = [
        ("nothing", Image::Missing),
        ("a folder", Image::Directory),
        ("a pipe", Image::Pipe),
        ("an empty file", file(Vec::new())),
        ("one byte", file(vec![b'x'])),
        ("700 bytes", file(vec![b'x'; 700])),
        ("zeros", file(vec![0; 1 << 20])),
        ("ones", file(vec![0xff; 1 << 20])),
        ("noise", file(testkit::noise(1 << 20, 3))),
        ("a text", file(b"a letter to a friend\n".repeat(5000))),
        ("a ZIP archive", at(0, b"PK\x03\x04")),
        ("a gzip archive", at(0, b"\x1f\x8b\x08\0")),
        ("an xz archive", at(0, b"\xfd7zXZ\0")),
        ("a bzip2 archive", at(0, b"BZh91AY&SY")),
        ("a zstd archive", at(0, b"\x28\xb5\x2f\xfd")),
        ("a 7-Zip archive", at(0, b"7z\xbc\xaf\x27\x1c")),
        ("ext4", at(1024, &damage::ext4())),
        ("swap", at(4086, b"SWAPSPACE2")),
        ("a GPT", file(parts::gpt())),
        ("an MBR", file(parts::mbr())),
        ("LVM", file(parts::lvm())),
        ("a RAID", file(parts::raid())),
        ("an old RAID", file(parts::old_raid())),
        ("APFS", at(32, b"NXSB")),
    ];
    let formats = [
        None,
        Some("luks1"),
        Some("luks2"),
        Some("plain"),
        Some("tcrypt"),
        Some("bitlk"),
        Some("fvault2"),
        Some("bestcrypt"),
    ];
    let mut cases = Vec::new();
    for (name, image) in things {
        for format in formats {
            let mut case = Case::new(format!("{name} as {format:?}"), Vec::new());
            case.image = image.clone();
            case.options
                .extend(format.map(|format| ("format", format.to_owned())));
            if format == Some("tcrypt") {
                case.options.push(("hash", "sha512".to_owned()));
            }
            cases.push(case);
        }
    }
    cases
}
