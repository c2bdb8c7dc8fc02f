//! [`BlockDevice`]: the one interface of everything that holds bytes.

use crate::signature::Content;
use crate::{BlockError, ByteRange, Extent, OperationKind, Queue, QueueOptions};

/// Sizes and granularities of a device, all in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Usable size; a multiple of `logical_block`.
    pub size: u64,
    /// Offsets and lengths of requests are multiples of this (a power of two, ≥ 512).
    pub logical_block: u32,
    /// Requests aligned to this avoid read-modify-write inside the device.
    pub physical_block: u32,
    /// Smallest unit that discard frees; `None` where discard is not supported.
    pub discard_granularity: Option<u32>,
    /// Whether what was discarded reads as zeros until it is written again.
    pub discard_zeroes: bool,
}

/// A place where bytes live: a disk, a file, memory, or a device over a device.
///
/// Offsets and lengths are bytes and multiples of
/// [`Geometry::logical_block`]; anything else is
/// [`BlockError::Misaligned`], anything beyond the end
/// [`BlockError::OutOfRange`]. Encryption, delay, fault injection and
/// simulated drives are all devices over devices.
pub trait BlockDevice: Send + Sync {
    /// Sizes and granularities; constant for the life of the device.
    fn geometry(&self) -> Geometry;

    /// Fills `into` from `offset`.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError>;

    /// Stores `data` at `offset`; durable only after [`flush`](Self::flush).
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError>;

    /// Returns when everything written before is durable.
    fn flush(&self) -> Result<(), BlockError>;

    /// Tells the device that the range holds nothing of value. Its content is
    /// undefined afterwards, but for [`Geometry::discard_zeroes`].
    fn discard(&self, range: ByteRange) -> Result<(), BlockError>;

    /// Opens an asynchronous queue for the calling thread.
    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError>;

    /// Keeps other programs from changing a header here, where they take a lock for that and this
    /// device shares it; or lets them again.
    ///
    /// # Errors
    /// [`BlockError::InUse`] where another program does not let go of the lock.
    fn keep_header(&self, kept: bool) -> Result<(), BlockError> {
        let _ = kept;
        Ok(())
    }

    /// What it holds, if it may be overwritten: of a file everything that is stored, of anything
    /// else samples.
    fn content(&self) -> Result<Content, BlockError> {
        Content::sampled(self.geometry().size, |offset, into| {
            self.read_at(offset, into)
        })
    }

    /// The stored extents and holes of `range`, which may be any bytes of the device, in order and
    /// without gaps. What is not known counts as stored.
    fn extents(&self, range: ByteRange) -> Result<Vec<Extent>, BlockError> {
        Ok(vec![Extent { range, hole: false }])
    }

    /// Reserves the room that writing to `range` will need, so that a full disk is found before
    /// anything is overwritten. The content stays. Nothing is reserved where that is not possible.
    fn reserve(&self, _: ByteRange) -> Result<(), BlockError> {
        Ok(())
    }

    /// Bytes as there are now. The last block of a file may be incomplete, and other programs may
    /// have changed its size.
    fn length(&self) -> Result<u64, BlockError> {
        Ok(self.geometry().size)
    }

    /// Whether its length can be changed.
    fn is_resizable(&self) -> bool {
        false
    }

    /// Makes it longer or shorter, on the disk too. [`BlockError::Unsupported`] if that is not
    /// possible, or if it has several owners.
    fn set_len(&mut self, _: u64) -> Result<(), BlockError> {
        Err(BlockError::Unsupported {
            operation: OperationKind::Write,
        })
    }
}

/// A pointer to a device is a device, so stacks may own or borrow what they
/// stand on.
macro_rules! forward {
    ($($pointer:ty, |$this:ident| $owned:expr;)+) => {$(
        impl<T: BlockDevice + ?Sized> BlockDevice for $pointer {
            fn geometry(&self) -> Geometry {
                (**self).geometry()
            }
            fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
                (**self).read_at(offset, into)
            }
            fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
                (**self).write_at(offset, data)
            }
            fn flush(&self) -> Result<(), BlockError> {
                (**self).flush()
            }
            fn discard(&self, range: ByteRange) -> Result<(), BlockError> {
                (**self).discard(range)
            }
            fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
                (**self).queue(options)
            }
            fn keep_header(&self, kept: bool) -> Result<(), BlockError> {
                (**self).keep_header(kept)
            }
            fn content(&self) -> Result<Content, BlockError> {
                (**self).content()
            }
            fn extents(&self, range: ByteRange) -> Result<Vec<Extent>, BlockError> {
                (**self).extents(range)
            }
            fn reserve(&self, range: ByteRange) -> Result<(), BlockError> {
                (**self).reserve(range)
            }
            fn length(&self) -> Result<u64, BlockError> {
                (**self).length()
            }
            fn is_resizable(&self) -> bool {
                (**self).is_resizable()
            }
            fn set_len(&mut self, bytes: u64) -> Result<(), BlockError> {
                let $this = self;
                let owned: Option<&mut T> = $owned;
                match owned {
                    Some(device) => device.set_len(bytes),
                    None => Err(BlockError::Unsupported {
                        operation: OperationKind::Write,
                    }),
                }
            }
        }
    )+};
}

forward! {
    &T, |_this| None;
    Box<T>, |this| Some(&mut **this);
    std::sync::Arc<T>, |this| std::sync::Arc::get_mut(this);
}
