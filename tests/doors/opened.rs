//! The doors: the engine itself, the program, and the libraries for C and Python.

use crate::asked::{Answer, Given, Kind, Opened, Question, Refused, Work, data, ends, warnings};
use crate::changed;
use cipher::Key;
use serde_json::Value;
use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::RwLock;
use testkit::Sandbox;
use volume::judge::{Ruling, State};
use volume::tcrypt::Keyfiles;
use volume::{Access, Format, OpenOptions, Parameters, Secret, Verdict, Volume, VolumeError};

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
    c: Worker,
    /// If there is a Python that is new enough.
    python: Option<Worker>,
}

impl Doors {
    pub fn open(built: &Built) -> Self {
        Self {
            sandbox: Sandbox::new(env!("CARGO_BIN_EXE_cryptmark")),
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
            0 => rust(question),
            1 => program(&self.sandbox, question),
            2 => question.answer(&self.c.ask(&question.lines())),
            _ => question.answer(&self.python.as_mut().unwrap().ask(&question.lines())),
        }
    }

    /// The libraries, by the names of their languages.
    pub fn libraries(&mut self) -> impl Iterator<Item = (&'static str, &mut Worker)> {
        let python = self.python.as_mut().map(|python| ("Python", python));
        [("C", &mut self.c)].into_iter().chain(python)
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

    /// Its answer to the lines of a question.
    pub fn ask(&mut self, lines: &str) -> String {
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

fn rust(question: &Question) -> Answer {
    let _shared = STARTING.read().unwrap();
    let done = match question.work {
        Work::Change(change) => changed::by_rust(question, change).map(|()| Answer::done()),
        _ => opened(question).map(Answer::Opened),
    };
    match done {
        Ok(answer) => answer,
        Err(error) => Answer::Refused(Refused {
            code: match error.verdict() {
                Verdict::Failed => 1,
                Verdict::BadInput => 2,
                Verdict::WrongSecret => 3,
                Verdict::Protected => 4,
                Verdict::Interrupted => 130,
            },
            what: chain(&error),
            question: match &error {
                VolumeError::Judged(finding) if finding.ruling() == Ruling::Ask => {
                    Some(finding.state.name().to_owned())
                }
                _ => None,
            },
        }),
    }
}

fn opened(question: &Question) -> Result<Opened, VolumeError> {
    let mut options = OpenOptions::default();
    let mut keyfiles = Vec::new();
    let said = &mut options.parameters;
    for (name, value) in question.options {
        let text = || Some(value.clone());
        let flag = value == "1";
        match *name {
            "format" => options.format = Format::named(value),
            "header" => options.header = Some(value.into()),
            "keyfile" => keyfiles.push(PathBuf::from(value)),
            "cipher" => said.cipher = text(),
            "key_size" => said.key_size = value.parse().ok(),
            "hash" => said.hash = text(),
            "offset" => said.offset = value.parse().ok(),
            "skip" => said.skip = value.parse().ok(),
            "size" => said.size = value.parse().ok(),
            "sector_size" => said.sector_size = value.parse().ok(),
            "iv_large_sectors" => said.iv_large_sectors = flag,
            "key_slot" => said.key_slot = value.parse().ok(),
            "tcrypt_hidden" => said.tcrypt_hidden = flag,
            "tcrypt_backup" => said.tcrypt_backup = flag,
            "tcrypt_system" => said.tcrypt_system = flag,
            "veracrypt_pim" => said.veracrypt_pim = value.parse().ok(),
            "experimental" => said.experimental = flag,
            "key_derivation" => said.key_derivation = text(),
            name => panic!("no door is asked with {name}"),
        }
    }
    options.parameters = Parameters {
        keyfiles: match keyfiles.is_empty() {
            true => None,
            false => Some(Keyfiles::read(&keyfiles)?),
        },
        ..options.parameters
    };
    if question.work != Work::Read {
        options.access = Access::Write;
    }
    if question.work == Work::Overwrite {
        options.accepted = &State::ALL;
    }
    let secret = question.secret.map(secret);
    let volume = Volume::open(question.path, secret.as_ref(), &options)?;
    if question.work == Work::Overwrite {
        volume.write_at(0, &data())?;
        volume.flush()?;
    }
    let mut read = None;
    if question.work == Work::Read {
        let mut both = Vec::new();
        let size = volume.size();
        for place in [0, size.saturating_sub(crate::asked::ENDS as u64)] {
            let place = if both.is_empty() || place > 0 {
                place
            } else {
                size
            };
            let mut end = vec![0; crate::asked::ENDS];
            let got = volume.read_at(place, &mut end)?;
            both.extend_from_slice(&end[..got]);
        }
        read = Some(both);
    }
    Ok(Opened {
        size: Some(volume.size()),
        ends: read,
        warnings: warnings(volume.info()),
        info: Some(volume.info().clone()),
    })
}

pub fn secret(given: &Given) -> Secret {
    let key = Key::from_slice(&given.bytes);
    match given.kind {
        Kind::Passphrase => Secret::Passphrase(key),
        Kind::KeyFile => Secret::KeyFile(key),
        Kind::VolumeKey => Secret::VolumeKey(key),
    }
}

/// The error with its causes.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        if !text.ends_with(&error.to_string()) {
            text = format!("{text}: {error}");
        }
        cause = error.source();
    }
    text
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
