//! A sandbox with volumes, and how a cell of the matrix is tried on it.

use crate::commands::{self, Command as Tried, Use};
use crate::states::{Outcome, State};
use sha2::{Digest, Sha256};
use std::fs;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;
use testkit::{CHEAP, Sandbox, wait_until};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");

/// How long a program may take before it has begun.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes of the plaintext in a volume.
pub const DATA: usize = 1 << 20;

/// Bytes of a copy of the header of a LUKS2 volume, which is where the second one begins.
pub const COPY: usize = 16 << 10;

/// What a volume is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Luks2,
    Veracrypt,
}

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

/// A sandbox with volumes: `image`, whose passphrase is in `pass`, and `other`. Those of LUKS2
/// have a second passphrase, which is in `second`, and `apart` beside them, whose header is
/// `header`. `saved` is a backup of the header, `plain` what the volumes hold.
pub struct Volumes {
    sandbox: Sandbox,
    pub format: Format,
}

impl std::ops::Deref for Volumes {
    type Target = Sandbox;

    fn deref(&self) -> &Sandbox {
        &self.sandbox
    }
}

impl Volumes {
    /// A new one, whose volumes are copies of those that were made once.
    pub fn new(format: Format) -> Self {
        static LUKS2: OnceLock<Volumes> = OnceLock::new();
        static VERACRYPT: OnceLock<Volumes> = OnceLock::new();
        let first = match format {
            Format::Luks2 => LUKS2.get_or_init(|| Self::empty(format).with_luks2()),
            Format::Veracrypt => VERACRYPT.get_or_init(|| Self::empty(format).with_veracrypt()),
        };
        let sandbox = Sandbox::new(PROGRAM).with_directory("mounted");
        sandbox.copy_files(first);
        let sandbox = Self { sandbox, format };
        if format == Format::Luks2 {
            sandbox.renumber();
        }
        sandbox
    }

    /// Without volumes.
    fn empty(format: Format) -> Self {
        let plain: Vec<u8> = (0..DATA).map(|at| (at / 512 % 251) as u8).collect();
        let sandbox = Sandbox::new(PROGRAM)
            .with_file("pass", "a passphrase of many letters\n")
            .with_file("second", "another\n")
            .with_file("third", "one more passphrase of many\n")
            .with_file("plan.toml", PLAN)
            .with_file("plain", plain);
        Self { sandbox, format }
    }

    fn with_luks2(self) -> Self {
        for name in ["image", "other"] {
            self.volume(&format!(
                "create {name} --size 3MiB --offset 2MiB --passphrase-file pass {CHEAP}"
            ));
            self.volume(&format!(
                "key add {name} --passphrase-file pass --new-passphrase-file second {CHEAP}"
            ));
            self.volume(&format!(
                "import {name} --passphrase-file pass --input plain --no-progress"
            ));
        }
        self.volume("header backup image --output saved");
        self.volume(&format!(
            "create apart --header header --size 1MiB --passphrase-file pass {CHEAP}"
        ));
        self
    }

    fn with_veracrypt(self) -> Self {
        let pass = self.pass();
        for name in ["image", "other"] {
            self.volume(&format!("create {name} --size 3MiB --quick {pass}"));
            self.volume(&format!(
                "import {name} {pass} --input plain --no-progress --yes"
            ));
        }
        self.volume("header backup image --type veracrypt --output saved");
        self
    }

    /// Where in `image` the header and its copy are.
    pub fn copies(&self) -> [usize; 2] {
        match self.format {
            Format::Luks2 => [0, COPY],
            Format::Veracrypt => [0, self.read("image").len() - (128 << 10)],
        }
    }

