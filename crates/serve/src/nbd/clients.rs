//! [`Clients`]: the connected clients, for how long they may stay, and which of them must make room
//! for others.
//!
//! A client that has chosen an export may stay. One that has not is a guest. It has one deadline
//! for all that it sends until then. When there is no room, the guest that came first must go.

use super::connection::{Allowance, Connection, INPUT_BYTES};
use super::handshake::{Agreed, Named, Outcome, Tls, go_on, negotiate};
use super::secure::{Secured, Security};
use super::transport::{Input, Wire, send_all};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that all threads share for their pieces. Threads that began when there were fewer keep
/// larger pieces. A thousand clients that take nothing hold 150 MB at worst.
const ALL_PIECES: usize = 16 << 20;
/// Bytes of the largest piece of one thread, which leaves room in a core's cache.
const CACHED_PIECE: usize = 256 << 10;
/// The same if several threads wait for a device and receive while others write: a huge page.
const LARGEST_PIECE: usize = 2 << 20;
/// The smallest piece, bytes. A client may have that much in one chunk.
const SMALLEST_PIECE: usize = 64 << 10;
/// Threads of all connections together, over one each.
const ALL_THREADS: usize = 256;
/// Connections at a time.
const MOST_CLIENTS: usize = 1024;
/// Those of one user: the rest is for root, who has to see what is wrong.
const MOST_OF_A_USER: usize = 1000;
/// Those of one address, or of one network of IPv6.
const MOST_OF_A_NETWORK: usize = 256;
/// Above this number of clients, the system's buffers for replies that clients have not taken stay
/// small.
const WIDE_CLIENTS: usize = 16;
/// How long a client may take to hear the last answers when the server ends.
const FAREWELL: Duration = Duration::from_secs(5);
const STACK_BYTES: usize = 512 << 10;

/// The other end of a connection, as the limits count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    /// A user of this machine; `None` where the system does not say which.
    User(Option<u32>),
    /// An IPv4 address, or the 64 bits of an IPv6 address that one subscriber has.
    Network(IpAddr),
}

impl Peer {
    pub(super) fn of(stream: &UnixStream) -> Self {
        #[cfg(target_os = "linux")]
        let user = rustix::net::sockopt::socket_peercred(stream)
            .ok()
            .map(|peer| peer.uid.as_raw());
        #[cfg(not(target_os = "linux"))]
        let user = None;
        Self::User(user)
    }

    pub(super) fn at(address: IpAddr) -> Self {
        Self::Network(match address.to_canonical() {
            IpAddr::V4(address) => address.into(),
            IpAddr::V6(address) => {
                let network = u128::from(address) >> 64 << 64;
                Ipv6Addr::from(network).into()
            }
        })
    }

    const fn most(self) -> usize {
        match self {
            Self::User(_) => MOST_OF_A_USER,
            Self::Network(_) => MOST_OF_A_NETWORK,
        }
    }
}

/// A client that is connected.
struct Open {
    wire: Arc<dyn Wire>,
    peer: Peer,
    /// Since when it is a guest; nothing once it has chosen an export.
    guest_since: Option<Instant>,
}

/// The clients of a run.
pub(super) struct Clients<'a> {
    exports: &'a [Named],
    threads: usize,
    security: Option<&'a dyn Security>,
    count: AtomicUsize,
    /// Those that have chosen an export.
    users: &'a AtomicUsize,
    /// Threads of all clients over one each.
    helpers: AtomicUsize,
    /// The clients by the address of their wire, which is unique while the client's thread lives.
    open: Mutex<HashMap<usize, Open>>,
}

impl Allowance for Clients<'_> {
    fn piece(&self) -> usize {
        let largest = match self.threads {
            1 => CACHED_PIECE,
            _ => LARGEST_PIECE,
        };
        let threads = self.count.load(Ordering::Relaxed) + self.helpers.load(Ordering::Relaxed);
        let share = ALL_PIECES / threads.max(1);
        (share / SMALLEST_PIECE * SMALLEST_PIECE).clamp(SMALLEST_PIECE, largest)
    }

    fn threads(&self) -> usize {
        let clients = self.count.load(Ordering::Relaxed).max(1);
        (ALL_THREADS / clients).clamp(1, self.threads)
    }

    fn begun(&self) {
        self.helpers.fetch_add(1, Ordering::Relaxed);
    }

    fn ended(&self, threads: usize) {
        self.helpers.fetch_sub(threads, Ordering::Relaxed);
    }
}

impl<'a> Clients<'a> {
    pub(super) fn new(
        exports: &'a [Named],
        threads: usize,
        security: Option<&'a dyn Security>,
        users: &'a AtomicUsize,
    ) -> Self {
        Self {
            users,
            exports,
            threads,
            security,
            count: AtomicUsize::new(0),
            helpers: AtomicUsize::new(0),
            open: Mutex::default(),
        }
    }

