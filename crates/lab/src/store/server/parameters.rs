//! [`Parameters`]: how a server is reached, from the URL, the environment and the password
//! file, as libpq has them. The client library knows less of them than libpq.

use super::tls::{self, Verify};
use super::{CONNECTING, SILENCE};
use etcetera::HomeDirError;
use percent_encoding::percent_decode_str;
use postgres::Config;
use postgres::config::{Host, SslMode};
use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use tokio_postgres_rustls::MakeRustlsConnect;

type Source = Box<dyn Error + Send + Sync>;

/// How a server is reached.
pub(super) struct Parameters {
    pub(super) config: Config,
    /// `None` without encryption.
    pub(super) tls: Option<MakeRustlsConnect>,
}

impl Parameters {
    pub(super) fn of(url: &str) -> Result<Self, Source> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut mode, mut files) = (env::var("PGSSLMODE").ok(), tls::Files::of_environment());
        let mut rest = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = || percent_decode_str(value).decode_utf8_lossy().into_owned();
            match name {
                "sslmode" | "ssl-mode" => mode = Some(value()),
                "sslrootcert" | "ssl-root-cert" | "ssl-ca" => files.root = Some(value().into()),
                "sslcert" | "ssl-cert" => files.certificate = Some(value().into()),
                "sslkey" | "ssl-key" => files.key = Some(value().into()),
                _ => rest.push(pair),
            }
        }
        let mut config = Config::from_str(&format!("{base}?{}", rest.join("&")))?;
        fill_in(&mut config)?;
        let is_socket = matches!(config.get_hosts(), [.., Host::Unix(_)]);
        let (ssl, verify) = match mode.as_deref() {
            None if is_socket => (SslMode::Disable, Verify::Nothing),
            // libpq's `prefer` sends the password to any server that answers without TLS.
            None | Some("verify-full") => (SslMode::Require, Verify::Name),
            Some("verify-ca") => (SslMode::Require, Verify::Issuer),
            Some("require") => (SslMode::Require, Verify::Nothing),
            Some("prefer" | "allow") => (SslMode::Prefer, Verify::Nothing),
            Some("disable") => (SslMode::Disable, Verify::Nothing),
            Some(other) => return Err(format!("there is no sslmode `{other}`").into()),
        };
        config.ssl_mode(ssl);
        let tls = match ssl {
            SslMode::Disable => None,
            _ => Some(MakeRustlsConnect::new(tls::config(verify, &files)?)),
        };
        Ok(Self { config, tls })
    }

    /// The words that identify a database, without the user who connects.
    pub(super) fn identity(&self) -> String {
        let config = &self.config;
        let host = match config.get_hosts() {
            [Host::Unix(path), ..] => path.display().to_string(),
            [Host::Tcp(name), ..] => name.clone(),
            [] => String::new(),
        };
        format!(
            "{host} {} {} {}",
            config.get_ports().first().unwrap_or(&5432),
            config.get_dbname().unwrap_or_default(),
            config.get_options().unwrap_or_default(),
        )
    }
}

/// Fills in the parameters that the URL does not state.
fn fill_in(config: &mut Config) -> Result<(), Source> {
    let variable = |name| env::var(name).ok().filter(|value| !value.is_empty());
    if config.get_hosts().is_empty() {
        config.host(variable("PGHOST").as_deref().unwrap_or("localhost"));
    }
    if config.get_ports().is_empty()
        && let Some(port) = variable("PGPORT")
    {
        config.port(port.parse()?);
    }
    if config.get_user().is_none()
        && let Some(user) = variable("PGUSER").or_else(|| variable("USER"))
    {
        config.user(&user);
    }
    if config.get_dbname().is_none()
        && let Some(name) = variable("PGDATABASE")
    {
        config.dbname(&name);
    }
    if config.get_options().is_none()
        && let Some(options) = variable("PGOPTIONS")
    {
        config.options(&options);
    }
    if config.get_password().is_none()
        && let Some(password) = variable("PGPASSWORD").or_else(|| password_of_file(config))
    {
        config.password(password);
    }
    config
        .application_name("cryptmark")
        .connect_timeout(CONNECTING)
        .tcp_user_timeout(SILENCE)
        .keepalives_idle(SILENCE / 2)
        .keepalives_interval(Duration::from_secs(10));
    Ok(())
}

