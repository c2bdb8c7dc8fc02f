//! Scales, with round values that have names.

use super::{Hang, WIDTH, palette, text, width};
use maud::{Markup, html};

/// Least distance between the names of two ticks.
const APART: i32 = 8;

/// A scale.
pub(crate) struct Axis {
    low: f64,
    high: f64,
    logarithmic: bool,
    /// Values that have names.
    pub(super) ticks: Vec<(f64, String)>,
}

impl Axis {
    /// A linear axis with about `about` values.
    pub(crate) fn linear(low: f64, high: f64, about: usize, name: impl Fn(f64) -> String) -> Self {
        let ticks = ticks(low, high, about).into_iter();
        Self {
            low,
            high,
            logarithmic: false,
            ticks: ticks.map(|at| (at, name(at))).collect(),
        }
    }

    /// In powers of ten.
    pub(crate) fn logarithmic(low: f64, high: f64, name: impl Fn(f64) -> String) -> Self {
        let ticks = decades(low, high).into_iter();
        Self {
            low,
            high,
            logarithmic: true,
            ticks: ticks.map(|at| (at, name(at))).collect(),
        }
    }

    /// The same with names at other values, as far as it goes.
    pub(crate) fn named(self, ticks: impl IntoIterator<Item = (f64, String)>) -> Self {
        let within = |(at, _): &(f64, String)| (self.low..=self.high).contains(at);
        Self {
            ticks: ticks.into_iter().filter(within).collect(),
            ..self
        }
    }

    /// How far from its beginning to its end a value lies.
    pub(super) fn share(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        match self.logarithmic {
            true => (value / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        }
    }

    /// The names of values from left to right, at `y` and at the `x` of each. Names that would
    /// touch another are left out.
    pub(super) fn names(&self, x: impl Fn(f64) -> i32, y: i32) -> Markup {
        // From the right, so that the last has its name.
        let mut next = WIDTH;
        let names = self.ticks.iter().rev().filter_map(|(value, name)| {
            let half = width(name) / 2;
            let middle = x(*value).min(WIDTH - half).max(half);
            (middle + half <= next).then(|| {
                next = middle - half - APART;
                text(name, (middle, y), Hang::Middle, palette::MUTED)
            })
        });
        html! { @for name in names { (name) } }
    }

    pub(super) fn low(&self) -> f64 {
        self.low
    }
}

/// Up to `about` round values between `low` and `high`, both of which are included if they are
/// round.
pub(crate) fn ticks(low: f64, high: f64, about: usize) -> Vec<f64> {
    let span = high - low;
    if !span.is_finite() || span <= 0.0 {
        return vec![low];
    }
    let rough = span / about.max(1) as f64;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|step| *step >= rough)
        .unwrap_or(10.0 * power);
    let first = (low / step).ceil() as i64;
    let last = (high / step).floor() as i64;
    (first..=last).map(|at| at as f64 * step).collect()
}

/// Round values for a logarithmic axis, few enough to be read.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let factors: &[f64] = match (high / low).log10() {
        span if span < 0.7 => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
        span if span < 2.2 => &[1.0, 2.0, 5.0],
        _ => &[1.0],
    };
    let first = low.log10().floor() as i32;
    let last = high.log10().ceil() as i32;
    (first..=last)
        .flat_map(|power| {
            factors
                .iter()
                .map(move |factor| factor * 10_f64.powi(power))
        })
        .filter(|value| (low..=high).contains(value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        let near = |got: Vec<f64>, want: &[f64]| {
            assert_eq!(got.len(), want.len(), "{got:?}");
            for (a, b) in got.iter().zip(want) {
                assert!((a - b).abs() < 1e-9, "{got:?}");
            }
        };
        near(ticks(0.0, 1.0, 5), &[0.0, 0.2, 0.4, 0.6, 0.8, 1.0]);
        near(ticks(0.83, 1.06, 3), &[0.9, 1.0]);
        near(ticks(1.0, 1.0, 5), &[1.0]);
        near(
            ticks(f64::NAN, 1.0, 5).iter().map(|_| 0.0).collect(),
            &[0.0],
        );
    }
}
