//! TLS as a connection sees it: a wire over a wire.

use super::transport::Wire;
use std::io::{self, IoSlice};

/// A method that makes connections secure.
pub trait Security: Send + Sync {
    /// Whether insecure connections are refused.
    fn is_required(&self) -> bool;

    /// Greets the other side of `below`.
    fn begin(&self, below: &dyn Wire) -> io::Result<Box<dyn Session>>;
}

/// A secure connection, but for the wire below it.
pub trait Session: Send + Sync {
    /// As [`Wire::receive`].
    fn receive(&self, below: &dyn Wire, into: &mut [u8]) -> io::Result<usize>;

    /// As [`Wire::send`].
    fn send(&self, below: &dyn Wire, parts: &[IoSlice<'_>]) -> io::Result<usize>;

    /// As [`Wire::flush`].
    fn flush(&self, below: &dyn Wire) -> io::Result<()>;

    /// Whether something was received that waits to be taken.
    fn has_received(&self) -> bool;
}

/// A secure connection.
pub struct Secured<'a> {
    /// The wire that carries it.
    pub below: &'a dyn Wire,
    /// The session that secures it.
    pub session: Box<dyn Session>,
}

impl Wire for Secured<'_> {
    fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        self.session.receive(self.below, into)
    }

    fn send(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.session.send(self.below, parts)
    }

    fn flush(&self) -> io::Result<()> {
        self.session.flush(self.below)
    }

    fn end(&self) {
        self.below.end();
    }

    fn cut(&self) {
        self.below.cut();
    }
}
