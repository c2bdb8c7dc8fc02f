//! Mounts of a volume, by root or by a user.

use block::signature;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use testkit::{CHEAP, Expect as _, Sandbox, wait_until};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");
pub const MIB: u64 = 1 << 20;

/// A user who may do nothing.
const NOBODY: u32 = 65534;

/// A sandbox with a volume, and everything that tests mount taken away again.
pub struct Mounts {
    sandbox: Sandbox,
    user: bool,
}

impl std::ops::Deref for Mounts {
    type Target = Sandbox;

    fn deref(&self) -> &Sandbox {
        &self.sandbox
    }
}

impl Mounts {
    /// A folder with a volume `x.img` of so many MiB and an empty directory
    /// `d`; nothing, and a word about it, where mounts cannot be made.
    pub fn new(size: u64) -> Option<Self> {
        let fuse = fs::File::options().read(true).write(true).open("/dev/fuse");
        if let Err(error) = fuse {
            println!("skipped: mounts: /dev/fuse: {error}");
            return None;
        }
        if !rustix::process::geteuid().is_root() {
            println!("skipped: mounts: they need root");
            return None;
        }
        let sandbox = Sandbox::new(PROGRAM)
            .with_path("XDG_RUNTIME_DIR", "")
            .with_file("line", "a passphrase\n")
            .with_directory("d");
        sandbox.volume(&format!(
            "create x.img --size {size}MiB --passphrase-file line {CHEAP}"
        ));
        Some(Self {
            sandbox,
            user: false,
        })
    }

    /// The same for a user without rights.
    pub fn of_user(size: u64) -> Option<Self> {
        let mut sandbox = Self::new(size)?;
        let device = fs::metadata("/dev/fuse").unwrap();
        if device.permissions().mode() & 0o006 != 0o006 {
            println!("skipped: mounts by a user: /dev/fuse is not open to all users");
            return None;
        }
        sandbox.user = true;
        for path in ["", "x.img", "line", "d"].map(|name| sandbox.path(name)) {
            std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        Some(sandbox)
    }

    /// `cryptmark volume NAME`, by the user.
    pub fn subcommand(&self, name: &str) -> Command {
        let mut run = match self.user {
            false => self.volume_command(name),
            true => {
                let user = ["--reuid=65534", "--regid=65534", "--clear-groups"];
                let mut run = self.command("setpriv", &user);
                run.args([PROGRAM, "volume", name]);
                run
            }
        };
        if ["create", "mount", "serve", "export"].contains(&name) {
            run.args(["--passphrase-file", "line"]);
        }
        run
    }

    /// `cryptmark volume mount x.img d`, in the background.
    pub fn mount(&self, options: &[&str]) {
        self.subcommand("mount")
            .args(["x.img", "d", "--daemon"])
            .args(options)
            .succeeds();
    }

    pub fn umount(&self) {
        self.subcommand("umount").arg("d").succeeds();
        assert!(self.is_tidy());
    }

    /// A server in the foreground, which has mounted something.
    pub fn in_foreground(&self, options: &[&str]) -> Child {
        let child = self
            .subcommand("mount")
            .args(["x.img", "d"])
            .args(options)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_until("it does not happen", || self.has_mounts_at("d"));
        child
    }

    /// What is said of this sandbox's volume; nothing where it is not served.
    pub fn status(&self) -> Option<serde_json::Value> {
        let output = self.subcommand("status").arg("--json").succeeds();
        let list: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
        let image = self.path("x.img");
        let image = image.canonicalize().unwrap_or(image);
        list.into_iter()
            .find(|service| service["image"].as_str() == image.to_str())
    }

    pub fn pid(&self) -> u32 {
        self.status().unwrap()["pid"].as_u64().unwrap() as u32
    }

    /// The mounts and loop devices that this sandbox has; private ones are said
    /// to be there by the status.
    pub fn is_tidy(&self) -> bool {
        let empty = fs::read_dir(self.path("d")).is_ok_and(|mut entries| entries.next().is_none());
        empty && !self.has_mounts_at("d") && self.status().is_none()
    }

    pub fn has_mounts_at(&self, name: &str) -> bool {
        let path = self.path(name);
        let mounts = signature::mounts().unwrap();
        mounts.iter().any(|mount| mount.mount_point == path)
    }
}

impl Drop for Mounts {
    fn drop(&mut self) {
        // After a failure only: the servers first, then what they have left.
        if let Some(status) = self.status().filter(|_| std::thread::panicking()) {
            println!("left: {status}");
        }
        if self.status().is_some_and(|status| status["alive"] == true) {
            kill(self.pid(), Signal::KILL);
        }
        for place in ["d", "f"] {
            if self.has_mounts_at(place) {
                let _ = Command::new("umount")
                    .arg("-l")
                    .arg(self.path(place))
                    .output();
            }
        }
        let _ = self.subcommand("umount").arg("x.img").output();
    }
}

pub fn kill(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.cast_signed()).unwrap();
    // It may have ended.
    let _ = kill_process(pid, signal);
}
