//! [`Layout`]: where dm-integrity keeps what, as its superblock says.
//!
//! ```text
//! superblock │ journal │ tags of area 0 │ area 0 │ tags of area 1 │ area 1 │ …
//!    4 KiB
//! ```
//!
//! Every area has the same number of blocks, but for the last. A block is a
//! sector of the encryption. Source: Linux, `drivers/md/dm-integrity.c`.

use crate::{Damage, Format, VolumeError, unaligned};
use block::BlockDevice;
use cipher::SectorSize;

/// The sector in which dm-integrity counts, bytes.
pub(super) const SECTOR: u64 = 512;

/// The first bytes of the superblock.
const MAGIC: &[u8] = b"integrt\0";

/// Length of the superblock.
pub(super) const SUPERBLOCK_BYTES: u64 = 4096;

/// Length of the fields that are used.
const FIELDS_BYTES: usize = 64;

/// Sectors at the start of a section of the journal, which hold its entries.
pub(super) const ENTRY_SECTORS: u64 = 8;

/// Bytes at the end of each sector of the journal that say when it was written.
pub(super) const COMMIT_ID_BYTES: usize = 8;

/// The largest journal that is read. cryptsetup makes 64 MiB at most.
const MOST_JOURNAL_BYTES: u64 = 1 << 30;

const KNOWN_VERSIONS: std::ops::RangeInclusive<u8> = 1..=5;

const HAS_JOURNAL_MAC: u32 = 0x1;
const IS_RECALCULATING: u32 = 0x2;
const HAS_DIRTY_BITMAP: u32 = 0x4;
const FIXED_PADDING: u32 = 0x8;
/// The version that has this flag, and none of those that came later.
const FIXED_PADDING_VERSION: u8 = 4;
/// Concerns the journal's MAC and the device's own hash; there is neither.
const FIXED_HMAC: u32 = 0x10;
/// Tags lie in the metadata of the drive's own sectors.
const HAS_INLINE_TAGS: u32 = 0x20;

/// Places, all in bytes from the start of the device unless said otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Length of a block.
    pub(super) block_bytes: u64,
    /// Blocks that there are.
    pub(super) blocks: u64,
    /// Length of a block's tag.
    pub(super) tag_bytes: u64,
    /// The journal.
    pub(super) journal: Journal,
    /// Where the tags of the first area begin.
    first_area: u64,
    /// Space for the tags of an area.
    run_bytes: u64,
    /// Blocks of an area.
    area_blocks: u64,
    /// Where the superblock is.
    offset: u64,
}

/// The journal: a ring of sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Journal {
    /// Its first byte.
    pub(super) offset: u64,
    /// How many sections it has.
    pub(super) sections: u32,
    /// Entries of a section, each with a block of data.
    pub(super) entries: u64,
    /// Length of an entry.
    pub(super) entry_bytes: usize,
    /// Length of a section.
    pub(super) section_bytes: u64,
}

/// The fields of the superblock.
pub(super) struct Superblock {
    log2_area_sectors: u8,
    tag_bytes: u16,
    pub(super) journal_sections: u32,
    pub(super) provided_sectors: u64,
    flags: u32,
    log2_block_sectors: u8,
}

impl Layout {
    /// Reads the superblock at `offset` of `device`, for sectors of this size
    /// and tags of this length.
    pub(super) fn read(
        device: &dyn BlockDevice,
        offset: u64,
        sector: SectorSize,
        tag_bytes: usize,
    ) -> Result<Self, VolumeError> {
        let bytes = unaligned::read_up_to(device, offset, SUPERBLOCK_BYTES)?;
        let fields = bytes.first_chunk::<FIELDS_BYTES>();
        let superblock = Superblock::parse(fields.ok_or_else(|| {
            damaged(Damage::Short {
                needed: offset.saturating_add(SUPERBLOCK_BYTES),
                got: device.geometry().size,
            })
        })?)?;
        superblock.layout(offset, sector, tag_bytes)
    }

    /// Leaves the blocks that are whole on a device of `size` bytes.
    ///
    /// # Errors
    /// [`VolumeError::Header`] if there is none.
    pub(super) fn cut(&mut self, size: u64) -> Result<(), VolumeError> {
        let area_bytes = self.run_bytes + self.area_blocks * self.block_bytes;
        let there = size.saturating_sub(self.first_area);
        let within = (there % area_bytes).saturating_sub(self.run_bytes) / self.block_bytes;
        let blocks = there / area_bytes * self.area_blocks + within;
        if blocks == 0 {
            let needed = self
                .first_area
                .saturating_add(self.run_bytes + self.block_bytes);
            return Err(damaged(Damage::Short { needed, got: size }));
        }
        self.blocks = self.blocks.min(blocks);
        Ok(())
    }

