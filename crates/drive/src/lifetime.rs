//! The effect of encryption, and of its treatment of discards, on a drive over the years.
//!
//! A file system writes a fixed amount a day. The pages that the drive believes to be in use depend
//! on how the volume was made, and on whether it passes discards on. Write amplification, speed and
//! wear follow from that. The drive is simulated until its state no longer changes. It has fewer
//! blocks than the real one, because write amplification does not depend on their number.

use crate::DriveError;
use crate::ftl::{Counts, Ftl, Policy, WearLevelling};
use crate::host::{Event, Extent, FileSystem};
use crate::ssd::Ssd;
use std::ops::ControlFlow;

/// Blocks that are simulated, at most, for figures that are kept.
pub const BLOCKS: u32 = 4096;

/// Blocks for a first look, which takes an eighth of the time. Its wear and its map are coarser.
pub const FEW_BLOCKS: u32 = 512;

/// Erases that the least worn block may be behind.
const SPREAD: u32 = 50;

/// Cells of the map that an observer draws.
const CELLS: u32 = 64;

/// Writes are counted over so many capacities before their rate is compared.
const STRETCH: f64 = 0.5;

/// The first stretches are shorter, each half as long as the one behind it:
/// nothing changes as fast as at the beginning.
const SHORTER: i32 = 4;

/// Stretches of which the amplification must agree to be steady, twice over.
const STEADY: usize = 4;

/// How far apart they may be.
const AGREE: f64 = 0.01;

/// Capacities that are written at least, however short the years: before, nothing is steady.
const LEAST: f64 = 5.0;

const DAYS_PER_YEAR: f64 = 365.25;
const DAY_SECONDS: f64 = 86_400.0;

/// How a volume is made, and what it does with discards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Setup {
    /// No encryption; discards reach the drive.
    Plain,
    /// Encrypted; discards reach the drive.
    Passed,
    /// Encrypted; discards do not.
    Blocked,
    /// The same, after the volume was filled with noise as it was made.
    Filled,
    /// The same, on a part of the drive only.
    Unpartitioned {
        /// Share of the drive that is never written.
        left: f64,
    },
}

impl Setup {
    pub(crate) fn passes_discards(self) -> bool {
        matches!(self, Self::Plain | Self::Passed)
    }

    pub(crate) fn is_filled(self) -> bool {
        matches!(self, Self::Filled | Self::Unpartitioned { .. })
    }

    /// Share of the drive that is never written.
    pub(crate) fn left(self) -> f64 {
        match self {
            Self::Unpartitioned { left } => left,
            _ => 0.0,
        }
    }
}

/// The use of a drive over its simulated life.
#[derive(Clone, Debug, PartialEq)]
pub struct Life<'a> {
    /// The drive.
    pub ssd: &'a Ssd,
    /// Blocks that are simulated, at most: [`BLOCKS`], or [`FEW_BLOCKS`] for a first look.
    pub blocks: u32,
    /// Which block it cleans next.
    pub policy: Policy,
    /// Bytes that the host writes a day.
    pub daily: u64,
    /// Share of the file system that holds files.
    pub fill: f64,
    /// Share of the writes that goes to pages within files.
    pub overwrites: f64,
    /// How long.
    pub years: f64,
    /// The size of the controller's output for a plain byte, as a share, 0.1 to 1. Encrypted bytes
    /// do not compress.
    pub compression: f64,
    /// Same seed, same life.
    pub seed: u64,
}

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// Since the beginning.
    pub years: f64,
    /// Flash writes ÷ host writes until here, from the moment before on.
    pub write_amplification: f64,
    /// The steady-state write rate of the drive at this time, 10⁶ bytes a second.
    pub write_mb_s: f64,
}

/// The information that the encrypted drive gives to an observer without the key.
#[derive(Clone, Debug, PartialEq)]
pub struct Leak {
    /// Share of the drive that is visibly unused.
    pub unused: f64,
    /// Share of each part of the drive that looks used, in 64 parts.
    pub map: Vec<f64>,
    /// Share of the pages that the observer classifies correctly as used or unused.
    pub right: f64,
}

/// A life.
#[derive(Clone, Debug, PartialEq)]
pub struct Lived {
    /// From the beginning until the end, or until nothing changed any more.
    pub moments: Vec<Moment>,
    /// From when on nothing changed, in years.
    pub steady_after: Option<f64>,
    /// Over the whole life.
    pub write_amplification: f64,
    /// When the blocks have had their erases.
    pub lifetime_years: f64,
    /// The amount that the host has written by then, 10¹² bytes.
    pub terabytes_written: f64,
    /// Erases of the simulated blocks: how often, and how many blocks.
    pub erases: Vec<(u32, u32)>,
    /// The information that an observer gets; `None` for a drive without encryption.
    pub leak: Option<Leak>,
}

