//! [`Wire`]: the bytes between a client and the server.

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, sendmsg, sockopt};
use std::io::{self, IoSlice, Read};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long a client may take to go on before its thread sleeps: to be woken
/// takes about as long where it is on another core.
const MOMENT: Duration = Duration::from_micros(50);

/// Parts that Linux sends at a time, at most (IOV_MAX).
const MOST_PARTS: usize = 1024;

/// Bytes of data that a wide Unix socket holds, as Linux is told them: it takes the
/// double and counts its own structures. With the 208 KiB of the system's default the
/// sender sleeps, and is woken on another core, for every 150 KiB. On two cores writes
/// on a disk were 1.4 times as fast with this, and slower again with 2 MiB, which are
/// in no core's cache.
const WIDE: usize = 416 << 10;

/// A connection's two directions.
pub trait Wire: Send + Sync {
    /// Fills a part of `into`; 0 at the end.
    fn receive(&self, into: &mut [u8]) -> io::Result<usize>;

    /// Sends a beginning of `parts`.
    fn send(&self, parts: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Sends what [`send`](Self::send) has taken and kept, if it does such things.
    fn flush(&self) -> io::Result<()> {
        Ok(())
    }

    /// Lets more be on its way before the sender has to wait for the receiver.
    fn widen(&self) {}

    /// Ends receiving, also for threads that wait for data. Received requests are still answered.
    fn end(&self);

    /// Ends both directions, also for threads that wait.
    fn cut(&self);
}

macro_rules! socket {
    ($($socket:ty, $widen:expr;)+) => {$(
        impl Wire for $socket {
            fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
                let begun = Instant::now();
                loop {
                    match rustix::net::recv(self, &mut *into, RecvFlags::DONTWAIT) {
                        Ok((received, _)) => return Ok(received),
                        Err(Errno::AGAIN) if begun.elapsed() < MOMENT => std::thread::yield_now(),
                        Err(_) => return retry(|| (&mut &*self).read(into)),
                    }
                }
            }

            fn send(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
                // A program in C has no handler of SIGPIPE, and must not end with its client.
                let parts = &parts[..parts.len().min(MOST_PARTS)];
                retry(|| {
                    let mut nothing = SendAncillaryBuffer::default();
                    let sent = sendmsg(self, parts, &mut nothing, SendFlags::NOSIGNAL);
                    sent.map_err(io::Error::from)
                })
            }

            fn widen(&self) {
                $widen(self);
            }

            fn end(&self) {
                // It may have ended already.
                let _ = self.shutdown(Shutdown::Read);
            }

            fn cut(&self) {
                // It may have ended already.
                let _ = self.shutdown(Shutdown::Both);
            }

        }
    )+};
}

socket! {
    UnixStream, |socket| {
        // The system may allow less; then it stays narrower.
        let _ = sockopt::set_socket_send_buffer_size(socket, WIDE);
    };
    // The system widens it as the way allows.
    TcpStream, |_| ();
}

fn retry(mut transfer: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match transfer() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Sends all of `parts`.
pub fn send_all(wire: &dyn Wire, parts: &[&[u8]]) -> io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
    let mut rest = &mut slices[..];
    IoSlice::advance_slices(&mut rest, 0);
    while !rest.is_empty() {
        match wire.send(rest)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            sent => IoSlice::advance_slices(&mut rest, sent),
        }
    }
    Ok(())
}

/// The bytes that were received but not yet read.
#[derive(Debug)]
pub struct Input {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Input {
    /// Receives up to `capacity` bytes at a time.
    pub fn new(capacity: usize) -> Self {
        Self {
            bytes: vec![0; capacity].into(),
            start: 0,
            end: 0,
        }
    }

    /// The bytes that are there.
    pub fn there(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Takes the next `N` bytes; `None` where the other side ended before the
    /// first of them.
    pub fn take<const N: usize>(&mut self, wire: &dyn Wire) -> io::Result<Option<[u8; N]>> {
        while self.end - self.start < N {
            if self.bytes.len() - self.start < N {
                self.bytes.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
            match wire.receive(&mut self.bytes[self.end..])? {
                0 if self.start == self.end => return Ok(None),
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                received => self.end += received,
            }
        }
        let mut taken = [0; N];
        taken.copy_from_slice(&self.bytes[self.start..self.start + N]);
        self.consume(N);
        Ok(Some(taken))
    }

    /// Fills `into`, from what is there and then directly.
    pub fn fill(&mut self, wire: &dyn Wire, into: &mut [u8]) -> io::Result<()> {
        let there = self.there();
        let mut done = there.len().min(into.len());
        into[..done].copy_from_slice(&there[..done]);
        self.consume(done);
        while done < into.len() {
            match wire.receive(&mut into[done..])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                received => done += received,
            }
        }
        Ok(())
    }

    fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }
}
