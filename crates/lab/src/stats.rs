//! Statistics: pure functions of numbers. No clock, no files, no printing.
//!
//! An interval of a median lies between two order statistics. Chance leaves the median outside it
//! in 5 % of the cases at most, for any distribution of the values. If the number of values depends
//! on the values, the interval is that of a [`sequence`], or of the last look at it. For values
//! that were not measured in alternation, it is that of [`two_runs`]. docs/method/pairs.md gives
//! the reasons for pairs and medians.

mod last_look;
mod sequence;
mod two_runs;

pub use self::sequence::{LEAST, sequence};
pub use self::two_runs::two_runs;

use self::last_look::last_look;

use crate::record::{Interval, Noise, NoiseVerdict, Verdict};

/// As often as this an interval of one look misses the median, at most; that of fewer than six
/// values does oftener.
const MISSES: f64 = 0.05;

/// Rounds that SNIA's steady-state rule looks at.
pub const STEADY_ROUNDS: usize = 5;

/// A ratio this close to 1 is never called a difference: no clock, layout or
/// neighbour on a shared machine is steadier (0.5 %).
const RESOLUTION: f64 = 0.005;

/// How often values are looked at before the last of them is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looks {
    /// Once, because their number was fixed beforehand.
    Once,
    /// Always, because they end when they say enough.
    Always,
    /// Always until now, and this is the last look, because the time given to them is spent.
    Last,
}

impl Looks {
    /// Median of `values` with the 95 % interval that holds for this frequency of looks; `None`
    /// when there are no values.
    pub fn interval(self, values: &[f64]) -> Option<Interval> {
        match self {
            Self::Once | Self::Last => interval(values),
            Self::Always => sequence(values).or_else(|| range(values)),
        }
    }

    /// The middle of paired `ratios` with the same, by which they are judged.
    pub fn ratio(self, ratios: &[f64]) -> Option<Interval> {
        match self {
            Self::Once | Self::Always => self.interval(ratios),
            Self::Last => last_look(ratios).or_else(|| range(ratios)),
        }
    }
}

/// Median of `values`, and the least and the greatest of them, which is all that a few say;
/// `None` when empty.
fn range(values: &[f64]) -> Option<Interval> {
    without(values, 0)
}

/// Median of `values`, and what they lie between without `outside` of them on each side; `None`
/// when empty.
fn without(values: &[f64], outside: usize) -> Option<Interval> {
    let sorted = sorted(values);
    Some(Interval {
        median: median_of_sorted(&sorted)?,
        low: sorted[outside],
        high: sorted[sorted.len() - 1 - outside],
        n: values.len() as u32,
    })
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Median of `values`; `None` when empty.
pub fn median(values: &[f64]) -> Option<f64> {
    median_of_sorted(&sorted(values))
}

fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    let n = sorted.len();
    match n {
        0 => None,
        _ if n % 2 == 1 => Some(sorted[n / 2]),
        _ => Some((sorted[n / 2 - 1] + sorted[n / 2]) / 2.0),
    }
}

/// Median of `values` with its 95 % interval; `None` when empty. Fewer than six values have
/// none: the least and the greatest stand for it.
pub fn interval(values: &[f64]) -> Option<Interval> {
    without(values, outside(values.len()))
}

/// How many of `n` values lie outside of the interval on each side: as many of them are on one
/// side of the median by chance with a probability of 2.5 % at most.
fn outside(n: usize) -> usize {
    // The logarithm of C(n, k) ÷ 2ⁿ, the chance that k are below the median, from k = 0 upwards.
    let mut chance = -(n as f64) * std::f64::consts::LN_2;
    let (mut all, mut below) = (chance.exp(), 0);
    while all <= MISSES / 2.0 {
        below += 1;
        chance += ((n + 1 - below) as f64 / below as f64).ln();
        all += chance.exp();
    }
    below.saturating_sub(1)
}

/// `subject[i] / reference[i]` over the pairs that both have and whose reference is positive.
pub fn ratios(subject: &[f64], reference: &[f64]) -> Vec<f64> {
    subject
        .iter()
        .zip(reference)
        .filter(|(_, reference)| **reference > 0.0)
        .map(|(subject, reference)| subject / reference)
        .collect()
}

/// Interval of the [`ratios`] of pairs whose number was said before; `None` without one.
pub fn paired_ratio(subject: &[f64], reference: &[f64]) -> Option<Interval> {
    interval(&ratios(subject, reference))
}

