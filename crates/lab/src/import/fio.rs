//! Reads the output of `fio --output-format=json`, from version 3 on.

use super::{ImportError, Measurement, Results, Work, device, rates};
use crate::record::{Latency, Tier};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

const TOOL: &str = "fio";

#[derive(Deserialize)]
pub(super) struct Output {
    #[serde(rename = "fio version")]
    version: String,
    /// Seconds since 1970.
    timestamp: Option<i64>,
    #[serde(rename = "global options", default)]
    global: BTreeMap<String, String>,
    /// Of several machines that one command had measure, by another name.
    #[serde(alias = "client_stats")]
    jobs: Vec<Job>,
}

/// Fio's name for the sum over all machines.
const ALL: &str = "All clients";

/// Engines that keep one request in flight, whatever queue depth the job states.
const ONE_AT_A_TIME: [&str; 7] = [
    "sync",
    "psync",
    "vsync",
    "pvsync",
    "pvsync2",
    "mmap",
    "ftruncate",
];

#[derive(Deserialize)]
struct Job {
    jobname: String,
    #[serde(default)]
    groupid: u64,
    #[serde(default)]
    error: i64,
    #[serde(rename = "job options", default)]
    options: BTreeMap<String, String>,
    #[serde(default)]
    read: Direction,
    #[serde(default)]
    write: Direction,
    #[serde(default)]
    trim: Direction,
    /// Per cent of the job's time.
    usr_cpu: Option<f64>,
    sys_cpu: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Direction {
    io_bytes: u64,
    total_ios: u64,
    /// Milliseconds, cut off.
    runtime: f64,
    /// Bytes and requests a second.
    bw_bytes: f64,
    iops: f64,
    lat_ns: Spread,
    clat_ns: Spread,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct Spread {
    max: f64,
    percentile: BTreeMap<String, f64>,
}

pub(super) fn read(output: Output) -> Result<Results, ImportError> {
    let major = output
        .version
        .strip_prefix("fio-")
        .and_then(|version| version.split(['.', '-']).next())
        .and_then(|major| major.parse().ok());
    if major.is_none_or(|major: u32| major < 3) {
        let version = output.version;
        return Err(ImportError::OldFio { version });
    }
    // Clones of a job are one measurement; a file may have many thousands of jobs.
    let mut places = HashMap::new();
    let mut measurements: Vec<Measurement> = Vec::new();
    let mut left_out = Vec::new();
    // One name for several files is not one job that was repeated.
    let mut files: HashMap<&str, BTreeSet<&str>> = HashMap::new();
    for job in &output.jobs {
        files.entry(&job.jobname).or_default().insert(job.file());
    }
    for job in output.jobs.iter().filter(|job| job.jobname != ALL) {
        if job.error != 0 {
            left_out.push("jobs that failed");
            continue;
        }
        let Some(mut measured) = measurement(job, &output.global) else {
            left_out.push("jobs that moved no data");
            continue;
        };
        if files
            .get(job.jobname.as_str())
            .is_some_and(|files| files.len() > 1)
        {
            let work = Arc::make_mut(&mut measured.work);
            work.workload = format!("{} ({})", job.jobname, job.file());
        }
        let next = measurements.len();
        match *places
            .entry((job.groupid, measured.work.clone()))
            .or_insert(next)
        {
            place if place < next => measurements[place].beside(measured),
            _ => measurements.push(measured),
        }
    }
    left_out.sort_unstable();
    left_out.dedup();
    if measurements.is_empty() {
        return Err(ImportError::Empty { tool: TOOL });
    }
    let started = output.timestamp.and_then(|seconds| {
        let started = jiff::Timestamp::from_second(seconds).ok()?;
        Some(started.to_string())
    });
    Ok(Results {
        tool: TOOL,
        version: Some(output.version),
        started,
        left_out,
        measurements,
    })
}

impl Job {
    /// The file or directory that the job worked on, if its options state it.
    fn file(&self) -> &str {
        let place = ["filename", "directory"].iter();
        place
            .filter_map(|name| self.options.get(*name))
            .map(String::as_str)
            .next()
            .unwrap_or("no file of its own")
    }
}

/// A job that moved bytes.
fn measurement(job: &Job, global: &BTreeMap<String, String>) -> Option<Measurement> {
    let option = |name: &str| job.options.get(name).or_else(|| global.get(name));
    let number = |name: &str| option(name).and_then(|value| value.parse().ok());
    let all = [
        ("read", &job.read),
        ("write", &job.write),
        ("trim", &job.trim),
    ];
    let done: Vec<_> = all.iter().filter(|(_, way)| way.io_bytes > 0).collect();
    let (op, latency) = match done.as_slice() {
        [] => return None,
        [(op, way)] => (*op, latency(way)),
        // fio has no percentiles of several together.
        _ => ("mixed", Latency::default()),
    };
    let sum = |part: fn(&Direction) -> u64| {
        let mut parts = done.iter().map(|(_, way)| part(way));
        parts.try_fold(0_u64, u64::checked_add)
    };
    let (bytes, requests) = (sum(|way| way.io_bytes)?, sum(|way| way.total_ios)?);
    let milliseconds = done.iter().map(|(_, way)| way.runtime);
    let seconds = milliseconds.fold(0.0, f64::max) / 1e3;
    let (mb_s, iops) = match seconds > 0.0 {
        true => rates(bytes, requests, seconds)?,
        // It was over within the millisecond, of which fio knows the parts.
        false => {
            let rate = |part: fn(&Direction) -> f64| done.iter().map(|(_, way)| part(way)).sum();
            let (bytes, requests): (f64, f64) = (rate(|way| way.bw_bytes), rate(|way| way.iops));
            (bytes / 1e6, requests)
        }
    };
    let said =
        |name: &str, values: [&str; 2]| option(name).is_some_and(|v| values.contains(&v.as_str()));
    let cache = match said("direct", ["1", "true"]) || said("buffered", ["0", "false"]) {
        true => "direct",
        false => "buffered",
    };
    let engine = option("ioengine").map_or("psync", String::as_str);
    let depth = match ONE_AT_A_TIME.contains(&engine) {
        true => 1,
        false => number("iodepth").unwrap_or(1),
    };
    let share = |percent: Option<f64>| percent.map(|percent| percent / 100.0 * seconds);
    Some(Measurement {
        work: Arc::new(Work {
            tier: Tier::Block,
            cipher: None,
            key_bits: None,
            workload: job.jobname.clone(),
            op,
            block_bytes: (bytes as f64 / requests.max(1) as f64).round() as u64,
            queue_depth: depth,
            threads: number("numjobs").unwrap_or(1),
            device: device(cache, engine),
        }),
        seconds,
        bytes,
        requests,
        mb_s,
        iops,
        latency_us: latency,
        user: share(job.usr_cpu),
        sys: share(job.sys_cpu),
    })
}

impl Measurement {
    /// Adds the concurrent work of another process of the same job.
    fn beside(&mut self, other: Self) {
        self.seconds = self.seconds.max(other.seconds);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.requests = self.requests.saturating_add(other.requests);
        self.mb_s += other.mb_s;
        self.iops += other.iops;
        // Percentiles of several processes do not add up.
        self.latency_us = Latency::default();
        self.user = self.user.zip(other.user).map(|(a, b)| a + b);
        self.sys = self.sys.zip(other.sys).map(|(a, b)| a + b);
    }
}

/// From submission to completion if fio recorded that, or else from the end of submission on.
fn latency(direction: &Direction) -> Latency {
    let Direction {
        lat_ns, clat_ns, ..
    } = direction;
    let spread = match lat_ns.percentile.is_empty() {
        true => clat_ns,
        false => lat_ns,
    };
    let points = spread.percentile.iter().filter_map(|(name, ns)| {
        let percentile: f64 = name.parse().ok()?;
        Some((percentile, ns / 1e3))
    });
    let mut curve: Vec<(f64, f64)> = points.collect();
    curve.sort_by(|a, b| a.0.total_cmp(&b.0));
    let at = |percentile: f64| {
        let point = curve.iter().find(|(at, _)| *at == percentile);
        point.map_or(0.0, |(_, us)| *us)
    };
    Latency {
        p50: at(50.0),
        p90: at(90.0),
        p99: at(99.0),
        p99_9: at(99.9),
        max: spread.max / 1e3,
        curve,
    }
}
