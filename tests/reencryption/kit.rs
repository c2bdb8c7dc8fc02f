//! A folder with a volume, and two programs that change it.

use rustix::process::{Pid, Signal, kill_process};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use testkit::{CHEAP, Expect as _, Sandbox, noise};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");

/// Bytes of data, and before them when they have a header.
const DATA: usize = 12 << 20;
const OFFSET: usize = 4 << 20;

/// Bytes of data that move up by less.
const MOVED: usize = 17 << 20;

/// The header of a volume whose data move, beside it.
pub const SIDE: &str = "v.cryptmark-header";

/// What is said of data that are not those with which it began.
pub const OTHER: &str = "of different data";

/// How long a program may take before it has begun.
const PATIENCE: Duration = Duration::from_secs(60);

/// Within which times of their beginning programs are killed, until a kill comes before the end.
pub fn delays() -> impl Iterator<Item = Duration> {
    (1..40).map(|tries| Duration::from_millis(150) / tries)
}

/// What is done to the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    Reencrypt,
    EncryptDetached,
    DecryptDetached,
    Encrypt,
    Decrypt,
}

impl Task {
    pub fn decrypts(self) -> bool {
        matches!(self, Self::Decrypt | Self::DecryptDetached)
    }
}

/// Which program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Us,
    Them,
}

impl By {
    pub fn other(self) -> Self {
        match self {
            Self::Us => Self::Them,
            Self::Them => Self::Us,
        }
    }
}

/// What kills have met, of us and of them.
#[derive(Debug, Default)]
pub struct Seen {
    hot: [u32; 2],
    clean: [u32; 2],
    over: [u32; 2],
}

impl Seen {
    pub fn count(&mut self, by: By, sandbox: &Volume, begun: bool) {
        let counts = match begun {
            false => &mut self.over,
            true if sandbox.metadata().contains("in-reencryption") => &mut self.hot,
            true => &mut self.clean,
        };
        counts[usize::from(by == By::Them)] += 1;
    }
}

/// A volume `v` of `plain`, with a header in `h` if that is detached.
pub struct Volume {
    sandbox: Sandbox,
    pub plain: Vec<u8>,
}

impl std::ops::Deref for Volume {
    type Target = Sandbox;

    fn deref(&self) -> &Sandbox {
        &self.sandbox
    }
}

impl Volume {
    pub fn new(task: Task) -> Self {
        let sandbox = match task {
            // cryptsetup cannot go on with less than a header has.
            Task::Encrypt => Self::of(MOVED),
            _ => Self::empty(),
        };
        match task {
            Task::Reencrypt | Task::Decrypt => {
                sandbox.make(OFFSET + DATA);
                let format = format!("luksFormat {CHEAP} --offset {} v", OFFSET / 512);
                sandbox.theirs(&format);
                sandbox.ours("import v --input plain --yes");
            }
            Task::DecryptDetached => {
                sandbox.make(DATA);
                sandbox.theirs(&format!("luksFormat {CHEAP} --header h v"));
                sandbox.ours("import v --header h --input plain --yes");
            }
            Task::EncryptDetached | Task::Encrypt => {
                fs::copy(sandbox.path("plain"), sandbox.path("v")).unwrap();
            }
        }
        sandbox
    }

    /// With a passphrase and data, and no volume.
    pub fn empty() -> Self {
        Self::of(DATA)
    }

    /// The same, with so many bytes.
    fn of(bytes: usize) -> Self {
        let mut plain = noise(bytes, 1);
        // It is known by that, as a file system is.
        plain[..512].fill(b'p');
        let sandbox = Sandbox::new(PROGRAM)
            .with_file("line", "a passphrase")
            .with_file("plain", &plain);
        Self { sandbox, plain }
    }

    pub fn make(&self, bytes: usize) {
        self.write_zeros("v", bytes as u64);
    }

    /// `cryptmark volume` with the passphrase.
    pub fn our_command(&self, arguments: &str) -> Command {
        let mut command = self.volume_command(arguments);
        command.args(["--passphrase-file", "line"]);
        piped(command)
    }

