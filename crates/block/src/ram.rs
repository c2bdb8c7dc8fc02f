//! [`RamDevice`]: a disk in this process's memory.

use crate::{
    AlignedBuffer, BlockDevice, BlockError, ByteRange, Geometry, InlineQueue, Part, Queue,
    QueueOptions,
};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Bytes behind one lock. A request that spans several is atomic in each, not
/// as a whole; real disks promise no more.
const STRIPE: u64 = 1 << 20;

/// A part of the disk. One that was never written holds no memory and reads as zeros.
type Stripe = RwLock<Option<AlignedBuffer>>;

/// A disk in memory: page-aligned, any size, safe to use from many threads.
///
/// Memory is taken 1 MiB at a time by the first write and given back by a discard of whole MiB.
/// [`resident`](Self::resident) takes all of it at once, so that no measurement pays for it.
/// Discarded ranges read as zeros. A flush has nothing to do.
pub struct RamDevice {
    geometry: Geometry,
    stripes: Box<[Stripe]>,
}

impl RamDevice {
    /// `size` bytes of zeros, rounded down to 512-byte blocks; takes no memory yet.
    pub fn new(size: u64) -> Self {
        let size = size & !511;
        Self {
            geometry: Geometry {
                size,
                logical_block: 512,
                physical_block: 4096,
                discard_granularity: Some(512),
                discard_zeroes: true,
            },
            stripes: (0..size.div_ceil(STRIPE))
                .map(|_| Stripe::default())
                .collect(),
        }
    }

    /// `size` bytes of zeros, all of them in memory. Aborts when memory is out.
    pub fn resident(size: u64) -> Self {
        let device = Self::new(size);
        for stripe in &device.stripes {
            // Zeroed memory may still be one shared page; a write makes it real.
            lock(stripe)
                .insert(AlignedBuffer::new(STRIPE as usize))
                .fill(0);
        }
        device
    }

    /// Calls `part` with each stripe that the range touches, the range inside
    /// the stripe, and the range inside the request.
    #[inline]
    fn each(
        &self,
        range: ByteRange,
        mut part: impl FnMut(&Stripe, std::ops::Range<usize>, std::ops::Range<usize>),
    ) {
        let mut done = 0;
        while done < range.length {
            let at = range.offset + done;
            let inside = at % STRIPE;
            let length = (STRIPE - inside).min(range.length - done);
            part(
                &self.stripes[(at / STRIPE) as usize],
                inside as usize..(inside + length) as usize,
                done as usize..(done + length) as usize,
            );
            done += length;
        }
    }
}

/// A panic while holding the lock leaves bytes behind as a torn write would,
/// so poison means nothing here.
fn lock(stripe: &Stripe) -> RwLockWriteGuard<'_, Option<AlignedBuffer>> {
    stripe.write().unwrap_or_else(PoisonError::into_inner)
}

fn share(stripe: &Stripe) -> RwLockReadGuard<'_, Option<AlignedBuffer>> {
    stripe.read().unwrap_or_else(PoisonError::into_inner)
}

impl BlockDevice for RamDevice {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        let range = self.geometry.check(offset, into.len() as u64)?;
        self.each(range, |stripe, inside, outside| match &*share(stripe) {
            Some(bytes) => into[outside].copy_from_slice(&bytes[inside]),
            None => into[outside].fill(0),
        });
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        let range = self.geometry.check(offset, data.len() as u64)?;
        self.each(range, |stripe, inside, outside| {
            lock(stripe).get_or_insert_with(|| AlignedBuffer::new(STRIPE as usize))[inside]
                .copy_from_slice(&data[outside]);
        });
        Ok(())
    }

    fn flush(&self) -> Result<(), BlockError> {
        Ok(())
    }

    fn discard(&self, range: ByteRange) -> Result<(), BlockError> {
        let range = self.geometry.check(range.offset, range.length)?;
        self.each(range, |stripe, inside, _| {
            let mut stripe = lock(stripe);
            if inside.len() as u64 == STRIPE {
                *stripe = None;
            } else if let Some(bytes) = &mut *stripe {
                bytes[inside].fill(0);
            }
        });
        Ok(())
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        Ok(Box::new(InlineQueue::open(
            self,
            options,
            Some(Part::Copy),
        )?))
    }
}
