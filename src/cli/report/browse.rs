//! `cryptmark report --serve`: the store in a browser on this machine.
//!
//! The store belongs to its owner alone, and other users of this machine can reach loopback as
//! well. So the address has a secret in its path, which the owner reads on the terminal. If a page
//! of another host sends the user's browser here, the headers that browsers add let the server
//! refuse it. Pages link to each other by relative addresses, and reveal the address to no other
//! host. The server sends no files: every page is made of records.

use crate::cli::{Failure, print, stop_on_signal};
use ::report::compare::{self, CompareError, Options, compare};
use ::report::html;
use cipher::Key;
use httparse::Header;
use lab::store::{Store, StoreError};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Connections at a time; more wait their turn.
const CONNECTIONS: usize = 256;
/// Pages in memory at a time, until the last byte is sent.
const PAGES: usize = 16;
/// Bytes of a request's head, at most.
const HEAD: usize = 16 << 10;
/// Lines of a request's head, at most.
const LINES: usize = 100;
/// How long a client may take over its request.
const ASKING: Duration = Duration::from_secs(5);
/// The longest duration of a connection in all. A slow client cannot keep others waiting forever.
const LASTING: Duration = Duration::from_secs(15);
/// How often the end is looked for.
const TICK: Duration = Duration::from_millis(100);
/// Bytes that are sent at a time.
const PART: usize = 64 << 10;

/// Serves until a signal.
///
/// # Errors
/// Exit code 1 if the port cannot be had.
pub fn serve(store: Store, port: u16) -> Result<(), Failure> {
    let stop = stop_on_signal()?;
    let failed = |error: io::Error| {
        Failure::new(
            1,
            format!("cannot serve on port {port}: {error}"),
            "Give another --port, or omit it to use any free port.",
        )
    };
    let secret = secret()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    print(&format!("http://{address}/{secret}/ until Ctrl-C\n"))?;
    let shelf = Shelf {
        store,
        address,
        secret,
        places: Places::of(CONNECTIONS),
        pages: Places::of(PAGES),
    };
    std::thread::spawn(move || welcome(&listener, &shelf));
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(TICK);
    }
    Ok(())
}

/// The data that pages are made of.
struct Shelf {
    store: Store,
    address: SocketAddr,
    /// The first folder of every address.
    secret: String,
    places: Places,
    pages: Places,
}

/// How many may still do something at the same time.
struct Places {
    free: Mutex<usize>,
    freed: Condvar,
}

/// A place that is taken until this is dropped.
struct Place<'a>(&'a Places);

impl Places {
    fn of(free: usize) -> Self {
        Self {
            free: Mutex::new(free),
            freed: Condvar::new(),
        }
    }

    /// Waits for a place, and takes it.
    fn take(&self) -> Place<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let free = self.freed.wait_while(free, |free| *free == 0);
        *free.unwrap_or_else(PoisonError::into_inner) -= 1;
        Place(self)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}

/// Lets clients in, each to a thread of its own.
fn welcome(listener: &TcpListener, shelf: &Shelf) {
    std::thread::scope(|scope| {
        loop {
            let place = shelf.places.take();
            let stream = listener.accept();
            let serve = move || {
                let _place = place;
                // A client that breaks off or takes too long is not an error of the server.
                stream.and_then(|(stream, _)| converse(stream, shelf))
            };
            if std::thread::Builder::new()
                .spawn_scoped(scope, serve)
                .is_err()
            {
                std::thread::sleep(TICK);
            }
        }
    });
}

/// One request and its answer.
fn converse(mut stream: TcpStream, shelf: &Shelf) -> io::Result<()> {
    let start = Instant::now();
    let (mut room, mut length) = ([0; HEAD], 0);
    loop {
        stream.set_read_timeout(Some(left(start, ASKING)?))?;
        let read = stream.read(&mut room[length..])?;
        if read == 0 {
            return Ok(());
        }
        length += read;
        let mut lines = [httparse::EMPTY_HEADER; LINES];
        let mut request = httparse::Request::new(&mut lines);
        let refused = match request.parse(&room[..length]) {
            Ok(httparse::Status::Partial) if length < HEAD => continue,
            Ok(httparse::Status::Complete(_)) => return answer(stream, start, &request, shelf),
            Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => refusal(
                TOO_LARGE,
                "The request is too long",
                "Enter the address again.",
            ),
            Err(_) => refusal(MALFORMED, "This is not a request", "Use a browser."),
        };
        return refused.send(stream, start, true);
    }
}

