//! From a passphrase to the volume key, and from that to the mapping.

use super::metadata::{
    Crypt, Digest, Keyslot, PassphraseKeyslot, Priority, Segment, SegmentKind, Verifier,
};
use super::read::Header;
use super::{recovery_key, unsupported};
use crate::damage::printable;
use crate::error::unbound_keyslot;
use crate::key_text;
use crate::keyslot::KeyMaterial;
use crate::mapping::{described, described_to_end, key_for, sectors_of, within};
use crate::{
    Access, Damage, Format, Limits, Mapping, SealedMapping, Secret, Unlocked, Untried, VolumeError,
};
use block::BlockDevice;
use cipher::{CipherSpec, IvSector, Key};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use subtle::ConstantTimeEq;

impl Header {
    /// Finds the volume key: in `slot`, or in the first keyslot of the data
    /// that opens, the preferred before the others.
    ///
    /// # Errors
    /// [`VolumeError::NoKeyslotFits`], [`VolumeError::KeyslotsUntried`],
    /// [`VolumeError::NoKeyslot`], [`VolumeError::NoUsableKeyslot`],
    /// [`VolumeError::WrongVolumeKey`],
    /// [`VolumeError::EmptyKeyslot`], [`VolumeError::Impossible`],
    /// [`VolumeError::Unsupported`], those of [`Kdf::derive`](crate::Kdf::derive),
    /// [`VolumeError::Cipher`] and [`VolumeError::Block`].
    pub fn unlock(
        &self,
        device: &dyn BlockDevice,
        secret: &Secret,
        slot: Option<u32>,
        limits: &Limits,
    ) -> Result<Unlocked, VolumeError> {
        let digest = &self.metadata.digests[&self.digest_of_data()?];
        self.unlock_digest(device, digest, secret, slot, limits)
    }

    /// The most memory that trying one passphrase takes, KiB: on `slot`, or on all.
    pub(crate) fn attempt_memory_kib(&self, slot: Option<u32>) -> u32 {
        let keyslots = self.metadata.keyslots.iter();
        let asked = keyslots.filter(|(number, _)| slot.is_none_or(|slot| slot == **number));
        let memory = asked.filter_map(|(_, keyslot)| match keyslot {
            Keyslot::Luks2(keyslot) => Some(keyslot.kdf.memory_kib()),
            Keyslot::Other { .. } => None,
        });
        memory.max().unwrap_or(0)
    }

    /// Finds the key that `digest` is of.
    pub(super) fn unlock_digest(
        &self,
        device: &dyn BlockDevice,
        digest: &Digest,
        secret: &Secret,
        slot: Option<u32>,
        limits: &Limits,
    ) -> Result<Unlocked, VolumeError> {
        let verifier = digest.verifier()?;
        // All that can be refused is refused before any work is done.
        verifier
            .kdf
            .check(&verifier.salt, verifier.digest.len(), limits)?;
        let lengths = self.key_lengths(digest);
        let passphrase = match secret {
            Secret::Passphrase(bytes) | Secret::KeyFile(bytes) => bytes.as_bytes(),
            Secret::VolumeKey(key) => {
                let key = key_text::key_in(key, |length| lengths.contains(&length));
                return match verifier.verifies(&key, &lengths, limits)? {
                    true => Ok(Unlocked { key, slot: None }),
                    false => Err(VolumeError::WrongVolumeKey),
                };
            }
        };
        let (candidates, untried) = self.candidates(digest, slot, limits)?;
        let rewritten = match secret {
            Secret::Passphrase(typed) => recovery_key::rewritten(typed.as_bytes()),
            Secret::KeyFile(_) | Secret::VolumeKey(_) => None,
        };
        let mut tries = Vec::new();
        for candidate in candidates {
            tries.push((candidate, passphrase));
            if let Some(rewritten) = &rewritten
                && self.takes_recovery_key(candidate.0)
            {
                tries.push((candidate, rewritten.as_bytes()));
            }
        }
        let verifying = verifier.kdf.work(verifier.digest.len());
        limits.check_all(
            tries
                .iter()
                .map(|((_, keyslot), _)| keyslot.kdf.work(keyslot.area_key_bytes) + verifying),
        )?;
        let mut unread = None;
        for ((number, keyslot), passphrase) in &tries {
            let length = keyslot.area_key_bytes;
            let slot_key = keyslot
                .kdf
                .derive(passphrase, &keyslot.salt, length, limits)?;
            let key = match keyslot.material()?.open(device, &slot_key) {
                // Another one may open, and be readable.
                Err(error) if error.is_of_place() => {
                    unread = unread.or(Some(error));
                    continue;
                }
                key => key?,
            };
            if verifier.verifies(&key, &lengths, limits)? {
                return Ok(Unlocked {
                    key,
                    slot: Some(*number),
                });
            }
        }
        let none = VolumeError::none_fits(Format::Luks2, secret, !tries.is_empty(), untried);
        Err(unread.unwrap_or(none))
    }