    /// Gives the client a thread, if there is room or a guest can go for it.
    pub(super) fn greet<'scope>(
        &'scope self,
        scope: &'scope std::thread::Scope<'scope, '_>,
        wire: Box<dyn Wire>,
        peer: Peer,
    ) {
        let wire: Arc<dyn Wire> = wire.into();
        let key = Arc::as_ptr(&wire).addr();
        {
            let mut open = self.lock();
            let of_peer = open.values().filter(|other| other.peer == peer).count();
            let too_many = of_peer >= peer.most();
            if too_many || open.len() >= MOST_CLIENTS {
                match oldest_guest(&open, |other| !too_many || other == peer) {
                    Some((_, guest)) => self.send_away(&mut open, guest),
                    None => return,
                }
            }
            let client = Open {
                wire: Arc::clone(&wire),
                peer,
                guest_since: Some(Instant::now()),
            };
            open.insert(key, client);
            self.count.fetch_add(1, Ordering::Relaxed);
        }
        let thread = std::thread::Builder::new()
            .name("nbd".into())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, move || {
                // A client that leaves early does no harm.
                let _ = self.serve(&*wire);
                self.leave(key);
            });
        if thread.is_err() {
            self.leave(key);
        }
    }

    /// Sends away the clients that have been guests for longer than `patience`. Returns when that
    /// is due again, if there are guests.
    pub(super) fn send_away_after(&self, patience: Duration) -> Option<Instant> {
        let mut open = self.lock();
        while let Some((since, guest)) = oldest_guest(&open, |_| true) {
            let due = since + patience;
            if due > Instant::now() {
                return Some(due);
            }
            self.send_away(&mut open, guest);
        }
        None
    }

    /// Sends away the client that has been a guest for longest.
    pub(super) fn send_oldest_away(&self) {
        let mut open = self.lock();
        if let Some((_, guest)) = oldest_guest(&open, |_| true) {
            self.send_away(&mut open, guest);
        }
    }

    fn send_away(&self, open: &mut HashMap<usize, Open>, key: usize) {
        if let Some(client) = open.remove(&key) {
            client.wire.cut();
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn leave(&self, key: usize) {
        if self.lock().remove(&key).is_some() {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Greets one client, and answers it until it leaves.
    pub(super) fn serve(&self, wire: &dyn Wire) -> io::Result<()> {
        let key = std::ptr::from_ref(wire).addr();
        let mut input = Input::new(INPUT_BYTES);
        if self.count.load(Ordering::Relaxed) <= WIDE_CLIENTS {
            wire.widen();
        }
        let tls = match self.security {
            None => Tls::Off,
            Some(security) if security.is_required() => Tls::Required,
            Some(_) => Tls::Offered,
        };
        match (
            negotiate(wire, &mut input, self.exports, tls)?,
            self.security,
        ) {
            (Outcome::Agreed(agreed), _) => self.transmit(key, wire, input, &agreed),
            (Outcome::Secure(greeted), Some(security)) => {
                // Data that came too early may be from an attacker between client and server.
                if !input.there().is_empty() {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                let session = security.begin(wire)?;
                let below = wire;
                let wire = Secured { below, session };
                if let Outcome::Agreed(agreed) = go_on(&wire, &mut input, self.exports, greeted)? {
                    self.transmit(key, &wire, input, &agreed);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn transmit(&self, key: usize, wire: &dyn Wire, input: Input, agreed: &Agreed) {
        // Sent away meanwhile, it is not there, and its wire carries nothing.
        if let Some(client) = self.lock().get_mut(&key) {
            client.guest_since = None;
        }
        self.users.fetch_add(1, Ordering::Relaxed);
        if send_all(wire, &[&agreed.answer]).is_ok() {
            Connection::new(wire, agreed, input, self).run();
        }
        self.users.fetch_sub(1, Ordering::Relaxed);
    }

    /// Lets every client hear the answers to what it has sent, and no longer
    /// than that.
    pub(super) fn end_all(&self) {
        for client in self.lock().values() {
            client.wire.end();
        }
        let end = Instant::now() + FAREWELL;
        while !self.lock().is_empty() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        for client in self.lock().values() {
            client.wire.cut();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<usize, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Since when the oldest guest among peers that are `meant` is there, and its key.
fn oldest_guest(
    open: &HashMap<usize, Open>,
    meant: impl Fn(Peer) -> bool,
) -> Option<(Instant, usize)> {
    open.iter()
        .filter(|(_, client)| meant(client.peer))
        .filter_map(|(&key, client)| Some((client.guest_since?, key)))
        .min()
}
