//! The doors: the engine itself, the program, and the libraries for C and Python.

use crate::asked::{Answer, Kind, Opened, Question, Refused, Work, data, ends};
use crate::{changed, door};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::RwLock;
use testkit::Sandbox;

/// The names of the doors, as answers are shown.
pub const NAMES: [&str; 4] = ["Rust", "program", "C", "Python"];

/// Held while a program is started. It has the files of all threads, and so the locks of volumes,
/// until it is another program. The door for Rust holds it against that.
static STARTING: RwLock<()> = RwLock::new(());

fn started(command: &mut Command) -> Child {
    let _alone = STARTING.write().unwrap();
    command.spawn().unwrap()
}

fn ended(command: &mut Command) -> Output {
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    started(piped).wait_with_output().unwrap()
}

/// The four doors, for one thread.
pub struct Doors {
    sandbox: Sandbox,
    rust: Rust,
    c: Worker,
    /// If there is a Python that is new enough.
    python: Option<Worker>,
}

impl Doors {
    pub fn open(built: &Built) -> Self {
        Self {
            sandbox: Sandbox::new(env!("CARGO_BIN_EXE_cryptmark")),
            rust: Rust,
            c: Worker::start(Command::new(&built.c)),
            python: built.has_python.then(|| Worker::start(built.python())),
        }
    }

    /// The doors that are there.
    pub fn names(&self) -> &'static [&'static str] {
        match self.python {
            Some(_) => &NAMES,
            None => &NAMES[..3],
        }
    }

    /// The answer of the door of that place in [`NAMES`].
    pub fn ask(&mut self, door: usize, question: &Question) -> Answer {
        match door {
            0 => question.answer(&self.rust.ask(&question.lines())),
            1 => program(&self.sandbox, question),
            2 => question.answer(&self.c.ask(&question.lines())),
            _ => question.answer(&self.python.as_mut().unwrap().ask(&question.lines())),
        }
    }

    /// The libraries, by the names of their languages.
    pub fn libraries(&mut self) -> Vec<(&'static str, &mut dyn Library)> {
        let mut all: Vec<(_, &mut dyn Library)> =
            vec![("Rust", &mut self.rust), ("C", &mut self.c)];
        all.extend(self.python.iter_mut().map(|it| ("Python", it as _)));
        all
    }
}

/// What is built for the doors.
pub struct Built {
    folder: tempfile::TempDir,
    c: PathBuf,
    has_python: bool,
}

impl Built {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        // Cargo builds these libraries beside this test, because it depends on their crates.
        let test = std::env::current_exe().unwrap();
        let libraries = test.parent().unwrap();
        // The one for C is asked for by the version of its interface.
        let link = |library: &str, name: &Path| {
            let library = libraries.join(library);
            std::os::unix::fs::symlink(library, folder.path().join(name)).unwrap();
        };
        link("libcryptmark.so", Path::new("libcryptmark.so.0"));
        let c = folder.path().join("door");
        let compiled = Command::new("cc")
            .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-I"])
            .arg(root.join("bindings/c/include"))
            .arg(root.join("tests/doors/door.c"))
            .arg(folder.path().join("libcryptmark.so.0"))
            .arg(format!("-Wl,-rpath,{}", folder.path().display()))
            .arg("-o")
            .arg(&c)
            .status();
        assert!(compiled.unwrap().success());
        fs::create_dir(folder.path().join("cryptmark")).unwrap();
        for file in fs::read_dir(root.join("bindings/python/python/cryptmark")).unwrap() {
            let file = file.unwrap().path();
            if let (true, Some(name)) = (file.is_file(), file.file_name()) {
                fs::copy(&file, folder.path().join("cryptmark").join(name)).unwrap();
            }
        }
        link(
            "libcryptmark_native.so",
            Path::new("cryptmark/_native.abi3.so"),
        );
        let known = "import sys; sys.exit(sys.version_info < (3, 9))";
        let known = Command::new("python3").args(["-c", known]).status();
        let has_python = known.is_ok_and(|status| status.success());
        if !has_python {
            println!("skipped: Python: there is no Python 3.9");
        }
        Self {
            folder,
            c,
            has_python,
        }
    }

    fn python(&self) -> Command {
        let mut python = Command::new("python3");
        python
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/doors/door.py"))
            .env("PYTHONPATH", self.folder.path())
            .env("PYTHONDONTWRITEBYTECODE", "1");
        python
    }
}

/// A library, which answers questions.
pub trait Library {
    /// Its answer to the lines of a question.
    fn ask(&mut self, lines: &str) -> String;
}

/// `door.rs`, in this process.
struct Rust;

