//! A folder to work in, and servers of all kinds that are started and killed.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");
pub const MIB: u64 = 1 << 20;

/// A folder with a passphrase in `line`.
pub struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("line"), "a passphrase\n").unwrap();
        Self { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn command(&self, program: &str, arguments: &str) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments.split_whitespace())
            .current_dir(self.folder.path())
            .env("XDG_STATE_HOME", self.folder.path().join("state"))
            .stdin(Stdio::null());
        command
    }

    /// Runs a program that has to succeed; what it printed.
    #[track_caller]
    pub fn run(&self, program: &str, arguments: &str) -> String {
        let output = self.command(program, arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {arguments}\n{said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs this program; what came of it.
    pub fn try_to(&self, arguments: &str) -> Output {
        self.command(PROGRAM, arguments).output().unwrap()
    }

    /// An empty file for servers.
    pub fn file(&self, name: &str, mib: u64) {
        let file = fs::File::create(self.path(name)).unwrap();
        file.set_len(mib * MIB).unwrap();
    }

    /// Makes a LUKS2 volume that opens quickly.
    #[track_caller]
    pub fn create(&self, place: &str) {
        self.run(
            PROGRAM,
            &format!(
                "volume create {place} --passphrase-file line --pbkdf pbkdf2 \
                 --pbkdf-force-iterations 1000"
            ),
        );
    }
}

/// A server over the file `disk` of a desk, at the socket `back`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// nbdkit with its file plugin.
    NbdkitFile,
    /// nbdkit with its memory plugin, which has another disk in each life.
    NbdkitMemory,
    /// qemu-nbd as it is, which lets a client have one connection.
    Qemu,
    /// This program, without encryption.
    Ours,
}

impl Kind {
    /// What it needs, if that is not there; says so.
    pub fn is_here(self) -> bool {
        match self {
            Self::NbdkitFile | Self::NbdkitMemory => have(&["nbdkit"]),
            Self::Qemu => have(&["qemu-nbd"]),
            Self::Ours => true,
        }
    }

    fn command(self, desk: &Desk) -> Command {
        match self {
            Self::NbdkitFile => desk.command("nbdkit", "--foreground --unix back file disk"),
            Self::NbdkitMemory => desk.command("nbdkit", "--foreground --unix back memory 40M"),
            Self::Qemu => {
                let socket = desk.path("back");
                let arguments = format!(
                    "--persistent --format=raw --cache=writeback --socket={} disk",
                    socket.display()
                );
                desk.command("qemu-nbd", &arguments)
            }
            Self::Ours => desk.command(
                PROGRAM,
                "volume serve disk --type plain --cipher cipher_null-ecb --passphrase-file line \
                 --trim pass --nbd back",
            ),
        }
    }

    /// Starts it, and returns when it listens.
    pub fn start(self, desk: &Desk) -> Back {
        Back::start(self.command(desk), &desk.path("back"))
    }
}

/// A server that is killed, now or in the end.
pub struct Back {
    child: Child,
}

impl Back {
    pub fn start(mut command: Command, socket: &Path) -> Self {
        // A killed server leaves it behind.
        let _ = fs::remove_file(socket);
        let child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let back = Self { child };
        let begun = Instant::now();
        while UnixStream::connect(socket).is_err() {
            let begins = begun.elapsed() < Duration::from_secs(30);
            assert!(begins, "the server does not begin: {command:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
        back
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Kills it, so that it has time for nothing.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Back {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether the programs are there; says so when not.
pub fn have(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| {
        !std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
            .any(|folder| folder.join(program).is_file())
    });
    if let Some(program) = missing {
        println!("skipped: there is no {program}");
    }
    missing.is_none()
}

/// How often a test does what it does.
pub fn given(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
}
