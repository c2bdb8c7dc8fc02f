//! What was measured is kept, whatever the store or the output cannot take.

use super::{STORE, in_small_tmpfs, sandbox};
use lab::record::Run;
use lab::store::{Location, Store};
use std::process::Stdio;
use testkit::{Sandbox, wait_until};

/// Files in the sandbox that runs were put into because nothing else took them.
fn rescued(sandbox: &Sandbox) -> Vec<String> {
    let files = std::fs::read_dir(sandbox.directory()).unwrap().flatten();
    files
        .map(|file| file.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("cryptmark-") && name.ends_with(".json"))
        .collect()
}

fn store(sandbox: &Sandbox) -> Store {
    Store::open(&Location::Folder(sandbox.path(STORE))).unwrap()
}

fn ids(sandbox: &Sandbox) -> Vec<String> {
    let runs = store(sandbox).list().unwrap();
    runs.into_iter().map(|run| run.run).collect()
}

/// A run is deleted while it is measured, and standard output is full.
#[cfg(target_os = "linux")]
#[test]
fn a_run_that_neither_store_nor_output_takes_is_beside_the_user() {
    let sandbox = sandbox();
    let long = super::TINY.replace("repetitions = 5", "repetitions = 1000");
    sandbox.write("long.toml", long);
    let child = sandbox
        .cryptmark(&["run", "long.toml", "--at", "at"])
        .stdout(std::fs::File::create("/dev/full").unwrap())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("nothing stored", || {
        String::from_utf8_lossy(&sandbox.run(&["show"]).stdout).contains("seq-64k-write")
    });
    let id = store(&sandbox).delete("latest").unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(
        rescued(&sandbox),
        [format!("cryptmark-{id}.json")],
        "{said}"
    );
    assert!(said.contains(&format!("cryptmark import ./cryptmark-{id}.json")));
    assert!(
        said.contains("warning: cannot write to standard output"),
        "{said}"
    );
    // What is said is so.
    sandbox.ok(&["import", &format!("./cryptmark-{id}.json")]);
    assert!(sandbox.ok(&["show", &id]).contains("seq-64k-write"));
}

/// An output that cannot be written is no reason to write nothing else, and to judge nothing.
#[test]
fn one_output_that_fails_is_not_all_of_them() {
    let sandbox = sandbox();
    sandbox.ok(&["run", "tiny.toml", "--tier", "cipher"]);
    super::store_scaled(&sandbox, "zz-fast", 1e3);
    let run = ["run", "tiny.toml", "--tier", "cipher", "--repeat", "30"];
    let judged = ["--baseline", "zz-fast", "--fail-if-slower", "10"];
    let files = ["--json", "gone/run.json", "--html", "page.html"];
    // There when the run begins, and not when it ends.
    std::fs::create_dir(sandbox.path("gone")).unwrap();
    let child = sandbox
        .cryptmark(&[&run[..], &judged, &files].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("nothing begun", || ids(&sandbox).len() >= 3);
    std::fs::remove_dir(sandbox.path("gone")).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("slower by more than 10 %"), "{said}");
    assert!(
        said.contains("warning: ") && said.contains("run.json"),
        "{said}"
    );
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("Stored as"), "{shown}");
    assert!(sandbox.path("page.html").exists());
}

/// Of a rescued run the store has had the beginning.
#[test]
fn a_run_that_was_cut_short_in_the_store_is_imported() {
    let sandbox = sandbox();
    sandbox.ok(&[
        "run",
        "tiny.toml",
        "--at",
        "at",
        "--quick",
        "--json",
        "run.json",
    ]);
    let text = sandbox.read_text("run.json");
    let run: Run = serde_json::from_str(&text).unwrap();
    let id = store(&sandbox).delete(&run.run).unwrap();
    store(&sandbox).begin(&run).unwrap();
    assert!(sandbox.ok(&["list"]).contains("partial"));
    let said = sandbox.ok(&["import", "run.json"]);
    assert!(
        said.contains(&format!("run {id}, of which a part was stored")),
        "{said}"
    );
    assert_eq!(store(&sandbox).load(&id).unwrap(), run);
    assert!(!sandbox.ok(&["list"]).contains("partial"));
}

