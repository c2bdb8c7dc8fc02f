//! Unlocking as the volume formats do it: the key derivations with the costs
//! that LUKS, VeraCrypt and TrueCrypt give them.

use crate::clock::Clock;
use crate::error::LabError;
use crate::record;
use std::hint::black_box;
use std::time::Duration;
use volume::{Argon2Variant, Hash, Kdf, KdfKind, Limits, Machine};

/// The duration to which cryptsetup calibrates an unlock (`--iter-time`), ms.
pub const ITER_TIME_MS: u32 = 2000;

/// A key of `aes-xts-plain64` with 512 bits, what all three create by default.
const XTS_KEY: usize = 64;

/// A key of 256 bits.
const BENCHMARK_KEY: usize = 32;

/// VeraCrypt and TrueCrypt derive the keys of their longest cascade and try
/// every cipher with them.
const CASCADE_KEYS: usize = 192;

/// How a format unlocks, before its costs are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// Its name as a workload, `veracrypt-pbkdf2-sha512`.
    pub name: &'static str,
    /// The format, in the contract's words; empty for a derivation that belongs to no format.
    pub format: &'static str,
    cost: Cost,
    /// Bytes of key that unlocking derives.
    unlock_bytes: usize,
}

/// The way in which the costs are determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cost {
    Fixed(Kdf),
    /// Costs that are calibrated to take the requested time on this machine.
    Calibrated(KdfKind),
}

/// Every recipe: the first is what noise is measured with, so it lasts long
/// enough and not too long.
pub const RECIPES: &[Recipe] = &[
    veracrypt("veracrypt-pbkdf2-sha512", Hash::Sha512, 500_000),
    veracrypt("veracrypt-pbkdf2-sha256", Hash::Sha256, 500_000),
    veracrypt("veracrypt-pbkdf2-whirlpool", Hash::Whirlpool, 500_000),
    veracrypt("veracrypt-pbkdf2-blake2s-256", Hash::Blake2s256, 500_000),
    veracrypt("veracrypt-pbkdf2-stribog512", Hash::Streebog512, 500_000),
    veracrypt("veracrypt-pbkdf2-ripemd160", Hash::Ripemd160, 655_331),
    veracrypt("veracrypt-system-pbkdf2-sha256", Hash::Sha256, 200_000),
    veracrypt(
        "veracrypt-system-pbkdf2-blake2s-256",
        Hash::Blake2s256,
        200_000,
    ),
    veracrypt(
        "veracrypt-system-pbkdf2-ripemd160",
        Hash::Ripemd160,
        327_661,
    ),
    Recipe {
        name: "veracrypt-argon2id",
        format: "veracrypt",
        cost: Cost::Fixed(Kdf::Argon2 {
            variant: Argon2Variant::Id,
            time: 6,
            memory_kib: 416 << 10,
            lanes: 1,
        }),
        unlock_bytes: CASCADE_KEYS,
    },
    truecrypt("truecrypt-pbkdf2-sha512", Hash::Sha512, 1000),
    truecrypt("truecrypt-pbkdf2-whirlpool", Hash::Whirlpool, 1000),
    truecrypt("truecrypt-pbkdf2-ripemd160", Hash::Ripemd160, 2000),
    truecrypt("truecrypt-pbkdf2-sha1", Hash::Sha1, 2000),
    truecrypt("truecrypt-system-pbkdf2-ripemd160", Hash::Ripemd160, 1000),
    luks(
        "luks1-pbkdf2-sha1",
        "luks1",
        Cost::Calibrated(KdfKind::Pbkdf2(Hash::Sha1)),
    ),
    luks(
        "luks1-pbkdf2-sha256",
        "luks1",
        Cost::Calibrated(KdfKind::Pbkdf2(Hash::Sha256)),
    ),
    luks(
        "luks1-pbkdf2-sha512",
        "luks1",
        Cost::Calibrated(KdfKind::Pbkdf2(Hash::Sha512)),
    ),
    luks(
        "luks1-pbkdf2-ripemd160",
        "luks1",
        Cost::Calibrated(KdfKind::Pbkdf2(Hash::Ripemd160)),
    ),
    luks(
        "luks1-pbkdf2-whirlpool",
        "luks1",
        Cost::Calibrated(KdfKind::Pbkdf2(Hash::Whirlpool)),
    ),
    luks(
        "luks2-argon2id",
        "luks2",
        Cost::Calibrated(KdfKind::Argon2(Argon2Variant::Id)),
    ),
    luks(
        "luks2-argon2i",
        "luks2",
        Cost::Calibrated(KdfKind::Argon2(Argon2Variant::I)),
    ),
];

