//! The requirements that every store must meet, whatever keeps its runs.

use cryptmark_lab::record::*;
use cryptmark_lab::store::{LATEST, Location, Spool, Store, StoreError, TakenOver};
use std::path::Path;

/// A run with `trials` trials whose fields do not repeat.
pub fn run(id: &str, trials: u32) -> Run {
    Run {
        exposures: Vec::new(),
        schema: SCHEMA.into(),
        run: id.into(),
        plan: "quick".into(),
        started: "2026-11-21T12:00:00+01:00".into(),
        partial: false,
        seed: u64::MAX,
        shard: None,
        fingerprint: None,
        host: Host {
            cpu: "A \"quoted\" CPU — 測試".into(),
            cores: 4,
            load_average: Some(0.1),
            ..Host::default()
        },
        marks: vec![Mark {
            name: "a mark".into(),
            source: "a document".into(),
            weights: [("rand-4k-write".to_owned(), 0.1)].into(),
            published: Some(168.7),
            share: Some(0.2),
            published_loss: None,
        }],
        conditioning: Some(Conditioning {
            precondition: 2,
            purged: Some(true),
            tests: vec![SteadyTest {
                name: "IOPS".into(),
                workloads: vec!["rand-4k-write".into()],
                tracked: vec!["rand-4k-write".into()],
            }],
        }),
        paper: Some(Paper {
            document: "a paper".into(),
            differs: "The machine.".into(),
            base: "AES".into(),
        }),
        noise: Noise {
            aa_ratio: Some(interval(1.000_000_000_000_000_2)),
            verdict: NoiseVerdict::Quiet,
        },
        trials: (0..trials).map(trial).collect(),
        warnings: vec!["a remark".into()],
    }
}

/// Interval around `median`.
pub fn interval(median: f64) -> Interval {
    Interval {
        median,
        low: median * 0.9,
        high: median * 1.1,
        n: 10,
    }
}

/// A trial that `number` distinguishes from every other.
pub fn trial(number: u32) -> Trial {
    Trial {
        tier: Tier::Block,
        system: "builtin".into(),
        system_version: "0.1.0".into(),
        backend: None,
        cipher: Some("aes-xts-plain64".into()),
        key_bits: Some(512),
        sector_bytes: Some(4096),
        format: None,
        device: Device::default(),
        workload: format!("rand-4k-read-{number}"),
        op: "read".into(),
        block_bytes: Some(4096),
        queue_depth: Some(1),
        threads: Some(1),
        cold: false,
        fsync: None,
        repetitions: 10,
        bytes: Some(1 << 40),
        requests: Some(1 << 28),
        // 0.1 + 0.2 and its like do not survive a careless JSON reader.
        throughput_mb_s: interval(0.1 + 0.2 + f64::from(number)),
        iops: interval(1e5 / 3.0),
        cycles_per_byte: None,
        latency_us: Some(Latency {
            curve: vec![(50.0, 80.1), (99.0, 120.7)],
            ..Latency::default()
        }),
        time_s: TimeSplit::default(),
        latency_split_us: None,
        overhead: None,
        energy: None,
        bottleneck: Bottleneck::Unknown,
        steady_state: None,
        constant_time: None,
        samples_mb_s: vec![1.0 / 3.0; 10],
        warnings: Vec::new(),
        published: vec![Published {
            document: "a paper".into(),
            value: 58.7,
            unit: "Mb/s".into(),
            figure: "Figure 1".into(),
            row: 1,
            system: "TrueCrypt".into(),
            device: "HDD".into(),
            cipher: "AES".into(),
            measure: Measure::Rate,
        }],
        detail: Detail::Requests,
    }
}

/// Room for all that waits in a test.
pub const ROOM: u64 = 64 << 20;

/// The store at `location`, to write; runs wait in `folder` for a server.
pub fn open(location: &Location, folder: &Path) -> Store {
    let spool = Spool {
        folder: folder.to_owned(),
        limit: ROOM,
    };
    Store::open_to_write(location, &spool).unwrap()
}

