//! A directory of a test's own.

use crate::{Arguments, Expect, two_lines};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A temporary directory, and the tested program run in it.
///
/// Programs have no standard input. The tested one keeps runs in `data` and headers in `state`.
pub struct Sandbox {
    directory: TempDir,
    program: PathBuf,
    environment: Vec<(OsString, Option<OsString>)>,
}

impl Sandbox {
    /// An empty directory where the system has temporary files, for tests of `program`.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self::of(tempfile::tempdir().unwrap(), program.into())
    }

    /// An empty directory in `parent`: tests of disks give `CARGO_TARGET_TMPDIR`, because
    /// temporary files may be in memory.
    pub fn within(parent: impl AsRef<Path>, program: impl Into<PathBuf>) -> Self {
        Self::of(tempfile::tempdir_in(parent).unwrap(), program.into())
    }

    fn of(directory: TempDir, program: PathBuf) -> Self {
        let sandbox = Self {
            directory,
            program,
            environment: Vec::new(),
        };
        sandbox
            .with_path("XDG_DATA_HOME", "data")
            .with_path("XDG_STATE_HOME", "state")
            .without_variable("CRYPTMARK_STORE")
    }

    /// With a file of these bytes.
    pub fn with_file(self, name: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> Self {
        self.write(name, bytes);
        self
    }

    /// With an empty directory, and those that it lies in.
    pub fn with_directory(self, name: impl AsRef<Path>) -> Self {
        fs::create_dir_all(self.path(name)).unwrap();
        self
    }

    /// With a variable in the environment of all programs.
    pub fn with_variable(mut self, variable: &str, value: impl AsRef<OsStr>) -> Self {
        let value = value.as_ref().to_owned();
        self.environment.push((variable.into(), Some(value)));
        self
    }

    /// With a variable that is the path of `name`, which need not exist.
    pub fn with_path(self, variable: &str, name: impl AsRef<Path>) -> Self {
        let path = self.path(name);
        self.with_variable(variable, path)
    }

    /// Without a variable that the test may have itself.
    pub fn without_variable(mut self, variable: &str) -> Self {
        self.environment.push((variable.into(), None));
        self
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The path of `name` in the directory.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.directory().join(name)
    }

    /// The bytes of a file.
    #[track_caller]
    pub fn read(&self, name: impl AsRef<Path>) -> Vec<u8> {
        let path = self.path(name);
        fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The text of a file.
    #[track_caller]
    pub fn read_text(&self, name: impl AsRef<Path>) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    /// The value of a file of JSON.
    #[track_caller]
    pub fn read_json(&self, name: impl AsRef<Path>) -> Value {
        serde_json::from_slice(&self.read(name)).unwrap()
    }

    /// Makes a file of these bytes.
    #[track_caller]
    pub fn write(&self, name: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).unwrap();
    }

    /// Makes a file of so many zeros that take no space.
    #[track_caller]
    pub fn write_zeros(&self, name: impl AsRef<Path>, length: u64) {
        let file = fs::File::create(self.path(name)).unwrap();
        file.set_len(length).unwrap();
    }

    /// Copies the files of another sandbox, but no directories.
    pub fn copy_files(&self, other: &Self) {
        for entry in fs::read_dir(other.directory()).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_file() {
                fs::copy(entry.path(), self.path(entry.file_name())).unwrap();
            }
        }
    }

    /// Lets a command run in the directory, with the environment of the sandbox.
    pub fn prepare(&self, mut command: Command) -> Command {
        command.current_dir(self.directory()).stdin(Stdio::null());
        for (variable, value) in &self.environment {
            match value {
                Some(value) => command.env(variable, value),
                None => command.env_remove(variable),
            };
        }
        command
    }

    /// Any program.
    pub fn command(
        &self,
        program: impl AsRef<OsStr>,
        arguments: &(impl Arguments + ?Sized),
    ) -> Command {
        let mut command = Command::new(program);
        command.args(arguments.words());
        self.prepare(command)
    }

    /// The tested program.
    pub fn cryptmark(&self, arguments: &(impl Arguments + ?Sized)) -> Command {
        self.command(&self.program, arguments)
    }

    /// Runs another program, which must succeed; returns its standard output.
    #[track_caller]
    pub fn tool(&self, program: &str, arguments: &(impl Arguments + ?Sized)) -> String {
        String::from_utf8(self.command(program, arguments).succeeds().stdout).unwrap()
    }

    /// Runs the tested program.
    #[track_caller]
    pub fn run(&self, arguments: &(impl Arguments + ?Sized)) -> Output {
        self.cryptmark(arguments).output().unwrap()
    }

    /// Runs the tested program, which must succeed; returns its standard output.
    #[track_caller]
    pub fn ok(&self, arguments: &(impl Arguments + ?Sized)) -> String {
        String::from_utf8(self.cryptmark(arguments).succeeds().stdout).unwrap()
    }

    /// Runs the tested program, which must succeed and print JSON; returns that.
    #[track_caller]
    pub fn json(&self, arguments: &(impl Arguments + ?Sized)) -> Value {
        serde_json::from_str(&self.ok(arguments)).unwrap()
    }

    /// Runs the tested program, which must fail as [`Expect::fails`] says; returns its error.
    #[track_caller]
    pub fn fails(&self, code: i32, arguments: &(impl Arguments + ?Sized)) -> String {
        self.cryptmark(arguments).fails(code)
    }

    /// `cryptmark volume`.
    pub fn volume_command(&self, arguments: &(impl Arguments + ?Sized)) -> Command {
        let mut words = arguments.words();
        words.insert(0, "volume".into());
        self.cryptmark(&words)
    }

    /// Runs `cryptmark volume`, which must succeed; returns its standard output.
    #[track_caller]
    pub fn volume(&self, arguments: &(impl Arguments + ?Sized)) -> Vec<u8> {
        self.volume_command(arguments).succeeds().stdout
    }

    /// Runs `cryptmark volume`, which must fail, print nothing else, and change no byte of `image`;
    /// returns its error.
    #[track_caller]
    pub fn refused(
        &self,
        code: i32,
        image: impl AsRef<Path>,
        arguments: &(impl Arguments + ?Sized),
    ) -> String {
        let before = self.read(&image);
        let mut command = self.volume_command(arguments);
        let output = command.output().unwrap();
        let said = two_lines(&output, code, &format!("{command:?}"));
        assert!(output.stdout.is_empty(), "{command:?} printed something");
        assert!(self.read(image) == before, "{command:?} changed the volume");
        said
    }
}
