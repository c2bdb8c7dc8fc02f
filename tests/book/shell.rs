//! An empty folder in which a page is tried, with the program on the path.

use std::path::PathBuf;
use std::process::Command;
use testkit::Sandbox;

/// How the folder is called in pages.
const HOME: &str = "/home/you";

/// No command of a page takes so many seconds, on the slowest machine.
const SECONDS: &str = "300";

pub struct Shell(Sandbox);

impl Shell {
    pub fn new() -> Self {
        let program = env!("CARGO_BIN_EXE_cryptmark");
        // Not the default folder: that may be memory-backed, and disks are meant here.
        let sandbox = Sandbox::within(env!("CARGO_TARGET_TMPDIR"), program)
            .with_directory("home")
            .with_directory("hidden/bin")
            .with_directory("hidden/run")
            .with_path("HOME", "home")
            .with_path("XDG_DATA_HOME", "hidden/data")
            .with_path("XDG_CACHE_HOME", "hidden/cache")
            .with_path("XDG_RUNTIME_DIR", "hidden/run")
            .with_variable("LC_ALL", "C.UTF-8")
            .without_variable("XDG_STATE_HOME");
        let folder = sandbox.path("hidden/bin");
        std::os::unix::fs::symlink(program, folder.join("cryptmark")).unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}:/usr/sbin:/sbin", folder.display());
        Self(sandbox.with_variable("PATH", path))
    }

    fn home(&self) -> PathBuf {
        self.0.path("home")
    }

    /// Runs what is typed into a shell, after a command that ended with
    /// `before`; its exit code and all that it printed.
    pub fn shell(&self, typed: &str, before: i32) -> (i32, String) {
        // One pipe for both: they come in the order in which a terminal shows them.
        let script = format!("exec 2>&1\n(exit {before})\n{typed}");
        let within = ["--kill-after=5", SECONDS, "bash", "-c", &script];
        self.done(&mut self.0.command("timeout", &within))
    }

    /// Runs the program; its exit code and all that it printed.
    pub fn program(&self, arguments: &[String]) -> (i32, String) {
        self.done(&mut self.0.cryptmark(arguments))
    }

    fn done(&self, command: &mut Command) -> (i32, String) {
        let output = command.current_dir(self.home()).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        let home = self.home();
        let said = said.replace(home.to_str().unwrap(), HOME);
        (output.status.code().unwrap_or(-1), said)
    }
}

impl Drop for Shell {
    /// Takes away what a page that failed has left mounted.
    fn drop(&mut self) {
        let (_, json) = self.program(&["volume", "status", "--json"].map(str::to_owned));
        let served: serde_json::Value = serde_json::from_str(&json).unwrap_or_default();
        for one in served.as_array().into_iter().flatten() {
            let image = one["image"].as_str().unwrap_or_default();
            // Other tests serve volumes, too.
            if !image.starts_with(HOME) {
                continue;
            }
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
