//! [`Export`]: a device byte by byte, as protocols speak of it.

use crate::flushes::Flushes;
use block::{
    AlignedBuffer, BlockDevice, BlockError, ByteRange, Extent, Geometry, Operation, OperationKind,
    Queue, QueueOptions, Request, Wait,
};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// The operations that clients may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only read.
    Read,
    /// Read and write.
    Write,
}

/// How zeros may come about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zeros {
    /// The space stays taken.
    Written,
    /// The device may forget the range, if it promises zeros in its place.
    Punched,
}

/// Reports the extents of a range, in order and without gaps.
type Allocation = dyn Fn(ByteRange) -> Result<Vec<Extent>, BlockError> + Send + Sync;

/// Called once for each kind of failure of the device.
type Listener = dyn Fn(&BlockError) + Send + Sync;

/// Writes and flushes of an export that have failed.
#[derive(Clone, Debug)]
pub struct Failures {
    /// The number of failures.
    pub count: u64,
    /// The message of the last failure, with its cause.
    pub last: String,
    /// The remedy for that failure.
    pub remedy: &'static str,
}

/// A device as clients see it: any byte range, zeros on demand.
///
/// A write of part of a block reads, changes and writes the block, alone: no
/// other write runs meanwhile. Whole blocks are written side by side.
pub struct Export {
    device: Arc<dyn BlockDevice>,
    geometry: Geometry,
    access: Access,
    blocks: RwLock<()>,
    flushes: Flushes,
    keeps_lost_writes: bool,
    failures: Mutex<Option<Failures>>,
    allocation: Option<Box<Allocation>>,
    listener: Option<Box<Listener>>,
    /// The kinds of failure that the listener has heard of, so that it hears of each one once. A
    /// kind is the operation, or the number of operations if there is none, and the error number.
    told: Mutex<BTreeSet<(usize, i32)>>,
    begun: Instant,
    /// Milliseconds since `begun`, at the last request.
    used: AtomicU64,
}

impl Export {
    /// Exports `device`.
    pub fn new(device: Arc<dyn BlockDevice>, access: Access) -> Self {
        Self {
            geometry: device.geometry(),
            device,
            access,
            blocks: RwLock::new(()),
            flushes: Flushes::default(),
            keeps_lost_writes: false,
            failures: Mutex::default(),
            allocation: None,
            listener: None,
            told: Mutex::default(),
            begun: Instant::now(),
            used: 0.into(),
        }
    }

    /// Lets clients know what is stored.
    pub fn with_allocation(
        mut self,
        allocation: impl Fn(ByteRange) -> Result<Vec<Extent>, BlockError> + Send + Sync + 'static,
    ) -> Self {
        self.allocation = Some(Box::new(allocation));
        self
    }

    /// For a device that writes again, before a later flush succeeds, what a flush
    /// that failed has not made durable.
    pub fn keeping_lost_writes(mut self) -> Self {
        self.keeps_lost_writes = true;
        self
    }

    /// Tells `listener` of each kind of failure of the device, once.
    pub fn with_listener(mut self, listener: impl Fn(&BlockError) + Send + Sync + 'static) -> Self {
        self.listener = Some(Box::new(listener));
        self
    }

    /// Sizes and granularities of the device.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Bytes of the export.
    pub fn size(&self) -> u64 {
        self.geometry.size
    }

    /// The operations that clients may use.
    pub fn access(&self) -> Access {
        self.access
    }

    /// Whether clients may discard.
    pub fn discards(&self) -> bool {
        self.access == Access::Write && self.geometry.discard_granularity.is_some()
    }

    /// Whether zeros can be had without writing them.
    pub fn punches(&self) -> bool {
        self.discards() && self.geometry.discard_zeroes
    }

    /// Returns when everything written before, by any client, is durable.
    ///
    /// # Errors
    /// [`BlockError::Lost`] once a flush of any client has failed, unless the device [keeps what it
    /// has lost](Self::keeping_lost_writes).
    pub fn flush(&self) -> Result<(), BlockError> {
        self.flushes.run(self.keeps_lost_writes, || {
            self.count(self.note(self.device.flush()))
        })
    }

