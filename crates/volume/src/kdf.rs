//! [`Kdf`]: derives the key of a key slot or a header from a passphrase.
//!
//! A header states how much work that is, and any program may have written the header. Its costs
//! are compared with [`Limits`] before any of the work is done.

use crate::error::{TOO_MUCH, impossible};
use crate::{Hash, VolumeError};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use cipher::Key;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use zeroize::Zeroize;

/// A key derivation with its costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kdf {
    /// RFC 8018 with HMAC.
    Pbkdf2 {
        /// The hash of the HMAC.
        hash: Hash,
        /// Iterations for every digest's length of key.
        iterations: u32,
    },
    /// RFC 9106, version 1.3.
    Argon2 {
        /// How blocks are chosen.
        variant: Argon2Variant,
        /// Passes over the memory.
        time: u32,
        /// Memory, KiB: at least 8 for every lane.
        memory_kib: u32,
        /// Lanes, filled side by side if there are cores for them.
        lanes: u32,
    },
}

/// How Argon2 chooses the blocks that it mixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Argon2Variant {
    /// Independent of the passphrase: `argon2i`.
    I,
    /// Independent of it in the first half of the first pass: `argon2id`.
    Id,
}

impl Argon2Variant {
    /// cryptsetup's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::I => "argon2i",
            Self::Id => "argon2id",
        }
    }
}

/// The most work that a derivation may be, as [`Kdf::work`] counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Of one derivation.
    pub work: Duration,
    /// Of all the key slots together that a secret is tried on, and of verifying what comes of
    /// each.
    pub all_work: Duration,
    /// Memory of Argon2, KiB.
    pub memory_kib: u32,
    /// Lanes of Argon2.
    pub lanes: u32,
    /// What ends a derivation before it is done.
    pub stop: Stop,
}

/// A flag that ends derivations when it is set; none by default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stop(Option<&'static AtomicBool>);

impl Stop {
    /// No flag.
    pub const NEVER: Self = Self(None);

    /// This one.
    pub const fn when(flag: &'static AtomicBool) -> Self {
        Self(Some(flag))
    }

    /// The result of `work`, or [`VolumeError::Stopped`] as soon as the flag is set. The work is
    /// in a thread of its own then, which is left alone: no library ends it.
    pub(crate) fn run<T: Send + 'static>(
        self,
        work: impl Fn() -> Result<T, VolumeError> + Send + Sync + 'static,
    ) -> Result<T, VolumeError> {
        let Some(stop) = self.0 else { return work() };
        let (work, (done, result)) = (Arc::new(work), mpsc::channel());
        let apart = {
            let work = Arc::clone(&work);
            // Nobody may wait for it any more.
            move || drop(done.send(work()))
        };
        let Ok(thread) = std::thread::Builder::new().spawn(apart) else {
            return work();
        };
        drop(work);
        loop {
            match result.recv_timeout(LOOK) {
                Ok(result) => return result,
                Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                    return Err(VolumeError::Stopped);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => match thread.join() {
                    Err(panic) => std::panic::resume_unwind(panic),
                    Ok(()) => return Err(VolumeError::Stopped),
                },
            }
        }
    }
}

impl PartialEq for Stop {
    fn eq(&self, other: &Self) -> bool {
        self.0.map(std::ptr::from_ref) == other.0.map(std::ptr::from_ref)
    }
}

impl Eq for Stop {}

/// How often the flag is looked at.
const LOOK: Duration = Duration::from_millis(50);

impl Default for Limits {
    /// More than people ask for on purpose, and less than hours. Memory and lanes are cryptsetup's
    /// maxima, and one derivation has the time of 64 passes over that memory. The total allows 32
    /// key slots, which is LUKS2's maximum. Each of them may have been made with `--iter-time 10000`
    /// on a fast machine of today: 3.7 million iterations or 6 GiB in a second.
    fn default() -> Self {
        Self {
            work: Duration::from_secs(188),
            all_work: Duration::from_secs(1500),
            memory_kib: 4 << 20,
            lanes: 4,
            stop: Stop::NEVER,
        }
    }
}

impl Limits {
    /// Refuses one derivation that is more work than this.
    pub(crate) fn check(&self, work: Duration) -> Result<(), VolumeError> {
        match work > self.work {
            true => Err(VolumeError::KdfWork {
                work,
                limit: self.work,
            }),
            false => Ok(()),
        }
    }

    /// Refuses derivations that are more work together, one after the other, than this.
    pub(crate) fn check_all(
        &self,
        works: impl Iterator<Item = Duration>,
    ) -> Result<(), VolumeError> {
        let work = works.fold(Duration::ZERO, Duration::saturating_add);
        match work > self.all_work {
            true => Err(impossible(
                format!(
                    "all key slots together take about {} s on one core, and the limit is {} s",
                    work.as_secs(),
                    self.all_work.as_secs()
                ),
                "Give the `key_slot` of your passphrase, so that no other keyslot is tried.",
            )),
            false => Ok(()),
        }
    }
}

/// The error of a derivation that needs this.
fn too_much(needed: String) -> VolumeError {
    impossible(format!("the key derivation needs {needed}"), TOO_MUCH)
}

/// The time in which Argon2 fills a KiB, nanoseconds.
const FILL_NS: u64 = 700;

/// RFC 9106, section 3.1.
const LEAST_SALT: usize = 8;
const LEAST_LANE_KIB: u32 = 8;
const LEAST_KEY: usize = 4;

