//! Two stored runs, pair by pair: what changed between A and B.
//!
//! The repetitions of two runs were not measured in turns, so the interval is
//! that of a ratio of independent medians, wider than the paired one of a run.

mod report;

pub use report::{html, json, markdown, text};

use crate::{figure, group};
use lab::record::{Interval, Run, Tier, Trial, TrimPolicy, Verdict};
use lab::stats;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;

/// What rates are divided by, so that machines can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Normalise {
    /// The clock of the cores that encrypt: bare ciphers alone, in cycles per byte.
    Cycles,
    /// The plain rate of the same run and workload: what encryption leaves of it.
    Plain,
}

/// How two runs are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Compare although machine or device differ; the result is labelled.
    pub across_machines: bool,
    /// What rates are divided by before; nothing where absent.
    pub normalise: Option<Normalise>,
    /// Threshold in per cent: the comparison fails when a cell of B is
    /// certainly slower than A by more than this.
    pub slower_than: Option<f64>,
    /// Seed of the resampling: the same runs give the same intervals.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            across_machines: false,
            normalise: None,
            slower_than: None,
            seed: 1,
        }
    }
}

/// What two runs have in common, and how B differs from A.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The run compared with.
    pub a: Side,
    /// The run that is judged.
    pub b: Side,
    /// How the environments differ; empty unless that was allowed.
    pub differences: Vec<Difference>,
    /// What rates were divided by.
    pub normalised: Option<Normalise>,
    /// The larger noise floor of the two runs, a relative difference.
    pub noise_floor: f64,
    /// The cells that both runs have, in the order of A.
    pub cells: Vec<Pair>,
    /// The cells that only A has.
    pub only_a: Vec<Key>,
    /// The cells that only B has.
    pub only_b: Vec<Key>,
    /// The threshold asked for, per cent.
    pub slower_than: Option<f64>,
}

impl Comparison {
    /// The cells that are slower in B by more than the threshold, beyond their interval.
    pub fn exceeding(&self) -> impl Iterator<Item = &Pair> {
        self.cells.iter().filter(|pair| pair.exceeds)
    }

    /// The cells in which a loss as large as the threshold could not have been told.
    pub fn unjudged(&self) -> impl Iterator<Item = &Pair> {
        self.cells.iter().filter(|pair| pair.unjudged)
    }
}

/// Which run stands on a side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Side {
    /// Id of the run.
    pub run: String,
    /// Name of its plan.
    pub plan: String,
    /// Start, RFC 3339.
    pub started: String,
    /// Whether the run is partial.
    pub partial: bool,
}

/// A property of the environment that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What differs: `processor`, `kernel`, `device model`, …
    pub what: &'static str,
    /// Its value in A.
    pub a: String,
    /// Its value in B.
    pub b: String,
}

/// What makes two cells the same measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Key {
    /// Which stretch of the road was timed.
    pub tier: Tier,
    /// CONTRACT's word for the system.
    pub system: String,
    /// dm-crypt notation.
    pub cipher: Option<String>,
    /// Key length in bits.
    pub key_bits: Option<u32>,
    /// Encryption sector size, bytes.
    pub sector_bytes: Option<u32>,
    /// Name of the workload.
    pub workload: String,
    /// What was done.
    pub op: String,
    /// Bytes of one request.
    pub block_bytes: u64,
    /// Requests in flight per thread.
    pub queue_depth: u32,
    /// Driving threads.
    pub threads: u32,
    /// File system under test.
    pub fs: Option<String>,
    /// On-disk format.
    pub format: Option<String>,
    /// What the kernel's dm-crypt was asked for: `no_read_workqueue`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<String>,
    /// Whether nothing was cached before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cold: bool,
    /// Which drive has lived how, in a sweep: `tlc-1t, 80 % full, 9.9 % spare`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub life: Option<String>,
    /// What became of discards, in a sweep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trim_policy: Option<TrimPolicy>,
}

/// The same cell in both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// Which cell.
    pub key: Key,
    /// The cell as people call it: `AES-256 XTS, dm-crypt`.
    pub label: String,
    /// Throughput in A, 10⁶ bytes a second.
    pub a_mb_s: Interval,
    /// Throughput in B, 10⁶ bytes a second.
    pub b_mb_s: Interval,
    /// Median times in A and B, microseconds, of operations on file systems.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_us: Option<[f64; 2]>,
    /// Medians of A and B after division: cycles per byte, or shares of plain.
    /// `None` where nothing was to be divided, or nothing to divide by.
    pub normalised: Option<[f64; 2]>,
    /// Throughput of B ÷ A, with its 95 % interval; below 1 is slower.
    /// `None` when a run holds no usable samples.
    pub ratio: Option<Interval>,
    /// What the interval and the noise floor allow to say.
    pub verdict: Verdict,
    /// Whether the whole interval lies beyond the threshold.
    pub exceeds: bool,
    /// Whether a loss as large as the threshold could not have been told here: the noise floor
    /// or the interval is wider, or there are too few samples.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unjudged: bool,
}

