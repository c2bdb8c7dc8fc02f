//! [`Work`]: a device's pieces, and the cores that copy them.

use super::{Report, TransferError};
use crate::{
    AlignedBuffer, BlockDevice, BlockError, Completion, Operation, QueueOptions, Request, Wait,
};
use std::collections::VecDeque;
use std::num::NonZero;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

/// Bytes of a request.
pub const PIECE: u64 = 256 << 10;

/// Requests of a core that are under way at a time, so that a device with a long latency always has
/// work. An L2 cache has room for them.
const DEPTH: u32 = 4;

/// The state that the cores share.
pub struct Work<'a> {
    size: u64,
    /// Where the next piece begins.
    next: AtomicU64,
    done: AtomicU64,
    report: Report<'a>,
    /// The first error.
    failed: Mutex<Option<TransferError>>,
}

impl<'a> Work<'a> {
    pub fn of(size: u64, report: Report<'a>) -> Self {
        Self {
            size,
            next: AtomicU64::new(0),
            done: AtomicU64::new(0),
            report,
            failed: Mutex::default(),
        }
    }

    /// The next piece that no core has taken yet.
    pub fn next(&self) -> Option<Range<u64>> {
        let start = self.next.fetch_add(PIECE, Ordering::Relaxed);
        (start < self.size).then(|| start..self.size.min(start + PIECE))
    }

    pub fn fail(&self, error: TransferError) {
        lock(&self.failed).get_or_insert(error);
        // The others need not go on.
        self.next.store(self.size, Ordering::Relaxed);
    }

    pub fn has_failed(&self) -> bool {
        lock(&self.failed).is_some()
    }

    /// Calls `work` once on every core; the first error counts.
    pub fn on_every_core(
        &self,
        work: impl Fn() -> Result<(), TransferError> + Sync,
    ) -> Result<(), TransferError> {
        let work = || work().unwrap_or_else(|error| self.fail(error));
        thread::scope(|scope| {
            let cores = thread::available_parallelism().map_or(1, NonZero::get);
            for _ in 1..cores {
                scope.spawn(work);
            }
            work();
        });
        lock(&self.failed).take().map_or(Ok(()), Err)
    }

    /// Reads pieces until there are none, and gives them to `take` in their order.
    pub fn read(
        &self,
        device: &dyn BlockDevice,
        mut take: impl FnMut(u64, &[u8]) -> Result<(), TransferError>,
    ) -> Result<(), TransferError> {
        let mut queue = device.queue(QueueOptions::new(DEPTH))?;
        let mut spare = Vec::new();
        // The oldest first; those that are read have their request.
        let mut under_way: VecDeque<(u64, Option<Request>)> = VecDeque::new();
        loop {
            while under_way.len() < DEPTH as usize
                && let Some(piece) = self.next()
            {
                let mut buffer = spare.pop().unwrap_or_else(|| self.buffer());
                buffer.set_len((piece.end - piece.start) as usize);
                under_way.push_back((piece.start, None));
                queue.submit(Request::new(Operation::Read, piece.start, buffer, 0));
            }
            let Some(Completion { request, result }) = queue.reap(Wait::Yes) else {
                return Ok(());
            };
            result?;
            let offset = request.offset;
            let read = under_way.iter_mut().find(|(start, _)| *start == offset);
            read.expect("what was asked for is answered").1 = Some(request);
            while let Some((_, read @ Some(_))) = under_way.front_mut() {
                let request = read.take().expect("just seen");
                under_way.pop_front();
                take(request.offset, &request.buffer)?;
                self.tell(request.buffer.len())?;
                spare.push(request.buffer);
            }
        }
    }

    /// Writes what `fill` puts into buffers, until it has no place for them.
    pub fn write(
        &self,
        device: &dyn BlockDevice,
        mut fill: impl FnMut(&mut AlignedBuffer) -> Result<Option<u64>, TransferError>,
    ) -> Result<(), TransferError> {
        let mut queue = device.queue(QueueOptions::new(DEPTH))?;
        let mut spare = Vec::new();
        let mut more = true;
        loop {
            while more && queue.in_flight() < DEPTH {
                let mut buffer = spare.pop().unwrap_or_else(|| self.buffer());
                match fill(&mut buffer)? {
                    Some(offset) => {
                        let buffer = whole_sectors(device, offset, buffer)?;
                        queue.submit(Request::new(Operation::Write, offset, buffer, 0));
                    }
                    None => more = false,
                }
            }
            let Some(Completion { request, result }) = queue.reap(Wait::Yes) else {
                return Ok(());
            };
            result?;
            self.tell(request.buffer.len())?;
            let mut buffer = request.buffer;
            buffer.set_len(buffer.capacity());
            spare.push(buffer);
        }
    }

    fn buffer(&self) -> AlignedBuffer {
        AlignedBuffer::new(PIECE as usize)
    }

    fn tell(&self, length: usize) -> Result<(), TransferError> {
        let done = self.done.fetch_add(length as u64, Ordering::Relaxed) + length as u64;
        match (self.report)(done) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(TransferError::Stopped),
        }
    }
}

/// `buffer` with what `device` has behind it in its last sector.
fn whole_sectors(
    device: &dyn BlockDevice,
    offset: u64,
    mut buffer: AlignedBuffer,
) -> Result<AlignedBuffer, BlockError> {
    let block = device.geometry().logical_block as usize;
    let given = buffer.len();
    let whole = given.next_multiple_of(block);
    if whole > given {
        let mut last = AlignedBuffer::new(block);
        device.read_at(offset + (whole - block) as u64, &mut last)?;
        buffer.set_len(whole);
        buffer[given..].copy_from_slice(&last[block - (whole - given)..]);
    }
    Ok(buffer)
}

pub fn lock<T: ?Sized>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
