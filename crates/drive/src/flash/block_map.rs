//! [`BlockMap`]: the translation layer of a USB key.
//!
//! A logical block lies on a block of the chip. To write a part of it, an erased block is opened:
//! the data before the part is copied there, and the part is written behind it. A write that
//! continues at the end of the open block goes on there. Any other write first closes the open
//! block, by copying the rest, and erases the old one. One block is open at a time, and erased
//! blocks are used in turn.

use crate::ftl::{Counts, Flash, Layout, Stamps};
use std::collections::VecDeque;

/// A map of erase blocks.
#[derive(Clone, Debug)]
pub struct BlockMap {
    layout: Layout,
    /// Block of each logical one.
    map: Vec<Option<u32>>,
    /// Pages that hold something.
    written: Vec<bool>,
    open: Option<Open>,
    /// The one that was erased first comes first.
    erased: VecDeque<u32>,
    erases: Vec<u32>,
    counts: Counts,
}

/// The block that a logical one moves to.
#[derive(Clone, Copy, Debug)]
struct Open {
    logical: u32,
    to: u32,
    /// The next page that can be written in it.
    next: u32,
}

impl BlockMap {
    /// An erased chip with a block at least beyond the logical ones.
    pub fn new(layout: Layout) -> Self {
        let logical_blocks = layout.logical_pages / layout.pages_per_block;
        Self {
            map: vec![None; logical_blocks as usize],
            written: vec![false; layout.pages() as usize],
            open: None,
            erased: (0..layout.blocks).collect(),
            erases: vec![0; layout.blocks as usize],
            counts: Counts::default(),
            layout,
        }
    }

    /// The map of a chip that has lost its power at any moment, from what stands
    /// beside its data: every page that was written is found. How often blocks
    /// were erased is forgotten.
    pub fn recover(layout: Layout, stamps: &Stamps) -> Self {
        let mut found = Self::new(layout);
        found.erased.clear();
        let mut newest = vec![0; found.map.len()];
        for block in 0..layout.blocks {
            let (mut owner, mut latest, mut next) = (None, 0, 0);
            for place in 0..layout.pages_per_block {
                let page = block * layout.pages_per_block + place;
                if let Some((logical, sequence)) = stamps.page(page) {
                    found.written[page as usize] = true;
                    owner = Some(logical / layout.pages_per_block);
                    latest = latest.max(sequence);
                    next = place + 1;
                }
            }
            let Some(logical) = owner else {
                found.erased.push_back(block);
                continue;
            };
            let open = |to, next| Some(Open { logical, to, next });
            match found.map[logical as usize] {
                None => {
                    found.map[logical as usize] = Some(block);
                    newest[logical as usize] = latest;
                }
                // Two have the block: what was written later is the copy.
                Some(_) if latest > newest[logical as usize] => found.open = open(block, next),
                Some(copy) => {
                    found.map[logical as usize] = Some(block);
                    found.open = open(copy, found.behind(copy));
                }
            }
        }
        found
    }

    /// The page behind the last one that is written in a block.
    fn behind(&self, block: u32) -> u32 {
        let first = (block * self.layout.pages_per_block) as usize;
        let pages = &self.written[first..][..self.layout.pages_per_block as usize];
        let last = pages.iter().rposition(|written| *written);
        last.map_or(0, |last| last as u32 + 1)
    }

    /// Sizes.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The counts of pages so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// How often each block was erased.
    pub fn erases(&self) -> &[u32] {
        &self.erases
    }

    /// Where a logical page lies; `None` where it was never written.
    ///
    /// # Panics
    /// Beyond the last logical page.
    pub fn lookup(&self, page: u32) -> Option<u32> {
        let (logical, place) = self.split(page);
        let block = match self.open {
            Some(open) if open.logical == logical && place < open.next => Some(open.to),
            _ => self.map[logical as usize],
        };
        let page = block? * self.layout.pages_per_block + place;
        self.written[page as usize].then_some(page)
    }

    /// Writes a logical page.
    ///
    /// # Panics
    /// Beyond the last logical page.
    pub fn write(&mut self, page: u32, flash: &mut impl Flash) {
        let (logical, place) = self.split(page);
        let mut open = match self.open {
            Some(open) if open.logical == logical && place >= open.next => open,
            _ => {
                self.close(flash);
                Open {
                    logical,
                    to: self.erased.pop_front().expect("one block is erased"),
                    next: 0,
                }
            }
        };
        self.copy(&mut open, place, flash);
        let to = open.to * self.layout.pages_per_block + place;
        flash.program(to, page);
        self.written[to as usize] = true;
        self.counts.host += 1;
        open.next = place + 1;
        self.open = Some(open);
        if open.next == self.layout.pages_per_block {
            self.close(flash);
        }
    }

    /// Copies what the old block has up to `end`.
    fn copy(&mut self, open: &mut Open, end: u32, flash: &mut impl Flash) {
        let pages = self.layout.pages_per_block;
        if let Some(old) = self.map[open.logical as usize] {
            for place in open.next..end {
                let (from, to) = (old * pages + place, open.to * pages + place);
                if self.written[from as usize] {
                    flash.relocate(from, to);
                    self.written[to as usize] = true;
                    self.counts.relocated += 1;
                }
            }
        }
        open.next = end;
    }

    /// The open block takes the place of the old one.
    fn close(&mut self, flash: &mut impl Flash) {
        let Some(mut open) = self.open.take() else {
            return;
        };
        self.copy(&mut open, self.layout.pages_per_block, flash);
        if let Some(old) = self.map[open.logical as usize].replace(open.to) {
            let first = (old * self.layout.pages_per_block) as usize;
            self.written[first..][..self.layout.pages_per_block as usize].fill(false);
            self.erases[old as usize] += 1;
            self.erased.push_back(old);
            flash.erase(old);
        }
    }

    /// Logical block, and place in it.
    fn split(&self, page: u32) -> (u32, u32) {
        let pages = self.layout.pages_per_block;
        (page / pages, page % pages)
    }
}
