//! Key derivations: vectors, headers that others wrote, and refusals.

use cipher::{CipherSpec, IvSector, Key, SectorCipher, SectorLayout};
use cryptmark_volume::{Argon2Variant, Hash, Kdf, Limits, Stop, VolumeError};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Runs every line of a vector file; how many by derivation.
fn run(file: &Path) -> BTreeMap<String, usize> {
    let text = fs::read_to_string(file).unwrap();
    let mut counts = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [
            id,
            kdf,
            hash,
            iterations,
            memory,
            lanes,
            password,
            salt,
            output,
            _source,
        ] = fields[..]
        else {
            panic!("{line}");
        };
        let number = |text: &str| text.parse::<u32>().unwrap();
        let kdf = match kdf {
            "pbkdf2" => Kdf::Pbkdf2 {
                hash: Hash::named(hash).unwrap(),
                iterations: number(iterations),
            },
            _ => Kdf::Argon2 {
                variant: match kdf {
                    "argon2i" => Argon2Variant::I,
                    "argon2id" => Argon2Variant::Id,
                    other => panic!("{other}"),
                },
                time: number(iterations),
                memory_kib: number(memory),
                lanes: number(lanes),
            },
        };
        let expected = hex(output);
        let key = kdf.derive(
            &hex(password),
            &hex(salt),
            expected.len(),
            &Limits::default(),
        );
        assert_eq!(key.unwrap().as_bytes(), expected, "{id}");
        let what = match kdf {
            Kdf::Pbkdf2 { hash, .. } => format!("pbkdf2 {hash}"),
            Kdf::Argon2 { variant, .. } => variant.name().to_owned(),
        };
        *counts.entry(what).or_default() += 1;
    }
    counts
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.trim_matches('-').len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

