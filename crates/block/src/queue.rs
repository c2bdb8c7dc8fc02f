//! [`Queue`]: requests in flight, with owned buffers.
//!
//! A queue belongs to the thread that opened it. Buffers travel with their
//! requests and come back with the completions, so the kernel (or a cipher)
//! may work on them in place while no one else can see them.

use crate::{AlignedBuffer, BlockError, Meter};
use std::rc::Rc;

/// What a request asks for.
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
    /// What to do.
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

/// Requests in flight on one device, driven by one thread.
pub trait Queue {
    /// Hands a request over. The caller keeps at most `depth` in flight; a
    /// request too many, or one that is misaligned or out of range, comes
    /// back from [`reap`](Self::reap) as a failed completion, so no buffer is
    /// ever lost.
    fn submit(&mut self, request: Request);

    /// Takes one finished request, in any order.
    fn reap(&mut self, wait: Wait) -> Option<Completion>;

    /// Requests submitted and not yet reaped.
    fn in_flight(&self) -> u32;
}
