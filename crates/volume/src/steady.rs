//! [`Steady`]: a volume that is written only as long as its header says what it said when the
//! volume was opened.
//!
//! Another program may reencrypt or remove the volume meanwhile: cryptsetup, which takes other locks
//! than this crate, or a program on another machine. What is written afterwards by the old key would
//! be noise.

use crate::{LuksHeader, unaligned};
use block::{
    BlockDevice, BlockError, ByteRange, Completion, Geometry, OperationKind, Queue, QueueOptions,
    Request, Wait,
};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a header says of the data: keys, places and ciphers.
#[derive(Clone, Debug)]
pub struct Said {
    /// Its first bytes, with a counter of changes or a checksum.
    start: Vec<u8>,
    of_data: String,
}

/// Bytes of `start`.
const START: u64 = 4096;

impl Said {
    /// What the header on `device` says; nothing if it cannot be read.
    pub(crate) fn by(device: &dyn BlockDevice) -> Option<Self> {
        Some(Self {
            start: unaligned::read_up_to(device, 0, START).ok()?.to_vec(),
            of_data: LuksHeader::read(device).ok()?.of_data(),
        })
    }

    /// Whether the header on `device` says the same of the data now.
    fn holds(&self, device: &dyn BlockDevice) -> bool {
        let start = unaligned::read_up_to(device, 0, START);
        start.is_ok_and(|start| *start == *self.start)
            || LuksHeader::read(device).is_ok_and(|now| now.of_data() == self.of_data)
    }
}

/// A volume, and the device of its header.
///
/// The header is read at every flush, and before the first write after one. From the first change
/// on, writes, discards and flushes are refused, and reads pass.
pub(crate) struct Steady<V, H> {
    volume: V,
    header: H,
    said: Said,
    /// Something was written since the last look.
    written: AtomicBool,
    changed: AtomicBool,
}

impl<V: BlockDevice, H: BlockDevice> Steady<V, H> {
    /// `volume` as long as `header` says what it `said`.
    pub(crate) fn new(volume: V, header: H, said: Said) -> Self {
        Self {
            volume,
            header,
            said,
            written: AtomicBool::new(false),
            changed: AtomicBool::new(false),
        }
    }

    fn check(&self, operation: OperationKind) -> Result<(), BlockError> {
        let look = match operation {
            OperationKind::Read => return Ok(()),
            OperationKind::Flush => {
                self.written.store(false, Ordering::Relaxed);
                true
            }
            OperationKind::Write | OperationKind::Discard => {
                !self.written.swap(true, Ordering::Relaxed)
            }
        };
        if look && !self.said.holds(&self.header) {
            self.changed.store(true, Ordering::Relaxed);
        }
        match self.changed.load(Ordering::Relaxed) {
            true => Err(BlockError::Changed { operation }),
            false => Ok(()),
        }
    }
}

impl<V: BlockDevice, H: BlockDevice> BlockDevice for Steady<V, H> {
    fn geometry(&self) -> Geometry {
        self.volume.geometry()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        self.volume.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        self.check(OperationKind::Write)?;
        self.volume.write_at(offset, data)
    }

    fn flush(&self) -> Result<(), BlockError> {
        self.check(OperationKind::Flush)?;
        self.volume.flush()
    }

    fn discard(&self, range: ByteRange) -> Result<(), BlockError> {
        self.check(OperationKind::Discard)?;
        self.volume.discard(range)
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        Ok(Box::new(SteadyQueue {
            depth: options.checked_depth()?,
            below: self.volume.queue(options)?,
            device: self,
            refused: VecDeque::new(),
        }))
    }
}

struct SteadyQueue<'a, V, H> {
    below: Box<dyn Queue + 'a>,
    device: &'a Steady<V, H>,
    depth: u32,
    refused: VecDeque<Completion>,
}

impl<V: BlockDevice, H: BlockDevice> Queue for SteadyQueue<'_, V, H> {
    fn submit(&mut self, request: Request) {
        let checked = match self.in_flight() >= self.depth {
            true => Err(BlockError::QueueFull { depth: self.depth }),
            false => self.device.check(request.operation.kind()),
        };
        match checked {
            Ok(()) => self.below.submit(request),
            Err(error) => self.refused.push_back(Completion {
                request,
                result: Err(error),
            }),
        }
    }

    fn reap(&mut self, wait: Wait) -> Option<Completion> {
        self.refused.pop_front().or_else(|| self.below.reap(wait))
    }

    fn in_flight(&self) -> u32 {
        self.below.in_flight() + self.refused.len() as u32
    }
}
