//! Shards: put together they are the run of one machine, and nothing else.

use cryptmark_lab::LabError;
use cryptmark_lab::experiment::{Devices, Experiment};
use cryptmark_lab::record::{Run, Shard};
use cryptmark_lab::session::{Session, Unwatched};
use cryptmark_lab::shard::{FleetPlan, Matrix, Part, ShardError, ShardNumber, merge};
use cryptmark_lab::system::Storage;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// A session of `plan` over `storage`.
fn opened(plan: &Devices, storage: &Storage, seed: u64) -> Result<Session<'static>, LabError> {
    let filling = &mut |_| ControlFlow::Continue(());
    Session::of_devices(plan, storage, seed, "id".into(), filling)
}

const PLAN: &str = r#"
title = "drives that are not here"
size = "32 MiB"
repetitions = 3
systems = ["drive:hdd-desktop-2003", "drive:ssd-x25m-160g", "drive:flash-key-128m"]
ciphers = ["aes-xts-plain64", "serpent-xts-plain64"]
cpu = { aes = "145MB/s", serpent = "60MB/s" }

[[workload]]
name = "rand-4k-read"
pattern = "random"
op = "read"
block_size = "4 KiB"
bytes = "256 KiB"

[[workload]]
name = "rand-4k-write"
pattern = "random"
op = "write"
block_size = "4 KiB"
queue_depth = 4
bytes = "256 KiB"

[[workload]]
name = "seq-64k-write"
pattern = "sequential"
op = "write"
block_size = "64 KiB"
bytes = "2 MiB"
"#;

fn measured(plan: &Devices, seed: u64, shard: Option<Shard>) -> Run {
    let session = opened(plan, &Storage::none(), seed).unwrap();
    let (run, outcome) = session.measure(&AtomicBool::new(false), &mut Unwatched);
    outcome.unwrap();
    Run { shard, ..run }
}

/// The plan of a part that measures devices.
fn plan(part: &Part) -> &Devices {
    match &part.experiment {
        Experiment::Devices(plan) => plan,
        other => panic!("{other:?}"),
    }
}

fn in_file(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("fleet-of-drives.toml");
    std::fs::write(&path, text).unwrap();
    path
}

fn numbers(of: u32) -> impl Iterator<Item = ShardNumber> {
    (1..=of).map(move |index| ShardNumber { index, of })
}

#[test]
fn shards_put_together_are_the_run_of_one_machine() {
    let folder = tempfile::tempdir().unwrap();
    let path = in_file(folder.path(), PLAN);
    let path = path.to_str().unwrap();
    let whole = measured(&Devices::load(path).unwrap(), 7, None);
    assert_eq!(whole.trials.len(), 3 * 3 * 4);
    for hosts in [1, 2, 4, 9] {
        let fleet = FleetPlan::of_hosts(Some("drives"), path, 7, hosts).unwrap();
        // Through the file that hosts are given.
        let written = folder.path().join("experiment.toml");
        std::fs::write(&written, fleet.to_toml()).unwrap();
        let read = FleetPlan::load(written.to_str().unwrap()).unwrap().unwrap();
        let mut runs = Vec::new();
        for number in numbers(hosts) {
            let (part, again) = (fleet.shard(number).unwrap(), read.shard(number).unwrap());
            assert_eq!(
                part.shard, again.shard,
                "the fingerprint is not of the file's form"
            );
            let run = measured(plan(&again), again.seed, Some(again.shard.clone()));
            if number.index == 1 {
                let twice = measured(plan(&part), part.seed, Some(part.shard.clone()));
                assert_eq!(run.trials, twice.trials, "a shard that is run again");
            }
            runs.push(run);
        }
        // The order in which the store returns them does not matter.
        runs.reverse();
        let merged = merge("drives", hosts as usize, runs).unwrap();
        assert_eq!(merged.trials, whole.trials, "{hosts} hosts");
        assert_eq!(merged.noise, whole.noise);
        assert_eq!(merged.warnings, whole.warnings);
        assert_eq!((merged.partial, merged.shard), (false, None));
    }
}

