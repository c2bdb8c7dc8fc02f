//! An empty folder in which a page is tried, with the program on the path.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How the folder is called in pages.
const HOME: &str = "/home/you";

/// No command of a page takes so many seconds, on the slowest machine.
const SECONDS: &str = "300";

pub struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    pub fn new() -> Self {
        // Not the default folder: that may be memory-backed, and disks are meant here.
        let base = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let folder = tempfile::tempdir_in(base).unwrap();
        for name in ["home", "hidden/bin", "hidden/run"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let program = env!("CARGO_BIN_EXE_cryptmark");
        let link = folder.path().join("hidden/bin/cryptmark");
        std::os::unix::fs::symlink(program, link).unwrap();
        Self { folder }
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn command(&self, program: &str) -> Command {
        let hidden = self.folder.path().join("hidden");
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}:/usr/sbin:/sbin", hidden.join("bin").display());
        let mut command = Command::new(program);
        command
            .current_dir(self.home())
            .env("PATH", path)
            .env("HOME", self.home())
            .env("XDG_DATA_HOME", hidden.join("data"))
            .env("XDG_CACHE_HOME", hidden.join("cache"))
            .env("XDG_RUNTIME_DIR", hidden.join("run"))
            .env("LC_ALL", "C.UTF-8")
            .env_remove("CRYPTMARK_STORE")
            .env_remove("XDG_STATE_HOME")
            .stdin(Stdio::null());
        command
    }

    /// Runs what is typed into a shell, after a command that ended with
    /// `before`; its exit code and all that it printed.
    pub fn shell(&self, typed: &str, before: i32) -> (i32, String) {
        // One pipe for both: they come in the order in which a terminal shows them.
        let script = format!("exec 2>&1\n(exit {before})\n{typed}");
        let mut command = self.command("timeout");
        command.args(["--kill-after=5", SECONDS, "bash", "-c", &script]);
        self.done(&mut command)
    }

    /// Runs the program; its exit code and all that it printed.
    pub fn program(&self, arguments: &[String]) -> (i32, String) {
        self.done(
            self.command(env!("CARGO_BIN_EXE_cryptmark"))
                .args(arguments),
        )
    }

    fn done(&self, command: &mut Command) -> (i32, String) {
        let output = command.output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        let home = self.home();
        let said = said.replace(home.to_str().unwrap(), HOME);
        (output.status.code().unwrap_or(-1), said)
    }
}

impl Drop for Desk {
    /// Takes away what a page that failed has left mounted.
    fn drop(&mut self) {
        let (_, json) = self.program(&["volume", "status", "--json"].map(str::to_owned));
        let served: serde_json::Value = serde_json::from_str(&json).unwrap_or_default();
        for one in served.as_array().into_iter().flatten() {
            let image = one["image"].as_str().unwrap_or_default();
            let image = image.replace(HOME, self.home().to_str().unwrap());
            self.program(&["volume".into(), "umount".into(), image]);
        }
    }
}

/// Why what has to be there is not.
pub fn missing(needs: &[String]) -> Option<String> {
    let missing = needs.iter().find(|need| !present(need))?;
    Some(format!("there is no {missing}"))
}

fn present(need: &str) -> bool {
    let device = |path: &str| {
        let opened = std::fs::File::options().read(true).write(true).open(path);
        opened.is_ok()
    };
    match need {
        "root" => rustix::process::geteuid().is_root(),
        "fuse" => device("/dev/fuse"),
        "feature fleet-report" => cfg!(feature = "fleet-report"),
        "loop devices" => device("/dev/loop-control"),
        program => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path)
                .chain(["/usr/sbin".into(), "/sbin".into()])
                .any(|folder| folder.join(program).is_file())
        }
    }
}
