//! [`Server`]: listens, greets, and gives every client a thread.

use super::clients::{Clients, Peer};
use super::handshake::Named;
use super::owner;
use super::secure::Security;
use super::transport::Wire;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A client that has not chosen an export by then is sent away, however much it says.
const PATIENCE: Duration = Duration::from_secs(30);

/// A TCP client that is silent for this long is asked whether it is still there, this often and
/// with this time between two questions. Then it counts as gone, after an hour in all. Its machine
/// may have been switched off, or the network cut, without any message. The client may also come
/// back, after a short sleep or a pulled cable, with data that exists only there.
const SILENCE: Duration = Duration::from_secs(10 * 60);
const QUESTIONS: u32 = 5;
const BETWEEN_QUESTIONS: Duration = SILENCE;

/// The pause of a server that could not accept a client because the system lacked descriptors or
/// memory.
const PAUSE: Duration = Duration::from_millis(50);

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A socket in the file system, for its owner only.
    Unix(PathBuf),
    /// An address of this machine.
    Tcp(SocketAddr),
}

/// Why a server could not begin.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another server listens there.
    #[error("{} is in use by another server", path.display())]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// Something else is there.
    #[error("{} already exists and isn't a socket", path.display())]
    NoSocket {
        /// The path that exists.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot listen on {place}")]
    Listen {
        /// Where.
        place: Place,
        /// Why not.
        source: io::Error,
    },
    /// The text names no place.
    #[error("`{}` is neither the path of a socket nor HOST:PORT", text.display())]
    Place {
        /// The text.
        text: std::ffi::OsString,
    },
    /// The listening socket failed.
    #[error("the server cannot continue")]
    Failed(#[source] io::Error),
}

impl ServeError {
    /// The remedy, as one sentence.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::InUse { .. } => "Choose another socket, or stop the other server.",
            Self::NoSocket { .. } => "Choose a path that does not exist yet.",
            Self::Listen { .. } => "Check the path or the address, and that you may use it.",
            Self::Place { .. } => {
                "Give a path such as ./disk.sock, or an address such as localhost:10809."
            }
            Self::Failed(_) => {
                "Start the server again. If it fails again, look into the kernel log (dmesg)."
            }
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "{}", path.display()),
            Self::Tcp(address) => write!(f, "{address}"),
        }
    }
}

impl Place {
    /// A path, if it has a slash or no colon; else HOST:PORT, where no host is
    /// the loopback address.
    ///
    /// # Errors
    /// [`ServeError::Place`] where that names no address, and of a number alone: it may be
    /// meant as a port.
    pub fn parse(text: &std::ffi::OsStr) -> Result<Self, ServeError> {
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if text.to_str().is_some_and(digits) {
            return Err(ServeError::Place { text: text.into() });
        }
        let named = text
            .to_str()
            .filter(|text| text.contains(':') && !text.contains('/'));
        let Some(named) = named else {
            return Ok(Self::Unix(text.into()));
        };
        let full = match named.strip_prefix(':') {
            Some(port) => format!("127.0.0.1:{port}"),
            None => named.to_owned(),
        };
        let mut found = full.to_socket_addrs().ok().into_iter().flatten();
        found
            .next()
            .map(Self::Tcp)
            .ok_or_else(|| ServeError::Place { text: text.into() })
    }
}

impl Place {
    /// Whether clients of other users are served here, of this machine or of others. At an address
    /// that only this machine reaches, the system says whose clients they are.
    pub fn is_exposed(&self) -> bool {
        match self {
            Self::Unix(_) => false,
            Self::Tcp(address) => !address.ip().to_canonical().is_loopback() || !owner::are_told(),
        }
    }

    /// The same place, wherever the program goes.
    ///
    /// # Errors
    /// [`ServeError::Listen`] where the working directory is gone.
    pub fn absolute(self) -> Result<Self, ServeError> {
        match self {
            Self::Unix(path) => match std::path::absolute(&path) {
                Ok(path) => Ok(Self::Unix(path)),
                Err(source) => Err(ServeError::Listen {
                    place: Self::Unix(path),
                    source,
                }),
            },
            Self::Tcp(_) => Ok(self),
        }
    }

