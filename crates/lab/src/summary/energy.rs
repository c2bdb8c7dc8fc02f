//! From the joules of repetitions to the energy of a record: pure functions.
//!
//! The machine's power at rest is taken off each repetition for as long as it lasted. That power
//! is an interval. A figure is computed with its median, and again with both ends. The interval of
//! the figure reaches from the lowest of these intervals to the highest.

use crate::energy::Spent;
use crate::record::{Energy, EnergyCost, EnergyVerdict, Interval, Verdict};
use crate::stats::{self, Looks};
use crate::trial::{Sample, Samples};

/// The cell that the energy of another is compared with.
#[derive(Debug)]
pub struct EnergyReference<'a> {
    /// The contract's word for its system.
    pub system: &'a str,
    /// Its repetitions.
    pub samples: &'a Samples,
    /// The noise floor, a relative difference.
    pub floor: f64,
}

/// The number that a repetition's energy is divided by.
#[derive(Clone, Copy)]
enum Per {
    /// 10⁹ bytes.
    Gigabyte,
    /// An operation.
    Operation,
}

impl Per {
    fn amount(self, sample: &Sample) -> f64 {
        match self {
            Self::Gigabyte => sample.bytes as f64 / 1e9,
            Self::Operation => sample.requests as f64,
        }
    }

    /// Joules for each of it, if the machine takes `idle` watts at rest; `None` if that is not
    /// known.
    fn joules(self, sample: &Sample, idle: f64) -> Option<f64> {
        let amount = self.amount(sample);
        let spent = sample.energy.filter(|_| amount > 0.0)?;
        Some(above(spent, idle) / amount)
    }
}

/// Joules beyond those that the machine takes at rest.
fn above(spent: Spent, idle: f64) -> f64 {
    spent.joules - idle * spent.seconds
}

/// The energy of a cell, read from `source` on a machine that takes `idle` watts at rest; `None`
/// without a repetition whose energy is known.
pub fn energy(
    source: &str,
    idle: Interval,
    samples: &Samples,
    reference: Option<EnergyReference<'_>>,
) -> Option<Energy> {
    let (each, looks) = (samples.each(), samples.looks());
    let samples_j: Vec<Option<f64>> = each
        .iter()
        .map(|sample| sample.energy.map(|spent| above(spent, idle.median)))
        .collect();
    samples_j.iter().flatten().next()?;
    let figure = |per: Per| {
        over_idle(idle, |watts| {
            let joules = each.iter().filter_map(|sample| per.joules(sample, watts));
            looks.interval(&joules.collect::<Vec<f64>>())
        })
    };
    let in_mj = |joules: Interval| Interval {
        median: joules.median * 1e3,
        low: joules.low * 1e3,
        high: joules.high * 1e3,
        n: joules.n,
    };
    Some(Energy {
        source: source.to_owned(),
        j_per_gb: figure(Per::Gigabyte),
        mj_per_operation: figure(Per::Operation).map(in_mj),
        against: reference.and_then(|reference| cost(idle, each, &reference, looks)),
        idle_w: idle,
        samples_j,
    })
}

/// By how much the energy of the same target differs from itself, as a relative difference.
/// `again` is its second measurement.
pub fn energy_floor(idle: Interval, first: &Samples, again: &Samples) -> f64 {
    let looks = again.looks();
    stats::noise_floor(ratio(idle, again.each(), first.each(), looks))
}

fn cost(
    idle: Interval,
    each: &[Sample],
    reference: &EnergyReference<'_>,
    looks: Looks,
) -> Option<EnergyCost> {
    let others = reference.samples.each();
    let per = common(each, others);
    let more = over_idle(idle, |watts| {
        let pairs = pairs(each, others, per, watts);
        let more: Vec<f64> = pairs.iter().map(|(this, other)| this - other).collect();
        looks.ratio(&more)
    })?;
    let ratio = ratio(idle, each, others, looks);
    Some(EnergyCost {
        system: reference.system.to_owned(),
        ratio,
        more_j_per_gb: Some(more).filter(|_| matches!(per, Per::Gigabyte)),
        verdict: match ratio {
            Some(ratio) => verdict(ratio, reference.floor),
            None => verdict_of_difference(more),
        },
    })
}

