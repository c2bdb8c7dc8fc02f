//! What `cryptmark export` writes, as DuckDB and pandas read it.

use crate::synthetic::put;
use crate::tables::{ask, files, python, store, tool};
use crate::{PROGRAM, on, sample, sandbox};
use lab::record::{Detail, Life, Run, Shard, TrimPolicy};
use serde_json::{Value, json};
use testkit::Sandbox;

/// Runs of three days and plans, one of them with a name that paths do not take.
fn runs() -> Vec<Run> {
    let named = |run: &str, plan: &str, started: &str, of: Run| Run {
        run: run.into(),
        plan: plan.into(),
        started: started.into(),
        ..of
    };
    vec![
        named(
            "20261120-a",
            "quick",
            "2026-11-20T23:30:00-02:00",
            sample::run(),
        ),
        named(
            "20261121-b",
            "50 % / größer",
            "2026-11-21T10:00:00Z",
            sample::run(),
        ),
        named(
            "20261122-c",
            "many",
            "2026-11-22T00:30:00+01:00",
            lived(sample::many(60, 20)),
        ),
        named("20261123-d", "kdf", "no time at all", sample::kdf_run()),
        named(
            "20261124-e",
            "quick",
            "2026-11-24T00:00:00Z",
            sample::empty(),
        ),
    ]
}

/// The run, whose second trial is of two lives of a drive.
fn lived(mut run: Run) -> Run {
    run.trials[1].detail = Detail::Life(Box::new(Life {
        policy: TrimPolicy::Block,
        over_provisioning: 0.07,
        gc: "greedy".into(),
        fill: 0.5,
        overwrites: 0.25,
        unpartitioned: 0.2,
        daily_bytes: 40_000_000_000,
        years: 5.0,
        first_seed: 7,
        write_amplification: sample::interval(3.5, 0.1),
        lifetime_years: sample::interval(11.0, 0.2),
        terabytes_written: sample::interval(160.0, 0.2),
        samples_write_amplification: vec![3.25, 3.75],
        samples_lifetime_years: vec![12.0, 10.0],
    }));
    run
}

/// A sandbox whose host `host` has these runs, exported to `trials`.
fn exported(runs: &[Run]) -> (Sandbox, String) {
    let sandbox = sandbox();
    let store = store(&sandbox, "host");
    for run in runs {
        put(&store, run);
    }
    drop(store);
    let said = sandbox.ok(&["export", "--parquet", "trials"]);
    (sandbox, said)
}

/// Columns of every kind, which are compared with the records.
const SOME: &str = "run, ordinal, CAST(date AS STRING), plan,
  partial, cpu, cores, cipher, key_bits, kdf, kdf_memory_kib, overhead_ratio, latency_p99_9_us,
  samples_mb_s, cpu_features, warnings, trim_policy, daily_bytes, write_amplification_low, lifetime_years,
  terabytes_written_high, samples_lifetime_years";

/// What is in them, behind the microseconds of `started`.
fn rows(runs: &[Run]) -> Vec<Value> {
    let mut rows = Vec::new();
    for run in runs {
        let started: Option<jiff::Timestamp> = run.started.parse().ok();
        for (ordinal, trial) in run.trials.iter().enumerate() {
            let life = trial.life();
            let lives: &[f64] = life.map_or(&[], |life| &life.samples_lifetime_years);
            rows.push(json!([
                started.map(|at| at.as_microsecond()),
                run.run,
                ordinal,
                started.map_or("1970-01-01".to_owned(), |at| at.strftime("%F").to_string()),
                run.plan,
                run.partial,
                run.host.cpu,
                run.host.cores,
                trial.cipher,
                trial.key_bits,
                trial.kdf().map(|kdf| &kdf.name),
                trial.kdf().map(|kdf| kdf.memory_kib),
                trial
                    .overhead
                    .as_ref()
                    .map(|overhead| overhead.ratio.median),
                trial.latency_us.as_ref().map(|latency| latency.p99_9),
                trial.samples_mb_s,
                run.host.features,
                trial.warnings,
                life.map(|life| life.policy),
                life.map(|life| life.daily_bytes),
                life.map(|life| life.write_amplification.low),
                life.map(|life| life.lifetime_years.median),
                life.map(|life| life.terabytes_written.high),
                lives,
            ]));
        }
    }
    rows
}

