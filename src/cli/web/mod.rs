//! Pages for a browser on this machine: `cryptmark ui` and `cryptmark report --serve`.
//!
//! The pages belong to their owner alone, and other users of this machine can reach loopback as
//! well. So the address has a secret in its path, which the owner reads on the terminal. If a page
//! of another host sends the user's browser here, the headers that browsers add let the server
//! refuse it. Pages link to each other by relative addresses, and reveal the address to no other
//! host.

mod answer;
mod request;
pub mod store;

pub use answer::Answer;
pub use request::Request;

use crate::cli::{Failure, print, stop_on_signal};
use cipher::Key;
use request::{Asked, Head};
use std::collections::HashMap;
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Connections at a time; more wait their turn.
const CONNECTIONS: usize = 256;
/// Those of one other user of this machine: who started a browser for root, or who keeps others out.
/// More are closed at once.
const OF_ANOTHER: usize = 16;
/// Pages in memory at a time, until the last byte is sent.
const PAGES: usize = 16;
/// Browsers that follow events at a time. More are refused, and ask again by themselves.
const FOLLOWERS: usize = 16;
/// Bytes of a request, at most: its head and its form.
const REQUEST: usize = 32 << 10;
/// How long a client may take over its request.
const ASKING: Duration = Duration::from_secs(5);
/// How long a client may take to receive an answer. A slow client cannot keep others waiting
/// forever.
const LASTING: Duration = Duration::from_secs(15);
/// How often the end is looked for.
const TICK: Duration = Duration::from_millis(100);

/// The pages of a server.
pub trait Site: Send + Sync + 'static {
    /// Answers a request that the owner's browser sends.
    fn answer(&self, request: &Request) -> Answer;

    /// Whether requests may change something (POST).
    fn takes_forms(&self) -> bool;
}

/// Serves until a signal, and prints the address when clients can connect.
///
/// # Errors
/// Exit code 1 if the port cannot be had.
pub fn serve(site: impl Site, port: u16) -> Result<(), Failure> {
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
    let door = Door {
        site,
        address,
        secret,
        places: Places::of(CONNECTIONS),
        pages: Places::of(PAGES),
        followers: Places::of(FOLLOWERS),
    };
    std::thread::spawn(move || door.welcome(&listener));
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(TICK);
    }
    Ok(())
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

/// A site, and who may come in.
struct Door<S> {
    site: S,
    address: SocketAddr,
    /// The first folder of every address.
    secret: String,
    places: Places,
    pages: Places,
    followers: Places,
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

    /// Takes a place if one is free.
    fn try_take(&self) -> Option<Place<'_>> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        *free = free.checked_sub(1)?;
        Some(Place(self))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}

/// The connections that other users of this machine have.
#[derive(Default)]
struct Others(Mutex<HashMap<u32, usize>>);

/// A connection that counts until this is dropped, if its user is another one.
struct Guest<'a>(&'a Others, Option<u32>);

impl Others {
    /// Counts a connection; nothing if its user has too many.
    fn admit(&self, stream: &TcpStream, peer: SocketAddr) -> Option<Guest<'_>> {
        let Some(user) = another(stream, peer) else {
            return Some(Guest(self, None));
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = all.entry(user).or_default();
        if *own == OF_ANOTHER {
            return None;
        }
        *own += 1;
        Some(Guest(self, Some(user)))
    }
}

impl Drop for Guest<'_> {
    fn drop(&mut self) {
        let mut all = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = self.1.and_then(|user| all.get_mut(&user)) {
            *own -= 1;
        }
    }
}

/// The user at the other end, if that is another one, or one who is not known: the kernel shows a
/// closed socket as nobody's.
#[cfg(target_os = "linux")]
fn another(stream: &TcpStream, peer: SocketAddr) -> Option<u32> {
    const UNKNOWN: u32 = u32::MAX;
    let here = stream.local_addr().ok()?;
    let user = serve::nbd::owner::of(peer, here).unwrap_or(UNKNOWN);
    (user != rustix::process::geteuid().as_raw()).then_some(user)
}

#[cfg(not(target_os = "linux"))]
fn another(_: &TcpStream, _: SocketAddr) -> Option<u32> {
    None
}

impl<S: Site> Door<S> {
    /// Lets clients in, each to a thread of its own.
    fn welcome(&self, listener: &TcpListener) {
        let others = Others::default();
        let others = &others;
        std::thread::scope(|scope| {
            loop {
                let place = self.places.take();
                let Ok((stream, peer)) = listener.accept() else {
                    std::thread::sleep(TICK);
                    continue;
                };
                let Some(guest) = others.admit(&stream, peer) else {
                    continue;
                };
                let serve = move || {
                    let _place = (place, guest);
                    // A client that breaks off or takes too long is not an error of the server.
                    self.converse(stream)
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
    fn converse(&self, mut stream: TcpStream) -> io::Result<()> {
        let start = Instant::now();
        // A form may hold a passphrase.
        let mut room = Zeroizing::new(vec![0; REQUEST]);
        let mut length = 0;
        loop {
            stream.set_read_timeout(Some(left(start, ASKING)?))?;
            let read = stream.read(&mut room[length..])?;
            if read == 0 {
                return Ok(());
            }
            length += read;
            let (answer, with_page) = match Head::parse(&room[..length]) {
                Asked::Partly if length < REQUEST => continue,
                Asked::Whole(head) => (self.judge(&head), head.method != "HEAD"),
                Asked::Partly | Asked::TooLong => (Answer::too_long(), true),
                Asked::Malformed => (Answer::malformed(), true),
            };
            if !answer.goes_on() {
                return answer.send(&mut stream, with_page);
            }
            return match self.followers.try_take() {
                Some(_follower) => answer.send(&mut stream, with_page),
                None => Answer::busy().send(&mut stream, with_page),
            };
        }
    }

    /// Answers what is the owner's, and refuses the rest.
    fn judge(&self, head: &Head<'_>) -> Answer {
        if !head.is_for(self.address.port()) {
            let what = "This address is for a browser on this machine";
            return Answer::forbidden(what, "Enter the address that cryptmark has printed.");
        }
        let Some(path) = path_behind(&self.secret, head.path) else {
            let what = "This address lacks the secret that cryptmark has printed";
            return Answer::forbidden(what, "Enter the whole address.");
        };
        match head.method {
            "GET" | "HEAD" => {}
            "POST" if self.site.takes_forms() => {
                // Browsers name the page that sends a form. Who does not is no browser.
                if !head.names_its_origin() {
                    let what = "This form was not sent by a page of this server";
                    return Answer::forbidden(what, "Send it from the page in your browser.");
                }
            }
            _ => return Answer::not_allowed(self.site.takes_forms()),
        }
        let _place = self.pages.take();
        self.site.answer(&Request::new(head, path))
    }
}

/// The part of a path behind `/SECRET/`. The time that this takes does not reveal how much of the
/// secret is right.
fn path_behind<'a>(secret: &str, path: &'a str) -> Option<&'a str> {
    let (given, rest) = path.strip_prefix('/')?.split_once('/')?;
    let pairs = given.bytes().zip(secret.bytes());
    let differences = pairs.fold(0, |found, (a, b)| found | (a ^ b));
    (given.len() == secret.len() && differences == 0).then_some(rest)
}

/// The rest of the time `limit` that began at `start`. An error of the kind `TimedOut` if none is
/// left.
fn left(start: Instant, limit: Duration) -> io::Result<Duration> {
    let left = limit.checked_sub(start.elapsed());
    left.filter(|left| !left.is_zero())
        .ok_or_else(|| io::ErrorKind::TimedOut.into())
}
