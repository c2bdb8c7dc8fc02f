//! Headers written anew: another passphrase, a copy restored, a larger volume.
//!
//! All keys are derived before the first write. The header that was opened is overwritten last,
//! once its copy is on the device and was read back. So one of the two is good at any time.

use super::create::{LARGE, LEFT_BY_LARGE, LEFT_BY_SMALL, among_noise, data_bytes};
use super::seal::{Sealed, Sealing};
use super::{HEADER_BYTES, HEADERS_BYTES, HIDDEN_AT, Opening, Place, Unlocked};
use crate::error::impossible;
use crate::error::in_place_of_copy;
use crate::{Limits, VolumeError, rest, unaligned};
use block::{BlockDevice, ByteRange};
use cipher::{CipherError, Key, Mode};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// The name of what stands at the start of `device`, in the place of the headers, which are noise.
///
/// # Errors
/// Those of reading.
pub fn stranger_at_start(device: &dyn BlockDevice) -> Result<Option<String>, VolumeError> {
    rest::stranger(device, ByteRange::new(0, HEADERS_BYTES), Vec::new())
}

/// Writes the copy of a header, and then the header, each to its offset.
pub(super) fn write_both(
    device: &dyn BlockDevice,
    copy: (u64, &[u8]),
    header: (u64, &[u8]),
) -> Result<(), VolumeError> {
    [copy, header]
        .into_iter()
        .try_for_each(|(offset, bytes)| unaligned::write_verified(device, offset, bytes))
        .map_err(VolumeError::rewritten)
}

impl Unlocked {
    /// Makes the header and its copy open with `passphrase` and `sealing`, and no longer with the
    /// old secrets. The keys of the data stay.
    ///
    /// # Errors
    /// [`VolumeError::Unsupported`] if the header has no copy, as before version 4 and on encrypted
    /// systems; [`VolumeError::Standing`], [`VolumeError::Lacks`], [`VolumeError::Impossible`],
    /// [`VolumeError::SecretLength`], those of [`Kdf::derive`](crate::Kdf::derive) and of writing.
    pub fn change_passphrase(
        &mut self,
        device: &dyn BlockDevice,
        sealing: &Sealing,
        passphrase: &Key,
        limits: &Limits,
    ) -> Result<(), VolumeError> {
        let other = self.free_other_offset(device)?;
        let [own, copy] = self.seal(sealing, passphrase, limits)?;
        write_both(device, (other, &copy), (self.offset, &own))?;
        self.prf = sealing.prf;
        Ok(())
    }

    /// Writes the other one of the header and its copy anew, from the one that was opened. So it
    /// restores a destroyed header. From then on it opens with `passphrase` and `sealing`.
    ///
    /// # Errors
    /// As [`change_passphrase`](Self::change_passphrase).
    pub fn restore(
        &self,
        device: &dyn BlockDevice,
        sealing: &Sealing,
        passphrase: &Key,
        limits: &Limits,
    ) -> Result<(), VolumeError> {
        let other = self.other_offset(device)?;
        let [copy] = self.seal(sealing, passphrase, limits)?;
        unaligned::write_verified(device, other, &copy)
    }

    /// Writes the header and its copy to `device` from one that was opened elsewhere. That is a
    /// backup: the first 128 KiB of a volume in a file of their own. From then on they open with
    /// `passphrase` and `sealing`.
    ///
    /// # Errors
    /// [`VolumeError::DataArea`] if the data would not fit the device, and those of
    /// [`change_passphrase`](Self::change_passphrase).
    pub fn write_headers(
        &self,
        device: &dyn BlockDevice,
        sealing: &Sealing,
        passphrase: &Key,
        limits: &Limits,
    ) -> Result<(), VolumeError> {
        let header = match self.place.is_hidden() {
            true => HIDDEN_AT,
            false => 0,
        };
        let copy = self.copy_offset(device)?;
        let [first, second] = self.seal(sealing, passphrase, limits)?;
        write_both(device, (copy, &second), (header, &first))
    }

    /// Whether `other` is a header of the same data: at the same place, with the
    /// same cipher and keys.
    pub fn is_of_same_data(&self, other: &Self) -> bool {
        let place = |header: &super::Header| (header.start(), header.volume_size);
        self.has_same_keys(other) && place(&self.header) == place(&other.header)
    }

    /// Whether `other` is a header with the same cipher and keys.
    pub fn has_same_keys(&self, other: &Self) -> bool {
        let keys = |unlocked: &Self| unlocked.header.key_area.as_bytes().to_vec();
        let (own, others) = (Zeroizing::new(keys(self)), Zeroizing::new(keys(other)));
        self.spec == other.spec && own.ct_eq(&others).into()
    }

