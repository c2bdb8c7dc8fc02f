//! [`FlashPreset`]: the numbers of a flash chip and of what is over it.

use crate::DriveError;
use crate::ftl::Layout;
use crate::preset::{Kind, no_limit};
use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Pages of a chip, at most: a byte of memory each, and some more of a block.
const MOST_PAGES: u64 = 1 << 28;

/// The layer that makes a block device of a chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlashLayer {
    /// A map of whole erase blocks, as in USB keys: to overwrite a part of one is
    /// to copy the rest of it.
    BlockMapped,
    /// Linux's `mtdblock`: nothing moves, and one erase block is in memory until
    /// another one is written.
    Mtdblock,
}

/// A flash chip.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashPreset {
    /// One line for the list of drives.
    pub title: String,
    /// `flash`.
    pub kind: Kind,
    /// The layer over the chip.
    pub layer: FlashLayer,
    /// The capacity that the host can write.
    pub capacity: ByteSize,
    /// Erase blocks of the chip that are good.
    pub blocks: u32,
    /// Bytes that are read and written at once: a power of two.
    pub page: ByteSize,
    /// Pages of an erase block.
    pub pages_per_block: u32,
    /// Reading a page from its cells (tR), microseconds.
    pub read_us: f64,
    /// Writing a page to its cells (tPROG), microseconds.
    pub program_us: f64,
    /// Erasing a block (tBERS), milliseconds.
    pub erase_ms: f64,
    /// Rate of the chip's bus, 10⁶ bytes a second.
    pub bus_mb_s: f64,
    /// Rate between host and drive, 10⁶ bytes a second.
    #[serde(default = "no_limit")]
    pub interface_mb_s: f64,
    /// Of a request beside all that moves, microseconds.
    pub command_us: f64,
    /// Erases that a block endures.
    pub erase_cycles: u32,
    /// Where each number comes from.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
}

impl FlashPreset {
    /// The same, where its numbers are possible.
    ///
    /// # Errors
    /// [`DriveError::OutOfRange`] names the number; [`DriveError::NoSpare`].
    pub fn checked(self) -> Result<Self, DriveError> {
        for (name, value) in [
            ("read_us", self.read_us),
            ("program_us", self.program_us),
            ("erase_ms", self.erase_ms),
            ("bus_mb_s", self.bus_mb_s),
            ("interface_mb_s", self.interface_mb_s),
            ("command_us", self.command_us),
            ("erase_cycles", f64::from(self.erase_cycles)),
        ] {
            let fits = value > 0.0 && value < 1e9;
            DriveError::require(fits, name, value, "more than 0, and less than 1000000000")?;
        }
        let page = self.page.as_u64();
        DriveError::require(
            page.is_power_of_two() && (16..=65_536).contains(&page),
            "page",
            page,
            "a power of two, 16 to 65536 bytes",
        )?;
        let block = page * u64::from(self.pages_per_block);
        DriveError::require(
            block > 0 && block.is_multiple_of(512),
            "pages_per_block",
            self.pages_per_block,
            "a number for which a block is a multiple of 512 bytes",
        )?;
        let pages = u64::from(self.blocks) * u64::from(self.pages_per_block);
        DriveError::require(
            self.blocks >= 2 && pages <= MOST_PAGES,
            "blocks",
            self.blocks,
            "at least 2, and no more than 268435456 pages",
        )?;
        let capacity = self.capacity.as_u64();
        DriveError::require(
            (block..=block * u64::from(self.blocks)).contains(&capacity),
            "capacity",
            capacity,
            "at least one block, and no more than all of them",
        )?;
        let spare = self.blocks - self.logical_blocks();
        match self.layer {
            // A block is copied into an erased one.
            FlashLayer::BlockMapped if spare == 0 => Err(DriveError::NoSpare {
                spare: 0,
                needed: u64::from(self.pages_per_block),
            }),
            _ => Ok(self),
        }
    }

    /// Bytes of an erase block.
    pub fn block_bytes(&self) -> u64 {
        self.page.as_u64() * u64::from(self.pages_per_block)
    }

    /// Its pages and blocks; logical pages are those of whole blocks.
    pub fn layout(&self) -> Layout {
        Layout {
            blocks: self.blocks,
            pages_per_block: self.pages_per_block,
            logical_pages: self.logical_blocks() * self.pages_per_block,
        }
    }

    /// Blocks that the host sees, the last one perhaps in part.
    fn logical_blocks(&self) -> u32 {
        // Checked: no more than all blocks.
        self.capacity.as_u64().div_ceil(self.block_bytes()) as u32
    }
}