    /// The superblock that says this, and where it is.
    pub(super) fn superblock(&self) -> (u64, [u8; SUPERBLOCK_BYTES as usize]) {
        let block_sectors = self.block_bytes / SECTOR;
        let mut bytes = [0; SUPERBLOCK_BYTES as usize];
        bytes[..MAGIC.len()].copy_from_slice(MAGIC);
        bytes[8] = FIXED_PADDING_VERSION;
        bytes[9] = (self.area_blocks * block_sectors).ilog2() as u8;
        bytes[10..12].copy_from_slice(&(self.tag_bytes as u16).to_le_bytes());
        bytes[12..16].copy_from_slice(&self.journal.sections.to_le_bytes());
        bytes[16..24].copy_from_slice(&(self.blocks * block_sectors).to_le_bytes());
        bytes[24..28].copy_from_slice(&FIXED_PADDING.to_le_bytes());
        bytes[28] = block_sectors.ilog2() as u8;
        (self.offset, bytes)
    }

    /// Bytes of all blocks.
    pub(super) fn size(&self) -> u64 {
        self.blocks * self.block_bytes
    }

    /// How many of `count` blocks from `block` have their data, and their
    /// tags, one after the other.
    pub(super) fn together(&self, block: u64, count: u64) -> u64 {
        count.min(self.area_blocks - block % self.area_blocks)
    }

    /// Where a block is.
    pub(super) fn data(&self, block: u64) -> u64 {
        let (area, within) = (block / self.area_blocks, block % self.area_blocks);
        self.area(area) + self.run_bytes + within * self.block_bytes
    }

    /// Where its tag is.
    pub(super) fn tag(&self, block: u64) -> u64 {
        let (area, within) = (block / self.area_blocks, block % self.area_blocks);
        self.area(area) + within * self.tag_bytes
    }

    fn area(&self, area: u64) -> u64 {
        self.first_area + area * (self.run_bytes + self.area_blocks * self.block_bytes)
    }
}

impl Superblock {
    fn parse(bytes: &[u8; FIELDS_BYTES]) -> Result<Self, VolumeError> {
        let field = |at: usize, length: usize| {
            let bytes = bytes[at..][..length].iter().rev();
            bytes.fold(0, |value, &byte| value << 8 | u64::from(byte))
        };
        if !bytes.starts_with(MAGIC) {
            return Err(damaged(Damage::missing("the superblock of dm-integrity")));
        }
        let version = bytes[8];
        if !KNOWN_VERSIONS.contains(&version) {
            return Err(unsupported(format!(
                "version {version} of dm-integrity's superblock"
            )));
        }
        let flags = field(24, 4) as u32;
        for (flag, feature) in [
            (HAS_JOURNAL_MAC, "a journal with integrity"),
            (IS_RECALCULATING, "tags that are still being calculated"),
            (HAS_DIRTY_BITMAP, "a bitmap of sectors without tags"),
            (
                HAS_INLINE_TAGS,
                "tags in the metadata of the drive's sectors",
            ),
            (!(FIXED_PADDING | FIXED_HMAC), "unknown flags"),
        ] {
            if flags & flag != 0 {
                return Err(unsupported(format!(
                    "{feature}, in dm-integrity's superblock"
                )));
            }
        }
        Ok(Self {
            log2_area_sectors: bytes[9],
            tag_bytes: field(10, 2) as u16,
            journal_sections: field(12, 4) as u32,
            provided_sectors: field(16, 8),
            flags,
            log2_block_sectors: bytes[28],
        })
    }

    /// That of a new device, of one section of journal and no data yet.
    pub(super) fn new(log2_area_sectors: u8, tag_bytes: usize, sector: SectorSize) -> Self {
        Self {
            log2_area_sectors,
            tag_bytes: tag_bytes as u16,
            journal_sections: 1,
            provided_sectors: 0,
            flags: FIXED_PADDING,
            log2_block_sectors: (sector.bytes() as u64 / SECTOR).ilog2() as u8,
        }
    }

