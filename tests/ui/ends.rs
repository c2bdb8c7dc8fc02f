//! The end of the server while something is measured.

use super::hostile::sent;
use super::{Ui, encoded, ids, sandbox};
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;
use testkit::{Pages, wait_until};

/// As a terminal does it: the signal goes to the server's whole group.
#[test]
fn ctrl_c_keeps_what_was_measured_and_leaves_no_process() {
    let sandbox = sandbox();
    let mut command = sandbox.cryptmark("ui --port 0");
    command.process_group(0);
    let mut ui = Ui {
        pages: Pages::start(command),
        sandbox,
    };
    let here = encoded(&ui, "");
    let (status, answer) = sent(&ui, "start", &format!("what=cost&plan=&at={here}"));
    assert_eq!(status, 303, "{answer}");
    wait_until("nothing was stored", || !ids(&ui.sandbox).is_empty());
    let server = &mut ui.pages.running.0;
    let group = format!("-{}", server.id());
    let signalled = Command::new("kill").args(["-INT", "--", &group]).status();
    assert!(signalled.unwrap().success());
    assert_eq!(server.wait().unwrap().code(), Some(0));
    assert!(ui.sandbox.ok("list").contains("partial"));
    let folder = ui.sandbox.directory().to_str().unwrap();
    for process in fs::read_dir("/proc").unwrap() {
        // It may have ended.
        let line = fs::read(process.unwrap().path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        assert!(!line.contains(folder), "{line}");
    }
}
