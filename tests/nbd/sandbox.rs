//! A sandbox, and servers of all kinds that are started and killed.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use testkit::{CHEAP, Running, Sandbox, have, wait_until};

pub const MIB: u64 = 1 << 20;

/// A sandbox with a passphrase in `line`.
pub fn sandbox() -> Sandbox {
    Sandbox::new(env!("CARGO_BIN_EXE_cryptmark")).with_file("line", "a passphrase\n")
}

/// Makes a LUKS2 volume that opens quickly.
#[track_caller]
pub fn create(sandbox: &Sandbox, place: &str) {
    sandbox.volume(&format!("create {place} --passphrase-file line {CHEAP}"));
}

/// A server over the file `disk` of a sandbox, at the socket `back`.
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

    fn command(self, sandbox: &Sandbox) -> Command {
        match self {
            Self::NbdkitFile => sandbox.command("nbdkit", "--foreground --unix back file disk"),
            Self::NbdkitMemory => sandbox.command("nbdkit", "--foreground --unix back memory 40M"),
            Self::Qemu => {
                let socket = sandbox.path("back");
                let arguments = format!(
                    "--persistent --format=raw --cache=writeback --socket={} disk",
                    socket.display()
                );
                sandbox.command("qemu-nbd", &arguments)
            }
            Self::Ours => sandbox.cryptmark(
                "volume serve disk --type plain --cipher cipher_null-ecb --passphrase-file line \
                 --trim pass --nbd back",
            ),
        }
    }

    /// Starts it, and returns when it listens.
    pub fn start(self, sandbox: &Sandbox) -> Running {
        start(self.command(sandbox), &sandbox.path("back"))
    }
}

/// Starts a server, which is killed at the end, and returns when it listens at `socket`.
pub fn start(mut command: Command, socket: &Path) -> Running {
    // A killed server leaves it behind.
    let _ = fs::remove_file(socket);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let server = Running::start(&mut command);
    wait_until("the server does not begin", || {
        UnixStream::connect(socket).is_ok()
    });
    server
}

/// How often a test does what it does.
pub fn given(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
}