/// A server has a run as it was when it was handed over; a folder always has all of it.
fn settle(store: &Store) {
    let handed = store.hand_over(None).unwrap();
    assert!(handed.refused.is_empty(), "{:?}", handed.refused);
}

/// Everything that a single connection does; `location` is an empty store.
pub fn all(location: &Location) {
    let folder = tempfile::tempdir().unwrap();
    let store = open(location, folder.path());
    empty(&store);
    a_run_is_kept_trial_by_trial(&store);
    many_trials_at_once(&store);
    refusals(&store);
    names(&store);
    deletion(&store);
    shards(&store);
    taken_over(&store);
    pages(&store);
    drop(store);
    // Stored runs outlive the connection.
    let again = Store::open(location).unwrap();
    assert_eq!(again.load("2026-b").unwrap(), run("2026-b", 2));
}

/// Page by page comes what the list has, whole.
fn pages(store: &Store) {
    for id in ["2026-p1", "2026-p2"] {
        put(store, &run(id, 3));
    }
    let all: Vec<String> = store
        .list()
        .unwrap()
        .into_iter()
        .map(|run| run.run)
        .collect();
    for (size, expected) in [(1, 3), (3, 2), (usize::MAX, 1)] {
        let (mut found, mut pages) = (Vec::new(), 0);
        let mut after = String::new();
        loop {
            let page = store.runs_after(&after, size).unwrap();
            let Some(last) = page.last() else { break };
            after = last.run.clone();
            pages += 1;
            for run in page {
                assert_eq!(store.load(&run.run).unwrap(), run);
                found.push(run.run);
            }
        }
        found.sort();
        assert_eq!(found, all);
        assert_eq!(pages, expected, "pages of {size} trials");
    }
}

fn empty(store: &Store) {
    assert_eq!(store.list().unwrap(), []);
    assert_eq!(store.runs_after("", 1).unwrap(), []);
    assert_eq!(store.baselines().unwrap(), []);
    assert!(matches!(store.load(LATEST), Err(StoreError::Empty { .. })));
    assert!(matches!(store.load(""), Err(StoreError::NoSuchRun { .. })));
}

fn a_run_is_kept_trial_by_trial(store: &Store) {
    let whole = run("2026-a1", 3);
    store.begin(&whole).unwrap();
    let begun = store.load("2026-a1").unwrap();
    assert!(begun.partial, "a run under way is partial");
    assert!(begun.trials.is_empty());

    // Out of order and one of them twice, as a repeated measurement does.
    for ordinal in [2, 0, 1, 2] {
        let trial = &whole.trials[ordinal as usize];
        store.put_trials("2026-a1", &[(ordinal, trial)]).unwrap();
    }
    settle(store);
    let interrupted = store.load("2026-a1").unwrap();
    assert!(interrupted.partial);
    assert_eq!(interrupted.trials, whole.trials);

    store.finish(&whole).unwrap();
    assert_eq!(store.load("2026-a1").unwrap(), whole);
    let list = store.list().unwrap();
    assert_eq!(list.len(), 1);
    assert_eq!((list[0].trials, list[0].partial), (3, false));
    assert_eq!(list[0].host, whole.host.key());
}

/// More trials than a statement takes, in any order; of two at one position the
/// later stands.
fn many_trials_at_once(store: &Store) {
    let whole = run("2025-many", 250);
    store.begin(&whole).unwrap();
    let mut all: Vec<_> = (0..250).zip(&whole.trials).rev().collect();
    all.insert(0, (7, &whole.trials[8]));
    all.insert(0, (200, &whole.trials[0]));
    store.put_trials("2025-many", &all).unwrap();
    // Again, together with one that changes.
    all.push((3, &whole.trials[4]));
    store.put_trials("2025-many", &all).unwrap();
    store.put_trials("2025-many", &[]).unwrap();
    settle(store);
    let mut expected = whole.trials.clone();
    expected[3] = whole.trials[4].clone();
    assert_eq!(store.load("2025-many").unwrap().trials, expected);
    store.finish(&whole).unwrap();
    store.delete("2025-many").unwrap();
}