    /// The writes and flushes that have failed; nothing where none has.
    pub fn failures(&self) -> Option<Failures> {
        let failures = self.failures.lock();
        failures.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How long no client has asked for anything.
    pub fn idle(&self) -> Duration {
        let used = self.used.load(Ordering::Relaxed);
        self.begun
            .elapsed()
            .saturating_sub(Duration::from_millis(used))
    }

    /// The stored extents of `range`: all of it if the device does not report its allocation.
    pub fn extents(&self, range: ByteRange) -> Result<Vec<Extent>, BlockError> {
        self.check(range.offset, range.length)?;
        match &self.allocation {
            Some(allocation) => self.note(allocation(range)),
            None => Ok(vec![Extent { range, hole: false }]),
        }
    }

    /// A way to the device for one thread, for pieces of at most `piece`
    /// bytes; rounded up to whole blocks and one more.
    ///
    /// # Errors
    /// Those of [`BlockDevice::queue`].
    pub fn lane(&self, piece: usize) -> Result<Lane<'_>, BlockError> {
        Ok(Lane {
            export: self,
            queue: self.device.queue(QueueOptions::new(1))?,
            buffer: AlignedBuffer::empty(),
            piece,
        })
    }

    /// Any byte range inside the device passes.
    fn check(&self, offset: u64, length: u64) -> Result<(), BlockError> {
        let size = self.size();
        match offset.checked_add(length) {
            Some(end) if end <= size => Ok(()),
            _ => Err(BlockError::OutOfRange {
                offset,
                length,
                size,
            }),
        }
    }

    fn check_change(&self, offset: u64, length: u64) -> Result<(), BlockError> {
        match self.access {
            Access::Read => Err(BlockError::ReadOnly),
            Access::Write => self.check(offset, length),
        }
    }

    fn touch(&self) {
        let now = self.begun.elapsed().as_millis() as u64;
        self.used.store(now, Ordering::Relaxed);
    }

    /// Counts a write or a flush that failed.
    fn count(&self, result: Result<(), BlockError>) -> Result<(), BlockError> {
        if let Err(error) = &result {
            let mut last = error.to_string();
            if let Some(source) = std::error::Error::source(error) {
                last += &format!(": {source}");
            }
            let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
            let before = failures.as_ref().map_or(0, |failures| failures.count);
            *failures = Some(Failures {
                count: before + 1,
                last,
                remedy: error.remedy(),
            });
        }
        result
    }

    /// Tells the listener of a failure that is new.
    fn note<T>(&self, result: Result<T, BlockError>) -> Result<T, BlockError> {
        if let (Err(error), Some(listener)) = (&result, &self.listener) {
            let operation = match error {
                BlockError::Io { operation, .. } => *operation as usize,
                _ => OperationKind::ALL.len(),
            };
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            if told.insert((operation, error.errno())) {
                listener(error);
            }
        }
        result
    }
}

/// One thread's way to an export, with memory of its own.
pub struct Lane<'a> {
    export: &'a Export,
    queue: Box<dyn Queue + 'a>,
    buffer: AlignedBuffer,
    piece: usize,
}

