//! A header that has lost its magic alone, as `wipefs` leaves it.

use super::header::{HEADER_BYTES, Header};
use crate::luks::MAGIC;
use crate::{Format, Unfinished, VolumeError, unaligned, unfinished};
use block::{BlockDevice, ByteRange};

impl Header {
    /// The header that begins `device` but for its magic.
    ///
    /// # Errors
    /// [`VolumeError::NotThis`] if there is none, [`VolumeError::Unfinished`] if another program
    /// has replaced the magic, and those of reading.
    pub fn rebuild(device: &dyn BlockDevice) -> Result<Self, VolumeError> {
        if let Some(uuid) = unfinished::in_cryptsetups_hands(device)? {
            let unfinished = Unfinished::CryptsetupReencrypt { uuid };
            return Err(VolumeError::Unfinished(unfinished));
        }
        let mut bytes = unaligned::read_up_to(device, 0, HEADER_BYTES)?.to_vec();
        let not_this = VolumeError::NotThis {
            format: Format::Luks1,
        };
        if bytes.len() < HEADER_BYTES as usize {
            return Err(not_this);
        }
        bytes[..MAGIC.len()].copy_from_slice(MAGIC);
        bytes[MAGIC.len()..][..2].copy_from_slice(&[0, 1]);
        let header = Self::parse(&bytes).map_err(|_| not_this)?;
        header.check_device(device.geometry().size)?;
        Ok(header)
    }

    /// The key slots in use whose key material is lost. A part of it cannot be read, or is not
    /// noise as it must be.
    ///
    /// # Errors
    /// Those of reading that concern the whole device.
    pub fn lost_keyslots(&self, device: &dyn BlockDevice) -> Result<Vec<u32>, VolumeError> {
        let mut lost = Vec::new();
        for (number, keyslot) in (0..).zip(&self.keyslots) {
            let area: ByteRange = self.material(keyslot).range();
            if keyslot.active && !unaligned::is_noise(device, area)? {
                lost.push(number);
            }
        }
        Ok(lost)
    }
}
