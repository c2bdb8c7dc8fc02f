//! Imports results of other programs as runs to compare with, and runs of this program that were
//! measured elsewhere. The other programs are fio, hyperfine, CrystalDiskMark, KDiskMark, DiskSpd
//! and `cryptsetup benchmark`.
//!
//! Facts that such a file does not state stay unknown, above all the machine.

mod cryptsetup;
mod diskmark;
mod diskspd;
mod error;
mod fio;
mod hyperfine;
mod possible;
mod unread;

pub use error::ImportError;

use crate::record::{
    Bottleneck, Detail, Device, FileOperation, Latency, Run, SCHEMA, Tier, TimeSplit, Trial,
};
use crate::stats;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The most characters of a name that every cell repeats.
const MOST_WORD: usize = 100;

/// The content of a file.
#[derive(Debug)]
pub enum Imported {
    /// Runs of this program.
    Runs(Vec<Run>),
    /// Results that another program has measured.
    Results(Results),
}

/// Results that another program has measured, as its file states them.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// The program, as the plan of the run: `fio`, `crystaldiskmark`, …
    pub tool: &'static str,
    /// The program's version, if the file states it.
    pub version: Option<String>,
    /// The start of the run, RFC 3339, if the file states it.
    pub started: Option<String>,
    /// The parts of the file that are not imported.
    pub left_out: Vec<&'static str>,
    measurements: Vec<Measurement>,
}

/// The measured work.
#[derive(Clone, Debug, PartialEq)]
struct Work {
    tier: Tier,
    cipher: Option<String>,
    key_bits: Option<u32>,
    workload: String,
    op: &'static str,
    /// `None` of these three if the file does not state it.
    block_bytes: Option<u64>,
    queue_depth: Option<u32>,
    threads: Option<u32>,
    device: Device,
}

// Of what programs write, no device has a share in use, the only number that could
// differ from itself.
impl Eq for Work {}

/// Hashes the fields that programs state.
impl Hash for Work {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.tier, &self.cipher, self.key_bits).hash(state);
        (&self.workload, self.op, self.block_bytes).hash(state);
        (self.queue_depth, self.threads, &self.device.engine).hash(state);
        (&self.device.cache, self.device.size).hash(state);
    }
}

/// One repetition of the work, or another program's summary of several repetitions.
#[derive(Clone, Debug, PartialEq)]
struct Measurement {
    /// Shared, because a file may have many repetitions of one long command.
    work: Arc<Work>,
    /// Duration, seconds; `None` if only rates are known, as of the next two.
    seconds: Option<f64>,
    bytes: Option<u64>,
    requests: Option<u64>,
    mb_s: f64,
    iops: f64,
    latency_us: Option<Latency>,
    user: Option<f64>,
    sys: Option<f64>,
}

/// Reads a file of any supported format.
///
/// # Errors
/// [`ImportError`] names the fault and its position.
pub fn read(text: &str) -> Result<Imported, ImportError> {
    let plain;
    let text = match text.contains('\u{1b}') {
        true => {
            plain = uncoloured(text);
            plain.as_str()
        }
        false => text,
    };
    if text
        .chars()
        .any(|c| c.is_control() && !"\n\r\t".contains(c))
    {
        return Err(ImportError::Control);
    }
    let imported = match json(text) {
        Some(_) => from_json(text)?,
        None => Imported::Results(from_text(text)?),
    };
    if let Imported::Results(results) = &imported {
        results.check()?;
    }
    Ok(imported)
}

fn from_text(text: &str) -> Result<Results, ImportError> {
    if text.trim_start().starts_with('<') && text.contains("<Results") {
        return diskspd::read(text.trim_start());
    }
    if text.contains("MB/s") && (text.contains("DiskMark") || text.contains("(Q=")) {
        return diskmark::read(text);
    }
    if cryptsetup::is_benchmark(text) {
        return cryptsetup::read(text);
    }
    Err(unread::named(text).unwrap_or(ImportError::Unknown))
}

/// The text without the colours that terminals show.
fn uncoloured(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|sign: char| !sign.is_ascii_digit() && sign != ';');
        match end.map(|end| part.split_at(end)) {
            Some((_, rest)) if rest.starts_with(['m', 'K']) => plain.push_str(&rest[1..]),
            _ => {
                plain.push('\u{1b}');
                plain.push_str(part);
            }
        }
    }
    plain
}

impl Results {
    /// Refuses several results of the same work in one text, which may be one before a change and
    /// one after it. One that a program has repeated shares its `work`.
    fn check(&self) -> Result<(), ImportError> {
        let mut seen: HashMap<&Work, &Arc<Work>> = HashMap::new();
        let mut before: Option<&Arc<Work>> = None;
        for Measurement { work, .. } in &self.measurements {
            // A file may have many repetitions of one long command.
            if before.is_some_and(|before| Arc::ptr_eq(before, work)) {
                continue;
            }
            before = Some(work);
            let first = seen.entry(work).or_insert(work);
            if !Arc::ptr_eq(first, work) {
                return Err(ImportError::Several {
                    what: word(&work.workload),
                });
            }
        }
        Ok(())
    }
}

