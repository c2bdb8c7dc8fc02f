//! Measurements that are stopped: what was measured is stored, and no litter is left.

use super::{TINY, assert_no_litter, sandbox};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use testkit::{Sandbox, two_lines, wait_until};

#[test]
fn an_interrupted_run_is_stored_as_partial_and_leaves_no_litter() {
    let sandbox = sandbox();
    sandbox.write(
        "long.toml",
        TINY.replace("repetitions = 5", "repetitions = 1000"),
    );
    is_stored_as_partial(
        &sandbox,
        &["run", "long.toml", "--at", "at"],
        "seq-64k-write",
    );
    assert_no_litter(&sandbox);
}

#[test]
fn interrupted_derivations_are_stored_as_partial() {
    is_stored_as_partial(&sandbox(), &["run", "kdf"], "sha512 × 500,000");
}

/// Interrupts a run as soon as `word` is shown of it, however slow the machine is.
fn is_stored_as_partial(sandbox: &Sandbox, run: &[&str], word: &str) {
    let child = sandbox
        .cryptmark(run)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until(&format!("no {word} was stored"), || {
        String::from_utf8_lossy(&sandbox.run(&["show"]).stdout).contains(word)
    });
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    two_lines(&output, 130, "interrupted");
    assert!(String::from_utf8_lossy(&output.stdout).contains("PARTIAL"));
    assert!(sandbox.ok(&["list"]).contains("partial"));
}

/// Ctrl-Z in a terminal, or Pause in the window.
#[cfg(target_os = "linux")]
#[test]
fn a_paused_run_goes_on_to_its_end() {
    let sandbox = sandbox();
    sandbox.write(
        "long.toml",
        TINY.replace("repetitions = 5", "repetitions = 60"),
    );
    let child = sandbox
        .cryptmark(&["run", "long.toml", "--at", "at"])
        .env("CRYPTMARK_PROGRESS", "json")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let process = child.id().to_string();
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &process]).status();
        assert!(sent.unwrap().success());
    };
    let stat = format!("/proc/{process}/stat");
    let is_stopped = || {
        let stat = std::fs::read_to_string(&stat).unwrap();
        stat.rsplit_once(") ").unwrap().1.starts_with('T')
    };
    wait_until("nothing was stored", || {
        String::from_utf8_lossy(&sandbox.run(&["show"]).stdout).contains("seq-64k-write")
    });
    signal("-TSTP");
    wait_until("it was not paused", is_stopped);
    signal("-CONT");
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    for told in [r#"{"progress":"paused"}"#, r#"{"progress":"resumed"}"#] {
        assert!(said.lines().any(|line| line == told), "{said}");
    }
    assert!(!sandbox.ok(&["list"]).contains("partial"));
}

/// As a terminal does it: the program and its children get the signal.
#[cfg(unix)]
#[test]
fn ctrl_c_among_javas_repetitions_is_no_failure_of_java() {
    use std::os::unix::process::CommandExt;
    let sandbox = sandbox();
    let plan = r#"
title = "Java alone, for long"
tier = "cipher"
size = "1 MiB"
repetitions = 3
systems = ["java"]
ciphers = ["aes-ecb"]
"#;
    let workloads = (0..300).map(|nth| {
        format!(
            "[[workload]]\nname = \"encrypt-{nth}\"\npattern = \"sequential\"\nop = \"encrypt\"\n\
             block_size = \"64 KiB\"\nseconds = 0.01\ncold = true\n"
        )
    });
    let plan: String = std::iter::once(plan.to_owned()).chain(workloads).collect();
    sandbox.write("java.toml", plan);
    let mut child = sandbox
        .cryptmark(&["run", "java.toml"])
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while !String::from_utf8_lossy(&sandbox.run(&["show"]).stdout).contains("AES") {
        if child.try_wait().unwrap().is_some() {
            let said = child.wait_with_output().unwrap().stderr;
            let said = String::from_utf8_lossy(&said);
            assert!(said.contains("none of the requested systems"), "{said}");
            println!("skipped: java among the systems (it is absent)");
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(120), "nothing stored");
        std::thread::sleep(Duration::from_millis(100));
    }
    let group = format!("-{}", child.id());
    let killed = Command::new("kill").args(["-INT", "--", &group]).status();
    assert!(killed.unwrap().success());
    let output = child.wait_with_output().unwrap();
    two_lines(&output, 130, "interrupted");
    assert!(String::from_utf8_lossy(&output.stdout).contains("partial"));
}
