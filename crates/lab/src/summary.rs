//! From samples to records: pure functions.

mod energy;
#[cfg(target_os = "linux")]
pub mod operation;

pub use energy::{EnergyReference, energy, energy_floor};

use crate::record::{Bottleneck, Latency, LatencySplit, Overhead, TimeSplit, Trial};
use crate::stats::{self, Looks, Steady};
use crate::trial::{Ledger, Sample, Samples};
use crate::workload::Workload;
use hdrhistogram::Histogram;

/// Share of a cell's time above which a part is its bottleneck.
const DOMINANT: f64 = 0.4;

/// Gap between the ledger's parts and wall × threads that is worth a warning.
const LEDGER_GAP: f64 = 0.05;

/// Percentiles at which a latency distribution is kept for drawing.
const CURVE: &[f64] = &[
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.9,
    99.95, 99.99, 100.0,
];

/// The reference that a cell is compared with.
#[derive(Debug)]
pub struct Reference<'a> {
    /// The contract's word for the system compared with.
    pub against: &'a str,
    /// Its rates, in the order of repetitions.
    pub rates: Vec<f64>,
    /// The noise floor, a relative difference.
    pub floor: f64,
}

/// Summarises the repetitions of `workload`; `None` before the first is done. Of `identity` is
/// taken what a cell is, apart from what was measured.
pub fn trial(
    identity: &Trial,
    workload: &Workload,
    all: &Samples,
    reference: Option<Reference<'_>>,
    core_hz: Option<f64>,
) -> Option<Trial> {
    let (mb_s, looks) = (all.mb_s(), all.looks());
    let interval = |values: &[f64]| looks.interval(values);
    let samples = all.each();
    let ledger = total(samples);
    let requests: u64 = samples.iter().map(|sample| sample.requests).sum();
    Some(Trial {
        workload: workload.name.clone(),
        op: workload.op.as_str().to_owned(),
        block_bytes: Some(workload.block_bytes()),
        fsync: workload.fsync.then_some(true),
        queue_depth: Some(workload.queue_depth),
        threads: Some(workload.threads),
        cold: workload.cold,
        repetitions: samples.len() as u32,
        bytes: Some(samples.iter().map(|sample| sample.bytes).sum()),
        requests: Some(requests),
        throughput_mb_s: interval(&mb_s)?,
        iops: interval(&all.iops())?,
        cycles_per_byte: core_hz.and_then(|hz| interval(&cycles_per_byte(samples, hz))),
        latency_us: Some(percentiles(&all.latency())),
        latency_split_us: latency_split(&ledger, requests),
        overhead: reference.and_then(|reference| overhead(&all.rates(), reference, looks)),
        bottleneck: bottleneck(&ledger),
        samples_mb_s: mb_s,
        warnings: gap(&ledger, looks).into_iter().collect(),
        time_s: time_split(samples, &ledger),
        ..identity.clone()
    })
}

/// Judges whether the rounds of `trial`, each of which led to the next, have reached a
/// steady state.
pub fn judge_steadiness(trial: &mut Trial) {
    let Some(steady) = Steady::of(&trial.samples_mb_s) else {
        return;
    };
    trial.steady_state = Some(steady.reached());
    if steady.reached() {
        return;
    }
    let condition = if steady.range > 0.20 {
        format!(
            "the last five rounds differ by {:.0} % of their mean (SNIA allows 20 %)",
            steady.range * 100.0
        )
    } else {
        format!(
            "the last five rounds drift by {:.0} % (SNIA allows 10 %)",
            steady.drift * 100.0
        )
    };
    let warning = format!(
        "no steady state: {condition}; measure 20 rounds or more on an otherwise idle machine"
    );
    trial.warnings.insert(0, warning);
}

fn total(samples: &[Sample]) -> Ledger {
    let mut total = Ledger::default();
    for sample in samples {
        total.add(&sample.ledger);
    }
    total
}

