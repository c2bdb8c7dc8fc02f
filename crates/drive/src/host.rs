//! [`FileSystem`]: files that come and go on a drive.
//!
//! A file is written whole, into the next free places, and removed whole. Besides, pages within
//! files are written again. It isn't a particular file system: it has the habits that matter to a
//! drive.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;

/// Largest file, as a power of two of pages.
const LARGEST: u32 = 13;

/// A run of logical pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first page.
    pub first: u32,
    /// How many.
    pub pages: u32,
}

/// A request of a file system to its drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// These pages are written.
    Write(Extent),
    /// These pages hold nothing any more.
    Free(Extent),
}

/// Files on a part of a drive that begins at page 0.
#[derive(Clone, Debug)]
pub struct FileSystem {
    /// Whether a file holds each page.
    held: Vec<bool>,
    files: Vec<Vec<Extent>>,
    /// Free runs: first page and length.
    free: BTreeMap<u32, u32>,
    /// Where the search for free pages goes on.
    next: u32,
    used: u32,
    /// Pages that may be used.
    limit: u32,
    /// Pages written again, for each page of a new file.
    overwrites: f64,
    /// Pages to be written again.
    owed: f64,
    rng: Xoshiro256PlusPlus,
}

impl FileSystem {
    /// An empty file system over `pages` pages, to be filled to a share `fill` of them. A share
    /// `overwrites` of all writes, below 1, goes to pages in use.
    pub fn new(pages: u32, fill: f64, overwrites: f64, seed: u64) -> Self {
        Self {
            held: vec![false; pages as usize],
            files: Vec::new(),
            free: BTreeMap::from([(0, pages)]),
            next: 0,
            used: 0,
            limit: ((f64::from(pages) * fill) as u32).max(1),
            overwrites: overwrites / (1.0 - overwrites),
            owed: 0.0,
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// Pages that it lies on.
    pub fn pages(&self) -> usize {
        self.held.len()
    }

    /// The runs of pages that hold something, in order.
    pub fn held(&self) -> impl Iterator<Item = Extent> {
        let runs = self.held.chunk_by(|a, b| a == b);
        let all = runs.scan(0, |first, run| {
            let extent = Extent {
                first: *first,
                pages: run.len() as u32,
            };
            *first += extent.pages;
            Some((run[0], extent))
        });
        all.filter_map(|(held, extent)| held.then_some(extent))
    }

    /// Whether a page holds something.
    pub fn holds(&self, page: u32) -> bool {
        self.held[page as usize]
    }

    /// Writes the first files, until the target fill is reached.
    pub fn fill(&mut self, events: &mut Vec<Event>) {
        while self.used < self.limit {
            let pages = self.size_of_file().min(self.limit - self.used);
            self.create(pages, events);
        }
    }

    /// Writes a new file, after old ones have made room for it, and some pages
    /// again; what that asks the drive for goes to `events`.
    pub fn step(&mut self, events: &mut Vec<Event>) {
        let pages = self.size_of_file();
        while self.used + pages > self.limit {
            self.remove(events);
        }
        self.create(pages, events);
        self.owed += f64::from(pages) * self.overwrites;
        while self.owed >= 1.0 {
            self.owed -= 1.0;
            let first = self.any_held();
            events.push(Event::Write(Extent { first, pages: 1 }));
        }
    }

    /// As many files of one to two pages as of two to four, and so on.
    fn size_of_file(&mut self) -> u32 {
        let exponent = self.rng.next_u64() as f64 / 2.0_f64.powi(64) * f64::from(LARGEST);
        (exponent.exp2() as u32).clamp(1, self.limit)
    }

    fn create(&mut self, pages: u32, events: &mut Vec<Event>) {
        let mut extents = Vec::new();
        let mut left = pages;
        while left > 0 {
            let after = self.free.range(self.next..).next();
            let found = after.or_else(|| self.free.iter().next());
            let (&first, &free) = found.expect("less is used than there is");
            let taken = free.min(left);
            self.free.remove(&first);
            if free > taken {
                self.free.insert(first + taken, free - taken);
            }
            self.next = first + taken;
            left -= taken;
            let extent = Extent {
                first,
                pages: taken,
            };
            self.mark(extent, true);
            events.push(Event::Write(extent));
            extents.push(extent);
        }
        self.used += pages;
        self.files.push(extents);
    }

    fn remove(&mut self, events: &mut Vec<Event>) {
        let number = self.below(self.files.len() as u32) as usize;
        for extent in self.files.swap_remove(number) {
            self.mark(extent, false);
            self.used -= extent.pages;
            events.push(Event::Free(extent));
            self.release(extent);
        }
    }

    /// Joins a free run with its neighbours.
    fn release(&mut self, extent: Extent) {
        let Extent {
            mut first,
            mut pages,
        } = extent;
        if let Some((&before, &length)) = self.free.range(..first).next_back()
            && before + length == first
        {
            self.free.remove(&before);
            (first, pages) = (before, pages + length);
        }
        if let Some(length) = self.free.remove(&(first + pages)) {
            pages += length;
        }
        self.free.insert(first, pages);
    }

    fn mark(&mut self, extent: Extent, held: bool) {
        self.held[extent.first as usize..][..extent.pages as usize].fill(held);
    }

    fn any_held(&mut self) -> u32 {
        loop {
            let page = self.below(self.held.len() as u32);
            if self.holds(page) {
                return page;
            }
        }
    }

    fn below(&mut self, end: u32) -> u32 {
        ((u128::from(self.rng.next_u64()) * u128::from(end)) >> 64) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The held pages are those written and not freed, and never more than allowed.
    #[test]
    fn pages_are_held_once() {
        let mut files = FileSystem::new(50_000, 0.8, 0.3, 7);
        let mut held = vec![false; 50_000];
        let mut events = Vec::new();
        files.fill(&mut events);
        let (mut written, mut again) = (0, 0);
        for round in 0..2000 {
            for event in events.drain(..) {
                let (extent, to) = match event {
                    Event::Write(extent) => (extent, true),
                    Event::Free(extent) => (extent, false),
                };
                for page in extent.first..extent.first + extent.pages {
                    let place = &mut held[page as usize];
                    match to {
                        true if *place => again += 1,
                        true => written += 1,
                        false => assert!(*place, "page {page} is freed twice"),
                    }
                    *place = to;
                }
            }
            for (page, held) in (0..).zip(&held) {
                assert_eq!(files.holds(page), *held, "page {page} in round {round}");
            }
            let used = held.iter().filter(|held| **held).count();
            assert!((31_000..=40_000).contains(&used), "{used}");
            let runs: Vec<Extent> = files.held().collect();
            assert_eq!(
                runs.iter().map(|run| run.pages as usize).sum::<usize>(),
                used
            );
            assert!(
                runs.windows(2)
                    .all(|two| two[0].first + two[0].pages < two[1].first)
            );
            files.step(&mut events);
        }
        let share = f64::from(again) / f64::from(again + written);
        assert!((share - 0.3).abs() < 0.02, "{share}");
    }
}
