//! The boot sector, which holds the offsets of the metadata.

use super::{damaged, unsupported};
use crate::fields::Fields;
use crate::{Damage, Format, VolumeError};
use cipher::SectorSize;

/// Length of the boot sector, bytes.
pub(super) const BOOT_BYTES: u64 = 512;

/// The signature: in the boot sector instead of the file system's name, and at the start of the metadata.
pub(super) const SIGNATURE: [u8; 8] = *b"-FVE-FS-";

/// Offset of the file system's name.
pub(super) const NAME_AT: usize = 3;

/// Offset of the cluster number that NTFS uses for the mirror of its file table. BitLocker of
/// Vista stores the cluster of the first metadata copy there.
pub(super) const CLUSTER_AT: usize = 56;

/// 4967d63b-2e29-4ad8-8399-f6a339e3d001. Three offsets of metadata follow it.
const IDENTIFIER: [u8; 16] = [
    0x3b, 0xd6, 0x67, 0x49, 0x29, 0x2e, 0xd8, 0x4a, 0x83, 0x99, 0xf6, 0xa3, 0x39, 0xe3, 0xd0, 0x01,
];

/// 92a84d3b-dd80-4d0e-9e4e-b1e3284eaed8, of a volume with encrypt-on-write. Three offsets of
/// metadata follow it, then two of encrypt-on-write heads.
const IDENTIFIER_ON_WRITE: [u8; 16] = [
    0x3b, 0x4d, 0xa8, 0x92, 0x80, 0xdd, 0x0e, 0x4d, 0x9e, 0x4e, 0xb1, 0xe3, 0x28, 0x4e, 0xae, 0xd8,
];

/// The kind of BitLocker that made a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// Windows Vista. The first 8 KiB are not encrypted.
    Vista,
    /// Windows 7 and later.
    Seven,
    /// BitLocker To Go. The boot sector looks like FAT.
    ToGo,
}

/// A parsed boot sector.
#[derive(Clone, Copy, Debug)]
pub(super) struct Boot {
    pub(super) generation: Generation,
    pub(super) sector_size: SectorSize,
    pub(super) cluster_bytes: u64,
    /// Offsets of the metadata copies. Vista's boot sector has only the first.
    pub(super) metadata: [Option<u64>; 3],
    /// Offsets of the two encrypt-on-write heads.
    pub(super) on_write: Option<[u64; 2]>,
}

/// Whether `start` is the start of a BitLocker volume.
pub(crate) fn has_signature(start: &[u8]) -> bool {
    let start = &start[..start.len().min(BOOT_BYTES as usize)];
    let names_itself = start
        .get(NAME_AT..)
        .is_some_and(|name| name.starts_with(&SIGNATURE));
    names_itself
        || find(start, &IDENTIFIER).is_some()
        || find(start, &IDENTIFIER_ON_WRITE).is_some()
}

/// The offset of `identifier`. Windows accepts it anywhere in the boot sector.
fn find(start: &[u8], identifier: &[u8; 16]) -> Option<usize> {
    start.windows(16).position(|window| window == identifier)
}

impl Boot {
    /// Parses the boot sector at the start of `start`.
    ///
    /// # Errors
    /// [`VolumeError::NotThis`], [`VolumeError::Cut`], [`VolumeError::Header`],
    /// [`VolumeError::Unsupported`] for sectors of other sizes than 512 to 4096 bytes.
    pub(super) fn parse(start: &[u8]) -> Result<Self, VolumeError> {
        let format = Format::Bitlk;
        if !has_signature(start) {
            return Err(VolumeError::NotThis { format });
        }
        let Some(start) = start.get(..BOOT_BYTES as usize) else {
            return Err(VolumeError::Cut {
                format,
                needed: BOOT_BYTES,
                got: start.len() as u64,
            });
        };
        let fields = Fields(start);
        let sector_size = match fields.le16(11) {
            0 => SectorSize::B512,
            bytes => SectorSize::from_bytes(bytes.into())
                .ok_or_else(|| unsupported(format!("sectors of {bytes} bytes")))?,
        };
        let clusters = u64::from(start[13]);
        let cluster_bytes = clusters * sector_size.bytes() as u64;
        let on_write = find(start, &IDENTIFIER_ON_WRITE);
        let Some(at) = on_write.or_else(|| find(start, &IDENTIFIER)) else {
            return Self::vista(&fields, sector_size, cluster_bytes);
        };
        let needed = at + 16 + 8 * if on_write.is_some() { 5 } else { 3 };
        if needed > start.len() {
            return Err(damaged(Damage::missing("information offsets")));
        }
        let place = |nth: usize| fields.le64(at + 16 + 8 * nth);
        Ok(Self {
            generation: match start[NAME_AT..].starts_with(&SIGNATURE) {
                true => Generation::Seven,
                false => Generation::ToGo,
            },
            sector_size,
            cluster_bytes,
            metadata: [0, 1, 2].map(|nth| Some(place(nth))),
            on_write: on_write.map(|_| [place(3), place(4)]),
        })
    }

    fn vista(
        fields: &Fields,
        sector_size: SectorSize,
        cluster_bytes: u64,
    ) -> Result<Self, VolumeError> {
        if !cluster_bytes.is_power_of_two() {
            return Err(damaged(Damage::number(
                "sectors per cluster",
                cluster_bytes / sector_size.bytes() as u64,
                "must be a power of two",
            )));
        }
        let cluster = fields.le64(CLUSTER_AT);
        let first = cluster.checked_mul(cluster_bytes).ok_or_else(|| {
            damaged(Damage::number(
                "metadata cluster",
                cluster,
                "must be one of the volume's",
            ))
        })?;
        Ok(Self {
            generation: Generation::Vista,
            sector_size,
            cluster_bytes,
            metadata: [Some(first), None, None],
            on_write: None,
        })
    }
}