/// Why two runs cannot be compared.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// Machine or device differ.
    #[error(
        "the runs were measured in different environments: {}",
        report::differences(differences)
    )]
    Environment {
        /// What differs.
        differences: Vec<Difference>,
    },
    /// No cell is in both runs.
    #[error("runs {a} and {b} have no cell in common")]
    NothingInCommon {
        /// Id of the first run.
        a: String,
        /// Id of the second run.
        b: String,
    },
    /// Nothing of what both runs have can be divided so.
    #[error("no cell of both runs has what its rate is to be divided by")]
    NotNormalised,
    /// The threshold is no percentage.
    #[error("a threshold of {percent} % cannot be exceeded: it must be at least 0 and below 100")]
    Threshold {
        /// The threshold asked for.
        percent: f64,
    },
}

impl CompareError {
    /// What the user can do about it: one line.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Environment { .. } => {
                "Measure both on one machine and device, or ask for it with --across-machines."
            }
            Self::NothingInCommon { .. } => {
                "Run the same plan for both: cryptmark show lists its cells."
            }
            Self::NotNormalised => {
                "Cycles go with runs of bare ciphers whose clock is known, plain with encrypted systems beside it."
            }
            Self::Threshold { .. } => "Give a percentage such as 5.",
        }
    }
}

/// Compares `b` with `a`, cell by cell; A/A cells are left out.
pub fn compare(a: &Run, b: &Run, options: &Options) -> Result<Comparison, CompareError> {
    if let Some(percent) = options.slower_than
        && !(0.0..100.0).contains(&percent)
    {
        return Err(CompareError::Threshold { percent });
    }
    let (of_a, mut rest) = (cells(a), cells(b));
    let mut partners: Vec<Option<&Trial>> = vec![None; of_a.len()];
    for is_near in NEAREST_FIRST {
        for ((key, trial), partner) in of_a.iter().zip(&mut partners) {
            let is_it = |(other, near): &(Key, &Trial)| other == key && is_near(trial, near);
            if partner.is_none() {
                let at = rest.iter().position(is_it);
                *partner = at.map(|at| rest.remove(at).1);
            }
        }
    }
    let mut pairs = Vec::new();
    let mut only_a = Vec::new();
    for ((key, trial), partner) in of_a.into_iter().zip(partners) {
        match partner {
            Some(partner) => pairs.push((trial, partner)),
            None => only_a.push(key),
        }
    }
    let differences = environment(a, b, &pairs);
    if !differences.is_empty() && !options.across_machines {
        return Err(CompareError::Environment { differences });
    }
    if pairs.is_empty() {
        return Err(CompareError::NothingInCommon {
            a: a.run.clone(),
            b: b.run.clone(),
        });
    }
    let floor = stats::noise_floor(a.noise.aa_ratio).max(stats::noise_floor(b.noise.aa_ratio));
    let cells: Vec<Pair> = pairs
        .into_iter()
        .map(|(trial, other)| pair((a, trial), (b, other), floor, options))
        .collect();
    if options.normalise.is_some() && cells.iter().all(|pair| pair.normalised.is_none()) {
        return Err(CompareError::NotNormalised);
    }
    Ok(Comparison {
        a: side(a),
        b: side(b),
        differences,
        noise_floor: floor,
        normalised: options.normalise,
        cells,
        only_a,
        only_b: rest.into_iter().map(|(key, _)| key).collect(),
        slower_than: options.slower_than,
    })
}

/// Cells with one key are paired with the nearest first. A run may have several devices, and
/// one core beside all of them; two runs may differ in both.
const NEAREST_FIRST: [fn(&Trial, &Trial) -> bool; 4] = [
    |a, b| is_same_device(a, b) && a.cores() == b.cores(),
    is_same_device,
    |a, b| a.cores() == b.cores(),
    |_, _| true,
];

fn is_same_device(a: &Trial, b: &Trial) -> bool {
    (&a.device.kind, &a.device.model) == (&b.device.kind, &b.device.model)
}

