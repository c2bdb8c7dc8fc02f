//! What `fio --output-format=json` writes, from version 3 on.

use super::{ImportError, Measurement, Results, Work, device, rates};
use crate::record::{Latency, Tier};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};

const TOOL: &str = "fio";

#[derive(Deserialize)]
pub(super) struct Output {
    #[serde(rename = "fio version")]
    version: String,
    /// Seconds since 1970.
    timestamp: Option<i64>,
    #[serde(rename = "global options", default)]
    global: BTreeMap<String, String>,
    jobs: Vec<Job>,
}

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
    /// Per cent of the job's time.
    usr_cpu: Option<f64>,
    sys_cpu: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Direction {
    io_bytes: u64,
    total_ios: u64,
    /// Milliseconds.
    runtime: f64,
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
    for job in &output.jobs {
        let Some(measured) = measurement(job, &output.global) else {
            continue;
        };
        let next = measurements.len();
        match *places
            .entry((job.groupid, measured.work.clone()))
            .or_insert(next)
        {
            place if place < next => measurements[place].beside(measured),
            _ => measurements.push(measured),
        }
    }
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
        left_out: Vec::new(),
        measurements,
    })
}

/// A job that ended well and moved bytes.
fn measurement(job: &Job, global: &BTreeMap<String, String>) -> Option<Measurement> {
    let option = |name| job.options.get(name).or_else(|| global.get(name));
    let number = |name| option(name).and_then(|value| value.parse().ok());
    let (read, write) = (&job.read, &job.write);
    let (op, latency) = match (read.io_bytes > 0, write.io_bytes > 0) {
        _ if job.error != 0 => return None,
        (true, false) => ("read", latency(read)),
        (false, true) => ("write", latency(write)),
        // fio has no percentiles of both together.
        (true, true) => ("mixed", Latency::default()),
        (false, false) => return None,
    };
    let bytes = read.io_bytes.checked_add(write.io_bytes)?;
    let requests = read.total_ios.checked_add(write.total_ios)?;
    let seconds = read.runtime.max(write.runtime) / 1e3;
    let (mb_s, iops) = rates(bytes, requests, seconds)?;
    let cache = match option("direct").map(String::as_str) {
        Some("1") => "direct",
        _ => "buffered",
    };
    let engine = option("ioengine").map_or("psync", String::as_str);
    let share = |percent: Option<f64>| percent.map(|percent| percent / 100.0 * seconds);
    Some(Measurement {
        work: Work {
            tier: Tier::Block,
            cipher: None,
            key_bits: None,
            workload: job.jobname.clone(),
            op,
            block_bytes: (bytes as f64 / requests.max(1) as f64).round() as u64,
            queue_depth: number("iodepth").unwrap_or(1),
            threads: number("numjobs").unwrap_or(1),
            device: device(cache, engine),
        },
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
    /// Adds what another process of the same job did meanwhile.
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

/// From submission to completion where fio was asked for that, or else from the
/// end of submission on.
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