#[test]
fn a_matrix_is_every_combination() {
    let folder = tempfile::tempdir().unwrap();
    let path = in_file(folder.path(), PLAN);
    let mut matrix = Matrix::default();
    for value in [
        "system=drive:hdd-wd",
        "system=drive:tlc-1t",
        "cipher=serpent-xts-plain64",
        "workload=rand-4k-read",
        "workload=seq-64k-write",
        "seed=5..7",
    ] {
        matrix.add(value).unwrap();
    }
    let fleet = FleetPlan::of_matrix(None, path.to_str().unwrap(), 1, matrix).unwrap();
    assert_eq!((fleet.shards(), fleet.name()), (12, "fleet-of-drives"));
    let told: Vec<String> = numbers(12)
        .map(|number| {
            let part = fleet.shard(number).unwrap();
            assert!(part.shard.portions.is_empty());
            let plan = plan(&part);
            assert_eq!(plan.ciphers, ["serpent-xts-plain64"]);
            let (systems, workloads) = (&plan.systems, &plan.workloads);
            assert_eq!((systems.len(), workloads.len()), (1, 1));
            format!(
                "{} {} {}",
                systems[0].as_str(),
                workloads[0].name,
                part.seed
            )
        })
        .collect();
    assert_eq!(told[0], "drive:hdd-wd rand-4k-read 5");
    assert_eq!(told[1], "drive:hdd-wd rand-4k-read 6");
    assert_eq!(told[3], "drive:hdd-wd seq-64k-write 5");
    assert_eq!(told[11], "drive:tlc-1t seq-64k-write 7");
    let different: std::collections::BTreeSet<_> = told.iter().collect();
    assert_eq!(different.len(), 12);
}

#[test]
fn real_storage_is_measured_whole_by_every_host() {
    let fleet = FleetPlan::of_hosts(None, "quick", 1, 1000).unwrap();
    let part = fleet.shard("1000/1000".parse().unwrap()).unwrap();
    let quick = Devices::load("quick").unwrap();
    assert_eq!(plan(&part).workloads, quick.workloads);
    assert_eq!(plan(&part).only, None);
    assert!(part.shard.portions.is_empty());
}

/// A measurement that depends on a host's kernel, storage and processor is a whole run on each
/// host.
#[test]
fn file_systems_and_key_derivations_are_measured_whole_by_every_host() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["file-systems", "kdf"] {
        let fleet = FleetPlan::of_hosts(Some("disks"), name, 5, 3).unwrap();
        let path = in_file(folder.path(), &fleet.to_toml());
        let read = FleetPlan::load(path.to_str().unwrap()).unwrap().unwrap();
        let whole = Experiment::load(name).unwrap();
        for number in numbers(3) {
            let (part, again) = (fleet.shard(number).unwrap(), read.shard(number).unwrap());
            assert_eq!(part.shard, again.shard);
            assert_eq!((part.seed, again.seed), (5, 5));
            assert!(part.shard.portions.is_empty());
            match (&again.experiment, &whole) {
                (Experiment::FileSystems(part), Experiment::FileSystems(whole)) => {
                    assert_eq!(part.operations, whole.operations);
                    assert_eq!(part.systems, whole.systems);
                }
                (part, whole) => {
                    let at = std::path::Path::new("/data");
                    let of_shard = part.describe(at).replace("plan disks", "plan kdf");
                    assert_eq!(of_shard, whole.describe(at));
                }
            }
        }
        assert!(!read.is_simulated());
        assert_eq!(read.mounts(), name == "file-systems");
        let mut matrix = Matrix::default();
        matrix.add("seed=1..3").unwrap();
        let refused = FleetPlan::of_matrix(None, name, 1, matrix);
        assert!(matches!(refused, Err(ShardError::NoMatrix(_))), "{name}");
    }
}

#[test]
fn another_experiment_has_another_fingerprint() {
    let folder = tempfile::tempdir().unwrap();
    let print = |text: &str, seed: u64, hosts: u32| {
        let path = in_file(folder.path(), text);
        let fleet = FleetPlan::of_hosts(None, path.to_str().unwrap(), seed, hosts).unwrap();
        let of = fleet.shards();
        fleet
            .shard(ShardNumber { index: 1, of })
            .unwrap()
            .shard
            .fingerprint
    };
    let first = print(PLAN, 1, 3);
    assert_eq!(first.len(), 64);
    assert_eq!(print(&PLAN.replace("\n\n", "\n# a remark\n"), 1, 3), first);
    for other in [
        print(PLAN, 2, 3),
        print(PLAN, 1, 4),
        print(&PLAN.replace("145MB/s", "146MB/s"), 1, 3),
        print(&PLAN.replace("\"32 MiB\"", "\"48 MiB\""), 1, 3),
    ] {
        assert_ne!(other, first);
    }
}

