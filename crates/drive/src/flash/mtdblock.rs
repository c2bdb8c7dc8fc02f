//! [`MtdBlock`]: the block device that Linux makes of an MTD device.
//!
//! Nothing moves. The kernel writes 512 bytes at a time into a copy of the erase block in memory,
//! which it reads first. When another block is written, and for a flush, the block is erased and
//! the copy written to it. So a block is always read first, even where all of it is written, and a
//! power cut after the erase takes what has stood there for years. Bad blocks are not known to it.

use super::RawFlash;
use crate::ftl::Layout;

/// `mtdblock`, with its copy of one erase block.
#[derive(Clone, Debug)]
pub struct MtdBlock {
    layout: Layout,
    /// The block that is in memory, and whether it was changed there.
    copy: Option<(u32, bool)>,
    erases: Vec<u32>,
    programmed: u64,
}

impl MtdBlock {
    /// Over an erased chip.
    pub fn new(layout: Layout) -> Self {
        Self {
            copy: None,
            erases: vec![0; layout.blocks as usize],
            programmed: 0,
            layout,
        }
    }

    /// Pages written to the chip.
    pub fn programmed(&self) -> u64 {
        self.programmed
    }

    /// How often each block was erased.
    pub fn erases(&self) -> &[u32] {
        &self.erases
    }

    /// Whether a page is read from memory.
    pub fn has(&self, page: u32) -> bool {
        let block = page / self.layout.pages_per_block;
        self.copy.is_some_and(|(copy, _)| copy == block)
    }

    /// Changes a page in memory, wholly or in part; its block is there then.
    ///
    /// # Panics
    /// Beyond the last page.
    pub fn write(&mut self, page: u32, flash: &mut impl RawFlash) {
        assert!(page < self.layout.logical_pages, "within the chip");
        let block = page / self.layout.pages_per_block;
        if !self.has(page) {
            self.flush(flash);
            self.pages_of(block).for_each(|page| flash.read(page));
        }
        self.copy = Some((block, true));
    }

    /// Writes the copy back, where it was changed.
    pub fn flush(&mut self, flash: &mut impl RawFlash) {
        let Some((block, true)) = self.copy else {
            return;
        };
        flash.erase(block);
        for page in self.pages_of(block) {
            flash.program(page, page);
        }
        self.erases[block as usize] += 1;
        self.programmed += u64::from(self.layout.pages_per_block);
        self.copy = Some((block, false));
    }

    fn pages_of(&self, block: u32) -> std::ops::Range<u32> {
        let first = block * self.layout.pages_per_block;
        first..first + self.layout.pages_per_block
    }
}
