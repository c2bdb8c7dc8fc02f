//! The interval of paired ratios that are looked at for the last time.
//!
//! The logarithms of the ratios are inverted into an interval by the signed-rank test (F.
//! Wilcoxon, Biometrics Bulletin 1, 1945; J. L. Hodges and E. L. Lehmann, Annals of Mathematical
//! Statistics 34, 1963): its ends are order statistics of the means of all pairs of values. The
//! test supposes that a ratio is above the middle as often and by as much as below. That holds of
//! two visits with the same kind of noise.
//!
//! Of 100 normal values it is about half as wide as [the sequence](super::sequence), which may be
//! looked at any time. It misses in 3 % of the cases; the other 2 % are the sequence's.

use crate::record::Interval;

/// Standard deviations of the normal distribution outside of which 3 % lie.
const DEVIATIONS: f64 = 2.1701;

/// Fewest values with an interval: 6 of 6 on one side are not enough evidence.
const LEAST: usize = 7;

/// The middle of `ratios`, all positive, with its interval; `None` of fewer than 7.
pub(super) fn last_look(ratios: &[f64]) -> Option<Interval> {
    let logarithm = |ratio: &f64| ratio.clamp(f64::MIN_POSITIVE, f64::MAX).ln();
    let logarithms: Vec<f64> = ratios.iter().map(logarithm).collect();
    let sorted = super::sorted(&logarithms);
    let n = sorted.len() as u64;
    if sorted.len() < LEAST {
        return None;
    }
    let means = n * (n + 1) / 2;
    let outside = outside(n);
    let middle =
        (mean_of_pairs(&sorted, (means - 1) / 2) + mean_of_pairs(&sorted, means / 2)) / 2.0;
    Some(Interval {
        median: middle.exp(),
        low: mean_of_pairs(&sorted, outside).exp(),
        high: mean_of_pairs(&sorted, means - 1 - outside).exp(),
        n: n as u32,
    })
}

/// How many of the means lie outside at each end: the normal approximation, with the half that
/// makes it never reach farther than the exact distribution.
fn outside(n: u64) -> u64 {
    let n = n as f64;
    let sum = n * (n + 1.0);
    (sum / 4.0 - DEVIATIONS * (sum * (2.0 * n + 1.0) / 24.0).sqrt() - 0.5).max(0.0) as u64
}

/// The mean of two values, or of one with itself, than which `rank` others are smaller.
fn mean_of_pairs(sorted: &[f64], rank: u64) -> f64 {
    let (mut low, mut high) = (sorted[0], sorted[sorted.len() - 1]);
    // Halved until no number lies between them.
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return if up_to(sorted, low) > rank { low } else { high };
        }
        match up_to(sorted, middle) > rank {
            true => high = middle,
            false => low = middle,
        }
    }
}

/// How many means of two values, or of one with itself, are at most `mean`.
fn up_to(sorted: &[f64], mean: f64) -> u64 {
    let mut partners = sorted.len();
    let mut count = 0;
    for (place, value) in sorted.iter().enumerate() {
        while partners > place && value + sorted[partners - 1] > 2.0 * mean {
            partners -= 1;
        }
        count += partners.saturating_sub(place) as u64;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// By the number of values and the exact distribution of the sum of ranks: how many sums,
    /// of all choices of signs, are that small.
    fn exactly_outside(n: usize) -> u64 {
        let sums = n * (n + 1) / 2;
        let mut chance = vec![0.0; sums + 1];
        chance[0] = 1.0;
        for rank in 1..=n {
            for sum in (0..=sums).rev() {
                let with = if sum >= rank { chance[sum - rank] } else { 0.0 };
                chance[sum] = (chance[sum] + with) / 2.0;
            }
        }
        let mut below = 0.0;
        let few = |chance: &&f64| {
            below += **chance;
            below <= 0.015
        };
        chance.iter().take_while(few).count() as u64 - 1
    }

    #[test]
    fn it_never_reaches_farther_than_the_exact_distribution() {
        for n in LEAST..80 {
            let (said, exact) = (outside(n as u64), exactly_outside(n));
            // It lies a little nearer to the end, never farther from it.
            assert!(said <= exact && said + 3 >= exact, "{n}: {said} {exact}");
        }
    }

    #[test]
    fn means_of_pairs_are_those_of_a_list_of_all() {
        let values = super::super::sorted(&[0.3, -1.0, 2.5, 0.3, 7.0, -0.25, 0.0, 1.0]);
        let mut all = Vec::new();
        for (place, a) in values.iter().enumerate() {
            all.extend(values[place..].iter().map(|b| (a + b) / 2.0));
        }
        all.sort_by(f64::total_cmp);
        for (rank, mean) in all.iter().enumerate() {
            let found = mean_of_pairs(&values, rank as u64);
            assert!((found - mean).abs() < 1e-12, "{rank}: {found} {mean}");
        }
    }

    #[test]
    fn few_and_equal_and_endless_ratios() {
        assert_eq!(last_look(&[1.0; LEAST - 1]), None);
        let same = last_look(&[0.5; 20]).unwrap();
        assert!((same.low - 0.5).abs() < 1e-9 && (same.high - 0.5).abs() < 1e-9);
        let dead = last_look(&[0.0; 20]).unwrap();
        assert!(dead.high < 1e-300, "{dead:?}");
        let seven = last_look(&[0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3]).unwrap();
        assert!((seven.low - 0.7).abs() < 1e-9 && (seven.high - 1.3).abs() < 1e-9);
    }

    /// Two visits of the same kind of noise: near to normal, with rare stalls, and skewed.
    fn ratio(dice: &mut Xoshiro256PlusPlus, kind: u64) -> f64 {
        let mut uniform = || (dice.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let mut visit = || {
            let sum: f64 = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
            match kind {
                0 => 1.0 + 0.05 * sum,
                1 if uniform() < 0.1 => 0.1,
                1 => 1.0 + 0.05 * sum,
                _ => (0.3 * sum).exp(),
            }
        };
        visit() / visit()
    }

    /// Compares a target with itself. A reader who looks at the sequence after every round, and
    /// once more at the end, is misled in one life of twenty at most. If the last look alone had 5
    /// %, or were taken after every round, that could be more.
    #[test]
    fn the_last_look_and_all_before_it_mislead_one_in_twenty_at_most() {
        const LIVES: u64 = 1000;
        let (mut misled, mut widths) = (0, Vec::new());
        for seed in 0..LIVES {
            let mut dice = Xoshiro256PlusPlus::seed_from_u64(seed);
            let rounds = 7 + dice.next_u64() % 120;
            let ratios: Vec<f64> = (0..rounds).map(|_| ratio(&mut dice, seed % 3)).collect();
            let misses = |at: &Interval| at.low > 1.0 || at.high < 1.0;
            let early = (0..=ratios.len())
                .filter_map(|looks| super::super::sequence(&ratios[..looks]))
                .any(|at| misses(&at));
            let last = last_look(&ratios).unwrap();
            misled += u64::from(early || misses(&last));
            if let Some(at) = super::super::sequence(&ratios).filter(|_| rounds > 60) {
                widths.push((at.high - at.low) / (last.high - last.low));
            }
        }
        assert!(misled <= LIVES / 20, "{misled}");
        let narrower = super::super::median(&widths).unwrap();
        assert!(narrower > 1.4, "{narrower}");
    }
}
