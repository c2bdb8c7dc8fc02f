//! Costs of a key derivation that take a given time here: `--iter-time`.

use crate::{Argon2Variant, Hash, Kdf, Limits, VolumeError};
use std::time::Duration;

/// cryptsetup's defaults and bounds for Argon2 (`lib/internal.h`,
/// `lib/luks2/luks2_json_metadata.c`): at least so many passes, at most so much
/// memory and so many lanes.
const LEAST_PASSES: u32 = 4;
const MOST_MEMORY_KIB: u32 = 1 << 20;
const MOST_LANES: u32 = 4;
const LEAST_MEMORY_KIB: u32 = 64;

/// The memory of the first trial, KiB.
const FIRST_MEMORY_KIB: u32 = 32 << 10;

/// Trials with different costs, at most.
const MOST_TRIALS: u32 = 8;

/// The shortest target of a calibration. A shorter one is raised to it.
const SHORTEST: Duration = Duration::from_millis(1);

/// By how much of what was asked for the time may differ.
const NEAR: f64 = 0.1;

/// One trial fills at most so many times what the one before did: what takes
/// far too long would have to be waited for.
const MOST_STEP: f64 = 4.0;

/// Time is this power of what is filled, within reason: two trials, one of
/// which was disturbed, would say anything.
const LEAST_EXPONENT: f64 = 1.0;
const MOST_EXPONENT: f64 = 1.5;

/// cryptsetup's least number of iterations.
const LEAST_ITERATIONS: u32 = 1000;

/// How long a derivation with PBKDF2 must last to tell the rate, and how often
/// it is tried.
const LONG_ENOUGH: Duration = Duration::from_millis(250);
const PBKDF2_RUNS: u32 = 3;

/// A key of `aes-xts-plain64` with 512 bits, what is created by default.
const KEY_BYTES: usize = 64;

/// A key derivation whose costs are to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KdfKind {
    /// PBKDF2 with this hash.
    Pbkdf2(Hash),
    /// Argon2.
    Argon2(Argon2Variant),
}

/// Limits on what Argon2 may use of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Lanes, each of which a core fills.
    pub lanes: u32,
    /// The most memory, KiB.
    pub memory_kib: u32,
}

impl Machine {
    /// A machine of so many cores and bytes of memory, with cryptsetup's limits:
    /// half of the memory and 1 GiB, and 4 lanes.
    pub fn new(cores: u32, memory: u64) -> Self {
        let half = u32::try_from(memory / 2 / 1024).unwrap_or(u32::MAX);
        Self {
            lanes: cores.clamp(1, MOST_LANES),
            memory_kib: MOST_MEMORY_KIB.min(half).max(LEAST_MEMORY_KIB),
        }
    }

    /// This machine. Where the system does not say how much memory there is, it is taken for 1 GiB.
    pub fn here() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        Self::new(cores, total_memory().unwrap_or(1 << 30))
    }

    /// Argon2 with `time` passes over all of that.
    pub const fn most_argon2(&self, variant: Argon2Variant, time: u32) -> Kdf {
        Kdf::Argon2 {
            variant,
            time,
            memory_kib: self.memory_kib,
            lanes: self.lanes,
        }
    }
}

/// Bytes of memory that this machine has, where Linux says so.
fn total_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}

impl KdfKind {
    /// The kind of that name, `pbkdf2`, `argon2i` or `argon2id`: cryptsetup's, with its hash.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "pbkdf2" => Some(Self::Pbkdf2(Hash::Sha256)),
            "argon2i" => Some(Self::Argon2(Argon2Variant::I)),
            "argon2id" => Some(Self::Argon2(Argon2Variant::Id)),
            _ => None,
        }
    }

    /// The derivation that takes about `target` on `machine`, found by trials. `now` is a clock
    /// that only goes forward. The trials take two or three times `target`, and more if other
    /// programs use the machine.
    ///
    /// # Errors
    /// [`VolumeError::OutOfMemory`], [`VolumeError::Impossible`] if the
    /// machine gives too little, and the other errors of [`Kdf::derive`].
    pub fn calibrated(
        self,
        target: Duration,
        machine: Machine,
        now: &dyn Fn() -> Duration,
    ) -> Result<Kdf, VolumeError> {
        let timed = |kdf| timed(kdf, now);
        match self {
            Self::Pbkdf2(hash) => pbkdf2(hash, target, &timed),
            Self::Argon2(variant) => argon2(variant, target, machine, &timed),
        }
    }
}

