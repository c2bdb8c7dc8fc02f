//! MB/s of every backend and of RustCrypto's crates, over 1 MiB of sectors in
//! memory, with one IV a sector: the median of several runs, for orientation.
//!
//! Then one core beside two, over requests of 4 KiB to 4 MiB of which each core
//! has a half.
//!
//! `cargo bench -p cryptmark-cipher [FILTER]` shows the lines that contain
//! FILTER; those of two cores contain `cores`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, BlockSizeUser, KeyInit, consts::U16};
use cryptmark_cipher::{
    CipherSpec, IvSector, Key, SectorCipher, SectorLayout, SectorSize, Sharing,
};
use xts_mode::{Xts128, get_tweak_default};

const BYTES: usize = 1 << 20;
const RUNS: usize = 9;

/// A run lasts at least this long.
const RUN: Duration = Duration::from_millis(25);

fn main() {
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    println!("{:<42} {:>12} {:>12}", "", "encrypt MB/s", "decrypt MB/s");
    for size in [SectorSize::B512, SectorSize::B4096] {
        for notation in CipherSpec::KNOWN {
            let spec: CipherSpec = notation.parse().expect("known");
            if !spec.sector_sizes().contains(&size) {
                continue;
            }
            let key = Key::random(spec.default_key_size()).expect("random bytes");
            let layout = SectorLayout {
                size,
                large_iv: false,
            };
            for backend in spec.backends() {
                let cipher = spec.cipher(&key, layout, Some(backend)).expect("listed");
                line(
                    &filter,
                    &format!("{notation} {} {backend}", size.bytes()),
                    |data| cipher.encrypt(IvSector::new(0), data),
                    |data| cipher.decrypt(IvSector::new(0), data),
                );
            }
        }
        peer::<aes::Aes256>(&filter, "aes", size);
        peer::<serpent::Serpent>(&filter, "serpent", size);
        peer::<twofish::Twofish>(&filter, "twofish", size);
    }
    println!("{:<42} {:>12} {:>12}", "", "1 core MB/s", "2 cores MB/s");
    for notation in [
        "aes-xts-plain64",
        "serpent-xts-plain64",
        "twofish-xts-plain64",
        "aes-cbc-essiv:sha256",
    ] {
        let spec: CipherSpec = notation.parse().expect("known");
        for power in 12..=22 {
            two_cores(&filter, spec, 1 << power);
        }
    }
}

/// Encryption of requests of `bytes` by one core and by two.
fn two_cores(filter: &Option<String>, spec: CipherSpec, bytes: usize) {
    let name = format!("{spec} cores {} KiB", bytes >> 10);
    if filter.as_ref().is_some_and(|filter| !name.contains(filter)) {
        return;
    }
    let key = Key::random(spec.default_key_size()).expect("random bytes");
    let layout = SectorLayout::default();
    let cipher = || spec.cipher(&key, layout, None).expect("possible");
    let sharing = Sharing {
        cores: 2,
        part: bytes / 2,
    };
    let two = cipher().shared(sharing).expect("a thread");
    let one = cipher();
    let mut speeds =
        [&one, &two].map(|cipher| speed(bytes, |data| cipher.encrypt(IvSector::new(0), data)));
    // The order of the two must not decide.
    for (speed_before, cipher) in speeds.iter_mut().zip([&one, &two]).rev() {
        let again = speed(bytes, |data| cipher.encrypt(IvSector::new(0), data));
        *speed_before = speed_before.midpoint(again);
    }
    let [one, two] = speeds;
    println!("{name:<42} {one:>12.0} {two:>12.0}");
}

/// RustCrypto's block cipher in the crate `xts-mode`, called per sector.
fn peer<C: BlockSizeUser<BlockSize = U16> + BlockCipherEncrypt + BlockCipherDecrypt + KeyInit>(
    filter: &Option<String>,
    name: &str,
    size: SectorSize,
) {
    let new = |byte| C::new_from_slice(&[byte; 32]).expect("256 bits");
    let xts = Xts128::new(new(1), new(2));
    line(
        filter,
        &format!("{name}-xts-plain64 {} (peer: xts-mode)", size.bytes()),
        |data| xts.encrypt_area(data, size.bytes(), 0, get_tweak_default),
        |data| xts.decrypt_area(data, size.bytes(), 0, get_tweak_default),
    );
}

fn line(
    filter: &Option<String>,
    name: &str,
    encrypt: impl Fn(&mut [u8]),
    decrypt: impl Fn(&mut [u8]),
) {
    if filter.as_ref().is_some_and(|filter| !name.contains(filter)) {
        return;
    }
    let (encrypt, decrypt) = (speed(BYTES, encrypt), speed(BYTES, decrypt));
    println!("{name:<42} {encrypt:>12.0} {decrypt:>12.0}");
}

/// MB/s over requests of `size` bytes, the median of [`RUNS`] runs.
fn speed(size: usize, work: impl Fn(&mut [u8])) -> f64 {
    let mut data = vec![0x5a; size];
    let mut speeds: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            let mut bytes = 0;
            while start.elapsed() < RUN {
                work(black_box(&mut data));
                bytes += size;
            }
            bytes as f64 / 1e6 / start.elapsed().as_secs_f64()
        })
        .collect();
    speeds.sort_by(f64::total_cmp);
    speeds[RUNS / 2]
}
