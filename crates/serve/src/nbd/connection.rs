//! The transmission: requests of one client, answered by one thread or several.
//!
//! Threads take turns at receiving. A thread that has received a request lets the next thread
//! receive, does the work with memory of its own, and answers. A thread that serves alone gathers
//! the answers to all requests that it has received before it sends them. That suits a fast device;
//! a slow one needs more threads. Data passes in pieces that stay in the processor's cache.

use super::handshake::{ALLOCATION_ID, Agreed};
use super::transport::{Input, Wire, send_all};
use super::wire::{self, Request, chunk, command, errno, flag};
use crate::{Access, Export, Extent, Lane, Zeros};
use block::{BlockError, ByteRange};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope};

/// Replies that are gathered carry no more than this.
const GATHERED: usize = 16 << 10;
/// The most extents in an answer.
const MOST_EXTENTS: usize = 4096;
/// Requests are received so many bytes at a time.
pub const INPUT_BYTES: usize = 32 << 10;
const STACK_BYTES: usize = 512 << 10;

/// The limits of a connection's memory and threads.
pub trait Allowance: Sync {
    /// Bytes of a piece, now.
    fn piece(&self) -> usize;

    /// Threads, now; at least 1.
    fn threads(&self) -> usize;

    /// The connection has begun one thread beyond its first.
    fn begun(&self);

    /// This many threads of the connection, beyond its first, have ended.
    fn ended(&self, threads: usize);
}

/// A client in transmission.
pub struct Connection<'a> {
    wire: &'a dyn Wire,
    agreed: &'a Agreed,
    allowance: &'a dyn Allowance,
    input: Mutex<Input>,
    /// Held while something is sent.
    output: Mutex<()>,
    ended: AtomicBool,
    threads: AtomicUsize,
    /// Threads that wait for their turn to receive.
    waiting: AtomicUsize,
}

impl<'a> Connection<'a> {
    /// Begins where the negotiation has ended.
    pub fn new(
        wire: &'a dyn Wire,
        agreed: &'a Agreed,
        input: Input,
        allowance: &'a dyn Allowance,
    ) -> Self {
        Self {
            wire,
            agreed,
            allowance,
            input: Mutex::new(input),
            output: Mutex::new(()),
            ended: AtomicBool::new(false),
            threads: AtomicUsize::new(1),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Answers until the client leaves, breaks the protocol, or may send no
    /// more. All that was received is answered then.
    pub fn run(&self) {
        std::thread::scope(|scope| self.take_turns(scope));
        self.allowance
            .ended(self.threads.load(Ordering::Relaxed) - 1);
    }

    fn take_turns<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        // A client that is gone, or broke the protocol, hears nothing more.
        let _ = self.work(scope);
        self.ended.store(true, Ordering::Relaxed);
        self.wire.end();
    }

    fn export(&self) -> &'a Export {
        &self.agreed.export
    }

    fn work<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> io::Result<()> {
        let lane = self.export().lane(self.allowance.piece());
        let lane = lane.map_err(|error| io::Error::from_raw_os_error(error.errno()))?;
        let mut answering = Answering {
            connection: self,
            lane,
            out: Vec::new(),
        };
        loop {
            answering.lane.set_piece(self.allowance.piece());
            // Only this thread can end its being alone.
            if self.threads.load(Ordering::Relaxed) > 1 {
                answering.send()?;
            }
            let mut input = self.receive_next();
            if self.ended.load(Ordering::Relaxed) {
                return answering.send();
            }
            if input.there().len() < wire::REQUEST_BYTES {
                answering.send()?;
            }
            let Some(head) = input.take(self.wire)? else {
                return answering.send();
            };
            let request = Request::parse(&head).ok_or(io::ErrorKind::InvalidData)?;
            match request.command {
                command::DISC => return answering.send(),
                command::WRITE => answering.write(&request, input, || self.follow(scope))?,
                _ => {
                    drop(input);
                    self.follow(scope);
                    answering.answer(&request)?;
                }
            }
        }
    }

    /// The turn to receive.
    fn receive_next(&self) -> MutexGuard<'_, Input> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        input
    }

    /// The turn to send.
    fn sending(&self) -> MutexGuard<'_, ()> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sees to it that a thread receives while this one works, if one may.
    fn follow<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        if self.waiting.load(Ordering::Relaxed) > 0 || self.ended.load(Ordering::Relaxed) {
            return;
        }
        let most = self.allowance.threads();
        let more = |threads| (threads < most).then_some(threads + 1);
        let free = self
            .threads
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        if free.is_err() {
            return;
        }
        self.allowance.begun();
        let another = Builder::new()
            .name("nbd".into())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, move || self.take_turns(scope));
        if another.is_err() {
            // The system has no thread left; those that are there go on.
            self.threads.fetch_sub(1, Ordering::Relaxed);
            self.allowance.ended(1);
        }
    }
}

