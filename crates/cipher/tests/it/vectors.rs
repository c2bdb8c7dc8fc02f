//! Known answers under `tests/vectors`, for the reference and for every backend.
//!
//! Backends are reached the way everyone reaches them, as sector ciphers; a
//! row that is shorter than a sector is the beginning of one.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use cryptmark_cipher::reference::{
    Direction, ReferenceMode, add_chacha, add_xchacha, crypt_sectors,
};
use cryptmark_cipher::{
    Algorithm, CipherSpec, EssivHash, IvSector, Key, KeyedCipher, Mode, SectorCipher, SectorLayout,
    SectorSize,
};
use sha2::{Digest, Sha256};

/// One line of a vector file, by the names of its columns.
struct Row {
    id: String,
    algorithm: Algorithm,
    key: Vec<u8>,
    iv: Vec<u8>,
    plain: Vec<u8>,
    cipher: Vec<u8>,
}

/// How often what happened, by what.
#[derive(Default)]
struct Counts(BTreeMap<String, usize>);

impl Counts {
    fn add(&mut self, what: impl Into<String>) {
        *self.0.entry(what.into()).or_default() += 1;
    }

    fn print(&self, title: &str) {
        println!("{title}:");
        for (what, count) in &self.0 {
            println!("{count:7}  {what}");
        }
    }
}

#[test]
fn vectors_of_the_project() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let mut counts = Counts::default();
    // TrueCrypt published no vectors for its byte order of Blowfish.
    let published = |algorithm: &Algorithm| *algorithm != Algorithm::BlowfishLe;
    let ciphers = Algorithm::ALL.into_iter().filter(published);
    let others = ["adiantum", "aes-hctr2", "xchacha12", "xchacha20"].map(str::to_owned);
    for name in ciphers.map(|cipher| cipher.to_string()).chain(others) {
        run_file(&folder.join(format!("{name}.tsv")), &mut counts);
    }
    counts.print("vectors of the project");
    assert!(!counts.0.keys().any(|what| what.starts_with("not run")));
}

fn run_file(file: &Path, counts: &mut Counts) {
    for line in lines(file) {
        let (Some(cipher), Some(mode), true) = (
            line.get("cipher"),
            line.get("mode"),
            line.contains_key("plaintext"),
        ) else {
            counts.add(format!(
                "not run, no cipher vectors: {}",
                file.file_name().unwrap().display()
            ));
            continue;
        };
        if mode == "stream" {
            run_stream(&line, counts);
            continue;
        }
        // The kernel's template comes first here: `adiantum`, `xchacha12,aes`.
        let adiantum = format!("{mode}-{cipher}-plain64").parse::<CipherSpec>();
        let adiantum = adiantum.ok().filter(|_| cipher == "adiantum");
        let (algorithm, known_mode) = match adiantum {
            Some(spec) => (Some(spec.algorithms()[0]), Some(spec.mode())),
            None => (
                Algorithm::ALL.into_iter().find(|a| a.name() == cipher),
                Mode::ALL.into_iter().find(|m| m.name() == mode),
            ),
        };
        let Some(algorithm) = algorithm else {
            counts.add(format!("not run, cipher not built yet: {cipher}"));
            continue;
        };
        let mut iv = hex(&line["iv"]);
        if matches!(mode.as_str(), "cbc" | "ctr") {
            // testmgr leaves out an IV of zeros.
            iv.resize(algorithm.block_bytes(), 0);
        }
        let row = Row {
            id: line["id"].clone(),
            algorithm,
            key: hex(&line["key"]),
            iv,
            plain: hex(&line["plaintext"]),
            cipher: hex(&line["ciphertext"]),
        };
        match (mode.as_str(), known_mode) {
            (_, Some(mode @ (Mode::Adiantum(_) | Mode::Hctr2))) => run_wide(&row, mode, counts),
            (_, Some(mode)) => run_mode(&row, mode, counts),
            ("cbc-essiv:sha256", _) => run_essiv(&row, counts),
            (mode, None) => counts.add(format!("not run, mode not built yet: {cipher} {mode}")),
        }
    }
}

