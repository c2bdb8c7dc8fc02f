//! [`Layout`]: how many pages a flash has, and how many it shows.

use crate::DriveError;

/// Pages of a block, at most; the count of valid ones has a mark beside it.
pub const MOST_PAGES_PER_BLOCK: u32 = 1 << 14;

/// The size of a log of the translation layer, and the data that it must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLayout {
    /// Its erase blocks.
    pub blocks: u32,
    /// The most logical pages whose newest version is in it at any time.
    pub logical_pages: u32,
}

impl LogLayout {
    /// Refuses a log that could not be cleaned when all of its pages are in use.
    pub(super) fn checked(self, pages_per_block: u32) -> Result<(), DriveError> {
        let pages = u64::from(self.blocks) * u64::from(pages_per_block);
        let spare = pages.saturating_sub(u64::from(self.logical_pages));
        // An open block and an erased one, and something to clean.
        let needed = 2 * u64::from(pages_per_block) + 1;
        match spare >= needed {
            true => Ok(()),
            false => Err(DriveError::NoSpare { spare, needed }),
        }
    }
}

/// Sizes of a flash behind a translation layer, in pages and blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Erase blocks.
    pub blocks: u32,
    /// Pages of an erase block, 1 to [`MOST_PAGES_PER_BLOCK`].
    pub pages_per_block: u32,
    /// Pages that the host can write; fewer than there are.
    pub logical_pages: u32,
}

impl Layout {
    /// `over_provisioning` is the share of pages beyond the logical ones: with
    /// 0.07 there are 1.07 physical pages for each logical one.
    ///
    /// # Errors
    /// [`DriveError::OutOfRange`] names the number; [`DriveError::NoSpare`].
    pub fn new(
        blocks: u32,
        pages_per_block: u32,
        over_provisioning: f64,
    ) -> Result<Self, DriveError> {
        DriveError::require(
            over_provisioning > 0.0 && over_provisioning <= 100.0,
            "over-provisioning",
            format_args!("{} %", over_provisioning * 100.0),
            "more than 0 %, and at most 10000 %",
        )?;
        let pages = f64::from(blocks) * f64::from(pages_per_block);
        let logical_pages = (pages / (1.0 + over_provisioning)).round() as u32;
        Self {
            blocks,
            pages_per_block,
            logical_pages,
        }
        .checked()
    }

    /// The layout, where all its numbers are possible.
    ///
    /// # Errors
    /// [`DriveError::OutOfRange`] names the number; [`DriveError::NoSpare`].
    pub fn checked(self) -> Result<Self, DriveError> {
        DriveError::require(
            (1..=MOST_PAGES_PER_BLOCK).contains(&self.pages_per_block),
            "pages-per-block",
            self.pages_per_block,
            "1 to 16384",
        )?;
        // A page number is 32 bits, of which one value means none.
        DriveError::require(
            self.blocks >= 4 && self.pages() < u64::from(u32::MAX),
            "blocks",
            self.blocks,
            "at least 4, and no more than 4 294 967 294 pages",
        )?;
        let fits = self.logical_pages > 0;
        DriveError::require(fits, "logical pages", 0, "at least 1")?;
        self.whole().checked(self.pages_per_block)?;
        Ok(self)
    }

    /// One log of everything.
    pub fn whole(&self) -> LogLayout {
        LogLayout {
            blocks: self.blocks,
            logical_pages: self.logical_pages,
        }
    }

    /// All physical pages.
    pub fn pages(&self) -> u64 {
        u64::from(self.blocks) * u64::from(self.pages_per_block)
    }

    /// Bytes of memory that a translation layer of this size takes.
    pub fn memory(&self) -> u64 {
        // Both ways between pages; a count and erases of each block.
        4 * (u64::from(self.logical_pages) + self.pages()) + 6 * u64::from(self.blocks)
    }

    /// Physical ÷ logical pages.
    pub fn alpha(&self) -> f64 {
        self.pages() as f64 / f64::from(self.logical_pages)
    }
}
