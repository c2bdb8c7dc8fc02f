//! From what operations on file systems took to records.

use super::{DOMINANT, Identity, Reference, overhead, percentiles};
use crate::file_system::{Operation, OperationSample};
use crate::record::{Bottleneck, Latency, TimeSplit, Trial};
use crate::stats::{self, Looks};
use crate::trial::histogram;

/// CPU time, summed over repetitions, from which on its split into user and
/// system is meaningful where it is counted in ticks: 20 of 10 ms, seconds.
const ENOUGH: f64 = 0.2;

/// Share by which a part may exceed what it is a part of before that is told.
const SLACK: f64 = 0.02;

/// By how much more than that the counters of one repetition may be wrong, seconds:
/// reading them takes as long, and not always equally long.
const READING: f64 = 50e-6;

/// What an operation's cell is, apart from what was measured.
#[derive(Clone, Debug)]
pub struct Cell<'a> {
    /// The system.
    pub identity: &'a Identity,
    /// As the kernel names it.
    pub file_system: &'a str,
    /// What was done.
    pub operation: &'a Operation,
    /// How many did it at a time.
    pub jobs: u32,
    /// Whether everything was forgotten before.
    pub cold: bool,
    /// Whether the kernel tells user from system time without ticks.
    pub exact: bool,
    /// Processors that could work for it at a time.
    pub cores: u32,
}

/// How often each of `samples` could be done in a second, at full pace.
pub fn rates(samples: &[OperationSample]) -> Vec<f64> {
    let walls = samples.iter().map(|sample| sample.at_full_pace().wall);
    walls.map(|wall| 1.0 / wall).collect()
}

/// Summarises a cell's repetitions, all of them at the full pace of their core
/// where that is known; `None` before the first is done.
pub fn trial(
    cell: &Cell<'_>,
    samples: &[OperationSample],
    reference: Option<Reference<'_>>,
) -> Option<Trial> {
    let identity = cell.identity;
    let samples_pace = all_known(samples, |sample| sample.pace);
    let paced: Vec<OperationSample> = samples.iter().map(OperationSample::at_full_pace).collect();
    let samples = paced.as_slice();
    let mb_s: Vec<f64> = samples
        .iter()
        .map(|sample| sample.bytes as f64 / sample.wall / 1e6)
        .collect();
    let iops: Vec<f64> = samples
        .iter()
        .map(|sample| sample.requests as f64 / sample.wall)
        .collect();
    let time = time_split(samples, cell.exact);
    Some(Trial {
        tier: identity.tier,
        system: identity.system.clone(),
        system_version: identity.system_version.clone(),
        backend: identity.backend.clone(),
        cipher: identity.cipher.clone(),
        key_bits: identity.key_bits,
        sector_bytes: identity.sector_bytes,
        format: identity.format.clone(),
        device: identity.device.clone(),
        fs: Some(cell.file_system.to_owned()),
        workload: cell.operation.name.clone(),
        op: cell.operation.op.as_str().to_owned(),
        block_bytes: cell.operation.buffer.as_u64(),
        queue_depth: 1,
        threads: cell.jobs,
        cold: cell.cold,
        repetitions: samples.len() as u32,
        bytes: samples.iter().map(|sample| sample.bytes).sum(),
        requests: samples.iter().map(|sample| sample.requests).sum(),
        moved: samples.iter().map(|sample| sample.moved).sum(),
        throughput_mb_s: stats::interval(&mb_s)?,
        iops: stats::interval(&iops)?,
        cycles_per_byte: None,
        latency_us: latency(samples),
        latency_split_us: None,
        overhead: reference.and_then(|reference| overhead(&rates(samples), reference, Looks::Once)),
        bottleneck: bottleneck(&time),
        steady_state: None,
        constant_time: identity.constant_time,
        samples_mb_s: mb_s,
        samples_pace,
        samples_s: samples.iter().map(|sample| sample.wall).collect(),
        samples_crypto_s: all_known(samples, |sample| sample.crypto),
        samples_sys_s: match time.sys {
            Some(_) => all_known(samples, |sample| sample.sys),
            None => Vec::new(),
        },
        warnings: warnings(&time, samples.len(), cell.cores),
        published: Vec::new(),
        kdf: None,
        life: None,
        time_s: time,
    })
}