/// The rest of the time `limit` that began at `start`. An error of the kind `TimedOut` if none is
/// left.
fn left(start: Instant, limit: Duration) -> io::Result<Duration> {
    let left = limit.checked_sub(start.elapsed());
    left.filter(|left| !left.is_zero())
        .ok_or_else(|| io::ErrorKind::TimedOut.into())
}

const OK: &str = "200 OK";
const MALFORMED: &str = "400 Bad Request";
const FORBIDDEN: &str = "403 Forbidden";
const NOT_FOUND: &str = "404 Not Found";
const NOT_ALLOWED: &str = "405 Method Not Allowed";
const TOO_LARGE: &str = "431 Request Header Fields Too Large";
const FAILED: &str = "500 Internal Server Error";

/// The answer to a client.
struct Answer {
    status: &'static str,
    page: String,
}

impl Answer {
    /// Sends it, without its page if only the head is wanted.
    fn send(&self, mut stream: TcpStream, start: Instant, with_page: bool) -> io::Result<()> {
        let allow = match self.status {
            NOT_ALLOWED => "allow: GET, HEAD\r\n",
            _ => "",
        };
        // The page itself says what it may load; who may show it, only the head can.
        let head = format!(
            "HTTP/1.1 {}\r\n{allow}content-type: text/html; charset=utf-8\r\n\
             content-length: {}\r\n\
             cache-control: no-store\r\n\
             x-content-type-options: nosniff\r\n\
             referrer-policy: no-referrer\r\n\
             content-security-policy: frame-ancestors 'none'\r\n\
             cross-origin-resource-policy: same-origin\r\n\
             connection: close\r\n\r\n",
            self.status,
            self.page.len(),
        );
        let page = if with_page { self.page.as_bytes() } else { &[] };
        for mut part in [head.as_bytes(), page] {
            while !part.is_empty() {
                stream.set_write_timeout(Some(left(start, LASTING)?))?;
                match stream.write(&part[..part.len().min(PART)])? {
                    0 => return Err(io::ErrorKind::WriteZero.into()),
                    written => part = &part[written..],
                }
            }
        }
        Ok(())
    }
}

fn answer(
    stream: TcpStream,
    start: Instant,
    request: &httparse::Request<'_, '_>,
    shelf: &Shelf,
) -> io::Result<()> {
    let (method, target) = (
        request.method.unwrap_or_default(),
        request.path.unwrap_or_default(),
    );
    // A proxy is asked by a whole address.
    let (authority, target) = match target.strip_prefix("http://") {
        Some(rest) => {
            let (authority, _) = rest.split_once('/').unwrap_or((rest, ""));
            (Some(authority), &rest[authority.len()..])
        }
        None => (None, target),
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let refused = if !is_for_us(authority, request.headers, shelf.address.port()) {
        let what = "This address is for a browser on this machine";
        let remedy = "Enter the address that cryptmark has printed.";
        Some(refusal(FORBIDDEN, what, remedy))
    } else if path_behind(&shelf.secret, path).is_none() {
        let what = "This address lacks the secret that cryptmark has printed";
        Some(refusal(FORBIDDEN, what, "Enter the whole address."))
    } else if !matches!(method, "GET" | "HEAD") {
        let what = "Pages can be read here, and nothing else";
        Some(refusal(NOT_ALLOWED, what, "Use GET or HEAD."))
    } else {
        None
    };
    let with_page = method != "HEAD";
    if let Some(refused) = refused {
        return refused.send(stream, start, with_page);
    }
    let _place = shelf.pages.take();
    let path = path_behind(&shelf.secret, path).unwrap_or_default();
    let (status, page) = asked(path, query, &shelf.store);
    Answer { status, page }.send(stream, start, with_page)
}

/// Whether a browser was sent here by its user, and not by another host's page:
/// under our own name only, and from no other origin.
fn is_for_us(authority: Option<&str>, headers: &[Header<'_>], port: u16) -> bool {
    let names = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    let ours = |name: &str| {
        // Browsers omit the usual port.
        let name = match (port, name.contains(':')) {
            (80, false) => format!("{name}:80"),
            _ => name.to_owned(),
        };
        names.iter().any(|own| own.eq_ignore_ascii_case(&name))
    };
    let named = |name: &'static str| {
        let lines = headers.iter();
        let lines = lines.filter(move |line| line.name.eq_ignore_ascii_case(name));
        // A value that is not text equals no expected value.
        lines.map(|line| std::str::from_utf8(line.value).unwrap_or("?"))
    };
    let mut hosts = named("host");
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => ours(host),
        _ => false,
    };
    let authority = authority.is_none_or(ours);
    let origin = named("origin").all(|origin| origin.strip_prefix("http://").is_some_and(ours));
    let site = named("sec-fetch-site").all(|site| matches!(site, "none" | "same-origin"));
    host && authority && origin && site
}

