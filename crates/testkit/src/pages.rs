//! Servers of web pages on this machine, asked over plain connections.

use crate::{Running, wait_until};
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// How long a server may keep a client waiting.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server in the background, which has printed `http://ADDRESS/SECRET/` and a few words.
pub struct Pages {
    /// The server.
    pub running: Running,
    /// `127.0.0.1:PORT`
    pub address: String,
    /// The first folder of every page's address.
    pub secret: String,
    /// Its standard output and its errors, in files that never fill up as pipes do.
    said: TempDir,
}

impl Pages {
    /// Starts a server.
    #[track_caller]
    pub fn start(mut command: Command) -> Self {
        let said = tempfile::tempdir().unwrap();
        let [out, errors] = ["out", "errors"].map(|name| said.path().join(name));
        command.stdout(File::create(&out).unwrap());
        command.stderr(File::create(&errors).unwrap());
        let mut running = Running::start(&mut command);
        let line = || {
            let text = fs::read_to_string(&out).unwrap();
            Some(text.split_once('\n')?.0.to_owned())
        };
        wait_until("the server does not print its address", || {
            let ended = running.0.try_wait().unwrap();
            let errors = || fs::read_to_string(&errors).unwrap();
            assert!(ended.is_none(), "{command:?}\n{}", errors());
            line().is_some()
        });
        let line = line().unwrap();
        let mut parts = line.strip_prefix("http://").expect(&line).split('/');
        let mut part = || parts.next().expect(&line).to_owned();
        Self {
            running,
            address: part(),
            secret: part(),
            said,
        }
    }

    /// The whole address of a page, for a browser.
    pub fn url(&self, page: &str) -> String {
        format!("http://{}/{}/{page}", self.address, self.secret)
    }

    /// What it has printed, errors included.
    pub fn said(&self) -> String {
        let files = ["out", "errors"].map(|name| self.said.path().join(name));
        files.map(|file| fs::read_to_string(file).unwrap()).concat()
    }

    /// A connection.
    #[track_caller]
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Everything that comes back for some bytes.
    #[track_caller]
    pub fn answer(&self, request: &[u8]) -> String {
        let mut stream = self.connect();
        // It may have heard enough before all is said.
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
            _ => String::from_utf8(answer).unwrap(),
        }
    }

    /// The status and all that follows it, for a request with these lines.
    #[track_caller]
    pub fn asked(&self, first: &str, more: &str) -> (u16, String) {
        self.sent(first, more, "")
    }

    /// The same for a request with a body. `more` says how long it is.
    #[track_caller]
    pub fn sent(&self, first: &str, more: &str, body: &str) -> (u16, String) {
        let first = self.behind_secret(first);
        let host = &self.address;
        let answer =
            self.answer(format!("{first} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n{body}").as_bytes());
        (status(&answer), answer)
    }

    /// `GET /run` as `GET /SECRET/run`.
    pub fn behind_secret(&self, first: &str) -> String {
        first.replacen(" /", &format!(" /{}/", self.secret), 1)
    }

    /// The answer to a request that must succeed.
    #[track_caller]
    pub fn get(&self, path: &str) -> String {
        let (status, answer) = self.asked(&format!("GET {path}"), "");
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// Asks it to end; its exit code and its errors.
    #[track_caller]
    pub fn end(mut self) -> (Option<i32>, String) {
        self.running.signal("-INT");
        let ended = self.running.0.wait().unwrap();
        let errors = fs::read_to_string(self.said.path().join("errors"));
        (ended.code(), errors.unwrap())
    }
}

/// The status of an answer; 0 if nothing came back.
pub fn status(answer: &str) -> u16 {
    let code = answer.split(' ').nth(1);
    code.and_then(|code| code.parse().ok()).unwrap_or(0)
}