    /// The name of the data in the place that `restore` would write, or `write_headers` if `both`.
    /// `None` if they have no name, as a header has none: it is noise.
    ///
    /// # Errors
    /// [`VolumeError::Unsupported`] if the header has no copy, and those of reading.
    pub fn stranger(
        &self,
        device: &dyn BlockDevice,
        both: bool,
    ) -> Result<Option<String>, VolumeError> {
        let other = self.other_offset(device)?;
        for first in [0, device.geometry().size - HEADERS_BYTES] {
            let area = ByteRange::new(first, HEADERS_BYTES);
            let within = area.overlaps(ByteRange::new(other, HEADER_BYTES));
            if (both || within) && !is_noise(device, first)? {
                let found = rest::stranger(device, area, Vec::new())?;
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
        Ok(None)
    }

    /// Where the other one of header and copy is, if nothing stands there that has
    /// a name.
    pub(super) fn free_other_offset(&self, device: &dyn BlockDevice) -> Result<u64, VolumeError> {
        match self.stranger(device, false)? {
            Some(name) => Err(in_place_of_copy(name)),
            None => self.other_offset(device),
        }
    }

    /// Makes a normal volume as large as `device`, which has grown. The copy of
    /// a hidden volume's header moves to the new end, whether there is one or
    /// not. If it fails, the size in [`header`](Self::header) says whether the device may become
    /// smaller again.
    ///
    /// # Errors
    /// [`VolumeError::TooSmall`] if the device has not grown, and those of
    /// [`mapping`](Self::mapping) and [`change_passphrase`](Self::change_passphrase).
    pub fn grow(
        &mut self,
        device: &dyn BlockDevice,
        sealing: &Sealing,
        passphrase: &Key,
        limits: &Limits,
    ) -> Result<(), VolumeError> {
        self.check_growth(device)?;
        let size = device.geometry().size;
        let old_bytes = self.header.volume_size;
        let bytes = data_bytes(size, self.header.sector_size);
        if bytes <= old_bytes {
            return Err(VolumeError::TooSmall {
                size,
                needed: old_bytes
                    .saturating_add(2 * HEADERS_BYTES + u64::from(self.header.sector_size)),
            });
        }
        let old_copies = ByteRange::new(HEADERS_BYTES + old_bytes, HEADERS_BYTES);
        let hidden_copy =
            unaligned::read_up_to(device, old_copies.offset + HIDDEN_AT, HEADER_BYTES)?;
        let mut grown = self.header.duplicate();
        grown.volume_size = bytes;
        grown.encrypted_bytes = bytes;
        let [own, copy] = sealing.seal(&grown, self.spec, passphrase, limits)?;

        let new_copies = ByteRange::new(size - HEADERS_BYTES, HEADERS_BYTES);
        let mut area = among_noise(&copy)?;
        area[HIDDEN_AT as usize..][..hidden_copy.len()].copy_from_slice(&hidden_copy);
        unaligned::write_verified(device, new_copies.offset, &area)?;
        // The header may be on the device even if writing it fails: from here on the device has to
        // stay as large.
        self.header = grown;
        self.prf = sealing.prf;
        unaligned::write_verified(device, self.offset, &own).map_err(VolumeError::rewritten)?;
        forget(device, old_copies, new_copies.offset)
    }

    /// Refuses to write a volume anew whose header could not be used, so that its copy opened it:
    /// that is the only one left.
    ///
    /// # Errors
    /// [`VolumeError::Impossible`].
    pub fn check_original(&self, opening: &Opening) -> Result<(), VolumeError> {
        match self.place == opening.place {
            true => Ok(()),
            false => Err(impossible(
                "the header is damaged or cannot be read, and only its copy opens the volume",
                "Repair the header first. Nothing was changed.",
            )),
        }
    }

    /// The derivation, PIM and key files with which it was opened. A new header opens in the same way.
    pub fn sealing(&self, opening: &Opening) -> Sealing {
        Sealing {
            prf: self.prf,
            pim: opening.pim,
            keyfiles: opening.keyfiles.clone(),
        }
    }

    /// Refuses what [`grow`](Self::grow) does whatever the size.
    ///
    /// # Errors
    /// [`VolumeError::Unsupported`], and those of [`mapping`](Self::mapping).
    pub fn check_growth(&self, device: &dyn BlockDevice) -> Result<(), VolumeError> {
        self.check_copied()?;
        // A volume that cannot be opened, perhaps because it is half encrypted, does not grow.
        self.mapping(device)?;
        if self.place != Place::Normal {
            return Err(
                self.unsupported("growth from a backup header, or growth of a hidden volume")
            );
        }
        match self.header.data_offset {
            HEADERS_BYTES => Ok(()),
            offset => Err(self.unsupported(format!("growth of data that begins at byte {offset}"))),
        }
    }

    /// The end of the volume by its header, including the copies, on a device of `size` bytes. Less
    /// than a sector may be left after it. Behind a hidden volume the outer one has some room for
    /// its file system.
    pub fn end(&self, size: u64) -> u64 {
        let data = self.header.start().saturating_add(self.header.volume_size);
        let (likely, left) = match self.place.is_hidden() {
            true if self.header.volume_size < LARGE => (LEFT_BY_SMALL, LEFT_BY_LARGE),
            true => (LEFT_BY_LARGE, LEFT_BY_SMALL),
            false => (0, 0),
        };
        let end = |left: u64| data.saturating_add(left + HEADERS_BYTES);
        let sector = u64::from(self.header.sector_size);
        // Programs differ in how much they leave behind a hidden volume.
        let is_end = |left| end(left) <= size && size - end(left) < sector;
        match is_end(likely) || is_end(left) {
            true => size,
            false => end(likely).min(size),
        }
    }

    /// The place of the copy of a header at `place`, near the end of the device. `None` if that is the
    /// volume's own end, or if nothing but zeros is there. Otherwise it holds foreign data or that
    /// copy, and only the copy's passphrase tells the two apart.
    ///
    /// # Errors
    /// Those of reading.
    pub fn behind(
        &self,
        device: &dyn BlockDevice,
        place: Place,
    ) -> Result<Option<u64>, VolumeError> {
        let size = device.geometry().size;
        if self.end(size) == size {
            return Ok(None);
        }
        let at = size.saturating_sub(before_end(place));
        let there = rest::read_what_can_be(device, ByteRange::new(at, HEADER_BYTES))?;
        Ok(there.iter().any(|byte| *byte != 0).then_some(at))
    }

    /// The end of the volume by its header, if the device is longer, and where the copy of the header
    /// was then. Programs write the next copy near the end of the device.
    pub fn left_copy(&self, device: &dyn BlockDevice) -> Option<(u64, ByteRange)> {
        let size = device.geometry().size;
        let end = self.end(size);
        let copy = ByteRange::new(end.checked_sub(before_end(self.place))?, HEADER_BYTES);
        let now = ByteRange::new(size.checked_sub(before_end(self.place))?, HEADER_BYTES);
        (end < size && !copy.overlaps(now)).then_some((end, copy))
    }

    /// `N` copies of the header, for `passphrase` and what `sealing` says.
    pub(super) fn seal<const N: usize>(
        &self,
        sealing: &Sealing,
        passphrase: &Key,
        limits: &Limits,
    ) -> Result<[Sealed; N], VolumeError> {
        sealing.seal(&self.header, self.spec, passphrase, limits)
    }

    /// Where the other one of header and copy is.
    pub(super) fn other_offset(&self, device: &dyn BlockDevice) -> Result<u64, VolumeError> {
        let copy = self.copy_offset(device)?;
        Ok(match self.place {
            Place::Normal | Place::Hidden | Place::System => copy,
            Place::NormalBackup => 0,
            Place::HiddenBackup => HIDDEN_AT,
        })
    }

    /// The offset of the copy of the header, whether the copy exists or is still to be written.
    fn copy_offset(&self, device: &dyn BlockDevice) -> Result<u64, VolumeError> {
        self.check_copied()?;
        // Data that reach there have no copy.
        let data = self.mapping(device)?.data;
        let copy = device.geometry().size.checked_sub(before_end(self.place));
        copy.filter(|&offset| !ByteRange::new(offset, HEADER_BYTES).overlaps(data))
            .ok_or_else(|| self.unsupported("no room for a copy of its header"))
    }

    fn check_copied(&self) -> Result<(), VolumeError> {
        let copied = !self.header.has_old_layout() && self.spec.mode() == Mode::Xts;
        match copied && self.place != Place::System {
            true => Ok(()),
            false => Err(self.unsupported("a header without a copy")),
        }
    }

    fn unsupported(&self, feature: impl Into<Box<str>>) -> VolumeError {
        VolumeError::unsupported(self.header.family.format(), feature)
    }
}

/// How far before the end of a device the copy of such a header is.
const fn before_end(place: Place) -> u64 {
    match place.is_hidden() {
        true => HIDDEN_AT,
        false => HEADERS_BYTES,
    }
}

/// Whether the sector at `offset` may be a header, whatever magic is in it by
/// chance: of noise, every 256th byte is zero.
fn is_noise(device: &dyn BlockDevice, offset: u64) -> Result<bool, VolumeError> {
    const MOST_ZEROS: usize = 16;
    let sector = rest::read_what_can_be(device, ByteRange::new(offset, HEADER_BYTES))?;
    let zeros = sector.iter().filter(|byte| **byte == 0).count();
    Ok(zeros <= MOST_ZEROS)
}

/// Overwrites header copies that are out of use with noise, up to `end`.
pub(crate) fn forget(
    device: &dyn BlockDevice,
    copies: ByteRange,
    end: u64,
) -> Result<(), VolumeError> {
    let length = end.saturating_sub(copies.offset).min(copies.length);
    let mut noise = Zeroizing::new(vec![0; length as usize]);
    getrandom::fill(&mut noise).map_err(CipherError::from)?;
    match length {
        0 => Ok(()),
        _ => unaligned::write_verified(device, copies.offset, &noise),
    }
}
