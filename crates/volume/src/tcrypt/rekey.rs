//! New keys for the data of a volume, and perhaps another cipher.

use super::{Creation, Sealing, Unlocked};
use crate::luks2::KeptHeader;
use crate::{Limits, Mapping, VolumeError};
use block::BlockDevice;
use cipher::{Algorithm, Key};

/// A volume with new keys, before anything is written.
#[derive(Debug)]
pub struct Rekeyed {
    /// Its data, where they are.
    pub mapping: Mapping,
    /// Its header and the copy of it, in the order in which they are written: the
    /// one that was opened is the last.
    pub headers: Vec<KeptHeader>,
}

impl Unlocked {
    /// The same volume with new keys, in the cipher that `algorithms` name or in
    /// its own; its headers open with `passphrase` and what `sealing` says.
    /// Nothing is written.
    ///
    /// # Errors
    /// As [`change_passphrase`](Self::change_passphrase).
    pub fn rekeyed(
        &self,
        device: &dyn BlockDevice,
        algorithms: Option<&[Algorithm]>,
        sealing: &Sealing,
        passphrase: &Key,
        limits: &Limits,
    ) -> Result<Rekeyed, VolumeError> {
        let other = self.free_other_offset(device)?;
        let algorithms = algorithms.unwrap_or(self.spec.algorithms());
        let creation = Creation {
            family: self.header.family,
            algorithms: algorithms.to_vec(),
            sealing: sealing.clone(),
        };
        let mut header = self.header.duplicate();
        header.key_area = Key::random(header.key_area.len())?;
        let next = Self {
            place: self.place,
            offset: self.offset,
            spec: creation.spec()?,
            prf: sealing.prf,
            header,
        };
        let sealed: [_; 2] = sealing.seal(&next.header, next.spec, passphrase, limits)?;
        let places = [other, self.offset].into_iter().zip(sealed);
        Ok(Rekeyed {
            mapping: next.mapping(device)?,
            headers: places
                .map(|(offset, sealed)| KeptHeader {
                    offset,
                    bytes: sealed.to_vec(),
                })
                .collect(),
        })
    }
}