    /// `cryptsetup` with the passphrase, in user space alone.
    pub fn their_command(&self, arguments: &str) -> Command {
        let options = "--batch-mode --disable-locks --key-file line";
        piped(self.command("cryptsetup", &format!("{options} {arguments}")))
    }

    /// Starts ours, which asks for its passphrase now: it comes through the pipe.
    pub fn asking(&self, arguments: &str) -> (Child, File) {
        let pipe = self.path("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let command = self.volume_command(&format!("{arguments} --passphrase-file pipe"));
        let child = piped(command).spawn().unwrap();
        // Nobody opens it before somebody reads.
        (child, File::options().write(true).open(&pipe).unwrap())
    }

    pub fn ours(&self, arguments: &str) -> Output {
        self.our_command(arguments).succeeds()
    }

    pub fn theirs(&self, arguments: &str) -> Output {
        self.their_command(arguments).succeeds()
    }

    /// Where the header is now: of its own file, of the file beside the volume, or of the volume.
    fn header(&self) -> &'static str {
        let files = ["h", "v.cryptmark-header"];
        files
            .into_iter()
            .find(|name| self.path(name).exists())
            .unwrap_or("v")
    }

    /// The option that names the header for us, and for them.
    fn detached(&self) -> String {
        match self.header() {
            "v" => String::new(),
            name => format!("--header {name}"),
        }
    }

    /// The JSON of the newer copy of the header of those whose checksum is right.
    pub fn metadata(&self) -> String {
        let read = |at: u64| {
            let mut file = File::open(self.path(self.header())).ok()?;
            let mut copy = vec![0; 16 << 10];
            file.seek(SeekFrom::Start(at)).ok()?;
            file.read_exact(&mut copy).ok()?;
            let epoch = u64::from_be_bytes(copy[16..24].try_into().ok()?);
            let magic: &[u8] = if at == 0 { b"LUKS" } else { b"SKUL" };
            let mut sealed = copy.clone();
            sealed[448..512].fill(0);
            let whole = Sha256::digest(&sealed)[..] == copy[448..480];
            let text = copy[4096..].split(|byte| *byte == 0).next()?;
            (whole && copy.starts_with(magic))
                .then(|| (epoch, String::from_utf8_lossy(text).into_owned()))
        };
        let newest = [0, 16 << 10].into_iter().filter_map(read).max();
        newest.map_or(String::new(), |(_, text)| text)
    }

    pub fn is_begun(&self) -> bool {
        self.metadata().contains("online-reencrypt")
    }

    /// A volume whose task was killed before its end; those that were done sooner are left out.
    #[track_caller]
    pub fn killed(task: Task, by: By, resilience: &str) -> Self {
        let killed = delays().find_map(|within| {
            let sandbox = Self::new(task);
            let begun = sandbox.begin_and_kill(task, by, resilience, within);
            begun.then_some(sandbox)
        });
        killed.expect("a kill before the end")
    }

    /// Begins the task, and kills the program `within` a time after that; whether it had not
    /// ended.
    pub fn begin_and_kill(&self, task: Task, by: By, resilience: &str, within: Duration) -> bool {
        self.begin_and(task, by, resilience, within, Signal::KILL)
    }

    /// Begins the task as they do it, and asks the program to stop.
    pub fn begin_and_interrupt(&self, task: Task, resilience: &str, within: Duration) -> bool {
        self.begin_and(task, By::Them, resilience, within, Signal::INT)
    }

