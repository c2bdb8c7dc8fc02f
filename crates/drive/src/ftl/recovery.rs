//! [`Stamps`]: what the flash itself remembers, and the layer found in it again.
//!
//! Every page is written together with the number of its logical page and a
//! sequence number, in the bytes beside its data. After a power loss the newest
//! page of each number is the valid one.

use super::{ERASED, Flash, Ftl, Layout, LogLayout, NONE, OPEN, Policy};
use crate::DriveError;

/// The bytes stored beside the data of each page.
#[derive(Clone, Debug)]
pub struct Stamps {
    pages_per_block: u32,
    /// Logical page and sequence number; the number 0 is an erased page.
    pages: Vec<(u32, u64)>,
    /// Sequence number of a discard that is on the flash, by logical page.
    discards: Vec<u64>,
    sequence: u64,
}

impl Stamps {
    /// An erased flash.
    pub fn new(layout: Layout) -> Self {
        Self {
            pages_per_block: layout.pages_per_block,
            pages: vec![(NONE, 0); layout.pages() as usize],
            discards: vec![0; layout.logical_pages as usize],
            sequence: 0,
        }
    }

    /// Notes on the flash that a logical page was discarded.
    pub fn discard(&mut self, logical: u32) {
        self.sequence += 1;
        self.discards[logical as usize] = self.sequence;
    }

    /// Logical page and sequence number of a page; `None` where it is erased.
    pub fn page(&self, page: u32) -> Option<(u32, u64)> {
        let (logical, sequence) = self.pages[page as usize];
        (sequence > 0).then_some((logical, sequence))
    }

    fn stamp(&mut self, page: u32, logical: u32) {
        self.sequence += 1;
        let stamp = &mut self.pages[page as usize];
        assert_eq!(stamp.1, 0, "page {page} is written twice without an erase");
        *stamp = (logical, self.sequence);
    }

    /// Pages of a block that are written, from its first one on.
    fn written(&self, block: u32) -> u32 {
        let first = (block * self.pages_per_block) as usize;
        let pages = &self.pages[first..first + self.pages_per_block as usize];
        pages
            .iter()
            .take_while(|(_, sequence)| *sequence > 0)
            .count() as u32
    }

    /// The newest number in a block.
    fn newest(&self, block: u32) -> u64 {
        let first = (block * self.pages_per_block) as usize;
        let pages = &self.pages[first..first + self.pages_per_block as usize];
        pages
            .iter()
            .map(|(_, sequence)| *sequence)
            .max()
            .unwrap_or(0)
    }
}

impl Flash for Stamps {
    fn program(&mut self, page: u32, logical: u32) {
        self.stamp(page, logical);
    }

    fn relocate(&mut self, from: u32, to: u32) {
        let (logical, _) = self.pages[from as usize];
        self.stamp(to, logical);
    }

    fn erase(&mut self, block: u32) {
        let first = (block * self.pages_per_block) as usize;
        self.pages[first..first + self.pages_per_block as usize].fill((NONE, 0));
    }
}

impl Ftl {
    /// The layer of a flash that has lost its power at any moment. Every page that was written is
    /// found, and no discard that is on the flash is lost. How often blocks were erased is
    /// forgotten. A block that was being cleaned is cleaned to its end, of which `flash` hears.
    ///
    /// # Errors
    /// As [`split`](Self::split).
    pub fn recover<F: Flash>(
        layout: Layout,
        policy: Policy,
        seed: u64,
        logs: &[LogLayout],
        stamps: &Stamps,
        flash: &mut F,
    ) -> Result<Self, DriveError> {
        let mut ftl = Self::split(layout, policy, seed, logs)?;
        let mut newest = stamps.discards.clone();
        for (page, &(logical, sequence)) in (0..).zip(&stamps.pages) {
            if sequence == 0 {
                continue;
            }
            ftl.owner[page as usize] = logical;
            if sequence > newest[logical as usize] {
                newest[logical as usize] = sequence;
                ftl.map[logical as usize] = page;
            }
        }
        for block in 0..layout.blocks {
            ftl.valid[block as usize] = match stamps.written(block) {
                0 => ERASED,
                _ => 0,
            };
        }
        for page in ftl.map.iter().filter(|page| **page != NONE) {
            ftl.in_use += 1;
            ftl.valid[(page / layout.pages_per_block) as usize] += 1;
        }
        for log in 0..ftl.logs.len() {
            ftl.find_blocks(log, stamps);
            // Cut while it was cleaning, it has no erased block; the victim's
            // other pages have room where the first ones went.
            while ftl.logs[log].free.is_empty() {
                let closed = ftl.logs[log].blocks.clone();
                let emptiest = closed.min_by_key(|block| ftl.valid[*block as usize]);
                let victim = emptiest.expect("a log has blocks");
                ftl.logs[log].skip_queue(victim);
                ftl.clean_block(log, victim, flash);
            }
        }
        Ok(ftl)
    }

    /// Which blocks of a log are erased, open and full.
    fn find_blocks(&mut self, log: usize, stamps: &Stamps) {
        let pages_per_block = self.layout.pages_per_block;
        let mut free = Vec::new();
        let mut partly = Vec::new();
        let mut full = Vec::new();
        for block in self.logs[log].blocks.clone() {
            match stamps.written(block) {
                0 => free.push(block),
                written if written == pages_per_block => full.push(block),
                written => partly.push((block, written)),
            }
        }
        full.sort_by_key(|block| stamps.newest(*block));
        // One block at most is written at a time; where none is half written,
        // the last one was full, or the next one is still erased.
        let open = match (partly.pop(), free.pop()) {
            (Some(open), erased) => {
                free.extend(erased);
                open
            }
            (None, Some(erased)) if !free.is_empty() => (erased, 0),
            (None, erased) => {
                free.extend(erased);
                let last = full.pop().expect("a block is full where few are erased");
                (last, pages_per_block)
            }
        };
        let valid = &mut self.valid[open.0 as usize];
        *valid = OPEN + if *valid == ERASED { 0 } else { *valid };
        self.logs[log].found(open, free, &full);
    }
}