/// Interval of the ratios of a subject's rates to a reference's, which are measured in `pairs`
/// pairs: A B, B A, so that drift hits both alike. `rate` gets whether it is the subject's turn,
/// and the number of the pair. `None` without a pair.
///
/// # Errors
/// The error of `rate`.
pub fn in_turns<E>(
    pairs: u64,
    mut rate: impl FnMut(bool, u64) -> Result<f64, E>,
) -> Result<Option<Interval>, E> {
    let mut rates = [Vec::new(), Vec::new()];
    for pair in 0..pairs {
        let first = pair % 2 == 0;
        for is_subject in [first, !first] {
            rates[usize::from(is_subject)].push(rate(is_subject, pair)?);
        }
    }
    let [reference, subject] = rates;
    Ok(paired_ratio(&subject, &reference))
}

/// By how much two measurements of the same thing differed: the end of the
/// A/A interval that lies farther from 1 as a ratio, of the larger rate to the
/// smaller, less 1; never below half a per cent.
pub fn noise_floor(aa_ratio: Option<Interval>) -> f64 {
    aa_ratio
        .map_or(0.0, |aa| aa.low.recip().max(aa.high) - 1.0)
        .max(RESOLUTION)
}

/// The smallest loss of the rate that an interval as wide as this would have shown, at a [noise
/// floor](noise_floor), as a share; `None` of too few pairs, which show nothing.
pub fn smallest(ratio: Interval, floor: f64) -> Option<f64> {
    let arm = ratio.high - ratio.median;
    (ratio.n >= Verdict::FEWEST).then(|| arm.max(floor / (1.0 + floor)))
}

/// The verdict that an interval of paired rate ratios supports, at a [noise floor](noise_floor).
pub fn verdict(ratio: Interval, floor: f64) -> Verdict {
    if ratio.n < Verdict::FEWEST {
        return Verdict::TooFew;
    }
    // A rate can be many times another, but not slower by more than all of it.
    let apart = ratio.median.max(ratio.median.recip()) - 1.0;
    if apart <= floor {
        return Verdict::NotDistinguishable;
    }
    if ratio.high < 1.0 {
        Verdict::Slower
    } else if ratio.low > 1.0 {
        Verdict::Faster
    } else {
        Verdict::NotDistinguishable
    }
}

/// The noise of a whole run, from the ratios of all its A/A pairs.
pub fn noise(aa_ratios: &[f64], looks: Looks) -> Noise {
    // Above this spread of single pairs a run of ten repetitions cannot
    // resolve the few per cent that people ask about. Of slices there are as many as it takes:
    // there it is the interval that must be narrower.
    const WIDE: f64 = 0.05;
    let Some(aa) = looks.ratio(aa_ratios) else {
        return Noise::default();
    };
    let spread = match looks {
        Looks::Once => {
            let deviations: Vec<f64> = aa_ratios.iter().map(|ratio| (ratio - 1.0).abs()).collect();
            median(&deviations).unwrap_or(0.0)
        }
        Looks::Always | Looks::Last => (1.0 - aa.low).max(aa.high - 1.0),
    };
    Noise {
        aa_ratio: Some(aa),
        verdict: match verdict(aa, RESOLUTION) {
            Verdict::TooFew => NoiseVerdict::Unknown,
            Verdict::NotDistinguishable if spread <= WIDE => NoiseVerdict::Quiet,
            _ => NoiseVerdict::Noisy,
        },
    }
}

/// SNIA PTS steady state over the last [`STEADY_ROUNDS`] rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// (max − min) ÷ mean; at most 0.20 is steady.
    pub range: f64,
    /// |slope of the best-fit line| × 4 ÷ mean; at most 0.10 is steady.
    pub drift: f64,
}

impl Steady {
    /// Judges the last five of `rounds`; `None` with fewer than five or no throughput.
    pub fn of(rounds: &[f64]) -> Option<Self> {
        let window = rounds.last_chunk::<STEADY_ROUNDS>()?;
        let mean = window.iter().sum::<f64>() / STEADY_ROUNDS as f64;
        if mean <= 0.0 {
            return None;
        }
        let high = window.iter().copied().fold(f64::MIN, f64::max);
        let low = window.iter().copied().fold(f64::MAX, f64::min);
        // Least squares over x = −2 … 2: the sum of x² is 10.
        let slope = window
            .iter()
            .zip([-2.0, -1.0, 0.0, 1.0, 2.0])
            .map(|(y, x)| x * y)
            .sum::<f64>()
            / 10.0;
        Some(Self {
            range: (high - low) / mean,
            drift: slope.abs() * 4.0 / mean,
        })
    }

