//! What trials of many hosts come to: values counted by hand, and everything that
//! DuckDB finds with the same queries.

use crate::synthetic::{self, put};
use crate::tables::{ask, python, store};
use crate::{sample, sandbox};
use lab::record::{Run, Trial, Verdict};
use serde_json::{Value, json};
use testkit::Sandbox;

/// A run of trials of one workload and cipher with these ratios to plain.
fn run(id: &str, cpu: &str, version: &str, cipher: &str, ratios: &[f64]) -> Run {
    let mut run = sample::run();
    let plain = sample::cell("rand-4k-read", "read", 4096, 1, 100.0);
    let encrypted = |ratio: &f64| synthetic::encrypted(&plain, cipher, 512, *ratio);
    run.trials = ratios.iter().map(encrypted).collect();
    run.run = id.into();
    run.started = format!("{}T12:00:00Z", &id[..10]);
    run.host.cpu = cpu.into();
    run.host.versions.insert("cryptmark".into(), version.into());
    run
}

fn ratios(thousandths: impl Iterator<Item = u32>) -> Vec<f64> {
    thousandths
        .map(|number| f64::from(number) / 1000.0)
        .collect()
}

fn report(sandbox: &Sandbox, from: &[&str]) -> Value {
    let arguments = [&["fleet", "report", "--json"], from].concat();
    sandbox.json(&arguments)
}

