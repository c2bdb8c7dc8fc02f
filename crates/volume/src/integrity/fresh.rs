//! A volume with tags that is made: superblock, an empty journal, and no tag yet.
//!
//! The sizes are those that the kernel takes when it finds no superblock.
//! Source: Linux, `initialize_superblock` of `drivers/md/dm-integrity.c`.

use super::layout::{Layout, SECTOR, Superblock};
use super::store::Store;
use super::{SealedDevice, SealedMapping};
use crate::VolumeError;
use block::BlockDevice;

/// Sectors of an area: 16 MiB of data.
const LOG2_AREA_SECTORS: u8 = 15;

/// The journal has a part of the device, and 64 MiB at most.
const JOURNAL_PART: u64 = 128;
const MOST_JOURNAL_SECTORS: u64 = 131_072;

/// The number of data sectors is a multiple of 2 to this.
const LEAST_BIT: u32 = 3;

impl<D: BlockDevice> SealedDevice<D> {
    /// A new volume on `device`, as large as it can be. Nothing is written
    /// before [`format`](Self::format). Writes go where they belong without the
    /// journal, so a cut may leave sectors whose tags do not fit.
    ///
    /// # Errors
    /// [`VolumeError::Unsupported`], [`VolumeError::Cipher`],
    /// [`VolumeError::TooSmall`].
    pub fn fresh(device: D, mapping: &SealedMapping) -> Result<Self, VolumeError> {
        let seal = mapping.seal()?;
        let layout = Layout::fresh(device.geometry().size, mapping, seal.tag_bytes())?;
        let size = layout.size();
        Ok(Self {
            store: Store::fresh(device, layout),
            seal,
            size,
        })
    }

    /// Writes the superblock and an empty journal. Every sector must be written
    /// before it can be read.
    ///
    /// # Errors
    /// Those of writing.
    pub fn format(&self) -> Result<(), VolumeError> {
        self.store.format()
    }
}

impl Layout {
    /// The layout of a new volume on a device of `size` bytes.
    fn fresh(size: u64, mapping: &SealedMapping, tag_bytes: usize) -> Result<Self, VolumeError> {
        let sectors = size / SECTOR;
        let mut superblock = Superblock::new(LOG2_AREA_SECTORS, tag_bytes, mapping.sector_size);
        let journal = (sectors / JOURNAL_PART).min(MOST_JOURNAL_SECTORS);
        let section = superblock.section_sectors();
        superblock.journal_sections = (journal / section).max(1) as u32;
        let layout = |superblock: &Superblock| {
            let layout = superblock.layout(mapping.offset, mapping.sector_size, tag_bytes);
            let fits = |layout: &Self| layout.end().is_some_and(|end| end <= size);
            layout.ok().filter(fits)
        };
        // As many as fit: bit by bit, the highest first.
        for bit in (LEAST_BIT..u64::BITS - sectors.leading_zeros()).rev() {
            let fewer = superblock.provided_sectors;
            superblock.provided_sectors |= 1 << bit;
            if layout(&superblock).is_none() {
                superblock.provided_sectors = fewer;
            }
        }
        let needed = mapping.offset + superblock.least_bytes();
        layout(&superblock).ok_or(VolumeError::TooSmall { size, needed })
    }
}