impl<'a> Lane<'a> {
    /// The export that it leads to.
    pub fn export(&self) -> &'a Export {
        self.export
    }

    /// The most bytes that [`read`](Self::read) and [`space`](Self::space) take.
    pub fn piece(&self) -> usize {
        self.piece
    }

    /// Changes the size of pieces; memory for larger ones is given back.
    pub fn set_piece(&mut self, piece: usize) {
        if piece < self.piece {
            self.buffer = AlignedBuffer::empty();
        }
        self.piece = piece;
    }

    /// `length` bytes from `offset`; they stay until the lane is used again.
    ///
    /// # Panics
    /// Where `length` is more than a piece.
    pub fn read(&mut self, offset: u64, length: usize) -> Result<&[u8], BlockError> {
        assert!(length <= self.piece, "more than a piece");
        self.export.check(offset, length as u64)?;
        let whole = self.around(offset, length);
        self.make_room(whole.length as usize);
        self.transfer(Operation::Read, whole.offset)?;
        Ok(&self.buffer[(offset - whole.offset) as usize..][..length])
    }

    /// Space for `length` bytes that are then [written](Self::write).
    ///
    /// # Panics
    /// Where `length` is more than a piece.
    pub fn space(&mut self, length: usize) -> &mut [u8] {
        assert!(length <= self.piece, "more than a piece");
        self.make_room(length);
        &mut self.buffer
    }

    /// Stores what was put into the [space](Self::space) at `offset`.
    pub fn write(&mut self, offset: u64) -> Result<(), BlockError> {
        let length = self.buffer.len();
        self.export.check_change(offset, length as u64)?;
        let done = self.store(offset, length);
        self.export.count(done)
    }

    fn store(&mut self, offset: u64, length: usize) -> Result<(), BlockError> {
        let whole = self.around(offset, length);
        if whole == ByteRange::new(offset, length as u64) {
            let _beside = self
                .export
                .blocks
                .read()
                .unwrap_or_else(PoisonError::into_inner);
            return self.transfer(Operation::Write, offset);
        }
        let data = std::mem::take(&mut self.buffer);
        let alone = self
            .export
            .blocks
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        self.make_room(whole.length as usize);
        self.transfer(Operation::Read, whole.offset)?;
        self.buffer[(offset - whole.offset) as usize..][..length].copy_from_slice(&data);
        self.transfer(Operation::Write, whole.offset)?;
        drop(alone);
        Ok(())
    }

    /// Returns when everything written before, by any client, is durable.
    pub fn flush(&mut self) -> Result<(), BlockError> {
        self.export.touch();
        self.export.flush()
    }

    /// Makes `range` read as zeros.
    pub fn zero(&mut self, range: ByteRange, zeros: Zeros) -> Result<(), BlockError> {
        self.export.check_change(range.offset, range.length)?;
        let inside = self.inside(range);
        if zeros == Zeros::Punched && self.export.punches() && inside.length > 0 {
            self.discard(inside)?;
            self.write_zeros(range.offset, inside.offset - range.offset)?;
            let rest = inside.offset + inside.length;
            return self.write_zeros(rest, range.offset + range.length - rest);
        }
        self.write_zeros(range.offset, range.length)
    }

    /// Tells the device that `range` holds nothing of value; parts of blocks
    /// stay as they are.
    pub fn trim(&mut self, range: ByteRange) -> Result<(), BlockError> {
        self.export.check_change(range.offset, range.length)?;
        self.discard(self.inside(range))
    }

    fn write_zeros(&mut self, mut offset: u64, mut length: u64) -> Result<(), BlockError> {
        let block = u64::from(self.export.geometry.logical_block);
        while length > 0 {
            // Up to a block's end first, so that what follows is whole blocks.
            let part = match offset % block {
                0 => (self.piece as u64).min(length),
                odd => (block - odd).min(length),
            };
            let part = match part % block {
                rest if part > block => part - rest,
                _ => part,
            };
            self.space(part as usize).fill(0);
            self.write(offset)?;
            offset += part;
            length -= part;
        }
        Ok(())
    }

    fn discard(&mut self, range: ByteRange) -> Result<(), BlockError> {
        self.export.touch();
        if range.length == 0 {
            return Ok(());
        }
        let _beside = self
            .export
            .blocks
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        self.export.note(self.export.device.discard(range))
    }

    /// The whole blocks that a range of bytes touches.
    fn around(&self, offset: u64, length: usize) -> ByteRange {
        let block = u64::from(self.export.geometry.logical_block);
        let start = offset / block * block;
        let end = (offset + length as u64).next_multiple_of(block);
        ByteRange::new(start, end - start)
    }

    /// The whole blocks of a range of bytes; none is at its start.
    fn inside(&self, range: ByteRange) -> ByteRange {
        let block = u64::from(self.export.geometry.logical_block);
        let end = (range.offset + range.length) / block * block;
        let start = range.offset.next_multiple_of(block);
        match start < end {
            true => ByteRange::new(start, end - start),
            false => ByteRange::new(range.offset, 0),
        }
    }

    fn make_room(&mut self, length: usize) {
        if self.buffer.capacity() < length {
            // From 2 MiB on it lies on huge pages, which disks are faster with.
            let unit = if length < 1 << 20 { 64 << 10 } else { 2 << 20 };
            self.buffer = AlignedBuffer::new(length.next_multiple_of(unit));
        }
        self.buffer.set_len(length);
    }

    fn transfer(&mut self, operation: Operation, offset: u64) -> Result<(), BlockError> {
        self.export.touch();
        let buffer = std::mem::take(&mut self.buffer);
        self.queue
            .submit(Request::new(operation, offset, buffer, 0));
        // One request is in flight, so one comes back.
        let Some(done) = self.queue.reap(Wait::Yes) else {
            return Err(BlockError::QueueFull { depth: 1 });
        };
        self.buffer = done.request.buffer;
        self.export.note(done.result)
    }
}
