//! [`Store`]: blocks with tags on a device. A write changes a block and its tag together, or
//! neither.
//!
//! Every write goes to the journal first:
//!
//! ```text
//! sections ─▶ flush ─▶ blocks and tags in their places ─▶ (flush) ─▶ the sections may be used again
//! ```
//!
//! A power cut before the first flush leaves the old blocks in place. After that flush, replaying
//! the journal completes the write, here or in the kernel. Older writes in the journal are replayed
//! as well, in their order, which changes nothing.

use super::journal::{Position, Section, State, scan};
use super::layout::{Layout, SECTOR, damaged};
use crate::unaligned::{self, write_blocks as write};
use crate::{Access, Damage, VolumeError};
use block::{AlignedBuffer, BlockDevice, BlockError, OperationKind};
use std::collections::BTreeMap;
use std::io;
use std::sync::{PoisonError, RwLock};

/// Sections that are written at a time hold about so much.
const BATCH_BYTES: u64 = 2 << 20;

/// Blocks with tags.
pub(super) struct Store<D> {
    device: D,
    layout: Layout,
    journal: RwLock<Journal>,
}

/// The journal while the device is open.
enum Journal {
    /// It is only read: where it has something newer than the place of a block.
    Read(BTreeMap<u64, Kept>),
    /// It was replayed, and is written.
    Write(Ring),
    /// The volume is new: nothing is in it that a cut could spoil, and the
    /// journal stays empty.
    Fresh,
    /// A write failed, and only opening the device again tells how much of it
    /// is there.
    Failed,
}

/// A place in the journal.
#[derive(Clone, Copy)]
struct Kept {
    section: u32,
    entry: u64,
}

struct Ring {
    /// Where the next section goes.
    next: Position,
    /// The sections before that which must stay: their blocks' places may
    /// not be durable yet.
    unsettled: u32,
}

impl<D: BlockDevice> Store<D> {
    /// Opens what `layout` describes; with [`Access::Write`] the journal is
    /// replayed on the device.
    ///
    /// # Errors
    /// [`VolumeError::Header`] if the journal is damaged,
    /// [`VolumeError::Block`].
    pub(super) fn open(device: D, layout: Layout, access: Access) -> Result<Self, VolumeError> {
        let state = scan(&device, &layout)?
            .ok_or_else(|| damaged(Damage::checksum("dm-integrity's journal")))?;
        let journal = match access {
            Access::Read => Journal::Read(newer(&device, &layout, &state)?),
            Access::Write => Journal::Write(Ring {
                next: replay(&device, &layout, &state)?,
                unsettled: 0,
            }),
        };
        Ok(Self {
            device,
            layout,
            journal: RwLock::new(journal),
        })
    }

    /// A new device, of which nothing is there yet.
    pub(super) fn fresh(device: D, layout: Layout) -> Self {
        Self {
            device,
            layout,
            journal: RwLock::new(Journal::Fresh),
        }
    }

    /// Writes the superblock, after an empty journal.
    pub(super) fn format(&self) -> Result<(), VolumeError> {
        erase(&self.device, &self.layout, &State::EMPTY)?;
        let (offset, superblock) = self.layout.superblock();
        unaligned::write_verified(&self.device, offset, &superblock)
    }