/// Those that are there are passed over, wherever they stand.
#[test]
fn runs_are_imported_beside_those_that_are_there() {
    let sandbox = sandbox();
    for _ in 0..3 {
        sandbox.ok(&["run", "tiny.toml", "--tier", "cipher", "--quick"]);
    }
    let ids = ids(&sandbox);
    let [first, second, third] = [&ids[0], &ids[1], &ids[2]];
    sandbox.ok(&["report", second, "-o", "second.json"]);
    sandbox.ok(&["report", first, second, third, "-o", "all.json"]);
    let other = |arguments: &[&str]| sandbox.ok(&[&["--store", "other.db"], arguments].concat());
    other(&["import", "second.json"]);
    let said = other(&["import", "all.json"]);
    assert!(
        said.contains(&format!("Run {second} is stored already.")),
        "{said}"
    );
    assert_eq!(said.matches("Imported").count(), 2, "{said}");
    assert_eq!(other(&["list"]).lines().count(), 3);
    assert_eq!(
        other(&["import", "all.json"])
            .matches("stored already")
            .count(),
        3
    );

    // Another run under an id that is there is refused, and with it those before it.
    let text = sandbox.read_text("all.json");
    let changed = text.replacen("\"seed\": ", "\"seed\": 1", 3);
    sandbox.write("changed.json", changed);
    sandbox.ok(&["--store", "third.db", "import", "second.json"]);
    let import = ["--store", "third.db", "import", "changed.json"];
    assert!(sandbox.fails(1, &import).contains(&**second));
    let list = sandbox.ok(&["--store", "third.db", "list"]);
    assert_eq!(list.lines().count(), 1, "{list}");
}

/// It is JSON and a page, whatever they are called.
#[test]
fn the_names_of_outputs_do_not_choose_their_formats() {
    let sandbox = sandbox();
    let run = ["run", "tiny.toml", "--tier", "cipher", "--quick"];
    for (json, html) in [("record", "page"), ("page.html", "record.json")] {
        sandbox.ok(&[&run[..], &["--json", json, "--html", html]].concat());
        let read = |name: &str| sandbox.read_text(name);
        serde_json::from_str::<Run>(&read(json)).unwrap();
        assert!(read(html).starts_with("<!DOCTYPE html>"));
    }
    let stored = ids(&sandbox).len();
    let refused = [
        (&["--html", "-"][..], "--html takes a file"),
        (&["--html", "x", "--json", "x"], "both name x"),
    ];
    for (outputs, word) in refused {
        let said = sandbox.fails(2, &[&run[..], outputs].concat());
        assert!(said.contains(word), "{said}");
    }
    assert_eq!(ids(&sandbox).len(), stored, "measured for nothing");
    #[cfg(unix)]
    {
        let script = format!(
            "{} {} --json /dev/fd/3 3>&1 >/dev/null",
            super::PROGRAM,
            run.join(" ")
        );
        let printed = sandbox.tool("sh", &["-c", &script]);
        serde_json::from_str::<Run>(&printed).unwrap();
    }
}

/// The store is too full for the run; room enough is here.
#[test]
fn advice_is_given_and_its_run_kept_although_the_store_is_full() {
    let sandbox = sandbox();
    let script = "$PROGRAM --store at/runs.db store >/dev/null; \
                  dd if=/dev/zero of=at/filler bs=1k 2>/dev/null; \
                  $PROGRAM --store at/runs.db advise --system drive:tlc-1t --cpu aes=500MB/s \
                  --cipher aes-xts-plain64 --no-progress";
    let Some(output) = in_small_tmpfs(&sandbox, "size=1m", script) else {
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let answer = String::from_utf8_lossy(&output.stdout);
    assert!(answer.contains("AES-256 XTS"), "{said}{answer}");
    let rescued = rescued(&sandbox);
    assert_eq!(rescued.len(), 1, "{said}");
    assert!(said.contains(&rescued[0]), "{said}");
    let imported = sandbox.ok(&["import", &rescued[0]]);
    assert!(imported.contains("of advice as run"), "{imported}");
}