#[test]
fn values_are_those_that_were_counted_by_hand() {
    let sandbox = sandbox();
    let host = store(&sandbox, "host");
    // 0.810, 0.820 … 1.000
    let even = ratios((81..=100).map(|number| number * 10));
    put(
        &host,
        &run("2026-11-01-a", "one", "1", "aes-xts-plain64", &even),
    );
    // The quartiles of all 22 are 0.84 and 0.95: 0.40 lies more than three times 0.11
    // below, 0.56 less.
    put(
        &host,
        &run(
            "2026-11-02-far",
            "one",
            "1",
            "aes-xts-plain64",
            &[0.4, 0.56],
        ),
    );
    // Ten of each version: the ranks of the interval are 1 and 10.
    let before = ratios(900..910);
    let after = ratios(800..810);
    put(
        &host,
        &run("2026-11-03-b", "two", "1", "serpent-xts-plain64", &before),
    );
    put(
        &host,
        &run("2026-11-04-c", "two", "2", "serpent-xts-plain64", &after),
    );
    // The same loss, of five trials only; and a loss of less than 0.02; and a gain.
    put(
        &host,
        &run(
            "2026-11-03-d",
            "few",
            "1",
            "serpent-xts-plain64",
            &before[..5],
        ),
    );
    put(
        &host,
        &run(
            "2026-11-04-e",
            "few",
            "2",
            "serpent-xts-plain64",
            &after[..5],
        ),
    );
    put(
        &host,
        &run("2026-11-03-f", "near", "1", "serpent-xts-plain64", &before),
    );
    put(
        &host,
        &run(
            "2026-11-04-g",
            "near",
            "2",
            "serpent-xts-plain64",
            &ratios(885..895),
        ),
    );
    put(
        &host,
        &run("2026-11-03-h", "gain", "1", "serpent-xts-plain64", &after),
    );
    put(
        &host,
        &run("2026-11-04-i", "gain", "2", "serpent-xts-plain64", &before),
    );
    // Plain, plain again and a library beside the engine are no overhead of encryption.
    let plain = sample::cell("rand-4k-read", "read", 4096, 1, 100.0);
    let again = Trial {
        overhead: Some(sample::overhead(0.1, 0.1, Verdict::Slower)),
        ..plain.clone()
    };
    let mut library = synthetic::encrypted(&plain, "aes-xts-plain64", 512, 3.0);
    library.overhead.as_mut().unwrap().against = "openssl".into();
    let others = Run {
        trials: vec![plain, again, library],
        ..run("2026-11-05-j", "one", "1", "", &[])
    };
    put(&host, &others);
    // Among real ones the last would be far from all alike.
    let simulated = ratios([900; 9].into_iter().chain([100]));
    let mut simulated = run("2026-11-06-k", "one", "1", "aes-xts-plain64", &simulated);
    for trial in &mut simulated.trials {
        trial.device.kind = "simulated".into();
        trial.device.model = Some("mlc-128g".into());
    }
    put(&host, &simulated);
    // Two attempts at a shard, of which neither is whole.
    for id in ["2026-11-07-l", "2026-11-07-m"] {
        let mut attempt = run(id, "one", "1", "aes-xts-plain64", &even);
        attempt.partial = true;
        attempt.shard = Some(lab::record::Shard {
            experiment: "spring".into(),
            index: 1,
            of: 2,
            fingerprint: "f".into(),
            portions: vec![1],
        });
        put(&host, &attempt);
    }
    drop(host);

    sandbox.ok(&["export", "--parquet", "trials"]);
    let report = report(&sandbox, &["trials"]);
    let counted = (22 + 10 + 10 + 5 + 5 + 20 + 20 + 10, 12);
    assert_eq!(
        (report["compared"].clone(), report["runs"].clone()),
        (json!(counted.0), json!(counted.1))
    );
    assert_eq!(report["trials"], counted.0 + 3);
    let breakdown = |by: &str| {
        let all = report["overhead"].as_array().unwrap();
        all.iter().find(|breakdown| breakdown["by"] == by).unwrap()["groups"].clone()
    };
    // 22 trials: ranks 2, 6, 11, 17, 21 of 0.40, 0.56, 0.81, 0.82 …
    assert_eq!(
        breakdown("CPU")[0],
        json!({ "name": "one", "trials": 22, "p5": 0.56, "p25": 0.84, "p50": 0.89, "p75": 0.95, "p95": 0.99 })
    );
    let names: Vec<Value> = (0..6)
        .map(|place| breakdown("CPU")[place]["name"].clone())
        .collect();
    assert_eq!(names, ["one", "gain", "near", "two", "few", "simulated"]);
    assert_eq!(
        breakdown("cipher")[0]["name"],
        "serpent-xts-plain64 (512 bit)"
    );
    assert_eq!(breakdown("cipher")[0]["trials"], 70);
    assert_eq!(
        breakdown("kernel")[0]["name"],
        sample::run().host.kernel.as_str()
    );
    assert_eq!(breakdown("device")[0]["name"], "Samsung SSD 980 PRO 1TB");

    assert_eq!(report["outliers"]["found"], 1);
    let far = &report["outliers"]["farthest"][0];
    let fields = ["run", "ratio", "p25", "p50", "p75", "trials"].map(|field| far[field].clone());
    assert_eq!(
        json!(fields),
        json!(["2026-11-02-far", 0.4, 0.84, 0.89, 0.95, 22])
    );

    let found = report["regressions"].as_array().unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    let fields = [
        "cpu",
        "before",
        "before_trials",
        "before_ratio",
        "after",
        "after_trials",
        "after_ratio",
    ];
    let fields = fields.map(|field| found[0][field].clone());
    assert_eq!(
        json!(fields),
        json!(["two", "1", 10, 0.904, "2", 10, 0.804])
    );

    // A store says the same, text and page tell it.
    let mut of_store = self::report(&sandbox, &[]);
    assert_ne!(of_store["place"], "trials");
    of_store["place"] = json!("trials");
    assert_eq!(of_store, report);
    let text = sandbox.ok(&["fleet", "report", "trials", "--html", "fleet.html"]);
    assert!(
        text.contains("1 → 2: −9.6 % → −19.6 % (10 and 10 trials)"),
        "{text}"
    );
    assert!(
        text.contains("2026-11-02-far: −60.0 % where 22 have −11.0 % (−16.0 %…−5.0 %)"),
        "{text}"
    );
    let page = crate::read(&sandbox.path("fleet.html"));
    assert!(page.contains("2026-11-02-far") && page.contains("<svg"));
}

#[test]
fn duckdb_answers_the_same() {
    let Some(python) = python() else { return };
    let sandbox = sandbox();
    let host = store(&sandbox, "host");
    // Of 800 runs those on one kind of host, of which one is ill: 9 of the first version
    // and 8 of the second. Ten workloads are enough here.
    for number in (7..800).step_by(48) {
        let mut run = synthetic::run(number, 800);
        run.trials.truncate(70);
        put(&host, &run);
    }
    drop(host);
    sandbox.ok(&["export", "--parquet", "trials"]);
    let report = report(&sandbox, &["trials"]);
    let script = "
import duckdb
con = duckdb.connect()
con.execute(\"CREATE VIEW trials AS SELECT * FROM read_parquet('trials/**/*.parquet')\")
def rows(sql):
    cursor = con.execute(sql)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, map(lambda v: v if isinstance(v, (str, type(None))) else float(v), row)))
            for row in cursor.fetchall()]