fn cells(run: &Run) -> Vec<(Key, &Trial)> {
    run.trials
        .iter()
        .filter(|trial| !group::is_again(trial))
        .map(|trial| (key(trial), trial))
        .collect()
}

fn key(trial: &Trial) -> Key {
    Key {
        tier: trial.tier,
        system: trial.system.clone(),
        cipher: trial.cipher.clone(),
        key_bits: trial.key_bits,
        sector_bytes: trial.sector_bytes,
        workload: trial.workload.clone(),
        op: trial.op.clone(),
        block_bytes: trial.block_bytes,
        queue_depth: trial.queue_depth,
        threads: trial.threads,
        fs: trial.fs().map(str::to_owned),
        format: trial.format.clone(),
        options: trial
            .backend
            .clone()
            .filter(|_| trial.system.ends_with("dm-crypt")),
        cold: trial.cold,
        life: trial.life().map(|life| {
            let drive = trial.device.model.as_deref().unwrap_or_default();
            format!("{drive}, {}", group::setting(life))
        }),
        trim_policy: trial.life().map(|life| life.policy),
    }
}

fn side(run: &Run) -> Side {
    Side {
        run: run.run.clone(),
        plan: run.plan.clone(),
        started: run.started.clone(),
        partial: run.partial,
    }
}

fn pair(
    (of_a, a): (&Run, &Trial),
    (of_b, b): (&Run, &Trial),
    floor: f64,
    options: &Options,
) -> Pair {
    let [in_a, in_b] = [(of_a, a), (of_b, b)].map(|(run, trial)| match options.normalise {
        None => rates(trial),
        Some(by) => normalised(run, trial, by).unwrap_or_default(),
    });
    let ratio = ratio_of_medians(&in_b, &in_a, options.seed).filter(|ratio| figure::finite(*ratio));
    let normalised = options.normalise.and_then(|by| {
        let shown = |rates: &[f64]| {
            let median = stats::median(rates)?;
            Some(match by {
                Normalise::Cycles => 1.0 / median,
                Normalise::Plain => median,
            })
        };
        Some([shown(&in_a)?, shown(&in_b)?])
    });
    let verdict = ratio.map_or(Verdict::NotDistinguishable, |ratio| {
        stats::verdict(ratio, floor)
    });
    // Of one or two repetitions nothing is certain.
    let exceeds = verdict == Verdict::Slower
        && ratio
            .zip(options.slower_than)
            .is_some_and(|(ratio, percent)| ratio.high < 1.0 - percent / 100.0);
    // Without a tolerance every loss that can be told is too large.
    let tolerance = options.slower_than.filter(|percent| *percent > 0.0);
    let smallest = ratio.and_then(|ratio| stats::smallest(ratio, floor));
    let unjudged = !exceeds
        && verdict != Verdict::Faster
        && tolerance.is_some_and(|percent| smallest.is_none_or(|loss| loss > percent / 100.0));
    let key = key(a);
    let label = match &key.options {
        Some(options) => format!("{}, {options}", group::label(a)),
        None => group::label(a),
    };
    Pair {
        key,
        label,
        a_mb_s: a.throughput_mb_s,
        b_mb_s: b.throughput_mb_s,
        time_us: figure::time_us(a)
            .zip(figure::time_us(b))
            .map(|(a, b)| [a.median, b.median]),
        normalised,
        ratio,
        verdict,
        exceeds,
        unjudged,
    }
}

/// Rates of every repetition ÷ what is asked for; `None` where that is not known.
fn normalised(run: &Run, trial: &Trial, by: Normalise) -> Option<Vec<f64>> {
    match by {
        Normalise::Cycles => {
            let hz = run.host.clock_hz.filter(|_| trial.tier == Tier::Cipher)?;
            let cycles = hz * f64::from(trial.threads.max(1)) / 1e6;
            Some(
                trial
                    .samples_mb_s
                    .iter()
                    .map(|rate| rate / cycles)
                    .collect(),
            )
        }
        Normalise::Plain => {
            let is_its_plain = |plain: &&Trial| {
                group::is_plain(plain)
                    && (&plain.workload, &plain.op, plain.fs())
                        == (&trial.workload, &trial.op, trial.fs())
                    && plain.device == trial.device
            };
            let plain = run.trials.iter().find(is_its_plain);
            let plain = plain.filter(|_| trial.cipher.is_some())?;
            let pairs = rates(trial).into_iter().zip(rates(plain));
            Some(pairs.map(|(rate, plain)| rate / plain).collect())
        }
    }
}