    /// Removes the socket that a killed server has left here.
    pub fn tidy(&self) {
        if let Self::Unix(path) = self
            && fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
            && UnixStream::connect(path).is_err()
        {
            // Another program may be faster.
            let _ = fs::remove_file(path);
        }
    }
}

enum Socket {
    Unix(UnixListener),
    Tcp(TcpListener),
}

/// A listening server; dropped, it takes its socket away.
pub struct Server {
    socket: Socket,
    place: Place,
    exports: Vec<Named>,
    threads: usize,
    patience: Duration,
    security: Option<Box<dyn Security>>,
    /// Whether clients of other users are served without TLS.
    exposed: bool,
    /// Device and inode of the socket in the file system.
    made: Option<(u64, u64)>,
    users: Arc<AtomicUsize>,
    /// Written to, it ends the server.
    end: Arc<UnixStream>,
    ended: UnixStream,
}

/// Ends a server from another thread.
#[derive(Clone, Debug)]
pub struct End {
    socket: Arc<UnixStream>,
    users: Arc<AtomicUsize>,
}

impl End {
    /// Lets the server finish what it has received, and end.
    pub fn now(&self) {
        // Only a server that has ended does not hear it.
        let _ = (&*self.socket).write_all(&[1]);
    }

    /// Clients that are connected and have chosen an export.
    pub fn users(&self) -> usize {
        self.users.load(Ordering::Relaxed)
    }
}

impl Server {
    /// Listens at `place`; the first of `exports` is the default one. A client
    /// may have `threads` requests worked on at a time. Without TLS, a place that is not
    /// [exposed](Place::is_exposed) serves only clients of this user and of root.
    ///
    /// # Errors
    /// [`ServeError`], but for `Failed`.
    pub fn listen(place: Place, exports: Vec<Named>, threads: usize) -> Result<Self, ServeError> {
        let exposed = place.is_exposed();
        let socket = match &place {
            Place::Unix(path) => Socket::Unix(listen_at(path, &place)?),
            Place::Tcp(address) => {
                Socket::Tcp(
                    TcpListener::bind(address).map_err(|source| ServeError::Listen {
                        place: place.clone(),
                        source,
                    })?,
                )
            }
        };
        let made = match &place {
            Place::Unix(path) => inode(path),
            Place::Tcp(_) => None,
        };
        let (end, ended) = UnixStream::pair().map_err(ServeError::Failed)?;
        // Several clients may ask at once, and one leave before its turn.
        match &socket {
            Socket::Unix(socket) => socket.set_nonblocking(true),
            Socket::Tcp(socket) => socket.set_nonblocking(true),
        }
        .map_err(ServeError::Failed)?;
        Ok(Self {
            socket,
            made,
            place,
            exports,
            threads: threads.max(1),
            patience: PATIENCE,
            security: None,
            exposed,
            users: Arc::default(),
            end: Arc::new(end),
            ended,
        })
    }

    /// Lets clients begin TLS, or has them do it.
    #[cfg(feature = "tls")]
    pub fn with_tls(self, tls: super::ServerTls) -> Self {
        self.secured_by(tls)
    }

    #[cfg(any(test, feature = "tls"))]
    pub(super) fn secured_by(mut self, security: impl Security + 'static) -> Self {
        self.security = Some(Box::new(security));
        self
    }

    /// Sends clients away that have not chosen an export within `patience`.
    #[cfg(test)]
    pub(super) fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Where it listens; the port that the system chose, if it was asked to.
    pub fn place(&self) -> Place {
        match &self.socket {
            Socket::Tcp(socket) => socket.local_addr().map_or(self.place.clone(), Place::Tcp),
            Socket::Unix(_) => self.place.clone(),
        }
    }

    /// A handle that ends the server.
    pub fn end(&self) -> End {
        End {
            socket: Arc::clone(&self.end),
            users: Arc::clone(&self.users),
        }
    }