    /// The command that begins the task, and works on `hot` bytes at a time if it is theirs.
    fn beginning(&self, task: Task, by: By, resilience: &str, hot: &str) -> Command {
        let them = format!(
            "reencrypt --force-offline-reencrypt --hotzone-size {hot} {CHEAP} v {}",
            match resilience {
                "datashift" => String::new(),
                other => format!("--resilience {other}"),
            }
        );
        if (task, by) == (Task::Encrypt, By::Them) {
            // They do not make it longer themselves.
            let file = File::options().write(true).open(self.path("v")).unwrap();
            file.set_len((self.plain.len() + 2 * OFFSET) as u64)
                .unwrap();
        }
        match (task, by) {
            (Task::Reencrypt, By::Us) => self.our_command(&format!("reencrypt v {CHEAP}")),
            (Task::EncryptDetached, By::Us) => {
                self.our_command(&format!("reencrypt v --encrypt --header h {CHEAP}"))
            }
            (Task::DecryptDetached, By::Us) => self.our_command("reencrypt v --decrypt --header h"),
            (Task::Encrypt, By::Us) => self.our_command(&format!("reencrypt v --encrypt {CHEAP}")),
            (Task::Decrypt, By::Us) => self.our_command("reencrypt v --decrypt"),
            (Task::Reencrypt, By::Them) => self.their_command(&them),
            (Task::EncryptDetached, By::Them) => {
                self.their_command(&format!("{them} --encrypt --header h"))
            }
            (Task::DecryptDetached | Task::Decrypt, By::Them) => {
                self.their_command(&format!("{them} --decrypt --header h"))
            }
            (Task::Encrypt, By::Them) => self.their_command(&format!(
                "{them} --encrypt --reduce-device-size {}k",
                (2 * OFFSET) >> 10
            )),
        }
    }

    /// Begins the task as they do it, and kills the program at its write number `at`; whether
    /// there was one.
    pub fn begin_and_kill_at(&self, task: Task, resilience: &str, at: u32) -> bool {
        let mut theirs = self.beginning(task, By::Them, resilience, "3M");
        if task == Task::Reencrypt {
            theirs.args(["--key-slot", "0"]);
        }
        self.killed_at(&theirs, "write,pwrite64", at)
    }

    /// Runs `command`, and has strace do `what` at its system calls of these names.
    pub fn injected(&self, command: &Command, calls: &str, what: &str) -> Output {
        let mut traced = Command::new("strace");
        traced.args(["-f", "-qq", "-o", "/dev/null"]);
        traced.args(["-e", &format!("trace={calls}")]);
        traced.args(["-e", &format!("inject={calls}:{what}")]);
        traced.arg(command.get_program()).args(command.get_args());
        self.prepare(traced).output().unwrap()
    }