fn refusals(store: &Store) {
    let stored = run("2026-a1", 3);
    assert!(matches!(
        store.begin(&stored),
        Err(StoreError::RunExists { run }) if run == "2026-a1"
    ));
    let unknown = run("2027", 0);
    assert!(matches!(
        store.finish(&unknown),
        Err(StoreError::NoSuchRun { .. })
    ));
    assert!(matches!(
        store.put_trials("2027", &[(0, &trial(0))]),
        Err(StoreError::NoSuchRun { .. })
    ));
    let mut endless = trial(0);
    endless.throughput_mb_s.high = f64::INFINITY;
    assert!(matches!(
        store.put_trials("2026-a1", &[(0, &endless)]),
        Err(StoreError::Unstorable {
            ordinal: Some(0),
            ..
        })
    ));
    assert_eq!(
        store.load("2026-a1").unwrap(),
        stored,
        "nothing of it stayed"
    );
}

fn names(store: &Store) {
    let second = run("2026-a2", 1);
    store.begin(&second).unwrap();
    let third = run("2026-b", 2);
    store.begin(&third).unwrap();
    for (ordinal, trial) in (0..).zip(&third.trials) {
        store.put_trials("2026-b", &[(ordinal, trial)]).unwrap();
    }
    store.finish(&third).unwrap();

    assert_eq!(store.load(LATEST).unwrap().run, "2026-b");
    assert_eq!(store.load("2026-b").unwrap().run, "2026-b");
    assert_eq!(store.load("2026-a2").unwrap().run, "2026-a2");
    assert!(matches!(
        store.load("2026-a"),
        Err(StoreError::Ambiguous { matches, .. }) if matches == ["2026-a1", "2026-a2"]
    ));
    // A pattern character of SQL is an ordinary character here.
    assert!(matches!(
        store.load("2026%"),
        Err(StoreError::NoSuchRun { .. })
    ));

    assert_eq!(
        store.set_baseline("release'1", "2026-a1").unwrap(),
        "2026-a1"
    );
    assert_eq!(store.set_baseline("plain", LATEST).unwrap(), "2026-b");
    assert_eq!(
        store.set_baseline("plain", "release'1").unwrap(),
        "2026-a1",
        "a baseline moves, and one can stand for a run"
    );
    assert_eq!(store.load("plain").unwrap().run, "2026-a1");
    assert_eq!(store.list().unwrap()[0].baselines, ["plain", "release'1"]);
    for refused in ["", " ", LATEST, "2026-b"] {
        assert!(matches!(
            store.set_baseline(refused, "2026-b"),
            Err(StoreError::BaselineName { .. })
        ));
    }
    assert!(matches!(
        store.remove_baseline("nightly"),
        Err(StoreError::NoSuchBaseline { .. })
    ));
}

fn deletion(store: &Store) {
    assert!(matches!(
        store.delete("2026-a1"),
        Err(StoreError::IsBaseline { names, .. }) if names == ["plain", "release'1"]
    ));
    store.remove_baseline("plain").unwrap();
    store.remove_baseline("release'1").unwrap();
    assert_eq!(store.delete("2026-a1").unwrap(), "2026-a1");
    assert!(matches!(
        store.load("2026-a1"),
        Err(StoreError::NoSuchRun { .. })
    ));
    // Its trials went with it: the same id starts empty.
    store.begin(&run("2026-a1", 0)).unwrap();
    assert_eq!(store.load("2026-a1").unwrap().trials, []);
}

/// An attempt at a shard of an experiment.
pub fn attempt(id: &str, experiment: &str, index: u32, fingerprint: &str) -> Run {
    Run {
        shard: Some(Shard {
            experiment: experiment.into(),
            index,
            of: 3,
            fingerprint: fingerprint.into(),
            portions: vec![index],
        }),
        ..run(id, 2)
    }
}

/// Stores a run from its beginning to its end.
pub fn put(store: &Store, run: &Run) {
    store.begin(run).unwrap();
    finish(store, run);
}

/// Stores what follows the beginning of a run.
pub fn finish(store: &Store, run: &Run) {
    for (ordinal, trial) in (0..).zip(&run.trials) {
        store.put_trials(&run.run, &[(ordinal, trial)]).unwrap();
    }
    store.finish(run).unwrap();
}

