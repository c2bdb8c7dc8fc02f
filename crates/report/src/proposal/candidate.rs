//! The ciphers that were measured, and which of them is chosen.

use super::{Expected, MATTERS};
use crate::{figure, group};
use lab::record::{Interval, Run, Trial};
use lab::stats;

/// One cipher, with what it costs in each workload.
pub(super) struct Candidate<'a> {
    /// dm-crypt notation.
    pub(super) cipher: &'a str,
    pub(super) key_bits: u32,
    pub(super) sector_bytes: u32,
    pub(super) cells: Vec<Cell<'a>>,
}

/// A workload with the cipher and without.
pub(super) struct Cell<'a> {
    pub(super) trial: &'a Trial,
    plain: &'a Trial,
    /// Encrypted rate ÷ plain rate.
    pub(super) ratio: Interval,
}

/// The ciphers of a run in its order, with the workloads that plain has too.
pub(super) fn candidates(run: &Run) -> Vec<Candidate<'_>> {
    let floor = stats::noise_floor(run.noise.aa_ratio);
    let mut candidates: Vec<Candidate<'_>> = Vec::new();
    for trial in run.trials.iter().filter(|trial| !group::is_again(trial)) {
        let (Some(cipher), Some(key_bits), Some(sector_bytes)) =
            (trial.cipher.as_deref(), trial.key_bits, trial.sector_bytes)
        else {
            continue;
        };
        let is_its_plain =
            |plain: &&Trial| group::is_plain(plain) && plain.workload == trial.workload;
        let Some(plain) = run.trials.iter().find(is_its_plain) else {
            continue;
        };
        let Some(ratio) = range(&trial.samples_mb_s, &plain.samples_mb_s, floor) else {
            continue;
        };
        let cell = Cell {
            trial,
            plain,
            ratio,
        };
        let same = |known: &&mut Candidate<'_>| {
            (known.cipher, known.key_bits, known.sector_bytes) == (cipher, key_bits, sector_bytes)
        };
        match candidates.iter_mut().find(same) {
            Some(known) => known.cells.push(cell),
            None => candidates.push(Candidate {
                cipher,
                key_bits,
                sector_bytes,
                cells: vec![cell],
            }),
        }
    }
    candidates
}

/// Median of the paired ratios, and all of them with the noise floor on both
/// sides: where a later measurement should lie, not where its median does.
fn range(encrypted: &[f64], plain: &[f64], floor: f64) -> Option<Interval> {
    let ratios: Vec<f64> = encrypted
        .iter()
        .zip(plain)
        .filter(|(_, plain)| **plain > 0.0)
        .map(|(encrypted, plain)| encrypted / plain)
        .collect();
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

/// The first whose rate in its worst workload is hardly below that of the one that
/// keeps most of the plain rate there.
pub(super) fn choose<'a, 'b>(candidates: &'b [Candidate<'a>]) -> Option<&'b Candidate<'a>> {
    let worst = |candidate: &Candidate<'_>| candidate.worst().ratio.median;
    let best = candidates.iter().map(worst).fold(f64::MIN, f64::max);
    candidates
        .iter()
        .find(|candidate| worst(candidate) >= best * (1.0 - MATTERS))
}

impl Candidate<'_> {
    /// `AES-256 XTS`.
    pub(super) fn name(&self) -> String {
        figure::cipher(self.cipher, Some(self.key_bits))
    }

    /// The workload in which it costs most.
    pub(super) fn worst(&self) -> &Cell<'_> {
        let by_ratio = |a: &&Cell<'_>, b: &&Cell<'_>| a.ratio.median.total_cmp(&b.ratio.median);
        let worst = self.cells.iter().min_by(by_ratio);
        worst.expect("a candidate has a cell at least")
    }
}

impl Cell<'_> {
    /// What is to be expected of it.
    pub(super) fn expected(&self) -> Expected {
        Expected {
            workload: self.trial.workload.clone(),
            plain_mb_s: self.plain.throughput_mb_s.median,
            ratio: self.ratio,
        }
    }
}