/// A row by the reference and, where a sector's number gives its IV, by every
/// backend.
fn run_mode(row: &Row, mode: Mode, counts: &mut Counts) {
    let block = row.algorithm.block_bytes();
    // Ciphertext stealing changes the last whole block, and no sector needs it.
    // Blowfish has vectors for keys of every length that its schedule can
    // digest, disks take those of the paper.
    let sizes = row.algorithm.key_sizes();
    if mode == Mode::Ecb && !sizes.contains(&row.key.len()) {
        counts.add("not run, the kernel takes no such key");
        return;
    }
    let whole = match row.plain.len() {
        len if len.is_multiple_of(block) => len,
        len if mode == Mode::Ctr => len / block * block,
        len => (len / block * block).saturating_sub(block),
    };
    if whole == 0 {
        counts.add("not run, nothing but ciphertext stealing");
        return;
    }
    let (plain, expected) = (&row.plain[..whole], &row.cipher[..whole]);
    let reference = ReferenceMode::of(row.algorithm);
    let mut unit = plain.to_vec();
    reference.crypt(Direction::Encrypt, mode, &row.key, &row.iv, &mut unit);
    assert_eq!(unit, expected, "{}", row.id);
    reference.crypt(Direction::Decrypt, mode, &row.key, &row.iv, &mut unit);
    assert_eq!(unit, plain, "{}", row.id);

    if mode == Mode::Cbc {
        // The IV only meets the first block: a sector whose IV is zero takes
        // any other one in its plaintext.
        let mut with_iv = plain.to_vec();
        add(&mut with_iv[..block], &row.iv);
        let spec = format!("{}-cbc-null", row.algorithm).parse().unwrap();
        begins(spec, row, 0, &with_iv, expected, counts);
        counts.add("run");
        return;
    }
    let Some((iv, first)) = numbered(mode, &row.iv) else {
        assert_eq!(mode, Mode::Xts, "{}", row.id);
        // A tweak only meets the blocks: those of sector 0 take any other
        // ones in their plaintext and ciphertext.
        let spec = format!("{}-xts-plain64", row.algorithm).parse().unwrap();
        let (mut plain, mut expected) = (plain.to_vec(), expected.to_vec());
        for tweaks in [tweaks(row, &row.iv), tweaks(row, &[0; 16])] {
            add(&mut plain, &tweaks);
            add(&mut expected, &tweaks);
        }
        begins(spec, row, 0, &plain, &expected, counts);
        counts.add("run");
        return;
    };
    let spec = format!("{}-{mode}{iv}", row.algorithm).parse().unwrap();
    begins(spec, row, first, plain, expected, counts);
    counts.add(if whole == row.plain.len() {
        "run"
    } else {
        "run up to the ciphertext stealing"
    });
}

/// Tweaks and units that no disk has: every backend runs these within the
/// crate.
fn run_wide(row: &Row, mode: Mode, counts: &mut Counts) {
    let reference = ReferenceMode::of(row.algorithm);
    let mut unit = row.plain.clone();
    reference.crypt(Direction::Encrypt, mode, &row.key, &row.iv, &mut unit);
    assert_eq!(unit, row.cipher, "{}", row.id);
    reference.crypt(Direction::Decrypt, mode, &row.key, &row.iv, &mut unit);
    assert_eq!(unit, row.plain, "{}", row.id);
    counts.add(format!(
        "run by the reference only, the tweak is no sector number: {mode}"
    ));
}

/// Stream ciphers are no disk ciphers but part of one.
fn run_stream(line: &BTreeMap<String, String>, counts: &mut Counts) {
    let (key, iv) = (hex(&line["key"]), hex(&line["iv"]));
    let key = key.first_chunk().unwrap();
    let mut data = hex(&line["plaintext"]);
    match line["cipher"].as_str() {
        "chacha20" => add_chacha(20, key, iv.first_chunk().unwrap(), &mut data),
        "xchacha12" => add_xchacha(12, key, iv.first_chunk().unwrap(), &mut data),
        "xchacha20" => add_xchacha(20, key, iv.first_chunk().unwrap(), &mut data),
        cipher => panic!("unknown stream cipher {cipher}"),
    }
    assert_eq!(data, hex(&line["ciphertext"]), "{}", line["id"]);
    counts.add("run by the reference only, a stream cipher");
}

/// The IV generator that makes `iv` of a sector's number, and the number.
fn numbered(mode: Mode, iv: &[u8]) -> Option<(&'static str, u64)> {
    if mode == Mode::Ecb {
        return Some(("", 0));
    }
    let (little, big) = match iv.len() {
        8 | 16 => (
            iv[..8].try_into().unwrap(),
            iv[iv.len() - 8..].try_into().unwrap(),
        ),
        _ => return None,
    };
    let rest_is_zero = |rest: &[u8]| rest.iter().all(|&byte| byte == 0);
    if rest_is_zero(&iv[8..]) {
        Some(("-plain64", u64::from_le_bytes(little)))
    } else if rest_is_zero(&iv[..iv.len() - 8]) {
        Some(("-plain64be", u64::from_be_bytes(big)))
    } else {
        None
    }
}

