//! A folder with a volume, and everything that tests mount taken away again.

use block::signature;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");
pub const MIB: u64 = 1 << 20;

/// A user who may do nothing.
const NOBODY: u32 = 65534;

pub struct Desk {
    folder: tempfile::TempDir,
    user: bool,
}

impl Desk {
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
        let desk = Self {
            folder: tempfile::tempdir().unwrap(),
            user: false,
        };
        fs::write(desk.path("line"), "a passphrase\n").unwrap();
        fs::create_dir(desk.path("d")).unwrap();
        let size = format!("{size}MiB");
        let cheap = ["--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000"];
        desk.done(
            desk.volume("create")
                .args(["x.img", "--size", &size])
                .args(cheap),
        );
        Some(desk)
    }

    /// The same for a user without rights.
    pub fn of_user(size: u64) -> Option<Self> {
        let mut desk = Self::new(size)?;
        let device = fs::metadata("/dev/fuse").unwrap();
        if device.permissions().mode() & 0o006 != 0o006 {
            println!("skipped: mounts by a user: /dev/fuse is not open to all users");
            return None;
        }
        desk.user = true;
        for path in ["", "x.img", "line", "d"].map(|name| desk.path(name)) {
            std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        Some(desk)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `cryptmark volume COMMAND`, in the folder.
    pub fn volume(&self, command: &str) -> Command {
        let mut run = match self.user {
            false => Command::new(PROGRAM),
            true => {
                let mut run = Command::new("setpriv");
                run.args(["--reuid=65534", "--regid=65534", "--clear-groups", PROGRAM]);
                run
            }
        };
        run.args(["volume", command]);
        if ["create", "mount", "serve", "export"].contains(&command) {
            run.args(["--passphrase-file", "line"]);
        }
        run.current_dir(self.folder.path())
            .env("XDG_RUNTIME_DIR", self.folder.path())
            .stdin(Stdio::null());
        run
    }

    /// `cryptmark volume mount x.img d`, in the background.
    pub fn mount(&self, options: &[&str]) {
        self.done(
            self.volume("mount")
                .args(["x.img", "d", "--daemon"])
                .args(options),
        );
    }

    pub fn umount(&self) {
        self.done(self.volume("umount").arg("d"));
        assert!(self.is_tidy());
    }

    /// Runs what has to succeed.
    #[track_caller]
    pub fn done(&self, command: &mut Command) -> Output {
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}\n{said}");
        output
    }

    /// Runs what has to fail, with this exit code and two lines.
    #[track_caller]
    pub fn refused(&self, command: &mut Command, code: i32) -> String {
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{command:?}\n{said}");
        let lines: Vec<&str> = said.lines().collect();
        assert!(
            lines.len() == 2 && lines[0].starts_with("error: ") && lines[1].starts_with("  "),
            "{said}"
        );
        said
    }

    /// A server in the foreground, which has mounted something.
    pub fn in_foreground(&self, options: &[&str]) -> Child {
        let child = self
            .volume("mount")
            .args(["x.img", "d"])
            .args(options)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        soon(|| self.has_mounts_at("d"));
        child
    }

    /// What is said of this desk's volume; nothing where it is not served.
    pub fn status(&self) -> Option<serde_json::Value> {
        let output = self.done(self.volume("status").arg("--json"));
        let list: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
        let image = self.path("x.img");
        let image = image.canonicalize().unwrap_or(image);
        list.into_iter()
            .find(|service| service["image"].as_str() == image.to_str())
    }

    pub fn pid(&self) -> u32 {
        self.status().unwrap()["pid"].as_u64().unwrap() as u32
    }

    /// The mounts and loop devices that this desk has; private ones are said
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

impl Drop for Desk {
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
        let _ = self.volume("umount").arg("x.img").output();
    }
}

pub fn kill(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.cast_signed()).unwrap();
    // It may have ended.
    let _ = kill_process(pid, signal);
}

/// Returns when `done` says so; fails when it does not in a long time.
#[track_caller]
pub fn soon(mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "it does not happen"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a program is there; a word about it where not.
pub fn has(program: &str) -> bool {
    let found = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"]
        .iter()
        .any(|folder| Path::new(folder).join(program).exists());
    if !found {
        println!("skipped: {program} is not installed");
    }
    found
}
