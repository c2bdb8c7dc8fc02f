//! From what operations on file systems took to records.

use super::DOMINANT;
use crate::file_system::OperationSample;
use crate::record::{Bottleneck, Detail, FileOperation, TimeSplit, Trial};
use crate::trial::{Sample, histogram};

/// CPU time, summed over repetitions, above which its split into user and system is meaningful,
/// seconds. It applies to times counted in ticks, and is 20 ticks of 10 ms.
const ENOUGH: f64 = 0.2;

/// Share by which a part may exceed its whole before a warning.
const SLACK: f64 = 0.02;

/// By how much more than that the counters of one repetition may be wrong, seconds:
/// reading them takes as long, and not always equally long.
const READING: f64 = 50e-6;

/// A repetition, at the full speed of its core if the speed is known. Only its time is comparable
/// to that of requests; [`complete`] adds the rest.
pub fn sample(taken: &OperationSample) -> Sample {
    let taken = taken.at_full_pace();
    let mut latency = histogram();
    latency.saturating_record((taken.wall * 1e9) as u64);
    Sample {
        wall: taken.wall,
        bytes: taken.bytes,
        requests: taken.requests,
        latency,
        ..Sample::default()
    }
}

/// Adds to the record of a cell what is known of operations on `file_system` alone. `exact` says whether the
/// kernel tells user from system time without ticks, `cores` how many processors could work at
/// a time.
pub fn complete(
    trial: &mut Trial,
    file_system: &str,
    all: &[OperationSample],
    exact: bool,
    cores: u32,
) {
    let all = &all[..all.len().min(trial.repetitions as usize)];
    let paced: Vec<OperationSample> = all.iter().map(OperationSample::at_full_pace).collect();
    let samples = paced.as_slice();
    let time = time_split(samples, exact);
    trial.detail = Detail::Operation(Box::new(FileOperation {
        fs: Some(file_system.to_owned()),
        moved: samples.iter().map(|sample| sample.moved).sum(),
        samples_s: samples.iter().map(|sample| sample.wall).collect(),
        samples_pace: all_known(all, |sample| sample.pace),
        samples_crypto_s: all_known(samples, |sample| sample.crypto),
        samples_sys_s: match time.sys {
            Some(_) => all_known(samples, |sample| sample.sys),
            None => Vec::new(),
        },
    }));
    trial.latency_split_us = None;
    trial.bottleneck = bottleneck(&time);
    trial.warnings = warnings(&time, samples.len(), cores);
    trial.time_s = time;
}

/// A part of the time of every repetition; empty if one is unknown.
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
        wall: Some(samples.iter().map(|sample| sample.wall).sum()),
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

/// Only encryption can be separated from the rest.
fn bottleneck(time: &TimeSplit) -> Bottleneck {
    match time.crypto.zip(time.wall) {
        Some((crypto, wall)) if crypto >= DOMINANT * wall => Bottleneck::Cipher,
        _ => Bottleneck::Unknown,
    }
}