fn shards(store: &Store) {
    let shard = |run: &Run| run.shard.clone().unwrap();
    let (first, second) = (
        attempt("2027-a", "spring", 1, "f"),
        attempt("2027-b", "spring", 1, "f"),
    );
    let before = store.list().unwrap().len();
    assert_eq!(store.stored_shard(&shard(&first)).unwrap(), None);
    // Both are under way, because the host of one was thought to be dead.
    for run in [&first, &second] {
        store.begin(run).unwrap();
        store.put_trials(&run.run, &[(0, &run.trials[0])]).unwrap();
    }
    assert_eq!(store.progress("spring").unwrap().shards[0].attempts, 2);
    finish(store, &second);
    assert_eq!(
        store.stored_shard(&shard(&first)).unwrap(),
        Some("2027-b".into())
    );
    let superseded = |outcome| {
        assert!(
            matches!(&outcome, Err(StoreError::ShardStored { experiment, shard: 1, run })
                if experiment == "spring" && run == "2027-b"),
            "{outcome:?}"
        );
    };
    // A server tells it at the end.
    let late = store.put_trials("2027-a", &[(1, &first.trials[1])]);
    match store.location() {
        Location::Folder(_) => superseded(late),
        Location::Postgres(_) => late.unwrap(),
    }
    superseded(store.finish(&first));
    superseded(store.begin(&attempt("2027-c", "spring", 1, "f")));
    assert_eq!(
        store.list().unwrap().len(),
        before + 1,
        "nothing of the others stays"
    );
    assert_eq!(store.load("2027-b").unwrap(), second);

    // Interrupted is not stored; its next attempt takes its place.
    let mut interrupted = attempt("2027-d", "spring", 2, "f");
    interrupted.partial = true;
    put(store, &interrupted);
    assert_eq!(store.progress("spring").unwrap().shards[1].run, None);
    put(store, &attempt("2027-e", "spring", 2, "f"));
    assert!(matches!(
        store.load("2027-d"),
        Err(StoreError::NoSuchRun { .. })
    ));

    // Another plan, and another number of shards, under the same name.
    let other = attempt("2027-f", "spring", 3, "g");
    assert!(matches!(
        store.begin(&other),
        Err(StoreError::OtherExperiment { .. })
    ));
    assert!(matches!(
        store.stored_shard(&shard(&other)),
        Err(StoreError::OtherExperiment { .. })
    ));
    let mut fewer = attempt("2027-g", "spring", 1, "f");
    fewer.shard.as_mut().unwrap().of = 2;
    assert!(matches!(
        store.begin(&fewer),
        Err(StoreError::OtherExperiment { .. })
    ));

    // As one run: what is missing is said, and then nothing is.
    let merged = store.load("spring").unwrap();
    assert!(merged.partial && merged.warnings.iter().any(|w| w.contains("2 of 3")));
    put(store, &attempt("2027-h", "spring", 3, "f"));
    let merged = store.load("spring").unwrap();
    assert_eq!((merged.run.as_str(), merged.partial), ("spring", false));
    assert_eq!(merged.trials.len(), 6);
    assert!(matches!(
        store.load("autumn"),
        Err(StoreError::NoSuchRun { .. })
    ));
    assert!(matches!(
        store.progress("autumn"),
        Err(StoreError::NoSuchExperiment { .. })
    ));

    // A shard whose run is deleted is missing again.
    for id in ["2027-b", "2027-e", "2027-h"] {
        assert_eq!(store.delete(id).unwrap(), id);
    }
    let progress = store.progress("spring").unwrap();
    assert!(progress.shards.iter().all(|shard| shard.run.is_none()));
}

