//! Headers onto the device: two copies, one after the other, so that at any
//! moment one of them is whole.

use super::binary::{self, BINARY_BYTES, Place};
use super::json;
use super::metadata::Metadata;
use super::read::{Header, Recovered};
use crate::error::impossible;
use crate::{Damage, Format, VolumeError, unaligned};
use block::BlockDevice;
use cipher::CipherError;
use serde_json::{Map, Value};

#[doc(hidden)]
impl Header {
    /// Writes both copies with the next epoch, after `edit` has changed the
    /// JSON; what was changed is checked as if it had been read.
    ///
    /// A copy that cannot be used is written first, else the second: the other
    /// one stays until the first is on the device.
    ///
    /// # Errors
    /// [`VolumeError::HeaderChanged`] if the device has another header by now,
    /// [`VolumeError::Header`] if the change makes no sense,
    /// [`VolumeError::Impossible`], [`VolumeError::Standing`],
    /// [`VolumeError::Unverified`] and [`VolumeError::Block`]. The header then says what it said.
    pub(super) fn commit(
        &mut self,
        device: &dyn BlockDevice,
        edit: impl FnOnce(&mut Map<String, Value>),
    ) -> Result<(), VolumeError> {
        let mut next = self.clone();
        self.check_unchanged(device)?;
        edit(&mut next.json);
        next.advance()?;
        next.write(device)?;
        *self = next;
        Ok(())
    }

    /// Refuses to replace a header that is not the one that was read. One that was never
    /// on a device has no epoch yet.
    pub(super) fn check_unchanged(&self, device: &dyn BlockDevice) -> Result<(), VolumeError> {
        if self.binary.seqid == 0 {
            return Ok(());
        }
        let now = Self::read(device)?;
        match now.binary.seqid == self.binary.seqid && now.json == self.json {
            true => Ok(()),
            false => Err(VolumeError::HeaderChanged {
                format: Format::Luks2,
            }),
        }
    }

    /// Bytes from the start of the device that header and keyslots take.
    pub fn bytes_with_keyslots(&self) -> u64 {
        2 * self.binary.header_size + self.metadata.config.keyslots_size
    }

    /// Writes both copies as they are, and reads them back; not over what is
    /// not the volume's.
    pub(super) fn write(&mut self, device: &dyn BlockDevice) -> Result<(), VolumeError> {
        self.check_places(device)?;
        self.put(device)
    }

    /// Writes both copies with the next epoch, whatever stands there.
    pub(super) fn write_over(&mut self, device: &dyn BlockDevice) -> Result<(), VolumeError> {
        self.advance()?;
        self.put(device)
    }

    fn advance(&mut self) -> Result<(), VolumeError> {
        self.binary.seqid = self.binary.seqid.checked_add(1).ok_or_else(|| {
            let damage = Damage::number("seqid", self.binary.seqid, "no number follows it");
            VolumeError::damaged(Format::Luks2, damage)
        })?;
        Ok(())
    }

    fn put(&mut self, device: &dyn BlockDevice) -> Result<(), VolumeError> {
        self.metadata = Metadata::parse_to_write(&self.json, self.binary.header_size)?;
        let order = match self.recovered {
            Recovered::Only(Place::Secondary) => [Place::Primary, Place::Secondary],
            Recovered::Both | Recovered::Only(Place::Primary) => [Place::Secondary, Place::Primary],
        };
        for place in order {
            let copy = self.copy(place)?;
            unaligned::write_verified(device, place.offset(self.binary.header_size), &copy)?;
        }
        self.recovered = Recovered::Both;
        Ok(())
    }

    /// Whether the text and so many bytes `more` have room.
    pub(super) fn check_text(&self, more: u64) -> Result<(), VolumeError> {
        // A zero byte ends it.
        let needed = json::text(&self.json).len() as u64 + more + 1;
        let room = self.binary.header_size - BINARY_BYTES as u64;
        match needed <= room {
            true => Ok(()),
            false => Err(impossible(
                format!("the metadata would need {needed} bytes, and there is room for {room}"),
                "Nothing was changed. Remove a token or a keyslot first.",
            )),
        }
    }

    /// The bytes of one copy, with a salt of its own.
    pub(super) fn copy(&mut self, place: Place) -> Result<Vec<u8>, VolumeError> {
        getrandom::fill(&mut self.binary.salt).map_err(CipherError::from)?;
        self.check_text(0)?;
        let size = self.binary.header_size as usize;
        let json = json::text(&self.json);
        let mut copy = vec![0; size];
        copy[BINARY_BYTES..][..json.len()].copy_from_slice(json.as_bytes());
        self.binary.write(place, &mut copy);
        binary::seal(self.binary.checksum_hash, &mut copy);
        Ok(copy)
    }
}
