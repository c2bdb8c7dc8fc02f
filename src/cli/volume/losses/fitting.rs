//! [`Fitting`]: what a volume holds whose sectors have tags, as far as these fit.

use block::{BlockDevice, BlockError, ByteRange, Geometry, OperationKind, Queue, QueueOptions};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A view to look at, in which a sector that its tag does not fit is zeros: one damaged
/// sector must not hide all others.
pub struct Fitting<'a> {
    volume: &'a dyn BlockDevice,
    /// Whether any sector was read that its tag fits.
    fits: AtomicBool,
    /// The first sector of the others.
    first: AtomicU64,
}

impl<'a> Fitting<'a> {
    pub fn of(volume: &'a dyn BlockDevice) -> Self {
        Self {
            volume,
            fits: AtomicBool::new(false),
            first: AtomicU64::new(u64::MAX),
        }
    }

    /// The first sector that was read and does not match its tag. `None` if no sector matches,
    /// because then none was ever written.
    pub fn damaged(&self) -> Option<u64> {
        let first = self.first.load(Ordering::Relaxed);
        (first != u64::MAX && self.fits.load(Ordering::Relaxed)).then_some(first)
    }
}

impl BlockDevice for Fitting<'_> {
    fn geometry(&self) -> Geometry {
        self.volume.geometry()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        let whole = self.volume.read_at(offset, into);
        if !matches!(whole, Err(BlockError::Tampered { .. })) {
            self.fits.fetch_or(whole.is_ok(), Ordering::Relaxed);
            return whole;
        }
        let sector = self.geometry().logical_block as usize;
        for (at, into) in (offset..).step_by(sector).zip(into.chunks_mut(sector)) {
            match self.volume.read_at(at, into) {
                Ok(()) => self.fits.store(true, Ordering::Relaxed),
                Err(BlockError::Tampered { .. }) => {
                    into.fill(0);
                    self.first.fetch_min(at, Ordering::Relaxed);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn write_at(&self, _: u64, _: &[u8]) -> Result<(), BlockError> {
        Err(BlockError::ReadOnly)
    }

    fn flush(&self) -> Result<(), BlockError> {
        Ok(())
    }

    fn discard(&self, _: ByteRange) -> Result<(), BlockError> {
        Err(BlockError::ReadOnly)
    }

    fn queue(&self, _: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        Err(BlockError::Unsupported {
            operation: OperationKind::Read,
        })
    }
}
