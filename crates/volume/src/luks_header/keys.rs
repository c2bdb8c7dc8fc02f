//! Key slots of either version of LUKS.

use super::LuksHeader;
use crate::luks2::{self, KeyslotOptions};
use crate::{Format, Hash, Instead, Kdf, Limits, Secret, Unlocked, VolumeError};
use block::BlockDevice;
use cipher::Key;

impl LuksHeader {
    /// The key slots in use, by their numbers.
    pub fn numbers(&self) -> Vec<u32> {
        match self {
            Self::Luks1(header) => {
                let slots = (0..).zip(&header.keyslots);
                let active = slots.filter(|(_, slot)| slot.active);
                active.map(|(number, _)| number).collect()
            }
            Self::Luks2(header) => header.metadata.keyslots.keys().copied().collect(),
        }
    }

    /// Another key slot than `but` that `secret` opens as well. One that cannot be tried does not
    /// count.
    pub fn opens_also(
        &self,
        device: &dyn BlockDevice,
        secret: &Secret,
        but: u32,
        limits: &Limits,
    ) -> Option<u32> {
        let mut others = self.numbers().into_iter().filter(|slot| *slot != but);
        others.find(|slot| self.unlock(device, secret, Some(*slot), limits).is_ok())
    }

    /// Finds the volume key: in `slot`, or in the first key slot that opens.
    ///
    /// # Errors
    /// Those of [`luks1::Header::unlock`](crate::luks1::Header::unlock) and [`luks2::Header::unlock`].
    pub fn unlock(
        &self,
        device: &dyn BlockDevice,
        secret: &Secret,
        slot: Option<u32>,
        limits: &Limits,
    ) -> Result<Unlocked, VolumeError> {
        match self {
            Self::Luks1(header) => header.unlock(device, secret, slot, limits),
            Self::Luks2(header) => header.unlock(device, secret, slot, limits),
        }
    }

    /// Makes a key slot that opens with the second of `keys`, and has the first, the volume key:
    /// `slot`, or the first free one. Returns its number. Whether the passphrase may be empty is
    /// the caller's to decide.
    ///
    /// # Errors
    /// [`VolumeError::Lacks`] for Argon2 in LUKS1, and those of [`luks1::Header::add_key`](crate::luks1::Header::add_key) and
    /// [`luks2::Header::add_key`].
    pub fn add_key(
        &mut self,
        device: &dyn BlockDevice,
        (volume_key, passphrase): (&Key, &Key),
        kdf: Kdf,
        slot: Option<u32>,
    ) -> Result<u32, VolumeError> {
        match self {
            Self::Luks1(header) => {
                header.add_key(device, volume_key, passphrase, iterations(kdf)?, slot)
            }
            Self::Luks2(header) => {
                header.add_key(device, volume_key, passphrase, &options(kdf), slot)
            }
        }
    }

    /// Gives the key slot `slot` another passphrase, the second of `keys`. Returns the slot's
    /// number, which LUKS1 changes.
    ///
    /// # Errors
    /// Those of [`add_key`](Self::add_key), [`luks1::Header::change_key`](crate::luks1::Header::change_key) and
    /// [`luks2::Header::change_key`].
    pub fn change_key(
        &mut self,
        device: &dyn BlockDevice,
        (volume_key, passphrase): (&Key, &Key),
        kdf: Kdf,
        slot: u32,
    ) -> Result<u32, VolumeError> {
        match self {
            Self::Luks1(header) => {
                header.change_key(device, slot, volume_key, passphrase, iterations(kdf)?)
            }
            Self::Luks2(header) => {
                header.change_key(device, slot, volume_key, passphrase, &options(kdf))?;
                Ok(slot)
            }
        }
    }

    /// Removes the key slot `slot`; the last one of the data only if `last_too`.
    ///
    /// # Errors
    /// Those of [`luks1::Header::kill_key`](crate::luks1::Header::kill_key) and [`luks2::Header::kill_key`].
    pub fn kill_key(
        &mut self,
        device: &dyn BlockDevice,
        slot: u32,
        last_too: bool,
    ) -> Result<(), VolumeError> {
        match self {
            Self::Luks1(header) => header.kill_key(device, slot, last_too),
            Self::Luks2(header) => header.kill_key(device, slot, last_too),
        }
    }

    /// The hash that LUKS1 has for all its key slots.
    pub fn hash(&self) -> Option<Hash> {
        match self {
            Self::Luks1(header) => Some(header.hash),
            Self::Luks2(_) => None,
        }
    }

    /// Makes it one of the other version in place, or finishes what a cut has left of that. Returns
    /// whether it was of another version than `wanted`.
    ///
    /// # Errors
    /// [`VolumeError::Lacks`] for what LUKS1 does not have, and those of writing.
    pub fn convert(device: &dyn BlockDevice, wanted: Format) -> Result<bool, VolumeError> {
        match (Self::read(device)?, wanted) {
            (Self::Luks1(header), Format::Luks2) => {
                luks2::Header::convert(device, *header)?;
                Ok(true)
            }
            (Self::Luks2(header), Format::Luks1) => {
                header.into_luks1(device)?;
                Ok(true)
            }
            // A cut may have left one copy of the header half written,
            (Self::Luks2(mut header), _) => {
                header.repair(device, false)?;
                Ok(false)
            }
            // or the second one of what it was.
            (Self::Luks1(header), _) => {
                luks2::wipe_copies(device, &header)?;
                Ok(false)
            }
        }
    }
}

fn options(kdf: Kdf) -> KeyslotOptions {
    KeyslotOptions {
        allow_empty: true,
        ..KeyslotOptions::new(kdf)
    }
}

/// LUKS1 has PBKDF2, with the hash of its header.
fn iterations(kdf: Kdf) -> Result<u32, VolumeError> {
    match kdf {
        Kdf::Pbkdf2 { iterations, .. } => Ok(iterations),
        Kdf::Argon2 { .. } => Err(no_argon2()),
    }
}

/// LUKS1 cannot have such a key slot.
pub(crate) fn no_argon2() -> VolumeError {
    VolumeError::Lacks {
        format: Format::Luks1,
        what: "key slot with Argon2".into(),
        instead: Instead::Pbkdf2,
    }
}