#[test]
fn vectors_of_the_project() {
    let counts = run(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/kdf.tsv"));
    println!("vectors of the project: {counts:?}");
    for hash in Hash::ALL {
        assert!(counts.contains_key(&format!("pbkdf2 {hash}")), "{hash}");
    }
    assert!(counts.contains_key("argon2i") && counts.contains_key("argon2id"));
}

/// Headers that VeraCrypt and TrueCrypt wrote open under the derived key.
#[test]
fn headers_that_others_wrote() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let manifest = fs::read(folder.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let mut opened = Vec::new();
    for case in manifest["cases"].as_array().unwrap() {
        let text = |field: &str| case[field].as_str().unwrap_or_default();
        let magic = match text("format") {
            "veracrypt" => b"VERA",
            "truecrypt" => b"TRUE",
            _ => continue,
        };
        // Key files, and images that must be unpacked first, are other tests' business.
        let plain = case["keyfiles"].as_array().is_some_and(Vec::is_empty);
        if !plain || !case["compression"].is_null() {
            continue;
        }
        let kdf = kdf(magic, text("hash"), case["pim"].as_u64());
        let image = fs::read(folder.join(text("path"))).unwrap();
        let place = match case["hidden"] == true {
            true => 65536,
            false => 0,
        };
        let header = &image[place..place + 512];
        let spec = spec(text("cipher"));
        // A short key of PBKDF2's is the beginning of a long one; not so Argon2's.
        let key_bytes = *spec.key_sizes().last().unwrap();
        let length = match kdf {
            Kdf::Pbkdf2 { .. } => key_bytes,
            Kdf::Argon2 { .. } => 192,
        };
        for secret in case["secrets"].as_array().unwrap() {
            let fits = secret["expect"] == "open";
            if !fits && opened.len() > 2 {
                // That wrong keys open nothing need not be shown at any price.
                continue;
            }
            let passphrase = secret["value"].as_str().unwrap().as_bytes();
            let key = kdf.derive(passphrase, &header[..64], length, &Limits::default());
            let key = Key::from_slice(&key.unwrap().as_bytes()[..key_bytes]);
            let found = decrypted(spec, &key, header);
            assert_eq!(found == *magic, fits, "{} {secret}", case["id"]);
        }
        opened.push(format!("{} ({kdf})", text("id")));
    }
    println!("{} headers opened: {}", opened.len(), opened.join(", "));
    assert!(opened.len() >= 14);
}

/// As both programs choose the costs.
fn kdf(magic: &[u8; 4], hash: &str, pim: Option<u64>) -> Kdf {
    let pim = pim.unwrap_or(0) as u32;
    if hash == "argon2id" {
        assert_eq!(pim, 0);
        return Kdf::Argon2 {
            variant: Argon2Variant::Id,
            time: 6,
            memory_kib: 416 << 10,
            lanes: 1,
        };
    }
    let name = match hash {
        "blake2s" => "blake2s-256",
        other => other,
    };
    let iterations = match (magic, hash, pim) {
        (b"TRUE", "ripemd160" | "sha1", _) => 2000,
        (b"TRUE", _, _) => 1000,
        (_, "ripemd160", 0) => 655_331,
        (_, _, 0) => 500_000,
        (_, _, pim) => 15_000 + 1000 * pim,
    };
    Kdf::Pbkdf2 {
        hash: Hash::named(name).unwrap(),
        iterations,
    }
}

fn spec(cipher: &str) -> CipherSpec {
    let notation = match cipher.contains('-') {
        true => cipher.to_owned(),
        false => format!("{cipher}-xts-plain64"),
    };
    notation.parse().unwrap()
}

/// The first bytes of a header under a derived key.
fn decrypted(spec: CipherSpec, key: &Key, header: &[u8]) -> [u8; 4] {
    let cipher = spec.cipher(key, SectorLayout::default(), None).unwrap();
    let mut sector = [0; 512];
    sector[..448].copy_from_slice(&header[64..]);
    cipher.decrypt(IvSector::new(0), &mut sector);
    sector[..4].try_into().unwrap()
}

const ARGON2: Kdf = Kdf::Argon2 {
    variant: Argon2Variant::Id,
    time: 1,
    memory_kib: 64,
    lanes: 2,
};

/// `ARGON2` with other costs.
fn argon2(time: u32, memory_kib: u32, lanes: u32) -> Kdf {
    Kdf::Argon2 {
        variant: Argon2Variant::Id,
        time,
        memory_kib,
        lanes,
    }
}

fn pbkdf2(iterations: u32) -> Kdf {
    Kdf::Pbkdf2 {
        hash: Hash::Sha256,
        iterations,
    }
}

/// The error of a derivation, which both its lines belong to.
fn refused(kdf: Kdf, salt: &[u8], length: usize) -> VolumeError {
    let error = kdf
        .derive(b"pass", salt, length, &Limits::default())
        .unwrap_err();
    assert!(!error.remedy().is_empty());
    error
}

/// Refused at once, with both numbers: none of these could be finished.
#[test]
fn too_much_work_is_refused_before_it_is_begun() {
    let salt = [7; 16];
    let error = refused(pbkdf2(u32::MAX), &salt, 64);
    assert_eq!(
        error.to_string(),
        "the key derivation takes about 1717 s on one core, and the limit is 188 s"
    );
    let error = refused(argon2(1, u32::MAX, 1), &salt, 64);
    assert_eq!(
        error.to_string(),
        "the key derivation needs 4294967295 KiB of memory, and the limit is 4194304"
    );
    let error = refused(argon2(u32::MAX, 1 << 20, 4), &salt, 64);
    assert!(matches!(error, VolumeError::KdfWork { work, .. } if work.as_secs() > 1 << 31));
    let error = refused(argon2(1, u32::MAX, u32::MAX), &salt, 64);
    assert_eq!(
        error.to_string(),
        "the key derivation needs 4294967295 lanes, and the limit is 4"
    );
}

#[test]
fn limits_are_the_last_that_is_allowed() {
    let limits = Limits {
        work: argon2(2, 64, 2).work(32),
        memory_kib: 64,
        lanes: 2,
        ..Limits::default()
    };
    let allowed = |kdf: Kdf| kdf.derive(b"pass", &[7; 16], 32, &limits).is_ok();
    assert!(allowed(argon2(1, 64, 2)) && !allowed(argon2(1, 65, 2)));
    assert!(!allowed(argon2(1, 64, 3)));
    assert!(allowed(argon2(2, 64, 2)) && !allowed(argon2(3, 64, 2)));
}

/// Work is iterations times the hash's cost times blocks of key.
#[test]
fn limits_count_the_hash_and_the_length_of_the_key() {
    for hash in Hash::ALL {
        let kdf = |iterations| Kdf::Pbkdf2 { hash, iterations };
        let digest = hash.digest_bytes();
        for blocks in 1..4 {
            let limits = Limits {
                work: kdf(10).work(digest) * blocks,
                ..Limits::default()
            };
            let allowed = |iterations, length| {
                let derived = kdf(iterations).derive(b"pass", &[7; 16], length, &limits);
                let is_refused = matches!(derived, Err(VolumeError::KdfWork { .. }));
                assert!(is_refused || derived.is_ok());
                !is_refused
            };
            let length = blocks as usize * digest;
            assert!(
                allowed(10, length) && allowed(10 * blocks, digest),
                "{hash}"
            );
            assert!(!allowed(11, length) && !allowed(10, length + 1), "{hash}");
        }
        let longest = kdf(u32::MAX).derive(b"pass", &[7; 16], 64, &Limits::default());
        assert!(
            matches!(longest, Err(VolumeError::KdfWork { .. })),
            "{hash}"
        );
    }
    let cost = |hash| {
        Kdf::Pbkdf2 {
            hash,
            iterations: 1,
        }
        .work(1)
    };
    assert!(cost(Hash::Streebog512) > 10 * cost(Hash::Sha256));
}

#[test]
fn what_the_standard_does_not_have_is_refused() {
    let salt = [7; 16];
    for (kdf, salt, length) in [
        (pbkdf2(0), &salt[..], 32),
        (argon2(0, 64, 2), &salt[..], 32),
        (argon2(1, 64, 0), &salt[..], 32),
        (argon2(1, 15, 2), &salt[..], 32),
        (argon2(1, 7, 1), &salt[..], 32),
        (ARGON2, &salt[..7], 32),
        (ARGON2, &salt[..0], 32),
        (ARGON2, &salt[..], 3),
        (ARGON2, &salt[..], 0),
    ] {
        let error = refused(kdf, salt, length);
        assert!(error.to_string().contains("the minimum is"), "{error}");
    }
}

/// PBKDF2's longer keys begin with its shorter ones.
#[test]
fn lengths_and_names() {
    let derive = |length| pbkdf2(3).derive(b"pass", b"salt", length, &Limits::default());
    let long = derive(200).unwrap();
    for length in [0, 1, 31, 32, 33, 64, 192] {
        assert_eq!(
            derive(length).unwrap().as_bytes(),
            &long.as_bytes()[..length]
        );
    }
    assert_eq!(pbkdf2(3).to_string(), "pbkdf2-sha256-3");
    assert_eq!(ARGON2.to_string(), "argon2id-1-64-2");
    for hash in Hash::ALL {
        assert_eq!(Hash::named(hash.name()), Some(hash));
    }
    assert_eq!(Hash::named("md4"), None);
}

/// The longest derivations that are allowed end when the user says so.
#[test]
fn a_derivation_ends_when_it_is_told_to() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let limits = Limits {
        stop: Stop::when(&STOP),
        ..Limits::default()
    };
    let short = [pbkdf2(1000), argon2(1, 64, 2)];
    for kdf in short {
        let derived = |limits| kdf.derive(b"pass", &[7; 16], 32, limits).unwrap();
        assert_eq!(
            derived(&limits).as_bytes(),
            derived(&Limits::default()).as_bytes()
        );
    }
    for kdf in [pbkdf2(100_000_000), argon2(500, 512 << 10, 1)] {
        STOP.store(false, Ordering::Relaxed);
        std::thread::scope(|scope| {
            let derived = scope.spawn(|| kdf.derive(b"pass", &[7; 16], 32, &limits));
            std::thread::sleep(Duration::from_millis(100));
            STOP.store(true, Ordering::Relaxed);
            let told = Instant::now();
            let ended = derived.join().unwrap();
            assert!(told.elapsed() < Duration::from_secs(5), "{kdf}");
            assert!(matches!(ended, Err(VolumeError::Stopped)), "{kdf}");
        });
    }
}

