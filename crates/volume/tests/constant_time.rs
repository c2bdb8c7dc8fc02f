//! Which hashes, key derivations and authenticated ciphers are constant-time: what CIPHERS.md says
//! is what valgrind finds. It takes passphrases, keys and data for undefined, and reports every
//! branch and every address that depends on them.
//!
//! What is behind the comparison of a tag may depend on its outcome, so sectors are only encrypted
//! here. This is a program of its own because it is run under valgrind.

#[path = "../../cipher/tests/constant_time/memcheck.rs"]
mod memcheck;

use block::{BlockDevice, RamDevice};
use cipher::{IvSector, Key, SectorSize};
use cryptmark_volume::{Access, Argon2Variant, Hash, Kdf, Limits, SealedDevice, SealedMapping};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::process::Command;

/// What valgrind runs.
const WATCHED: &str = "watched";

/// Encryption, integrity and key bytes.
const SEALS: &[(&str, &str, usize)] = &[
    ("aes-gcm-random", "aead", 16),
    ("aes-gcm-random", "aead", 24),
    ("aes-gcm-random", "aead", 32),
    ("aegis128-random", "aead", 16),
    ("chacha20-random", "poly1305", 32),
    ("aes-xts-random", "hmac(sha256)", 96),
    ("aes-xts-random", "hmac(sha512)", 128),
];

fn main() {
    if std::env::args().nth(1).as_deref() == Some(WATCHED) {
        return watched();
    }
    let version = Command::new("valgrind").arg("--version").output();
    if !cfg!(target_arch = "x86_64") || !version.is_ok_and(|output| output.status.success()) {
        return println!("skipped: no valgrind for this machine: apt-get install valgrind");
    }
    let output = Command::new("valgrind")
        .args(["--quiet", "--error-limit=no", "--log-file=/dev/null"])
        .arg(std::env::current_exe().expect("it runs"))
        .arg(WATCHED)
        .output()
        .expect("valgrind runs");
    let found = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}: {found}", output.status);
    let mut found: BTreeMap<&str, bool> = found
        .lines()
        .map(|line| line.rsplit_once(' ').expect("a name and a number"))
        .map(|(name, errors)| (name, errors == "0"))
        .collect();
    assert_eq!(found.remove("control"), Some(false), "a look-up is found");
    assert_eq!(found, said());
    println!("{} rows are as CIPHERS.md says", found.len());
}

/// The table of CIPHERS.md.
fn said() -> BTreeMap<&'static str, bool> {
    let text = include_str!("../../../docs/CIPHERS.md");
    let table = text.split("| primitive | constant time |").nth(1);
    let rows = table.expect("a table").lines().skip(2);
    let mut said = BTreeMap::new();
    for row in rows.take_while(|row| row.starts_with('|')) {
        let cells: Vec<&str> = row.split(" | ").collect();
        let is_said = cells[1].starts_with("yes");
        let names = cells[0].split('`').skip(1).step_by(2);
        said.extend(names.map(|name| (name, is_said)));
    }
    said
}

/// The program that valgrind runs: a line with the number of errors for each primitive.
fn watched() {
    assert!(memcheck::is_watching(), "for valgrind to run");
    let secret: Vec<u8> = (0..64).map(|byte| byte * 3 + 1).collect();
    let table: Vec<u8> = (0..=255).rev().collect();
    examine("control", &secret, || {
        black_box(table[usize::from(secret[7])]);
    });
    for hash in Hash::ALL {
        examine(hash.name(), &secret, || {
            black_box(hash.digest(&[&secret]));
            let iterations = 3;
            derive(&secret, Kdf::Pbkdf2 { hash, iterations });
        });
    }
    for variant in [Argon2Variant::I, Argon2Variant::Id] {
        let kdf = Kdf::Argon2 {
            variant,
            time: 1,
            memory_kib: 64,
            lanes: 1,
        };
        examine(variant.name(), &secret, || derive(&secret, kdf));
    }
    for &(encryption, integrity, key_bytes) in SEALS {
        let key = Key::from(
            secret
                .iter()
                .copied()
                .cycle()
                .take(key_bytes)
                .collect::<Vec<u8>>(),
        );
        let ram = RamDevice::new(4 << 20);
        let mapping = SealedMapping {
            encryption: encryption.into(),
            integrity: integrity.into(),
            key: Key::from_slice(key.as_bytes()),
            mac_key_bytes: None,
            sector_size: SectorSize::B512,
            offset: 0,
            size: None,
            first: IvSector::new(0),
            access: Access::Write,
        };
        memcheck::mark_secret(mapping.key.as_bytes());
        let data: Vec<u8> = secret.iter().copied().cycle().take(4096).collect();
        examine(
            &format!("{encryption} {integrity} {key_bytes}"),
            &data,
            || {
                let sealed = SealedDevice::fresh(&ram, &mapping).expect("it is supported");
                sealed.format().expect("it has room");
                sealed.write_at(0, &data).expect("it is in memory");
            },
        );
    }
}

fn derive(secret: &[u8], kdf: Kdf) {
    let derived = kdf.derive(secret, b"a salt of 16 byt", 40, &Limits::default());
    black_box(derived.expect("it is cheap"));
}

/// Prints the number of errors while `work` runs on what is `secret`.
fn examine(name: &str, secret: &[u8], work: impl FnOnce()) {
    memcheck::mark_secret(secret);
    let before = memcheck::errors();
    work();
    println!("{name} {}", memcheck::errors() - before);
    memcheck::mark_public(secret);
}
