//! [`Prf`]: what a header key is derived with, and at what cost.

use super::{Family, Place};
use crate::error::impossible;
use crate::{Argon2Variant, Format, Hash, Instead, Kdf, VolumeError};
use std::fmt;

/// A key derivation by VeraCrypt's word for it; its costs follow from the
/// family, the place and the PIM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Prf {
    /// PBKDF2 with HMAC of this hash.
    Pbkdf2(Hash),
    /// Argon2id: VeraCrypt from 1.26.27 on.
    Argon2id,
}

/// Header keys derived at once, bytes: those of the longest cascade in XTS.
pub(super) const LONGEST_HEADER_KEY: usize = 192;

/// The largest PIM, so that no number of iterations overflows in VeraCrypt.
const MOST_PIM: u32 = 2_147_468;
const MOST_SYSTEM_PIM: u32 = 65_535;

impl Prf {
    /// All of a family's, the likely ones first.
    pub const fn all(family: Family) -> &'static [Self] {
        match family {
            Family::TrueCrypt => &[
                Self::Pbkdf2(Hash::Ripemd160),
                Self::Pbkdf2(Hash::Sha512),
                Self::Pbkdf2(Hash::Whirlpool),
                Self::Pbkdf2(Hash::Sha1),
            ],
            Family::VeraCrypt => &[
                Self::Pbkdf2(Hash::Sha512),
                Self::Pbkdf2(Hash::Sha256),
                Self::Argon2id,
                Self::Pbkdf2(Hash::Blake2s256),
                Self::Pbkdf2(Hash::Whirlpool),
                Self::Pbkdf2(Hash::Streebog512),
                Self::Pbkdf2(Hash::Ripemd160),
            ],
        }
    }

    /// The name on the command line and in records, cryptsetup's.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pbkdf2(hash) => hash.name(),
            Self::Argon2id => Argon2Variant::Id.name(),
        }
    }

    /// The one of that name, cryptsetup's or VeraCrypt's, if it is known.
    pub fn named(name: &str) -> Option<Self> {
        // As VeraCrypt's windows and its command line write them.
        let small = name.to_lowercase();
        let name = match small.strip_prefix("hmac-").unwrap_or(&small) {
            "blake2s" => Hash::Blake2s256.name(),
            "streebog" => Hash::Streebog512.name(),
            "sha-512" => Hash::Sha512.name(),
            "sha-256" => Hash::Sha256.name(),
            "ripemd-160" => Hash::Ripemd160.name(),
            "argon2" => Self::Argon2id.name(),
            other => other,
        };
        match name == Self::Argon2id.name() {
            true => Some(Self::Argon2id),
            false => Hash::named(name).map(Self::Pbkdf2),
        }
    }

    /// The one of `family` that `name` names.
    ///
    /// # Errors
    /// [`VolumeError::Impossible`].
    pub fn of(family: Family, name: &str) -> Result<Self, VolumeError> {
        let known = Self::named(name).filter(|prf| Self::all(family).contains(prf));
        known.ok_or_else(|| {
            let names: Vec<_> = Self::all(family).iter().map(|prf| prf.name()).collect();
            impossible(
                format!("unknown key derivation `{name}`"),
                format!("{} has {}.", family.format().title(), names.join(", ")),
            )
        })
    }

    /// The derivation with its costs, of which no PIM or 0 gives the usual ones.
    ///
    /// # Errors
    /// [`VolumeError::Lacks`] and [`VolumeError::Impossible`].
    pub fn kdf(self, family: Family, place: Place, pim: Option<u32>) -> Result<Kdf, VolumeError> {
        if !Self::all(family).contains(&self) {
            let names = Self::all(family).iter().map(|prf| prf.name().to_owned());
            return Err(VolumeError::Lacks {
                format: family.format(),
                what: format!("key derivation with {self}").into(),
                instead: Instead::OneOf(names.collect()),
            });
        }
        let pim = checked_pim(family, place, pim)?;
        let system = place == Place::System;
        Ok(match (family, self) {
            (Family::TrueCrypt, Self::Pbkdf2(hash)) => Kdf::Pbkdf2 {
                hash,
                iterations: match hash {
                    Hash::Ripemd160 if !system => 2000,
                    Hash::Sha1 => 2000,
                    _ => 1000,
                },
            },
            (_, Self::Pbkdf2(hash)) => Kdf::Pbkdf2 {
                hash,
                iterations: iterations(hash, system, pim),
            },
            (_, Self::Argon2id) => argon2id(pim),
        })
    }
}

/// The PIM, 0 if there is none.
pub(super) fn checked_pim(
    family: Family,
    place: Place,
    pim: Option<u32>,
) -> Result<u32, VolumeError> {
    let pim = pim.unwrap_or(0);
    let most = match place {
        Place::System => MOST_SYSTEM_PIM,
        _ => MOST_PIM,
    };
    match family {
        Family::TrueCrypt if pim != 0 => Err(VolumeError::Lacks {
            format: Format::Tcrypt,
            what: "PIM".into(),
            instead: Instead::NoPim,
        }),
        _ if pim > most => Err(impossible(
            format!("the PIM is {pim}, and the maximum is {most}"),
            "Give the PIM with which the volume was made. Omit it if the volume has none.",
        )),
        _ => Ok(pim),
    }
}

/// VeraCrypt's iterations.
fn iterations(hash: Hash, system: bool, pim: u32) -> u32 {
    // The boot loader is slow, and knew only some hashes when this was decided.
    let slow = system && !matches!(hash, Hash::Sha512 | Hash::Whirlpool);
    match (slow, pim, hash) {
        (false, 0, Hash::Ripemd160) => 655_331,
        (false, 0, _) => 500_000,
        (false, pim, _) => 15_000 + 1000 * pim,
        (true, 0, Hash::Ripemd160) => 327_661,
        (true, 0, _) => 200_000,
        (true, pim, _) => 2048 * pim,
    }
}

/// VeraCrypt's costs of Argon2id.
fn argon2id(pim: u32) -> Kdf {
    const USUAL_PIM: u32 = 12;
    /// From here on the memory grows no more, and the passes do faster.
    const LAST_TO_GROW: u32 = 31;
    let pim = if pim == 0 { USUAL_PIM } else { pim };
    let (time, memory_mib) = match pim {
        ..=LAST_TO_GROW => (3 + (pim - 1) / 3, 64 + 32 * (pim - 1)),
        _ => (13 + (pim - LAST_TO_GROW), 1024),
    };
    Kdf::Argon2 {
        variant: Argon2Variant::Id,
        time,
        memory_kib: memory_mib << 10,
        lanes: 1,
    }
}

impl fmt::Display for Prf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
