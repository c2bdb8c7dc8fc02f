//! Unlock time over the time of the key derivation alone.
//!
//! ```text
//! cargo bench -p cryptmark-volume --bench unlock -- [PAIRS]
//! ```
//!
//! An unlocking and a derivation with the same costs form a pair, and their order alternates. The
//! ratio of each pair counts, so that a noisy machine slows both. The output is the median ratio
//! and its 95 % interval by order statistics.
//!
//! Volumes are in memory. LUKS verifies the key of a key slot by PBKDF2, whose iterations belong to
//! the unlocking. VeraCrypt derives the keys that AES needs.

use block::RamDevice;
use cipher::{Algorithm, Key, SectorSize};
use cryptmark_volume::tcrypt::{Creation, Family, Opening, Place, Prf, Sealing};
use cryptmark_volume::{Argon2Variant, Hash, Kdf, Limits, Secret, luks1, luks2};
use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::Instant;

/// Pairs where none are given.
const PAIRS: usize = 31;

const SIZE: u64 = 20 << 20;
const PASSPHRASE: &[u8] = b"correct horse battery staple";

fn main() {
    let number = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let pairs = number.map_or(PAIRS, |number| number.parse().expect("a number of pairs"));
    println!("{:<32} {:>12} {:>8}   95 %", "", "KDF ms", "ratio");
    luks1_pbkdf2(pairs);
    luks2_argon2(pairs);
    veracrypt_sha512(pairs);
}

fn passphrase() -> Key {
    Key::from_slice(PASSPHRASE)
}

fn secret() -> Secret {
    Secret::Passphrase(passphrase())
}

fn luks1_pbkdf2(pairs: usize) {
    let iterations = 1_000_000;
    let creation = luks1::Creation {
        spec: "aes-xts-plain64".parse().expect("known"),
        key_bytes: 64,
        hash: Hash::Sha256,
        iterations,
        payload_offset: None,
        detached: false,
        uuid: None,
    };
    let device = RamDevice::new(SIZE);
    let key = Key::random(64).expect("random bytes");
    luks1::Header::create(&device, &creation, &key, &passphrase()).expect("room");
    let kdf = Kdf::Pbkdf2 {
        hash: Hash::Sha256,
        iterations,
    };
    compare("LUKS1, PBKDF2-sha256", pairs, kdf, 64, || {
        let header = luks1::Header::read(&device).expect("just written");
        let unlocked = header.unlock(&device, &secret(), None, &Limits::default());
        black_box(unlocked.expect("its passphrase"));
    });
}

fn luks2_argon2(pairs: usize) {
    let kdf = Kdf::Argon2 {
        variant: Argon2Variant::Id,
        time: 4,
        memory_kib: 128 << 10,
        lanes: 4,
    };
    let creation = luks2::Creation {
        sector_size: SectorSize::B4096,
        ..luks2::Creation::new(kdf)
    };
    let device = RamDevice::new(SIZE);
    let key = Key::random(64).expect("random bytes");
    luks2::Header::create(&device, &creation, &key, &passphrase()).expect("room");
    compare("LUKS2, Argon2id", pairs, kdf, 64, || {
        let header = luks2::Header::read(&device).expect("just written");
        let unlocked = header.unlock(&device, &secret(), None, &Limits::default());
        black_box(unlocked.expect("its passphrase"));
    });
}

fn veracrypt_sha512(pairs: usize) {
    let prf = Prf::Pbkdf2(Hash::Sha512);
    let creation = Creation {
        family: Family::VeraCrypt,
        algorithms: vec![Algorithm::Aes],
        sealing: Sealing::new(prf),
    };
    let device = RamDevice::new(SIZE);
    let made = creation.create(&device, &passphrase(), &Limits::default());
    made.expect("room");
    let kdf = prf.kdf(Family::VeraCrypt, Place::Normal, None);
    let opening = Opening {
        prf: Some(prf),
        algorithms: Some(vec![Algorithm::Aes]),
        ..Opening::new(Family::VeraCrypt)
    };
    compare(
        "VeraCrypt, SHA-512",
        pairs,
        kdf.expect("its own"),
        64,
        || {
            let limits = Limits::default();
            let unlocked = opening.unlock(&device, &secret(), &limits, &|_, _| {
                ControlFlow::Continue(())
            });
            black_box(unlocked.expect("its passphrase"));
        },
    );
}

/// Prints how long `unlock` takes beside `kdf` for a key of so many bytes.
fn compare(name: &str, pairs: usize, kdf: Kdf, key_bytes: usize, unlock: impl Fn()) {
    let derive = || {
        let key = kdf.derive(PASSPHRASE, &[7; 32], key_bytes, &Limits::default());
        black_box(key.expect("possible"));
    };
    let seconds = |work: &dyn Fn()| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    };
    seconds(&derive);
    seconds(&unlock);
    let (mut ratios, mut alone) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        let (derived, unlocked) = match pair % 2 {
            0 => (seconds(&derive), seconds(&unlock)),
            _ => {
                let unlocked = seconds(&unlock);
                (seconds(&derive), unlocked)
            }
        };
        ratios.push(unlocked / derived);
        alone.push(derived);
    }
    ratios.sort_by(f64::total_cmp);
    alone.sort_by(f64::total_cmp);
    let least = rank(pairs);
    println!(
        "{name:<32} {:>12.1} {:>8.3}   {:.3} … {:.3}",
        1000.0 * alone[pairs / 2],
        ratios[pairs / 2],
        ratios[least],
        ratios[pairs - 1 - least],
    );
}

/// Of so many values in order, how many stay out at either end of a 95 %
/// interval of the median.
fn rank(values: usize) -> usize {
    // How likely exactly so many values are below the median.
    let mut exactly = 0.5_f64.powi(values as i32);
    let mut at_most = exactly;
    let mut below = 0;
    while at_most <= 0.025 {
        below += 1;
        exactly *= (values - below + 1) as f64 / below as f64;
        at_most += exactly;
    }
    below.saturating_sub(1)
}
