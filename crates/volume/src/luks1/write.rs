//! Headers and keyslots onto the device.
//!
//! There is one header. Key material is on the device before the header names it. The header is
//! written at once and read back, and material that no header names any more is wiped. So a power
//! cut leaves the old header or the new one.

use super::header::{Header, KEYSLOTS, Keyslot, STRIPES};
use crate::error::conversion_room;
use crate::keyslot::{SECTOR, wipe};
use crate::luks::{DIGEST_ITERATIONS, check_new_key, checked_uuid, free_slot};
use crate::{Format, Hash, HeaderText, Limits, VolumeError, unaligned};
use block::{BlockDevice, ByteRange};
use cipher::{CipherError, CipherSpec, Key};
use std::array;

/// Key material begins at multiples of this, as cryptsetup's does.
const MATERIAL_UNIT: u64 = 4096;

/// Data begins at a multiple of this, as cryptsetup's does.
const DATA_UNIT: u64 = 1 << 20;

/// The options of a new volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Creation {
    /// Cipher, mode and IV generator of the data and of the key material.
    pub spec: CipherSpec,
    /// Length of the volume key, bytes.
    pub key_bytes: usize,
    /// Hash of the key derivations and of the splitter.
    pub hash: Hash,
    /// Iterations of the first keyslot.
    pub iterations: u32,
    /// First byte of the data; `None` takes the first MiB behind the keyslots,
    /// or 0 with a detached header.
    pub payload_offset: Option<u64>,
    /// Whether the header has a device for itself.
    pub detached: bool,
    /// The UUID; `None` makes a random one.
    pub uuid: Option<String>,
}

/// Bytes from the start of one key material to the start of the next.
fn area_bytes(key_bytes: usize) -> u64 {
    (key_bytes as u64 * u64::from(STRIPES)).next_multiple_of(MATERIAL_UNIT)
}

impl Header {
    /// A header without digest and keyslots.
    pub(crate) fn draft(
        spec: CipherSpec,
        hash: Hash,
        key_bytes: usize,
        payload_offset: u64,
        uuid: HeaderText,
    ) -> Self {
        Self {
            spec,
            hash,
            payload_offset,
            key_bytes,
            uuid,
            keyslots: array::from_fn(|_| Keyslot::unused(0)),
            raw: Self::blank(spec, hash),
            digest: [0; 20],
            digest_salt: [0; 32],
            digest_iterations: DIGEST_ITERATIONS,
        }
    }

    /// The same with these keyslots, and with room for those that are not in use.
    ///
    /// # Errors
    /// [`VolumeError::Impossible`], and [`VolumeError::Unwritable`] or
    /// [`VolumeError::Header`] if it is not possible.
    pub(crate) fn with_keyslots(
        mut self,
        used: [Option<Keyslot>; KEYSLOTS],
    ) -> Result<Self, VolumeError> {
        let material = area_bytes(self.key_bytes);
        let of_active = |keyslot: &Keyslot| ByteRange::new(keyslot.offset, material);
        let mut taken: Vec<ByteRange> = used.iter().flatten().map(of_active).collect();
        let mut place = MATERIAL_UNIT;
        self.keyslots = used.map(|keyslot| {
            keyslot.unwrap_or_else(|| {
                let area = |place| ByteRange::new(place, material);
                while let Some(other) = taken.iter().find(|other| other.overlaps(area(place))) {
                    place = (other.offset + other.length).next_multiple_of(MATERIAL_UNIT);
                }
                taken.push(area(place));
                Keyslot::unused(place)
            })
        });
        let end = taken.iter().map(|area| area.offset + area.length).max();
        if self.payload_offset > 0 && end > Some(self.payload_offset) {
            return Err(conversion_room());
        }
        self.check()?;
        self.check_to_write()?;
        Self::parse(&self.bytes())
    }

    /// Writes it over the first copy of a header of LUKS2, whose second copy counts until
    /// the first sector is there.
    pub(crate) fn write_over_luks2(&self, device: &dyn BlockDevice) -> Result<(), VolumeError> {
        let (first, second) = self.raw.split_at(SECTOR as usize);
        unaligned::write_verified(device, SECTOR, second)?;
        unaligned::write_verified(device, 0, first)
    }