#[test]
fn a_run_is_a_file_and_stays_it() {
    let runs = runs();
    let (sandbox, said) = exported(&runs);
    let trials: usize = runs.iter().map(|run| run.trials.len()).sum();
    let said_first = format!("Exported {trials} trials of 4 run(s): ");
    assert!(said.starts_with(&said_first), "{said}");
    let expected = [
        "date=1970-01-01/plan=kdf/20261123-d.parquet",
        "date=2026-11-21/plan=50%20%25%20%2F%20größer/20261121-b.parquet",
        "date=2026-11-21/plan=many/20261122-c.parquet",
        "date=2026-11-21/plan=quick/20261120-a.parquet",
    ];
    assert_eq!(files(&sandbox, "trials"), expected);
    let contents =
        || expected.map(|file| std::fs::read(sandbox.path("trials").join(file)).unwrap());
    let first = contents();
    sandbox.ok(&["export", "--parquet", "trials"]);
    assert_eq!(files(&sandbox, "trials"), expected);
    assert!(first == contents(), "the same run is another file");
}

/// The host of the first attempt was lost, and a second one has finished the shard.
#[test]
fn an_attempt_that_was_dropped_is_exported_no_more() {
    let sandbox = sandbox();
    let attempt = |id: &str, partial| Run {
        run: id.into(),
        partial,
        shard: Some(Shard {
            experiment: "spring".into(),
            index: 1,
            of: 2,
            fingerprint: "f".into(),
            portions: vec![1],
        }),
        ..sample::run()
    };
    let host = store(&sandbox, "host");
    put(&host, &attempt("20261120-first", true));
    put(&host, &sample::run());
    // Another host exports to the same place what is only there.
    put(&store(&sandbox, "other"), &runs()[0]);
    let export = ["export", "--parquet", "trials"];
    on(&sandbox, "other", &export);
    sandbox.ok(&export);
    assert_eq!(files(&sandbox, "trials").len(), 3);
    put(&host, &attempt("20261121-b", false));
    let said = sandbox.ok(&export);
    assert!(
        said.contains("Removed 1 file(s) of earlier attempts"),
        "{said}"
    );
    let left = files(&sandbox, "trials");
    assert_eq!(left.len(), 3, "{left:?}");
    assert!(
        left.iter()
            .any(|file| file.ends_with("/20261121-b.parquet"))
    );
    assert!(!sandbox.ok(&export).contains("Removed"));
}

