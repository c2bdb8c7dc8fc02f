//! [`Queue`]: requests in flight, with owned buffers.
//!
//! A queue belongs to the thread that opened it. Buffers travel with their requests and come back
//! with the completions. So the kernel (or a cipher) may work on them in place while no other code
//! can see them. A device that keeps what was written gives other memory of the same length back.

use crate::{AlignedBuffer, BlockError, Meter};
use std::fmt;
use std::rc::Rc;

/// The operation that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Fill the request's buffer.
    Read,
    /// Store the request's buffer. The content of the buffer is unspecified
    /// afterwards: an encrypting layer works in place.
    Write,
    /// Make everything completed before durable; the buffer is not used.
    Flush,
    /// Forget `length` bytes; the buffer is not used.
    Discard {
        /// Bytes to forget, from the request's offset.
        length: u64,
    },
}

impl Operation {
    /// The operation without its numbers.
    pub fn kind(self) -> OperationKind {
        match self {
            Self::Read => OperationKind::Read,
            Self::Write => OperationKind::Write,
            Self::Flush => OperationKind::Flush,
            Self::Discard { .. } => OperationKind::Discard,
        }
    }
}

/// The four things a device can be asked for; an index from 0 to 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperationKind {
    /// Bytes from the device.
    Read,
    /// Bytes to the device.
    Write,
    /// Durability of what was written.
    Flush,
    /// A range whose content is no longer needed.
    Discard,
}

impl OperationKind {
    /// All kinds, in index order.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Flush, Self::Discard];
}

impl fmt::Display for OperationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Discard => "discard",
        })
    }
}

/// Ticks of the meter's clock that a request has spent so far, by place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Encrypting or decrypting this request.
    pub crypto: u64,
    /// Between hand-over to the lowest device and its answer.
    pub device: u64,
}

/// One request, owning its buffer.
#[derive(Debug)]
pub struct Request {
    /// The operation.
    pub operation: Operation,
    /// First byte on the device.
    pub offset: u64,
    /// Data to store or space to fill; its length is the request's length.
    pub buffer: AlignedBuffer,
    /// Returned untouched with the completion.
    pub tag: u64,
    /// Filled in by the layers on the way; starts at default.
    pub timeline: Timeline,
}

impl Request {
    /// A request with an empty timeline.
    pub fn new(operation: Operation, offset: u64, buffer: AlignedBuffer, tag: u64) -> Self {
        Self {
            operation,
            offset,
            buffer,
            tag,
            timeline: Timeline::default(),
        }
    }

    /// Bytes of the device that the request touches; 0 for a flush.
    pub fn length(&self) -> u64 {
        match self.operation {
            Operation::Read | Operation::Write => self.buffer.len() as u64,
            Operation::Flush => 0,
            Operation::Discard { length } => length,
        }
    }
}

/// A finished request, successful or not, with its buffer.
#[derive(Debug)]
pub struct Completion {
    /// The request as submitted; the buffer holds the data of a read.
    pub request: Request,
    /// How it went.
    pub result: Result<(), BlockError>,
}

/// Whether [`Queue::reap`] may block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Return at once when nothing is finished.
    No,
    /// Return when one request is finished; `None` only with nothing in flight.
    Yes,
}

/// How a queue is to be opened.
#[derive(Clone, Debug)]
pub struct QueueOptions {
    /// Most requests in flight, 1 to 4096.
    pub depth: u32,
    /// The opening thread's stopwatch.
    pub meter: Rc<Meter>,
}

impl QueueOptions {
    /// Most requests in flight that any queue offers.
    pub const MAX_DEPTH: u32 = 4096;

    /// Up to `depth` requests in flight, no stopwatch.
    pub fn new(depth: u32) -> Self {
        Self {
            depth,
            meter: Rc::new(Meter::off()),
        }
    }

    /// The depth, or [`BlockError::Depth`] when it is not 1 to 4096.
    pub fn checked_depth(&self) -> Result<u32, BlockError> {
        if (1..=Self::MAX_DEPTH).contains(&self.depth) {
            Ok(self.depth)
        } else {
            Err(BlockError::Depth { depth: self.depth })
        }
    }
}

/// Requests in flight on one device, driven by one thread.
///
/// Dropping a queue waits for what the device already works on; whether a
/// write that was never reaped has been carried out is then unknown.
pub trait Queue {
    /// Hands a request over. The caller keeps at most `depth` in flight. A request too many, or one
    /// that is misaligned or out of range, comes back from [`reap`](Self::reap) as a failed
    /// completion. So no buffer is ever lost.
    fn submit(&mut self, request: Request);

    /// Takes one finished request, in any order.
    fn reap(&mut self, wait: Wait) -> Option<Completion>;

    /// Requests submitted and not yet reaped.
    fn in_flight(&self) -> u32;
}
