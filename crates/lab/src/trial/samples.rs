//! [`Samples`]: the repetitions of a cell, and the latencies of all of them together.

use super::{Rates, Sample, histogram};
use crate::stats::Looks;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// The measurements of one cell so far.
///
/// A histogram takes a quarter of a mebibyte, and a cell may have hundreds of repetitions. The
/// latencies of each repetition are therefore added to those of the cell, and the repetition's own
/// histogram is emptied. The cell keeps only the values that occurred.
#[derive(Clone, Debug)]
pub struct Samples {
    each: Vec<Sample>,
    rates: Vec<Rates>,
    /// [`Looks::Once`] unless they are slices, whose number depends on their results.
    looks: Looks,
    /// How often a latency, in nanoseconds, occurred.
    latencies: BTreeMap<u64, u64>,
}

impl Samples {
    /// None yet.
    pub fn new(looks: Looks) -> Self {
        Self {
            each: Vec::new(),
            rates: Vec::new(),
            looks,
            latencies: BTreeMap::new(),
        }
    }

    /// How often they are looked at.
    pub fn looks(&self) -> Looks {
        self.looks
    }

    /// From now on they are judged by the last look at them.
    pub fn end(&mut self) {
        if self.looks == Looks::Always {
            self.looks = Looks::Last;
        }
    }

    /// The next repetition. Of a slice the time counts in which the queue was full: it is so
    /// short that filling and emptying would tell.
    pub fn push(&mut self, mut sample: Sample) {
        self.rates.push(match self.looks {
            Looks::Once => sample.rates(),
            Looks::Always | Looks::Last => sample.full.unwrap_or_else(|| sample.rates()),
        });
        for value in sample.latency.iter_recorded() {
            let latency = value.value_iterated_to();
            *self.latencies.entry(latency).or_default() += value.count_at_value();
        }
        sample.latency = Histogram::new(1).expect("a digit is possible");
        self.each.push(sample);
    }

    /// The repetitions of `later` after these.
    pub fn append(&mut self, later: Self) {
        self.each.extend(later.each);
        self.rates.extend(later.rates);
        for (latency, count) in later.latencies {
            *self.latencies.entry(latency).or_default() += count;
        }
    }

    /// These repetitions with the energies of the same ones in `earlier`.
    pub fn with_energy_of(mut self, earlier: &Self) -> Self {
        for (sample, same) in self.each.iter_mut().zip(&earlier.each) {
            sample.energy = same.energy;
        }
        self
    }

    /// The repetitions, in order; their histograms are empty.
    pub fn each(&self) -> &[Sample] {
        &self.each
    }

    /// The latency of every request of all repetitions, nanoseconds.
    pub fn latency(&self) -> Histogram<u64> {
        let mut all = histogram();
        for (&latency, &count) in &self.latencies {
            all.saturating_record_n(latency, count);
        }
        all
    }

    /// The throughput of every repetition, 10⁶ bytes a second.
    pub fn mb_s(&self) -> Vec<f64> {
        self.rates.iter().map(|rates| rates.mb_s).collect()
    }

    /// The rates by which cells are compared: throughput, or requests per second if no bytes move.
    pub fn rates(&self) -> Vec<f64> {
        match self.each.iter().any(|sample| sample.bytes > 0) {
            true => self.mb_s(),
            false => self.iops(),
        }
    }

    /// The numbers of requests a second of every repetition.
    pub fn iops(&self) -> Vec<f64> {
        self.rates.iter().map(|rates| rates.iops).collect()
    }
}

impl FromIterator<Sample> for Samples {
    fn from_iter<T: IntoIterator<Item = Sample>>(samples: T) -> Self {
        let mut all = Self::new(Looks::Once);
        samples.into_iter().for_each(|sample| all.push(sample));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_all_repetitions_are_those_of_one_histogram() {
        let mut whole = histogram();
        let samples: Samples = (1..=5_u64)
            .map(|nth| {
                let mut sample = Sample::timed_elsewhere(4096, nth as f64 * 1e-6);
                for latency in (0..1000).map(|at| 1000 * nth + 7 * at) {
                    sample.latency.record(latency).unwrap();
                }
                whole += &sample.latency;
                sample
            })
            .collect();
        let joined = samples.latency();
        assert_eq!(joined.len(), whole.len());
        for percentile in [0.0, 1.0, 50.0, 90.0, 99.0, 99.9, 100.0] {
            assert_eq!(
                joined.value_at_percentile(percentile),
                whole.value_at_percentile(percentile)
            );
        }
        assert_eq!(samples.each().len(), 5);
        assert!(
            samples
                .each()
                .iter()
                .all(|sample| sample.latency.is_empty())
        );
    }
}