/// A part of the time of every repetition; nothing where one is not known.
fn all_known(samples: &[OperationSample], part: fn(&OperationSample) -> Option<f64>) -> Vec<f64> {
    let parts: Option<Vec<f64>> = samples.iter().map(part).collect();
    parts.unwrap_or_default()
}

fn time_split(samples: &[OperationSample], exact: bool) -> TimeSplit {
    let sum =
        |part: fn(&OperationSample) -> Option<f64>| samples.iter().map(part).sum::<Option<f64>>();
    let (user, sys) = (sum(|sample| sample.user), sum(|sample| sample.sys));
    let cpu = user.zip(sys).map(|(user, sys)| user + sys);
    let known = exact || cpu.is_some_and(|cpu| cpu >= ENOUGH);
    TimeSplit {
        wall: samples.iter().map(|sample| sample.wall).sum(),
        user: user.filter(|_| known),
        sys: sys.filter(|_| known),
        cpu,
        workers: sum(|sample| sample.workers),
        crypto: sum(|sample| sample.crypto),
        copy: None,
        submit: None,
        wait: None,
        other: None,
    }
}

/// Percentiles of the repetitions' times.
fn latency(samples: &[OperationSample]) -> Latency {
    let mut all = histogram();
    for sample in samples {
        all.saturating_record((sample.wall * 1e9) as u64);
    }
    percentiles(&all)
}

/// Only encryption can be told from the rest.
fn bottleneck(time: &TimeSplit) -> Bottleneck {
    match time.crypto {
        Some(crypto) if crypto >= DOMINANT * time.wall => Bottleneck::Cipher,
        _ => Bottleneck::Unknown,
    }
}

