//! From a passphrase to the volume key, and from that to the mapping.

use super::metadata::{
    Digest, Keyslot, PassphraseKeyslot, Priority, Segment, SegmentKind, SegmentSize,
};
use super::read::Header;
use crate::damage::printable;
use crate::kdf::Total;
use crate::keyslot::KeyMaterial;
use crate::mapping::{data_of_size, data_to_end, key_for};
use crate::{Access, Format, Limits, Mapping, SealedMapping, Secret, Unlocked, VolumeError};
use block::BlockDevice;
use cipher::{IvSector, Key, SectorLayout};
use std::cmp::Reverse;
use subtle::ConstantTimeEq;

impl Header {
    /// Finds the volume key: in `slot`, or in the first keyslot of the data
    /// that opens, the preferred before the others.
    ///
    /// # Errors
    /// [`VolumeError::NoKeyslotFits`], [`VolumeError::WrongVolumeKey`],
    /// [`VolumeError::EmptyKeyslot`], [`VolumeError::UnboundKeyslot`],
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

    /// Finds the key that `digest` is of.
    pub(super) fn unlock_digest(
        &self,
        device: &dyn BlockDevice,
        digest: &Digest,
        secret: &Secret,
        slot: Option<u32>,
        limits: &Limits,
    ) -> Result<Unlocked, VolumeError> {
        let passphrase = match secret {
            Secret::Passphrase(bytes) | Secret::KeyFile(bytes) => bytes.as_bytes(),
            Secret::VolumeKey(key) if digest.verifies(key, limits)? => {
                return Ok(Unlocked {
                    key: Key::from_slice(key.as_bytes()),
                    slot: None,
                });
            }
            Secret::VolumeKey(_) => return Err(VolumeError::WrongVolumeKey),
        };
        let candidates = self.candidates(digest, slot)?;
        // All that can be refused is refused before any work is done.
        let length = digest.digest.len();
        digest.kdf.check(&digest.salt, length, limits)?;
        let mut total = Total::default();
        for (_, keyslot) in &candidates {
            keyslot.check(limits)?;
            total.add(&keyslot.kdf);
            total.add(&digest.kdf);
        }
        total.check(limits)?;
        let mut unread = None;
        for (number, keyslot) in candidates {
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
            if digest.verifies(&key, limits)? {
                return Ok(Unlocked {
                    key,
                    slot: Some(number),
                });
            }
        }
        Err(unread.unwrap_or(VolumeError::NoKeyslotFits))
    }

    /// The keyslots to try, in order.
    fn candidates(
        &self,
        digest: &Digest,
        slot: Option<u32>,
    ) -> Result<Vec<(u32, &PassphraseKeyslot)>, VolumeError> {
        let keyslots = &self.metadata.keyslots;
        if let Some(slot) = slot {
            return match keyslots.get(&slot) {
                None => Err(VolumeError::EmptyKeyslot { slot }),
                Some(Keyslot::Other { kind, .. }) => Err(unsupported(format!(
                    "the keyslot type `{}`",
                    printable(kind)
                ))),
                Some(Keyslot::Luks2(_)) if !digest.keyslots.contains(&slot) => {
                    Err(VolumeError::UnboundKeyslot { slot })
                }
                Some(Keyslot::Luks2(keyslot)) => Ok(vec![(slot, keyslot)]),
            };
        }
        let mut candidates: Vec<_> = keyslots
            .iter()
            .filter_map(|(&number, keyslot)| match keyslot {
                Keyslot::Luks2(keyslot) => Some((number, &**keyslot)),
                Keyslot::Other { .. } => None,
            })
            .filter(|(number, keyslot)| {
                digest.keyslots.contains(number) && keyslot.priority != Priority::Ignore
            })
            .collect();
        candidates.sort_by_key(|(number, keyslot)| (Reverse(keyslot.priority), *number));
        Ok(candidates)
    }

