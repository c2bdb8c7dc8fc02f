//! The state that the device and the threads of its queues share: positioned transfers.

use super::{PathKind, system};
use crate::positioned::{read_exact_at, write_all_at};
use crate::{AlignedBuffer, BlockError, ByteRange, Geometry, Operation, OperationKind, Request};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes carried at a time when the caller's memory is not aligned.
const BOUNCE: usize = 1 << 20;

pub(crate) struct Shared {
    pub(crate) file: Arc<File>,
    pub(super) geometry: Geometry,
    pub(super) kind: PathKind,
    pub(super) direct: bool,
    pub(super) write: bool,
    /// The file was seen to be shorter than when it was opened.
    pub(super) cut_off: Arc<AtomicBool>,
    /// The file had a name when it was opened.
    pub(super) named: bool,
    /// Direct transfers want memory at multiples of this.
    pub(super) memory_alignment: usize,
}

impl Shared {
    pub(super) fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        let range = self.geometry.check(offset, into.len() as u64)?;
        self.read(offset, into).map_err(|source| {
            self.heed(&source);
            failed(OperationKind::Read, range, source)
        })
    }

    pub(super) fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        self.writable()?;
        let range = self.geometry.check(offset, data.len() as u64)?;
        self.write(offset, data)
            .map_err(|source| failed(OperationKind::Write, range, source))
    }

    pub(super) fn flush(&self) -> Result<(), BlockError> {
        if cfg!(windows) && !self.write {
            // It flushes for those only who may write, and here is nothing to flush.
            return Ok(());
        }
        loop {
            match self.file.sync_data() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(failed(OperationKind::Flush, ByteRange::new(0, 0), source));
                }
                Ok(()) => return self.check_kept(),
            }
        }
    }

    /// Remembers a read that came to an end which was not there when the file was
    /// opened.
    pub(crate) fn heed(&self, error: &io::Error) {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            self.cut_off.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a file that is written is as long as it was and still has a name, after a flush.
    pub(crate) fn check_kept(&self) -> Result<(), BlockError> {
        if !self.write {
            return Ok(());
        }
        if self.kind != PathKind::RegularFile {
            return self.check_whole();
        }
        let metadata = self.file.metadata();
        let metadata = metadata
            .map_err(|source| failed(OperationKind::Flush, ByteRange::new(0, 0), source))?;
        if metadata.len() < self.geometry.size {
            self.cut_off.store(true, Ordering::Relaxed);
        }
        self.check_whole()?;
        match self.named && !system::has_name(&metadata) {
            true => Err(BlockError::Removed),
            false => Ok(()),
        }
    }

    pub(super) fn discard(&self, range: ByteRange) -> Result<(), BlockError> {
        self.writable()?;
        let Some(_) = self.geometry.discard_granularity else {
            return Err(BlockError::Unsupported {
                operation: OperationKind::Discard,
            });
        };
        let range = self.geometry.check(range.offset, range.length)?;
        if range.length == 0 {
            return Ok(());
        }
        loop {
            match system::release(&self.file, self.kind, range) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(failed(OperationKind::Discard, range, source)),
                Ok(()) => return Ok(()),
            }
        }
    }

    pub(crate) fn carry_out(&self, request: &mut Request) -> Result<(), BlockError> {
        match request.operation {
            Operation::Read => self.read_at(request.offset, &mut request.buffer),
            Operation::Write => self.write_at(request.offset, &request.buffer),
            Operation::Flush => self.flush(),
            Operation::Discard { length } => self.discard(ByteRange::new(request.offset, length)),
        }
    }

    /// The same for a thread of a queue, which may need a handle of its own.
    pub(super) fn for_a_thread(self: &Arc<Self>) -> io::Result<Arc<Self>> {
        let file = system::for_a_thread(&self.file, self.write, self.direct)?;
        Ok(match file {
            None => Arc::clone(self),
            Some(file) => Arc::new(Self {
                file: Arc::new(file),
                cut_off: Arc::clone(&self.cut_off),
                ..**self
            }),
        })
    }

    fn writable(&self) -> Result<(), BlockError> {
        if self.write {
            self.check_whole()
        } else {
            Err(BlockError::ReadOnly)
        }
    }

    /// A write behind the end of a file that was cut off would make it longer again,
    /// with zeros where data were.
    fn check_whole(&self) -> Result<(), BlockError> {
        match self.cut_off.load(Ordering::Relaxed) {
            true => Err(BlockError::CutOff {
                size: self.geometry.size,
            }),
            false => Ok(()),
        }
    }

    /// Whether the system can transfer to or from this memory itself.
    fn reachable(&self, memory: *const u8) -> bool {
        !self.direct || (memory as usize).is_multiple_of(self.memory_alignment)
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        if self.reachable(into.as_ptr()) {
            return read_exact_at(&self.file, into, offset);
        }
        let mut bounce = AlignedBuffer::new(into.len().min(BOUNCE));
        let mut at = offset;
        for part in into.chunks_mut(BOUNCE) {
            let bounce = &mut bounce[..part.len()];
            read_exact_at(&self.file, bounce, at)?;
            part.copy_from_slice(bounce);
            at += part.len() as u64;
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if self.reachable(data.as_ptr()) {
            return write_all_at(&self.file, data, offset);
        }
        let mut bounce = AlignedBuffer::new(data.len().min(BOUNCE));
        let mut at = offset;
        for part in data.chunks(BOUNCE) {
            let bounce = &mut bounce[..part.len()];
            bounce.copy_from_slice(part);
            write_all_at(&self.file, bounce, at)?;
            at += part.len() as u64;
        }
        Ok(())
    }

    /// All of `range` as stored: this system reports no holes.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn extents(&self, range: ByteRange) -> Result<Vec<crate::Extent>, BlockError> {
        Ok(vec![crate::Extent { range, hole: false }])
    }
}

/// The interface for the ring.
#[cfg(target_os = "linux")]
impl Shared {
    /// The check that a queued request passes before anyone touches it.
    pub(crate) fn admit(&self, request: &Request) -> Result<ByteRange, BlockError> {
        if matches!(
            request.operation,
            Operation::Write | Operation::Discard { .. }
        ) {
            self.writable()?;
        }
        self.geometry.check_request(request)
    }

    pub(crate) fn is_block_device(&self) -> bool {
        self.kind == PathKind::BlockDevice
    }
}

fn failed(operation: OperationKind, range: ByteRange, source: io::Error) -> BlockError {
    BlockError::Io {
        operation,
        offset: range.offset,
        length: range.length,
        source,
    }
}