/// Whether memory of this process that can be written holds `wanted`, of which the search keeps
/// only the complement.
#[cfg(target_os = "linux")]
fn is_in_memory(wanted: [u64; 8]) -> bool {
    use std::os::unix::fs::FileExt;
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let memory = fs::File::open("/proc/self/mem").unwrap();
    let number = |digits| u64::from_str_radix(digits, 16).unwrap();
    let mut page = [0; 4096];
    let ranges = maps.lines().filter(|line| line.contains(" rw"));
    ranges.into_iter().any(|line| {
        let (start, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
        let mut pages = (number(start)..number(end)).step_by(page.len());
        pages.any(|at| {
            let read = memory.read_at(&mut page, at).unwrap_or(0);
            let is_it = |(word, wanted): (&[u8], &u64)| word == (!wanted).to_ne_bytes();
            let mut places = page[..read].chunks_exact(8 * wanted.len());
            places.any(|place| place.chunks_exact(8).zip(&wanted).all(is_it))
        })
    })
}

/// The key could be computed from it.
#[cfg(target_os = "linux")]
#[test]
fn nothing_is_left_of_the_memory_of_a_derivation() {
    use argon2::{Algorithm, Argon2, Block, Params, Version};
    let (passphrase, salt, mut key) = (b"known here alone", [7; 16], [0; 32]);
    // Little enough that the process keeps what is freed.
    let mut blocks = vec![Block::default(); 64];
    let params = Params::new(64, 1, 1, Some(key.len())).unwrap();
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into_with_memory(passphrase, &salt, &mut key, &mut blocks[..])
        .unwrap();
    let middle: [u64; 8] = std::array::from_fn(|nth| !blocks[40].as_ref()[nth]);
    assert!(is_in_memory(middle), "the search is wrong");
    blocks.fill(Block::default());
    std::hint::black_box(&mut blocks);
    assert!(!is_in_memory(middle));
    let derived = argon2(1, 64, 1).derive(passphrase, &salt, key.len(), &Limits::default());
    assert_eq!(derived.unwrap().as_bytes(), key);
    assert!(!is_in_memory(middle));
}
