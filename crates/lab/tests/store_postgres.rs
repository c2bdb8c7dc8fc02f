//! The store on PostgreSQL: the suite against a private server that lives as
//! long as the test.
#![cfg(feature = "postgres")]

mod store_suite;

use cryptmark_lab::store::{Location, Store, StoreError};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A server on a Unix socket in a temporary directory; stopped when dropped.
struct Server {
    binaries: PathBuf,
    directory: tempfile::TempDir,
    user: Option<&'static str>,
}

impl Server {
    /// Starts a server, or says why none can be started here.
    fn start() -> Result<Self, String> {
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
        };
        // World-readable up to the socket, so that this process gets in as well.
        fs::set_permissions(server.directory.path(), fs::Permissions::from_mode(0o755))
            .map_err(|error| error.to_string())?;
        let data = server.data();
        let data = data.to_str().unwrap_or_default();
        server.run("initdb", &["-D", data, "-U", "lab", "-A", "trust", "-N"])?;
        let options = format!(
            "-c listen_addresses= -c unix_socket_directories={} -c fsync=off",
            server.directory.path().display()
        );
        let log = server.directory.path().join("log");
        let log = log.to_str().unwrap_or_default();
        server.run(
            "pg_ctl",
            &["-D", data, "-w", "-l", log, "-o", &options, "start"],
        )?;
        Ok(server)
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<(), String> {
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
            return Ok(());
        }
        Err(format!(
            "{} failed: {}{}",
            program.display(),
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ))
    }

    fn location(&self, database: &str) -> Location {
        Location::Postgres(format!(
            "postgres://lab@localhost/{database}?host={}",
            self.directory.path().display()
        ))
    }

    fn sql(&self, database: &str, statement: &str) {
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
            "-c",
            statement,
        ];
        self.run("psql", &arguments).unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let data = self.data();
        let data = data.to_str().unwrap_or_default();
        let stopped = self.run("pg_ctl", &["-D", data, "-m", "immediate", "-w", "stop"]);
        if let Err(error) = stopped {
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

#[test]
fn on_a_private_server() {
    let server = match Server::start() {
        Ok(server) => server,
        Err(reason) => {
            println!("skipped: {reason}");
            return;
        }
    };
    for database in ["suite", "writers", "strangers", "newer"] {
        server.sql("postgres", &format!("CREATE DATABASE {database}"));
    }

    store_suite::all(&server.location("suite"));

    let writers = server.location("writers");
    // Nobody created the tables before: they race for that as well.
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let writers = &writers;
            scope.spawn(move || store_suite::write_as(writers, writer));
        }
    });
    store_suite::nothing_lost(&writers, 4);

    server.sql(
        "strangers",
        "CREATE SCHEMA cryptmark CREATE TABLE notes (text TEXT)",
    );
    assert!(matches!(
        Store::open(&server.location("strangers")),
        Err(StoreError::Foreign { .. })
    ));

    drop(Store::open(&server.location("newer")).unwrap());
    server.sql("newer", "UPDATE cryptmark.schema_version SET version = 99");
    assert!(matches!(
        Store::open(&server.location("newer")),
        Err(StoreError::Newer { found: 99, .. })
    ));

    server.sql(
        "suite",
        "UPDATE cryptmark.runs SET header = 'no JSON' WHERE run = '2026-b'",
    );
    let store = Store::open(&server.location("suite")).unwrap();
    assert!(matches!(
        store.load("2026-b"),
        Err(StoreError::Record { ordinal: None, .. })
    ));

    assert!(matches!(
        Store::open(&server.location("absent")),
        Err(StoreError::Database { .. })
    ));
}
