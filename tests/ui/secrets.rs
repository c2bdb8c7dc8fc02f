//! Passphrases: they stay nowhere.

use super::hostile::sent;
use super::{PASSPHRASE, Ui, create, encoded, sandbox};
use std::fs;
use std::path::Path;

/// A secret is in nothing that the server printed, shows, wrote or gave to other programs.
#[track_caller]
pub fn assert_nowhere(ui: &Ui, secret: &str) {
    assert_not_seen(ui, secret);
    assert_in_no_file(ui.sandbox.directory(), secret);
}

/// The same without files.
#[track_caller]
fn assert_not_seen(ui: &Ui, secret: &str) {
    assert!(!ui.pages.said().contains(secret), "it was printed");
    let volume = format!("/volume?path={}", encoded(ui, "volume.img"));
    let pages = [
        "/",
        "/runs",
        "/volumes",
        "/watch?job=1",
        "/watch?job=2",
        &volume,
    ];
    for page in pages {
        let (_, answer) = ui.pages.asked(&format!("GET {page}"), "");
        assert!(!answer.contains(secret), "{page}");
    }
    assert_in_no_process(secret);
}

#[track_caller]
fn assert_in_no_process(secret: &str) {
    for process in fs::read_dir("/proc").unwrap() {
        let process = process.unwrap().path();
        for file in ["cmdline", "environ"] {
            // It may have ended.
            let text = fs::read(process.join(file)).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            assert!(!text.contains(secret), "{} {file}", process.display());
        }
    }
}

#[track_caller]
fn assert_in_no_file(folder: &Path, secret: &str) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            assert_in_no_file(&entry.path(), secret);
        } else if entry.file_name() != "line" {
            let bytes = fs::read(entry.path()).unwrap();
            let found = bytes
                .windows(secret.len())
                .any(|part| part == secret.as_bytes());
            assert!(!found, "{}", entry.path().display());
        }
    }
}

#[test]
fn a_passphrase_stays_nowhere() {
    let sandbox = sandbox();
    create(&sandbox, "volume.img");
    let ui = Ui::serve(sandbox);
    let volume = encoded(&ui, "volume.img");
    let output = encoded(&ui, "plain");
    let wrong = "a wrong one that is found: 4207";
    for passphrase in [PASSPHRASE, wrong] {
        let typed: String = passphrase
            .bytes()
            .map(|byte| format!("%{byte:02x}"))
            .collect();
        let body = format!("path={volume}&passphrase={typed}&output={output}");
        // While the commands run, and after that.
        std::thread::scope(|scope| {
            let work = scope.spawn(|| {
                let (_, opened) = sent(&ui, "open", &body);
                assert!(!opened.contains(passphrase), "{opened}");
                let (status, exported) = sent(&ui, "export", &body);
                assert_eq!(status, 303, "{exported}");
                assert!(!exported.contains(passphrase), "{exported}");
            });
            while !work.is_finished() {
                // Commands are short, and pages take longer.
                (0..50).for_each(|_| assert_in_no_process(passphrase));
                assert_not_seen(&ui, passphrase);
            }
        });
        // In an address it would stay in the history of a browser.
        let (status, answer) = ui.pages.asked(&format!("GET /open?{body}"), "");
        assert!(matches!(status, 404 | 405), "{answer}");
        assert_nowhere(&ui, passphrase);
    }
}