/// Runs that come as a whole: all or none of them, over a part of one, again and again.
fn taken_over(store: &Store) {
    use TakenOver::{Completed, Stored, Superseded, There};
    let before = store.list().unwrap();
    let take = |runs: &[&Run]| {
        let runs: Vec<Run> = runs.iter().map(|run| (*run).clone()).collect();
        store.take_over(&runs)
    };
    let (first, second) = (run("2028-a", 3), run("2028-b", 2));
    let mut endless = run("2028-c", 1);
    endless.trials[0].throughput_mb_s.high = f64::INFINITY;
    assert!(matches!(
        take(&[&first, &endless]),
        Err(StoreError::Unstorable { .. })
    ));
    let mut other = first.clone();
    other.started = "2026-11-22T12:00:00+01:00".into();
    assert!(matches!(
        take(&[&second, &first, &other]),
        Err(StoreError::RunExists { run }) if run == "2028-a"
    ));
    assert_eq!(store.list().unwrap(), before, "nothing of them stays");

    assert_eq!(take(&[&second]).unwrap(), [Stored]);
    assert_eq!(take(&[&second, &first]).unwrap(), [There, Stored]);
    assert_eq!(
        take(&[&first, &second, &first]).unwrap(),
        [There, There, There]
    );
    assert_eq!(store.load("2028-a").unwrap(), first);
    assert!(matches!(take(&[&other]), Err(StoreError::RunExists { .. })));

    // Cut short in the store, and whole in a file; a baseline of it stays.
    let third = run("2028-d", 3);
    store.begin(&third).unwrap();
    let part = [(0, &third.trials[0])];
    store.put_trials("2028-d", &part).unwrap();
    settle(store);
    store.set_baseline("part", "2028-d").unwrap();
    assert_eq!(take(&[&third]).unwrap(), [Completed]);
    assert_eq!(store.load("part").unwrap(), third);
    store.remove_baseline("part").unwrap();
    // An older state of it, and what it never was.
    let mut older = third.clone();
    older.partial = true;
    older.trials.truncate(1);
    assert_eq!(take(&[&older]).unwrap(), [There]);
    let mut changed = third.clone();
    changed.trials[1] = trial(9);
    assert!(matches!(
        take(&[&changed]),
        Err(StoreError::RunExists { .. })
    ));
    assert_eq!(store.load("2028-d").unwrap(), third);

    // Both are one shard, and a run that is none comes behind them.
    let [sooner, later] = ["2028-e", "2028-f"].map(|id| attempt(id, "winter", 1, "f"));
    let last = run("2028-g", 1);
    let by = || Superseded {
        by: "2028-e".into(),
    };
    assert_eq!(
        take(&[&sooner, &later, &last]).unwrap(),
        [Stored, by(), Stored]
    );
    assert_eq!(take(&[&later, &last]).unwrap(), [by(), There]);
    assert!(matches!(
        store.load("2028-f"),
        Err(StoreError::NoSuchRun { .. })
    ));
    for id in ["2028-a", "2028-b", "2028-d", "2028-e", "2028-g"] {
        store.delete(id).unwrap();
    }
    assert_eq!(store.list().unwrap(), before);
}

/// Runs that one writer stores, and trials in each.
pub const RUNS: u32 = 5;
/// Trials that a writer puts into each of its runs.
pub const TRIALS: u32 = 8;

/// The work of one of several concurrent writers, with a connection of its own.
pub fn write_as(location: &Location, writer: u32) {
    let folder = tempfile::tempdir().unwrap();
    let store = open(location, folder.path());
    for number in 0..RUNS {
        let run = run(&format!("w{writer}-{number}"), TRIALS);
        store.begin(&run).unwrap();
        for (ordinal, trial) in (0..).zip(&run.trials) {
            store.put_trials(&run.run, &[(ordinal, trial)]).unwrap();
        }
        store.finish(&run).unwrap();
    }
}

/// Checks that `writers` concurrent writers lost nothing.
pub fn nothing_lost(location: &Location, writers: u32) {
    let store = Store::open(location).unwrap();
    let list = store.list().unwrap();
    assert_eq!(list.len() as u32, writers * RUNS);
    assert!(list.iter().all(|run| run.trials == TRIALS && !run.partial));
    for summary in list {
        assert_eq!(
            store.load(&summary.run).unwrap(),
            run(&summary.run, TRIALS),
            "a run is stored whole"
        );
    }
}
