//! Reads the output of `fio --output-format=json`, from version 3 on.

mod asked;

use super::{ImportError, Measurement, Results, Work, device, rates};
use crate::record::{Device, Latency, Tier};
use asked::{Asked, Options};
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
    global: Options,
    /// Of several machines that one command had measure, by another name.
    #[serde(alias = "client_stats")]
    jobs: Vec<Job>,
}

/// Fio's name for the sum over all machines.
const ALL: &str = "All clients";

#[derive(Deserialize)]
struct Job {
    jobname: String,
    #[serde(default)]
    groupid: u64,
    /// The machine, if several measured.
    hostname: Option<String>,
    #[serde(default)]
    error: i64,
    /// The errors after which a job went on.
    #[serde(default)]
    total_err: i64,
    /// When it began, milliseconds since 1970.
    job_start: Option<u64>,
    /// Seconds since fio began.
    #[serde(default)]
    elapsed: i64,
    #[serde(rename = "job options", default)]
    options: Options,
    #[serde(default)]
    read: Direction,
    #[serde(default)]
    write: Direction,
    #[serde(default)]
    trim: Direction,
    /// All of them together, if fio was told to report them so.
    #[serde(default)]
    mixed: Direction,
    /// Shares of the requests, per cent, by how many were in flight: `1`, `2`, `4`, … `>=64`.
    #[serde(default)]
    iodepth_level: BTreeMap<String, f64>,
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

/// The results in one text: those of several commands, or the states of one command at intervals,
/// of which the last has what all before it have.
pub(super) fn read(outputs: Vec<Output>) -> Result<Results, ImportError> {
    let mut last: Vec<Output> = Vec::new();
    for output in outputs {
        match last.last_mut() {
            Some(before) if output.goes_on(before) => *before = output,
            _ => last.push(output),
        }
    }
    let (mut measurements, mut left_out) = (Vec::new(), Vec::new());
    for output in &last {
        output.check()?;
        measurements.extend(output.measurements(&mut left_out));
    }
    left_out.sort_unstable();
    left_out.dedup();
    if measurements.is_empty() {
        return Err(ImportError::Empty { tool: TOOL });
    }
    let mut versions = last.iter().map(|output| output.version.as_str());
    let version = versions
        .next()
        .filter(|first| versions.all(|next| next == *first));
    let started = last.first().and_then(|output| output.timestamp);
    let started = started.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    Ok(Results {
        tool: TOOL,
        version: version.map(str::to_owned),
        started: started.map(|started| started.to_string()),
        left_out,
        measurements,
    })
}

impl Output {
    fn check(&self) -> Result<(), ImportError> {
        let major = self
            .version
            .strip_prefix("fio-")
            .and_then(|version| version.split(['.', '-']).next())
            .and_then(|major| major.parse().ok());
        match major.is_none_or(|major: u32| major < 3) {
            true => Err(ImportError::OldFio {
                version: self.version.clone(),
            }),
            false => Ok(()),
        }
    }

    /// Whether this is a later state of the command that was at `before`.
    fn goes_on(&self, before: &Self) -> bool {
        let same = |(job, old): (&Job, &Job)| {
            let starts = job.job_start.zip(old.job_start);
            job.jobname == old.jobname
                && job.elapsed >= old.elapsed
                && job.moved() >= old.moved()
                && starts.is_none_or(|(new, old)| new == old)
        };
        let begun = |output: &Self| {
            let elapsed = output.jobs.iter().map(|job| job.elapsed).max();
            output
                .timestamp
                .zip(elapsed)
                .map(|(at, elapsed)| at.saturating_sub(elapsed))
        };
        let near = |(new, old): (i64, i64)| new.abs_diff(old) <= 1;
        let knows_starts = self.jobs.iter().all(|job| job.job_start.is_some());
        let elapsed = |output: &Self| output.jobs.iter().map(|job| job.elapsed).max();
        self.jobs.len() == before.jobs.len()
            && self.jobs.iter().zip(&before.jobs).all(same)
            && (knows_starts
                || begun(self).zip(begun(before)).is_some_and(near)
                    && elapsed(self) > elapsed(before))
    }

