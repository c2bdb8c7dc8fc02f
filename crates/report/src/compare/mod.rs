//! Two stored runs, pair by pair: the changes between A and B.
//!
//! The repetitions of two runs were not interleaved, so the interval is that of
//! [`stats::two_runs`], wider than the paired one of a run. No interval includes the drift of a
//! machine from one day to the next. An encrypted system is therefore judged by its share of the
//! plain rate of the same round, if both runs have that rate. Everything else is judged by its
//! rate.

mod report;

pub use report::{html, json, markdown, text};

use crate::figure;
use crate::group::{self, Names};
use lab::record::{Interval, Load, Overhead, Place, Run, Setup, Tier, Trial, Verdict};
use lab::stats;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The quantity by which rates are divided, so that machines can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Normalise {
    /// The clock of the cores that encrypt: bare ciphers alone, in cycles per byte.
    Cycles,
    /// The plain rate of the same run and workload. The quotient is the share that encryption
    /// leaves.
    Plain,
}

/// How two runs are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// Compare although machine or device differ; the result is labelled.
    pub across_machines: bool,
    /// The quantity by which all rates are divided. When absent, rates are divided by the plain
    /// rate if possible.
    pub normalise: Option<Normalise>,
    /// Threshold in per cent: the comparison fails when a cell of B is
    /// certainly slower than A by more than this.
    pub slower_than: Option<f64>,
}

/// The common cells of two runs, and the differences of B from A.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The run compared with.
    pub a: Side,
    /// The run that is judged.
    pub b: Side,
    /// How the environments differ. Only the engine's backend may, unless all were allowed.
    pub differences: Vec<Difference>,
    /// The properties of the environment that neither run states, so that they may differ.
    pub unknown: Vec<&'static str>,
    /// The quantity by which all rates were divided.
    pub normalised: Option<Normalise>,
    /// The largest noise floor of a cell, a relative difference.
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

    /// The cells in which a loss as large as the threshold could not have been detected.
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
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Difference {
    /// The property that differs: `processor`, `kernel`, `device model`, …
    pub what: &'static str,
    /// Its value in A.
    pub a: String,
    /// Its value in B.
    pub b: String,
}

/// A cell, with what tells it from all others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Key {
    /// The set-up as people call it: `AES-256 XTS, dm-crypt`.
    pub label: String,
    /// The load as people call it: `mkfs on ext4, 64 MiB, warm`.
    pub title: String,
    /// The set-up that was measured.
    #[serde(flatten)]
    pub setup: Setup,
    /// The work that it was given.
    #[serde(flatten)]
    pub load: Load,
}

/// The same cell in both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// Which cell.
    pub key: Key,
    /// Throughput in A, 10⁶ bytes a second.
    pub a_mb_s: Interval,
    /// Throughput in B, 10⁶ bytes a second.
    pub b_mb_s: Interval,
    /// Median times in A and B, microseconds, of operations on file systems.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_us: Option<[f64; 2]>,
    /// The quantity by which its rates were divided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<Normalise>,
    /// Medians of A and B after division: cycles per byte, or shares of plain. `None` if no
    /// division was requested or a divisor is missing.
    pub normalised: Option<[f64; 2]>,
    /// The judged ratio, B ÷ A, with its 95 % interval; below 1 is slower. `None` when a run holds
    /// no usable samples.
    pub ratio: Option<Interval>,
    /// The larger noise floor of the two runs under this load, a relative difference.
    pub noise_floor: f64,
    /// The verdict that the interval and the noise floor support.
    pub verdict: Verdict,
    /// Whether the whole interval lies beyond the threshold.
    pub exceeds: bool,
    /// Whether a loss as large as the threshold could not have been detected here. The noise floor
    /// or the interval is then wider, or there are too few samples.
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
        /// The differences.
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
    #[error("the two runs share no cell with a baseline to normalise against")]
    NotNormalised,
    /// The threshold is not a valid percentage.
    #[error("a threshold of {percent} % cannot be exceeded: it must be at least 0 and below 100")]
    Threshold {
        /// The threshold asked for.
        percent: f64,
    },
}

