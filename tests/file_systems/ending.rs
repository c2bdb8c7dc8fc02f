//! However a run is ended, and whoever of its processes is killed: nothing
//! stays mounted, attached or running.

use crate::sandbox::{PLAN, is_clean, measure, processes, sandbox, temporary};
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;
use testkit::{Sandbox, wait_until};

/// Who of a run is killed, by the words of its command line.
const VICTIMS: [(&str, &[&str]); 4] = [
    ("the command", &["run", "plan.toml"]),
    ("its agent", &["cryptmark agent"]),
    ("the agent's namespaces", &["unshare"]),
    ("the engine's server", &["engine-file"]),
];

/// Moments of a run that is killed, one after the other: what takes it from its
/// first mount to its last operation in steps of less than a stage.
const STEPS: u32 = 6;
const STEP: Duration = Duration::from_millis(130);

fn signal(process: i32, signal: Signal) {
    if let Some(process) = Pid::from_raw(process) {
        // It may have ended by itself just now.
        let _ = kill_process(process, signal);
    }
}

fn begun(sandbox: &Sandbox) -> Child {
    let mut run = measure(sandbox, PLAN);
    run.args(["--repeat", "1000"]);
    run.stdout(Stdio::null()).stderr(Stdio::null());
    let child = run.spawn().unwrap();
    wait_until("it does not begin", || {
        !of_run(&child, &["engine-file"]).is_empty()
    });
    child
}

fn ended(child: &mut Child, what: &str) -> ExitStatus {
    wait_until(&format!("it does not end: {what}"), || {
        child.try_wait().unwrap().is_some()
    });
    child.wait().unwrap()
}

/// Processes of this test's run alone: servers are found by who started them.
fn of_run(child: &Child, words: &[&str]) -> Vec<i32> {
    let all = processes(words);
    let ours = |process: &i32| {
        let mut process = *process;
        while process > 1 {
            if process == child.id() as i32 {
                return true;
            }
            let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
            let parent = stat.ok().and_then(|stat| {
                let (_, fields) = stat.rsplit_once(')')?;
                fields.split_whitespace().nth(1)?.parse().ok()
            });
            process = parent.unwrap_or(0);
        }
        false
    };
    all.into_iter().filter(ours).collect()
}

#[test]
fn nothing_stays_whoever_is_killed_at_whatever_stage() {
    let Some(sandbox) = sandbox() else { return };
    for (who, words) in VICTIMS {
        for step in 0..STEPS {
            let mut child = begun(&sandbox);
            std::thread::sleep(STEP * step);
            for process in of_run(&child, words) {
                signal(process, Signal::KILL);
            }
            if who == "the engine's server" {
                // Another may be there by now, and the run go on: it is asked to end.
                signal(child.id() as i32, Signal::TERM);
            }
            ended(&mut child, &format!("{who}, step {step}"));
            assert_eq!(is_clean(&sandbox), Ok(()), "{who}, step {step}");
        }
    }
    // What two killed at a time would leave is removed by the next run.
    let stale = sandbox.path("tmp/cryptmark-fs-999999999-x");
    std::fs::create_dir_all(stale.join("scratch")).unwrap();
    std::fs::write(stale.join("job"), "{}").unwrap();
    let output = measure(&sandbox, PLAN)
        .args(["--repeat", "1"])
        .output()
        .unwrap();
    assert!(output.status.success());
    assert!(!stale.exists());
    assert_eq!(temporary(&sandbox), 0);
}

#[test]
fn a_run_that_is_interrupted_keeps_what_it_has() {
    let Some(sandbox) = sandbox() else { return };
    let mut child = begun(&sandbox);
    std::thread::sleep(Duration::from_secs(4));
    signal(child.id() as i32, Signal::INT);
    assert_eq!(ended(&mut child, "interrupted").code(), Some(130));
    assert_eq!(is_clean(&sandbox), Ok(()));
    assert_eq!(temporary(&sandbox), 0);
    let shown = sandbox.run("show latest");
    let shown = String::from_utf8_lossy(&shown.stdout);
    assert!(
        shown.contains("PARTIAL") && shown.contains("ext2"),
        "{shown}"
    );
}
