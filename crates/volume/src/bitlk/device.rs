//! [`BitlkDevice`]: the plaintext of a BitLocker volume.

use super::boot::{CLUSTER_AT, NAME_AT, SIGNATURE};
use super::header::Header;
use super::map::{Map, Run, Stands};
use super::queue::BitlkQueue;
use crate::fields::Fields;
use crate::mapping::data_to_end;
use crate::{CryptDevice, Damage, Mapping, VolumeError, Warning};
use block::{
    AlignedBuffer, BlockDevice, BlockError, ByteRange, Geometry, OperationKind, Queue,
    QueueOptions, signature,
};
use cipher::{IvSector, Key, SectorLayout, SectorSize};

/// NTFS's name, which BitLocker replaces by its signature.
const NTFS: [u8; 8] = *b"NTFS    ";

/// An opened BitLocker volume.
#[derive(Debug)]
pub struct BitlkMapping {
    /// The mapping of an encrypted sector: the whole device, sector numbers from its start.
    pub mapping: Mapping,
    map: Map,
    /// For Vista: the value at [`CLUSTER_AT`] that NTFS needs, and the one that BitLocker needs.
    boot_fields: [u64; 2],
    /// The least size of a device that holds all of the volume, bytes.
    pub(crate) needed: u64,
    /// Whether a step of the conversion was interrupted, so that its log has data that belong on
    /// the volume.
    pub(crate) is_unsettled: bool,
    /// The damage to the encrypt-on-write bitmaps.
    lost: Option<Damage>,
}

impl BitlkMapping {
    /// What the metadata say about parts that are not encrypted. No digest covers the bitmaps, and
    /// none covers the metadata of Vista.
    pub(crate) fn warnings(&self) -> Option<Warning> {
        if let Some(damage) = self.lost.clone() {
            return Some(Warning::UnknownParts { damage });
        }
        if self.mapping.key.is_empty() {
            return Some(Warning::Plaintext);
        }
        self.map.unprotected(self.mapping.data.length)
    }
}

impl Header {
    /// The mapping for [`BitlkDevice`]. `key` is the key of the data. It is empty if the volume is
    /// decrypted.
    ///
    /// # Errors
    /// [`VolumeError::DataArea`] and [`VolumeError::DataAlignment`] if the device is too small for
    /// any data, or an area is not made of whole blocks.
    pub fn mapping(
        &self,
        key: &Key,
        device: &dyn BlockDevice,
    ) -> Result<BitlkMapping, VolumeError> {
        let layout = SectorLayout {
            size: self.sector_size,
            large_iv: self.sector_size != SectorSize::B512,
        };
        let data = data_to_end(device, 0, layout)?;
        let block = u64::from(device.geometry().logical_block).max(layout.size.bytes() as u64);
        let spec = match key.is_empty() {
            false => self.method.spec(),
            true => "cipher_null-ecb".parse()?,
        };
        let key = Key::from_slice(key.as_bytes());
        Ok(BitlkMapping {
            map: Map::new(self, data.length, block)?,
            boot_fields: self.places.boot_fields,
            needed: self.needed(),
            is_unsettled: self.conversion.is_unsettled(),
            lost: self.conversion.lost().cloned(),
            mapping: Mapping::new(spec, key, layout, data, IvSector::new(0)),
        })
    }
}

/// The plaintext of a BitLocker volume.
///
/// BitLocker's own areas read as zeros. Writing zeros to them changes nothing. Any other write to
/// them is refused, before any part of the request is written.
pub struct BitlkDevice<D> {
    crypt: CryptDevice<D>,
    map: Map,
    boot_fields: [u64; 2],
    needed: u64,
}

impl<D: BlockDevice> BitlkDevice<D> {
    /// Opens `mapping` over `device`.
    ///
    /// # Errors
    /// Those of [`CryptDevice::new`].
    pub fn new(device: D, mapping: BitlkMapping) -> Result<Self, VolumeError> {
        Ok(Self {
            crypt: CryptDevice::new(device, mapping.mapping)?,
            map: mapping.map,
            boot_fields: mapping.boot_fields,
            needed: mapping.needed,
        })
    }