impl Kdf {
    /// Derives a key of `length` bytes.
    ///
    /// # Errors
    /// [`VolumeError::KdfWork`] and [`VolumeError::Impossible`] if more than `limits` is asked for or
    /// the standard has no such derivation; [`VolumeError::OutOfMemory`]; [`VolumeError::Stopped`] if
    /// `limits` say so.
    pub fn derive(
        &self,
        passphrase: &[u8],
        salt: &[u8],
        length: usize,
        limits: &Limits,
    ) -> Result<Key, VolumeError> {
        self.check(salt, length, limits)?;
        let (kdf, own, salt) = (*self, Key::from_slice(passphrase), salt.to_vec());
        limits
            .stop
            .run(move || kdf.derived(own.as_bytes(), &salt, length))
    }

    fn derived(&self, passphrase: &[u8], salt: &[u8], length: usize) -> Result<Key, VolumeError> {
        Key::filled(length, |key| match *self {
            Self::Pbkdf2 { hash, iterations } => {
                hash.pbkdf2(passphrase, salt, iterations, key);
                Ok(())
            }
            Self::Argon2 { .. } => self.argon2(passphrase, salt, key),
        })
    }

    /// Refuses what [`derive`](Self::derive) would refuse, before any work is done.
    pub(crate) fn check(
        &self,
        salt: &[u8],
        length: usize,
        limits: &Limits,
    ) -> Result<(), VolumeError> {
        let least = |what, got: u64, least: u64| match got < least {
            true => Err(impossible(
                format!("the key derivation has {got} {what}, and the minimum is {least}"),
                format!("Give at least {least} {what}. A header with less is damaged."),
            )),
            false => Ok(()),
        };
        match *self {
            Self::Pbkdf2 { iterations, .. } => least("iterations", iterations.into(), 1)?,
            Self::Argon2 {
                time,
                memory_kib,
                lanes,
                ..
            } => {
                least("passes", time.into(), 1)?;
                least("lanes", lanes.into(), 1)?;
                if lanes > limits.lanes {
                    let limit = limits.lanes;
                    return Err(too_much(format!("{lanes} lanes, and the limit is {limit}")));
                }
                let least_kib = u64::from(lanes) * u64::from(LEAST_LANE_KIB);
                least("KiB of memory", memory_kib.into(), least_kib)?;
                least("bytes of salt", salt.len() as u64, LEAST_SALT as u64)?;
                least("bytes of key", length as u64, LEAST_KEY as u64)?;
                if memory_kib > limits.memory_kib {
                    let limit = limits.memory_kib;
                    let needed = format!("{memory_kib} KiB of memory, and the limit is {limit}");
                    return Err(too_much(needed));
                }
            }
        }
        limits.check(self.work(length))
    }

    /// About how long it takes to derive a key of `length` bytes on one core of a machine of 2020.
    pub fn work(&self, length: usize) -> Duration {
        let parts = match *self {
            Self::Pbkdf2 { hash, .. } => length.div_ceil(hash.digest_bytes()),
            Self::Argon2 { .. } => 1,
        };
        let parts = u32::try_from(parts).unwrap_or(u32::MAX);
        self.part_work().saturating_mul(parts)
    }

    /// The same for one of its parts, which are as long as a digest.
    pub(crate) fn part_work(&self) -> Duration {
        let (each_ns, steps) = match *self {
            Self::Pbkdf2 { hash, iterations } => (hash.iteration_ns(), u64::from(iterations)),
            Self::Argon2 {
                time, memory_kib, ..
            } => (FILL_NS, u64::from(time) * u64::from(memory_kib)),
        };
        Duration::from_nanos(steps.saturating_mul(each_ns))
    }

    /// The memory that it fills, KiB.
    pub(crate) const fn memory_kib(&self) -> u32 {
        match *self {
            Self::Pbkdf2 { .. } => 0,
            Self::Argon2 { memory_kib, .. } => memory_kib,
        }
    }

    fn argon2(&self, passphrase: &[u8], salt: &[u8], key: &mut [u8]) -> Result<(), VolumeError> {
        let Self::Argon2 {
            variant,
            time,
            memory_kib,
            lanes,
        } = *self
        else {
            unreachable!("called for Argon2 only");
        };
        let algorithm = match variant {
            Argon2Variant::I => Algorithm::Argon2i,
            Argon2Variant::Id => Algorithm::Argon2id,
        };
        let params = Params::new(memory_kib, time, lanes, Some(key.len()));
        let params = params.expect("the parameters were checked");
        let mut memory = Memory::new(params.block_count(), memory_kib)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        cipher::in_threads(cores.min(lanes as usize), || {
            Argon2::new(algorithm, Version::V0x13, params)
                .hash_password_into_with_memory(passphrase, salt, key, &mut memory.0[..])
                .expect("the parameters were checked");
        })?;
        Ok(())
    }
}

/// Argon2's memory: refused rather than fatal if there is not enough, and
/// wiped at the end, because the key can be computed from it.
struct Memory(Vec<Block>);

impl Memory {
    fn new(blocks: usize, memory_kib: u32) -> Result<Self, VolumeError> {
        let mut memory = Vec::new();
        memory
            .try_reserve_exact(blocks)
            .map_err(|_| VolumeError::OutOfMemory { memory_kib })?;
        memory.resize(blocks, Block::new());
        Ok(Self(memory))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        for block in &mut self.0 {
            block.zeroize();
        }
    }
}

/// `pbkdf2-sha512-500000`, `argon2id-4-1048576-4`.
impl fmt::Display for Kdf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Pbkdf2 { hash, iterations } => write!(f, "pbkdf2-{hash}-{iterations}"),
            Self::Argon2 {
                variant,
                time,
                memory_kib,
                lanes,
            } => write!(f, "{}-{time}-{memory_kib}-{lanes}", variant.name()),
        }
    }
}
