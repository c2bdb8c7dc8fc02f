//! The interval of a median that holds whenever one looks at it.
//!
//! Of `n` independent values, `k` are above the true median; `k` is a binomial variable with
//! probability 1/2. The likelihood of a uniformly unknown probability ÷ that of 1/2 is
//!
//! ```text
//! M(n, k) = 2ⁿ ÷ ((n + 1) · C(n, k))
//! ```
//!
//! and is a martingale of mean 1: the chance that it ever reaches 50, for any of all `n`, is one
//! in 50 (Ville's inequality; H. Robbins, Annals of Mathematical Statistics 41, 1970; S. R.
//! Howard and A. Ramdas, Bernoulli 28, 2022). The interval has the medians for which it is
//! smaller. Nothing is assumed about how the values are distributed.
//!
//! These are 2 % of misses. The other 3 % are kept for [the last look](super::last_look).

use crate::record::Interval;

/// As often as this, in the long run, an interval misses the median at any of all moments.
const MISSES: f64 = 0.02;

/// Fewest values with an interval: 8 of 8 on one side are not enough evidence.
pub const LEAST: usize = 9;

/// Median of `values` with its interval, which is valid at every length of a growing list;
/// `None` of fewer than [`LEAST`].
pub fn sequence(values: &[f64]) -> Option<Interval> {
    let n = values.len();
    super::without(values, n - most_on_a_side(n)?)
}

/// The smallest number of `n` values on one side of the median that is too many to believe.
fn most_on_a_side(n: usize) -> Option<usize> {
    // ln C(n, k), from k = n downwards.
    let mut choose = 0.0_f64;
    let martingale = |choose: f64| n as f64 * 2.0_f64.ln() - ((n + 1) as f64).ln() - choose;
    let threshold = -MISSES.ln();
    let mut most = None;
    for k in (n / 2 + 1..=n).rev() {
        if martingale(choose) < threshold {
            break;
        }
        most = Some(k);
        // C(n, k − 1) = C(n, k) · k ÷ (n − k + 1)
        choose += (k as f64 / (n - k + 1) as f64).ln();
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// Draws values of median 1 from one of three distributions: near to normal, with rare
    /// stalls, and skewed.
    fn draw(dice: &mut Xoshiro256PlusPlus, kind: u64) -> f64 {
        let mut uniform = || (dice.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let sum: f64 = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        match kind {
            0 => 1.0 + 0.05 * sum,
            1 if uniform() < 0.1 => 1.0 - sum.signum() * 0.9,
            1 => 1.0 + 0.05 * sum,
            _ => (0.3 * sum).exp(),
        }
    }

    #[test]
    fn the_numbers_are_those_of_the_formula() {
        let expected = [
            (8, None),
            (9, Some(9)),
            (12, Some(12)),
            (32, Some(26)),
            (100, Some(68)),
            (400, Some(237)),
        ];
        for (n, most) in expected {
            assert_eq!(most_on_a_side(n), most, "{n}");
        }
        assert_eq!(sequence(&[1.0; LEAST - 1]), None);
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        let interval = sequence(&values).unwrap();
        assert_eq!((interval.low, interval.high), (33.0, 68.0));
        assert_eq!((interval.median, interval.n), (50.5, 100));
    }

    /// A reader who looks after every value is misled in one life of fifty at most.
    #[test]
    fn it_holds_at_every_look() {
        const LIVES: u64 = 300;
        let missed = (0..LIVES)
            .filter(|&seed| {
                let mut dice = Xoshiro256PlusPlus::seed_from_u64(seed);
                let mut values = Vec::new();
                (0..300).any(|_| {
                    values.push(draw(&mut dice, seed % 3));
                    sequence(&values).is_some_and(|at| at.low > 1.0 || at.high < 1.0)
                })
            })
            .count();
        assert!(
            missed as f64 <= MISSES * LIVES as f64,
            "{missed} of {LIVES}"
        );
    }

    /// The order statistics that enclose the median of a number of values that was fixed before.
    fn for_one_look(values: &[f64]) -> (f64, f64) {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = values.len() as f64;
        let most = (n / 2.0 + 1.96 * n.sqrt() / 2.0).ceil() as usize;
        (sorted[values.len() - most], sorted[most - 1])
    }

    /// An interval for one look does not hold at every look: the test above can fail.
    #[test]
    fn an_interval_for_one_look_does_not_hold_at_every_look() {
        const LIVES: u64 = 300;
        let missed = (0..LIVES)
            .filter(|&seed| {
                let mut dice = Xoshiro256PlusPlus::seed_from_u64(seed);
                let mut values = Vec::new();
                (0..300).any(|n| {
                    values.push(draw(&mut dice, seed % 3));
                    n >= LEAST && {
                        let (low, high) = for_one_look(&values);
                        low > 1.0 || high < 1.0
                    }
                })
            })
            .count();
        assert!(
            missed as f64 > 4.0 * MISSES * LIVES as f64,
            "{missed} of {LIVES}"
        );
    }
}