/// The text from the beginning of the JSON on. Fio writes remarks before it.
fn json(text: &str) -> Option<&str> {
    let list = text.trim_start().strip_prefix('[');
    if list.is_some_and(|list| list.trim_start().starts_with('{')) {
        return Some(text);
    }
    let at_a_line = |(at, _): &(usize, &str)| *at == 0 || text[..*at].ends_with('\n');
    let (at, _) = text.match_indices('{').find(at_a_line)?;
    Some(&text[at..])
}

/// The values of JSON in `text`, which may have remarks around them; a list counts as what is in
/// it. No line is read more than twice.
fn values(text: &str) -> Result<Vec<Value>, ImportError> {
    let (mut rest, mut found, mut wrong) = (text, Vec::new(), None);
    while let Some(start) = json(rest) {
        let mut values = serde_json::Deserializer::from_str(start).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                rest = &start[values.byte_offset()..];
                match value {
                    Value::Array(values) => found.extend(values),
                    one => found.push(one),
                }
            }
            // It may be a remark that begins so. Objects in it, up to the error, are not looked for.
            Some(Err(error)) => {
                let ends = start.match_indices('\n').map(|(at, _)| at + 1);
                let line = ends.take(error.line().saturating_sub(1)).last();
                rest = &start[line.unwrap_or(1)..];
                wrong = wrong.or(Some(error));
            }
            None => break,
        }
    }
    match (found.is_empty(), wrong) {
        (false, _) => Ok(found),
        (true, Some(error)) => Err(error.into()),
        (true, None) => Err(ImportError::Unknown),
    }
}