/// The password in the file that libpq reads: `PGPASSFILE`, or `~/.pgpass`.
fn password_of_file(config: &Config) -> Option<String> {
    let home = || -> Result<PathBuf, HomeDirError> { etcetera::home_dir() };
    let path = match env::var_os("PGPASSFILE") {
        Some(path) => PathBuf::from(path),
        None => home().ok()?.join(".pgpass"),
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        // As libpq: a password that others can read is none.
        if std::fs::metadata(&path).ok()?.mode() & 0o077 != 0 {
            return None;
        }
    }
    let host = match config.get_hosts().first()? {
        Host::Tcp(name) => name.clone(),
        Host::Unix(_) => "localhost".to_owned(),
    };
    let user = config.get_user()?;
    let asked = [
        host.as_str(),
        &config.get_ports().first().unwrap_or(&5432).to_string(),
        config.get_dbname().unwrap_or(user),
        user,
    ];
    password(&std::fs::read_to_string(path).ok()?, asked)
}

/// The password in the first line `host:port:database:user:password` that fits; `*` fits
/// anything, and a backslash quotes what follows it.
fn password(text: &str, asked: [&str; 4]) -> Option<String> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .find_map(|line| {
            let mut fields = vec![String::new()];
            let mut rest = line.chars();
            while let Some(next) = rest.next() {
                match (next, fields.len(), fields.last_mut()) {
                    (':', ..5, _) => fields.push(String::new()),
                    ('\\', _, Some(field)) => field.extend(rest.next()),
                    (_, _, Some(field)) => field.push(next),
                    _ => {}
                }
            }
            let fits = fields
                .iter()
                .zip(asked)
                .all(|(field, asked)| field == "*" || field == asked);
            (fields.len() == 5 && fits).then(|| fields.swap_remove(4))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_verified_unless_the_user_says_otherwise() {
        if env::var_os("PGSSLMODE").is_some() {
            return println!("skipped: PGSSLMODE is set");
        }
        let mode = |url: &str| {
            let parameters = Parameters::of(url).unwrap();
            (parameters.config.get_ssl_mode(), parameters.tls.is_some())
        };
        for url in [
            "postgres://me@db.example.org/runs",
            "postgres://me@localhost/runs",
            "postgres://127.0.0.1:5433/runs?application_name=sslmode",
            "postgres://db/runs?sslmode=verify-full",
            "postgres://db/runs?connect_timeout=1&sslmode=verify-ca",
            "postgres://db/runs?ssl-mode=require",
        ] {
            assert_eq!(mode(url), (SslMode::Require, true), "{url}");
        }
        let none = (SslMode::Disable, false);
        assert_eq!(mode("postgres://db/runs?sslmode=disable"), none);
        // A Unix socket does not lead to another machine, so it needs no TLS.
        assert_eq!(mode("postgres://me@/runs?host=/run/postgresql"), none);
        let wrong = Parameters::of("postgres://db/runs?sslmode=yes").err();
        assert!(wrong.unwrap().to_string().contains("yes"));
        let absent = Parameters::of("postgres://db/runs?sslrootcert=/nowhere%20at/all.pem");
        assert!(
            absent
                .err()
                .unwrap()
                .to_string()
                .contains("/nowhere at/all.pem")
        );
    }

    #[test]
    fn passwords_are_found_as_libpq_finds_them() {
        let file = "# a remark\nother:5432:runs:me:no\ndb:*:runs:me:a\\:b\\\\c:d\n*:*:*:*:any\n";
        let asked = |host, user| password(file, [host, "5432", "runs", user]);
        assert_eq!(asked("db", "me").as_deref(), Some("a:b\\c:d"));
        assert_eq!(asked("db", "you").as_deref(), Some("any"));
        assert_eq!(
            password("db:5432:runs:me", ["db", "5432", "runs", "me"]),
            None
        );
    }
}
