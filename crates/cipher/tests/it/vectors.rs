//! Known answers, for the reference and for every backend: always those under
//! `tests/vectors`, and those in `../shared/vectors` where that is present.
//!
//! Backends are reached the way everyone reaches them, as sector ciphers; a
//! row that is shorter than a sector is the beginning of one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::oracle::{self, Direction};
use cryptmark_cipher::reference::{Aes, ReferenceCipher, Serpent, Twofish};
use cryptmark_cipher::{
    Algorithm, CipherSpec, IvSector, Key, SectorCipher, SectorLayout, SectorSize,
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
    for algorithm in Algorithm::ALL {
        run_file(&folder.join(format!("{algorithm}.tsv")), &mut counts);
    }
    counts.print("vectors of the project");
    assert!(!counts.0.keys().any(|what| what.starts_with("not run")));
}

#[test]
fn vectors_of_the_shared_folder() {
    let Some(folder) = shared_vectors() else {
        return;
    };
    let mut counts = Counts::default();
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "tsv"))
        .collect();
    files.sort();
    for file in files {
        run_file(&file, &mut counts);
    }
    counts.print("vectors of ../shared");
    assert!(counts.0.iter().any(|(what, &n)| what == "run" && n >= 2000));
}

/// Rows of `dmcrypt-iv.tsv`: sectors of zeros, known by their hash.
#[test]
fn dm_crypt_sectors_of_the_shared_folder() {
    let Some(folder) = shared_vectors() else {
        return;
    };
    let mut counts = Counts::default();
    for line in lines(&folder.join("dmcrypt-iv.tsv")) {
        let notation = format!("{}-{}-{}", line["cipher"], line["mode"], line["iv_mode"]);
        let Ok(spec) = notation.parse::<CipherSpec>() else {
            counts.add(format!("not run, cannot be built yet: {notation}"));
            continue;
        };
        let layout = SectorLayout {
            size: SectorSize::from_bytes(line["sector_size"].parse().unwrap()).unwrap(),
            large_iv: line["iv_large_sectors"] == "1",
        };
        let step_512 = layout.size.bytes() as u64 / 512;
        let first: u64 = line["first_sector_512"].parse().unwrap();
        let first = IvSector::new(if layout.large_iv {
            first / step_512
        } else {
            first
        });
        let zeros = vec![0; line["data_len"].parse().unwrap()];
        for cipher in every_backend(spec, &hex(&line["key"]), layout) {
            let mut data = zeros.clone();
            cipher.encrypt(first, &mut data);
            let digest = Sha256::digest(&data);
            assert_eq!(
                digest.as_slice(),
                hex(&line["sha256_of_ciphertext_of_zeros"]),
                "{notation} {layout:?} {}",
                cipher.backend()
            );
        }
        counts.add("run");
    }
    counts.print("dm-crypt sectors of ../shared");
}

fn shared_vectors() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors");
    if !folder.is_dir() {
        println!("NOT RUN: ../shared/vectors is not present");
        return None;
    }
    Some(folder)
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
        let algorithm = Algorithm::ALL.into_iter().find(|a| a.name() == cipher);
        let Some(algorithm) = algorithm else {
            counts.add(format!("not run, cipher not built yet: {cipher}"));
            continue;
        };
        let row = Row {
            id: line["id"].clone(),
            algorithm,
            key: hex(&line["key"]),
            iv: hex(&line["iv"]),
            plain: hex(&line["plaintext"]),
            cipher: hex(&line["ciphertext"]),
        };
        match mode.as_str() {
            "ecb" => run_ecb(&row, counts),
            "xts" => run_xts(&row, counts),
            mode => counts.add(format!("not run, mode not built yet: {cipher} {mode}")),
        }
    }
}

/// The block cipher alone: with the tweaks added before and after, they cancel
/// those of XTS.
fn run_ecb(row: &Row, counts: &mut Counts) {
    let (plain, []) = row.plain.as_chunks::<16>() else {
        panic!("{}: not whole blocks", row.id);
    };
    let expected = row.cipher.as_chunks::<16>().0;
    assert_eq!(encrypt_blocks(row.algorithm, &row.key, plain), expected);
    assert_eq!(decrypt_blocks(row.algorithm, &row.key, expected), plain);

    let layout = layout_for(row.plain.len());
    let tweaks = tweaks(row.algorithm, &row.key, layout.size.bytes());
    let key = [row.key.as_slice(), &row.key].concat();
    for cipher in every_backend(spec(row.algorithm), &key, layout) {
        let mut sector = tweaks.clone();
        add(&mut sector, &row.plain);
        cipher.encrypt(IvSector::new(0), &mut sector);
        add(&mut sector, &tweaks);
        assert_eq!(sector[..row.cipher.len()], row.cipher, "{}", row.id);
        add(&mut sector, &tweaks);
        cipher.decrypt(IvSector::new(0), &mut sector);
        add(&mut sector, &tweaks);
        assert_eq!(sector[..row.plain.len()], row.plain, "{}", row.id);
    }
    counts.add("run");
}

