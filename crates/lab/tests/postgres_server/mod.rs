//! A PostgreSQL server of a test's own.
#![allow(dead_code, reason = "not every test stops it")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A server on a Unix socket in a temporary directory; stopped when dropped.
pub struct Server {
    binaries: PathBuf,
    directory: tempfile::TempDir,
    user: Option<&'static str>,
    /// Options in addition to its location, in the form of `postgres -c`.
    options: &'static str,
}

impl Server {
    /// Starts a server, or says why none can be started here. It forgets what the
    /// machine loses with its power, which tests need not wait for.
    pub fn start() -> Result<Self, String> {
        Self::start_with("-c fsync=off")
    }

    /// The same with other options.
    pub fn start_with(options: &'static str) -> Result<Self, String> {
        let binaries = find_binaries()
            .ok_or("PostgreSQL's initdb and pg_ctl are not installed (Debian: postgresql)")?;
        let root = Command::new("id").arg("-u").output();
        let root = root.is_ok_and(|id| id.stdout.trim_ascii() == b"0");
        // The server refuses to run as root.
        let user = root.then_some("postgres");
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        if let Some(user) = user {
            let chown = Command::new("chown")
                .arg(user)
                .arg(directory.path())
                .output();
            if !chown.is_ok_and(|done| done.status.success()) {
                return Err(format!("running as root, and there is no user `{user}`"));
            }
        }
        let server = Self {
            binaries,
            directory,
            user,
            options,
        };
        // World-readable up to the socket, so that this process gets in as well.
        fs::set_permissions(server.directory.path(), fs::Permissions::from_mode(0o755))
            .map_err(|error| error.to_string())?;
        let data = server.data();
        let data = data.to_str().unwrap_or_default();
        server.run("initdb", &["-D", data, "-U", "lab", "-A", "trust", "-N"])?;
        // The user `guest` needs a password; all others do not.
        let rules = server.data().join("pg_hba.conf");
        let trusting = fs::read_to_string(&rules).map_err(|error| error.to_string())?;
        fs::write(&rules, format!("local all guest scram-sha-256\n{trusting}"))
            .map_err(|error| error.to_string())?;
        server.go()?;
        Ok(server)
    }

    /// Starts a server that was stopped.
    pub fn go(&self) -> Result<(), String> {
        let options = format!(
            "-c listen_addresses= -c unix_socket_directories={} {}",
            self.directory.path().display(),
            self.options
        );
        let (data, log) = (self.data(), self.directory.path().join("log"));
        let (data, log) = (data.to_str(), log.to_str());
        let (data, log) = (data.unwrap_or_default(), log.unwrap_or_default());
        self.run(
            "pg_ctl",
            &["-D", data, "-w", "-l", log, "-o", &options, "start"],
        )?;
        Ok(())
    }

    /// Stops it as `pg_ctl` calls it: `fast` breaks off what runs, `immediate` is a
    /// crash.
    pub fn stop(&self, mode: &str) -> Result<(), String> {
        let data = self.data();
        let data = data.to_str().unwrap_or_default();
        self.run("pg_ctl", &["-D", data, "-m", mode, "-w", "stop"])?;
        Ok(())
    }

    /// The URL of a database, for the user `lab`.
    pub fn url(&self, database: &str) -> String {
        self.url_of("lab", database)
    }

    /// The URL for a user, with an optional password, as in `guest:secret`.
    pub fn url_of(&self, user: &str, database: &str) -> String {
        format!(
            "postgres://{user}@localhost/{database}?host={}",
            self.directory.path().display()
        )
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<String, String> {
        let program = self.binaries.join(program);
        let mut command = match self.user {
            None => Command::new(&program),
            Some(user) => {
                let mut command = Command::new("runuser");
                command.args(["-u", user, "--"]).arg(&program);
                command
            }
        };
        let output: Output = command
            .args(arguments)
            .current_dir(self.directory.path())
            .output()
            .map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(format!(
            "{} failed: {}{}",
            program.display(),
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ))
    }

    /// Runs a statement behind the store's back; what it says, column by column.
    pub fn sql(&self, database: &str, statement: &str) -> String {
        let socket = self.directory.path().to_str().unwrap();
        let arguments = [
            "-h",
            socket,
            "-U",
            "lab",
            "-d",
            database,
            "-v",
            "ON_ERROR_STOP=1",
            "-tA",
            "-c",
            statement,
        ];
        let said = self.run("psql", &arguments).unwrap();
        said.trim().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A test may have stopped it.
        if self.data().join("postmaster.pid").exists()
            && let Err(error) = self.stop("immediate")
        {
            eprintln!("the test server was not stopped: {error}");
        }
    }
}

fn find_binaries() -> Option<PathBuf> {
    let complete = |directory: &PathBuf| {
        ["initdb", "pg_ctl", "psql"]
            .iter()
            .all(|program| directory.join(program).is_file())
    };
    let debian = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|version| version.path().join("bin"));
    let elsewhere = ["/usr/local/bin", "/usr/local/pgsql/bin", "/usr/bin"]
        .into_iter()
        .map(|path| Path::new(path).to_owned());
    debian.chain(elsewhere).find(complete)
}
