//! How long secrets take: dudect's test, fixed against random.
//!
//! Each measurement takes a secret of one of two classes, drawn at random: the same one every time,
//! or a new one. The work before the clock starts is the same for both. If the means differ by more
//! than chance can explain, time depends on the secret.

use std::hint::black_box;
use std::time::{Duration, Instant};

use cryptmark_cipher::{Backend, CipherSpec, IvSector, Key, SectorCipher, SectorLayout};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::welch::largest_t;

/// |t| above which time depends on the secret, and above which it may. The
/// paper's program says so of its 10 and 4.5.
pub const LEAK: f64 = 10.0;
pub const SUSPECT: f64 = 4.5;

/// Runs where the first is suspicious: noise does not come back in the same
/// class, a leak does.
const REPETITIONS: usize = 3;

/// Of one loop: so long, or so often where other programs take the time away.
const LENGTH: Duration = Duration::from_millis(100);
const LEAST: usize = 2_000;
const MOST: usize = 60_000;

/// Sectors of a request: one, and as many as any kernel takes side by side.
const LENGTHS: [usize; 2] = [1, 64];

const SECTOR: usize = 512;

/// A loop's durations, and what took them.
type Series = (&'static str, Vec<(bool, u64)>);

/// The largest |t|, and of what.
#[derive(Clone, Copy, Debug)]
pub struct Finding {
    pub t: f64,
    pub of: &'static str,
}

/// Of what needs no timing.
pub const NOT_TIMED: Finding = Finding {
    t: 0.0,
    of: "not timed",
};

/// Key setup, encryption and decryption by `backend`, for fixed and random keys and data: the least
/// suspicious of several runs, or the only one without a claim (`claims`) that time is constant.
pub fn examine(spec: CipherSpec, backend: Backend, claims: bool) -> Finding {
    let runs = if claims { REPETITIONS } else { 1 };
    least_of(runs, |seed| {
        let mut series = Vec::new();
        for sectors in LENGTHS {
            series.extend(by_data(spec, backend, sectors, seed));
            series.extend(by_key(spec, backend, sectors, seed));
        }
        series
    })
}

/// Planted, to know what the test finds.
pub struct Planted {
    /// A search that ends at the first byte that is not zero: it must be found.
    pub search: Finding,
    /// A look-up in a table for each byte: it is not, as a rule. The table is
    /// in the cache all the time, and so no claim rests on a clock alone.
    pub look_up: Finding,
    /// Work that always runs to its end: it must not be blamed.
    pub nothing: Finding,
}

/// Times the planted leaks.
pub fn planted() -> Planted {
    let table: [u8; 256] = black_box(std::array::from_fn(|i| (i * 167 + 13) as u8));
    let sum = |data: &[u8]| data.iter().fold(0, |sum, byte| sum | byte) != 0;
    let look_up = |byte: &u8| table[usize::from(*byte)];
    Planted {
        search: planted_with(|data| data.iter().position(|&byte| byte != 0).is_some()),
        look_up: planted_with(|data| data.iter().map(look_up).fold(0, u8::wrapping_add) != 0),
        nothing: planted_with(sum),
    }
}

fn planted_with(work: impl Fn(&[u8]) -> bool) -> Finding {
    least_of(REPETITIONS, |seed| {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut series = Vec::new();
        let mut secrets = Secrets::new(vec![0; SECTOR]);
        for _ in 0..MOST {
            let class = secrets.draw(&mut random);
            let start = Instant::now();
            black_box(work(black_box(&secrets.drawn)));
            series.push((class, nanoseconds(start)));
        }
        vec![("planted", series)]
    })
}

fn least_of(runs: usize, run: impl Fn(u64) -> Vec<Series>) -> Finding {
    let mut least = Finding {
        t: f64::INFINITY,
        of: "",
    };
    for seed in 0..runs {
        let worst = run(seed as u64)
            .iter()
            .map(|(of, durations)| Finding {
                t: largest_t(durations),
                of,
            })
            .max_by(|a, b| a.t.total_cmp(&b.t))
            .expect("something is measured");
        if worst.t < least.t {
            least = worst;
        }
        if least.t <= SUSPECT {
            break;
        }
    }
    least
}

/// Fixed and random data under one key.
fn by_data(spec: CipherSpec, backend: Backend, sectors: usize, seed: u64) -> [Series; 2] {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let key = Key::new(bytes(&mut random, spec.default_key_size()));
    let layout = SectorLayout::default();
    let cipher = spec.cipher(&key, layout, Some(backend)).expect("listed");
    let mut secrets = Secrets::new(bytes(&mut random, sectors * SECTOR));
    let mut series = [
        ("encryption by data", Vec::new()),
        ("decryption by data", Vec::new()),
    ];
    let mut data = vec![0; sectors * SECTOR];
    let begin = Instant::now();
    while goes_on(begin, series[0].1.len()) {
        let class = secrets.draw(&mut random);
        data.copy_from_slice(&secrets.drawn);
        let start = Instant::now();
        cipher.encrypt(IvSector::new(1), black_box(&mut data));
        series[0].1.push((class, nanoseconds(start)));
        data.copy_from_slice(&secrets.drawn);
        let start = Instant::now();
        cipher.decrypt(IvSector::new(1), black_box(&mut data));
        series[1].1.push((class, nanoseconds(start)));
    }
    series
}

/// Fixed and random keys over the same data.
fn by_key(spec: CipherSpec, backend: Backend, sectors: usize, seed: u64) -> [Series; 3] {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let plain = bytes(&mut random, sectors * SECTOR);
    let layout = SectorLayout::default();
    let mut secrets = Secrets::new(bytes(&mut random, spec.default_key_size()));
    let mut series = [
        ("key setup", Vec::new()),
        ("encryption by key", Vec::new()),
        ("decryption by key", Vec::new()),
    ];
    let mut data = plain.clone();
    let begin = Instant::now();
    while goes_on(begin, series[0].1.len()) {
        let class = secrets.draw(&mut random);
        let key = Key::from_slice(&secrets.drawn);
        let start = Instant::now();
        let cipher = spec.cipher(black_box(&key), layout, Some(backend));
        series[0].1.push((class, nanoseconds(start)));
        let cipher = cipher.expect("listed");
        // Each starts from the same data in the same state of the cache.
        data.copy_from_slice(&plain);
        let start = Instant::now();
        cipher.encrypt(IvSector::new(1), black_box(&mut data));
        series[1].1.push((class, nanoseconds(start)));
        data.copy_from_slice(&plain);
        let start = Instant::now();
        cipher.decrypt(IvSector::new(1), black_box(&mut data));
        series[2].1.push((class, nanoseconds(start)));
    }
    series
}

fn goes_on(begin: Instant, measured: usize) -> bool {
    measured < LEAST || measured < MOST && begin.elapsed() < LENGTH
}

/// A fixed secret and random ones.
struct Secrets {
    fixed: Vec<u8>,
    random: Vec<u8>,
    drawn: Vec<u8>,
}

impl Secrets {
    fn new(fixed: Vec<u8>) -> Self {
        Self {
            random: vec![0; fixed.len()],
            drawn: vec![0; fixed.len()],
            fixed,
        }
    }

    /// Draws a class, and a secret of it: the same work for both.
    fn draw(&mut self, random: &mut Xoshiro256PlusPlus) -> bool {
        random.fill_bytes(&mut self.random);
        let is_random = random.next_u64() >> 63 == 1;
        // Opaque, or the compiler makes two loops of the one below.
        let mask = black_box(u8::from(is_random).wrapping_neg());
        let both = self.fixed.iter().zip(&self.random);
        for (drawn, (fixed, random)) in self.drawn.iter_mut().zip(both) {
            *drawn = fixed & !mask | random & mask;
        }
        is_random
    }
}

fn bytes(random: &mut Xoshiro256PlusPlus, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    random.fill_bytes(&mut bytes);
    bytes
}

fn nanoseconds(start: Instant) -> u64 {
    start.elapsed().as_nanos() as u64
}
