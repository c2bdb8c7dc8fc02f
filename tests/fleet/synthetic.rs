//! Runs of a fleet that is not there, as its hosts would have stored them: 8
//! processors, 6 drives, 5 kernels, 2 versions of the program, a plan of 140 workloads.
//! In the second version one cipher is slower on one processor, and now and then a
//! host is far slower than all alike.

use lab::record::{Run, Trial, Verdict};
use lab::store::Store;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::sample;

/// Model, and what is left of the rate of a slow cipher.
const CPUS: [(&str, f64); 8] = [
    ("AMD EPYC 9654 96-Core Processor", 0.98),
    ("AMD EPYC 7763 64-Core Processor", 0.95),
    ("AMD Ryzen 7 5800U with Radeon Graphics", 0.9),
    ("Intel(R) Xeon(R) Platinum 8488C", 0.97),
    ("Intel(R) Xeon(R) Silver 4214 CPU @ 2.20GHz", 0.85),
    ("Intel(R) Core(TM) i5-6500 CPU @ 3.20GHz", 0.8),
    ("Neoverse-N1", 0.75),
    ("Intel(R) Atom(TM) CPU C3558 @ 2.20GHz", 0.6),
];

const DEVICES: [&str; 6] = [
    "Samsung SSD 980 PRO 1TB",
    "INTEL SSDPE2KX010T8",
    "WDC WD10EZEX-08WN4A0",
    "KIOXIA KCD81RUG3T84",
    "Micron_7450_MTFDKCC1T9TFR",
    "Amazon Elastic Block Store",
];

const KERNELS: [&str; 5] = [
    "Linux 5.15.0-164-generic",
    "Linux 6.1.0-41-amd64",
    "Linux 6.8.0-88-generic",
    "Linux 6.12.48",
    "Linux 6.17.8",
];

/// Notation, key bits, and what is left of plain's rate on a fast processor.
const CIPHERS: [(&str, u32, f64); 5] = [
    ("aes-xts-plain64", 512, 0.97),
    ("camellia-xts-plain64", 512, 0.8),
    ("serpent-xts-plain64", 512, 0.7),
    ("twofish-xts-plain64", 512, 0.72),
    ("xchacha20,aes-adiantum-plain64", 256, 0.85),
];

/// One run of so many is a host's that is ill.
const ILL: u64 = 97;

const PATTERNS: [(&str, &str); 4] = [
    ("rand", "read"),
    ("rand", "write"),
    ("seq", "read"),
    ("seq", "write"),
];
const BLOCKS: [u64; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
const DEPTHS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Trials of a run: every workload plain, plain again, and with each cipher.
pub const TRIALS: usize = PATTERNS.len() * BLOCKS.len() * DEPTHS.len() * (2 + CIPHERS.len());

/// The run `number` of `runs`, the same each time.
pub fn run(number: u64, runs: u64) -> Run {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(number);
    let of = |step: u64, length: usize| (number / step % length as u64) as usize;
    let (cpu, speed) = CPUS[of(1, CPUS.len())];
    let newer = number >= runs / 2;
    let ill = number % ILL == ILL - 1;
    let mut run = sample::run();
    run.run = format!("20261101-{number:06}-{:010x}", chance.next_u64() >> 24);
    run.plan = "fleet-140".into();
    let day = 1 + number * 28 / runs;
    run.started = format!("2026-11-{day:02}T{:02}:00:00+01:00", number % 24);
    run.seed = number;
    run.host.cpu = cpu.into();
    run.host.kernel = KERNELS[of(48, KERNELS.len())].into();
    let version = if newer { "0.2.0" } else { "0.1.0" };
    run.host.versions.insert("cryptmark".into(), version.into());
    run.trials.clear();
    for (pattern, op) in PATTERNS {
        for block in BLOCKS {
            for depth in DEPTHS {
                let name = format!("{pattern}-{}k-{op}-q{depth}", block >> 10);
                let rate = 100.0 + 900.0 * unit(&mut chance);
                let mut plain = sample::cell(&name, op, block, depth, rate);
                plain.device.model = Some(DEVICES[of(8, DEVICES.len())].into());
                let again = Trial {
                    overhead: Some(sample::overhead(0.999, 0.01, Verdict::NotDistinguishable)),
                    ..plain.clone()
                };
                let encrypted = CIPHERS.iter().map(|(cipher, bits, left)| {
                    let mut ratio = left * speed * (0.97 + 0.06 * unit(&mut chance));
                    if newer && *cipher == "serpent-xts-plain64" && speed == 0.6 {
                        ratio *= 0.9;
                    }
                    if ill {
                        ratio *= 0.3;
                    }
                    encrypted(&plain, cipher, *bits, ratio)
                });
                let encrypted: Vec<Trial> = encrypted.collect();
                run.trials.extend([plain, again]);
                run.trials.extend(encrypted);
            }
        }
    }
    run
}

/// A number from 0 to 1.
fn unit(chance: &mut Xoshiro256PlusPlus) -> f64 {
    (chance.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// A trial of the built-in engine beside `plain`.
pub fn encrypted(plain: &Trial, cipher: &str, key_bits: u32, ratio: f64) -> Trial {
    let rate = plain.throughput_mb_s.median * ratio;
    let cell = sample::cell(
        &plain.workload,
        &plain.op,
        plain.block_bytes.unwrap(),
        plain.queue_depth.unwrap(),
        rate,
    );
    Trial {
        system: "builtin".into(),
        cipher: Some(cipher.into()),
        key_bits: Some(key_bits),
        sector_bytes: Some(4096),
        device: plain.device.clone(),
        overhead: Some(sample::overhead(ratio, 0.02, Verdict::Slower)),
        ..cell
    }
}

/// Stores a whole run as `cryptmark import` does.
pub fn put(store: &Store, run: &Run) {
    store.take_over(std::slice::from_ref(run)).unwrap();
}