    /// Refuses a key from a caller that is not the key of the data: nothing would open by it.
    pub(super) fn check_volume_key(&self, key: &Key) -> Result<(), VolumeError> {
        let digest = &self.metadata.digests[&self.digest_of_data()?];
        let lengths = self.key_lengths(digest);
        match digest
            .verifier()?
            .verifies(key, &lengths, &Limits::default())?
        {
            true => Ok(()),
            false => Err(VolumeError::WrongVolumeKey),
        }
    }

    /// The lengths that the key of `digest` may have, as its keyslots say them.
    fn key_lengths(&self, digest: &Digest) -> BTreeSet<usize> {
        let listed = digest.keyslots.iter();
        let keyslots = listed.filter_map(|slot| self.metadata.keyslots.get(slot));
        let lengths = keyslots.filter_map(|keyslot| match keyslot {
            Keyslot::Luks2(keyslot) => Some(keyslot.key_bytes),
            Keyslot::Other {
                kind, key_bytes, ..
            } if kind == "luks2" => *key_bytes,
            Keyslot::Other { .. } => None,
        });
        lengths.collect()
    }

    /// The keyslots to try, in order, and those of the digest that cannot be.
    fn candidates(
        &self,
        digest: &Digest,
        slot: Option<u32>,
        limits: &Limits,
    ) -> Result<Candidates<'_>, VolumeError> {
        let keyslots = &self.metadata.keyslots;
        if let Some(slot) = slot {
            self.check_keyslot(slot, limits)?;
            return match keyslots.get(&slot) {
                Some(Keyslot::Luks2(keyslot)) if digest.keyslots.contains(&slot) => {
                    Ok((vec![(slot, keyslot)], Vec::new()))
                }
                _ => Err(unbound_keyslot(slot)),
            };
        }
        let (mut candidates, mut untried) = (Vec::new(), Vec::new());
        for (&slot, keyslot) in keyslots {
            if !digest.keyslots.contains(&slot) {
                continue;
            }
            let checked = self.check_keyslot(slot, limits);
            let why = match (keyslot, checked) {
                (_, Err(why)) => why,
                (Keyslot::Luks2(keyslot), Ok(())) if keyslot.priority != Priority::Ignore => {
                    candidates.push((slot, &**keyslot));
                    continue;
                }
                (_, Ok(())) => VolumeError::IgnoredKeyslot { slot },
            };
            untried.push(Untried {
                slot,
                why: Box::new(why),
            });
        }
        candidates.sort_by_key(|(number, keyslot)| (Reverse(keyslot.priority), *number));
        Ok((candidates, untried))
    }

    /// The volume as `key`, which was verified, opens it on `data`, the device
    /// that holds its data.
    ///
    /// # Errors
    /// [`VolumeError::Unsupported`], [`VolumeError::Cipher`],
    /// [`VolumeError::DataArea`] and [`VolumeError::DataAlignment`].
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
        let (segment, crypt) = self.encrypted_segment()?;
        if let Some(integrity) = &crypt.integrity {
            let kind = printable(&integrity.kind);
            return Err(unsupported(format!("integrity `{kind}`")));
        }
        let (spec, layout) = (crypt.encryption.parse()?, sectors_of(crypt.sector_size));
        let key = key_for(&spec, &key);
        let data = match segment.size {
            None => described_to_end(data, segment.offset, layout),
            Some(size) => described(segment.offset, size, layout)?,
        };
        Ok(Mapping {
            holes: self.has_holes(),
            ..Mapping::new(spec, key, layout, data, IvSector::new(crypt.iv_tweak))
        })
    }

    /// Whether the sectors of the data have tags.
    #[doc(hidden)]
    pub fn is_sealed(&self) -> bool {
        let encrypted = self.encrypted_segment();
        encrypted.is_ok_and(|(_, crypt)| crypt.integrity.is_some())
    }

    /// The volume as `key`, which was verified, opens it, its sectors having
    /// tags.
    ///
    /// # Errors
    /// [`VolumeError::Unsupported`].
    #[doc(hidden)]
    pub fn sealed_mapping(&self, key: Key, access: Access) -> Result<SealedMapping, VolumeError> {
        let (_, segment) = self.data_segment()?;
        let sealed = segment.crypt().map(|crypt| (crypt, &crypt.integrity));
        let Some((crypt, Some(integrity))) = sealed else {
            return Err(unsupported("data without integrity tags"));
        };
        for (what, name) in [
            ("encrypted", &integrity.journal_encryption),
            ("authenticated", &integrity.journal_integrity),
        ] {
            if name != "none" {
                return Err(unsupported(format!("an {what} journal (`{name}`)")));
            }
        }
        Ok(SealedMapping {
            encryption: crypt.encryption.clone(),
            integrity: integrity.kind.clone(),
            key,
            mac_key_bytes: integrity.key_bytes,
            sector_size: crypt.sector_size,
            offset: segment.offset,
            size: segment.size,
            first: IvSector::new(crypt.iv_tweak),
            access,
        })
    }

    /// The segment of a volume that has one of encrypted data, and its sector
    /// size in bytes.
    ///
    /// # Errors
    /// [`VolumeError::Unsupported`].
    #[doc(hidden)]
    pub fn only_segment(&self) -> Result<(&Segment, u64), VolumeError> {
        let (segment, crypt) = self.encrypted_segment()?;
        match &crypt.integrity {
            Some(_) => Err(unsupported(
                "integrity tags, which have a size of their own",
            )),
            None => Ok((segment, crypt.sector_size.bytes() as u64)),
        }
    }

    /// Refuses a volume whose data cannot be opened here, whatever opens its
    /// keyslots.
    ///
    /// # Errors
    /// [`VolumeError::Unsupported`], [`VolumeError::Header`] and
    /// [`VolumeError::Cipher`].
    #[doc(hidden)]
    pub fn check_data(&self) -> Result<(), VolumeError> {
        let (number, segment) = self.data_segment()?;
        let digest = &self.metadata.digests[&self.digest_of(number)?];
        match segment.crypt() {
            Some(crypt) if crypt.integrity.is_some() => {
                for length in self.key_lengths(digest) {
                    let key = Key::from(vec![0; length]);
                    self.sealed_mapping(key, Access::Read)?.check()?;
                }
            }
            Some(crypt) => drop(crypt.encryption.parse::<CipherSpec>()?),
            None => {}
        }
        digest.verifier()?;
        Ok(())
    }

    /// Refuses a keyslot that cannot be tried here, whatever opens it.
    ///
    /// # Errors
    /// [`VolumeError::EmptyKeyslot`], [`VolumeError::UnusableKeyslot`],
    /// [`VolumeError::NullKeyslot`],
    /// [`VolumeError::Cipher`] and those of [`Kdf::derive`](crate::Kdf::derive).
    #[doc(hidden)]
    pub fn check_keyslot(&self, slot: u32, limits: &Limits) -> Result<(), VolumeError> {
        match self.metadata.keyslots.get(&slot) {
            Some(Keyslot::Luks2(keyslot)) => keyslot.check(slot, limits),
            Some(Keyslot::Other { why, .. }) => Err(VolumeError::UnusableKeyslot {
                slot,
                damage: (**why).clone(),
            }),
            None => Err(VolumeError::EmptyKeyslot { slot }),
        }
    }

    /// The numbers of the keyslots that hold the data's key.
    ///
    /// # Errors
    /// [`VolumeError::Unsupported`].
    pub fn keyslots_of_data(&self) -> Result<&[u32], VolumeError> {
        Ok(&self.metadata.digests[&self.digest_of_data()?].keyslots)
    }

    /// The number of the digest of the data's key.
    pub(super) fn digest_of_data(&self) -> Result<u32, VolumeError> {
        let (number, segment) = self.data_segment()?;
        match (self.digest_of(number), &segment.kind) {
            (Err(_), SegmentKind::Linear) => Err(VolumeError::Decrypted {
                offset: segment.offset,
            }),
            (digest, _) => digest,
        }
    }

    /// The number of the digest of a segment's key.
    pub(super) fn digest_of(&self, segment: u32) -> Result<u32, VolumeError> {
        let mut digests = self.metadata.digests.iter();
        let found = digests.find(|(_, digest)| digest.segments.contains(&segment));
        match found {
            Some((&number, _)) => Ok(number),
            None => Err(unsupported("data without a digest")),
        }
    }

    /// The one segment of data, which are encrypted.
    fn encrypted_segment(&self) -> Result<(&Segment, &Crypt), VolumeError> {
        let (_, segment) = self.data_segment()?;
        let crypt = segment.crypt();
        let crypt = crypt.ok_or_else(|| unsupported("data that is not encrypted"))?;
        Ok((segment, crypt))
    }

    /// The one segment of the data.
    pub(super) fn data_segment(&self) -> Result<(u32, &Segment), VolumeError> {
        self.check_requirements()?;
        let mut used = self
            .metadata
            .segments
            .iter()
            .filter(|(_, s)| !s.is_backup());
        match (used.next(), used.next()) {
            (Some((&number, segment)), None) => match &segment.kind {
                SegmentKind::Other { why, .. } => {
                    Err(VolumeError::damaged(Format::Luks2, (**why).clone()))
                }
                SegmentKind::Crypt(_) | SegmentKind::Linear => Ok((number, segment)),
            },
            _ => Err(unsupported("several segments")),
        }
    }

    /// Refuses a volume that requires what is not known here: neither its data
    /// nor anything in its header is touched then.
    pub(super) fn check_requirements(&self) -> Result<(), VolumeError> {
        if self.is_reencrypting() {
            return Err(VolumeError::Reencrypting);
        }
        let metadata = &self.metadata;
        let required = &metadata.config.requirements;
        let of_the_drive = |name: &String| name == "opal" || name.starts_with("opal-v");
        if metadata.segments.values().any(Segment::is_of_the_drive)
            || required.iter().any(of_the_drive)
        {
            return Err(unsupported("hardware encryption of the drive (OPAL)"));
        }
        match required.first() {
            Some(requirement) => Err(unsupported(format!("`{}`", printable(requirement)))),
            None => Ok(()),
        }
    }
}

