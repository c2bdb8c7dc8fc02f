//! The ciphers that were measured, and which of them is chosen.

use super::Expected;
use crate::advice::{self, Setup};
use crate::{figure, group};
use lab::record::{Interval, Run, Trial};
use lab::stats;

/// One cipher, with what it costs in each workload.
pub(super) struct Candidate<'a> {
    /// dm-crypt notation.
    pub(super) cipher: &'a str,
    pub(super) key_bits: u32,
    pub(super) sector_bytes: u32,
    pub(super) setup: Setup<'a>,
}

/// The ciphers of a run in its order.
pub(super) fn candidates(run: &Run) -> Vec<Candidate<'_>> {
    let mut setups = advice::setups(run);
    let place = |trial: &Trial| run.trials.iter().position(|it| std::ptr::eq(it, trial));
    setups.sort_by_key(|setup| place(setup.cells[0]));
    let candidates = setups.into_iter().filter_map(|setup| {
        let first = setup.cells[0];
        Some(Candidate {
            cipher: first.cipher.as_deref()?,
            key_bits: first.key_bits?,
            sector_bytes: first.sector_bytes?,
            setup,
        })
    });
    candidates.collect()
}

/// The first that may cost hardly more than the one that costs least.
pub(super) fn choose<'a, 'b>(candidates: &'b [Candidate<'a>]) -> Option<&'b Candidate<'a>> {
    let worst = |candidate: &Candidate<'_>| candidate.setup.worst().1.median;
    let best = candidates
        .iter()
        .max_by(|a, b| worst(a).total_cmp(&worst(b)))?;
    candidates
        .iter()
        .find(|candidate| candidate.setup.may_cost_hardly_more_than(&best.setup))
}

impl Candidate<'_> {
    /// `AES-256 XTS`.
    pub(super) fn name(&self) -> String {
        figure::cipher(self.cipher, Some(self.key_bits))
    }

    /// `9 to 17 %, most in seq-4m-read`, `nothing measurable (at most 1.2 %)`.
    pub(super) fn cost(&self) -> String {
        let cost = advice::cost(&self.setup.overheads());
        let cost = cost.expect("a candidate was compared");
        match self.setup.is_noticed() {
            true => format!("{cost}, most in {}", self.setup.worst().0.workload),
            false => cost,
        }
    }

    /// The expected range of a later run of each workload.
    pub(super) fn expected(&self, run: &Run) -> Vec<Expected> {
        let floor = stats::noise_floor(run.noise.aa_ratio);
        let expected = self.setup.cells.iter().filter_map(|cell| {
            let is_its_plain =
                |plain: &&Trial| group::is_plain(plain) && plain.workload == cell.workload;
            let plain = run.trials.iter().find(is_its_plain)?;
            Some(Expected {
                workload: cell.workload.clone(),
                plain_mb_s: plain.throughput_mb_s.median,
                ratio: range(&cell.samples_mb_s, &plain.samples_mb_s, floor)?,
            })
        });
        expected.collect()
    }
}

/// Median of the paired ratios, with the range of all of them widened by the
/// noise floor on both sides. A later single measurement, not its median,
/// should lie in that range.
fn range(encrypted: &[f64], plain: &[f64], floor: f64) -> Option<Interval> {
    let ratios = stats::ratios(encrypted, plain);
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let most = ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let range = Interval {
        median: stats::median(&ratios)?,
        low: least / (1.0 + floor),
        high: most * (1.0 + floor),
        n: ratios.len() as u32,
    };
    figure::finite(range).then_some(range)
}