/// Tries a derivation: the seconds that it takes.
type Trial<'a> = &'a dyn Fn(Kdf) -> Result<f64, VolumeError>;

/// The number of iterations that takes `target`, from a shorter run. The best of a few runs counts,
/// because other programs on the machine only make it longer.
fn pbkdf2(hash: Hash, target: Duration, timed: Trial) -> Result<Kdf, VolumeError> {
    let enough = LONG_ENOUGH.min(target).as_secs_f64();
    let mut iterations = LEAST_ITERATIONS;
    loop {
        let kdf = Kdf::Pbkdf2 { hash, iterations };
        let mut seconds = timed(kdf)?;
        if seconds >= enough {
            for _ in 1..PBKDF2_RUNS {
                seconds = seconds.min(timed(kdf)?);
            }
            let wanted = f64::from(iterations) * target.as_secs_f64() / seconds;
            return Ok(Kdf::Pbkdf2 {
                hash,
                iterations: (wanted as u32).max(LEAST_ITERATIONS),
            });
        }
        iterations *= 2;
    }
}

/// The most memory that the least passes can fill in `target`, up to what the
/// machine gives; then as many passes.
///
/// A page costs more the more of them there are (caches, address translation):
/// 1 GiB takes twice as long for a KiB as 32 MiB. So what is found is tried
/// itself, and what is tried next follows from the last two trials.
fn argon2(
    variant: Argon2Variant,
    target: Duration,
    machine: Machine,
    timed: Trial,
) -> Result<Kdf, VolumeError> {
    let target = target.max(SHORTEST).as_secs_f64();
    let most = f64::from(machine.memory_kib);
    let least_passes = f64::from(LEAST_PASSES);
    // Passes and memory, for so many KiB that are filled in all passes.
    let with = |filled: f64| Kdf::Argon2 {
        variant,
        time: (filled / most).max(least_passes) as u32,
        memory_kib: (filled / least_passes)
            .max(f64::from(LEAST_MEMORY_KIB))
            .min(most) as u32,
        lanes: machine.lanes,
    };
    let mut filled = least_passes * most.min(f64::from(FIRST_MEMORY_KIB));
    let mut before: Option<(f64, f64)> = None;
    let mut nearest: Option<(f64, Kdf)> = None;
    for _ in 0..MOST_TRIALS {
        let kdf = with(filled);
        let mut seconds = timed(kdf)?;
        if seconds > target * (1.0 + NEAR) {
            seconds = seconds.min(timed(kdf)?);
        }
        let off = (seconds / target - 1.0).abs();
        if nearest.is_none_or(|(least, _)| off < least) {
            nearest = Some((off, kdf));
        }
        let exponent = before.map_or(1.0, |(filled_before, seconds_before)| {
            (seconds / seconds_before).ln() / (filled / filled_before).ln()
        });
        let exponent = exponent.clamp(LEAST_EXPONENT, MOST_EXPONENT);
        let step = (target / seconds).powf(1.0 / exponent).min(MOST_STEP);
        before = Some((filled, seconds));
        filled *= step;
        // Nearer cannot be had, or need not.
        if off <= NEAR || with(filled) == kdf {
            break;
        }
    }
    Ok(nearest.map_or_else(|| with(filled), |(_, kdf)| kdf))
}