    /// Makes a volume: writes a header with one keyslot to the start of
    /// `device`, which the caller knows may be overwritten.
    ///
    /// # Errors
    /// [`VolumeError::TooSmall`], [`VolumeError::Impossible`],
    /// [`VolumeError::Header`] if the payload offset is within the header,
    /// [`VolumeError::Cipher`], those of [`Kdf::derive`](crate::Kdf::derive) and of writing.
    pub fn create(
        device: &dyn BlockDevice,
        creation: &Creation,
        volume_key: &Key,
        passphrase: &Key,
    ) -> Result<Self, VolumeError> {
        check_new_key(volume_key, creation.key_bytes)?;
        let place = |slot| MATERIAL_UNIT + slot as u64 * area_bytes(creation.key_bytes);
        let end = place(KEYSLOTS);
        let payload_offset = match (creation.payload_offset, creation.detached) {
            (Some(offset), _) => offset,
            (None, true) => 0,
            (None, false) => end.next_multiple_of(DATA_UNIT),
        };
        let size = device.geometry().size;
        let needed = match creation.detached {
            true => end,
            false => payload_offset.max(end) + SECTOR,
        };
        if size < needed {
            return Err(VolumeError::TooSmall { size, needed });
        }
        let uuid = checked_uuid(creation.uuid.as_deref())?;
        let (spec, hash, key_bytes) = (creation.spec, creation.hash, creation.key_bytes);
        let mut header = Self {
            keyslots: array::from_fn(|slot| Keyslot::unused(place(slot))),
            ..Self::draft(spec, hash, key_bytes, payload_offset, uuid.into())
        };
        header.check_to_write()?;
        getrandom::fill(&mut header.digest_salt).map_err(CipherError::from)?;
        let digest = header.digest_of(volume_key, &Limits::default())?;
        header.digest.copy_from_slice(digest.as_bytes());
        // Until the new header is there, there is none: an old one would speak
        // of key material that is gone.
        unaligned::write_verified(device, 0, &[0; MATERIAL_UNIT as usize])?;
        let slot = header.free_slot(None)?;
        let slot_key = header.fill(slot, passphrase, creation.iterations)?;
        let material = header.material(&header.keyslots[slot]);
        material.store(device, &slot_key, volume_key)?;
        header.write(device)?;
        Ok(header)
    }

    /// Makes a key slot that opens with `passphrase`: `slot`, or the first free one. Returns its
    /// number.
    ///
    /// # Errors
    /// [`VolumeError::WrongVolumeKey`],
    /// [`VolumeError::HeaderChanged`] if the device has another header by now,
    /// [`VolumeError::KeyslotInUse`], [`VolumeError::NoFreeKeyslot`], [`VolumeError::Header`] if
    /// the key slot's place makes no sense, those of [`Kdf::derive`](crate::Kdf::derive) and of
    /// writing.
    pub fn add_key(
        &mut self,
        device: &dyn BlockDevice,
        volume_key: &Key,
        passphrase: &Key,
        iterations: u32,
        slot: Option<u32>,
    ) -> Result<u32, VolumeError> {
        let slot = self.free_slot(slot)?;
        self.check_volume_key(volume_key)?;
        let mut next = self.clone();
        let slot_key = next.fill(slot, passphrase, iterations)?;
        // The derivation took time. A place that the old header calls free may be in use by now.
        self.check_unchanged(device)?;
        let material = next.material(&next.keyslots[slot]);
        material.store(device, &slot_key, volume_key)?;
        self.replace(device, next)?;
        Ok(slot as u32)
    }

    /// Gives the key of `slot` another passphrase, in another keyslot, whose
    /// number is given back; the old one opens until the new one does.
    ///
    /// # Errors
    /// [`VolumeError::EmptyKeyslot`], [`VolumeError::NoFreeKeyslot`], and those
    /// of [`add_key`](Self::add_key).
    pub fn change_key(
        &mut self,
        device: &dyn BlockDevice,
        slot: u32,
        volume_key: &Key,
        passphrase: &Key,
        iterations: u32,
    ) -> Result<u32, VolumeError> {
        self.active(slot)?;
        // Two writes of the header: one of them torn between its two sectors
        // could lose the old keyslot without having the new one.
        let new = self.add_key(device, volume_key, passphrase, iterations, None)?;
        self.kill_key(device, slot, false)?;
        Ok(new)
    }

