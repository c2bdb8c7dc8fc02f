//! Sweeps: the same lives on one core, on several and on many hosts, and what they show.

use cryptmark_lab::LabError;
use cryptmark_lab::experiment::{Experiment, Lives};
use cryptmark_lab::record::{Run, Trial, TrimPolicy};
use cryptmark_lab::session::{Observer, Session, Visit};
use cryptmark_lab::shard::{FleetPlan, Matrix, ShardError, ShardNumber, merge};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// A drive so small that a life takes a moment.
const DRIVE: &str = r#"
title = "a small SSD"
kind = "ssd"
capacity = "256 MB"
over_provisioning = 0.07
page = "4 KiB"
pages_per_block = 64
channels = 2
chips_per_channel = 1
read_us = 50
program_us = 500
erase_ms = 3
channel_mb_s = 200
interface_mb_s = 300
command_us = 20
cache = "64 KiB"
erase_cycles = 1000
"#;

/// Two fills and two over-provisionings: four places of 8 lives each.
fn specification(folder: &Path) -> String {
    let drive = folder.join("small.toml");
    std::fs::write(&drive, DRIVE).unwrap();
    format!(
        r#"
title = "a small SSD, full and not"
devices = [{drive:?}]
policies = ["pass", "block"]
over_provisioning = ["7%", "28%"]
fills = ["50%", "90%"]
seeds = 4
daily = "1 GB"
years = 0.1
ciphers = ["aes-xts-plain64", "serpent-xts-plain64"]
cpu = {{ aes = "1500MB/s", serpent = "30MB/s" }}

[[workload]]
name = "rand-4k-read"
pattern = "random"
op = "read"
block_size = "4 KiB"
bytes = "1 MiB"

[[workload]]
name = "rand-4k-write"
pattern = "random"
op = "write"
block_size = "4 KiB"
bytes = "8 MiB"
"#
    )
}

/// Keeps nothing, and stops after a given number of seeds.
struct Until<'a> {
    done: u64,
    stop: &'a AtomicBool,
    kept: usize,
}

impl Observer for Until<'_> {
    fn visiting(&mut self, visit: &Visit<'_>) {
        if visit.done >= self.done {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    fn keep(
        &mut self,
        run: &Run,
        changed: &[usize],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        // Each trial once, in order, and all that there are.
        assert_eq!(changed.first(), Some(&self.kept));
        self.kept = run.trials.len();
        assert_eq!(changed.last(), Some(&(self.kept - 1)));
        Ok(())
    }
}

/// A session of `lives` on `cores` cores.
fn session(lives: &Lives, cores: usize, seed: u64) -> Session<'static> {
    Session::of_lives(lives, cores, seed, "id".into()).unwrap()
}

fn lived(session: Session<'_>, done: u64) -> (Run, Result<(), LabError>) {
    let stop = AtomicBool::new(false);
    let kept = session.header().trials.len();
    let mut observer = Until {
        done,
        stop: &stop,
        kept,
    };
    session.measure(&stop, &mut observer)
}

fn whole(lives: &Lives, seed: u64, cores: usize) -> Run {
    let (run, outcome) = lived(session(lives, cores, seed), u64::MAX);
    outcome.unwrap();
    assert!(!run.partial);
    run
}

#[test]
fn lives_are_the_same_wherever_they_are_lived() {
    let folder = tempfile::tempdir().unwrap();
    let text = specification(folder.path());
    let lives = Lives::parse("small", &text).unwrap();
    let run = whole(&lives, 7, 1);
    // Four places, of which each has plain and two policies with two ciphers.
    assert_eq!(run.trials.len(), 4 * 5 * 2);
    assert_eq!(whole(&lives, 7, 3).trials, run.trials, "three cores");
    let other = whole(&lives, 8, 2);
    assert_ne!(other.trials, run.trials, "another seed");

    let path = folder.path().join("small-lives.toml");
    std::fs::write(&path, &text).unwrap();
    let path = path.to_str().unwrap();
    for hosts in [3, 4] {
        let fleet = FleetPlan::of_hosts(Some("small"), path, 7, hosts).unwrap();
        assert!(fleet.is_simulated());
        let written = folder.path().join("experiment.toml");
        std::fs::write(&written, fleet.to_toml()).unwrap();
        let read = FleetPlan::load(written.to_str().unwrap()).unwrap().unwrap();
        let mut runs = Vec::new();
        for index in 1..=hosts {
            let number = ShardNumber { index, of: hosts };
            let (part, again) = (fleet.shard(number).unwrap(), read.shard(number).unwrap());
            assert_eq!(part.shard, again.shard);
            let Experiment::Lives(part) = &again.experiment else {
                panic!("it is a sweep");
            };
            let shard = Some(again.shard);
            runs.push(Run {
                shard,
                ..whole(part, again.seed, 2)
            });
        }
        runs.reverse();
        let merged = merge("small", hosts as usize, runs.clone()).unwrap();
        assert_eq!(merged.trials, run.trials, "{hosts} hosts");
        assert_eq!((merged.noise, merged.partial), (run.noise.clone(), false));
        assert_eq!(merged.warnings, run.warnings);
        if hosts == 3 {
            runs.pop();
            let merged = merge("small", hosts as usize, runs).unwrap();
            assert!(merged.partial && !merged.trials.is_empty());
        }
    }
    let refused = FleetPlan::of_hosts(None, path, 1, 5);
    let refused = refused.expect_err("there are four places");
    assert!(
        matches!(refused, ShardError::TooMany { portions: 4, .. }),
        "{refused}"
    );
    let mut matrix = Matrix::default();
    matrix.add("seed=1..3").unwrap();
    let refused = FleetPlan::of_matrix(None, path, 1, matrix);
    assert!(matches!(refused, Err(ShardError::NoMatrix("lives"))));
}