/// Seconds that one derivation takes.
fn timed(kdf: Kdf, now: &dyn Fn() -> Duration) -> Result<f64, VolumeError> {
    let start = now();
    kdf.derive(b"correct horse", &[0x5a; 64], KEY_BYTES, &Limits::default())?;
    Ok((now() - start).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};
    use std::time::Instant;

    const TARGET: Duration = Duration::from_secs(2);

    #[test]
    fn costs_stay_within_the_bounds() {
        let start = Instant::now();
        let now = || start.elapsed();
        let target = Duration::from_millis(20);
        let machine = Machine::new(2, 64 << 20);
        let kdf = KdfKind::Pbkdf2(Hash::Sha256).calibrated(target, machine, &now);
        assert!(
            matches!(kdf, Ok(Kdf::Pbkdf2 { iterations, .. }) if iterations >= LEAST_ITERATIONS)
        );
        let kdf = KdfKind::Argon2(Argon2Variant::Id).calibrated(target, machine, &now);
        let Ok(Kdf::Argon2 {
            time,
            memory_kib,
            lanes,
            ..
        }) = kdf
        else {
            panic!("{kdf:?}");
        };
        assert!(time >= LEAST_PASSES && lanes == 2);
        assert!((LEAST_MEMORY_KIB..=32 << 10).contains(&memory_kib));
    }

    #[test]
    fn a_machine_gives_half_its_memory() {
        let few = Machine::new(1, 100 << 20);
        assert_eq!((few.lanes, few.memory_kib), (1, 50 << 10));
        let many = Machine::new(64, 1 << 40);
        assert_eq!((many.lanes, many.memory_kib), (4, 1 << 20));
    }

    /// Seconds of a derivation if 128 MiB in all passes take `rate`, and more
    /// memory takes longer than in proportion, as it does.
    fn model(kdf: Kdf, rate: f64) -> f64 {
        let Kdf::Argon2 {
            time, memory_kib, ..
        } = kdf
        else {
            panic!("{kdf}");
        };
        let memory = f64::from(memory_kib) / f64::from(FIRST_MEMORY_KIB);
        rate * f64::from(time) / f64::from(LEAST_PASSES) * memory.powf(1.25)
    }

    #[test]
    fn what_is_found_takes_the_time_that_was_asked_for() {
        for (memory, rate) in [
            (16_u64 << 30, 0.01),
            (16 << 30, 0.03),
            (16 << 30, 0.1),
            (16 << 30, 0.6),
            (16 << 30, 5.0),
            (16 << 30, 60.0),
            (256 << 20, 0.001),
            (256 << 20, 0.1),
        ] {
            let spent = Cell::new(0.0);
            let machine = Machine::new(4, memory);
            let found = argon2(Argon2Variant::Id, TARGET, machine, &|kdf| {
                let seconds = model(kdf, rate);
                spent.set(spent.get() + seconds);
                Ok(seconds)
            });
            let kdf = found.unwrap();
            let got = model(kdf, rate);
            // A whole pass over all memory is the smallest step there.
            assert!((1.6..2.2).contains(&got), "{kdf}: {got}");
            let first = model(machine.most_argon2(Argon2Variant::Id, LEAST_PASSES), rate);
            assert!(spent.get() < 8.0 + 2.5 * first.min(rate), "{}", spent.get());
        }
    }

    /// Every third trial takes twice as long, because of others.
    #[test]
    fn somebody_else_on_the_machine_is_not_taken_for_its_pace() {
        for first in 0..3 {
            let trials = Cell::new(first);
            let machine = Machine::new(4, 16 << 30);
            let found = argon2(Argon2Variant::Id, TARGET, machine, &|kdf| {
                trials.set(trials.get() + 1);
                let disturbed = trials.get() % 3 == 0;
                Ok(model(kdf, 0.1) * if disturbed { 2.0 } else { 1.0 })
            });
            let got = model(found.unwrap(), 0.1);
            assert!((1.6..2.2).contains(&got), "{got}");
            let runs = RefCell::new(0);
            let found = pbkdf2(Hash::Sha256, TARGET, &|kdf| {
                *runs.borrow_mut() += 1;
                let Kdf::Pbkdf2 { iterations, .. } = kdf else {
                    panic!("{kdf}");
                };
                let disturbed = (*runs.borrow() + first) % 3 == 0;
                Ok(f64::from(iterations) * if disturbed { 2e-6 } else { 1e-6 })
            });
            assert_eq!(found.unwrap().to_string(), "pbkdf2-sha256-2000000");
        }
    }
}