#[test]
fn other_programs_read_what_was_stored() {
    let Some(python) = python() else { return };
    let runs = runs();
    let (sandbox, _) = exported(&runs);
    let script = "
import duckdb, pandas
con = duckdb.connect()
con.execute(\"SET TimeZone = 'UTC'\")
all = \"read_parquet('trials/**/*.parquet', hive_partitioning = true)\"
columns = con.execute(f'DESCRIBE SELECT * FROM {all}').fetchall()
rows = con.execute(f'SELECT CAST(epoch_us(started) AS BIGINT), {given} FROM {all} ORDER BY run, ordinal').fetchall()
frame = pandas.read_parquet('trials')
print(json.dumps({
  'columns': [[name, kind] for name, kind, *_ in columns],
  'rows': rows,
  'pandas': {'rows': len(frame), 'plans': sorted(set(frame['plan'].astype(str))),
    'ratios': float(frame['overhead_ratio'].sum()), 'samples': float(sum(map(sum, frame['samples_mb_s'])))},
}))";
    let told = ask(&python, &sandbox, script, &json!(SOME));

    let mut columns: Vec<Value> = fleet::columns::stored()
        .map(|column| {
            let kind = match fleet::columns::sql_type(column).strip_prefix("LIST of ") {
                Some(element) => format!("{element}[]"),
                None => fleet::columns::sql_type(column).to_owned(),
            };
            json!([column.name, kind])
        })
        .collect();
    columns.extend([json!(["date", "DATE"]), json!(["plan", "VARCHAR"])]);
    assert_eq!(told["columns"], json!(columns));

    assert_eq!(told["rows"], json!(rows(&runs)));

    let trials = || runs.iter().flat_map(|run| &run.trials);
    let ratios = trials().filter_map(|trial| Some(trial.overhead.as_ref()?.ratio.median));
    let samples = trials().flat_map(|trial| &trial.samples_mb_s);
    let pandas = &told["pandas"];
    assert_eq!(pandas["rows"], trials().count());
    assert_eq!(
        pandas["plans"],
        json!(["50 % / größer", "kdf", "many", "quick"])
    );
    let close = |found: &Value, sum: f64| (found.as_f64().unwrap() / sum - 1.0).abs() < 1e-9;
    assert!(close(&pandas["ratios"], ratios.sum()));
    assert!(close(&pandas["samples"], samples.sum()));
}

/// Partitions, names that paths do not take, lists and times with a zone.
#[test]
#[ignore = "needs Spark: cargo xtask install elsewhere"]
fn spark_reads_what_was_stored() {
    let Some(python) = tool(
        "elsewhere/bin/python",
        "Spark is not installed (PyPI: pyspark; and a Java)",
    ) else {
        return;
    };
    let runs = runs();
    let (sandbox, _) = exported(&runs);
    let script = "
from pyspark.sql import SparkSession
spark = (SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false')
  .config('spark.driver.bindAddress', '127.0.0.1').config('spark.driver.host', '127.0.0.1')
  .config('spark.sql.session.timeZone', 'UTC').getOrCreate())
spark.sparkContext.setLogLevel('ERROR')
trials = spark.read.parquet('trials')
trials.createOrReplaceTempView('trials')
rows = spark.sql(f'SELECT unix_micros(started), {given} FROM trials ORDER BY run, ordinal').collect()
print(json.dumps({'columns': [[name, kind] for name, kind in trials.dtypes],
  'version': spark.version, 'rows': [list(row) for row in rows]}))";
    let told = ask(&python, &sandbox, script, &json!(SOME));
    println!("Spark {}", told["version"]);
    let spark = |kind: &str| match kind {
        "VARCHAR" => "string",
        "BIGINT" => "bigint",
        "DOUBLE" => "double",
        "BOOLEAN" => "boolean",
        "TIMESTAMP WITH TIME ZONE" => "timestamp",
        other => panic!("Spark has no {other}"),
    };
    let mut columns: Vec<Value> = fleet::columns::stored()
        .map(|column| {
            let kind = match fleet::columns::sql_type(column).strip_prefix("LIST of ") {
                Some(element) => format!("array<{}>", spark(element)),
                None => spark(fleet::columns::sql_type(column)).to_owned(),
            };
            json!([column.name, kind])
        })
        .collect();
    columns.extend([json!(["date", "date"]), json!(["plan", "string"])]);
    assert_eq!(told["columns"], json!(columns));
    assert_eq!(told["rows"], json!(rows(&runs)));
}

/// What the page shows is what DuckDB answers.
#[test]
fn the_query_of_the_page_is_one() {
    let Some(python) = python() else { return };
    let (sandbox, _) = exported(&runs());
    let page = include_str!("../../docs/PARQUET.md");
    let query = page.split("```sql\n").nth(1).unwrap();
    let query = query.split("```").next().unwrap();
    let script = "
import duckdb
rows = duckdb.sql(given).fetchall()
print(json.dumps([[str(date), cipher, trials] for date, cpu, cipher, ratio, trials in rows]))";
    let told = ask(&python, &sandbox, script, &json!(query));
    // Three workloads in each of the two small runs of that day, 60 in the large one.
    let rows = told.as_array().unwrap();
    assert!(
        rows.contains(&json!(["2026-11-21", "aes-xts-plain64", 66])),
        "{told}"
    );
}

/// DuckDB reads the files of a store, as the page about reports says.
#[test]
fn run_files_are_a_table() {
    let Some(python) = python() else { return };
    let sandbox = sandbox();
    for run in runs() {
        put(&store(&sandbox, "host"), &run);
    }
    let page = include_str!("../../docs/how-to/reports.md");
    let query = page.split("duckdb -c \"").nth(1).unwrap();
    let query = query.split('"').next().unwrap();
    let query = query.replace("elsewhere/", "host/cryptmark/runs/");
    let script = "
import duckdb
print(json.dumps(duckdb.sql(given).fetchall()))";
    let told = ask(&python, &sandbox, script, &json!(query));
    let rows = told.as_array().unwrap();
    let trials = || runs().into_iter().flat_map(|run| run.trials);
    assert_eq!(rows.len(), trials().count(), "{told}");
    for trial in trials() {
        let (system, rate) = (trial.system, trial.throughput_mb_s.median);
        assert!(
            rows.contains(&json!([system, trial.workload, rate])),
            "{system} {rate}: {told}"
        );
    }
}

#[test]
fn what_cannot_be_exported_is_told() {
    let sandbox = sandbox();
    let fails = |place: &str, code| sandbox.fails(code, &["export", "--parquet", place]);
    assert!(fails("trials", 2).contains("holds no runs"));
    assert!(!sandbox.path("trials").exists(), "a folder for nothing");
    put(&store(&sandbox, "host"), &sample::run());
    sandbox.write("file", "");
    assert!(fails("file", 2).contains("cannot use the folder file"));
    assert!(fails("file/below", 2).contains("cannot use the folder"));
    let told = fails("ftp://me:s3cret@host/x", 2);
    assert!(
        told.contains("ftp://host/x cannot hold trials") && !told.contains("s3cret"),
        "{told}"
    );
    // A record that a newer program has written.
    let newer = Run {
        schema: "cryptmark/3".into(),
        run: "20990101-z".into(),
        ..sample::run()
    };
    put(&store(&sandbox, "host"), &newer);
    let told = fails("trials", 2);
    assert!(told.contains("20990101-z has schema cryptmark/3"), "{told}");
}

#[test]
fn a_full_disk_leaves_no_half_file() {
    let sandbox = sandbox();
    let host = store(&sandbox, "host");
    for day in 10..20 {
        let run = Run {
            run: format!("202611{day}-a"),
            started: format!("2026-11-{day}T00:00:00Z"),
            ..sample::many(30, 20)
        };
        put(&host, &run);
    }
    drop(host);
    let script = "mount -t tmpfs -o size=300k none at && $PROGRAM export --parquet at; c=$?; \
                  cp -r at kept; exit $c";
    std::fs::create_dir(sandbox.path("at")).unwrap();
    let output = sandbox
        .command("unshare", &["-Urm", "sh", "-c", script])
        .env("PROGRAM", PROGRAM)
        .output();
    let output = match output {
        Ok(output) if sandbox.path("kept").exists() => output,
        _ => {
            println!("skipped: a tmpfs of the test's own (unshare -Urm is not permitted here)");
            return;
        }
    };
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(
        told.contains("at failed") && told.contains("No space left"),
        "{told}"
    );
    assert_eq!(told.trim_end().lines().count(), 2, "{told}");
    let kept = files(&sandbox, "kept");
    assert!(!kept.is_empty() && kept.len() < 10, "{kept:?}");
    for file in kept {
        let bytes = std::fs::read(sandbox.path("kept").join(&file)).unwrap();
        assert!(
            file.ends_with(".parquet") && bytes.ends_with(b"PAR1"),
            "{file}"
        );
    }
}