impl PassphraseKeyslot {
    /// Refuses what cannot be tried, before any work is done.
    fn check(&self, slot: u32, limits: &Limits) -> Result<(), VolumeError> {
        if is_null(&self.encryption) {
            return Err(VolumeError::NullKeyslot { slot });
        }
        let bytes = self.area_key_bytes;
        self.kdf.check(&self.salt, bytes, limits)?;
        self.material()?.check_key(bytes)
    }

    fn material(&self) -> Result<KeyMaterial, VolumeError> {
        Ok(KeyMaterial {
            spec: self.encryption.parse()?,
            offset: self.area.offset,
            key_bytes: self.key_bytes,
            stripes: self.af.stripes as usize,
            hash: self.af.hash,
        })
    }
}

/// Keyslots to try, in order, and those that cannot be.
type Candidates<'a> = (Vec<(u32, &'a PassphraseKeyslot)>, Vec<Untried>);

impl Digest {
    /// How a key is compared.
    pub(super) fn verifier(&self) -> Result<&Verifier, VolumeError> {
        let refused = |why: &Damage| VolumeError::damaged(Format::Luks2, why.clone());
        self.verifier.as_ref().map_err(|why| refused(why))
    }

    /// Whether it is of `bytes`, whose length is known elsewhere.
    pub(super) fn is_of(&self, bytes: &Key, limits: &Limits) -> Result<bool, VolumeError> {
        let lengths = BTreeSet::from([bytes.len()]);
        self.verifier()?.verifies(bytes, &lengths, limits)
    }
}

impl Verifier {
    /// Whether `key` is the one, which has one of these `lengths`, if anything
    /// tells.
    ///
    /// PBKDF2 does not tell a key from the same one with zeros behind it.
    fn verifies(
        &self,
        key: &Key,
        lengths: &BTreeSet<usize>,
        limits: &Limits,
    ) -> Result<bool, VolumeError> {
        let bytes = key.as_bytes();
        let padded = match lengths.first() {
            Some(shortest) => {
                bytes.len() > *shortest && bytes[*shortest..].iter().all(|byte| *byte == 0)
            }
            None => bytes.ends_with(&NO_END),
        };
        if padded || !(lengths.is_empty() || lengths.contains(&bytes.len())) {
            return Ok(false);
        }
        let digest = self
            .kdf
            .derive(key.as_bytes(), &self.salt, self.digest.len(), limits)?;
        Ok(digest.as_bytes().ct_eq(&self.digest).into())
    }
}

/// An end that no random key has. A shorter key that was padded with zeros has it.
const NO_END: [u8; 8] = [0; 8];

/// Whether a cipher, as a header writes it, is none.
fn is_null(encryption: &str) -> bool {
    encryption.contains("cipher_null") || encryption == "null"
}
