//! Test programs, two at a time: the end of each has fewer tests left than the machine has cores.

use super::Ran;
use serde_json::Value;
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

/// How many programs run at a time. Each runs as many tests at a time as the machine has cores.
const AT_A_TIME: usize = 2;

/// Those that take longest, longest first. They begin first, so that none is left over at the end.
const LONGEST: &[&str] = &[
    "reencryption",
    "file_systems",
    "ui",
    "book",
    "holds",
    "random_user",
    "lab_kernel",
];

/// A test program that cargo has built.
struct Program {
    /// The folder of the package and the target, as `crates/lab/store`.
    name: String,
    target: String,
    path: PathBuf,
    /// The package's folder, in which cargo runs it.
    folder: PathBuf,
}

/// Builds the test programs that `cargo test` builds with the arguments `all`, runs them and sums
/// up in `ran`; whether all passed.
pub fn run(all: &[&str], ran: &mut Ran) -> bool {
    let Some(mut programs) = build(all) else {
        return false;
    };
    let place = |program: &Program| LONGEST.iter().position(|name| program.target == *name);
    programs.sort_by(|one, other| {
        let key = |program: &Program| place(program).unwrap_or(LONGEST.len());
        (key(one), &one.name).cmp(&(key(other), &other.name))
    });
    println!("{} test programs, {AT_A_TIME} at a time", programs.len());
    let left = Mutex::new(VecDeque::from(programs));
    let ran = Mutex::new(ran);
    let next = || {
        left.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    };
    let lane = || {
        let mut passed = true;
        while let Some(program) = next() {
            let begin = Instant::now();
            let (output, done) = program.run();
            let seconds = begin.elapsed().as_secs();
            let mut ran = ran.lock().unwrap_or_else(PoisonError::into_inner);
            println!("\n── {}, {seconds} s", program.name);
            ran.listen(&output[..]);
            if !done {
                ran.failures.push(format!("{} failed", program.name));
            }
            passed &= done;
        }
        passed
    };
    thread::scope(|scope| {
        let lanes: Vec<_> = (0..AT_A_TIME).map(|_| scope.spawn(lane)).collect();
        let passed = lanes.into_iter().map(|lane| lane.join().unwrap_or(false));
        // All of them are waited for.
        passed.fold(true, |all, one| all & one)
    })
}

/// The programs that cargo says it has built.
fn build(all: &[&str]) -> Option<Vec<Program>> {
    let child = crate::cargo_command()
        .args(all)
        .args(["--no-run", "--message-format", "json-render-diagnostics"])
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        eprintln!("cargo could not be started");
        return None;
    };
    let output = child.stdout.take()?;
    let lines = BufReader::new(output).lines().map_while(Result::ok);
    let programs = lines
        .filter_map(|line| program(&serde_json::from_str(&line).ok()?))
        .collect();
    child
        .wait()
        .is_ok_and(|status| status.success())
        .then_some(programs)
}

/// The test program of one of cargo's messages.
fn program(message: &Value) -> Option<Program> {
    let is_test = message["profile"]["test"].as_bool()?;
    let path = message["executable"].as_str().filter(|_| is_test)?;
    let manifest = PathBuf::from(message["manifest_path"].as_str()?);
    let folder = manifest.parent()?.to_owned();
    let target = message["target"]["name"].as_str()?.to_owned();
    let name = folder.strip_prefix(crate::root()).ok()?.join(&target);
    Some(Program {
        name: name.display().to_string(),
        target,
        path: path.into(),
        folder,
    })
}

impl Program {
    /// Runs it; what it said, and whether it passed.
    fn run(&self) -> (Vec<u8>, bool) {
        let mut output = Vec::new();
        let done = self.run_into(&mut output);
        let done = done.unwrap_or_else(|error| {
            output.extend(format!("{}: {error}\n", self.path.display()).bytes());
            false
        });
        (output, done)
    }

    fn run_into(&self, output: &mut Vec<u8>) -> io::Result<bool> {
        let (mut reader, writer) = io::pipe()?;
        let mut child = {
            // The writing ends are closed here, so that there is an end to what is read.
            let mut command = Command::new(&self.path);
            command
                // Passing tests, too, are to be heard when they skip something.
                .arg("--show-output")
                .current_dir(&self.folder)
                .stdout(writer.try_clone()?)
                .stderr(writer);
            command.spawn()?
        };
        reader.read_to_end(output)?;
        Ok(child.wait()?.success())
    }
}

#[test]
fn test_programs_are_found_in_messages() {
    let manifest = crate::root().join("crates/lab/Cargo.toml");
    let message = |test: bool, executable: Value| {
        serde_json::json!({
            "reason": "compiler-artifact",
            "manifest_path": manifest,
            "target": { "name": "store" },
            "profile": { "test": test },
            "executable": executable,
        })
    };
    let found = program(&message(true, "/x/store-1".into())).unwrap();
    assert_eq!(found.name, "crates/lab/store");
    assert_eq!(found.folder, manifest.parent().unwrap());
    assert!(program(&message(false, "/x/store".into())).is_none());
    assert!(program(&message(true, Value::Null)).is_none());
    assert!(program(&serde_json::json!({ "reason": "build-finished" })).is_none());
}

#[test]
fn a_program_is_heard_to_its_end() {
    let one = |path: &str| Program {
        name: "x".into(),
        target: "x".into(),
        path: path.into(),
        folder: crate::root(),
    };
    let (said, done) = one("/bin/echo").run();
    assert_eq!((said, done), (b"--show-output\n".to_vec(), true));
    assert!(!one("/bin/false").run().1);
    let (said, done) = one("/no/such/program").run();
    assert!(
        !done
            && String::from_utf8(said)
                .unwrap()
                .starts_with("/no/such/program: ")
    );
}