/// Rates of every repetition: how often it could be done in a second where it is
/// an operation that need not move bytes.
fn rates(trial: &Trial) -> Vec<f64> {
    match trial.samples_s().is_empty() {
        true => trial.samples_mb_s.clone(),
        false => trial
            .samples_s()
            .iter()
            .map(|seconds| 1.0 / seconds)
            .collect(),
    }
}

/// Median of `subject` ÷ median of `reference`, with the 95 % percentile
/// interval of resampling both independently; `n` is the smaller count.
/// `None` when either is empty or a resampled reference is not positive.
fn ratio_of_medians(subject: &[f64], reference: &[f64], seed: u64) -> Option<Interval> {
    const RESAMPLES: usize = 2_000;
    const OUTSIDE: usize = RESAMPLES / 40;

    let ratio = |subject: f64, reference: f64| (reference > 0.0).then(|| subject / reference);
    let median = ratio(stats::median(subject)?, stats::median(reference)?)?;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut resampled = |values: &[f64]| {
        let count = values.len() as u64;
        let picked: Vec<f64> = (0..count)
            .map(|_| values[(rng.next_u64() % count) as usize])
            .collect();
        stats::median(&picked)
    };
    let mut ratios = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        ratios.push(ratio(resampled(subject)?, resampled(reference)?)?);
    }
    ratios.sort_by(f64::total_cmp);
    Some(Interval {
        median,
        low: ratios[OUTSIDE],
        high: ratios[RESAMPLES - 1 - OUTSIDE],
        n: subject.len().min(reference.len()) as u32,
    })
}

/// What differs in the machines, and in the devices of the cells that are compared.
fn environment(a: &Run, b: &Run, pairs: &[(&Trial, &Trial)]) -> Vec<Difference> {
    let mut differences = Vec::new();
    let mut note = |what, a: String, b: String| {
        let difference = Difference { what, a, b };
        if difference.a != difference.b && !differences.contains(&difference) {
            differences.push(difference);
        }
    };
    if a.host.key() != b.host.key() {
        note("processor", a.host.cpu.clone(), b.host.cpu.clone());
        note("cores", a.host.cores.to_string(), b.host.cores.to_string());
        note("system", a.host.os.clone(), b.host.os.clone());
        note("kernel", a.host.kernel.clone(), b.host.kernel.clone());
    }
    for (a, b) in pairs {
        let (a, b) = (&a.device, &b.device);
        let model = |model: &Option<String>| model.clone().unwrap_or_else(|| "unknown".to_owned());
        note("device kind", a.kind.clone(), b.kind.clone());
        note("device model", model(&a.model), model(&b.model));
        note("engine", a.engine.clone(), b.engine.clone());
        note("cache mode", a.cache.clone(), b.cache.clone());
    }
    differences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_encloses_the_ratio_and_repeats() {
        let a: Vec<f64> = (0..10).map(|at| 100.0 + f64::from(at)).collect();
        let b: Vec<f64> = a.iter().map(|value| value * 0.8).collect();
        let first = ratio_of_medians(&b, &a, 1).unwrap();
        assert!((first.median - 0.8).abs() < 1e-12);
        assert!(first.low < 0.8 && 0.8 < first.high);
        assert!(first.low > 0.75 && first.high < 0.85);
        assert_eq!(ratio_of_medians(&b, &a, 1), Some(first));
        assert_ne!(ratio_of_medians(&b, &a, 2), Some(first));
    }

    #[test]
    fn no_ratio_without_samples() {
        assert_eq!(ratio_of_medians(&[], &[1.0], 1), None);
        assert_eq!(ratio_of_medians(&[1.0], &[], 1), None);
        assert_eq!(ratio_of_medians(&[1.0], &[0.0], 1), None);
    }

    /// Over many simulated pairs of equal systems, about 5 % of intervals miss 1.
    #[test]
    fn equal_systems_are_rarely_told_apart() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut sample = || -> Vec<f64> {
            (0..10)
                .map(|_| 100.0 + (rng.next_u64() >> 40) as f64 / (1 << 24) as f64)
                .collect()
        };
        let missed = (0..200)
            .filter(|seed| {
                let ratio = ratio_of_medians(&sample(), &sample(), *seed).unwrap();
                ratio.low > 1.0 || ratio.high < 1.0
            })
            .count();
        assert!(missed < 24, "{missed} of 200");
    }
}