#[test]
fn what_cannot_be_shared_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let hosts = |text: &str, hosts: u32| {
        let path = in_file(folder.path(), text);
        FleetPlan::of_hosts(None, path.to_str().unwrap(), 1, hosts).expect_err("must be refused")
    };
    assert!(matches!(
        hosts(PLAN, 10),
        ShardError::TooMany {
            shards: 10,
            portions: 9,
            ..
        }
    ));
    let unrated = PLAN.replace(", serpent = \"60MB/s\"", "");
    assert!(matches!(hosts(&unrated, 2), ShardError::NoRate(cipher) if cipher == "serpent"));
    for name in ["", "-x", "a b", "a/b", "ü", &"x".repeat(61)] {
        assert!(matches!(
            FleetPlan::of_hosts(Some(name), "quick", 1, 2),
            Err(ShardError::Name(_))
        ));
    }
    let matrix = |values: &[&str]| {
        let path = in_file(folder.path(), PLAN);
        let mut matrix = Matrix::default();
        for value in values {
            matrix.add(value)?;
        }
        FleetPlan::of_matrix(None, path.to_str().unwrap(), 1, matrix)
    };
    for wrong in ["seed", "seed=9..8", "seed=x", "colour=red", "system="] {
        assert!(
            matches!(matrix(&[wrong]), Err(ShardError::Axis(_))),
            "{wrong}"
        );
    }
    assert!(matches!(
        matrix(&["seed=1..2000000"]),
        Err(ShardError::TooMany { .. })
    ));
    assert!(matches!(
        matrix(&["seed=0..9223372036854775807", "workload=a", "workload=b"]),
        Err(ShardError::TooMany { .. })
    ));
    let many: Vec<&str> = std::iter::repeat_n("cipher=aes-xts-plain64", 101)
        .chain(std::iter::repeat_n("workload=rand-4k-read", 100))
        .collect();
    assert!(matches!(
        matrix(&many),
        Err(ShardError::TooMany { shards: 10_100, .. })
    ));
    assert!(matches!(
        matrix(&["workload=nothing"]),
        Err(ShardError::Axis(_))
    ));
    assert!(matches!(
        matrix(&["cipher=rot13"]),
        Err(ShardError::Plan(_))
    ));
    assert!(matches!(
        matrix(&["cipher=twofish-xts-plain64"]),
        Err(ShardError::NoRate(cipher)) if cipher == "twofish"
    ));

    let number = |text: &str| text.parse::<ShardNumber>();
    assert_eq!(number("3/40").unwrap(), ShardNumber { index: 3, of: 40 });
    assert_eq!(
        number("39+1/40").unwrap(),
        ShardNumber { index: 40, of: 40 }
    );
    for wrong in [
        "",
        "3",
        "/",
        "3/",
        "a/b",
        "+3/40",
        "-1/3",
        "3/+4",
        "1+2/4",
        "4294967295+1/4",
    ] {
        assert!(
            matches!(number(wrong), Err(ShardError::Number(_))),
            "{wrong}"
        );
    }
    for outside in ["0/40", "41/40", "40+1/40", "1/0"] {
        assert!(matches!(
            number(outside),
            Err(ShardError::OutOfRange { .. })
        ));
    }
    let backwards = FleetPlan::parse(
        "backwards",
        include_str!("../../../fuzz/seeds/fleet_plan/seeds-that-go-back"),
    );
    assert!(
        matches!(backwards, Err(ShardError::Axis(_))),
        "{backwards:?}"
    );
    let fleet = FleetPlan::of_hosts(None, "quick", 1, 2).unwrap();
    assert!(matches!(
        fleet.shard(ShardNumber { index: 1, of: 3 }),
        Err(ShardError::OutOfRange { of: 2, .. })
    ));
    let experiment = fleet.to_toml();
    for (from, to) in [
        ("hosts = 2", "hosts = 0"),
        ("hosts = 2", ""),
        ("hosts = 2", "hosts = 2\nguests = 3"),
        ("seed = 1", "seed = -1"),
    ] {
        let text = experiment.replacen(from, to, 1);
        assert_ne!(text, experiment);
        let path = in_file(folder.path(), &text);
        let refused = FleetPlan::load(path.to_str().unwrap());
        assert!(matches!(refused, Err(ShardError::Syntax { .. })), "{to}");
    }
}
