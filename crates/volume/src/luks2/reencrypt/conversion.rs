//! [`Side`]: the data as it was, or as it is to be.

use crate::crypt::decrypt_around;
use crate::luks2::metadata::{Segment, SegmentKind};
use crate::luks2::unsupported;
use crate::mapping::{key_for, sectors_of};
use crate::{Format, Mapping, VolumeError};
use block::ByteRange;
use cipher::{CipherSpec, IvSector, Key, KeyedCipher, SectorCipher, SectorLayout};

/// One of the two ways in which data is encrypted.
pub(super) struct Side {
    pub(super) cipher: KeyedCipher,
    layout: SectorLayout,
    first: IvSector,
    holes: bool,
}

impl Side {
    /// The side of `segment`; `holes` says whether zeros are zeros of the plaintext.
    pub(super) fn new(segment: &Segment, key: &Key, holes: bool) -> Result<Self, VolumeError> {
        let (spec, layout) = crypt_parts(segment)?;
        Ok(Self {
            cipher: spec.cipher(&key_for(&spec, key), layout, None)?,
            layout,
            first: first_iv(segment),
            holes,
        })
    }

    /// Decrypts the data at `position`.
    pub(super) fn decrypt(&self, position: u64, bytes: &mut [u8]) {
        decrypt_around(self.holes, bytes, |bytes| {
            self.cipher.decrypt(self.iv_at(position), bytes);
        });
    }

    pub(super) fn iv_at(&self, position: u64) -> IvSector {
        let sectors = position / self.layout.size.bytes() as u64;
        self.first.advance(sectors, self.layout)
    }
}

/// The data at `position`, `range` of its device, as `segment` encrypts it.
pub(super) fn mapping(
    segment: &Segment,
    key: &Key,
    position: u64,
    range: ByteRange,
) -> Result<Mapping, VolumeError> {
    let (spec, layout) = crypt_parts(segment)?;
    let sectors = position / layout.size.bytes() as u64;
    let first = first_iv(segment).advance(sectors, layout);
    let key = key_for(&spec, key);
    Ok(Mapping::new(spec, key, layout, range, first))
}

fn first_iv(segment: &Segment) -> IvSector {
    IvSector::new(segment.crypt().map_or(0, |crypt| crypt.iv_tweak))
}

/// Cipher and sectors of a segment; no cipher is a cipher here.
pub(super) fn crypt_parts(segment: &Segment) -> Result<(CipherSpec, SectorLayout), VolumeError> {
    match &segment.kind {
        SegmentKind::Linear => Ok(("cipher_null-ecb".parse()?, SectorLayout::default())),
        SegmentKind::Other { why, .. } => Err(VolumeError::damaged(Format::Luks2, (**why).clone())),
        SegmentKind::Crypt(crypt) if crypt.integrity.is_some() => {
            Err(unsupported("reencryption with integrity tags"))
        }
        SegmentKind::Crypt(crypt) => Ok((crypt.encryption.parse()?, sectors_of(crypt.sector_size))),
    }
}