impl Library for Rust {
    fn ask(&mut self, lines: &str) -> String {
        let _shared = STARTING.read().unwrap();
        door::answer(lines)
    }
}

/// `door.c` or `door.py`, which answers one question after the other.
pub struct Worker {
    child: Child,
    asked: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    fn start(mut command: Command) -> Self {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = started(piped);
        Self {
            asked: child.stdin.take().unwrap(),
            answers: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }
}

impl Library for Worker {
    fn ask(&mut self, lines: &str) -> String {
        self.asked.write_all(lines.as_bytes()).unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program(sandbox: &Sandbox, question: &Question) -> Answer {
    let command = |name: &str| {
        let mut command = sandbox.volume_command(name);
        command.arg(question.path);
        add_options(&mut command, question);
        command
    };
    match question.work {
        Work::Read => {
            let output = ended(command("export").args(["--output", "-"]));
            let said = String::from_utf8(output.stderr).unwrap();
            match output.status.code().unwrap() {
                0 => Answer::Opened(Opened {
                    size: Some(output.stdout.len() as u64),
                    ends: Some(ends(&output.stdout)),
                    ..of_program(&said)
                }),
                code => Answer::Refused(refused_by_program(code, &said)),
            }
        }
        Work::OpenToWrite => {
            let socket = question.folder.join("socket");
            let mut serve = command("serve");
            serve.arg("--nbd").arg(&socket);
            let mut served = started(serve.stdout(Stdio::piped()).stderr(Stdio::piped()));
            let mut first = String::new();
            let mut output = BufReader::new(served.stdout.take().unwrap());
            output.read_line(&mut first).unwrap();
            if !first.is_empty() {
                let id = rustix::process::Pid::from_child(&served);
                rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
            }
            let mut said = String::new();
            served
                .stderr
                .take()
                .unwrap()
                .read_to_string(&mut said)
                .unwrap();
            let status = served.wait().unwrap();
            match first.is_empty() {
                false => Answer::Opened(of_program(&said)),
                true => Answer::Refused(refused_by_program(status.code().unwrap(), &said)),
            }
        }
        Work::Change(change) => {
            let output = ended(&mut changed::by_program(sandbox, question, change));
            let said = String::from_utf8(output.stderr).unwrap();
            match output.status.code().unwrap() {
                0 => Answer::done(),
                code => Answer::Refused(refused_by_program(code, &said)),
            }
        }
        Work::Overwrite => {
            let input = question.folder.join("input");
            fs::write(&input, data()).unwrap();
            let mut import = command("import");
            let output = ended(import.arg("--yes").arg("--input").arg(input));
            let said = String::from_utf8(output.stderr).unwrap();
            match output.status.code().unwrap() {
                0 => Answer::Opened(of_program(&said)),
                code => Answer::Refused(refused_by_program(code, &said)),
            }
        }
    }
}

/// The options of the program by the names of the engine.
pub fn add_options(command: &mut Command, question: &Question) {
    for (name, value) in &question.options() {
        let option = match *name {
            "format" => "--type".to_owned(),
            name => format!("--{}", name.replace('_', "-")),
        };
        command.arg(option);
        match *name {
            "iv_large_sectors" | "tcrypt_hidden" | "tcrypt_backup" | "tcrypt_system"
            | "experimental" => {}
            "offset" | "size" => {
                // It counts sectors.
                let bytes: u64 = value.parse().unwrap();
                command.arg((bytes / 512).to_string());
            }
            _ => {
                command.arg(value);
            }
        }
    }
    let Some(given) = question.secret else { return };
    let file = question.folder.join("secret");
    let (option, bytes) = match given.kind {
        Kind::Passphrase => ("--passphrase-file", [&given.bytes[..], b"\n"].concat()),
        Kind::KeyFile => ("--key-file", given.bytes.clone()),
        Kind::VolumeKey => ("--volume-key-file", given.bytes.clone()),
    };
    fs::write(&file, bytes).unwrap();
    command.arg(option).arg(file);
}

/// What the program says of a volume that it has opened.
fn of_program(said: &str) -> Opened {
    let lines = said
        .lines()
        .filter_map(|line| line.strip_prefix("warning: "));
    Opened {
        size: None,
        ends: None,
        info: None::<Value>,
        warnings: lines.map(str::to_owned).collect(),
    }
}

fn refused_by_program(code: i32, said: &str) -> Refused {
    let (what, remedy) = said
        .split_once("error: ")
        .and_then(|(_, said)| said.split_once("\n  "))
        .unwrap_or_else(|| panic!("the program says {said:?}"));
    Refused {
        code,
        what: what.to_owned(),
        question: remedy
            .contains("confirm with --yes")
            .then(|| "some".to_owned()),
    }
}