fn time_split(samples: &[Sample], ledger: &Ledger) -> TimeSplit {
    let cpu = |part: fn(&crate::probe::CpuTimes) -> std::time::Duration| {
        samples
            .iter()
            .map(|sample| sample.cpu.as_ref().map(|cpu| part(cpu).as_secs_f64()))
            .sum::<Option<f64>>()
    };
    TimeSplit {
        wall: Some(samples.iter().map(|sample| sample.wall).sum()),
        user: cpu(|cpu| cpu.user),
        sys: cpu(|cpu| cpu.sys),
        crypto: Some(ledger.crypto),
        copy: Some(ledger.copy),
        submit: Some(ledger.submit),
        wait: Some(ledger.wait),
        other: Some(ledger.other),
        ..TimeSplit::default()
    }
}

/// Cycles per byte, at the clock of each sample, or at `core_hz` if that is unknown.
fn cycles_per_byte(samples: &[Sample], core_hz: f64) -> Vec<f64> {
    let cycles = |sample: &Sample| sample.ledger.crypto * sample.core_hz.unwrap_or(core_hz);
    samples
        .iter()
        .filter(|sample| sample.ledger.crypto > 0.0 && sample.bytes > 0)
        .map(|sample| cycles(sample) / sample.bytes as f64)
        .collect()
}

/// Percentiles of times in nanoseconds.
fn percentiles(all: &Histogram<u64>) -> Latency {
    let at = |percentile: f64| all.value_at_percentile(percentile) as f64 / 1e3;
    Latency {
        p50: at(50.0),
        p90: at(90.0),
        p99: at(99.0),
        p99_9: at(99.9),
        max: all.max() as f64 / 1e3,
        curve: CURVE.iter().map(|&p| (p, at(p))).collect(),
    }
}

fn latency_split(ledger: &Ledger, requests: u64) -> Option<LatencySplit> {
    if requests == 0 {
        return None;
    }
    let mean = |sum: f64| sum / requests as f64 * 1e6;
    Some(LatencySplit {
        queue: mean((ledger.latency - ledger.request_crypto - ledger.request_device).max(0.0)),
        crypto: mean(ledger.request_crypto),
        device: mean(ledger.request_device),
    })
}

/// `rates` against those of `reference`.
fn overhead(rates: &[f64], reference: Reference<'_>, looks: Looks) -> Option<Overhead> {
    let ratios = stats::ratios(rates, &reference.rates);
    let ratio = looks.ratio(&ratios)?;
    Some(Overhead {
        against: reference.against.to_owned(),
        ratio,
        verdict: stats::verdict(ratio, reference.floor),
        smallest: stats::smallest(ratio, reference.floor),
    })
}

/// The part that took most of the driving threads' time, if one stands out.
pub fn bottleneck(ledger: &Ledger) -> Bottleneck {
    let parts = [
        (ledger.crypto, Bottleneck::Cipher),
        (ledger.wait, Bottleneck::Device),
        (ledger.copy, Bottleneck::Copy),
        (ledger.submit, Bottleneck::Syscall),
    ];
    parts
        .into_iter()
        .filter(|(time, _)| *time >= DOMINANT * ledger.threads && *time > 0.0)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map_or(Bottleneck::Unknown, |(_, part)| part)
}

