//! [`Kdf`]: derives the key of a key slot or a header from a passphrase.
//!
//! A header states how much work that is, and any program may have written the header. Its costs
//! are compared with [`Limits`] before any of the work is done.

use crate::{Hash, VolumeError};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use cipher::Key;
use std::fmt;
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

/// The most work that a derivation may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Iterations of PBKDF2.
    pub iterations: u32,
    /// Memory of Argon2, KiB.
    pub memory_kib: u32,
    /// Lanes of Argon2.
    pub lanes: u32,
    /// Passes of Argon2 times its memory, KiB.
    pub filled_kib: u64,
    /// Iterations of PBKDF2 for all the keyslots together that a passphrase is
    /// tried on, and to verify what comes of each.
    pub all_iterations: u64,
    /// The same of what Argon2 fills, KiB.
    pub all_filled_kib: u64,
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
    /// The largest costs that cryptsetup and VeraCrypt can be asked for on purpose: half a minute
    /// or a few, but not hours. Memory and lanes are cryptsetup's own maxima. The totals allow 32
    /// key slots, which is LUKS2's maximum. Each of them may have been made with `--iter-time
    /// 10000` on a fast machine of today: 3.7 million iterations or 6 GiB in a second.
    fn default() -> Self {
        Self {
            iterations: 100_000_000,
            memory_kib: 4 << 20,
            lanes: 4,
            filled_kib: 256 << 20,
            all_iterations: 1_200_000_000,
            all_filled_kib: 2048 << 20,
            stop: Stop::NEVER,
        }
    }
}

/// RFC 9106, section 3.1.
const LEAST_SALT: usize = 8;
const LEAST_LANE_KIB: u32 = 8;
const LEAST_KEY: usize = 4;

impl Kdf {
    /// Derives a key of `length` bytes.
    ///
    /// # Errors
    /// [`VolumeError::KdfIterations`], [`VolumeError::KdfMemory`],
    /// [`VolumeError::KdfLanes`] and [`VolumeError::KdfFill`] if more than
    /// `limits` is asked for; [`VolumeError::KdfParameter`] if the standard
    /// has no such derivation; [`VolumeError::OutOfMemory`]; [`VolumeError::Stopped`] if `limits`
    /// say so.
    pub fn derive(
        &self,
        passphrase: &[u8],
        salt: &[u8],
        length: usize,
        limits: &Limits,
    ) -> Result<Key, VolumeError> {
        self.check(salt, length, limits)?;
        match limits.stop.0 {
            None => self.work(passphrase, salt, length),
            Some(stop) => self.apart(passphrase, salt, length, stop),
        }
    }

    /// The work in a thread of its own, which is left alone when `stop` is set: no library ends it.
    fn apart(
        self,
        passphrase: &[u8],
        salt: &[u8],
        length: usize,
        stop: &AtomicBool,
    ) -> Result<Key, VolumeError> {
        let (own, own_salt) = (Key::from_slice(passphrase), salt.to_vec());
        let (done, result) = mpsc::channel();
        let work = move || {
            // Nobody may wait for it any more.
            let _ = done.send(self.work(own.as_bytes(), &own_salt, length));
        };
        let Ok(thread) = std::thread::Builder::new().spawn(work) else {
            return self.work(passphrase, salt, length);
        };
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

    fn work(&self, passphrase: &[u8], salt: &[u8], length: usize) -> Result<Key, VolumeError> {
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
            true => Err(VolumeError::KdfParameter { what, got, least }),
            false => Ok(()),
        };
        match *self {
            Self::Pbkdf2 { iterations, .. } => {
                least("iterations", iterations.into(), 1)?;
                if iterations > limits.iterations {
                    return Err(VolumeError::KdfIterations {
                        iterations,
                        limit: limits.iterations,
                    });
                }
            }
            Self::Argon2 {
                time,
                memory_kib,
                lanes,
                ..
            } => {
                least("passes", time.into(), 1)?;
                least("lanes", lanes.into(), 1)?;
                if lanes > limits.lanes {
                    return Err(VolumeError::KdfLanes {
                        lanes,
                        limit: limits.lanes,
                    });
                }
                let least_kib = u64::from(lanes) * u64::from(LEAST_LANE_KIB);
                least("KiB of memory", memory_kib.into(), least_kib)?;
                least("bytes of salt", salt.len() as u64, LEAST_SALT as u64)?;
                least("bytes of key", length as u64, LEAST_KEY as u64)?;
                if memory_kib > limits.memory_kib {
                    return Err(VolumeError::KdfMemory {
                        memory_kib,
                        limit_kib: limits.memory_kib,
                    });
                }
                let filled_kib = u64::from(time) * u64::from(memory_kib);
                if filled_kib > limits.filled_kib {
                    return Err(VolumeError::KdfFill {
                        filled_kib,
                        limit_kib: limits.filled_kib,
                    });
                }
            }
        }
        Ok(())
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

/// The total cost of several derivations that may run one after the other.
#[derive(Default)]
pub(crate) struct Total {
    iterations: u64,
    filled_kib: u64,
}

impl Total {
    /// Adds the cost of `kdf`.
    pub(crate) const fn add(&mut self, kdf: &Kdf) {
        match *kdf {
            Kdf::Pbkdf2 { iterations, .. } => self.iterations += iterations as u64,
            Kdf::Argon2 {
                time, memory_kib, ..
            } => {
                let filled_kib = time as u64 * memory_kib as u64;
                self.filled_kib = self.filled_kib.saturating_add(filled_kib);
            }
        }
    }

    /// Refuses what is more than `limits` allow for all together.
    pub(crate) const fn check(&self, limits: &Limits) -> Result<(), VolumeError> {
        if self.iterations > limits.all_iterations {
            return Err(VolumeError::KdfAllIterations {
                iterations: self.iterations,
                limit: limits.all_iterations,
            });
        }
        if self.filled_kib > limits.all_filled_kib {
            return Err(VolumeError::KdfAllFill {
                filled_kib: self.filled_kib,
                limit_kib: limits.all_filled_kib,
            });
        }
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