    /// Runs `command`, and kills it at number `at` of its system calls of these names; whether
    /// there was one. Without, it has to succeed.
    pub fn killed_at(&self, command: &Command, calls: &str, at: u32) -> bool {
        let output = self.injected(command, calls, &format!("signal=SIGKILL:when={at}"));
        let killed = output.status.signal() == Some(9);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            killed || output.status.success(),
            "{command:?} {at}: {said}"
        );
        killed
    }

    /// Ours, killed at number `at` of its system calls of these names; whether there was one.
    pub fn ours_killed_at(&self, arguments: &str, calls: &str, at: u32) -> bool {
        self.killed_at(&self.our_command(arguments), calls, at)
    }

    /// The exit code of ours, and what it said.
    pub fn ends(&self, arguments: &str) -> (Option<i32>, String) {
        let output = self.our_command(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    }

    /// Runs what must be refused with this code, and must change nothing of `image`; what it said.
    #[track_caller]
    pub fn refused(&self, image: &str, code: i32, arguments: &str) -> String {
        let before = self.read(image);
        let (ended, said) = self.ends(arguments);
        assert_eq!(ended, Some(code), "{arguments}\n{said}");
        assert!(self.read(image) == before, "{arguments}");
        said
    }

    /// Runs what must be refused because the data are others.
    #[track_caller]
    pub fn refused_as_other(&self, image: &str, arguments: &str) {
        let said = self.refused(image, 4, arguments);
        assert!(said.contains(OTHER), "{arguments}\n{said}");
    }

    /// Whether the volume has the bytes of another one, which may be shorter.
    pub fn is_as(&self, other: &Self) -> bool {
        let [ours, others] = [self, other].map(|sandbox| sandbox.read("v"));
        ours.starts_with(&others)
    }

    /// Adds a keyslot of the same passphrase.
    pub fn add_keyslot(&self) {
        self.theirs(&format!("luksAddKey {CHEAP} v line"));
    }

    /// A second volume of the same bytes.
    pub fn copy(&self) -> Self {
        let sandbox = Sandbox::new(PROGRAM);
        sandbox.copy_files(self);
        let plain = self.plain.clone();
        Self { sandbox, plain }
    }

    fn begin_and(
        &self,
        task: Task,
        by: By,
        resilience: &str,
        within: Duration,
        signal: Signal,
    ) -> bool {
        let mut child = self.begun(task, by, resilience);
        let random = fs::read("/proc/sys/kernel/random/uuid").unwrap();
        let random = random.iter().fold(0, |sum: u64, byte| {
            (sum * 31 + u64::from(*byte)) % 1_000_003
        });
        std::thread::sleep(within.mul_f64(random as f64 / 1e6));
        if child.try_wait().unwrap().is_none() {
            // Another program that does it comes too late where programs begin slowly.
            kill_process(Pid::from_child(&child), signal).unwrap();
        }
        child.wait().unwrap();
        self.is_begun()
    }

    /// The program that has begun the task, or has ended.
    pub fn begun(&self, task: Task, by: By, resilience: &str) -> Child {
        let mut command = self.beginning(task, by, resilience, "64k");
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        let started = Instant::now();
        // The header in its place is the last thing that a beginning is. Asked the other way
        // round, the file beside could appear in between, and be taken for it.
        let placed = || match (task, by) {
            (Task::Encrypt, _) => self.is_begun() && self.header() == "v",
            _ => self.is_begun(),
        };
        while !placed() && child.try_wait().unwrap().is_none() {
            assert!(started.elapsed() < PATIENCE, "it does not begin");
            std::thread::sleep(Duration::from_millis(1));
        }
        child
    }

    /// Whether the data stand there unencrypted.
    pub fn is_plain(&self) -> bool {
        self.read("v").starts_with(&self.plain)
    }

    /// Whether we refuse to open it because it is decrypted, and nothing is left to prove that.
    pub fn is_said_to_be_decrypted(&self, when: &str) -> bool {
        let option = self.detached();
        let mut command = self.our_command(&format!("export v {option} --output -"));
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let refused = said.contains("says that all data is decrypted");
        assert_eq!(refused, output.status.code() == Some(4), "{when}\n{said}");
        refused
    }

    /// Whether we read the data, whatever is behind them.
    pub fn holds(&self, when: &str) {
        let option = self.detached();
        let output = self.ours(&format!("export v {option} --output -"));
        assert!(output.stdout.starts_with(&self.plain), "{when}");
    }

    /// Finishes what has begun.
    pub fn finish(&self, task: Task, by: By) {
        let option = self.detached();
        // There is a moment in which only we can go on: what is wiped then is gone for them.
        let alone = self.metadata().contains("cryptmark-reencrypt-alone");
        if by == By::Us || alone {
            assert!(!alone || task == Task::Encrypt);
            let option = if option == "--header h" { &option } else { "" };
            self.ours(&format!("reencrypt v {option}"));
            return;
        }
        self.theirs(&format!("repair v {option}"));
        if self.is_begun() {
            self.theirs(&format!(
                "reencrypt --resume-only --force-offline-reencrypt v {option}"
            ));
        }
    }

    /// What must be at the end; what had not begun may be as it was.
    pub fn ended(&self, task: Task, begun: bool) {
        assert!(!self.is_begun());
        let encrypted = self.metadata().contains("\"crypt\"");
        if task.decrypts() && (begun || !encrypted) {
            assert!(self.is_plain(), "{task:?}");
            return;
        }
        self.holds(&format!("{task:?} at the end"));
        let option = self.detached();
        self.theirs(&format!("luksOpen --test-passphrase v {option}"));
    }
}

fn piped(mut command: Command) -> Command {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}