impl Life<'_> {
    /// Lives it. `report` is told the share that is done, and may end it.
    ///
    /// # Errors
    /// [`DriveError::OutOfRange`] names the number; `Ok(None)` where `report`
    /// ended it.
    pub fn live(
        &self,
        setup: Setup,
        report: &mut dyn FnMut(f64) -> ControlFlow<()>,
    ) -> Result<Option<Lived>, DriveError> {
        self.check(setup)?;
        let mut run = Run::new(self, setup)?;
        let capacity = f64::from(run.ftl.layout().logical_pages);
        let real_capacity = self.ssd.capacity.as_u64() as f64;
        let total_pages = self.years * DAYS_PER_YEAR * self.daily as f64 / real_capacity * capacity;
        let years_of = |pages: f64| pages / total_pages * self.years;
        let least = (capacity * LEAST).max(total_pages);

        let mut moments: Vec<Moment> = Vec::new();
        let mut steady_after = None;
        let mut over = None;
        let start = run.ftl.counts();
        let mut before = start;
        loop {
            let written = (before.host - start.host) as f64;
            if report((written / least).min(1.0)).is_break() {
                return Ok(None);
            }
            if written >= total_pages && over.is_none() {
                over = Some(run.outcome(&start, setup));
            }
            if written >= least {
                break;
            }
            if is_steady(&moments) && written >= LEAST * capacity {
                steady_after = Some(years_of(written));
                break;
            }
            // The years that are asked for may be a small part of that.
            let stretch = match over {
                Some(_) => capacity * STRETCH,
                None => (capacity * STRETCH).min(total_pages / 8.0),
            };
            let halvings = SHORTER.saturating_sub(moments.len() as i32).max(0);
            let stretch = (stretch * 0.5_f64.powi(halvings)).max(1.0);
            while ((run.ftl.counts().host - before.host) as f64) < stretch {
                run.step();
            }
            let now = run.ftl.counts();
            let amplification = run.amplification(&now.since(&before));
            moments.push(Moment {
                years: years_of((now.host - start.host) as f64),
                write_amplification: amplification,
                write_mb_s: self.ssd.write_mb_s(amplification.max(1.0)),
            });
            before = now;
        }

        let (counts, erases, leak) = over.unwrap_or_else(|| run.outcome(&start, setup));
        let lived = years_of(counts.host as f64);
        let measured = run.amplification(&counts);
        let last = moments.iter().rev().take(STEADY);
        let steady = last.clone().map(|m| m.write_amplification).sum::<f64>() / last.len() as f64;
        let years = self.years.max(lived);
        let amplification = (measured * lived + steady * (years - lived)) / years;
        let endured =
            f64::from(self.ssd.erase_cycles) * real_capacity * (1.0 + self.ssd.over_provisioning);
        let daily = self.daily as f64;
        // Behind the years that were looked at it goes on as in the last of them.
        let in_these = amplification * daily * DAYS_PER_YEAR * years;
        let lifetime_years = match endured < in_these {
            true => endured / (amplification * daily * DAYS_PER_YEAR),
            false => years + (endured - in_these) / (steady * daily * DAYS_PER_YEAR),
        };
        let within = |moment: &&Moment| moment.years <= lived;
        Ok(Some(Lived {
            moments: moments.iter().filter(within).copied().collect(),
            steady_after,
            write_amplification: amplification,
            lifetime_years,
            terabytes_written: lifetime_years * DAYS_PER_YEAR * daily / 1e12,
            erases,
            leak,
        }))
    }

    /// Whether its numbers are possible.
    ///
    /// # Errors
    /// [`DriveError::OutOfRange`] names the number.
    pub fn check(&self, setup: Setup) -> Result<(), DriveError> {
        let left = setup.left();
        let require = DriveError::require;
        require(
            self.fill > 0.0 && self.fill <= 0.99,
            "fill",
            self.fill,
            "above 0 %, and at most 99 %",
        )?;
        require(
            (0.0..=0.99).contains(&self.overwrites),
            "overwrites",
            self.overwrites,
            "0 to 99 %",
        )?;
        require(
            self.years > 0.0 && self.years <= 100.0,
            "years",
            self.years,
            "above 0, and at most 100",
        )?;
        require(
            self.daily > 0 && self.daily as f64 <= self.ssd.write_mb_s(1.0) * 1e6 * DAY_SECONDS,
            "daily",
            self.daily as f64,
            "at least 1 byte, and at most what the drive can write in a day",
        )?;
        require(
            (0.0..=0.9).contains(&left),
            "unpartitioned",
            left,
            "0 to 90 %",
        )?;
        require(
            (0.1..=1.0).contains(&self.compression),
            "compression",
            self.compression,
            "0.1 to 1",
        )
    }
}