/// Energy for the same work ÷ that of `others`; `None` if one of `others` may have taken nothing
/// above the power at rest.
fn ratio(idle: Interval, each: &[Sample], others: &[Sample], looks: Looks) -> Option<Interval> {
    let per = common(each, others);
    over_idle(idle, |watts| {
        let pairs = pairs(each, others, per, watts);
        let (this, other): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        match other.iter().all(|joules| *joules > 0.0) {
            true => looks.ratio(&stats::ratios(&this, &other)),
            false => None,
        }
    })
}

/// The number that both are divided by.
fn common(each: &[Sample], others: &[Sample]) -> Per {
    let moves = |samples: &[Sample]| samples.iter().any(|sample| sample.bytes > 0);
    match moves(each) && moves(others) {
        true => Per::Gigabyte,
        false => Per::Operation,
    }
}

/// Joules of the repetitions that both sides know.
fn pairs(each: &[Sample], others: &[Sample], per: Per, idle: f64) -> Vec<(f64, f64)> {
    let both = each.iter().zip(others);
    both.filter_map(|(this, other)| Some((per.joules(this, idle)?, per.joules(other, idle)?)))
        .collect()
}

/// A figure with the median of the power at rest; its interval holds for all of that interval.
fn over_idle(idle: Interval, figure: impl Fn(f64) -> Option<Interval>) -> Option<Interval> {
    let (expected, low, high) = (figure(idle.median)?, figure(idle.low)?, figure(idle.high)?);
    Some(Interval {
        low: expected.low.min(low.low).min(high.low),
        high: expected.high.max(low.high).max(high.high),
        ..expected
    })
}

/// The verdict that an interval of paired energies supports, at a noise floor.
fn verdict(ratio: Interval, floor: f64) -> EnergyVerdict {
    // What is called a difference does not depend on what was divided.
    match stats::verdict(ratio, floor) {
        Verdict::Slower => EnergyVerdict::Less,
        Verdict::Faster => EnergyVerdict::More,
        Verdict::NotDistinguishable => EnergyVerdict::NotDistinguishable,
        Verdict::TooFew => EnergyVerdict::TooFew,
    }
}

