//! From a passphrase to the volume key, and from that to the mapping.

use super::header::{Header, Keyslot};
use crate::error::data_upon_header;
use crate::key_text;
use crate::mapping::{described_to_end, key_for, within};
use crate::{Format, Kdf, Limits, Mapping, Secret, Unlocked, Untried, VolumeError};
use block::BlockDevice;
use cipher::{Algorithm, IvSector, Key, SectorLayout};
use subtle::ConstantTimeEq;

impl Header {
    /// Finds the volume key: in `slot`, or in the first keyslot that opens.
    ///
    /// # Errors
    /// [`VolumeError::NoKeyslotFits`], [`VolumeError::KeyslotsUntried`],
    /// [`VolumeError::NoKeyslot`], [`VolumeError::NoUsableKeyslot`],
    /// [`VolumeError::WrongVolumeKey`],
    /// [`VolumeError::EmptyKeyslot`], those of [`Kdf::derive`], and
    /// [`VolumeError::Block`].
    pub fn unlock(
        &self,
        device: &dyn BlockDevice,
        secret: &Secret,
        slot: Option<u32>,
        limits: &Limits,
    ) -> Result<Unlocked, VolumeError> {
        let passphrase = match secret {
            Secret::Passphrase(bytes) | Secret::KeyFile(bytes) => bytes.as_bytes(),
            Secret::VolumeKey(key) => {
                let key = key_text::key_in(key, |length| length == self.key_bytes);
                return match self.verifies(&key, limits)? {
                    true => Ok(Unlocked { key, slot: None }),
                    false => Err(VolumeError::WrongVolumeKey),
                };
            }
        };
        let (mut candidates, mut untried) = (Vec::new(), Vec::new());
        for (number, keyslot) in (0..).zip(&self.keyslots) {
            if slot.is_some_and(|slot| slot != number)
                || !(keyslot.active || keyslot.unusable.is_some())
            {
                continue;
            }
            match self.check_keyslot(number, keyslot, limits) {
                Ok(()) => candidates.push((number, keyslot)),
                Err(why) => untried.push(Untried {
                    slot: number,
                    why: Box::new(why),
                }),
            }
        }
        if let (Some(slot), true) = (slot, candidates.is_empty() && untried.is_empty()) {
            return Err(VolumeError::EmptyKeyslot { slot });
        }
        let of_digest = self.kdf(self.digest_iterations);
        of_digest.check(&self.digest_salt, self.digest.len(), limits)?;
        limits.check_all(candidates.iter().map(|(_, keyslot)| {
            self.kdf(keyslot.iterations).work(self.key_bytes) + of_digest.work(self.digest.len())
        }))?;
        let mut unread = None;
        for &(number, keyslot) in &candidates {
            let kdf = self.kdf(keyslot.iterations);
            let slot_key = kdf.derive(passphrase, &keyslot.salt, self.key_bytes, limits)?;
            let key = match self.material(keyslot).open(device, &slot_key) {
                // Another one may open, and be readable.
                Err(error) if error.is_of_place() => {
                    unread = unread.or(Some(error));
                    continue;
                }
                key => key?,
            };
            if self.verifies(&key, limits)? {
                return Ok(Unlocked {
                    key,
                    slot: Some(number),
                });
            }
        }
        let none = VolumeError::none_fits(Format::Luks1, secret, !candidates.is_empty(), untried);
        Err(unread.unwrap_or(none))
    }

    /// Refuses what cannot be tried, before any work is done.
    fn check_keyslot(
        &self,
        slot: u32,
        keyslot: &Keyslot,
        limits: &Limits,
    ) -> Result<(), VolumeError> {
        if let Some(why) = &keyslot.unusable {
            return Err(VolumeError::UnusableKeyslot {
                slot,
                damage: (**why).clone(),
            });
        }
        self.check_material(slot)?;
        self.kdf(keyslot.iterations)
            .check(&keyslot.salt, self.key_bytes, limits)
    }

    /// Refuses key material that is not encrypted, as that of a volume is whose
    /// data are not.
    pub(super) fn check_material(&self, slot: u32) -> Result<(), VolumeError> {
        match self.spec.algorithms() {
            [Algorithm::Null] => Err(VolumeError::NullKeyslot { slot }),
            _ => Ok(()),
        }
    }

    /// The volume as `key`, which was verified, opens it on `data`, the device
    /// that holds its data.
    ///
    /// # Errors
    /// [`VolumeError::DataArea`].
    pub fn mapping(&self, key: Key, data: &dyn BlockDevice) -> Result<Mapping, VolumeError> {
        let mapping = self.described(key, data)?;
        within(data, mapping.data)?;
        Ok(mapping)
    }

    /// The same, whether `data` has all of it or not.
    pub(crate) fn described(
        &self,
        key: Key,
        data: &dyn BlockDevice,
    ) -> Result<Mapping, VolumeError> {
        let (spec, layout) = (self.spec, SectorLayout::default());
        let key = key_for(&spec, &key);
        let data = described_to_end(data, self.payload_offset, layout);
        Ok(Mapping::new(spec, key, layout, data, IvSector::new(0)))
    }

    /// Data on the header's own device lie behind the header: where they have
    /// a device for themselves, the header must be given with it.
    pub(crate) fn check_beside(
        &self,
        device: &dyn BlockDevice,
        data: &dyn BlockDevice,
    ) -> Result<(), VolumeError> {
        match self.payload_offset == 0 && std::ptr::addr_eq(device, data) {
            true => Err(data_upon_header(Format::Luks1)),
            false => Ok(()),
        }
    }

    /// Refuses a key from a caller that is not the volume key: nothing would open by it.
    pub(super) fn check_volume_key(&self, key: &Key) -> Result<(), VolumeError> {
        match self.verifies(key, &Limits::default())? {
            true => Ok(()),
            false => Err(VolumeError::WrongVolumeKey),
        }
    }

    /// Whether `key` is the volume key.
    fn verifies(&self, key: &Key, limits: &Limits) -> Result<bool, VolumeError> {
        if key.len() != self.key_bytes {
            return Ok(false);
        }
        let digest = self.digest_of(key, limits)?;
        Ok(digest.as_bytes().ct_eq(&self.digest).into())
    }

    /// The digest that the header would have of `key`.
    pub(super) fn digest_of(&self, key: &Key, limits: &Limits) -> Result<Key, VolumeError> {
        let kdf = self.kdf(self.digest_iterations);
        kdf.derive(key.as_bytes(), &self.digest_salt, self.digest.len(), limits)
    }

    pub(crate) fn kdf(&self, iterations: u32) -> Kdf {
        Kdf::Pbkdf2 {
            hash: self.hash,
            iterations,
        }
    }
}