/// Whether the last stretches wrote as much to the flash as those before.
fn is_steady(moments: &[Moment]) -> bool {
    let Some(last) = moments.len().checked_sub(2 * STEADY) else {
        return false;
    };
    let mean = |moments: &[Moment]| {
        let sum: f64 = moments.iter().map(|m| m.write_amplification).sum();
        sum / moments.len() as f64
    };
    let (earlier, later) = moments[last..].split_at(STEADY);
    (mean(later) / mean(earlier) - 1.0).abs() < AGREE
}

/// A drive with a file system on it.
struct Run {
    setup: Setup,
    ftl: Ftl,
    files: FileSystem,
    /// The observer's view: whether each page has had noise written to it that no later discard
    /// took away.
    noise: Vec<bool>,
    events: Vec<Event>,
    /// Flash bytes for a byte of the host's data.
    stored: f64,
}

impl Run {
    fn new(life: &Life<'_>, setup: Setup) -> Result<Self, DriveError> {
        let mut layout = life.ssd.layout(life.blocks)?;
        let stored = match setup {
            Setup::Plain => life.compression,
            _ => 1.0,
        };
        // Compressible data leaves more of the same flash to spare, because as many pages of the
        // host take fewer blocks.
        layout.blocks = (f64::from(layout.blocks) / stored).round() as u32;
        let pages = f64::from(layout.logical_pages) * (1.0 - setup.left());
        let ftl = Ftl::new(layout, life.policy, life.seed)?;
        let mut run = Self {
            setup,
            ftl: ftl.levelling(WearLevelling::Static { spread: SPREAD }),
            files: FileSystem::new(pages as u32, life.fill, life.overwrites, !life.seed),
            noise: vec![false; layout.logical_pages as usize],
            events: Vec::new(),
            stored,
        };
        if setup.is_filled() {
            run.write(Extent {
                first: 0,
                pages: pages as u32,
            });
        }
        let mut events = Vec::new();
        run.files.fill(&mut events);
        run.pass(&events);
        Ok(run)
    }

    /// What was counted since `start`, the erases, and what an observer sees.
    fn outcome(&self, start: &Counts, setup: Setup) -> (Counts, Vec<(u32, u32)>, Option<Leak>) {
        let leak = (setup != Setup::Plain).then(|| self.leak());
        (self.ftl.counts().since(start), self.erases(), leak)
    }

    fn step(&mut self) {
        let mut events = std::mem::take(&mut self.events);
        self.files.step(&mut events);
        self.pass(&events);
        events.clear();
        self.events = events;
    }

    fn pass(&mut self, events: &[Event]) {
        for event in events {
            match *event {
                Event::Write(extent) => self.write(extent),
                Event::Free(extent) if self.setup.passes_discards() => {
                    for page in extent.first..extent.first + extent.pages {
                        self.ftl.discard(page);
                        self.noise[page as usize] = false;
                    }
                }
                Event::Free(_) => {}
            }
        }
    }

    fn write(&mut self, extent: Extent) {
        for page in extent.first..extent.first + extent.pages {
            self.ftl.write(0, page, &mut ());
        }
        self.noise[extent.first as usize..][..extent.pages as usize].fill(true);
    }

    /// Flash bytes ÷ host bytes.
    fn amplification(&self, counts: &Counts) -> f64 {
        counts.write_amplification().unwrap_or(1.0) * self.stored
    }

    fn erases(&self) -> Vec<(u32, u32)> {
        let mut blocks = std::collections::BTreeMap::new();
        for erases in self.ftl.erases() {
            *blocks.entry(*erases).or_insert(0) += 1;
        }
        blocks.into_iter().collect()
    }

    fn leak(&self) -> Leak {
        let pages = self.noise.len();
        let share =
            |part: &[bool]| part.iter().filter(|noise| **noise).count() as f64 / part.len() as f64;
        let cell = pages.div_ceil(CELLS as usize);
        let partition = self.files.pages();
        let held = |page: usize| page < partition && self.files.holds(page as u32);
        let right = (0..pages).filter(|&page| held(page) == self.noise[page]);
        Leak {
            unused: 1.0 - share(&self.noise),
            map: self.noise.chunks(cell).map(share).collect(),
            right: right.count() as f64 / pages as f64,
        }
    }
}
