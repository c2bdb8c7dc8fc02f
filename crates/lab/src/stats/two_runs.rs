//! [`two_runs`]: the ratio of values that were not measured in turns.

use super::{median, median_of_sorted, sorted};
use crate::record::Interval;

/// Blocks into which the values of a run are put together. A shared machine is slow for seconds
/// at a time, so neighbouring slices are not independent; medians of a twelfth of a run nearly
/// are.
const BLOCKS: usize = 12;

/// Median of all ratios of a value of `subject` to one of `reference`, with its 95 % interval;
/// `n` is the smaller count. `None` if either is empty or a reference is not positive.
///
/// It is the interval of Hodges and Lehmann that belongs to the test of Mann and Whitney, over
/// medians of blocks of neighbours: it supposes that both sides have noise of the same kind,
/// which need not be normal. Three values a side are too few for 95 %; their interval, all that
/// there is, misses in 10 %, half of it on each side.
pub fn two_runs(subject: &[f64], reference: &[f64]) -> Option<Interval> {
    let (blocks, others) = (blocks(subject), blocks(reference));
    if others.iter().any(|value| *value <= 0.0) {
        return None;
    }
    let ratios = blocks
        .iter()
        .flat_map(|value| others.iter().map(move |other| value / other));
    let ratios = sorted(&ratios.collect::<Vec<f64>>());
    let (m, n) = (blocks.len() as f64, others.len() as f64);
    let deviation = (m * n * (m + n + 1.0) / 12.0).sqrt();
    // A little more than 1.96: blocks are not quite independent.
    let rank = (m * n / 2.0 - 2.0 * deviation).floor().max(1.0) as usize;
    Some(Interval {
        median: median_of_sorted(&ratios)?,
        low: ratios[rank - 1],
        high: ratios[ratios.len() - rank],
        n: subject.len().min(reference.len()) as u32,
    })
}

/// Medians of [`BLOCKS`] stretches of `values`, or of fewer if there are not enough values.
fn blocks(values: &[f64]) -> Vec<f64> {
    let (all, count) = (values.len(), values.len().min(BLOCKS));
    let block = |at: usize| median(&values[at * all / count..(at + 1) * all / count]);
    (0..count).filter_map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    #[test]
    fn the_interval_encloses_the_ratio() {
        let a: Vec<f64> = (0..10).map(|at| 100.0 + f64::from(at)).collect();
        let b: Vec<f64> = a.iter().map(|value| value * 0.8).collect();
        let ratio = two_runs(&b, &a).unwrap();
        assert!((ratio.median - 0.8).abs() < 1e-3, "{ratio:?}");
        assert!(0.75 < ratio.low && ratio.low < 0.8 && 0.8 < ratio.high && ratio.high < 0.85);
    }

    #[test]
    fn no_ratio_without_samples() {
        assert_eq!(two_runs(&[], &[1.0]), None);
        assert_eq!(two_runs(&[1.0], &[]), None);
        assert_eq!(two_runs(&[1.0], &[0.0]), None);
    }

    #[test]
    fn three_a_side_are_told_apart_only_if_all_are() {
        let apart = two_runs(&[0.7, 0.8, 0.9], &[1.0, 1.1, 1.2]).unwrap();
        assert!(apart.high < 1.0, "{apart:?}");
        let mixed = two_runs(&[0.7, 0.8, 1.01], &[1.0, 1.1, 1.2]).unwrap();
        assert!(mixed.high > 1.0, "{mixed:?}");
    }

    fn normal(dice: &mut Xoshiro256PlusPlus) -> f64 {
        let mut uniform = || (dice.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        (0..12).map(|_| uniform()).sum::<f64>() - 6.0
    }

    /// A run of `rounds` slices of plain and of an encrypted system that costs nothing: its
    /// machine as a whole is faster or slower than another day's, and slow for ten rounds at a
    /// time; each slice has noise of its own. Rates of both, by round.
    fn run(dice: &mut Xoshiro256PlusPlus, rounds: usize, drift: f64) -> (Vec<f64>, Vec<f64>) {
        let day = (drift * normal(dice)).exp();
        let mut slow = 0.0;
        let round = |_| {
            slow = 0.9 * slow + 0.02 * normal(dice);
            let mut slice = || day * (slow + 0.03 * normal(dice)).exp();
            (slice(), slice())
        };
        (0..rounds).map(round).unzip()
    }

    /// Of 1,000 pairs of equal runs, how many are called different by their rates, and by their
    /// rates ÷ plain's.
    fn misled(rounds: usize, drift: f64) -> (usize, usize) {
        let misses = |a: &[f64], b: &[f64]| {
            let ratio = two_runs(b, a).unwrap();
            usize::from(ratio.low > 1.0 || ratio.high < 1.0)
        };
        let mut counts = (0, 0);
        for seed in 0..1000 {
            let mut dice = Xoshiro256PlusPlus::seed_from_u64(seed);
            let (plain_a, a) = run(&mut dice, rounds, drift);
            let (plain_b, b) = run(&mut dice, rounds, drift);
            counts.0 += misses(&a, &b);
            let shares = [(&a, &plain_a), (&b, &plain_b)]
                .map(|(rates, plain)| super::super::ratios(rates, plain));
            counts.1 += misses(&shares[0], &shares[1]);
        }
        counts
    }

    /// A machine that is slower today does not mean that encryption has become slower.
    #[test]
    fn equal_runs_are_rarely_told_apart() {
        for rounds in [5, 10, 60, 300] {
            let (rates, shares) = misled(rounds, 0.08);
            assert!(shares <= 50, "{rounds}: {shares} of 1000");
            // For that reason, rates are not judged if there is a share of plain's.
            assert!(rates > 400, "{rounds}: {rates} of 1000");
        }
    }

    /// Neighbouring slices are not independent, and blocks of them are not quite: rates of one
    /// machine on one day are told apart more often than they should be, but seldom.
    #[test]
    fn rates_of_a_steady_day_are_seldom_told_apart() {
        let (rates, _) = misled(300, 0.0);
        assert!(rates <= 150, "{rates} of 1000");
    }

    /// Three per cent are found in a minute of slices, on any day.
    #[test]
    fn a_loss_is_found_on_another_day() {
        let found = (0..100).filter(|&seed| {
            let mut dice = Xoshiro256PlusPlus::seed_from_u64(seed);
            let (plain_a, a) = run(&mut dice, 300, 0.08);
            let (plain_b, b) = run(&mut dice, 300, 0.08);
            let b: Vec<f64> = b.iter().map(|rate| rate * 0.97).collect();
            let shares = [(&a, &plain_a), (&b, &plain_b)]
                .map(|(rates, plain)| super::super::ratios(rates, plain));
            two_runs(&shares[1], &shares[0]).unwrap().high < 1.0
        });
        assert!(found.count() >= 95);
    }
}