/// A random secret that cannot be guessed: 128 bits as hexadecimal digits.
fn secret() -> Result<String, Failure> {
    let key = Key::random(16).map_err(|error| {
        let remedy = "See the kernel log (dmesg) for what is wrong with its random numbers.";
        Failure::new(1, error.to_string(), remedy)
    })?;
    let digits = key.as_bytes().iter().map(|byte| format!("{byte:02x}"));
    Ok(digits.collect())
}

/// The part of a path behind `/SECRET/`. The time that this takes does not reveal how much of the
/// secret is right.
fn path_behind<'a>(secret: &str, path: &'a str) -> Option<&'a str> {
    let (given, rest) = path.strip_prefix('/')?.split_once('/')?;
    let pairs = given.bytes().zip(secret.bytes());
    let differences = pairs.fold(0, |found, (a, b)| found | (a ^ b));
    (given.len() == secret.len() && differences == 0).then_some(rest)
}

/// The page at an address behind the secret, with its status.
fn asked(path: &str, query: &str, store: &Store) -> (&'static str, String) {
    let given: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
    let value = |name: &str| {
        let found = given.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value.as_ref())
    };
    let made = match path {
        "" => store.list().map(|runs| html::index(&runs, value("q"))),
        "run" => store.load(value("id")).map(|run| html::stored(&run)),
        "compare" => compared(store, value("a"), value("b"), value("across") == "yes"),
        _ => {
            let notice = html::notice("There is no such page", "Go back to the list.", Some("./"));
            return (NOT_FOUND, notice);
        }
    };
    match made {
        Ok(page) => (OK, page),
        Err(error @ (StoreError::NoSuchRun { .. } | StoreError::Ambiguous { .. })) => {
            let notice = html::notice(&error.to_string(), "Choose it from the list.", Some("./"));
            (NOT_FOUND, notice)
        }
        Err(error) => {
            // Its words may name files, which are for who started the server.
            let _ = Failure::from(error).print();
            let what = "The store cannot be read";
            let remedy = "The terminal where cryptmark runs says why.";
            let notice = html::notice(what, remedy, None);
            (FAILED, notice)
        }
    }
}

fn compared(store: &Store, a: &str, b: &str, across: bool) -> Result<String, StoreError> {
    let (first, second) = (store.load(a)?, store.load(b)?);
    let options = Options {
        across_machines: across,
        ..Options::default()
    };
    Ok(match compare(&first, &second, &options) {
        Ok(comparison) => compare::html(&comparison),
        Err(error @ CompareError::Environment { .. }) => {
            let query = form_urlencoded::Serializer::new(String::new())
                .extend_pairs([("a", a), ("b", b), ("across", "yes")])
                .finish();
            let address = format!("compare?{query}");
            html::notice(
                &error.to_string(),
                "Compare them nevertheless.",
                Some(&address),
            )
        }
        Err(error) => html::notice(&error.to_string(), error.remedy(), None),
    })
}

fn refusal(status: &'static str, what: &str, remedy: &str) -> Answer {
    Answer {
        status,
        page: html::notice(what, remedy, None),
    }
}
