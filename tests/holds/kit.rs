//! A desk with volumes, and how a cell of the matrix is tried on it.

use crate::commands::{COMMANDS, Command as Tried, Use};
use crate::states::{Outcome, State};
use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");

/// What every volume here was made with, but for its name.
pub const CHEAP: &str = "--pbkdf pbkdf2 --pbkdf-force-iterations 1000";

/// Bytes of the plaintext in a volume.
pub const DATA: usize = 1 << 20;

/// As little as can be measured.
const PLAN: &str = r#"
title = "Little"
size = "1 MiB"
repetitions = 1
systems = ["builtin"]
ciphers = ["aes-xts-plain64"]
key_size = 512

[[workload]]
name = "write"
pattern = "sequential"
op = "write"
block_size = "64 KiB"
seconds = 0.05
"#;

/// A folder with volumes: `image`, whose passphrase is in `pass` and whose second one in
/// `second`, `other`, and `apart`, whose header is `header`. `saved` is a backup of the header, `plain` what the volumes hold.
pub struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    /// A new one, whose volumes are copies of those that were made once.
    pub fn new() -> Self {
        static FIRST: OnceLock<Desk> = OnceLock::new();
        let first = FIRST.get_or_init(Self::first);
        let desk = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        for entry in fs::read_dir(first.folder.path()).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), desk.path(entry.file_name().to_str().unwrap())).unwrap();
        }
        desk
    }

    fn first() -> Self {
        let desk = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        for (name, line) in [
            ("pass", "a passphrase\n"),
            ("second", "another\n"),
            ("third", "one more\n"),
        ] {
            fs::write(desk.path(name), line).unwrap();
        }
        fs::write(desk.path("plan.toml"), PLAN).unwrap();
        let plain: Vec<u8> = (0..DATA).map(|at| (at / 512 % 251) as u8).collect();
        fs::write(desk.path("plain"), plain).unwrap();
        for name in ["image", "other"] {
            desk.volume(&format!(
                "create {name} --size 3MiB --offset 2MiB --passphrase-file pass {CHEAP}"
            ));
            desk.volume(&format!(
                "key add {name} --passphrase-file pass --new-passphrase-file second {CHEAP}"
            ));
            desk.volume(&format!(
                "import {name} --passphrase-file pass --input plain --no-progress"
            ));
        }
        desk.volume("header backup image --output saved");
        desk.volume(&format!(
            "create apart --header header --size 1MiB --passphrase-file pass {CHEAP}"
        ));
        desk
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn command(&self, program: &str, arguments: &str) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments.split_whitespace())
            .current_dir(self.folder.path())
            // Runs are stored below it.
            .env("XDG_DATA_HOME", self.folder.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs `cryptmark volume`, which has to work.
    pub fn volume(&self, arguments: &str) -> Output {
        let output = self
            .command(PROGRAM, &format!("volume {arguments}"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "volume {arguments}\n{said}");
        output
    }

    /// What another program says, or why it does not work here.
    pub fn try_run(&self, program: &str, arguments: &str) -> Result<String, String> {
        let output = self.command(program, arguments).output();
        let output = output.map_err(|error| format!("{program}: {error}"))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(format!(
                "{program}: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            )),
        }
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        fs::File::open(self.path(name))
            .unwrap()
            .read_to_end(&mut bytes)
            .unwrap();
        bytes
    }

    /// Waits until somebody holds `name` for writing.
    pub fn wait_for_writer(&self, name: &str) {
        let begun = Instant::now();
        loop {
            let info = self.volume(&format!("info {name}"));
            if String::from_utf8_lossy(&info.stdout).contains("in use") {
                return;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "nobody holds {name}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Both programs take the header, the passphrases open, and the plaintext is there.
    pub fn is_sound(&self, image: &str, passphrase: &str) {
        let input = self.path(image);
        let dump = self.try_run("cryptsetup", &format!("luksDump {}", input.display()));
        match dump {
            Err(error) if error.contains("No such file") => {
                println!("skipped: what cryptsetup says ({error})");
            }
            dump => {
                dump.unwrap();
                let arguments = format!("open --test-passphrase --key-file - {image}");
                let mut command = self.command("cryptsetup", &arguments);
                let line = fs::read_to_string(self.path(passphrase)).unwrap();
                fs::write(self.path("key"), line.trim_end()).unwrap();
                command.stdin(fs::File::open(self.path("key")).unwrap());
                let output = command.output().unwrap();
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "cryptsetup {arguments}\n{said}");
            }
        }
        let exported = self.volume(&format!(
            "export {image} --passphrase-file {passphrase} --output - --no-progress"
        ));
        assert!(
            exported.stdout.starts_with(&self.read("plain")),
            "{image} holds other data"
        );
    }
}

/// The exit code of `tried` on `target`, and what it said.
fn start(desk: &Desk, tried: &Tried, target: &str) -> (Option<i32>, String) {
    let arguments = tried.arguments.replace("IMAGE", target);
    let output = desk.command(PROGRAM, &arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said)
}

/// Tries all commands in `state`, and counts the cells.
pub fn row(state: &State) -> usize {
    // A header apart is not where all commands take a volume.
    let apart = match (state.set_up)(&Desk::new()) {
        Ok(set) => set.target.contains(' '),
        Err(why) => {
            println!(
                "skipped: {} commands on a volume that is {}: {why}",
                COMMANDS.len(),
                state.name
            );
            return 0;
        }
    };
    let commands = COMMANDS.iter().filter(|tried| tried.takes_header || !apart);
    let (done, refused): (Vec<&Tried>, Vec<&Tried>) =
        commands.partition(|tried| (state.expected)(tried) == Outcome::Done);
    let mut wrong = refusals(state, &refused);
    wrong.extend(done.iter().filter_map(|tried| success(state, tried)));
    assert!(
        wrong.is_empty(),
        "a volume that is {}:\n{}",
        state.name,
        wrong.join("\n")
    );
    done.len() + refused.len()
}

/// Nothing changes by what is refused, so that all are tried on one volume.
fn refusals(state: &State, refused: &[&Tried]) -> Vec<String> {
    if refused.is_empty() {
        return Vec::new();
    }
    let desk = Desk::new();
    let set = (state.set_up)(&desk).expect("it was possible just now");
    let before = desk.read("image");
    let mut wrong = Vec::new();
    for tried in refused {
        let (code, said) = start(&desk, tried, &set.target);
        let named = state.says.iter().all(|name| said.contains(name));
        let expected = (state.expected)(tried);
        if expected != Outcome::Fails(code.unwrap_or(-1)) || said.lines().count() != 2 || !named {
            let name = tried.name;
            wrong.push(format!("{name}: {code:?} instead of {expected:?}\n{said}"));
        }
        if desk.read("image") != before {
            wrong.push(format!("{}: has changed the volume", tried.name));
            break;
        }
    }
    drop(set);
    if state.opens {
        desk.is_sound("image", "pass");
        desk.is_sound("image", "second");
    }
    wrong
}

/// What is done is done on a volume of its own.
fn success(state: &State, tried: &Tried) -> Option<String> {
    let desk = Desk::new();
    let set = (state.set_up)(&desk).expect("it was possible just now");
    let before = desk.read("image");
    let (code, said) = start(&desk, tried, &set.target);
    if tried.serves && code == Some(0) {
        desk.volume(&format!("umount {}", desk.path("here.sock").display()));
    }
    drop(set);
    let name = tried.name;
    if code != Some(0) {
        return Some(format!("{name}: {code:?} instead of being done\n{said}"));
    }
    let after = desk.read("image");
    if matches!(tried.is, Use::Looks | Use::Reads) && after != before {
        return Some(format!("{name}: has changed the volume"));
    }
    let kept = before.len() / 512 * 512;
    if !tried.replaces && after.get(kept..) != Some(&before[kept..]) {
        return Some(format!("{name}: has lost the end of the volume"));
    }
    if let Some(passphrase) = tried.opens {
        desk.is_sound("image", passphrase);
    }
    None
}