    /// Whether both conditions hold.
    pub fn reached(self) -> bool {
        self.range <= 0.20 && self.drift <= 0.10
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// Ten pairs of the same target: drift, noise of `sigma`, rare outliers.
    fn simulated_pairs(seed: u64, sigma: f64, effect: f64) -> (Vec<f64>, Vec<f64>) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut uniform = move || (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let mut normal = {
            let mut pick = move || {
                let (u, v) = (uniform().max(1e-300), uniform());
                (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
            };
            move || {
                let outlier = pick().abs() > 2.2;
                pick() * if outlier { 6.0 } else { 1.0 }
            }
        };
        (0..10)
            .map(|round| {
                let drift = 1.0 + 0.02 * (f64::from(round) / 9.0);
                let plain = 1000.0 * drift * (1.0 + sigma * normal());
                let subject = 1000.0 * drift * (1.0 - effect) * (1.0 + sigma * normal());
                (subject, plain)
            })
            .unzip()
    }

    /// A median that is moved by a little more than it says is called slower, by a little less
    /// is not.
    #[test]
    fn the_smallest_difference_is_where_the_verdict_turns() {
        for (arm, floor) in [(0.02, 0.005), (0.01, 0.1), (0.3, 0.005)] {
            let around = |median: f64| Interval {
                median,
                low: median - arm,
                high: median + arm,
                n: 10,
            };
            let smallest = smallest(around(1.0), floor).unwrap();
            let said = |loss: f64| verdict(around(1.0 - loss), floor);
            assert_eq!(said(smallest * 1.01), Verdict::Slower, "{arm} {floor}");
            let less = said(smallest * 0.99);
            assert_eq!(less, Verdict::NotDistinguishable, "{arm} {floor}");
        }
        let two = Interval {
            median: 0.5,
            low: 0.5,
            high: 0.5,
            n: 2,
        };
        assert_eq!(smallest(two, 0.005), None);
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
    }

    #[test]
    fn an_interval_encloses_its_median_and_repeats() {
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        let first = interval(&values).unwrap();
        assert!(first.low <= first.median && first.median <= first.high);
        assert!(first.low >= 1.0 && first.high <= 10.0 && first.low < first.high);
        assert_eq!(Some(first), interval(&values));
        assert_eq!(interval(&[]), None);
        let one = interval(&[7.0]).unwrap();
        assert_eq!((one.low, one.high, one.n), (7.0, 7.0, 1));
    }

    /// Values of three distributions whose median is 1: near to normal, with rare stalls, skewed.
    fn drawn(seed: u64, n: usize) -> Vec<f64> {
        let mut dice = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut uniform = || (dice.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let mut value = || {
            let sum: f64 = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
            match seed % 3 {
                0 => 1.0 + 0.05 * sum,
                1 if uniform() < 0.1 => 1.0 - sum.signum() * 0.9,
                1 => 1.0 + 0.05 * sum,
                _ => (0.3 * sum).exp(),
            }
        };
        (0..n).map(|_| value()).collect()
    }

    /// In 19 of 20 cases and more from six values on; of five it is less, and one value fewer on
    /// each side would be less as well.
    #[test]
    fn intervals_cover_the_true_median_as_often_as_they_claim() {
        const LIVES: u64 = 2000;
        let missed = |n: usize, narrower: usize| {
            let misses = |seed: &u64| {
                let values = drawn(*seed, n);
                let at = without(&values, outside(n) + narrower).unwrap();
                at.low > 1.0 || at.high < 1.0
            };
            (0..LIVES).filter(misses).count() as f64 / LIVES as f64
        };
        // Two standard deviations of what is counted.
        let chance = 2.0 * (MISSES * (1.0 - MISSES) / LIVES as f64).sqrt();
        for n in [6, 7, 9, 10, 17, 30, 100] {
            assert!(missed(n, 0) <= MISSES + chance, "{n}: {}", missed(n, 0));
        }
        for n in [9, 10, 17, 30, 100] {
            assert!(missed(n, 1) > MISSES, "{n}: {}", missed(n, 1));
        }
        assert!(missed(5, 0) > MISSES);
    }

    #[test]
    fn what_lies_outside_is_counted_by_the_binomial_distribution() {
        let expected = [
            (1, 0),
            (6, 0),
            (8, 0),
            (9, 1),
            (11, 1),
            (12, 2),
            (20, 5),
            (100, 39),
            (5000, 2430),
        ];
        for (n, number) in expected {
            assert_eq!(outside(n), number, "{n}");
        }
    }

    #[test]
    fn the_same_thing_twice_is_not_distinguishable() {
        // As a run does: one A/A comparison sets the floor, another is judged.
        let quiet = (0..100)
            .filter(|&seed| {
                let sigma = [0.001, 0.01, 0.05][seed as usize % 3];
                let (again, plain) = simulated_pairs(seed, sigma, 0.0);
                let (subject, _) = simulated_pairs(seed + 10_000, sigma, 0.0);
                let floor = noise_floor(paired_ratio(&again, &plain));
                verdict(paired_ratio(&subject, &plain).unwrap(), floor)
                    == Verdict::NotDistinguishable
            })
            .count();
        assert!(quiet >= 95, "{quiet} of 100");
    }

    #[test]
    fn three_per_cent_is_found_where_the_noise_allows_it() {
        let found = (0..100)
            .filter(|&seed| {
                let (again, plain) = simulated_pairs(seed, 0.005, 0.0);
                let (subject, _) = simulated_pairs(seed + 10_000, 0.005, 0.03);
                let floor = noise_floor(paired_ratio(&again, &plain));
                verdict(paired_ratio(&subject, &plain).unwrap(), floor) == Verdict::Slower
            })
            .count();
        assert!(found >= 95, "{found} of 100");
    }

    #[test]
    fn a_difference_within_the_noise_floor_is_not_called_one() {
        let ratio = Interval {
            median: 0.98,
            low: 0.975,
            high: 0.985,
            n: 10,
        };
        assert_eq!(verdict(ratio, 0.03), Verdict::NotDistinguishable);
        assert_eq!(verdict(ratio, 0.01), Verdict::Slower);
        let inverse = Interval {
            median: 1.02,
            low: 1.015,
            high: 1.025,
            n: 10,
        };
        assert_eq!(verdict(inverse, 0.01), Verdict::Faster);
        assert_eq!(verdict(Interval { n: 2, ..ratio }, 0.0), Verdict::TooFew);
    }

    #[test]
    fn much_noise_hides_no_more_than_there_is() {
        let between = |low, median, high| Interval {
            median,
            low,
            high,
            n: 10,
        };
        // The same thing was up to three times as fast as itself.
        let floor = noise_floor(Some(between(0.8, 1.2, 3.0)));
        assert!((floor - 2.0).abs() < 1e-9);
        assert_eq!(noise_floor(Some(between(0.25, 1.0, 2.0))), 3.0);
        for (median, expected) in [
            (0.001, Verdict::Slower),
            (0.32, Verdict::Slower),
            (0.34, Verdict::NotDistinguishable),
            (2.9, Verdict::NotDistinguishable),
            (3.1, Verdict::Faster),
        ] {
            let ratio = between(median * 0.99, median, median * 1.01);
            assert_eq!(verdict(ratio, floor), expected, "{median}");
        }
    }

    #[test]
    fn noise_says_when_it_does_not_know() {
        assert_eq!(noise(&[], Looks::Once).verdict, NoiseVerdict::Unknown);
        assert_eq!(noise(&[1.0; 2], Looks::Once).verdict, NoiseVerdict::Unknown);
        assert_eq!(noise(&[1.0; 8], Looks::Once).verdict, NoiseVerdict::Quiet);
        assert_eq!(noise(&[1.2; 8], Looks::Once).verdict, NoiseVerdict::Noisy);
        let wild = [0.6, 1.5, 0.7, 1.4, 0.8, 1.3, 0.9, 1.1];
        assert_eq!(noise(&wild, Looks::Once).verdict, NoiseVerdict::Noisy);
    }

    #[test]
    fn steady_state_follows_snia() {
        assert_eq!(Steady::of(&[1.0; 4]), None);
        assert_eq!(Steady::of(&[0.0; 5]), None);
        assert!(Steady::of(&[100.0; 5]).unwrap().reached());
        // The rule looks at the last five rounds only.
        assert!(
            Steady::of(&[900.0, 100.0, 101.0, 99.0, 100.0, 100.0])
                .unwrap()
                .reached()
        );
        let spread = Steady::of(&[100.0, 125.0, 100.0, 125.0, 100.0]).unwrap();
        assert!(spread.range > 0.20 && spread.drift <= 0.10 && !spread.reached());
        let sliding = Steady::of(&[108.0, 104.0, 100.0, 96.0, 92.0]).unwrap();
        assert!(sliding.range <= 0.20 && sliding.drift > 0.10 && !sliding.reached());
    }
}