/// The derivations that `cryptsetup benchmark` runs, by its names, with keys of 256 bits.
pub const BENCHMARK: &[Recipe] = &[
    pbkdf2("pbkdf2-sha1", Hash::Sha1),
    pbkdf2("pbkdf2-sha256", Hash::Sha256),
    pbkdf2("pbkdf2-sha512", Hash::Sha512),
    pbkdf2("pbkdf2-ripemd160", Hash::Ripemd160),
    pbkdf2("pbkdf2-whirlpool", Hash::Whirlpool),
    Recipe {
        unlock_bytes: BENCHMARK_KEY,
        ..luks(
            "argon2i",
            "",
            Cost::Calibrated(KdfKind::Argon2(Argon2Variant::I)),
        )
    },
    Recipe {
        unlock_bytes: BENCHMARK_KEY,
        ..luks(
            "argon2id",
            "",
            Cost::Calibrated(KdfKind::Argon2(Argon2Variant::Id)),
        )
    },
];

/// Enough iterations to take a measurable time; the result is their number per second.
const fn pbkdf2(name: &'static str, hash: Hash) -> Recipe {
    let cost = Cost::Fixed(Kdf::Pbkdf2 {
        hash,
        iterations: 20_000,
    });
    Recipe {
        unlock_bytes: BENCHMARK_KEY,
        ..luks(name, "", cost)
    }
}

const fn veracrypt(name: &'static str, hash: Hash, iterations: u32) -> Recipe {
    Recipe {
        name,
        format: "veracrypt",
        cost: Cost::Fixed(Kdf::Pbkdf2 { hash, iterations }),
        unlock_bytes: CASCADE_KEYS,
    }
}

const fn truecrypt(name: &'static str, hash: Hash, iterations: u32) -> Recipe {
    Recipe {
        format: "truecrypt",
        ..veracrypt(name, hash, iterations)
    }
}

const fn luks(name: &'static str, format: &'static str, cost: Cost) -> Recipe {
    Recipe {
        name,
        format,
        cost,
        unlock_bytes: XTS_KEY,
    }
}

impl Recipe {
    /// Settles the costs: at once if the format fixes them, or in some seconds by calibrating them
    /// to `iter_time` ms. `cores` and `memory` bytes are the machine's.
    ///
    /// # Errors
    /// [`LabError`] if memory is too small.
    pub fn prepare(&self, cores: u32, memory: u64, iter_time: u32) -> Result<Unlock, LabError> {
        let kdf = match self.cost {
            Cost::Fixed(kdf) => kdf,
            Cost::Calibrated(kind) => {
                let clock = Clock::get();
                let start = clock.now();
                let now = || Duration::from_secs_f64(clock.seconds(clock.now() - start));
                let target = Duration::from_millis(iter_time.into());
                kind.calibrated(target, Machine::new(cores, memory), &now)?
            }
        };
        Ok(Unlock {
            recipe: *self,
            kdf,
            iter_time,
        })
    }

    /// Whether the costs are found on this machine.
    pub fn is_calibrated(&self) -> bool {
        !matches!(self.cost, Cost::Fixed(_))
    }
}

/// Derives a key from a passphrase that `nth` changes, and drops it.
fn derive(kdf: Kdf, bytes: usize, nth: u64) -> Result<(), LabError> {
    let mut passphrase = *b"correct horse 00000000";
    passphrase[14..].copy_from_slice(&nth.to_le_bytes());
    let key = kdf.derive(
        black_box(&passphrase),
        &[0x5a; 64],
        bytes,
        &Limits::default(),
    )?;
    black_box(key.as_bytes());
    Ok(())
}

/// A format's derivation with its costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unlock {
    /// The recipe that it was made from.
    pub recipe: Recipe,
    kdf: Kdf,
    /// The requested duration if the costs are calibrated, ms.
    iter_time: u32,
}

/// The purpose of a derivation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The owner opens the volume, alone on the machine.
    Unlock,
    /// An attacker tries passphrases, on all cores at once.
    Guess,
}

impl Purpose {
    /// The word in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unlock => "unlock",
            Self::Guess => "guess",
        }
    }
}

impl Unlock {
    /// Bytes of key that `purpose` needs. A guess at PBKDF2 ends with the key
    /// of one cipher; Argon2 makes keys of other lengths otherwise.
    pub fn key_bytes(&self, purpose: Purpose) -> usize {
        match (purpose, self.kdf) {
            (Purpose::Guess, Kdf::Pbkdf2 { .. }) => XTS_KEY,
            _ => self.recipe.unlock_bytes,
        }
    }