/// The IV before its encryption is the number of the sector.
fn run_essiv(row: &Row, counts: &mut Counts) {
    let first = u128::from_le_bytes(row.iv.as_slice().try_into().unwrap());
    let Ok(first) = u64::try_from(first) else {
        let reference = ReferenceMode::of(row.algorithm);
        let key = essiv_key(&row.key);
        let mut iv = row.iv.clone();
        reference.crypt(Direction::Encrypt, Mode::Ecb, &key, &[], &mut iv);
        let mut unit = row.plain.clone();
        reference.crypt(Direction::Encrypt, Mode::Cbc, &row.key, &iv, &mut unit);
        assert_eq!(unit, row.cipher, "{}", row.id);
        counts.add("run by the reference only, the IV is no sector number: essiv");
        return;
    };
    let spec = format!("{}-cbc-essiv:sha256", row.algorithm)
        .parse()
        .unwrap();
    begins(spec, row, first, &row.plain, &row.cipher, counts);
    counts.add("run");
}

fn essiv_key(key: &[u8]) -> Vec<u8> {
    assert_eq!(EssivHash::Sha256.digest_bytes(), 32);
    Sha256::digest(key).to_vec()
}

/// By every backend and by the reference: `plain`, then zeros up to the end of
/// the sector, becomes `expected` and something, and comes back.
fn begins(
    spec: CipherSpec,
    row: &Row,
    first: u64,
    plain: &[u8],
    expected: &[u8],
    counts: &mut Counts,
) {
    let layout = layout_for(plain.len());
    let first = IvSector::new(first);
    let mut sector = vec![0; layout.size.bytes()];
    sector[..plain.len()].copy_from_slice(plain);
    crypt_sectors(
        Direction::Encrypt,
        spec,
        &row.key,
        layout,
        first,
        &mut sector,
    );
    assert_eq!(sector[..plain.len()], *expected, "{}", row.id);
    for cipher in every_backend(spec, &row.key, layout) {
        let mut sector = vec![0; layout.size.bytes()];
        sector[..plain.len()].copy_from_slice(plain);
        cipher.encrypt(first, &mut sector);
        assert_eq!(sector[..plain.len()], *expected, "{}", row.id);
        cipher.decrypt(first, &mut sector);
        assert_eq!(sector[..plain.len()], *plain, "{}", row.id);
        counts.add(format!("  by {}", cipher.backend()));
    }
}

fn layout_for(bytes: usize) -> SectorLayout {
    let size = SectorSize::ALL
        .into_iter()
        .find(|size| size.bytes() >= bytes);
    SectorLayout {
        size: size.expect("vectors fit into the largest sector"),
        large_iv: false,
    }
}

fn every_backend(spec: CipherSpec, key: &[u8], layout: SectorLayout) -> Vec<KeyedCipher> {
    let key = Key::from_slice(key);
    spec.backends()
        .into_iter()
        .map(|backend| spec.cipher(&key, layout, Some(backend)).unwrap())
        .collect()
}

/// The tweaks of an XTS row under `iv`, by the reference cipher.
fn tweaks(row: &Row, iv: &[u8]) -> Vec<u8> {
    let mut start = iv.to_vec();
    let tweak_key = &row.key[row.key.len() / 2..];
    let reference = ReferenceMode::of(row.algorithm);
    reference.crypt(Direction::Encrypt, Mode::Ecb, tweak_key, &[], &mut start);
    let mut tweak = u128::from_le_bytes(start.try_into().unwrap());
    let mut tweaks = Vec::new();
    while tweaks.len() < row.plain.len() {
        tweaks.extend(tweak.to_le_bytes());
        tweak = tweak << 1 ^ if tweak >> 127 == 1 { 0x87 } else { 0 };
    }
    tweaks
}

fn add(data: &mut [u8], other: &[u8]) {
    for (byte, other) in data.iter_mut().zip(other) {
        *byte ^= other;
    }
}

/// The lines of a file, each as a map from the first line's names.
fn lines(file: &Path) -> Vec<BTreeMap<String, String>> {
    let text = fs::read_to_string(file).unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines
        .next()
        .unwrap()
        .trim_start_matches('#')
        .split('\t')
        .collect();
    lines
        .map(|line| {
            let fields = line.split('\t').map(str::to_owned);
            names
                .iter()
                .map(|&name| name.to_owned())
                .zip(fields)
                .collect()
        })
        .collect()
}

pub(crate) fn hex(digits: &str) -> Vec<u8> {
    if digits == "-" {
        return Vec::new();
    }
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else {
        panic!("odd number of digits: {digits}");
    };
    pairs
        .iter()
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}