impl CompareError {
    /// The remedy, as one line for the user.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Environment { .. } => {
                "Measure both on the same machine and device, or give --across-machines to compare \
                 them anyway."
            }
            Self::NothingInCommon { .. } => {
                "Run the same plan for both. `cryptmark show` lists the cells of a run."
            }
            Self::NotNormalised => {
                "Normalise by cycles only for runs of bare ciphers with a known clock. Normalise \
                 by plain only for runs with encrypted and plain systems."
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
    let names = Names::of(a.trials.iter().chain(&b.trials));
    let (mut of_a, mut of_b) = (cells(a, &names), cells(b, &names));
    let mut pairs = Vec::new();
    for loosen in NEAREST_FIRST {
        let mut waiting: BTreeMap<_, VecDeque<Cell<'_>>> = BTreeMap::new();
        for cell in of_b {
            let same = waiting.entry(loosen(&cell.key)).or_default();
            same.push_back(cell);
        }
        for cell in std::mem::take(&mut of_a) {
            let same = waiting.get_mut(&loosen(&cell.key));
            match same.and_then(VecDeque::pop_front) {
                Some(other) => pairs.push((cell, other)),
                None => of_a.push(cell),
            }
        }
        of_b = waiting.into_values().flatten().collect();
        of_b.sort_by_key(|cell| cell.number);
    }
    pairs.sort_by_key(|(cell, _)| cell.number);
    let (differences, unknown) = environment(a, b, &pairs);
    let is_elsewhere = |difference: &Difference| difference.what != BACKEND;
    if differences.iter().any(is_elsewhere) && !options.across_machines {
        return Err(CompareError::Environment { differences });
    }
    if pairs.is_empty() {
        return Err(CompareError::NothingInCommon {
            a: a.run.clone(),
            b: b.run.clone(),
        });
    }
    let mut cells: Vec<Pair> = pairs
        .into_iter()
        .map(|(cell, other)| pair((a, cell), (b, other.trial), options))
        .collect();
    // If shares of plain are judged, plain's own rate shows only the state of the machine and is
    // not judged.
    let divided: BTreeSet<Load> = cells
        .iter()
        .filter(|pair| pair.by == Some(Normalise::Plain))
        .map(|pair| pair.key.load.clone())
        .collect();
    for pair in &mut cells {
        if pair.by.is_none() && divided.contains(&pair.key.load) {
            (pair.exceeds, pair.unjudged) = (false, false);
        }
    }
    if options.normalise.is_some() && cells.iter().all(|pair| pair.normalised.is_none()) {
        return Err(CompareError::NotNormalised);
    }
    Ok(Comparison {
        a: side(a),
        b: side(b),
        differences,
        unknown,
        noise_floor: cells
            .iter()
            .map(|pair| pair.noise_floor)
            .fold(0.0, f64::max),
        normalised: options.normalise,
        cells,
        only_a: of_a.into_iter().map(|cell| cell.key).collect(),
        only_b: of_b.into_iter().map(|cell| cell.key).collect(),
        slower_than: options.slower_than,
    })
}

/// A cell of a run, with its place among them.
struct Cell<'a> {
    number: usize,
    key: Key,
    trial: &'a Trial,
}

/// The properties that two cells must share to be paired.
type Loosen = fn(&Key) -> (Setup, Load);

/// Identical cells are paired first. Then come cells that differ in the number of sharing cores, in
/// the device, and in both, because machines differ in these.
const NEAREST_FIRST: [Loosen; 4] = [
    |key| (key.setup.clone(), key.load.clone()),
    |key| (on_several_cores(key), key.load.clone()),
    |key| (key.setup.clone(), anywhere(key)),
    |key| (on_several_cores(key), anywhere(key)),
];

fn on_several_cores(key: &Key) -> Setup {
    Setup {
        cores: key.setup.cores.min(2),
        ..key.setup.clone()
    }
}