/// One thread's answers.
struct Answering<'a> {
    connection: &'a Connection<'a>,
    lane: Lane<'a>,
    /// Gathered, and not yet sent.
    out: Vec<u8>,
}

impl Answering<'_> {
    /// Sends what was gathered.
    fn send(&mut self) -> io::Result<()> {
        if !self.out.is_empty() {
            let _sending = self.connection.sending();
            send_all(self.connection.wire, &[&self.out])?;
            self.out.clear();
        }
        Ok(())
    }

    fn structured(&self) -> bool {
        self.connection.agreed.structured
    }

    fn answer(&mut self, request: &Request) -> io::Result<()> {
        let export = self.connection.export();
        let range = ByteRange::new(request.offset, u64::from(request.length));
        let allowed = match request.command {
            command::READ => flag::DF,
            command::WRITE_ZEROES => flag::NO_HOLE | flag::FAST_ZERO,
            command::BLOCK_STATUS => flag::REQ_ONE,
            _ => 0,
        };
        if request.flags & !(allowed | flag::FUA) != 0 {
            return self.fail(request, errno::EINVAL, "the request has an unknown flag");
        }
        let done = match request.command {
            command::READ => return self.read(request),
            command::BLOCK_STATUS => return self.status(request),
            command::FLUSH => self.lane.flush(),
            command::TRIM if export.discards() => self.lane.trim(range),
            command::TRIM if export.access() == Access::Write => {
                return self.fail(request, errno::ENOTSUP, "discards are not supported");
            }
            command::TRIM => Err(BlockError::ReadOnly),
            command::CACHE => self.cache(range),
            command::WRITE_ZEROES => {
                if request.flags & flag::FAST_ZERO != 0 {
                    return self.fail(request, errno::ENOTSUP, "zeros are written here");
                }
                // Not a hole, whatever the client allows: zeros are data, and another program
                // that decrypts the device reads noise where it was discarded.
                self.lane
                    .zero(range, Zeros::Written)
                    .map_err(no_space_behind)
            }
            _ => return self.fail(request, errno::EINVAL, "the command is unknown"),
        };
        self.finish(request, done)
    }

    /// Makes a change durable where the client asks for it, and says how it went.
    fn finish(&mut self, request: &Request, done: Result<(), BlockError>) -> io::Result<()> {
        let durable = match request.flags & flag::FUA != 0 && request.command != command::FLUSH {
            true => done.and_then(|()| self.lane.flush()),
            false => done,
        };
        match durable {
            Err(error) => self.fail(request, wire::error_number(&error), &error.to_string()),
            Ok(()) => {
                match self.structured() {
                    true => self.out.extend_from_slice(&wire::chunk_head(
                        chunk::DONE,
                        chunk::NONE,
                        request.cookie,
                        0,
                    )),
                    false => self.out.extend_from_slice(&wire::simple(0, request.cookie)),
                }
                self.send_if_full()
            }
        }
    }

    fn fail(&mut self, request: &Request, number: u32, why: &str) -> io::Result<()> {
        if self.structured() {
            let head = wire::chunk_head(
                chunk::DONE,
                chunk::ERROR,
                request.cookie,
                6 + why.len() as u32,
            );
            self.out.extend_from_slice(&head);
            self.out.extend_from_slice(&number.to_be_bytes());
            self.out
                .extend_from_slice(&(why.len() as u16).to_be_bytes());
            self.out.extend_from_slice(why.as_bytes());
        } else {
            self.out
                .extend_from_slice(&wire::simple(number, request.cookie));
        }
        self.send_if_full()
    }

    fn send_if_full(&mut self) -> io::Result<()> {
        match self.out.len() >= self.lane.piece() {
            true => self.send(),
            false => Ok(()),
        }
    }

    fn read(&mut self, request: &Request) -> io::Result<()> {
        let (cookie, mut offset) = (request.cookie, request.offset);
        let mut left = request.length as usize;
        if request.length > wire::MOST_PAYLOAD {
            return self.fail(request, errno::EINVAL, "the read is longer than 32 MiB");
        }
        if request.flags & flag::DF != 0 && left > self.lane.piece() {
            return self.fail(request, errno::EOVERFLOW, "the read does not fit one chunk");
        }
        let size = self.connection.export().size();
        if offset.checked_add(left as u64).is_none_or(|end| end > size) {
            return self.fail(request, errno::EINVAL, "the read ends beyond the export");
        }
        let structured = self.structured();
        if left == 0 {
            return self.finish(request, Ok(()));
        }
        let connection = self.connection;
        let mut turn = None;
        let mut first = true;
        while left > 0 {
            let length = left.min(self.lane.piece());
            left -= length;
            let data = match self.lane.read(offset, length) {
                Ok(data) => data,
                Err(error) if structured || first => {
                    return self.fail(request, wire::error_number(&error), &error.to_string());
                }
                // The reply has begun, and only its end could say that it failed.
                Err(error) => return Err(io::Error::from_raw_os_error(error.errno())),
            };
            let mut head = [0; wire::CHUNK_BYTES + 8];
            let head = match (structured, first) {
                (true, _) => {
                    let flags = if left == 0 { chunk::DONE } else { 0 };
                    let carried = length as u32 + 8;
                    let bytes = wire::chunk_head(flags, chunk::OFFSET_DATA, cookie, carried);
                    head[..wire::CHUNK_BYTES].copy_from_slice(&bytes);
                    head[wire::CHUNK_BYTES..].copy_from_slice(&offset.to_be_bytes());
                    &head[..]
                }
                (false, true) => {
                    head[..wire::SIMPLE_BYTES].copy_from_slice(&wire::simple(0, cookie));
                    &head[..wire::SIMPLE_BYTES]
                }
                (false, false) => &[],
            };
            if first && left == 0 && length <= GATHERED {
                self.out.extend_from_slice(head);
                self.out.extend_from_slice(data);
                return self.send_if_full();
            }
            // Between the chunks of a reply those of others may come; a simple
            // reply is one piece.
            let sending = match turn.take() {
                Some(sending) => sending,
                None => connection.sending(),
            };
            send_all(connection.wire, &[&self.out, head, data])?;
            self.out.clear();
            turn = (!structured).then_some(sending);
            offset += length as u64;
            first = false;
        }
        Ok(())
    }

    /// Receives what a write carries, and stores it; the next thread receives
    /// when all has come.
    fn write(
        &mut self,
        request: &Request,
        mut input: MutexGuard<'_, Input>,
        follow: impl FnOnce(),
    ) -> io::Result<()> {
        if request.length > wire::MOST_PAYLOAD {
            // Such a client is not worth receiving so much from.
            return Err(io::ErrorKind::InvalidData.into());
        }
        let wire = self.connection.wire;
        let export = self.connection.export();
        let (mut offset, mut left) = (request.offset, request.length as usize);
        let mut done = match export.access() {
            Access::Read => Err(BlockError::ReadOnly),
            Access::Write => Ok(()),
        };
        let behind = offset
            .checked_add(left as u64)
            .is_none_or(|end| end > export.size());
        let mut refusal = None;
        if request.flags & !flag::FUA != 0 {
            refusal = Some((errno::EINVAL, "the request has an unknown flag"));
        } else if behind && done.is_ok() {
            refusal = Some((errno::ENOSPC, "the write ends beyond the export"));
        }
        let block = u64::from(export.geometry().logical_block);
        while left > 0 {
            // The pieces after the first one are whole blocks.
            let lead = (offset % block) as usize;
            let length = left.min(self.lane.piece() - lead);
            input.fill(wire, self.lane.space(length))?;
            left -= length;
            if left == 0 {
                break;
            }
            if done.is_ok() && refusal.is_none() {
                done = self.lane.write(offset);
            }
            offset = offset.wrapping_add(length as u64);
        }
        drop(input);
        follow();
        if let Some((number, why)) = refusal {
            return self.fail(request, number, why);
        }
        if request.length > 0 && done.is_ok() {
            done = self.lane.write(offset);
        }
        self.finish(request, done)
    }

    /// Reads for the cache's sake.
    fn cache(&mut self, range: ByteRange) -> Result<(), BlockError> {
        let mut done = 0;
        while done < range.length {
            let length = (range.length - done).min(self.lane.piece() as u64);
            self.lane
                .read(range.offset.saturating_add(done), length as usize)?;
            done += length;
        }
        Ok(())
    }

    fn status(&mut self, request: &Request) -> io::Result<()> {
        let range = ByteRange::new(request.offset, u64::from(request.length));
        if !self.connection.agreed.allocation || range.length == 0 {
            return self.fail(request, errno::EINVAL, "no metadata context was chosen");
        }
        let extents = match self.connection.export().extents(range) {
            Ok(extents) => extents,
            Err(error) => {
                return self.fail(request, wire::error_number(&error), &error.to_string());
            }
        };
        let most = match request.flags & flag::REQ_ONE != 0 {
            true => 1,
            false => MOST_EXTENTS,
        };
        let mut told = ALLOCATION_ID.to_be_bytes().to_vec();
        for Extent { range, hole } in extents.into_iter().take(most) {
            let state = match hole {
                true => wire::STATE_HOLE | wire::STATE_ZERO,
                false => 0,
            };
            told.extend_from_slice(&(range.length as u32).to_be_bytes());
            told.extend_from_slice(&state.to_be_bytes());
        }
        let head = wire::chunk_head(
            chunk::DONE,
            chunk::BLOCK_STATUS,
            request.cookie,
            told.len() as u32,
        );
        self.out.extend_from_slice(&head);
        self.out.extend_from_slice(&told);
        self.send_if_full()
    }
}

/// Zeros behind the end are like a write behind the end.
fn no_space_behind(error: BlockError) -> BlockError {
    match error {
        BlockError::OutOfRange { length, .. } => BlockError::NoSpace {
            needed: length,
            available: 0,
        },
        error => error,
    }
}
