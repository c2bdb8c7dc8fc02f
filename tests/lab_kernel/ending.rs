//! However the program ends, nothing of its kernel goes on.

use crate::sandbox::{assert_nothing_runs, lab, on_each, processes, sandbox, succeed};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::{Child, Stdio};
use std::time::Duration;
use testkit::Sandbox;

/// Processes of several kinds, the thread of a disk, writing all the time.
const BUSY: &str = "mke2fs -q /dev/ubda; mount /dev/ubda /mnt; sleep 1000 & yes >/dev/null & \
     (while :; do dd if=/dev/zero of=/mnt/x bs=64k count=100; done) 2>/dev/null & \
     touch out/ready; while :; do sh -c :; done";

fn start(sandbox: &Sandbox, kernel: &[&str]) -> Child {
    sandbox.write("disk", vec![0; 16 << 20]);
    let options = ["--writable", "out", "--disk", "disk"];
    let command = ["--", "sh", "-c", BUSY];
    let mut command = lab(
        sandbox,
        &[&["run"], kernel, &options[..], &command[..]].concat(),
    );
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

#[test]
fn killed_at_any_moment_it_takes_the_kernel_along() {
    on_each(check_killing_at_any_moment);
}

fn check_killing_at_any_moment(sandbox: &Sandbox, kernel: &[&str]) {
    let mut ready = 0;
    for delay in [0, 2, 5, 20, 50, 100, 200, 400, 800, 1600, 3200] {
        let mut child = start(sandbox, kernel);
        std::thread::sleep(Duration::from_millis(delay));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_nothing_runs(sandbox);
        // A process without its kernel would write here to the host.
        ready += u32::from(fs::remove_file(sandbox.path("out/ready")).is_ok());
        let left: Vec<_> = fs::read_dir(sandbox.path("out")).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
    println!("{ready} of 11 were killed while the command ran");
}

#[test]
fn killed_while_the_command_runs() {
    on_each(|sandbox, kernel| {
        for _ in 0..3 {
            let mut child = start(sandbox, kernel);
            await_ready(sandbox, &mut child);
            assert!(processes(sandbox).len() > 3);
            child.kill().unwrap();
            child.wait().unwrap();
            assert_nothing_runs(sandbox);
            fs::remove_file(sandbox.path("out/ready")).unwrap();
        }
    });
}

#[test]
fn signals_end_it_with_their_exit_code() {
    let Some(sandbox) = sandbox() else { return };
    for signal in [Signal::INT, Signal::TERM] {
        let mut child = start(&sandbox, &[]);
        await_ready(&sandbox, &mut child);
        kill_process(pid(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{said}");
        assert_eq!(said.lines().count(), 2, "{said}");
        assert!(processes(&sandbox).is_empty());
        assert_nothing_runs(&sandbox);
        fs::remove_file(sandbox.path("out/ready")).unwrap();
    }
}

#[test]
fn patience_ends() {
    let Some(sandbox) = sandbox() else { return };
    let output = lab(&sandbox, &["run", "--timeout", "5", "--", "sleep", "1000"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("after 5 s") && said.lines().count() == 2,
        "{said}"
    );
    assert!(processes(&sandbox).is_empty());
}

#[test]
fn a_panic_is_told_with_the_kernels_words() {
    let Some(sandbox) = sandbox() else { return };
    let script = "echo 1 >/proc/sys/vm/panic_on_oom; exec tail /dev/zero";
    let run = ["run", "--memory", "128MiB", "--", "sh", "-c", script];
    let output = lab(&sandbox, &run).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("while the command ran: ") && said.contains("Kernel panic"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 2, "{said}");
    assert_nothing_runs(&sandbox);
    // The processor's own memory is enough for the next.
    assert_eq!(succeed(&sandbox, &[], "echo well"), "well\n");
}

fn await_ready(sandbox: &Sandbox, child: &mut Child) {
    while !sandbox.path("out/ready").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended");
        std::thread::sleep(Duration::from_millis(20));
    }
}