/// The verdict if there is no ratio, so no noise floor either.
fn verdict_of_difference(more: Interval) -> EnergyVerdict {
    if more.n < Verdict::FEWEST {
        EnergyVerdict::TooFew
    } else if more.low > 0.0 {
        EnergyVerdict::More
    } else if more.high < 0.0 {
        EnergyVerdict::Less
    } else {
        EnergyVerdict::NotDistinguishable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repetition of one second on a machine that takes 5 W at rest.
    fn sample(joules: Option<f64>) -> Sample {
        Sample {
            wall: 1.0,
            bytes: 500_000_000,
            requests: 1000,
            energy: joules.map(|above| Spent {
                joules: above + 5.0,
                seconds: 1.0,
            }),
            ..Sample::default()
        }
    }

    fn samples(joules: [Option<f64>; 8]) -> Samples {
        joules.map(sample).into_iter().collect()
    }

    fn idle(low: f64, high: f64) -> Interval {
        Interval {
            median: 5.0,
            low,
            high,
            n: 12,
        }
    }

    fn reference(samples: &Samples) -> Option<EnergyReference<'_>> {
        Some(EnergyReference {
            system: "none",
            samples,
            floor: 0.005,
        })
    }

    #[test]
    fn the_power_at_rest_is_taken_off() {
        let plain = samples([Some(10.0); 8]);
        let cell = samples([Some(12.0); 8]);
        let energy = energy("s", idle(5.0, 5.0), &cell, reference(&plain)).unwrap();
        let near = |interval: Interval, value: f64| {
            assert!((interval.median - value).abs() < 1e-9, "{interval:?}");
            assert_eq!(interval.n, 8);
        };
        near(energy.j_per_gb.unwrap(), 24.0);
        near(energy.mj_per_operation.unwrap(), 12.0);
        let cost = energy.against.unwrap();
        near(cost.ratio.unwrap(), 1.2);
        near(cost.more_j_per_gb.unwrap(), 4.0);
        assert_eq!(cost.verdict, EnergyVerdict::More);
        assert!((energy.samples_j[0].unwrap() - 12.0).abs() < 1e-9);
    }

    /// Half a watt more or less at rest is half a joule of each second.
    #[test]
    fn an_uncertain_rest_widens_every_interval() {
        let plain = samples([Some(10.0); 8]);
        let cell = samples([Some(12.0); 8]);
        let energy = energy("s", idle(4.5, 5.5), &cell, reference(&plain)).unwrap();
        let joules = energy.j_per_gb.unwrap();
        assert!((joules.low - 23.0).abs() < 1e-9 && (joules.high - 25.0).abs() < 1e-9);
        let ratio = energy.against.unwrap().ratio.unwrap();
        assert!((ratio.low - 12.5 / 10.5).abs() < 1e-9);
        assert!((ratio.high - 11.5 / 9.5).abs() < 1e-9);
    }

    #[test]
    fn unknown_repetitions_leave_their_pairs_out() {
        let all = [Some(10.0); 8];
        let mut some = [Some(12.0); 8];
        (some[1], some[6]) = (None, None);
        let (plain, cell) = (samples(all), samples(some));
        let energy = energy("s", idle(5.0, 5.0), &cell, reference(&plain)).unwrap();
        assert_eq!(energy.j_per_gb.unwrap().n, 6);
        assert_eq!(energy.against.unwrap().ratio.unwrap().n, 6);
        assert_eq!(energy.samples_j[1], None);
        let nothing = samples([None; 8]);
        assert!(super::energy("s", idle(5.0, 5.0), &nothing, None).is_none());
    }

    /// A plain system that may have taken nothing has no ratio, but a difference of joules.
    #[test]
    fn nothing_is_divided_by_what_may_be_nothing() {
        let plain = samples([Some(0.3); 8]);
        let cell = samples([Some(12.0); 8]);
        let energy = energy("s", idle(4.5, 5.5), &cell, reference(&plain)).unwrap();
        let cost = energy.against.unwrap();
        assert_eq!((cost.ratio, cost.verdict), (None, EnergyVerdict::More));
        assert!((cost.more_j_per_gb.unwrap().median - 23.4).abs() < 1e-9);
    }

    #[test]
    fn operations_without_bytes_have_no_joules_a_gigabyte() {
        let mkfs = |joules: f64| Sample {
            bytes: 0,
            requests: 1,
            ..sample(Some(joules))
        };
        let plain: Samples = (0..8).map(|_| mkfs(10.0)).collect();
        let cell: Samples = (0..8).map(|_| mkfs(9.0)).collect();
        let energy = energy("s", idle(5.0, 5.0), &cell, reference(&plain)).unwrap();
        assert_eq!(energy.j_per_gb, None);
        assert!((energy.mj_per_operation.unwrap().median - 9000.0).abs() < 1e-6);
        let cost = energy.against.unwrap();
        assert_eq!(
            (cost.verdict, cost.more_j_per_gb),
            (EnergyVerdict::Less, None)
        );
    }

    #[test]
    fn the_floor_is_that_of_the_same_target_twice() {
        let first = samples([Some(10.0); 8]);
        let again = samples([Some(11.0); 8]);
        let floor = energy_floor(idle(5.0, 5.0), &first, &again);
        assert!((floor - 0.1).abs() < 1e-9, "{floor}");
        assert!(energy_floor(idle(5.0, 5.0), &samples([None; 8]), &again) < 0.01);
    }
}
