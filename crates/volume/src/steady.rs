//! [`Steady`]: a volume that is written only as long as its header says what it said when the
//! volume was opened.
//!
//! Another program may reencrypt or remove the volume meanwhile: cryptsetup, which takes other locks
//! than this crate, or a program on another machine. What is written afterwards by the old key would
//! be noise.

use crate::{LuksHeader, unaligned};
use block::layer::Guard;
use block::{BlockDevice, BlockError, ByteRange, OperationKind};
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

/// The guard of a volume, which has the device of its header.
///
/// The header is read at every flush, and before the first write after one. From the first change
/// on, writes, discards and flushes are refused, and reads pass.
pub(crate) struct Steady<H> {
    header: H,
    said: Said,
    /// Something was written since the last look.
    written: AtomicBool,
    changed: AtomicBool,
}

impl<H: BlockDevice> Steady<H> {
    /// As long as `header` says what it `said`.
    pub(crate) fn new(header: H, said: Said) -> Self {
        Self {
            header,
            said,
            written: AtomicBool::new(false),
            changed: AtomicBool::new(false),
        }
    }
}

impl<H: BlockDevice> Guard for Steady<H> {
    fn check(&self, operation: OperationKind, _: ByteRange) -> Result<(), BlockError> {
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