/// A warning about the unexplained part of the ledger, if it is large enough.
fn gap(ledger: &Ledger, looks: Looks) -> Option<String> {
    let gap = (ledger.threads - ledger.sum()) / ledger.threads;
    // A third of the windows of a slice see its queue being filled.
    let allowed = match looks {
        Looks::Once => LEDGER_GAP,
        Looks::Always | Looks::Last => 2.0 * LEDGER_GAP,
    };
    (gap.abs() > allowed).then(|| {
        let percent = gap.abs() * 100.0;
        match gap > 0.0 {
            true => format!("the parts of the time leave {percent:.0} % of it unexplained"),
            false => format!("the parts of the time exceed the whole by {percent:.0} %"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Verdict;
    use crate::trial::histogram;
    use crate::workload::{Mix, Pattern};
    use bytesize::ByteSize;

    fn sample(mb_s: f64, ledger: Ledger) -> Sample {
        let mut latency = histogram();
        latency.record_n(100_000, 99).unwrap();
        latency.record(5_000_000).unwrap();
        Sample {
            wall: 1.0,
            bytes: (mb_s * 1e6) as u64,
            requests: 100,
            latency,
            ledger,
            ..Sample::default()
        }
    }

    fn workload() -> Workload {
        Workload {
            seconds: Some(1.0),
            ..Workload::new("w", Pattern::Random, Mix::Read, ByteSize::kib(4))
        }
    }

    fn identity() -> Trial {
        Trial {
            system: "builtin".into(),
            system_version: "0".into(),
            ..Trial::default()
        }
    }

    const QUARTERS: Ledger = Ledger {
        threads: 1.0,
        crypto: 0.5,
        copy: 0.0,
        submit: 0.1,
        wait: 0.3,
        other: 0.1,
        latency: 2.0,
        request_crypto: 0.5,
        request_device: 0.9,
    };

    #[test]
    fn a_cell_says_what_its_samples_say() {
        let plain: Samples = [1000.0, 1010.0, 990.0, 1000.0, 1005.0]
            .map(|rate| sample(rate, QUARTERS))
            .into_iter()
            .collect();
        let cell: Samples = [800.0, 808.0, 792.0, 800.0, 804.0]
            .map(|rate| sample(rate, QUARTERS))
            .into_iter()
            .collect();
        let reference = Reference {
            against: "none",
            rates: plain.rates(),
            floor: 0.01,
        };
        let mut trial = trial(&identity(), &workload(), &cell, Some(reference), Some(1e9)).unwrap();
        judge_steadiness(&mut trial);
        let overhead = trial.overhead.unwrap();
        assert!((overhead.ratio.median - 0.8).abs() < 1e-9);
        assert_eq!(overhead.verdict, Verdict::Slower);
        assert_eq!(trial.bottleneck, Bottleneck::Cipher);
        assert_eq!(trial.steady_state, Some(true));
        assert!(trial.warnings.is_empty(), "{:?}", trial.warnings);
        assert!((trial.latency_us.as_ref().unwrap().p50 - 100.0).abs() < 0.2);
        assert!((trial.latency_us.as_ref().unwrap().max - 5000.0).abs() < 5.0);
        let split = trial.latency_split_us.unwrap();
        assert!((split.queue - 0.6 * 5.0 / 500.0 * 1e6).abs() < 1.0);
        // 0.5 s at 1 GHz for 800 MB.
        assert!((trial.cycles_per_byte.unwrap().median - 0.625).abs() < 0.01);
        assert_eq!(trial.time_s.user, None);
    }

    #[test]
    fn nothing_measured_is_no_record() {
        let none = Samples::new(Looks::Once);
        assert!(super::trial(&identity(), &workload(), &none, None, None).is_none());
    }

    #[test]
    fn the_bottleneck_must_stand_out() {
        let even = Ledger {
            crypto: 0.25,
            copy: 0.25,
            submit: 0.25,
            wait: 0.25,
            ..QUARTERS
        };
        assert_eq!(bottleneck(&even), Bottleneck::Unknown);
        assert_eq!(bottleneck(&Ledger::default()), Bottleneck::Unknown);
        let waiting = Ledger {
            crypto: 0.1,
            wait: 0.8,
            ..QUARTERS
        };
        assert_eq!(bottleneck(&waiting), Bottleneck::Device);
        let calls = Ledger {
            crypto: 0.0,
            wait: 0.0,
            submit: 0.9,
            ..QUARTERS
        };
        assert_eq!(bottleneck(&calls), Bottleneck::Syscall);
    }

    #[test]
    fn an_unsteady_cell_and_a_gap_in_the_ledger_are_said() {
        let gap = Ledger {
            wait: 0.1,
            ..QUARTERS
        };
        let cell: Samples = [1000.0, 500.0, 1000.0, 500.0, 1000.0]
            .map(|rate| sample(rate, gap))
            .into_iter()
            .collect();
        let mut trial = trial(&identity(), &workload(), &cell, None, None).unwrap();
        judge_steadiness(&mut trial);
        assert_eq!(trial.steady_state, Some(false));
        assert_eq!(trial.warnings.len(), 2, "{:?}", trial.warnings);
        assert!(trial.warnings[0].contains("differ by"));
        assert!(trial.warnings[1].contains("20 %"));
    }
}