    fn measurements(&self, left_out: &mut Vec<&'static str>) -> Vec<Measurement> {
        let jobs = || self.jobs.iter().filter(|job| job.jobname != ALL);
        // One name for several files is not one job that was repeated.
        let mut files: HashMap<&str, BTreeSet<&str>> = HashMap::new();
        let mut alike: HashMap<_, u32> = HashMap::new();
        for job in jobs() {
            let asked = Asked::new(&job.options, &self.global);
            files.entry(&job.jobname).or_default().insert(asked.file());
            *alike.entry(job.clone_of()).or_default() += 1;
        }
        // Clones of a job are one measurement; a file may have many thousands of jobs.
        let mut places = HashMap::new();
        let mut measurements: Vec<Measurement> = Vec::new();
        for job in jobs() {
            if job.error != 0 || job.total_err != 0 {
                left_out.push("jobs that failed");
                continue;
            }
            let asked = Asked::new(&job.options, &self.global);
            let Some(mut measured) = measurement(job, &asked, left_out) else {
                left_out.push("jobs that moved no data");
                continue;
            };
            let mut others = asked.others(&job.jobname);
            if files[job.jobname.as_str()].len() > 1 {
                others.insert(0, asked.file().to_owned());
            }
            let work = Arc::make_mut(&mut measured.work);
            if !others.is_empty() {
                work.workload = format!("{} ({})", job.jobname, others.join(", "));
            }
            let clones = alike[&job.clone_of()];
            let are_clones = job.hostname.is_some() || asked.threads() == Some(clones);
            let next = measurements.len();
            // Others of the same name ran one after the other, or it is not known.
            match are_clones {
                true => match *places
                    .entry((job.groupid, measured.work.clone()))
                    .or_insert(next)
                {
                    place if place < next => measurements[place].beside(measured),
                    _ => measurements.push(measured),
                },
                false => measurements.push(measured),
            }
        }
        measurements
    }
}

impl Job {
    fn clone_of(&self) -> (u64, &str, &Options) {
        (self.groupid, &self.jobname, &self.options)
    }

    fn moved(&self) -> u64 {
        let all = [&self.read, &self.write, &self.trim, &self.mixed];
        all.iter()
            .fold(0, |sum, way| way.io_bytes.saturating_add(sum))
    }

    /// `depth`, unless this is a report of several jobs that had others.
    fn had_depth(&self, depth: u32, is_grouped: bool) -> bool {
        if self.iodepth_level.is_empty() {
            return !is_grouped;
        }
        let bin = 1 << depth.clamp(1, 64).ilog2();
        let share = |is_wanted: &dyn Fn(u32) -> bool| -> f64 {
            let bins = self.iodepth_level.iter().filter(|(name, _)| {
                let name = name.strip_prefix(">=").unwrap_or(name);
                name.parse().is_ok_and(is_wanted)
            });
            bins.map(|(_, share)| share).sum()
        };
        // At the beginning and at the end fewer are in flight.
        share(&|level| level > bin) < 0.1 && (!is_grouped || share(&|level| level == bin) >= 90.0)
    }
}

/// A job that moved bytes.
fn measurement(
    job: &Job,
    asked: &Asked<'_>,
    left_out: &mut Vec<&'static str>,
) -> Option<Measurement> {
    let all = [
        ("read", &job.read),
        ("write", &job.write),
        ("trim", &job.trim),
    ];
    let mut done: Vec<_> = all
        .into_iter()
        .filter(|(_, way)| way.io_bytes > 0)
        .collect();
    let pattern = asked.pattern();
    let writes_alone = pattern.is_some_and(|pattern| pattern.ends_with("write"));
    if writes_alone && asked.verifies() && done.iter().any(|(op, _)| *op == "write") {
        let before = done.len();
        done.retain(|(op, _)| *op != "read");
        if done.len() < before {
            left_out.push("reads that verify what was written");
        }
    }
    if done.is_empty() && job.mixed.io_bytes > 0 {
        done.push(("mixed", &job.mixed));
    }
    let (op, latency) = match done.as_slice() {
        [] => return None,
        [(op, way)] => (*op, latency(way)),
        // fio has no percentiles of several together.
        _ => ("mixed", None),
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
    let depth = asked.queue_depth();
    let share = |percent: Option<f64>| percent.map(|percent| percent / 100.0 * seconds);
    Some(Measurement {
        work: Arc::new(Work {
            tier: Tier::Block,
            cipher: None,
            key_bits: None,
            workload: job.jobname.clone(),
            op,
            block_bytes: asked.block_bytes(op),
            queue_depth: depth.filter(|depth| job.had_depth(*depth, asked.is_grouped())),
            threads: asked.threads(),
            device: Device {
                size: asked.size().unwrap_or_default(),
                ..device(asked.cache(), asked.engine().unwrap_or("unknown"))
            },
        }),
        seconds: (seconds > 0.0).then_some(seconds),
        bytes: Some(bytes),
        requests: Some(requests),
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
        let both = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a.saturating_add(b));
        self.seconds = self.seconds.zip(other.seconds).map(|(a, b)| a.max(b));
        self.bytes = both(self.bytes, other.bytes);
        self.requests = both(self.requests, other.requests);
        self.mb_s += other.mb_s;
        self.iops += other.iops;
        // Percentiles of several processes do not add up.
        self.latency_us = None;
        self.user = self.user.zip(other.user).map(|(a, b)| a + b);
        self.sys = self.sys.zip(other.sys).map(|(a, b)| a + b);
    }
}

/// From submission to completion if fio recorded that, or else from the end of submission on.
fn latency(direction: &Direction) -> Option<Latency> {
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
        point.map(|(_, us)| *us)
    };
    Some(Latency {
        p50: at(50.0)?,
        p90: at(90.0)?,
        p99: at(99.0)?,
        p99_9: at(99.9)?,
        max: spread.max / 1e3,
        curve,
    })
}