/// The parts against the whole.
fn warnings(time: &TimeSplit, repetitions: usize, cores: u32) -> Vec<String> {
    let wall = time.wall.unwrap_or_default();
    let most = wall * f64::from(cores.max(1)) * (1.0 + SLACK) + READING * repetitions as f64;
    let parts = [
        ("encryption", time.crypto),
        (
            "the measured programs and the kernel's threads",
            time.cpu.map(|cpu| cpu + time.workers.unwrap_or(0.0)),
        ),
    ];
    parts
        .into_iter()
        .filter_map(|(what, part)| Some((what, part.filter(|part| *part > most)?)))
        .map(|(what, part)| {
            format!(
                "{what} took {part:.3} s of CPU time, but {cores} processors had only {most:.3} s; \
                 other programs ran too, so run again on an idle machine"
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_system::Operation;
    use crate::record::{Moved, Tier, Verdict};
    use crate::summary::{self, Reference};
    use crate::trial::Samples;

    fn taken(wall: f64) -> OperationSample {
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

    fn identity() -> Trial {
        Trial {
            tier: Tier::Fs,
            system: "lab:dm-crypt".into(),
            system_version: "5.10".into(),
            cipher: Some("aes-cbc-plain".into()),
            key_bits: Some(256),
            sector_bytes: Some(512),
            ..Trial::default()
        }
    }

    fn summed(taken: &[OperationSample], plain: &[OperationSample], exact: bool) -> Trial {
        let samples = |taken: &[OperationSample]| -> Samples { taken.iter().map(sample).collect() };
        let reference = Reference {
            against: "lab:none",
            rates: samples(plain).rates(),
            floor: 0.01,
        };
        let workload = Operation::command("tar").workload(1, true);
        let (identity, samples) = (identity(), samples(taken));
        let trial = summary::trial(&identity, &workload, &samples, Some(reference), None);
        let mut trial = trial.unwrap();
        complete(&mut trial, "ext2", taken, exact, 1);
        trial
    }

    #[test]
    fn a_cell_says_what_its_samples_say() {
        let plain = [0.010, 0.011, 0.009].map(taken);
        let slow = [0.020, 0.022, 0.018].map(taken);
        let trial = summed(&slow, &plain, true);
        let overhead = trial.overhead.clone().unwrap();
        assert!((overhead.ratio.median - 0.5).abs() < 1e-9);
        assert_eq!(overhead.verdict, Verdict::Slower);
        assert_eq!(trial.bottleneck, Bottleneck::Cipher);
        assert_eq!((trial.threads, trial.cold), (Some(1), true));
        assert!((trial.throughput_mb_s.median - 50.0).abs() < 1e-9);
        let operation = trial.operation().unwrap();
        assert_eq!(operation.fs.as_deref(), Some("ext2"));
        assert_eq!(operation.samples_s, [0.020, 0.022, 0.018]);
        assert_eq!(operation.samples_crypto_s, [0.010, 0.011, 0.009]);
        assert_eq!(operation.samples_sys_s.len(), 3);
        assert!((trial.time_s.sys.unwrap() - 0.012).abs() < 1e-9);
        assert!((trial.time_s.cpu.unwrap() - 0.018).abs() < 1e-9);
        let moved = operation.moved.unwrap();
        assert_eq!(
            (moved.read_bytes, moved.reads, moved.writes),
            (12_288, 0, 3)
        );
        assert!(trial.warnings.is_empty(), "{:?}", trial.warnings);
    }

    #[test]
    fn times_are_those_of_the_full_pace() {
        let mut slow = [0.010, 0.010].map(taken);
        let plain = [0.005, 0.005].map(taken);
        slow[0].pace = Some(0.5);
        slow[1].pace = Some(0.8);
        let trial = summed(&slow, &plain, true);
        let operation = trial.operation().unwrap();
        assert_eq!(operation.samples_pace, [0.5, 0.8]);
        assert_eq!(operation.samples_s, [0.005, 0.008]);
        assert_eq!(operation.samples_crypto_s, [0.0025, 0.004]);
        assert!((trial.time_s.wall.unwrap() - 0.013).abs() < 1e-9);
        assert!((trial.time_s.sys.unwrap() - 0.0026).abs() < 1e-9);
        assert!((trial.overhead.unwrap().ratio.median - 0.8125).abs() < 1e-9);
        // One that is not known: the cell's paces are not stated.
        slow[1].pace = None;
        let unpaced = summed(&slow, &plain, true);
        assert!(unpaced.operation().unwrap().samples_pace.is_empty());
    }

    #[test]
    fn ticks_say_nothing_about_short_operations() {
        let short = [0.01, 0.01].map(taken);
        let trial = summed(&short, &short, false);
        assert_eq!((trial.time_s.user, trial.time_s.sys), (None, None));
        assert!(trial.time_s.cpu.is_some() && trial.operation().unwrap().samples_sys_s.is_empty());
        let long = [1.0, 1.0].map(taken);
        assert!(summed(&long, &long, false).time_s.sys.is_some());
    }

    #[test]
    fn a_part_beyond_the_whole_is_told() {
        let mut odd = [1.0, 1.0].map(taken);
        odd[0].crypto = Some(2.0);
        let trial = summed(&odd, &odd, true);
        assert_eq!(trial.warnings.len(), 1, "{:?}", trial.warnings);
        assert!(trial.warnings[0].contains("encryption took 2.500 s"));
        odd[1].crypto = None;
        assert_eq!(summed(&odd, &odd, true).time_s.crypto, None);
    }
}
