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

/// What is tried first; twice as much until it lasts long enough.
const FIRST_MEMORY_KIB: u32 = 32 << 10;

/// cryptsetup's least number of iterations.
const LEAST_ITERATIONS: u32 = 1000;

/// How long a derivation must last to tell the rate.
const LONG_ENOUGH: Duration = Duration::from_millis(250);

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

/// The machine that costs are found for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Cores that Argon2 may use.
    pub cores: u32,
    /// Bytes of memory; Argon2 takes half of it at most.
    pub memory: u64,
}

impl Machine {
    /// Argon2 with `time` passes over as much memory, and with as many lanes, as
    /// this machine gives: cryptsetup's limits at most.
    pub fn most_argon2(&self, variant: Argon2Variant, time: u32) -> Kdf {
        let half = u32::try_from(self.memory / 2 / 1024).unwrap_or(u32::MAX);
        Kdf::Argon2 {
            variant,
            time,
            memory_kib: MOST_MEMORY_KIB.min(half).max(LEAST_MEMORY_KIB),
            lanes: self.cores.clamp(1, MOST_LANES),
        }
    }
}

impl KdfKind {
    /// The derivation that takes about `target` on `machine`, by trying it;
    /// `now` is a clock that only goes forward.
    ///
    /// # Errors
    /// [`VolumeError::OutOfMemory`].
    pub fn calibrated(
        self,
        target: Duration,
        machine: Machine,
        now: &dyn Fn() -> Duration,
    ) -> Result<Kdf, VolumeError> {
        match self {
            Self::Pbkdf2(hash) => pbkdf2(hash, target, now),
            Self::Argon2(variant) => argon2(variant, target, machine, now),
        }
    }
}

/// As many iterations as take `target`, from a shorter run.
fn pbkdf2(hash: Hash, target: Duration, now: &dyn Fn() -> Duration) -> Result<Kdf, VolumeError> {
    let enough = LONG_ENOUGH.min(target).as_secs_f64();
    let mut iterations = LEAST_ITERATIONS;
    loop {
        let seconds = timed(Kdf::Pbkdf2 { hash, iterations }, now)?;
        if seconds >= enough {
            let wanted = f64::from(iterations) * target.as_secs_f64() / seconds;
            return Ok(Kdf::Pbkdf2 {
                hash,
                iterations: (wanted as u32).max(LEAST_ITERATIONS),
            });
        }
        iterations *= 2;
    }
}

/// The most memory that the least passes can fill in `target`, up to
/// cryptsetup's limit and half of the machine's; then as many passes.
fn argon2(
    variant: Argon2Variant,
    target: Duration,
    machine: Machine,
    now: &dyn Fn() -> Duration,
) -> Result<Kdf, VolumeError> {
    let bounds = machine.most_argon2(variant, LEAST_PASSES);
    let Kdf::Argon2 {
        memory_kib: most,
        lanes,
        ..
    } = bounds
    else {
        return Ok(bounds);
    };
    let with = |time, memory_kib| Kdf::Argon2 {
        variant,
        time,
        memory_kib,
        lanes,
    };
    let enough = LONG_ENOUGH.min(target).as_secs_f64();
    let mut memory_kib = most.min(FIRST_MEMORY_KIB);
    let rate = loop {
        let seconds = timed(with(LEAST_PASSES, memory_kib), now)?;
        if seconds >= enough || memory_kib == most {
            break seconds / f64::from(memory_kib);
        }
        memory_kib = most.min(2 * memory_kib);
    };
    // How much memory the least passes fill in the time, were there no end of it.
    let filled = target.as_secs_f64() / rate;
    Ok(match filled >= f64::from(most) {
        true => with(
            (f64::from(LEAST_PASSES) * filled / f64::from(most)) as u32,
            most,
        ),
        false => with(LEAST_PASSES, (filled as u32).max(LEAST_MEMORY_KIB)),
    })
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
    use std::time::Instant;

    const MACHINE: Machine = Machine {
        cores: 2,
        memory: 64 << 20,
    };

    #[test]
    fn costs_stay_within_the_bounds() {
        let start = Instant::now();
        let now = || start.elapsed();
        let target = Duration::from_millis(20);
        let kdf = KdfKind::Pbkdf2(Hash::Sha256).calibrated(target, MACHINE, &now);
        assert!(
            matches!(kdf, Ok(Kdf::Pbkdf2 { iterations, .. }) if iterations >= LEAST_ITERATIONS)
        );
        let kdf = KdfKind::Argon2(Argon2Variant::Id).calibrated(target, MACHINE, &now);
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
    fn a_fast_machine_gets_more_passes_and_a_slow_one_less_memory() {
        use std::cell::Cell;
        let ticks = Cell::new(Duration::ZERO);
        let cost = |step: Duration| {
            let now = || ticks.replace(ticks.get() + step);
            let target = Duration::from_secs(2);
            KdfKind::Argon2(Argon2Variant::I).calibrated(target, MACHINE, &now)
        };
        let fast = cost(Duration::from_millis(500)).unwrap();
        let slow = cost(Duration::from_secs(8)).unwrap();
        assert_eq!(fast.to_string(), "argon2i-16-32768-2");
        assert_eq!(slow.to_string(), "argon2i-4-8192-2");
    }
}
