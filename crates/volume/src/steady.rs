//! [`Steady`]: a volume that is written only as long as its header says what it said when the
//! volume was opened.
//!
//! Another program may reencrypt or remove the volume meanwhile: cryptsetup, which takes other locks
//! than this crate, or a program on another machine. What is written afterwards by the old key would
//! be noise.

use crate::{LuksHeader, unaligned};
use block::layer::Guard;
use block::{BlockDevice, BlockError, ByteRange, OperationKind};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a header says of the data: keys, places and ciphers.
#[derive(Clone, Debug)]
pub struct Said {
    /// Its first bytes, with a counter of changes or a checksum.
    start: Vec<u8>,
    of_data: String,
    /// Whether it is on a device of its own.
    is_apart: bool,
}

/// Bytes of `start`.
const START: u64 = 4096;

impl Said {
    /// What the header on `device` says; nothing if it cannot be read.
    pub(crate) fn by(device: &dyn BlockDevice, is_apart: bool) -> Option<Self> {
        Some(Self {
            start: unaligned::read_up_to(device, 0, START).ok()?.to_vec(),
            of_data: LuksHeader::read(device).ok()?.of_data(),
            is_apart,
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
/// The header is read at every flush, and before the first write after one; from that write until
/// the flush has ended, no other program can change it. From the first change on, writes, discards
/// and flushes are refused, and reads pass.
pub(crate) struct Steady<H: BlockDevice> {
    header: H,
    said: Said,
    now: Mutex<Now>,
}

#[derive(Default)]
struct Now {
    /// Something was written since the last flush began.
    written: bool,
    /// Writes and discards that have not ended.
    in_flight: u64,
    /// The header is kept from changes.
    kept: bool,
    changed: bool,
}

impl<H: BlockDevice> Steady<H> {
    /// As long as `header` says what it `said`.
    pub(crate) fn new(header: H, said: Said) -> Self {
        Self {
            header,
            said,
            now: Mutex::default(),
        }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets other programs change the header, if nothing is being written.
    fn let_go(&self, now: &mut Now) {
        if now.kept && !now.written && now.in_flight == 0 {
            // It only ever fails to take a lock.
            let _ = self.header.keep_header(false);
            now.kept = false;
        }
    }
}

impl<H: BlockDevice> Guard for Steady<H> {
    fn check(&self, operation: OperationKind, _: ByteRange) -> Result<(), BlockError> {
        let mut now = self.now();
        let writes = match operation {
            OperationKind::Read => return Ok(()),
            OperationKind::Flush => false,
            OperationKind::Write | OperationKind::Discard => true,
        };
        if writes && !now.kept {
            self.header.keep_header(true)?;
            now.kept = true;
        }
        let looks = !writes || !now.written;
        now.written = writes;
        now.changed |= looks && !self.said.holds(&self.header);
        if now.changed {
            now.written = false;
            self.let_go(&mut now);
            return Err(BlockError::Changed { operation });
        }
        now.in_flight += u64::from(writes);
        if operation == OperationKind::Flush && self.said.is_apart {
            // What is written is lost with a header whose file is removed, or replaced.
            drop(now);
            self.header.flush()?;
        }
        Ok(())
    }

    fn ended(&self, operation: OperationKind) {
        let mut now = self.now();
        now.in_flight -= u64::from(operation != OperationKind::Flush);
        self.let_go(&mut now);
    }
}