    /// Serves until it is [ended](End::now). Then what was received is answered,
    /// and the devices are flushed.
    ///
    /// # Errors
    /// [`ServeError::Failed`].
    pub fn run(&self) -> Result<(), ServeError> {
        let security = self.security.as_deref();
        let clients = Clients::new(&self.exports, self.threads, security, &self.users);
        let outcome = std::thread::scope(|scope| {
            let greet = |wire, peer| clients.greet(scope, wire, peer);
            let outcome = self.accept_all(&clients, greet);
            clients.end_all();
            outcome
        });
        for named in &self.exports {
            // The clients are gone; the export remembers a failure, and its listener
            // hears of it.
            let _ = named.export.flush();
        }
        outcome.map_err(ServeError::Failed)
    }

    fn accept_all(
        &self,
        clients: &Clients<'_>,
        greet: impl Fn(Box<dyn Wire>, Peer),
    ) -> io::Result<()> {
        loop {
            let next = clients.send_away_after(self.patience);
            let socket = match &self.socket {
                Socket::Unix(socket) => socket.as_fd(),
                Socket::Tcp(socket) => socket.as_fd(),
            };
            if wait_for(socket, self.ended.as_fd(), next)? {
                // One byte a call: who ends the server ends one run of it.
                (&self.ended).read_exact(&mut [0])?;
                return Ok(());
            }
            match self.accept() {
                Ok((wire, peer)) => greet(wire, peer),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionAborted => {}
                    io::ErrorKind::Interrupted => {}
                    _ if is_of_the_socket(&error) => return Err(error),
                    // Out of descriptors or memory, for which some client will leave; or an
                    // error of the network or of the one connection.
                    _ => {
                        if is_of_want(&error) {
                            clients.send_oldest_away();
                        }
                        std::thread::sleep(PAUSE);
                    }
                },
            }
        }
    }

    fn accept(&self) -> io::Result<(Box<dyn Wire>, Peer)> {
        match &self.socket {
            Socket::Unix(socket) => {
                let (stream, _) = socket.accept()?;
                stream.set_nonblocking(false).map_err(is_gone)?;
                let peer = Peer::of(&stream);
                Ok((Box::new(stream), peer))
            }
            Socket::Tcp(socket) => {
                let (stream, address) = socket.accept()?;
                if !self.exposed && self.security.is_none() {
                    check_owner(&stream, address)?;
                }
                prepare(&stream).map_err(is_gone)?;
                Ok((Box::new(stream), Peer::at(address.ip())))
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Place::Unix(path) = &self.place
            && self.made.is_some()
            && self.made == inode(path)
        {
            // Another program may tidy up at the same time.
            let _ = fs::remove_file(path);
        }
    }
}

/// Whether it is the listening socket that has failed, and not what came to it.
fn is_of_the_socket(error: &io::Error) -> bool {
    [Errno::BADF, Errno::FAULT, Errno::INVAL, Errno::NOTSOCK]
        .iter()
        .any(|fatal| error.raw_os_error() == Some(fatal.raw_os_error()))
}

/// Whether the system has too few descriptors or too little memory.
fn is_of_want(error: &io::Error) -> bool {
    [Errno::NFILE, Errno::MFILE, Errno::NOBUFS, Errno::NOMEM]
        .iter()
        .any(|want| error.raw_os_error() == Some(want.raw_os_error()))
}

/// The error for a client that cannot be served. It does not count as an error of the listening
/// socket.
fn is_gone(_: io::Error) -> io::Error {
    io::ErrorKind::ConnectionAborted.into()
}

/// Refuses a client of another user, unless that is root. The client's address does not matter: a
/// server at a loopback address is reached from this machine alone.
fn check_owner(client: &TcpStream, address: SocketAddr) -> io::Result<()> {
    let here = client.local_addr().map_err(is_gone)?;
    let own = rustix::process::geteuid().as_raw();
    match owner::of(address, here) {
        Some(user) if user == own || user == 0 => Ok(()),
        _ => Err(io::ErrorKind::ConnectionAborted.into()),
    }
}

/// Sets up a client's connection so that the system notices a client that disappears silently.
fn prepare(client: &TcpStream) -> io::Result<()> {
    client.set_nonblocking(false)?;
    client.set_nodelay(true)?;
    // Without it a client that is gone holds its place for longer: no reason to send one away.
    let _ = sockopt::set_socket_keepalive(client, true)
        .and_then(|()| sockopt::set_tcp_keepidle(client, SILENCE))
        .and_then(|()| sockopt::set_tcp_keepintvl(client, BETWEEN_QUESTIONS))
        .and_then(|()| sockopt::set_tcp_keepcnt(client, QUESTIONS));
    Ok(())
}

/// The device and inode numbers, which tell a file from a later one of the same name.
fn inode(path: &Path) -> Option<(u64, u64)> {
    let metadata = fs::symlink_metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// Waits for a client, the end, or until the time is up; true at the end.
fn wait_for(
    socket: BorrowedFd<'_>,
    ended: BorrowedFd<'_>,
    until: Option<Instant>,
) -> io::Result<bool> {
    let mut events = [
        PollFd::from_borrowed_fd(socket, PollFlags::IN),
        PollFd::from_borrowed_fd(ended, PollFlags::IN),
    ];
    let time = until.map(|until| {
        let left = until.saturating_duration_since(Instant::now());
        Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        }
    });
    match poll(&mut events, time.as_ref()) {
        Err(Errno::INTR) => Ok(false),
        // There may be memory again.
        Err(Errno::NOMEM) => {
            std::thread::sleep(PAUSE);
            Ok(false)
        }
        Err(error) => Err(error.into()),
        Ok(_) => Ok(!events[1].revents().is_empty()),
    }
}

/// A socket that only its owner may use, from its first moment on.
fn listen_at(path: &Path, place: &Place) -> Result<UnixListener, ServeError> {
    let refused = |source: io::Error| ServeError::Listen {
        place: place.clone(),
        source,
    };
    match fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(ServeError::NoSocket { path: path.into() });
        }
        Ok(_) if UnixStream::connect(path).is_ok() => {
            return Err(ServeError::InUse { path: path.into() });
        }
        // Its server was killed.
        Ok(_) => fs::remove_file(path).map_err(refused)?,
        Err(_) => {}
    }
    let bind = || -> io::Result<UnixListener> {
        let kind = SocketType::STREAM;
        let flags = SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None)?;
        rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
        // Clients can connect only once it listens.
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        rustix::net::listen(&socket, 1024)?;
        Ok(socket.into())
    };
    bind().map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_over_tcp_are_asked_whether_they_are_there() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let _client = TcpStream::connect(server.local_addr().unwrap()).unwrap();
        let (stream, _) = server.accept().unwrap();
        prepare(&stream).unwrap();
        assert!(sockopt::socket_keepalive(&stream).unwrap());
        let until_gone = sockopt::tcp_keepidle(&stream).unwrap()
            + sockopt::tcp_keepintvl(&stream).unwrap() * sockopt::tcp_keepcnt(&stream).unwrap();
        assert_eq!(until_gone, Duration::from_secs(3600));
    }

    #[test]
    fn a_client_has_half_a_minute() {
        let place = Place::parse(":0".as_ref()).unwrap();
        let server = Server::listen(place, Vec::new(), 1).unwrap();
        assert_eq!(server.patience, Duration::from_secs(30));
    }

    #[test]
    fn only_the_listening_socket_ends_a_server() {
        for errno in [Errno::BADF, Errno::INVAL, Errno::NOTSOCK] {
            assert!(is_of_the_socket(&errno.into()));
        }
        // As accept(2) has them.
        for errno in [
            Errno::NOBUFS,
            Errno::NOMEM,
            Errno::PROTO,
            Errno::NETDOWN,
            Errno::HOSTUNREACH,
            Errno::PERM,
        ] {
            assert!(!is_of_the_socket(&errno.into()));
        }
        assert!(!is_of_the_socket(&is_gone(Errno::INVAL.into())));
    }
}