    /// The volume as `key`, which was verified, opens it on `data`, the device
    /// that holds its data.
    ///
    /// # Errors
    /// [`VolumeError::Unsupported`], [`VolumeError::Cipher`],
    /// [`VolumeError::DataArea`] and [`VolumeError::DataAlignment`].
    pub fn mapping(&self, key: Key, data: &dyn BlockDevice) -> Result<Mapping, VolumeError> {
        let (_, segment) = self.data_segment()?;
        let SegmentKind::Crypt {
            encryption,
            sector_size,
            iv_tweak,
            integrity,
        } = &segment.kind
        else {
            return Err(unsupported("data that is not encrypted"));
        };
        if let Some(integrity) = integrity {
            return Err(unsupported(format!(
                "integrity `{}`",
                printable(&integrity.kind)
            )));
        }
        let layout = SectorLayout {
            size: *sector_size,
            large_iv: false,
        };
        let spec = encryption.parse()?;
        Ok(Mapping {
            key: key_for(&spec, &key),
            spec,
            layout,
            data: match segment.size {
                SegmentSize::Dynamic => data_to_end(data, segment.offset, layout)?,
                SegmentSize::Fixed(size) => data_of_size(data, segment.offset, size, layout)?,
            },
            first: IvSector::new(*iv_tweak),
            backend: None,
            sharing: None,
            allow_discards: false,
        })
    }

    /// Whether the sectors of the data have tags.
    pub fn is_sealed(&self) -> bool {
        let tags = |kind: &SegmentKind| {
            matches!(
                kind,
                SegmentKind::Crypt {
                    integrity: Some(_),
                    ..
                }
            )
        };
        self.data_segment()
            .is_ok_and(|(_, segment)| tags(&segment.kind))
    }

    /// The volume as `key`, which was verified, opens it, its sectors having
    /// tags.
    ///
    /// # Errors
    /// [`VolumeError::Unsupported`].
    pub fn sealed_mapping(&self, key: Key, access: Access) -> Result<SealedMapping, VolumeError> {
        let (_, segment) = self.data_segment()?;
        let SegmentKind::Crypt {
            encryption,
            sector_size,
            iv_tweak,
            integrity: Some(integrity),
        } = &segment.kind
        else {
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
            encryption: encryption.clone(),
            integrity: integrity.kind.clone(),
            key,
            mac_key_bytes: integrity.key_bytes,
            sector_size: *sector_size,
            offset: segment.offset,
            size: match segment.size {
                SegmentSize::Dynamic => None,
                SegmentSize::Fixed(bytes) => Some(bytes),
            },
            first: IvSector::new(*iv_tweak),
            access,
        })
    }

    /// The segment of a volume that has one of encrypted data, and its sector
    /// size in bytes.
    ///
    /// # Errors
    /// [`VolumeError::Unsupported`].
    pub fn only_segment(&self) -> Result<(&Segment, u64), VolumeError> {
        let (_, segment) = self.data_segment()?;
        match &segment.kind {
            SegmentKind::Crypt {
                integrity: Some(_), ..
            } => Err(unsupported(
                "integrity tags, which have a size of their own",
            )),
            SegmentKind::Crypt { sector_size, .. } => Ok((segment, sector_size.bytes() as u64)),
            SegmentKind::Linear => Err(unsupported("data that is not encrypted")),
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
        let (segment, _) = self.data_segment()?;
        self.digest_of(segment)
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

    /// The one segment of the data.
    pub(super) fn data_segment(&self) -> Result<(u32, &Segment), VolumeError> {
        if self.is_reencrypting() {
            return Err(VolumeError::Reencrypting);
        }
        if let Some(requirement) = self.metadata.config.requirements.first() {
            return Err(unsupported(format!("`{}`", printable(requirement))));
        }
        let mut used = self
            .metadata
            .segments
            .iter()
            .filter(|(_, s)| !s.is_backup());
        match (used.next(), used.next()) {
            (Some((&number, segment)), None) => Ok((number, segment)),
            _ => Err(unsupported("several segments")),
        }
    }
}

impl PassphraseKeyslot {
    fn check(&self, limits: &Limits) -> Result<(), VolumeError> {
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

impl Digest {
    /// Whether `key` is the one.
    pub(super) fn verifies(&self, key: &Key, limits: &Limits) -> Result<bool, VolumeError> {
        let length = self.digest.len();
        let digest = self
            .kdf
            .derive(key.as_bytes(), &self.salt, length, limits)?;
        Ok(digest.as_bytes().ct_eq(&self.digest).into())
    }
}

fn unsupported(feature: impl Into<Box<str>>) -> VolumeError {
    VolumeError::Unsupported {
        format: Format::Luks2,
        feature: feature.into(),
    }
}