/// A sweep has the same lives of many drives.
fn anywhere(key: &Key) -> Load {
    let load = key.load.clone();
    match &load.life {
        Some(_) => load,
        None => Load {
            place: Place::default(),
            ..load
        },
    }
}

fn cells<'a>(run: &'a Run, names: &Names) -> Vec<Cell<'a>> {
    let cells = run.trials.iter().filter(|trial| !group::is_again(trial));
    let cell = |(number, trial): (usize, &'a Trial)| {
        let load = trial.load();
        let key = Key {
            label: names.setup(trial),
            title: title(trial, names.place(&load)),
            setup: trial.setup(),
            load,
        };
        Cell { number, key, trial }
    };
    cells.enumerate().map(cell).collect()
}

/// The title of a workload: its file system, the life of its drive, and its place.
fn title(trial: &Trial, place: Option<String>) -> String {
    let workload = &trial.workload;
    let place = place.map_or_else(String::new, |place| format!(", {place}"));
    match (trial.fs(), trial.life()) {
        (Some(fs), _) => format!(
            "{workload} on {fs}{}{place}",
            group::of_a_file_system(trial)
        ),
        (None, Some(life)) => {
            let drive = trial.device.model.as_deref().unwrap_or_default();
            format!("{workload}, {drive}, {}", group::setting(life))
        }
        (None, None) => format!("{workload}{place}"),
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
    (of_a, Cell { key, trial: a, .. }): (&Run, Cell<'_>),
    (of_b, b): (&Run, &Trial),
    options: &Options,
) -> Pair {
    let sides = [(of_a, a), (of_b, b)];
    let shares = |(run, trial)| normalised(run, trial, Normalise::Plain);
    let by = match options.normalise {
        None if sides.iter().all(|side| shares(*side).is_some()) => Some(Normalise::Plain),
        asked => asked,
    };
    let floor = floor(of_a, a).max(floor(of_b, b));
    let [in_a, in_b] = sides.map(|(run, trial)| match by {
        None => rates(trial),
        Some(by) => normalised(run, trial, by).unwrap_or_default(),
    });
    let ratio = stats::two_runs(&in_b, &in_a).filter(|ratio| figure::finite(*ratio));
    let normalised = by.and_then(|by| {
        let shown = |rates: &[f64]| {
            let median = stats::median(rates)?;
            Some(match by {
                Normalise::Cycles => 1.0 / median,
                Normalise::Plain => median,
            })
        };
        Some([shown(&in_a)?, shown(&in_b)?])
    });
    let verdict = ratio.map_or(Verdict::TooFew, |ratio| stats::verdict(ratio, floor));
    let exceeds = verdict == Verdict::Slower
        && ratio
            .zip(options.slower_than)
            .is_some_and(|(ratio, percent)| ratio.high < 1.0 - percent / 100.0);
    // Without a tolerance, every detectable loss is too large.
    let tolerance = options.slower_than.filter(|percent| *percent > 0.0);
    let smallest = ratio.and_then(|ratio| stats::smallest(ratio, floor));
    let unjudged = !exceeds
        && verdict != Verdict::Faster
        && tolerance.is_some_and(|percent| smallest.is_none_or(|loss| loss > percent / 100.0));
    Pair {
        key,
        a_mb_s: a.throughput_mb_s,
        b_mb_s: b.throughput_mb_s,
        time_us: figure::time_us(a)
            .zip(figure::time_us(b))
            .map(|(a, b)| [a.median, b.median]),
        by,
        normalised,
        ratio,
        noise_floor: floor,
        verdict,
        exceeds,
        unjudged,
    }
}

/// The rates of every repetition, divided by the chosen quantity; `None` if that is unknown.
fn normalised(run: &Run, trial: &Trial, by: Normalise) -> Option<Vec<f64>> {
    match by {
        Normalise::Cycles => {
            let hz = run.host.clock_hz.filter(|_| trial.tier == Tier::Cipher)?;
            let cycles = hz * f64::from(trial.threads?.max(1)) / 1e6;
            Some(
                trial
                    .samples_mb_s
                    .iter()
                    .map(|rate| rate / cycles)
                    .collect(),
            )
        }
        Normalise::Plain => {
            let load = trial.load();
            let is_its_plain = |plain: &&Trial| group::is_plain(plain) && plain.load() == load;
            let plain = run.trials.iter().find(is_its_plain);
            let is_plains = |cost: &Overhead| group::is_unencrypted(&cost.against);
            let plain = plain.filter(|_| trial.overhead.as_ref().is_some_and(is_plains))?;
            let shares = stats::ratios(&rates(trial), &rates(plain));
            Some(shares).filter(|shares| !shares.is_empty())
        }
    }
}

/// The rates of every repetition. For an operation that need not move bytes, the rate is the number
/// of times that it could be done per second.
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

/// By how much a run differs from itself under the load of `trial`, or under all loads.
fn floor(run: &Run, trial: &Trial) -> f64 {
    let load = trial.load();
    let is_again = |other: &&Trial| group::is_again(other) && other.load() == load;
    let again = run.trials.iter().find(is_again);
    let ratio = again.and_then(|again| Some(again.overhead.as_ref()?.ratio));
    stats::noise_floor(ratio.or(run.noise.aa_ratio))
}

/// The only difference that is told and not refused: a newer program may choose another.
const BACKEND: &str = "backend";

/// The properties of an environment, as far as a cell and its run state them.
fn properties<'a>(
    run: &'a Run,
    trial: &'a Trial,
) -> impl Iterator<Item = (&'static str, Option<String>)> {
    const NOTHING: [&str; 2] = ["", "unknown"];
    let (host, device) = (&run.host, &trial.device);
    let text = |value: &str| (!NOTHING.contains(&value)).then(|| value.to_owned());
    let backend = trial.backend.as_deref().map(|name| {
        let alone = name.rsplit_once(" on ").map_or(name, |(name, _)| name);
        alone.to_owned()
    });
    let extent = (trial.tier == Tier::Block && device.size > 0).then(|| figure::bytes(device.size));
    [
        ("processor", text(&host.cpu)),
        ("cores", (host.cores > 0).then(|| host.cores.to_string())),
        ("system", text(&host.os)),
        ("kernel", text(&host.kernel)),
        ("governor", host.governor.clone()),
        ("cores that encrypt", Some(trial.cores().to_string())),
        (BACKEND, backend),
        ("size of the extent", extent),
        ("device kind", text(&device.kind)),
        ("device model", device.model.clone()),
        ("file system", device.filesystem.clone()),
        ("write cache", device.write_cache.clone()),
        ("scheduler", device.scheduler.clone()),
        ("engine", text(&device.engine)),
        ("cache mode", text(&device.cache)),
    ]
    .into_iter()
}

/// The differences between the machines, and between the devices of the compared cells. Then the
/// properties that neither run states, though every run has them.
fn environment(
    a: &Run,
    b: &Run,
    pairs: &[(Cell<'_>, Cell<'_>)],
) -> (Vec<Difference>, Vec<&'static str>) {
    const ALWAYS_THERE: [&str; 4] = ["processor", "device kind", "engine", "cache mode"];
    let (mut differences, mut unknown) = (Vec::new(), Vec::new());
    for (of_a, of_b) in pairs {
        for ((what, a), (_, b)) in properties(a, of_a.trial).zip(properties(b, of_b.trial)) {
            if a.is_none() && b.is_none() && ALWAYS_THERE.contains(&what) {
                unknown.push(what);
            }
            if a != b {
                let [a, b] = [a, b].map(|value| value.unwrap_or_else(|| "unknown".to_owned()));
                differences.push(Difference { what, a, b });
            }
        }
    }
    (distinct(differences), distinct(unknown))
}

/// The first of all that are equal, in their order.
fn distinct<T: Ord + Clone>(mut items: Vec<T>) -> Vec<T> {
    let mut seen = BTreeSet::new();
    items.retain(|item| seen.insert(item.clone()));
    items
}
