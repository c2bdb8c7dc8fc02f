//! [`User`]: a sandbox, dice, and a history that is told when something is wrong.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use testkit::Sandbox;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");

/// Somebody who works in a folder of their own.
pub struct User {
    sandbox: Sandbox,
    dice: RefCell<Xoshiro256PlusPlus>,
    history: RefCell<Vec<String>>,
    secrets: u32,
    /// Whether the kernel here has dm-crypt, and nobody else uses it.
    pub kernel: bool,
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code; nothing where it was killed.
    pub code: Option<i32>,
    pub said: String,
}

impl Ended {
    /// Whether cryptsetup says that no keyslot fits; with unbound keys about it says so
    /// in other words.
    pub fn is_wrong_for_them(&self) -> bool {
        let words = ["No key available", "No usable keyslot"];
        words.iter().any(|words| self.said.contains(words))
    }
}

impl User {
    pub fn new(seed: u64) -> Self {
        let user = Self {
            sandbox: Sandbox::new(PROGRAM)
                .with_path("HOME", "")
                .with_path("XDG_RUNTIME_DIR", ""),
            dice: RefCell::new(Xoshiro256PlusPlus::seed_from_u64(seed)),
            history: RefCell::default(),
            secrets: 0,
            kernel: false,
        };
        user.note(format!("seed {seed}"));
        user
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.sandbox.path(name)
    }

    /// A number below `most`.
    pub fn below(&self, most: usize) -> usize {
        (self.dice.borrow_mut().next_u64() % most as u64) as usize
    }

    pub fn one_of<'a, T>(&self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    pub fn fill(&self, bytes: &mut [u8]) {
        self.dice.borrow_mut().fill_bytes(bytes);
    }

    pub fn note(&self, line: String) {
        self.history.borrow_mut().push(line);
    }

    /// Ends the test with all that was done.
    #[track_caller]
    pub fn fail(&self, what: &str) -> ! {
        let kept = std::env::var_os("RANDOM_USER_KEEP").map(PathBuf::from);
        if let Some(kept) = kept {
            let _ = fs::create_dir_all(&kept);
            for entry in fs::read_dir(self.sandbox.directory()).unwrap().flatten() {
                let _ = fs::copy(entry.path(), kept.join(entry.file_name()));
            }
        }
        panic!("{}\n{what}", self.history.borrow().join("\n"));
    }

    /// A new secret: the name of a key file.
    pub fn new_secret(&mut self) -> String {
        self.secrets += 1;
        let name = format!("secret{}", self.secrets);
        let mut bytes = [0; 12];
        self.fill(&mut bytes);
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        fs::write(self.path(&name), text).unwrap();
        name
    }

    /// `line` as a command: `ours …` is `cryptmark volume …`, and `< FILE` at its end
    /// is what it reads.
    fn command(&self, line: &str) -> Command {
        let (line, input) = match line.split_once(" < ") {
            Some((line, name)) => (line, fs::File::open(self.path(name)).unwrap().into()),
            None => (line, Stdio::null()),
        };
        let mut command = match line.split_once(' ') {
            Some(("ours", words)) => self.sandbox.volume_command(words),
            Some((program, words)) => self.sandbox.command(program, words),
            None => self.sandbox.command(line, ""),
        };
        command.stdin(input);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn start(&self, line: &str) -> Child {
        self.command(line).spawn().unwrap()
    }

    fn ended(&self, line: &str, output: &Output) -> Ended {
        let mut said = String::from_utf8_lossy(&output.stderr).into_owned();
        said += &String::from_utf8_lossy(&output.stdout[..output.stdout.len().min(4096)]);
        let code = output.status.code();
        let short = said.lines().next().unwrap_or_default();
        self.note(format!("{line}  -> {code:?} {short}"));
        if said.contains("panicked at") {
            self.fail(&said);
        }
        Ended { code, said }
    }

    /// Runs it to its end.
    pub fn run(&self, line: &str) -> Ended {
        let output = self.command(line).output().unwrap();
        self.ended(line, &output)
    }

    /// Runs what has to succeed.
    #[track_caller]
    pub fn must(&self, line: &str) {
        let ended = self.run(line);
        if ended.code != Some(0) {
            self.fail(&format!("{line}\n{}", ended.said));
        }
    }

    /// What it prints, if it succeeds; not in the history.
    pub fn output(&self, line: &str) -> Result<Vec<u8>, Ended> {
        let output = self.command(line).output().unwrap();
        match output.status.success() {
            true => Ok(output.stdout),
            false => Err(self.ended(line, &output)),
        }
    }

    /// Runs it, and kills it after up to `most`.
    pub fn kill(&self, line: &str, most: Duration) -> Ended {
        let mut child = self.start(line);
        let wait = most.mul_f64(self.below(1000) as f64 / 1000.0);
        std::thread::sleep(wait);
        let _ = child.kill();
        let output = child.wait_with_output().unwrap();
        self.ended(&format!("[killed after {wait:?}] {line}"), &output)
    }

    /// Runs both at once.
    pub fn both(&self, first: &str, second: &str) -> [Ended; 2] {
        let children = [first, second].map(|line| self.start(line));
        let outputs = children.map(|child| child.wait_with_output().unwrap());
        let [a, b] = outputs;
        [
            self.ended(&format!("[at once] {first}"), &a),
            self.ended(&format!("[at once] {second}"), &b),
        ]
    }
}
