//! What is asked before anything is lost: every kind of content against every command
//! that would write over it, and every place that sets a secret against every way to
//! give none.

mod behind;
mod judge;
mod losses;
mod meanwhile;
mod same;
mod secrets;
mod states;
mod tagged;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use testkit::Sandbox;

const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");

/// How a command ended.
#[derive(Debug)]
struct Answer {
    code: Option<i32>,
    said: String,
}

/// A sandbox with a passphrase in `pass`, and another in `other`; long enough for a small PIM.
fn sandbox() -> Sandbox {
    Sandbox::new(PROGRAM)
        .with_file("pass", "a passphrase of many letters\n")
        .with_file("other", "another passphrase of many letters\n")
}

/// `cryptmark volume` with the words of `line`, and `input` on standard input.
fn run(sandbox: &Sandbox, line: &str, input: &[u8]) -> Answer {
    let mut child = sandbox
        .volume_command(line)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may end before it has read all.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    Answer {
        code: output.status.code(),
        said: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs what has to be refused, and has to leave everything as it is.
fn refused(sandbox: &Sandbox, line: &str, input: &[u8], code: i32, wanted: &[&str]) -> Vec<String> {
    let before = files(sandbox);
    let answer = run(sandbox, line, input);
    let mut wrong = Vec::new();
    if answer.code != Some(code) {
        wrong.push(format!(
            "{line}: {:?}, not {code}: {}",
            answer.code, answer.said
        ));
    }
    for words in wanted {
        if !answer.said.contains(words) {
            wrong.push(format!("{line}: does not say `{words}`: {}", answer.said));
        }
    }
    let lines = answer
        .said
        .lines()
        .filter(|line| !line.starts_with("warning: "));
    if lines.count() != 2 {
        wrong.push(format!("{line}: not two lines: {}", answer.said));
    }
    if files(sandbox) != before {
        wrong.push(format!("{line}: changed a file"));
    }
    wrong
}

/// All files: their lengths, and of those that commands are about what they hold.
fn files(sandbox: &Sandbox) -> BTreeMap<PathBuf, (u64, Vec<u8>)> {
    let entries = fs::read_dir(sandbox.directory()).unwrap();
    let files = entries.map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.is_file())
        .map(|path| {
            let metadata = fs::metadata(&path).unwrap();
            let content = match ["x", "v", "plain"].iter().any(|name| path.ends_with(name)) {
                true => fs::read(&path).unwrap(),
                false => Vec::new(),
            };
            (path, (metadata.len(), content))
        })
        .collect()
}

/// A loop device on a file, for as long as it is wanted.
struct Loop {
    path: PathBuf,
}

impl Loop {
    /// Nothing, and a word about it, where there can be none.
    fn new(file: &Path) -> Option<Self> {
        let output = Command::new("losetup")
            .args(["--find", "--show"])
            .arg(file)
            .output();
        match output {
            Ok(output) if output.status.success() => Some(Self {
                path: String::from_utf8(output.stdout).unwrap().trim().into(),
            }),
            _ => {
                println!("skipped: volumes on devices: no loop device can be had");
                None
            }
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.path).status();
    }
}

fn nothing_wrong(wrong: &[String]) {
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}