    /// Whether the plaintext shows that the volume key is a wrong one. What is beyond the end of a
    /// volume that is cut off shows nothing.
    pub(crate) fn refutes_the_key(&self) -> Result<bool, BlockError> {
        const FILE_TABLE_AT: usize = 48;
        let mut boot = AlignedBuffer::new(self.geometry().logical_block as usize);
        self.read_at(0, &mut boot)?;
        if !boot[NAME_AT..].starts_with(&NTFS) {
            return Ok(signature::names(self)?.is_empty());
        }
        if self.map.run(0).stands == Stands::Encrypted {
            return Ok(false);
        }
        // A boot sector that is not encrypted, such as Vista's, shows nothing. The file table does,
        // or else its mirror.
        let fields = Fields(&boot);
        let cluster = u64::from(fields.le16(11)) * u64::from(boot[13]);
        let (size, block) = (self.geometry().size, boot.len() as u64);
        let places = [FILE_TABLE_AT, CLUSTER_AT].map(|at| fields.le64(at).checked_mul(cluster));
        let mut places = places.into_iter().flatten();
        let Some(at) = places.find(|&at| at > 0 && at <= size - block) else {
            return Ok(self.needed <= size);
        };
        let mut table = AlignedBuffer::new(boot.len());
        self.read_at(at / block * block, &mut table)?;
        Ok(!table[(at % block) as usize..].starts_with(b"FILE"))
    }

    /// The device on which every sector is encrypted in its own place.
    pub(super) fn encrypted(&self) -> &CryptDevice<D> {
        &self.crypt
    }

    /// Whether all of the range is encrypted in its own place.
    pub(super) fn is_encrypted(&self, offset: u64, length: u64) -> bool {
        let run = self.map.run(offset);
        let end = offset.checked_add(length);
        run.stands == Stands::Encrypted && run.at == offset && end.is_some_and(|end| end <= run.end)
    }

    /// The runs of `range`, each with its offset inside the range and its length.
    fn runs(&self, range: ByteRange) -> impl Iterator<Item = (Run, usize, usize)> + '_ {
        let end = range.offset + range.length;
        let mut at = range.offset;
        std::iter::from_fn(move || {
            (at < end).then(|| {
                let run = self.map.run(at);
                let begin = (at - range.offset) as usize;
                let length = (run.end.min(end) - at) as usize;
                at += length as u64;
                (run, begin, length)
            })
        })
    }

    /// Turns NTFS's boot sector into BitLocker's. `None` if it changes a field that BitLocker
    /// replaces.
    fn boot_sector(&self, ntfs: &[u8]) -> Option<AlignedBuffer> {
        let [mirror, metadata] = self.boot_fields.map(u64::to_le_bytes);
        let same = ntfs[NAME_AT..].starts_with(&NTFS) && ntfs[CLUSTER_AT..].starts_with(&mirror);
        same.then(|| {
            let mut own = AlignedBuffer::new(ntfs.len());
            own.copy_from_slice(ntfs);
            own[NAME_AT..][..8].copy_from_slice(&SIGNATURE);
            own[CLUSTER_AT..][..8].copy_from_slice(&metadata);
            own
        })
    }
}

impl<D: BlockDevice> BlockDevice for BitlkDevice<D> {
    fn geometry(&self) -> Geometry {
        self.crypt.geometry()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        let range = self.geometry().check(offset, into.len() as u64)?;
        let device = self.crypt.device();
        for (run, begin, length) in self.runs(range) {
            let into = &mut into[begin..][..length];
            match run.stands {
                Stands::Encrypted => self.crypt.read_at(run.at, into)?,
                Stands::Plain => device.read_at(run.at, into)?,
                Stands::Nowhere => into.fill(0),
                Stands::Boot => {
                    device.read_at(run.at, into)?;
                    into[NAME_AT..][..8].copy_from_slice(&NTFS);
                    into[CLUSTER_AT..][..8].copy_from_slice(&self.boot_fields[0].to_le_bytes());
                }
            }
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        let range = self.geometry().check(offset, data.len() as u64)?;
        for (run, begin, length) in self.runs(range) {
            let data = &data[begin..][..length];
            let kept = match run.stands {
                Stands::Encrypted | Stands::Plain => true,
                Stands::Nowhere => data.iter().all(|&byte| byte == 0),
                Stands::Boot => self.boot_sector(data).is_some(),
            };
            if !kept {
                return Err(BlockError::Protected {
                    operation: OperationKind::Write,
                    offset: offset + begin as u64,
                    length: length as u64,
                });
            }
        }
        let device = self.crypt.device();
        for (run, begin, length) in self.runs(range) {
            let data = &data[begin..][..length];
            match run.stands {
                Stands::Encrypted => self.crypt.write_at(run.at, data)?,
                Stands::Plain => device.write_at(run.at, data)?,
                Stands::Nowhere => {}
                Stands::Boot => {
                    if let Some(own) = self.boot_sector(data) {
                        device.write_at(run.at, &own)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), BlockError> {
        self.crypt.flush()
    }

    fn discard(&self, range: ByteRange) -> Result<(), BlockError> {
        let range = self.geometry().check(range.offset, range.length)?;
        for (run, _, length) in self.runs(range) {
            if matches!(run.stands, Stands::Encrypted | Stands::Plain) {
                self.crypt.discard(ByteRange::new(run.at, length as u64))?;
            }
        }
        Ok(())
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        Ok(Box::new(BitlkQueue::open(self, options)?))
    }
}
