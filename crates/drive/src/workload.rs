//! [`PageWorkload`]: which pages a host writes and discards.

use crate::DriveError;
use crate::ftl::Ftl;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// One thing that a host does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageRequest {
    /// Writes a logical page.
    Write {
        /// The page.
        logical: u32,
        /// Whether it is one of those that are written often.
        hot: bool,
    },
    /// Discards a logical page that is in use.
    Discard {
        /// The page.
        logical: u32,
    },
}

/// Random pages: all alike, or some hotter than others, and discards between.
#[derive(Clone, Debug)]
pub struct PageWorkload {
    pages: u32,
    hot_pages: u32,
    /// Of 2⁶⁴, what goes to hot pages.
    hot_writes: u64,
    /// Of 2⁶⁴, what is a discard.
    discards: u64,
    rng: Xoshiro256PlusPlus,
}

/// A share of the pages that gets a share of the writes; the first ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hot {
    /// Of the logical pages, above 0 and below 1.
    pub pages: f64,
    /// Of the writes, above 0 and below 1.
    pub writes: f64,
}

/// How often the capacity is written before anything is counted, and while.
///
/// # Errors
/// [`DriveError::OutOfRange`] names the one that is not possible.
pub(crate) fn check_times(warmup: f64, measure: f64) -> Result<(), DriveError> {
    let possible = "up to 1000000 times the capacity, and more than 0 to measure";
    let range = 0.0..=1e6;
    DriveError::require(range.contains(&warmup), "warmup", warmup, possible)?;
    let fits = range.contains(&measure) && measure > 0.0;
    DriveError::require(fits, "measure", measure, possible)
}

impl PageWorkload {
    /// Over `pages` logical pages; a share `discards` of all requests, below
    /// one half, discards a random page in use.
    ///
    /// # Errors
    /// [`DriveError::OutOfRange`] names the share.
    pub fn new(pages: u32, hot: Option<Hot>, discards: f64, seed: u64) -> Result<Self, DriveError> {
        DriveError::require(
            (0.0..0.5).contains(&discards),
            "discard-fraction",
            discards,
            "at least 0 and below 0.5, because at 0.5 nothing would stay in use",
        )?;
        let within = |share: f64| share > 0.0 && share < 1.0;
        let mut hot_pages = pages;
        if let Some(hot) = hot {
            let possible = "above 0 % and below 100 %, of pages and of writes";
            hot_pages = (f64::from(pages) * hot.pages).round() as u32;
            for share in [hot.pages, hot.writes] {
                let fits = within(share) && (1..pages).contains(&hot_pages);
                DriveError::require(fits, "hot", share, possible)?;
            }
        }
        // 2⁶⁴ itself does not fit; nor does it matter.
        let threshold = |share: f64| (share * 2.0_f64.powi(64)) as u64;
        Ok(Self {
            pages,
            hot_pages,
            hot_writes: hot.map_or(0, |hot| threshold(hot.writes)),
            discards: threshold(discards),
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
        })
    }

    /// The next request of the host to `ftl`.
    #[inline]
    pub fn next(&mut self, ftl: &Ftl) -> PageRequest {
        if self.discards > 0 && self.rng.next_u64() < self.discards && ftl.in_use() > 0 {
            loop {
                let logical = self.below(self.pages);
                if ftl.lookup(logical).is_some() {
                    return PageRequest::Discard { logical };
                }
            }
        }
        let (logical, hot) = self.write();
        PageRequest::Write { logical, hot }
    }

    /// The logical page that the host writes next, and whether it is one of
    /// those that are written often.
    #[inline]
    pub fn write(&mut self) -> (u32, bool) {
        let all_alike = self.hot_pages == self.pages;
        let hot = all_alike || self.rng.next_u64() < self.hot_writes;
        let logical = match hot {
            true => self.below(self.hot_pages),
            false => self.hot_pages + self.below(self.pages - self.hot_pages),
        };
        (logical, hot && !all_alike)
    }

    fn below(&mut self, end: u32) -> u32 {
        ((u128::from(self.rng.next_u64()) * u128::from(end)) >> 64) as u32
    }
}