/// Whether any text in `value` contains characters that would control the terminal that it is
/// printed to. The characters in `breaks`, for line breaks, are allowed.
fn has_control(value: &Value, breaks: &str) -> bool {
    let steers = |c: char| c.is_control() && !breaks.contains(c);
    match value {
        Value::String(text) => text.contains(steers),
        Value::Array(values) => values.iter().any(|value| has_control(value, breaks)),
        Value::Object(fields) => fields
            .iter()
            .any(|(name, value)| name.contains(steers) || has_control(value, breaks)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn from_json(text: &str) -> Result<Imported, ImportError> {
    let values = values(text)?;
    if values.iter().any(|value| has_control(value, "\n\r\t")) {
        return Err(ImportError::Control);
    }
    // Other values are remarks, such as a configuration.
    let is = |field: &'static str| move |value: &&Value| value.get(field).is_some();
    let count = |field| values.iter().filter(is(field)).count();
    let counts = [count("schema"), count("fio version"), count("results")];
    if counts.iter().filter(|count| **count > 0).count() > 1 {
        return Err(ImportError::Mixed {
            first: "one program",
            second: "another",
        });
    }
    let of = |field| values.iter().filter(is(field)).cloned();
    match counts {
        [0, 0, 0] => Err(unread::named(text).unwrap_or(ImportError::Unknown)),
        [0, 0, _] => {
            let outputs = of("results").map(serde_json::from_value);
            hyperfine::read(outputs.collect::<Result<_, _>>()?).map(Imported::Results)
        }
        [0, ..] => {
            let outputs = of("fio version").map(serde_json::from_value);
            fio::read(outputs.collect::<Result<_, _>>()?).map(Imported::Results)
        }
        _ => of("schema")
            .map(ours)
            .collect::<Result<_, _>>()
            .map(Imported::Runs),
    }
}

/// A run of this program.
fn ours(value: Value) -> Result<Run, ImportError> {
    let schema = value.get("schema").and_then(Value::as_str);
    if schema != Some(SCHEMA) {
        let found = schema.unwrap_or("no text").to_owned();
        return Err(ImportError::Schema { found });
    }
    if has_control(&value, "") {
        return Err(ImportError::Control);
    }
    let run = Run::deserialize(&value)?;
    possible::check(&value)?;
    Ok(run)
}

/// Makes one run of the results of one program. Common cells of several results become repetitions.
/// `system` is the contract's word for the measured system.
///
/// # Errors
/// [`ImportError::Mixed`] if the programs differ.
pub fn run(
    id: String,
    system: &str,
    started: String,
    results: &[Results],
) -> Result<Run, ImportError> {
    let first = results.first().ok_or(ImportError::Unknown)?;
    let mut places: HashMap<&Work, usize> = HashMap::new();
    let mut groups: Vec<Vec<&Measurement>> = Vec::new();
    let mut before: Option<(&Arc<Work>, usize)> = None;
    for result in results {
        if result.tool != first.tool {
            let (first, second) = (first.tool, result.tool);
            return Err(ImportError::Mixed { first, second });
        }
        for measurement in &result.measurements {
            let next = groups.len();
            let work = &measurement.work;
            let place = match before {
                Some((same, place)) if Arc::ptr_eq(same, work) => place,
                _ => *places.entry(work).or_insert(next),
            };
            before = Some((work, place));
            match place < next {
                true => groups[place].push(measurement),
                false => groups.push(vec![measurement]),
            }
        }
    }
    let version = word(first.version.as_deref().unwrap_or_default());
    let trials = groups
        .iter()
        .filter_map(|group| trial(group, system, &version));
    let mut warnings = vec![format!(
        "These are results of {}. The machine is not known, and the method of measurement is that \
         of {}.",
        first.tool, first.tool
    )];
    let mut left_out: Vec<_> = results.iter().flat_map(|result| &result.left_out).collect();
    left_out.dedup();
    warnings.extend(left_out.iter().map(|what| format!("Left out: {what}.")));
    let run = Run {
        run: id,
        plan: first.tool.to_owned(),
        started: first.started.clone().unwrap_or(started),
        trials: trials.collect(),
        warnings,
        ..Run::default()
    };
    possible::check(&serde_json::to_value(&run)?)?;
    Ok(run)
}

fn trial(group: &[&Measurement], system: &str, version: &str) -> Option<Trial> {
    let Measurement { work, .. } = *group.first()?;
    let each = |value: fn(&Measurement) -> f64| group.iter().map(|one| value(one)).collect();
    let sum = |value: fn(&Measurement) -> Option<f64>| {
        group.iter().map(|one| value(one)).sum::<Option<f64>>()
    };
    let total = |value: fn(&Measurement) -> Option<u64>| {
        let mut values = group.iter().map(|one| value(one));
        values.try_fold(0, |sum: u64, value| Some(sum.saturating_add(value?)))
    };
    let seconds: Option<Vec<f64>> = group.iter().map(|one| one.seconds).collect();
    let (mb_s, iops): (Vec<f64>, Vec<f64>) = (each(|one| one.mb_s), each(|one| one.iops));
    let moves_bytes = mb_s.iter().any(|rate| *rate > 0.0);
    Some(Trial {
        tier: work.tier,
        system: system.to_owned(),
        system_version: version.to_owned(),
        backend: None,
        cipher: work.cipher.clone(),
        key_bits: work.key_bits,
        sector_bytes: None,
        format: None,
        device: work.device.clone(),
        workload: work.workload.clone(),
        op: work.op.to_owned(),
        block_bytes: work.block_bytes,
        queue_depth: work.queue_depth,
        threads: work.threads,
        fsync: None,
        cold: false,
        repetitions: group.len() as u32,
        bytes: total(|one| one.bytes),
        requests: total(|one| one.requests),
        throughput_mb_s: stats::interval(&mb_s)?,
        iops: stats::interval(&iops)?,
        cycles_per_byte: None,
        latency_us: match moves_bytes {
            true => group.last()?.latency_us.clone(),
            false => seconds.clone().map(times),
        },
        time_s: TimeSplit {
            wall: sum(|one| one.seconds),
            user: sum(|one| one.user),
            sys: sum(|one| one.sys),
            cpu: sum(|one| Some(one.user? + one.sys?)),
            ..TimeSplit::default()
        },
        latency_split_us: None,
        overhead: None,
        energy: None,
        bottleneck: Bottleneck::Unknown,
        steady_state: None,
        constant_time: None,
        samples_mb_s: mb_s,
        warnings: Vec::new(),
        published: Vec::new(),
        detail: match moves_bytes {
            true => Detail::Requests,
            false => Detail::Operation(Box::new(FileOperation {
                samples_s: seconds.unwrap_or_default(),
                ..FileOperation::default()
            })),
        },
    })
}

/// The times of repetitions of which each is one operation, in seconds.
fn times(mut seconds: Vec<f64>) -> Latency {
    seconds.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let rank = (share * seconds.len() as f64).ceil() as usize;
        seconds[rank.clamp(1, seconds.len()) - 1] * 1e6
    };
    Latency {
        p50: stats::median(&seconds).unwrap_or_default() * 1e6,
        p90: at(0.9),
        p99: at(0.99),
        p99_9: at(0.999),
        max: at(1.0),
        curve: Vec::new(),
    }
}

/// A name that every cell of a run repeats: its beginning, or a run would be many times as long as
/// its file.
fn word(text: &str) -> String {
    text.chars().take(MOST_WORD).collect()
}

/// The device of a result, as far as the result states it.
fn device(cache: &str, engine: &str) -> Device {
    let unknown = || "unknown".to_owned();
    Device {
        kind: unknown(),
        path_kind: unknown(),
        cache: cache.to_owned(),
        engine: word(engine),
        ..Device::default()
    }
}

/// Bytes a second in a unit of 10⁶, and requests a second; `None` if the numbers do not give a
/// rate.
fn rates(bytes: u64, requests: u64, seconds: f64) -> Option<(f64, f64)> {
    let usable = seconds.is_finite() && seconds > 0.0;
    usable.then(|| (bytes as f64 / 1e6 / seconds, requests as f64 / seconds))
}
