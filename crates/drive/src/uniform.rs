//! `ssd-uniform`: the bare translation layer under random writes, without time.
//!
//! The drive is filled once in order, then written at random until its state no
//! longer changes, and only then is counted.

use crate::DriveError;
use crate::analytic::{self, Share};
use crate::ftl::{Counts, Ftl, Layout, LogLayout, Policy, WearLevelling};
use crate::workload::{Hot, PageRequest, PageWorkload, check_times};
use std::ops::ControlFlow;

/// Requests between two reports of progress.
const STRETCH: u64 = 1 << 20;

/// The experiment to simulate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Experiment {
    /// Sizes.
    pub layout: Layout,
    /// Which block is cleaned.
    pub policy: Policy,
    /// How worn blocks are spared.
    pub wear_levelling: WearLevelling,
    /// Pages hotter than others.
    pub hot: Option<Hot>,
    /// Whether hot pages have a log of their own, with the spare pages shared
    /// for the least writes in all.
    pub separated: bool,
    /// Share of the requests that discard, 0 to below one half.
    pub discards: f64,
    /// Pages written before counting, in logical pages of the drive.
    pub warmup: f64,
    /// Pages written while counting, in logical pages of the drive.
    pub measure: f64,
    /// Same seed, same outcome.
    pub seed: u64,
}

/// The counts of an experiment while it was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Pages written.
    pub counts: Counts,
    /// Erases of each block.
    pub erases: Vec<u32>,
    /// Logical pages in use at the end.
    pub in_use: u32,
    /// Blocks of each log.
    pub logs: Vec<u32>,
}

impl Experiment {
    /// Runs it. `report` is told the pages written and how many are to be, and may
    /// end it.
    ///
    /// # Errors
    /// [`DriveError`]; `Ok(None)` where `report` ended it.
    pub fn run(
        &self,
        report: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<Option<Outcome>, DriveError> {
        let pages = self.layout.logical_pages;
        check_times(self.warmup, self.measure)?;
        let mut host = PageWorkload::new(pages, self.hot, self.discards, self.seed)?;
        let logs = self.logs();
        // Another seed than the host's: victims must not follow its choices.
        let seed = self.seed ^ 0x9e37_79b9_7f4a_7c15;
        let ftl = Ftl::split(self.layout, self.policy, seed, &logs)?;
        let mut ftl = ftl.levelling(self.wear_levelling);
        let log_of = |hot: bool| usize::from(logs.len() > 1 && !hot);

        let hot_pages = self.hot_pages();
        for logical in 0..pages {
            ftl.write(log_of(logical < hot_pages), logical, &mut ());
        }
        let filled = ftl.counts().host;
        let writes = |times: f64| (f64::from(pages) * times).round() as u64;
        let (warmup, measure) = (writes(self.warmup), writes(self.measure).max(1));
        let mut before = None;
        loop {
            let done = ftl.counts().host - filled;
            if report(done, warmup + measure).is_break() {
                return Ok(None);
            }
            if done == warmup && before.is_none() {
                before = Some((ftl.counts(), ftl.erases().to_vec()));
            }
            let end = match before {
                None => warmup,
                Some(_) => warmup + measure,
            };
            if done == end {
                break;
            }
            for _ in 0..STRETCH.min(end - done) {
                match host.next(&ftl) {
                    PageRequest::Write { logical, hot } => ftl.write(log_of(hot), logical, &mut ()),
                    PageRequest::Discard { logical } => {
                        ftl.discard(logical);
                    }
                }
            }
        }
        let (counts, erases) = before.expect("something is measured");
        let worn = ftl.erases().iter().zip(&erases);
        Ok(Some(Outcome {
            counts: ftl.counts().since(&counts),
            erases: worn.map(|(after, before)| after - before).collect(),
            in_use: ftl.in_use(),
            logs: logs.iter().map(|log| log.blocks).collect(),
        }))
    }

    /// The write amplification by a closed form; `None` if there is none for this experiment.
    pub fn expected(&self) -> Option<f64> {
        let alpha = self.layout.alpha() / analytic::in_use(self.discards);
        let pages = self.layout.pages_per_block;
        if self.wear_levelling != WearLevelling::None {
            return None;
        }
        match (self.shares(), self.policy) {
            (None, Policy::Greedy) => Some(analytic::greedy(alpha, pages)),
            (None, Policy::Fifo) => Some(analytic::fifo(alpha)),
            (None, Policy::Random) => Some(analytic::random(alpha)),
            (None, Policy::Choices(choices)) => Some(analytic::choices(alpha, pages, choices)),
            (Some(_), _) if self.discards > 0.0 => None,
            (Some(shares), Policy::Fifo) if self.separated => {
                let split = analytic::best_split(alpha, shares);
                Some(analytic::separated(alpha, shares, split))
            }
            (Some(shares), Policy::Fifo) => Some(analytic::fifo_mixed(alpha, &shares)),
            (Some(_), _) | (None, Policy::CostBenefit) => None,
        }
    }

    /// Hot and cold pages.
    fn shares(&self) -> Option<[Share; 2]> {
        let share = |pages, writes| Share { pages, writes };
        self.hot.map(|hot| {
            [
                share(hot.pages, hot.writes),
                share(1.0 - hot.pages, 1.0 - hot.writes),
            ]
        })
    }

    fn hot_pages(&self) -> u32 {
        let pages = f64::from(self.layout.logical_pages);
        self.hot.map_or(0, |hot| (pages * hot.pages).round() as u32)
    }

    /// One log, or one of hot pages and one of cold ones.
    fn logs(&self) -> Vec<LogLayout> {
        let whole = self.layout.whole();
        let Some(shares) = self.shares().filter(|_| self.separated) else {
            return vec![whole];
        };
        let split = analytic::best_split(self.layout.alpha(), shares);
        let hot = LogLayout {
            blocks: (f64::from(whole.blocks) * split).round() as u32,
            logical_pages: self.hot_pages(),
        };
        let cold = LogLayout {
            blocks: whole.blocks - hot.blocks,
            logical_pages: whole.logical_pages - hot.logical_pages,
        };
        vec![hot, cold]
    }
}