    /// The layout, as large as it says.
    pub(super) fn layout(
        &self,
        offset: u64,
        sector: SectorSize,
        tag_bytes: usize,
    ) -> Result<Layout, VolumeError> {
        let block_bytes = sector.bytes() as u64;
        let block_sectors = block_bytes / SECTOR;
        if usize::from(self.tag_bytes) != tag_bytes || tag_bytes == 0 {
            let rule = format!("must be {tag_bytes} with this cipher");
            return Err(refuse("integrity_tag_size", self.tag_bytes.into(), rule));
        }
        if u64::from(self.log2_block_sectors) != u64::from(block_sectors.ilog2()) {
            let rule = format!("must be {} with this sector size", block_sectors.ilog2());
            let value = self.log2_block_sectors.into();
            return Err(refuse("log2_sectors_per_block", value, rule));
        }
        if !(3..=31).contains(&self.log2_area_sectors) {
            let value = self.log2_area_sectors.into();
            return Err(refuse("log2_interleave_sectors", value, "must be 3 to 31"));
        }
        let journal = self.journal(offset + SUPERBLOCK_BYTES)?;
        let area_blocks = (1 << self.log2_area_sectors) / block_sectors;
        let padding = match self.flags & FIXED_PADDING {
            0 => SECTOR << 8,
            _ => SECTOR * 8,
        };
        let provided = self.provided_sectors;
        if provided == 0 || !provided.is_multiple_of(block_sectors) {
            let rule = format!("must be a multiple of {block_sectors}, and not 0");
            return Err(refuse("provided_data_sectors", provided, rule));
        }
        let layout = Layout {
            block_bytes,
            blocks: provided / block_sectors,
            tag_bytes: self.tag_bytes.into(),
            journal,
            first_area: journal.offset + journal.bytes(),
            run_bytes: (area_blocks * u64::from(self.tag_bytes)).next_multiple_of(padding),
            area_blocks,
            offset,
        };
        match layout.end() {
            Some(_) => Ok(layout),
            None => Err(refuse(
                "provided_data_sectors",
                provided,
                "no device has so many",
            )),
        }
    }

    /// Sectors of a section of the journal.
    pub(super) fn section_sectors(&self) -> u64 {
        self.sections(0).section_bytes / SECTOR
    }

    /// The least bytes that hold superblock, journal and some data.
    pub(super) fn least_bytes(&self) -> u64 {
        let area_bytes = u64::from(self.tag_bytes) << self.log2_area_sectors;
        let tags = (area_bytes >> self.log2_block_sectors).next_multiple_of(SUPERBLOCK_BYTES);
        let data = SUPERBLOCK_BYTES.max(SECTOR << self.log2_block_sectors);
        SUPERBLOCK_BYTES + self.sections(0).bytes() + tags + data
    }

    /// The journal that is said, which begins at `offset`.
    fn sections(&self, offset: u64) -> Journal {
        let block_sectors = 1 << self.log2_block_sectors;
        // The block's number, the last bytes of each of its sectors, its tag.
        let entry_bytes = 8 + 8 * block_sectors + usize::from(self.tag_bytes);
        let entry_bytes = entry_bytes.next_multiple_of(8);
        let entries = (SECTOR as usize - COMMIT_ID_BYTES) / entry_bytes * ENTRY_SECTORS as usize;
        Journal {
            offset,
            sections: self.journal_sections,
            entries: entries as u64,
            entry_bytes,
            section_bytes: (ENTRY_SECTORS + (entries * block_sectors) as u64) * SECTOR,
        }
    }

    /// The journal behind a superblock, if it can be.
    fn journal(&self, offset: u64) -> Result<Journal, VolumeError> {
        let journal = self.sections(offset);
        if self.journal_sections == 0 || journal.bytes() > MOST_JOURNAL_BYTES {
            let most = MOST_JOURNAL_BYTES / journal.section_bytes;
            let rule = format!("must be 1 to {most}");
            return Err(refuse(
                "journal_sections",
                self.journal_sections.into(),
                rule,
            ));
        }
        Ok(journal)
    }
}

impl Layout {
    /// Where the last block ends, unless that is beyond all numbers.
    pub(super) fn end(&self) -> Option<u64> {
        let last = self.blocks.checked_sub(1)?;
        let (area, within) = (last / self.area_blocks, last % self.area_blocks);
        let area_bytes = self.run_bytes + self.area_blocks * self.block_bytes;
        let area = area.checked_mul(area_bytes)?.checked_add(self.first_area)?;
        area.checked_add(self.run_bytes + (within + 1) * self.block_bytes)
    }
}

impl Journal {
    fn bytes(&self) -> u64 {
        u64::from(self.sections) * self.section_bytes
    }

    /// Where a section begins.
    pub(super) fn section(&self, section: u32) -> u64 {
        self.offset + u64::from(section) * self.section_bytes
    }
}

pub(super) fn damaged(damage: Damage) -> VolumeError {
    VolumeError::damaged(Format::Luks2, damage)
}

fn refuse(field: &str, value: u64, rule: impl Into<Box<str>>) -> VolumeError {
    damaged(Damage::number(field, value, rule))
}

fn unsupported(feature: impl Into<Box<str>>) -> VolumeError {
    VolumeError::unsupported(Format::Luks2, feature)
}