#[test]
fn a_sweep_that_was_interrupted_is_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let text = specification(folder.path());
    let lives = Lives::parse("small", &text).unwrap();
    let run = whole(&lives, 7, 2);
    let begun = |cores| session(&lives, cores, 7).built_as("1");
    let (beginning, outcome) = lived(begun(1), 6);
    assert!(outcome.unwrap_err().is_interrupted());
    // The first place is whole; of the second two lives were lived for nothing.
    assert!(beginning.partial);
    assert_eq!(beginning.trials, run.trials[..10]);

    assert!(begun(1).goes_on_with(&beginning));
    let another = Lives::parse("small", &text.replace("seeds = 4", "seeds = 5")).unwrap();
    let another = session(&another, 1, 7).built_as("1");
    assert!(!another.goes_on_with(&beginning));
    let newer = session(&lives, 1, 7).built_as("2");
    assert!(!newer.goes_on_with(&beginning));
    assert!(!begun(1).goes_on_with(&run), "it is not partial");

    let resumed = begun(2).resumed(Run {
        run: "before".into(),
        ..beginning
    });
    assert_eq!(resumed.places_done(), 1);
    let (resumed, outcome) = lived(resumed, u64::MAX);
    outcome.unwrap();
    assert_eq!(resumed.trials, run.trials);
    assert_eq!((resumed.run.as_str(), resumed.partial), ("before", false));
}

/// A vendor's questions: the effects of TRIM, spare area and the cipher.
#[test]
fn lives_show_what_they_should() {
    let folder = tempfile::tempdir().unwrap();
    let lives = Lives::parse("small", &specification(folder.path())).unwrap();
    let run = whole(&lives, 1, 2);
    let of = |policy, cipher: Option<&str>, fill, spare, workload: &str| {
        let found = run.trials.iter().find(|trial| {
            let life = trial.life().unwrap();
            trial.workload == workload
                && (life.policy, life.fill, life.over_provisioning) == (policy, fill, spare)
                && trial
                    .cipher
                    .as_deref()
                    .map(|c| c.split('-').next().unwrap())
                    == cipher
        });
        found.unwrap_or_else(|| panic!("{policy:?} {cipher:?} {fill} {spare} {workload}"))
    };
    let life = |trial: &Trial| trial.life().unwrap().clone();
    use TrimPolicy::{Block, Pass, Plain};
    let (aes, serpent) = (Some("aes"), Some("serpent"));
    let plain = of(Plain, None, 0.9, 0.07, "rand-4k-write");
    let passed = of(Pass, aes, 0.9, 0.07, "rand-4k-write");
    let blocked = of(Block, aes, 0.9, 0.07, "rand-4k-write");
    assert_eq!(
        life(plain).write_amplification,
        life(passed).write_amplification
    );
    let written = |trial: &Trial| life(trial).write_amplification.median;
    let years = |trial: &Trial| life(trial).lifetime_years.median;
    assert!(
        written(blocked) > 1.2 * written(passed),
        "{} {}",
        written(blocked),
        written(passed)
    );
    assert!(years(blocked) < years(passed) / 1.2);
    assert_eq!(life(blocked).samples_lifetime_years.len(), 4);
    assert_eq!(life(blocked).write_amplification.n, 4);
    assert_eq!((blocked.repetitions, blocked.throughput_mb_s.n), (4, 4));
    // Spare area helps a drive without discards, and a lower fill helps a drive with them.
    assert!(written(of(Block, aes, 0.9, 0.28, "rand-4k-write")) < written(blocked));
    assert!(written(of(Pass, aes, 0.5, 0.07, "rand-4k-write")) < written(passed));
    // A drive that must copy more is slower to write, and some requests wait for it.
    let rate = |trial: &Trial| trial.throughput_mb_s.median;
    assert!(
        rate(blocked) < 0.9 * rate(passed),
        "{} {}",
        rate(blocked),
        rate(passed)
    );
    let latency = blocked.latency_us.as_ref().unwrap();
    assert!(latency.p99_9 > latency.p50);
    // A slow cipher shows, and a fast one hardly.
    let slow = of(Pass, serpent, 0.9, 0.07, "rand-4k-read");
    let fast = of(Pass, aes, 0.9, 0.07, "rand-4k-read");
    assert!(
        rate(slow) < 0.8 * rate(fast),
        "{} {}",
        rate(slow),
        rate(fast)
    );
    let cost = fast.overhead.as_ref().unwrap();
    assert_eq!(cost.against, "none");
    assert!(
        cost.ratio.median > 0.9 && cost.ratio.median <= 1.0,
        "{cost:?}"
    );
    assert!(plain.overhead.is_none());
    for trial in &run.trials {
        assert_eq!(trial.warnings, Vec::<String>::new());
        assert_eq!(trial.steady_state, None);
    }
}
