//! New keys for the data of a volume, and perhaps another cipher.

use super::create::xts_spec;
use super::seal::Sealed;
use super::{Sealing, Unlocked};
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
        let mut header = self.header.duplicate();
        header.key_area = Key::random(header.key_area.len())?;
        let next = Self {
            place: self.place,
            offset: self.offset,
            spec: xts_spec(self.header.family, algorithms)?,
            prf: sealing.prf,
            header,
        };
        let [copy, own] = next.seal(sealing, passphrase, limits)?;
        let kept = |offset, sealed: Sealed| KeptHeader {
            offset,
            bytes: sealed.to_vec(),
        };
        Ok(Rekeyed {
            mapping: next.mapping(device)?,
            headers: vec![kept(other, copy), kept(self.offset, own)],
        })
    }
}
