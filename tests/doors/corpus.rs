//! The volumes that the doors are asked about: the golden ones, those that tests make, all of them
//! damaged in every way of a table, and what is no volume. A new golden one joins by itself.

use crate::asked::{Given, Kind};
use crate::damage::{self, Damage};
use crate::kit::{Case as Hostile, Expected, begun};
use crate::{golden, made, parts_maker as parts};
use std::collections::BTreeSet;
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
    /// The digest of its plaintext, where a manifest tells it and it is short.
    pub plaintext: Option<String>,
    /// Whether it takes long to try a secret, so that the volume is only read.
    pub is_costly: bool,
}

/// A volume that is whole, and is going to be damaged.
pub struct Base {
    pub case: Case,
    /// Other secrets: names, and whether they open it.
    pub others: Vec<(String, Given)>,
    /// Volumes of one kind are damaged in all ways once.
    pub kind: String,
}

impl Case {
    pub fn new(name: impl Into<String>, image: Vec<u8>) -> Self {
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

pub fn passphrase(words: &str) -> Given {
    Given {
        kind: Kind::Passphrase,
        bytes: words.as_bytes().to_vec(),
    }
}

/// All volumes that are whole, those with cheap key derivations first.
fn bases() -> Vec<Base> {
    let mut bases = made::cheap();
    bases.extend(made::of_other_systems());
    bases.extend(golden::all());
    bases
}

/// All of them.
pub fn all(hostile: Vec<Hostile>) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut seen = BTreeSet::new();
    for base in bases() {
        let first = seen.insert(base.kind.clone());
        cases.extend(spoilt(base, first));
    }
    cases.extend(hostile.into_iter().map(made::of_hostile));
    cases.extend(foreign());
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), cases.len(), "two volumes have the same name");
    cases
}

/// Volumes whose headers are changed: one of each kind as it is, some of them damaged, and what is
/// no volume.
pub fn to_change() -> Vec<Case> {
    let damaged = ["luks1 false", "luks2 false", "tcrypt false"];
    let mut cases = Vec::new();
    let mut seen = BTreeSet::new();
    for mut base in bases() {
        if base.case.is_costly || !seen.insert(base.kind.clone()) {
            continue;
        }
        // No change is made with a volume key.
        let secret = base.case.secret.take();
        let secret = secret.filter(|given| given.kind != Kind::VolumeKey);
        base.case.secret = secret.or_else(|| Some(passphrase("a passphrase")));
        let is_damaged = damaged.contains(&base.kind.as_str());
        let is_damage = |case: &Case| {
            let mut ways = damage::ALL.iter().filter(|way| way.is_for_changes);
            let mut is_one = || ways.any(|way| case.name.ends_with(&format!(", {}", way.name)));
            case.is_whole() || (is_damaged && is_one())
        };
        cases.extend(spoilt(base, true).into_iter().filter(is_damage));
    }
    cases.extend(foreign().into_iter().filter(|case| case.options.is_empty()));
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

/// Parameters that do not fit, or are wrong.
const OTHERWISE: &[(&str, &str)] = &[
    ("key_slot", "7"),
    ("key_slot", "99"),
    ("cipher", "aes-xts-plain64"),
    ("cipher", "aes-nothing-at-all"),
    ("key_size", "100"),
    ("key_size", "256"),
    ("hash", "md17"),
    ("hash", "ripemd160"),
    ("hash", "blake2s"),
    ("hash", "streebog"),
    ("offset", "512"),
    ("offset", "1099511627776"),
    ("skip", "3"),
    ("size", "65536"),
    ("size", "1099511627776"),
    ("sector_size", "4096"),
    ("sector_size", "1000"),
    ("iv_large_sectors", "1"),
    ("tcrypt_hidden", "1"),
    ("tcrypt_backup", "1"),
    ("tcrypt_system", "1"),
    ("veracrypt_pim", "1"),
    ("veracrypt_pim", "4000000"),
    ("experimental", "1"),
    ("key_derivation", "util-linux"),
    ("key_derivation", "guessed"),
];

/// The whole volume, asked for in ways that don't fit it.
fn asked_otherwise(case: &Case, whole: &Arc<Vec<u8>>) -> Vec<Case> {
    let set = |name: &'static str, value: &str| {
        case.with(&format!("{name} {value}"), |case| {
            case.options.retain(|(other, _)| *other != name);
            case.options.push((name, value.to_owned()));
        })
    };
    // Volumes of one format differ in where their headers are, and not in what they take.
    let is_first = !case.name.contains("true") && !case.name.contains("reencrypted");
    let otherwise = OTHERWISE.iter().filter(|_| is_first);
    let mut cases: Vec<Case> = otherwise.map(|(name, value)| set(name, value)).collect();
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
        Some("luks2"),
        Some("plain"),
        Some("tcrypt"),
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