    pub(super) fn device(&self) -> &D {
        &self.device
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Reads blocks and their tags.
    pub(super) fn read(
        &self,
        first: u64,
        data: &mut [u8],
        tags: &mut [u8],
    ) -> Result<(), BlockError> {
        let journal = self.journal.read().unwrap_or_else(PoisonError::into_inner);
        let layout = &self.layout;
        let (block_bytes, tag_bytes) = (layout.block_bytes as usize, layout.tag_bytes as usize);
        let count = (data.len() / block_bytes) as u64;
        for run in runs(layout, first, count) {
            let at = (run.start - first) as usize;
            let length = (run.end - run.start) as usize;
            let data = &mut data[at * block_bytes..][..length * block_bytes];
            read(&self.device, layout.data(run.start), data)?;
            let tags = &mut tags[at * tag_bytes..][..length * tag_bytes];
            read(&self.device, layout.tag(run.start), tags)?;
        }
        let Journal::Read(newer) = &*journal else {
            return Ok(());
        };
        let mut buffer = AlignedBuffer::empty();
        let mut held = None;
        for (block, kept) in newer.range(first..first + count) {
            if buffer.is_empty() {
                buffer = AlignedBuffer::new(layout.journal.section_bytes as usize);
            }
            if held != Some(kept.section) {
                let at = layout.journal.section(kept.section);
                read(&self.device, at, &mut buffer)?;
                held = Some(kept.section);
            }
            let at = (block - first) as usize;
            Section::new(&layout.journal, &mut buffer).take(
                kept.entry,
                &mut data[at * block_bytes..][..block_bytes],
                &mut tags[at * tag_bytes..][..tag_bytes],
            );
        }
        Ok(())
    }

    /// Writes blocks and their tags. They are durable when this returns.
    pub(super) fn write(&self, first: u64, data: &[u8], tags: &[u8]) -> Result<(), BlockError> {
        let mut journal = self.journal.write().unwrap_or_else(PoisonError::into_inner);
        let ring = match &mut *journal {
            Journal::Fresh => return self.write_places(first, data, tags),
            Journal::Read(_) => return Err(BlockError::ReadOnly),
            Journal::Write(ring) => ring,
            Journal::Failed => {
                return Err(BlockError::Io {
                    operation: OperationKind::Write,
                    offset: first * self.layout.block_bytes,
                    length: data.len() as u64,
                    source: io::Error::other("an earlier write failed"),
                });
            }
        };
        let written = self.write_through(ring, first, data, tags);
        if written.is_err() {
            *journal = Journal::Failed;
        }
        written
    }

    fn write_through(
        &self,
        ring: &mut Ring,
        mut first: u64,
        data: &[u8],
        tags: &[u8],
    ) -> Result<(), BlockError> {
        let layout = &self.layout;
        let journal = &layout.journal;
        let most = (BATCH_BYTES / journal.section_bytes)
            .min(u64::from(journal.sections) / 2)
            .max(1);
        let batch = (most * journal.entries) as usize;
        let (block_bytes, tag_bytes) = (layout.block_bytes as usize, layout.tag_bytes as usize);
        let data = data.chunks(batch * block_bytes);
        for (data, tags) in data.zip(tags.chunks(batch * tag_bytes)) {
            let count = data.len() / block_bytes;
            let sections = (count as u64).div_ceil(journal.entries) as u32;
            if ring.unsettled + sections > journal.sections {
                self.device.flush()?;
                ring.unsettled = 0;
            }
            let next = self.write_sections(ring.next, first, data, tags)?;
            self.device.flush()?;
            self.write_places(first, data, tags)?;
            ring.next = next;
            ring.unsettled = sections;
            first += count as u64;
        }
        Ok(())
    }

    /// Writes blocks and tags where they belong.
    fn write_places(&self, first: u64, data: &[u8], tags: &[u8]) -> Result<(), BlockError> {
        let layout = &self.layout;
        let (block_bytes, tag_bytes) = (layout.block_bytes as usize, layout.tag_bytes as usize);
        for run in runs(layout, first, (data.len() / block_bytes) as u64) {
            let at = (run.start - first) as usize;
            let length = (run.end - run.start) as usize;
            let data = &data[at * block_bytes..][..length * block_bytes];
            write(&self.device, layout.data(run.start), data)?;
            let tags = &tags[at * tag_bytes..][..length * tag_bytes];
            write(&self.device, layout.tag(run.start), tags)?;
        }
        Ok(())
    }

    /// Writes blocks to the journal from `at` on; gives the place behind them.
    fn write_sections(
        &self,
        mut at: Position,
        first: u64,
        data: &[u8],
        tags: &[u8],
    ) -> Result<Position, BlockError> {
        let layout = &self.layout;
        let journal = &layout.journal;
        let (block_bytes, tag_bytes) = (layout.block_bytes as usize, layout.tag_bytes as usize);
        let mut buffer = AlignedBuffer::new(journal.section_bytes as usize);
        let mut blocks = (first..)
            .zip(data.chunks(block_bytes))
            .zip(tags.chunks(tag_bytes))
            .peekable();
        while blocks.peek().is_some() {
            let mut section = Section::new(journal, &mut buffer);
            section.clear();
            for (entry, ((block, data), tag)) in (0..journal.entries).zip(&mut blocks) {
                section.put(entry, block * (layout.block_bytes / SECTOR), data, tag);
            }
            section.commit(at);
            write(&self.device, journal.section(at.section), &buffer)?;
            at = at.next(journal);
        }
        Ok(at)
    }
}

/// The blocks from `first` on, in runs that lie together.
fn runs(layout: &Layout, first: u64, count: u64) -> impl Iterator<Item = std::ops::Range<u64>> {
    let end = first + count;
    let next =
        move |start: u64| (start < end).then(|| start..start + layout.together(start, end - start));
    std::iter::successors(next(first), move |run| next(run.end))
}

/// The entries that are to be replayed, in their order: `each` gets a section,
/// the entry's number in it and the block.
fn entries(
    device: &dyn BlockDevice,
    layout: &Layout,
    state: &State,
    mut each: impl FnMut(&Section, Kept, u64) -> Result<(), VolumeError>,
) -> Result<(), VolumeError> {
    let journal = &layout.journal;
    let mut buffer = AlignedBuffer::new(journal.section_bytes as usize);
    for index in 0..state.count {
        let number = around(journal.sections, state.start, index);
        read(device, journal.section(number), &mut buffer)?;
        let section = Section::new(journal, &mut buffer);
        for entry in 0..journal.entries {
            let Some(sector) = section.sector(entry) else {
                continue;
            };
            let block_sectors = layout.block_bytes / SECTOR;
            let (block, rest) = (sector / block_sectors, sector % block_sectors);
            if rest != 0 {
                let rule = "must be the first sector of a block";
                return Err(damaged(Damage::number(
                    "journal_entry.sector",
                    sector,
                    rule,
                )));
            }
            // The kernel passes over these as well: the device may have shrunk.
            if block < layout.blocks {
                let kept = Kept {
                    section: number,
                    entry,
                };
                each(&section, kept, block)?;
            }
        }
    }
    Ok(())
}

/// The section `steps` behind `start` in a ring.
fn around(sections: u32, start: u32, steps: u32) -> u32 {
    ((u64::from(start) + u64::from(steps)) % u64::from(sections)) as u32
}

/// Where the journal has something newer than the places of the blocks.
fn newer(
    device: &dyn BlockDevice,
    layout: &Layout,
    state: &State,
) -> Result<BTreeMap<u64, Kept>, VolumeError> {
    let mut newer = BTreeMap::new();
    entries(device, layout, state, |_, kept, block| {
        newer.insert(block, kept);
        Ok(())
    })?;
    Ok(newer)
}

/// Brings blocks and tags from the journal to their places. Returns the position at which the
/// journal continues. A journal that was not whole is erased.
fn replay(
    device: &dyn BlockDevice,
    layout: &Layout,
    state: &State,
) -> Result<Position, VolumeError> {
    let mut data = vec![0; layout.block_bytes as usize];
    let mut tag = vec![0; layout.tag_bytes as usize];
    entries(device, layout, state, |section, kept, block| {
        section.take(kept.entry, &mut data, &mut tag);
        write(device, layout.data(block), &data)?;
        write(device, layout.tag(block), &tag)?;
        Ok(())
    })?;
    if state.count > 0 {
        device.flush()?;
    }
    match state.go_on {
        Some(next) => Ok(next),
        None => Ok(erase(device, layout, state)?),
    }
}

/// Empties the journal.
///
/// The oldest section goes first, and alone: without it nothing is replayed,
/// so that a cut in the middle cannot bring old blocks back. The youngest goes
/// last: it tells which one is the oldest.
fn erase(device: &dyn BlockDevice, layout: &Layout, state: &State) -> Result<Position, BlockError> {
    let journal = &layout.journal;
    let mut buffer = AlignedBuffer::new(journal.section_bytes as usize);
    for step in 0..journal.sections {
        if step <= 1 || step == journal.sections - 1 {
            device.flush()?;
        }
        let section = around(journal.sections, state.start, step);
        let turn = state.erase;
        let mut empty = Section::new(journal, &mut buffer);
        empty.clear();
        empty.commit(Position { section, turn });
        write(device, journal.section(section), &buffer)?;
    }
    device.flush()?;
    Ok(Position {
        section: 0,
        turn: state.erase.next(),
    })
}

/// Reads bytes from any offset.
pub(super) fn read(
    device: &(impl BlockDevice + ?Sized),
    offset: u64,
    into: &mut [u8],
) -> Result<(), BlockError> {
    let block = u64::from(device.geometry().logical_block);
    let length = into.len() as u64;
    if offset.is_multiple_of(block) && length.is_multiple_of(block) {
        return device.read_at(offset, into);
    }
    let start = offset / block * block;
    let end = (offset + length).next_multiple_of(block);
    let mut buffer = AlignedBuffer::new((end - start) as usize);
    device.read_at(start, &mut buffer)?;
    into.copy_from_slice(&buffer[(offset - start) as usize..][..into.len()]);
    Ok(())
}