    /// Removes keyslot `slot`; the last one only if `last_too`.
    ///
    /// # Errors
    /// [`VolumeError::EmptyKeyslot`], [`VolumeError::LastKeyslot`] and those
    /// of writing.
    pub fn kill_key(
        &mut self,
        device: &dyn BlockDevice,
        slot: u32,
        last_too: bool,
    ) -> Result<(), VolumeError> {
        let old = self.active(slot)?;
        // One whose key material is overwritten opens nothing.
        let lost = self.lost_keyslots(device)?;
        let mut others = (0..)
            .zip(&self.keyslots)
            .filter(|(other, _)| *other != slot);
        if !others.any(|(other, it)| it.active && !lost.contains(&other)) && !last_too {
            return Err(VolumeError::LastKeyslot { slot });
        }
        let mut next = self.clone();
        next.keyslots[old].active = false;
        self.replace(device, next)?;
        wipe(device, self.material(&self.keyslots[old]).range())
    }

    /// Changes the UUID; `None` makes a random one.
    ///
    /// # Errors
    /// [`VolumeError::Impossible`] and those of writing.
    pub fn set_uuid(
        &mut self,
        device: &dyn BlockDevice,
        uuid: Option<&str>,
    ) -> Result<(), VolumeError> {
        let mut next = self.clone();
        next.uuid = checked_uuid(uuid)?.into();
        self.replace(device, next)
    }

    /// The index of keyslot `slot`, which is in use.
    fn active(&self, slot: u32) -> Result<usize, VolumeError> {
        match self.keyslots.get(slot as usize) {
            Some(keyslot) if keyslot.active => Ok(slot as usize),
            _ => Err(VolumeError::EmptyKeyslot { slot }),
        }
    }

    fn free_slot(&self, slot: Option<u32>) -> Result<usize, VolumeError> {
        let keyslot = |slot: &u32| self.keyslots.get(*slot as usize);
        let is_used = |slot: &u32| keyslot(slot).is_some_and(|keyslot| !keyslot.is_free());
        free_slot(slot, KEYSLOTS as u32, is_used).map(|slot| slot as usize)
    }

    /// Takes a free keyslot for a passphrase, in this header alone; the key of its material.
    fn fill(&mut self, slot: usize, passphrase: &Key, iterations: u32) -> Result<Key, VolumeError> {
        self.check_material(slot as u32)?;
        let keyslot = &mut self.keyslots[slot];
        keyslot.active = true;
        keyslot.iterations = iterations;
        keyslot.stripes = STRIPES;
        getrandom::fill(&mut keyslot.salt).map_err(CipherError::from)?;
        let salt = keyslot.salt;
        // Nothing of an unused keyslot was checked when the header was read.
        self.check()?;
        self.check_to_write()?;
        let (kdf, limits) = (self.kdf(iterations), Limits::default());
        kdf.derive(passphrase.as_bytes(), &salt, self.key_bytes, &limits)
    }

    /// Refuses a device that has another header by now.
    fn check_unchanged(&self, device: &dyn BlockDevice) -> Result<(), VolumeError> {
        // Bytes that this program does not read are kept, and may differ.
        match Self::read(device)? == *self {
            true => Ok(()),
            false => Err(VolumeError::HeaderChanged {
                format: Format::Luks1,
            }),
        }
    }

    /// Writes `next` where this header is.
    fn replace(&mut self, device: &dyn BlockDevice, mut next: Self) -> Result<(), VolumeError> {
        self.check_unchanged(device)?;
        next.write(device)?;
        *self = next;
        Ok(())
    }

    /// Writes it to the start of `device`.
    ///
    /// # Errors
    /// Those of writing.
    pub fn write(&mut self, device: &dyn BlockDevice) -> Result<(), VolumeError> {
        self.check_to_write()?;
        let bytes = self.bytes();
        unaligned::write_verified(device, 0, &bytes)?;
        self.raw = bytes;
        Ok(())
    }
}

impl Keyslot {
    /// Whether a key can be put there.
    const fn is_free(&self) -> bool {
        !self.active && self.unusable.is_none()
    }

    fn unused(offset: u64) -> Self {
        Self {
            active: false,
            unusable: None,
            iterations: 0,
            offset,
            stripes: STRIPES,
            salt: [0; 32],
        }
    }
}
