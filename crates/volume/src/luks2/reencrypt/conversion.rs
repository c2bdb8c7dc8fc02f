//! [`Side`]: the data as it was, or as it is to be.

use crate::crypt::decrypt_around;
use crate::luks2::metadata::{Segment, SegmentKind};
use crate::mapping::key_for;
use crate::{Format, Mapping, VolumeError};
use block::ByteRange;
use cipher::{CipherSpec, IvSector, Key, KeyedCipher, SectorCipher, SectorLayout};

/// One of the two ways in which data is encrypted.
pub(super) struct Side {
    pub(super) cipher: KeyedCipher,
    layout: SectorLayout,
    first: IvSector,
    /// Whether zeros are zeros of the plaintext.
    holes: bool,
}

impl Side {
    pub(super) fn new(segment: &Segment, key: &Key) -> Result<Self, VolumeError> {
        let (spec, layout) = crypt_parts(segment)?;
        Ok(Self {
            cipher: spec.cipher(&key_for(&spec, key), layout, None)?,
            layout,
            first: first_iv(segment),
            holes: false,
        })
    }

    /// The same data, in which zeros are zeros of the plaintext if `holes` says so.
    pub(super) fn with_holes(self, holes: bool) -> Self {
        Self { holes, ..self }
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
    Ok(Mapping {
        key: key_for(&spec, key),
        spec,
        layout,
        data: range,
        first: first_iv(segment).advance(sectors, layout),
        backend: None,
        sharing: None,
        allow_discards: false,
        holes: false,
    })
}

fn first_iv(segment: &Segment) -> IvSector {
    IvSector::new(match segment.kind {
        SegmentKind::Crypt { iv_tweak, .. } => iv_tweak,
        SegmentKind::Linear | SegmentKind::Other { .. } => 0,
    })
}

/// Cipher and sectors of a segment; no cipher is a cipher here.
pub(super) fn crypt_parts(segment: &Segment) -> Result<(CipherSpec, SectorLayout), VolumeError> {
    match &segment.kind {
        SegmentKind::Linear => Ok(("cipher_null-ecb".parse()?, SectorLayout::default())),
        SegmentKind::Other { why, .. } => Err(VolumeError::damaged(Format::Luks2, (**why).clone())),
        SegmentKind::Crypt {
            integrity: Some(_), ..
        } => Err(VolumeError::Unsupported {
            format: Format::Luks2,
            feature: "reencryption with integrity tags".into(),
        }),
        SegmentKind::Crypt {
            encryption,
            sector_size,
            ..
        } => Ok((
            encryption.parse()?,
            SectorLayout {
                size: *sector_size,
                large_iv: false,
            },
        )),
    }
}
