//! Encrypted sectors with authentication tags: LUKS2 over dm-integrity.
//!
//! [`SealedMapping`] is plain data that describes such a volume, and
//! [`SealedDevice`] its plaintext view, as [`Mapping`](crate::Mapping) and
//! [`CryptDevice`](crate::CryptDevice) are of other volumes:
//!
//! ```text
//! request ─▶ seal: ciphertext and tags ─▶ store: journal, then blocks and tags ─▶ device
//! ```

mod aegis;
mod fresh;
mod given;
mod journal;
mod layout;
mod mac;
mod seal;
mod spec;
mod store;

pub(crate) use self::given::GivenIv;
pub use self::spec::SealedSpec;
pub(crate) use self::spec::repeats_key_stream;

use self::layout::Layout;
use self::seal::Seal;
use self::store::Store;
use crate::{Access, Format, VolumeError};
use block::{
    AlignedBuffer, BlockDevice, BlockError, ByteRange, Geometry, InlineQueue, OperationKind, Queue,
    QueueOptions,
};
use cipher::{IvSector, Key, SectorSize};

/// Bytes of data that are sealed or opened at a time.
const STAGING: usize = 1 << 20;

/// An opened volume whose sectors have tags.
#[derive(Debug)]
pub struct SealedMapping {
    /// Cipher, mode and IV generator, as LUKS2 calls them.
    pub encryption: String,
    /// The algorithm that makes the tags: `aead`, `poly1305`, `hmac(sha256)` and others. `none`
    /// means that only IVs are stored.
    pub integrity: String,
    /// The volume key: the cipher's key, followed by the MAC's key.
    pub key: Key,
    /// Length of the MAC's key, bytes; `None` takes that of its digest.
    pub mac_key_bytes: Option<usize>,
    /// Encryption sector size.
    pub sector_size: SectorSize,
    /// Where dm-integrity's superblock is.
    pub offset: u64,
    /// Length of the plaintext in bytes, if that is not what the superblock says.
    pub size: Option<u64>,
    /// IV number of the first sector, in units of 512 bytes.
    pub first: IvSector,
    /// Whether the volume is going to be written.
    pub access: Access,
}

/// The plaintext view of a device whose sectors have tags.
///
/// A sector that does not match its tag is [`BlockError::Tampered`], and never plaintext. Each
/// write is atomic: it is there as a whole, or not at all. After a failed write the device refuses
/// all others until the volume is opened again.
pub struct SealedDevice<D> {
    seal: Seal,
    store: Store<D>,
    size: u64,
}

impl SealedMapping {
    /// Refuses a cipher that cannot be built.
    ///
    /// # Errors
    /// [`VolumeError::Unsupported`], [`VolumeError::Cipher`].
    pub fn check(&self) -> Result<(), VolumeError> {
        self.seal().map(drop)
    }

    /// The bytes that `device` has to have, as its superblock says.
    ///
    /// # Errors
    /// As [`SealedDevice::open`].
    pub fn needed(&self, device: &dyn BlockDevice) -> Result<u64, VolumeError> {
        let tag_bytes = self.seal()?.tag_bytes();
        let layout = Layout::read(device, self.offset, self.sector_size, tag_bytes)?;
        Ok(layout.end().unwrap_or(u64::MAX))
    }

    fn seal(&self) -> Result<Seal, VolumeError> {
        Seal::new(
            &self.encryption,
            &self.integrity,
            &self.key,
            self.mac_key_bytes,
            self.sector_size,
            self.first,
        )
    }
}

impl<D: BlockDevice> SealedDevice<D> {
    /// Opens `mapping` over `device`. Blocks that the journal holds are read from there. With
    /// [`Access::Write`] the journal is replayed first. To be read, the device may be cut off; then
    /// the plaintext ends with its last whole block.
    ///
    /// # Errors
    /// [`VolumeError::Unsupported`], [`VolumeError::Cipher`], [`VolumeError::Header`] if the
    /// superblock or the journal is damaged, and [`VolumeError::Block`].
    pub fn open(device: D, mapping: &SealedMapping) -> Result<Self, VolumeError> {
        let seal = mapping.seal()?;
        let mut layout = Layout::read(
            &device,
            mapping.offset,
            mapping.sector_size,
            seal.tag_bytes(),
        )?;
        let logical_block = device.geometry().logical_block;
        let (needed, got) = (layout.end().unwrap_or(u64::MAX), device.geometry().size);
        let mut size = mapping.size.unwrap_or(layout.size());
        if needed > got {
            if mapping.access == Access::Write {
                let format = Format::Luks2;
                return Err(VolumeError::Cut {
                    format,
                    needed,
                    got,
                });
            }
            layout.cut(got)?;
            size = size.min(layout.size());
        }
        let unit = u64::from(logical_block).max(layout.block_bytes);
        if size > layout.size() {
            return Err(VolumeError::DataArea {
                offset: mapping.offset,
                length: size,
                device: layout.size(),
            });
        }
        if !size.is_multiple_of(unit) || size == 0 {
            return Err(VolumeError::DataAlignment {
                offset: mapping.offset,
                length: size,
                unit: unit as u32,
            });
        }
        Ok(Self {
            store: Store::open(device, layout, mapping.access)?,
            seal,
            size,
        })
    }

    fn tags(&self, data_bytes: usize) -> Vec<u8> {
        let blocks = data_bytes / self.store.layout().block_bytes as usize;
        vec![0; blocks * self.seal.tag_bytes()]
    }
}

impl<D: BlockDevice> BlockDevice for SealedDevice<D> {
    fn geometry(&self) -> Geometry {
        let below = self.store.device().geometry();
        let block = self.store.layout().block_bytes as u32;
        Geometry {
            size: self.size,
            logical_block: below.logical_block.max(block),
            physical_block: below.physical_block.max(block),
            discard_granularity: None,
            discard_zeroes: false,
        }
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        self.geometry().check(offset, into.len() as u64)?;
        let block_bytes = self.store.layout().block_bytes;
        let mut tags = self.tags(into.len().min(STAGING));
        let mut at = offset;
        for chunk in into.chunks_mut(STAGING) {
            let tags = &mut tags[..chunk.len() / block_bytes as usize * self.seal.tag_bytes()];
            self.store.read(at / block_bytes, chunk, tags)?;
            self.seal
                .open(at / layout::SECTOR, chunk, tags)
                .map_err(|index| BlockError::Tampered {
                    offset: at + index as u64 * block_bytes,
                    length: block_bytes,
                })?;
            at += chunk.len() as u64;
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        self.geometry().check(offset, data.len() as u64)?;
        let block_bytes = self.store.layout().block_bytes;
        let mut staging = AlignedBuffer::new(data.len().min(STAGING));
        let mut tags = self.tags(staging.len());
        let mut at = offset;
        for chunk in data.chunks(STAGING) {
            let own = &mut staging[..chunk.len()];
            own.copy_from_slice(chunk);
            let tags = &mut tags[..chunk.len() / block_bytes as usize * self.seal.tag_bytes()];
            self.seal.seal(at / layout::SECTOR, own, tags)?;
            self.store.write(at / block_bytes, own, tags)?;
            at += chunk.len() as u64;
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), BlockError> {
        self.store.device().flush()
    }

    fn discard(&self, range: ByteRange) -> Result<(), BlockError> {
        self.geometry().check(range.offset, range.length)?;
        Err(BlockError::Unsupported {
            operation: OperationKind::Discard,
        })
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        Ok(Box::new(InlineQueue::open(self, options, None)?))
    }
}