    /// The options that open a volume.
    pub fn pass(&self) -> String {
        format!("--passphrase-file pass{}", self.format.options())
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

    /// Waits until somebody holds `name` for writing, and goes on doing so: a command may look
    /// first whether it could.
    pub fn wait_for_writer(&self, name: &str) {
        let info = format!("volume info {name}{}", self.format.looked_at());
        let is_held = || {
            thread::sleep(Duration::from_millis(100));
            self.ok(&info).contains("in use")
        };
        wait_until(&format!("nobody holds {name}"), || {
            (0..5).all(|_| is_held())
        });
    }

    /// Whether both programs take the header, the passphrase opens, and the plaintext is
    /// there; what is not so.
    pub fn is_sound(&self, image: &str, passphrase: &str) -> Result<(), String> {
        let takes = match self.format {
            Format::Luks2 => format!("luksDump {image}"),
            Format::Veracrypt => "--version".to_owned(),
        };
        match self.try_run("cryptsetup", &takes) {
            Err(error) if error.contains("No such file") => {
                println!("skipped: what cryptsetup says ({error})");
            }
            taken => {
                taken?;
                // cryptsetup takes the copy of such a header only if it is told to.
                const TCRYPT: &str =
                    "open --test-passphrase --type tcrypt --veracrypt --veracrypt-pim 1";
                let opening = match self.format {
                    Format::Luks2 => vec!["open --test-passphrase --key-file -".to_owned()],
                    Format::Veracrypt => {
                        vec![TCRYPT.to_owned(), format!("{TCRYPT} --tcrypt-backup")]
                    }
                };
                self.write_key(passphrase);
                let opens = opening.iter().any(|arguments| {
                    let mut command = self.command("cryptsetup", &format!("{arguments} {image}"));
                    command.stdin(fs::File::open(self.path("key")).unwrap());
                    command.output().unwrap().status.success()
                });
                if !opens {
                    return Err(format!("cryptsetup does not open {image}"));
                }
            }
        }
        let options = self.format.options();
        let arguments = format!(
            "export {image} --passphrase-file {passphrase}{options} --output - --no-progress"
        );
        let output = self.volume_command(&arguments).output().unwrap();
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{arguments}\n{said}"));
        }
        match output.stdout.starts_with(&self.read("plain")) {
            true => Ok(()),
            false => Err(format!("{image} holds other data")),
        }
    }

    /// A passphrase as cryptsetup takes it: without its newline, in `key`.
    pub fn write_key(&self, passphrase: &str) {
        let line = self.read_text(passphrase);
        self.write("key", line.trim_end());
    }

    /// Gives `image` and its backup a UUID of their own: cryptsetup's lock of a
    /// reencryption is by that, and all sandboxes are copies of one.
    fn renumber(&self) {
        let uuid = fs::read("/proc/sys/kernel/random/uuid").unwrap();
        for name in ["image", "saved"] {
            let mut bytes = self.read(name);
            for at in [0, COPY] {
                let copy = &mut bytes[at..][..COPY];
                copy[168..][..36].copy_from_slice(&uuid[..36]);
                seal(copy);
            }
            self.write(name, bytes);
        }
    }
}

impl Format {
    /// What has to be said of it to open it, beside the passphrase.
    pub const fn options(self) -> &'static str {
        match self {
            Self::Luks2 => "",
            Self::Veracrypt => " --type veracrypt --hash sha512 --veracrypt-pim 1",
        }
    }

    /// What `info` has to be told.
    const fn looked_at(self) -> &'static str {
        match self {
            Self::Luks2 => "",
            Self::Veracrypt => {
                " --passphrase-file pass --type veracrypt --hash sha512 --veracrypt-pim 1"
            }
        }
    }

    /// Every command on such a volume.
    fn commands(self) -> &'static [Tried] {
        match self {
            Self::Luks2 => &commands::LUKS2,
            Self::Veracrypt => &commands::VERACRYPT,
        }
    }
}

/// Writes the checksum of a copy of a LUKS2 header.
pub fn seal(copy: &mut [u8]) {
    copy[448..512].fill(0);
    let checksum = Sha256::digest(&*copy);
    copy[448..480].copy_from_slice(&checksum);
}

/// The exit code of `tried` on `target`, and what it said.
fn start(sandbox: &Volumes, tried: &Tried, target: &str) -> (Option<i32>, String) {
    let arguments = tried.arguments.replace("IMAGE", target);
    let output = sandbox.cryptmark(&arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said)
}