fn run_xts(row: &Row, counts: &mut Counts) {
    // Ciphertext stealing changes the last whole block, and no sector needs it.
    let whole = match row.plain.len() {
        len if len.is_multiple_of(16) => len,
        len => len / 16 * 16 - 16,
    };
    if whole == 0 {
        counts.add("not run, nothing but ciphertext stealing");
        return;
    }
    let iv = u128::from_le_bytes(row.iv.as_slice().try_into().unwrap());
    let mut unit = row.plain[..whole].to_vec();
    oracle::xts(
        Direction::Encrypt,
        row.algorithm,
        &row.key,
        iv.to_le_bytes(),
        &mut unit,
    );
    assert_eq!(unit, row.cipher[..whole], "{}", row.id);
    oracle::xts(
        Direction::Decrypt,
        row.algorithm,
        &row.key,
        iv.to_le_bytes(),
        &mut unit,
    );
    assert_eq!(unit, row.plain[..whole], "{}", row.id);

    let Ok(number) = u64::try_from(iv) else {
        counts.add("run by the reference only, the IV is no sector number");
        return;
    };
    let layout = layout_for(whole);
    for cipher in every_backend(spec(row.algorithm), &row.key, layout) {
        let mut sector = vec![0; layout.size.bytes()];
        sector[..whole].copy_from_slice(&row.plain[..whole]);
        cipher.encrypt(IvSector::new(number), &mut sector);
        assert_eq!(sector[..whole], row.cipher[..whole], "{}", row.id);
        cipher.decrypt(IvSector::new(number), &mut sector);
        assert_eq!(sector[..whole], row.plain[..whole], "{}", row.id);
    }
    counts.add(if whole == row.plain.len() {
        "run"
    } else {
        "run up to the ciphertext stealing"
    });
}

fn spec(algorithm: Algorithm) -> CipherSpec {
    format!("{algorithm}-xts-plain64").parse().unwrap()
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

fn every_backend(spec: CipherSpec, key: &[u8], layout: SectorLayout) -> Vec<Box<dyn SectorCipher>> {
    let key = Key::from_slice(key);
    spec.backends()
        .into_iter()
        .map(|backend| spec.cipher(&key, layout, Some(backend)).unwrap())
        .collect()
}

/// The tweaks of sector 0 under `key`, as the XTS encryption of nothing shows
/// them: the reference's.
fn tweaks(algorithm: Algorithm, key: &[u8], bytes: usize) -> Vec<u8> {
    let start = encrypt_blocks(algorithm, key, &[[0; 16]])[0];
    let mut tweak = u128::from_le_bytes(start);
    let mut tweaks = Vec::with_capacity(bytes);
    while tweaks.len() < bytes {
        tweaks.extend(tweak.to_le_bytes());
        tweak = tweak << 1 ^ if tweak >> 127 == 1 { 0x87 } else { 0 };
    }
    tweaks
}

fn encrypt_blocks(algorithm: Algorithm, key: &[u8], blocks: &[[u8; 16]]) -> Vec<[u8; 16]> {
    fn run<C: ReferenceCipher>(key: &[u8], blocks: &[[u8; 16]]) -> Vec<[u8; 16]> {
        let cipher = C::new(key);
        blocks.iter().map(|&block| cipher.encrypt(block)).collect()
    }
    match algorithm {
        Algorithm::Aes => run::<Aes>(key, blocks),
        Algorithm::Serpent => run::<Serpent>(key, blocks),
        Algorithm::Twofish => run::<Twofish>(key, blocks),
    }
}

fn decrypt_blocks(algorithm: Algorithm, key: &[u8], blocks: &[[u8; 16]]) -> Vec<[u8; 16]> {
    fn run<C: ReferenceCipher>(key: &[u8], blocks: &[[u8; 16]]) -> Vec<[u8; 16]> {
        let cipher = C::new(key);
        blocks.iter().map(|&block| cipher.decrypt(block)).collect()
    }
    match algorithm {
        Algorithm::Aes => run::<Aes>(key, blocks),
        Algorithm::Serpent => run::<Serpent>(key, blocks),
        Algorithm::Twofish => run::<Twofish>(key, blocks),
    }
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

fn hex(digits: &str) -> Vec<u8> {
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
