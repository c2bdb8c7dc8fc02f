//! A folder of the test's own, and the program run in it.

use block::TestFile;
use lab::kernel::{Lab, standard_cache};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");

/// Until processes that were killed are gone, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with a copy of the kernel, so that its processes are told from others'.
pub struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    /// Nothing, with the reason printed, where there is no kernel.
    pub fn new() -> Option<Self> {
        let kernel = match Lab::find() {
            Ok(lab) => lab.path().to_owned(),
            Err(error) => {
                println!("skipped: the lab kernel: {error} (cargo xtask lab-kernel)");
                return None;
            }
        };
        let desk = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        for name in ["home", "temporary", "out"] {
            fs::create_dir(desk.path(name)).unwrap();
        }
        let inside = kernel.strip_prefix(standard_cache().unwrap()).unwrap();
        let copy = desk.path("cache/cryptmark/lab-kernel").join(inside);
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(kernel, copy).unwrap();
        Some(desk)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// `cryptmark lab ARGUMENTS` in the folder.
    pub fn lab(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.arg("lab").args(arguments);
        self.at_home(&mut command);
        command
    }

    pub fn at_home(&self, command: &mut Command) {
        command
            .current_dir(self.folder())
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("temporary"))
            .env("XDG_CACHE_HOME", self.path("cache"))
            .stdin(Stdio::null());
    }

    /// Runs a script in the kernel, which may write to `out`.
    pub fn run(&self, options: &[&str], script: &str) -> Output {
        let arguments = [
            &["run", "--writable", "out"],
            options,
            &["--", "sh", "-c", script],
        ];
        self.lab(&arguments.concat()).output().unwrap()
    }

    /// The same, of a script that must succeed; its output.
    pub fn succeed(&self, options: &[&str], script: &str) -> String {
        let output = self.run(options, script);
        let errors = String::from_utf8_lossy(&output.stderr);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{script}\n{said}\n{errors}");
        said
    }

    /// Waits until no process of this desk's kernel is left.
    ///
    /// # Panics
    /// If one stays.
    pub fn assert_nothing_runs(&self) {
        let begin = Instant::now();
        loop {
            let left = self.processes();
            if left.is_empty() {
                break;
            }
            assert!(begin.elapsed() < PATIENCE, "still there: {left:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
        for name in ["home", "temporary"] {
            let left: Vec<_> = fs::read_dir(self.path(name)).unwrap().collect();
            assert!(left.is_empty(), "{name}: {left:?}");
        }
    }

    /// Whatever runs the copy of the kernel, what is inside included.
    pub fn processes(&self) -> Vec<u32> {
        let cache = self.path("cache");
        let ours = |entry: &fs::DirEntry| {
            fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe.starts_with(&cache))
        };
        let entries = fs::read_dir("/proc").unwrap().flatten();
        entries
            .filter(ours)
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect()
    }
}

/// Bytes of which no two sectors are equal.
pub fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; length];
    TestFile::content(seed, 0, &mut bytes);
    bytes
}

/// The number behind a name in a text of lines `name number`.
pub fn number(text: &str, name: &str) -> u64 {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {text}"))
        .parse()
        .unwrap()
}