answers = [rows(sql) if sql.split()[0] in ('SELECT', 'WITH') else con.execute(sql) and None for sql in given]
print(json.dumps([answer for answer in answers if answer is not None]))";
    let queries = fleet::report::statements();
    let told = ask(&python, &sandbox, script, &json!(queries));

    let count = told[0][0]["trials"].as_f64().unwrap();
    assert_eq!(Some(count), report["trials"].as_f64());
    let mut ours: Vec<&Value> = Vec::new();
    ours.extend(
        report["overhead"]
            .as_array()
            .unwrap()
            .iter()
            .map(|by| &by["groups"]),
    );
    ours.push(&report["outliers"]["farthest"]);
    ours.push(&report["regressions"]);
    for (ours, theirs) in ours
        .into_iter()
        .zip(told.as_array().unwrap().iter().skip(1))
    {
        let (ours, theirs) = (ours.as_array().unwrap(), theirs.as_array().unwrap());
        assert_eq!(ours.len(), theirs.len());
        for (ours, theirs) in ours.iter().zip(theirs) {
            for (field, value) in ours.as_object().unwrap() {
                let (value, other) = (value, &theirs[field]);
                assert!(
                    value == other || value.as_f64() == other.as_f64() && value.is_number(),
                    "{field}: {value} and {other}"
                );
            }
        }
    }
    // The fleet is made so that there is something to find.
    assert_eq!(report["outliers"]["farthest"].as_array().unwrap().len(), 20);
    let regressions = report["regressions"].as_array().unwrap();
    assert_eq!(regressions.len(), 10, "{regressions:?}");
    assert!(
        regressions
            .iter()
            .all(|one| one["cipher"] == "serpent-xts-plain64")
    );
}

#[test]
fn what_cannot_be_reported_on_is_told() {
    let sandbox = sandbox();
    let fails = |from: &str, code| sandbox.fails(code, &["fleet", "report", from]);
    assert!(
        sandbox
            .fails(2, &["fleet", "report"])
            .contains("holds no runs")
    );
    assert!(fails("absent", 2).contains("cannot use the folder absent"));
    std::fs::create_dir(sandbox.path("empty")).unwrap();
    assert!(fails("empty", 2).contains("empty has no trials"));
    sandbox.write("text", "no database");
    assert!(fails("text", 2).contains("it is not a folder"));

    put(&store(&sandbox, "host"), &sample::run());
    sandbox.ok(&["export", "--parquet", "trials"]);
    let file = sandbox.path("trials/date=2026-11-21/plan=quick/broken.parquet");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let whole = crate::tables::files(&sandbox, "trials").remove(0);
    let whole = std::fs::read(sandbox.path("trials").join(whole)).unwrap();
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let told = fails("trials", 2);
    assert!(
        told.contains("plan=quick/broken.parquet in trials was not exported by cryptmark"),
        "{told}"
    );
    std::fs::remove_file(&file).unwrap();
    sandbox.ok(&["fleet", "report", "trials"]);

    let Some(python) = python() else { return };
    // Another program's table, with a column of ours that is something else there; then ours, by a newer cryptmark.
    let script = "
import glob, pyarrow as pa, pyarrow.parquet as pq
pq.write_table(pa.table({'id': [1, 2], 'cpu': [[1], [2]]}), 'trials/foreign.parquet')
table = pq.read_table(glob.glob('trials/date=*/plan=*/*.parquet')[0], partitioning=None)
version = pa.array([99] * len(table), pa.int64())
import os
os.mkdir('newer')
pq.write_table(table.set_column(0, 'schema_version', version).append_column('later', version), 'newer/newer.parquet')
print(json.dumps(table.column_names[0]))";
    assert_eq!(
        ask(&python, &sandbox, script, &json!(null)),
        "schema_version"
    );
    let told = fails("trials", 2);
    assert!(
        told.contains("foreign.parquet in trials was not exported by cryptmark"),
        "{told}"
    );
    let told = fails("newer", 2);
    assert!(
        told.contains("table version 99; this program knows up to 1"),
        "{told}"
    );
}