/// Tries all commands in `state`.
pub fn row(state: &State) {
    // A header apart is not where all commands take a volume.
    let all = state.format.commands();
    let apart = match (state.set_up)(&Volumes::new(state.format)) {
        Ok(set) => set.target.contains(' '),
        Err(why) => {
            println!(
                "skipped: {} commands on a volume that is {}: {why}",
                all.len(),
                state.name
            );
            return;
        }
    };
    let commands = all.iter().filter(|tried| tried.takes_header || !apart);
    let (done, refused): (Vec<&Tried>, Vec<&Tried>) =
        commands.partition(|tried| !matches!((state.expected)(tried), Outcome::Fails(_)));
    assert!(!done.is_empty(), "no command is done");
    assert!(
        !refused.is_empty() || state.says.is_empty(),
        "no refusal says {:?}",
        state.says
    );
    let mut wrong = refusals(state, &refused);
    wrong.extend(done.iter().filter_map(|tried| success(state, tried)));
    assert!(
        wrong.is_empty(),
        "a volume that is {}:\n{}",
        state.name,
        wrong.join("\n")
    );
}

/// Nothing changes by what is refused, so that all are tried on one volume.
fn refusals(state: &State, refused: &[&Tried]) -> Vec<String> {
    if refused.is_empty() {
        return Vec::new();
    }
    let sandbox = Volumes::new(state.format);
    let set = (state.set_up)(&sandbox).expect("it was possible just now");
    let before = sandbox.read("image");
    let mut wrong = Vec::new();
    for tried in refused {
        let (code, said) = start(&sandbox, tried, &set.target);
        let named = state.says.iter().all(|name| said.contains(name));
        let expected = (state.expected)(tried);
        if let (Some(place), Some(0)) = (tried.serves, code) {
            sandbox.volume(&format!("umount {}", sandbox.path(place).display()));
        }
        if expected != Outcome::Fails(code.unwrap_or(-1)) || said.lines().count() != 2 || !named {
            let name = tried.name;
            wrong.push(format!("{name}: {code:?} instead of {expected:?}\n{said}"));
        }
        if sandbox.read("image") != before {
            wrong.push(format!("{}: has changed the volume", tried.name));
            break;
        }
    }
    drop(set);
    let opens = state.opens.iter();
    wrong.extend(opens.filter_map(|passphrase| sandbox.is_sound("image", passphrase).err()));
    wrong
}

/// What is done, or begun, is so on a volume of its own.
fn success(state: &State, tried: &Tried) -> Option<String> {
    let sandbox = Volumes::new(state.format);
    let set = (state.set_up)(&sandbox).expect("it was possible just now");
    let before = sandbox.read("image");
    let (code, said) = start(&sandbox, tried, &set.target);
    if let (Some(place), Some(0)) = (tried.serves, code) {
        sandbox.volume(&format!("umount {}", sandbox.path(place).display()));
    }
    // The end of a state may undo it.
    let after = sandbox.read("image");
    drop(set);
    let name = tried.name;
    let expected = (state.expected)(tried);
    let (wanted, opens) = match expected {
        Outcome::Done => (0, tried.opens.map(|name| still(state, name))),
        Outcome::Keeps => (0, None),
        Outcome::Loses(code) => (code, None),
        Outcome::Stops(code) => (code, state.opens.first().copied()),
        Outcome::Fails(_) => unreachable!("it is not refused"),
    };
    if code != Some(wanted) {
        return Some(format!("{name}: {code:?} instead of {expected:?}\n{said}"));
    }
    let looks = matches!(tried.is, Use::Looks | Use::Reads);
    if (looks || expected == Outcome::Keeps) && after != before {
        return Some(format!("{name}: has changed the volume"));
    }
    let kept = before.len() / 512 * 512;
    if !tried.replaces && after.get(kept..) != Some(&before[kept..]) {
        return Some(format!("{name}: has lost the end of the volume"));
    }
    let sound = opens.map_or(Ok(()), |passphrase| sandbox.is_sound("image", passphrase));
    sound.err().map(|error| format!("{name}: {error}"))
}

/// The passphrase, or another if the volume had lost that before.
fn still(state: &State, name: &'static str) -> &'static str {
    match (name, state.opens) {
        ("second", ["pass"]) => "pass",
        _ => name,
    }
}