    /// Derives one key; `nth` makes the passphrases differ.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn once(&self, purpose: Purpose, nth: u64) -> Result<(), LabError> {
        derive(self.kdf, self.key_bytes(purpose), nth)
    }

    /// How many derivations run at once for `purpose`: one, or one a core as
    /// far as half of the `free` bytes of memory go.
    pub fn at_once(&self, purpose: Purpose, cores: u32, free: u64) -> u32 {
        match (purpose, self.kdf) {
            (Purpose::Unlock, _) => 1,
            (Purpose::Guess, Kdf::Pbkdf2 { .. }) => cores,
            (Purpose::Guess, Kdf::Argon2 { memory_kib, .. }) => {
                let fit = free / 2 / (u64::from(memory_kib) * 1024);
                cores.min(u32::try_from(fit).unwrap_or(u32::MAX)).max(1)
            }
        }
    }

    /// The costs as a record keeps them.
    pub fn record(&self) -> record::Kdf {
        let calibrated_ms = self.recipe.is_calibrated().then_some(self.iter_time);
        match self.kdf {
            Kdf::Pbkdf2 { hash, iterations } => record::Kdf {
                name: "pbkdf2".to_owned(),
                hash: Some(hash.name().to_owned()),
                iterations,
                memory_kib: 0,
                lanes: 1,
                calibrated_ms,
            },
            Kdf::Argon2 {
                variant,
                time,
                memory_kib,
                lanes,
            } => record::Kdf {
                name: variant.name().to_owned(),
                hash: None,
                iterations: time,
                memory_kib,
                lanes,
                calibrated_ms,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn recipes_have_names_of_their_own_and_begin_with_their_format() {
        let names: BTreeSet<&str> = RECIPES.iter().map(|recipe| recipe.name).collect();
        assert_eq!(names.len(), RECIPES.len());
        for recipe in RECIPES {
            assert!(recipe.name.starts_with(recipe.format), "{}", recipe.name);
        }
    }

    #[test]
    fn fixed_costs_are_the_formats() {
        let cost = |name: &str| {
            let recipe = RECIPES.iter().find(|recipe| recipe.name == name).unwrap();
            let unlock = recipe.prepare(2, 1 << 30, ITER_TIME_MS).unwrap();
            let kdf = unlock.record();
            assert_eq!(kdf.calibrated_ms, None);
            (kdf.iterations, kdf.memory_kib, kdf.lanes)
        };
        assert_eq!(cost("veracrypt-pbkdf2-sha512"), (500_000, 0, 1));
        assert_eq!(cost("veracrypt-pbkdf2-ripemd160"), (655_331, 0, 1));
        assert_eq!(cost("veracrypt-system-pbkdf2-sha256"), (200_000, 0, 1));
        assert_eq!(cost("veracrypt-argon2id"), (6, 425_984, 1));
        assert_eq!(cost("truecrypt-pbkdf2-sha1"), (2000, 0, 1));
        assert_eq!(cost("truecrypt-system-pbkdf2-ripemd160"), (1000, 0, 1));
    }

    #[test]
    fn guesses_at_once_fit_the_memory() {
        let unlock = |memory_kib| Unlock {
            iter_time: ITER_TIME_MS,
            recipe: RECIPES[0],
            kdf: Kdf::Argon2 {
                variant: Argon2Variant::Id,
                time: 4,
                memory_kib,
                lanes: 4,
            },
        };
        let gib: u64 = 1 << 30;
        for (memory_kib, free, guesses) in [
            (1 << 20, 64 * gib, 8),
            (1 << 20, 8 * gib, 4),
            (1 << 20, gib, 1),
            (64, gib, 8),
        ] {
            assert_eq!(unlock(memory_kib).at_once(Purpose::Guess, 8, free), guesses);
            assert_eq!(unlock(memory_kib).at_once(Purpose::Unlock, 8, free), 1);
        }
        let pbkdf2 = RECIPES[0].prepare(8, gib, ITER_TIME_MS).unwrap();
        assert_eq!(pbkdf2.at_once(Purpose::Guess, 8, 0), 8);
        assert_eq!(pbkdf2.key_bytes(Purpose::Unlock), 192);
        assert_eq!(pbkdf2.key_bytes(Purpose::Guess), 64);
        assert_eq!(unlock(64).key_bytes(Purpose::Guess), 192);
    }
}
