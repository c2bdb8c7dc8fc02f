//! [`Ftl`]: a page-mapped flash translation layer.
//!
//! A page cannot be written twice before its block is erased. So every write goes to the next page
//! of an open block, and the page that it replaces becomes invalid. When the open block is full,
//! the last erased block is opened. The valid pages of another block, the victim, are copied into
//! it, and the victim is erased in its place.
//!
//! Whether a page is valid is not written down: it is, where the map of its
//! owner still points to it. That saves an access to far memory on each write.

mod layout;
mod log;
mod policy;
mod recovery;

pub use layout::{Layout, LogLayout, MOST_PAGES_PER_BLOCK};
pub use policy::Policy;
pub use recovery::Stamps;

use crate::DriveError;
use log::Log;
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// No page.
const NONE: u32 = u32::MAX;

/// The number of valid pages of a block. Values above [`CLOSED`] mark a block that cannot be a
/// victim.
type Flags = u16;

/// The highest count of a block that can be cleaned.
const CLOSED: Flags = MOST_PAGES_PER_BLOCK as Flags;
/// Added while a block is written.
const OPEN: Flags = 1 << 15;
/// An erased block.
const ERASED: Flags = Flags::MAX;

/// A listener that gets every change to the flash, with physical page numbers. Page `p` lies in
/// block `p ÷ pages_per_block`.
pub trait Flash {
    /// A page is written for the host.
    fn program(&mut self, page: u32, logical: u32);
    /// A valid page is read and written elsewhere.
    fn relocate(&mut self, from: u32, to: u32);
    /// All pages of a block can be written again.
    fn erase(&mut self, block: u32);
}

/// Ignores all changes.
impl Flash for () {
    fn program(&mut self, _: u32, _: u32) {}
    fn relocate(&mut self, _: u32, _: u32) {}
    fn erase(&mut self, _: u32) {}
}

/// The operations so far, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Written by the host.
    pub host: u64,
    /// Copied in cleaning.
    pub relocated: u64,
    /// Discarded by the host while they were in use.
    pub discarded: u64,
}

impl Counts {
    /// All pages written to the flash.
    pub fn flash(&self) -> u64 {
        self.host + self.relocated
    }

    /// Flash writes ÷ host writes; `None` before the host has written.
    pub fn write_amplification(&self) -> Option<f64> {
        (self.host > 0).then(|| self.flash() as f64 / self.host as f64)
    }

    /// The operations since `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            host: self.host - before.host,
            relocated: self.relocated - before.relocated,
            discarded: self.discarded - before.discarded,
        }
    }
}

/// How worn blocks are spared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WearLevelling {
    /// Not at all.
    #[default]
    None,
    /// Of several erased blocks the least worn one is opened.
    Dynamic,
    /// Besides, a block that is this many erases behind the most worn one is
    /// cleaned, however full it is.
    Static {
        /// Erases between the least and the most worn block.
        spread: u32,
    },
}

/// A flash translation layer.
#[derive(Clone, Debug)]
pub struct Ftl {
    layout: Layout,
    wear_levelling: WearLevelling,
    /// Physical page of each logical one.
    map: Vec<u32>,
    /// Logical page that each physical one was written for.
    owner: Vec<u32>,
    valid: Vec<Flags>,
    erases: Vec<u32>,
    most_erased: u32,
    logs: Vec<Log>,
    counts: Counts,
    in_use: u32,
    /// Valid pages of a victim: physical and logical.
    moving: Vec<(u32, u32)>,
}

/// So many page numbers, none of them set.
fn pages(layout: Layout, count: u64) -> Result<Vec<u32>, DriveError> {
    let mut pages = Vec::new();
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    pages
        .try_reserve_exact(count)
        .map_err(|_| DriveError::Memory {
            pages: layout.pages(),
            bytes: layout.memory(),
        })?;
    pages.resize(count, NONE);
    Ok(pages)
}

impl Ftl {
    /// An erased flash with one log.
    ///
    /// # Errors
    /// [`DriveError::NoSpare`], [`DriveError::Memory`].
    pub fn new(layout: Layout, policy: Policy, seed: u64) -> Result<Self, DriveError> {
        Self::split(layout, policy, seed, &[layout.whole()])
    }

    /// An erased flash with several logs. The host's writes must not bring more
    /// logical pages into a log than are said here.
    ///
    /// # Errors
    /// [`DriveError::NoSpare`] where a log could not be cleaned;
    /// [`DriveError::Memory`].
    ///
    /// # Panics
    /// Where the logs are not all of the blocks.
    pub fn split(
        layout: Layout,
        policy: Policy,
        seed: u64,
        logs: &[LogLayout],
    ) -> Result<Self, DriveError> {
        let layout = layout.checked()?;
        assert_eq!(
            logs.iter().map(|log| log.blocks).sum::<u32>(),
            layout.blocks,
            "every block has a log"
        );
        for log in logs {
            log.checked(layout.pages_per_block)?;
        }
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut first = 0;
        let logs = logs
            .iter()
            .map(|log| {
                let range = first..first + log.blocks;
                first = range.end;
                rng.jump();
                Log::new(range, policy, rng.clone())
            })
            .collect::<Vec<_>>();
        let mut valid = vec![ERASED; layout.blocks as usize];
        for log in &logs {
            valid[log.open as usize] = OPEN;
        }
        Ok(Self {
            wear_levelling: WearLevelling::None,
            map: pages(layout, u64::from(layout.logical_pages))?,
            owner: pages(layout, layout.pages())?,
            valid,
            erases: vec![0; layout.blocks as usize],
            most_erased: 0,
            logs,
            counts: Counts::default(),
            in_use: 0,
            moving: Vec::with_capacity(layout.pages_per_block as usize),
            layout,
        })
    }

