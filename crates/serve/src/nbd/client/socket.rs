//! [`Stream`]: a connection to a server, secure or not, on which no wait lasts forever.

use super::road::Address;
use crate::nbd::secure::Session;
use crate::nbd::transport::Wire;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, RecvFlags, SocketAddrUnix, SocketFlags, SocketType};
use std::io::{self, IoSlice};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a server may take to go on before its client sleeps.
const MOMENT: Duration = Duration::from_micros(50);

/// The pause before trying again whether a server accepts one more client.
const LOOK: Duration = Duration::from_millis(10);

/// A socket that never blocks by itself. A caller waits in one place only, until a time that was
/// set before.
pub struct Socket {
    way: Way,
    until: Mutex<Instant>,
}

enum Way {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    /// Connects before `until`.
    pub fn open(address: &Address, until: Instant) -> io::Result<Self> {
        let way = match address {
            Address::Unix(path) => loop {
                let kind = SocketType::STREAM;
                let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
                let socket = rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None)?;
                match rustix::net::connect(&socket, &SocketAddrUnix::new(path)?) {
                    Ok(()) => break Way::Unix(socket.into()),
                    // As many clients wait as the server lets wait.
                    Err(rustix::io::Errno::AGAIN) if Instant::now() < until => {
                        std::thread::sleep(LOOK);
                    }
                    Err(error) => return Err(error.into()),
                }
            },
            Address::Tcp { host, port } => {
                let mut failed = io::ErrorKind::NotFound.into();
                let mut connected = None;
                for address in (host.as_str(), *port).to_socket_addrs()? {
                    let left = until.saturating_duration_since(Instant::now());
                    match TcpStream::connect_timeout(&address, left.max(LOOK)) {
                        Ok(stream) => {
                            connected = Some(stream);
                            break;
                        }
                        Err(error) => failed = error,
                    }
                }
                let stream = connected.ok_or(failed)?;
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                Way::Tcp(stream)
            }
        };
        let socket = Self {
            way,
            until: Mutex::new(until),
        };
        socket.wire().widen();
        Ok(socket)
    }

    /// Ends every wait for the server at `until`.
    pub fn wait_until(&self, until: Instant) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    /// Says that nothing more is sent, so that the server ends its side.
    pub fn leave(&self) {
        // It may have ended already.
        let _ = match &self.way {
            Way::Unix(stream) => stream.shutdown(Shutdown::Write),
            Way::Tcp(stream) => stream.shutdown(Shutdown::Write),
        };
    }

    /// Whether a byte, the end or a failure is there.
    pub fn has_news(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let found = rustix::net::recv(self.descriptor(), &mut [0_u8][..], flags);
        !matches!(
            found,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR)
        )
    }

    /// Returns when a byte, the end or a failure is there.
    ///
    /// # Errors
    /// `TimedOut` at `until`.
    pub fn await_news(&self, until: Instant) -> io::Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < MOMENT {
            if self.has_news() {
                return Ok(());
            }
            std::thread::yield_now();
        }
        self.poll(PollFlags::IN, until).map(drop)
    }

    /// Waits until one of `events` is there.
    pub fn wait(&self, events: PollFlags) -> io::Result<PollFlags> {
        let until = *self.until.lock().unwrap_or_else(PoisonError::into_inner);
        self.poll(events, until)
    }

    fn poll(&self, events: PollFlags, until: Instant) -> io::Result<PollFlags> {
        let mut waiting = [PollFd::from_borrowed_fd(self.descriptor(), events)];
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let patience = Timespec {
                tv_sec: left.as_secs().min(1 << 30) as i64,
                tv_nsec: left.subsec_nanos().into(),
            };
            match poll(&mut waiting, Some(&patience)) {
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) => return Ok(waiting[0].revents()),
            }
        }
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        match &self.way {
            Way::Unix(stream) => stream.as_fd(),
            Way::Tcp(stream) => stream.as_fd(),
        }
    }

    fn wire(&self) -> &dyn Wire {
        match &self.way {
            Way::Unix(stream) => stream,
            Way::Tcp(stream) => stream,
        }
    }
}

impl Wire for Socket {
    fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.wire().receive(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait(PollFlags::IN)?;
                }
                other => return other,
            }
        }
    }

    fn send(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.wire().send(parts)
    }

    fn end(&self) {
        self.wire().end();
    }

    fn cut(&self) {
        self.wire().cut();
    }
}

/// A connection.
pub struct Stream {
    pub socket: Arc<Socket>,
    pub session: Option<Box<dyn Session>>,
}

impl Stream {
    /// Whether something was received that waits to be taken.
    pub fn has_received(&self) -> bool {
        let session = self.session.as_deref();
        session.is_some_and(|session| session.has_received())
    }
}

impl Wire for Stream {
    fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        match &self.session {
            Some(session) => session.receive(&*self.socket, into),
            None => self.socket.receive(into),
        }
    }

    fn send(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match &self.session {
            Some(session) => session.send(&*self.socket, parts),
            None => self.socket.send(parts),
        }
    }

    fn flush(&self) -> io::Result<()> {
        match &self.session {
            Some(session) => session.flush(&*self.socket),
            None => Ok(()),
        }
    }

    fn end(&self) {
        self.socket.end();
    }

    fn cut(&self) {
        self.socket.cut();
    }
}
