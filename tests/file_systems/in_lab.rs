//! Runs in the lab kernel: what of dm-crypt can be tested there alone, and that
//! nothing stays when the run or the kernel is killed.

use crate::record;
use crate::sandbox::{is_clean, measure, sandbox};
use lab::kernel::{Lab, Version, standard_cache};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use testkit::{Sandbox, two_lines, wait_until};

/// Every row has tags; an operation of the test's own fails where there are none.
const TAGGED: &str = r#"
title = "a test"
tier = "fs"
size = "16 MiB"
repetitions = 1
file_systems = ["ext2", "jffs2"]
systems = ["lab:dm-crypt"]
ciphers = ["aes-xts-plain64", "serpent-cbc-essiv:sha256"]
key_size = 256
dm_crypt_options = [["integrity:hmac-sha256"], ["integrity:hmac-sha256", "sector_size:4096"]]

[[operation]]
name = "own"
op = "command"
command = "test ! -e /sys/block/dm-0 || test $(cat /sys/block/dm-0/integrity/tag_size) = 32"

[[operation]]
name = "array"
op = "encrypt"
files = 3
file_size = "4 KiB"

[[operation]]
name = "write"
op = "write"
file_size = "3 MB"

[[operation]]
name = "read"
op = "read"
file_size = "3 MB"
"#;

/// A sandbox with a copy of the kernel, so that its processes are told from others'.
struct InLab {
    sandbox: Sandbox,
    kernel: PathBuf,
}

impl InLab {
    fn new() -> Option<Self> {
        let sandbox = sandbox()?;
        let kernel = match Lab::find(Version::V5_10) {
            Ok(lab) => lab.path().to_owned(),
            Err(error) => {
                println!(
                    "skipped: file systems in the lab kernel: {error} (cargo xtask install lab-kernel)"
                );
                return None;
            }
        };
        let inside = kernel.strip_prefix(standard_cache().unwrap()).unwrap();
        let copy = sandbox.path("cache/cryptmark/lab-kernel").join(inside);
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(kernel, &copy).unwrap();
        Some(Self {
            sandbox,
            kernel: copy,
        })
    }

    fn run(&self, plan: &str) -> Command {
        let mut command = measure(&self.sandbox, plan);
        command.env("XDG_CACHE_HOME", self.sandbox.path("cache"));
        command
    }

    /// Processes of the kernel, what is inside included; the kernel itself first.
    fn processes(&self) -> Vec<i32> {
        let ours = |entry: &fs::DirEntry| {
            fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == self.kernel)
        };
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let mut found: Vec<i32> = entries
            .filter(ours)
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect();
        found.sort_unstable();
        found
    }

    /// Until the kernel runs.
    fn begun(&self, plan: &str) -> Child {
        let mut run = self.run(plan);
        run.args(["--repeat", "1000"]);
        run.stdout(Stdio::null()).stderr(Stdio::piped());
        let child = run.spawn().unwrap();
        wait_until("no kernel", || !self.processes().is_empty());
        child
    }

    fn is_clean(&self) -> Result<(), String> {
        let begun = Instant::now();
        while !self.processes().is_empty() {
            if begun.elapsed() > Duration::from_secs(60) {
                return Err(format!("processes {:?}", self.processes()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        is_clean(&self.sandbox)
    }
}

fn kill(process: i32) {
    if let Some(process) = Pid::from_raw(process) {
        // It may have ended by itself just now.
        let _ = kill_process(process, Signal::KILL);
    }
}

#[test]
fn tags_lie_under_dm_crypt_and_what_is_read_through_them_is_what_was_written() {
    let Some(lab) = InLab::new() else { return };
    let run = record(&lab.run(TAGGED).args(["--json", "-"]).output().unwrap());
    assert_eq!(lab.is_clean(), Ok(()));
    assert!(!run["warnings"].to_string().contains("absent"), "{run}");
    let trials = run["trials"].as_array().unwrap();
    // Plain, two ciphers with two rows each, and plain again; under jffs2, no array.
    assert_eq!(trials.len(), 6 * (4 + 3));
    let mut rows = BTreeSet::new();
    for trial in trials.iter().filter(|trial| trial["system"] != "lab:none") {
        let options = trial["backend"].as_str().unwrap();
        let sector = if options.contains("sector_size") {
            4096
        } else {
            512
        };
        assert_eq!(trial["sector_bytes"], sector, "{options}");
        rows.insert((options, trial["cipher"].as_str().unwrap()));
        let writes = ["encrypt", "write"].contains(&trial["op"].as_str().unwrap());
        let crypto = trial["time_s"]["crypto"].as_f64().unwrap();
        assert!(!writes || crypto > 0.0, "{trial}");
        let moved = |what: &str| trial["operation"]["moved"][what].as_u64().unwrap();
        if trial["op"] == "encrypt" {
            // Three requests around all caches, and a flush.
            assert_eq!(
                (trial["bytes"].as_u64(), trial["operation"]["fs"].as_str()),
                (Some(12_288), Some("ext2"))
            );
            assert_eq!(moved("written_bytes"), 12_288);
            assert!((3..=6).contains(&moved("writes")), "{trial}");
        }
    }
    assert_eq!(rows.len(), 4, "{rows:?}");
}

#[test]
fn nothing_stays_when_a_run_in_the_lab_kernel_is_killed() {
    let Some(lab) = InLab::new() else { return };
    // While it boots, while the first job begins, in the midst of it.
    for delay in [0, 900, 2500] {
        let mut child = lab.begun(TAGGED);
        std::thread::sleep(Duration::from_millis(delay));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(lab.is_clean(), Ok(()), "after {delay} ms");
    }
}

#[test]
fn a_lab_kernel_that_dies_is_told_and_what_was_measured_is_kept() {
    let Some(lab) = InLab::new() else { return };
    let child = lab.begun(TAGGED);
    let shown = || {
        let output = lab.sandbox.run("show latest");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    wait_until("nothing is stored", || shown().contains("ext2"));
    kill(lab.processes()[0]);
    let output = child.wait_with_output().unwrap();
    assert_eq!(lab.is_clean(), Ok(()));
    let said = two_lines(&output, 1, "the run");
    assert!(said.contains("kernel"), "{said}");
    let shown = shown();
    assert!(
        shown.contains("PARTIAL") && shown.contains("ext2"),
        "{shown}"
    );
}