    /// The same, sparing worn blocks.
    pub fn levelling(self, wear_levelling: WearLevelling) -> Self {
        Self {
            wear_levelling,
            ..self
        }
    }

    /// Sizes.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The operations so far, in pages.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// How often each block was erased.
    pub fn erases(&self) -> &[u32] {
        &self.erases
    }

    /// Logical pages that hold something.
    pub fn in_use(&self) -> u32 {
        self.in_use
    }

    /// Where a logical page lies; `None` where it was never written, or discarded.
    ///
    /// # Panics
    /// Beyond the last logical page.
    pub fn lookup(&self, logical: u32) -> Option<u32> {
        let page = self.map[logical as usize];
        (page != NONE).then_some(page)
    }

    /// Writes a logical page into log `log`.
    ///
    /// # Panics
    /// Beyond the last logical page or log.
    #[inline]
    pub fn write(&mut self, log: usize, logical: u32, flash: &mut impl Flash) {
        if self.logs[log].next == self.layout.pages_per_block {
            self.make_room(log, flash);
        }
        let log = &mut self.logs[log];
        let page = log.open * self.layout.pages_per_block + log.next;
        log.next += 1;
        self.counts.host += 1;
        let old = std::mem::replace(&mut self.map[logical as usize], page);
        self.valid[log.open as usize] += 1;
        self.owner[page as usize] = logical;
        match old {
            NONE => self.in_use += 1,
            old => self.valid[(old / self.layout.pages_per_block) as usize] -= 1,
        }
        flash.program(page, logical);
    }

    /// Forgets a logical page; whether it held anything.
    ///
    /// # Panics
    /// Beyond the last logical page.
    pub fn discard(&mut self, logical: u32) -> bool {
        match std::mem::replace(&mut self.map[logical as usize], NONE) {
            NONE => false,
            page => {
                self.valid[(page / self.layout.pages_per_block) as usize] -= 1;
                self.in_use -= 1;
                self.counts.discarded += 1;
                true
            }
        }
    }

    /// Opens a block with room in it, and cleans until another one is erased.
    #[cold]
    fn make_room(&mut self, log: usize, flash: &mut impl Flash) {
        // A victim without a single invalid page leaves no room: then another.
        while self.logs[log].next == self.layout.pages_per_block {
            self.turn_to_next_block(log);
            if self.logs[log].free.is_empty() {
                self.clean(log, flash);
            }
        }
    }

    fn turn_to_next_block(&mut self, log: usize) {
        let written = self.counts.flash();
        let log = &mut self.logs[log];
        self.valid[log.open as usize] -= OPEN;
        log.filled(written);
        let erases = &self.erases;
        let chosen = match self.wear_levelling {
            WearLevelling::None => log.free.len() - 1,
            _ => {
                let places = 0..log.free.len();
                let least = places.min_by_key(|&place| erases[log.free[place] as usize]);
                least.expect("an erased block is left")
            }
        };
        log.open = log.free.swap_remove(chosen);
        log.next = 0;
        self.valid[log.open as usize] = OPEN;
    }

    /// Chooses a block, and cleans it.
    fn clean(&mut self, log: usize, flash: &mut impl Flash) {
        let written = self.counts.flash();
        let worn = self.least_worn_of(log);
        let chosen = &mut self.logs[log];
        let victim = match worn {
            Some(block) => {
                chosen.skip_queue(block);
                block
            }
            None => chosen.victim(&self.valid, self.layout.pages_per_block, written),
        };
        self.clean_block(log, victim, flash);
    }

    /// Copies the valid pages of a block into the open one, where there is room
    /// for them, and erases it.
    fn clean_block(&mut self, log: usize, victim: u32, flash: &mut impl Flash) {
        let pages_per_block = self.layout.pages_per_block;
        let log = &mut self.logs[log];
        let first = victim * pages_per_block;
        let owners = &self.owner[first as usize..(first + pages_per_block) as usize];
        // Without a branch on what is as good as random.
        self.moving.resize(pages_per_block as usize, (0, 0));
        let mut count = 0;
        for (page, &logical) in (first..).zip(owners) {
            self.moving[count] = (page, logical);
            // A page that was never written has no owner.
            count += usize::from(self.map.get(logical as usize) == Some(&page));
        }
        debug_assert_eq!(count, usize::from(self.valid[victim as usize]));
        let start = log.open * pages_per_block + log.next;
        for (to, &(from, logical)) in (start..).zip(&self.moving[..count]) {
            self.map[logical as usize] = to;
            self.owner[to as usize] = logical;
            flash.relocate(from, to);
        }
        log.next += count as u32;
        self.valid[log.open as usize] += count as Flags;
        self.counts.relocated += count as u64;

        self.valid[victim as usize] = ERASED;
        self.erases[victim as usize] += 1;
        self.most_erased = self.most_erased.max(self.erases[victim as usize]);
        log.free.push(victim);
        flash.erase(victim);
    }

    /// The full block that wear levelling wants cleaned, if it does.
    fn least_worn_of(&self, log: usize) -> Option<u32> {
        let WearLevelling::Static { spread } = self.wear_levelling else {
            return None;
        };
        let closed = |block: &u32| self.valid[*block as usize] <= CLOSED;
        let blocks = self.logs[log].blocks.clone().filter(closed);
        let least = blocks.min_by_key(|&block| self.erases[block as usize])?;
        (self.most_erased - self.erases[least as usize] > spread).then_some(least)
    }
}