/// The parts against the whole.
fn warnings(time: &TimeSplit, repetitions: usize, cores: u32) -> Vec<String> {
    let most = time.wall * f64::from(cores.max(1)) * (1.0 + SLACK) + READING * repetitions as f64;
    let parts = [
        ("encryption", time.crypto),
        (
            "those who did it and the kernel's threads",
            time.cpu.map(|cpu| cpu + time.workers.unwrap_or(0.0)),
        ),
    ];
    parts
        .into_iter()
        .filter_map(|(what, part)| Some((what, part.filter(|part| *part > most)?)))
        .map(|(what, part)| {
            format!(
                "more time than there was: {what} took {part:.3} s of CPU time, and {cores} \
                 processors had {most:.3} s; others worked on this machine, so run again when it is idle"
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Device, Moved, Tier, Verdict};

    fn sample(wall: f64) -> OperationSample {
        OperationSample {
            begun: 0.0,
            wall,
            user: Some(wall / 10.0),
            sys: Some(wall / 5.0),
            workers: Some(wall / 10.0),
            crypto: Some(wall / 2.0),
            moved: Some(Moved {
                read_bytes: 4096,
                writes: 1,
                ..Moved::default()
            }),
            bytes: 1_000_000,
            requests: 1,
            pace: None,
        }
    }

    fn identity() -> Identity {
        Identity {
            tier: Tier::Fs,
            system: "lab:dm-crypt".into(),
            system_version: "5.10".into(),
            backend: None,
            cipher: Some("aes-cbc-plain".into()),
            key_bits: Some(256),
            sector_bytes: Some(512),
            format: None,
            constant_time: None,
            device: Device::default(),
            served: false,
        }
    }

    fn cell<'a>(identity: &'a Identity, operation: &'a Operation, exact: bool) -> Cell<'a> {
        Cell {
            identity,
            file_system: "ext2",
            operation,
            jobs: 1,
            cold: true,
            exact,
            cores: 1,
        }
    }

    fn summed(samples: &[OperationSample], plain: &[OperationSample], exact: bool) -> Trial {
        let (identity, operation) = (identity(), Operation::command("tar"));
        let cell = cell(&identity, &operation, exact);
        let reference = Reference {
            against: "lab:none",
            rates: rates(plain),
            floor: 0.01,
        };
        trial(&cell, samples, Some(reference)).unwrap()
    }

    #[test]
    fn a_cell_says_what_its_samples_say() {
        let plain = [0.010, 0.011, 0.009].map(sample);
        let slow = [0.020, 0.022, 0.018].map(sample);
        let trial = summed(&slow, &plain, true);
        let overhead = trial.overhead.unwrap();
        assert!((overhead.ratio.median - 0.5).abs() < 1e-9);
        assert_eq!(overhead.verdict, Verdict::Slower);
        assert_eq!(trial.bottleneck, Bottleneck::Cipher);
        assert_eq!(
            (trial.op.as_str(), trial.fs.as_deref()),
            ("command", Some("ext2"))
        );
        assert!((trial.throughput_mb_s.median - 50.0).abs() < 1e-9);
        assert_eq!(trial.samples_s, [0.020, 0.022, 0.018]);
        assert_eq!(trial.samples_crypto_s, [0.010, 0.011, 0.009]);
        assert_eq!(trial.samples_sys_s.len(), 3);
        assert!((trial.time_s.sys.unwrap() - 0.012).abs() < 1e-9);
        assert!((trial.time_s.cpu.unwrap() - 0.018).abs() < 1e-9);
        let moved = trial.moved.unwrap();
        assert_eq!(
            (moved.read_bytes, moved.reads, moved.writes),
            (12_288, 0, 3)
        );
        assert!(trial.warnings.is_empty(), "{:?}", trial.warnings);
    }

    #[test]
    fn times_are_those_of_the_full_pace() {
        let mut slow = [0.010, 0.010].map(sample);
        let plain = [0.005, 0.005].map(sample);
        slow[0].pace = Some(0.5);
        slow[1].pace = Some(0.8);
        let trial = summed(&slow, &plain, true);
        assert_eq!(trial.samples_pace, [0.5, 0.8]);
        assert_eq!(trial.samples_s, [0.005, 0.008]);
        assert_eq!(trial.samples_crypto_s, [0.0025, 0.004]);
        assert!((trial.time_s.wall - 0.013).abs() < 1e-9);
        assert!((trial.time_s.sys.unwrap() - 0.0026).abs() < 1e-9);
        assert!((trial.overhead.unwrap().ratio.median - 0.8125).abs() < 1e-9);
        // One that is not known: the cell's paces are not stated.
        slow[1].pace = None;
        assert!(summed(&slow, &plain, true).samples_pace.is_empty());
    }

    #[test]
    fn ticks_say_nothing_about_short_operations() {
        let short = [0.01, 0.01].map(sample);
        let trial = summed(&short, &short, false);
        assert_eq!((trial.time_s.user, trial.time_s.sys), (None, None));
        assert!(trial.time_s.cpu.is_some() && trial.samples_sys_s.is_empty());
        let long = [1.0, 1.0].map(sample);
        assert!(summed(&long, &long, false).time_s.sys.is_some());
    }

    #[test]
    fn a_part_beyond_the_whole_is_told() {
        let mut odd = [1.0, 1.0].map(sample);
        odd[0].crypto = Some(2.0);
        let trial = summed(&odd, &odd, true);
        assert_eq!(trial.warnings.len(), 1, "{:?}", trial.warnings);
        assert!(trial.warnings[0].contains("encryption took 2.500 s"));
        odd[1].crypto = None;
        assert_eq!(summed(&odd, &odd, true).time_s.crypto, None);
    }

    #[test]
    fn nothing_measured_is_no_record() {
        let (identity, operation) = (identity(), Operation::command("x"));
        assert!(trial(&cell(&identity, &operation, true), &[], None).is_none());
    }
}
