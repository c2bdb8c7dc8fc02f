//! Shards on one machine and a store in a file.

use crate::{on, sandbox, server};

#[test]
fn shards_are_stored_once_and_are_the_run_of_one_machine() {
    let sandbox = sandbox();
    let plan = [
        "fleet",
        "plan",
        "drives.toml",
        "--hosts",
        "3",
        "--seed",
        "7",
    ];
    let said = sandbox.ok(&[&plan[..], &["-o", "experiment.toml"]].concat());
    assert!(said.contains("drives has 3 shards"), "{said}");

    let shard =
        |number: &str| sandbox.ok(&["run", "experiment.toml", "--shard", number, "--no-progress"]);
    assert!(shard("2/3").contains("Stored as"));
    let told = sandbox.ok(&["fleet", "status", "drives"]);
    assert!(told.contains("1 of 3 shards are stored"), "{told}");
    assert!(told.contains("missing: 1,3"), "{told}");
    assert!(sandbox.ok(&["show", "drives"]).contains("1 of 3 shards"));
    shard("1/3");
    // Counted from zero, as Kubernetes does.
    shard("2+1/3");
    let again = shard("2/3");
    assert!(
        again.contains("Shard 2/3 of drives is stored already"),
        "{again}"
    );
    let told = sandbox.ok(&["fleet", "status", "drives"]);
    assert!(told.contains("3 of 3 shards are stored\n"), "{told}");
    assert_eq!(sandbox.ok(&["list"]).lines().count(), 3);

    let single = ["run", "drives.toml", "--seed", "7", "--no-progress"];
    let single = on(
        &sandbox,
        "single",
        &[&single[..], &["--json", "single.json"]].concat(),
    );
    let id = single
        .split("Stored as ")
        .nth(1)
        .unwrap()
        .split(';')
        .next()
        .unwrap();
    sandbox.ok(&["report", "drives", "-o", "many.csv"]);
    on(&sandbox, "single", &["report", id, "-o", "one.csv"]);
    let rows = |name: &str| crate::rows(&crate::read(&sandbox.path(name)));
    let (many, one) = (rows("many.csv"), rows("one.csv"));
    assert_eq!(many.len(), 8 * 5 * 4);
    for (of_many, of_one) in many.iter().zip(&one) {
        assert_eq!(of_many, of_one);
    }
    assert_eq!(many.len(), one.len());
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let sandbox = sandbox();
    let refused = |arguments: &[&str]| sandbox.fails(2, arguments);
    sandbox.ok(&["run", "drives.toml", "--shard", "40/40", "--no-progress"]);

    // Another plan, another seed and another number of shards under the same name.
    for other in [
        &["run", "drives.toml", "--shard", "1/39", "--no-progress"][..],
        &[
            "run",
            "drives.toml",
            "--shard",
            "1/40",
            "--seed",
            "2",
            "--no-progress",
        ],
    ] {
        let told = refused(other);
        assert!(
            told.contains("another experiment is stored as drives"),
            "{told}"
        );
    }
    let plan = crate::read(&sandbox.path("drives.toml"));
    sandbox.write("drives.toml", plan.replace("145MB/s", "146MB/s"));
    refused(&["run", "drives.toml", "--shard", "1/40", "--no-progress"]);
    let renamed = [
        "fleet",
        "plan",
        "drives.toml",
        "--hosts",
        "40",
        "--name",
        "drives-2",
    ];
    sandbox.ok(&[&renamed[..], &["-o", "other.toml"]].concat());
    sandbox.ok(&["run", "other.toml", "--shard", "40/40", "--no-progress"]);

    let told = refused(&["run", "other.toml", "--shard", "41/40"]);
    assert!(told.contains("no shard 41/40"), "{told}");
    assert!(refused(&["run", "other.toml", "--shard", "1/41"]).contains("has 40"));
    assert!(refused(&["run", "other.toml", "--shard", "first"]).contains("isn't a shard"));
    assert!(refused(&["run", "other.toml"]).contains("has 40 shards"));
    refused(&["run", "other.toml", "--shard", "1/40", "--seed", "3"]);
    assert!(refused(&["fleet", "status", "autumn"]).contains("autumn"));
    refused(&["fleet", "plan", "drives.toml", "--hosts", "41"]);
    refused(&["fleet", "plan", "drives.toml", "--matrix", "colour=red"]);
    // clap's words on what excludes each other.
    let output = sandbox.run(&["run", "other.toml", "--shard", "1/40", "--quick"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_matrix_is_runs_of_their_own() {
    let sandbox = sandbox();
    let matrix = [
        "fleet",
        "plan",
        "drives.toml",
        "--matrix",
        "system=drive:hdd-wd",
    ];
    let seeds = ["--matrix", "seed=1..2", "-o", "matrix.toml"];
    sandbox.ok(&[&matrix[..], &seeds].concat());
    for number in ["1/2", "2/2"] {
        sandbox.ok(&["run", "matrix.toml", "--shard", number, "--no-progress"]);
    }
    let told = sandbox.ok(&["fleet", "status", "drives"]);
    assert!(told.contains("2 of 2"), "{told}");
    assert!(sandbox.fails(2, &["show", "drives"]).contains("2 runs"));
    let ids: Vec<&str> = told
        .lines()
        .skip(1)
        .filter_map(|l| l.split_whitespace().nth(1))
        .collect();
    let seed = |id: &str| {
        let json = sandbox.ok(&["show", id, "--json"]);
        json.lines()
            .find(|line| line.contains("\"seed\""))
            .unwrap()
            .to_owned()
    };
    assert_ne!(seed(ids[0]), seed(ids[1]));
}

/// File systems and key derivations are a whole run on each host: nothing of one is another's.
#[test]
fn file_systems_and_key_derivations_are_shared_host_by_host() {
    let sandbox = sandbox();
    for (plan, tells) in [("file-systems", "each with"), ("kdf", "veracrypt")] {
        let cut = ["fleet", "plan", plan, "--hosts", "5", "--name", "hosts"];
        let _ = std::fs::remove_file(sandbox.path("hosts.toml"));
        let said = sandbox.ok(&[&cut[..], &["-o", "hosts.toml"]].concat());
        assert!(said.contains("hosts has 5 shards"), "{said}");
        let shard = ["run", "hosts.toml", "--shard", "5/5", "--dry-run"];
        let would = sandbox.ok(&shard);
        assert!(would.contains(tells), "{would}");
        let told = sandbox.fails(2, &["run", "hosts.toml", "--shard", "6/5"]);
        assert!(told.contains("no shard 6/5"), "{told}");
        let matrix = ["fleet", "plan", plan, "--matrix", "seed=1..2"];
        let told = sandbox.fails(2, &matrix);
        assert!(
            told.contains("have no matrix") && told.contains("--hosts N"),
            "{told}"
        );
    }
    // Host by host they need what a run of them needs.
    for (plan, privileged) in [("file-systems", true), ("kdf", false)] {
        let cut = ["fleet", "plan", plan, "--hosts", "2"];
        let _ = std::fs::remove_file(sandbox.path("hosts.toml"));
        sandbox.ok(&[&cut[..], &["-o", "hosts.toml"]].concat());
        let manifest = sandbox.ok(&["fleet", "manifest", "hosts.toml", "--kubernetes"]);
        assert_eq!(
            manifest.contains("\"privileged\": true"),
            privileged,
            "{plan}"
        );
        assert!(manifest.contains("podAntiAffinity"), "{plan}");
    }
}

#[test]
fn a_store_says_what_it_has() {
    let sandbox = sandbox();
    let check = |store: &[&str]| {
        let ok = |what: &[&str]| sandbox.ok(&[store, what].concat());
        assert!(ok(&["store", "hand-over"]).contains("Nothing waits"));
        assert!(ok(&["store"]).ends_with("0 run(s)\n"));
    };
    check(&[]);
    let Some(server) = server() else { return };
    check(&["--store", &server.url("runs")]);
}
