//! Page-aligned memory.

#[cfg(target_os = "linux")]
use rustix::mm::Advice;
use std::alloc::{self, Layout};
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

const TOO_LARGE: &str = "buffers are smaller than half the address space";

/// Allocations of at least this size, in bytes, lie on huge pages if the system has them. A disk
/// then gets a request in few pieces, and always in equally many. On small pages the same request
/// sometimes took 10 to 40 % longer, depending on the memory that the previous allocation had left.
const HUGE: usize = 2 << 20;

/// Zero-initialised memory on a page boundary: an allocation or a part of one.
pub(crate) struct Pages {
    /// Aligned; dangling when `length` is 0.
    start: NonNull<u8>,
    length: usize,
    /// The allocation that this is a part of; `None` if `length` is 0.
    whole: Option<Arc<Allocation>>,
}

// SAFETY: `Pages` is alone in having its memory, as `Box<[u8]>` is; `&Pages` only
// reads it.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    pub(crate) const ALIGNMENT: usize = 4096;

    pub(crate) fn zeroed(length: usize) -> Self {
        Self::several(1, length).pop().unwrap_or_default()
    }

    /// `count` of them side by side, so that many small ones lie on huge pages, too.
    pub(crate) fn several(count: usize, length: usize) -> Vec<Self> {
        let distance = length.next_multiple_of(Self::ALIGNMENT);
        let all = distance.checked_mul(count).expect(TOO_LARGE);
        if all == 0 {
            return (0..count).map(|_| Self::default()).collect();
        }
        // The last one needs no more than its length.
        let whole = Arc::new(Allocation::zeroed(all - distance + length));
        let parts = (0..count).map(|index| Self {
            // SAFETY: it is within the allocation, whose length is checked above.
            start: unsafe { whole.start.add(index * distance) },
            length,
            whole: Some(Arc::clone(&whole)),
        });
        parts.collect()
    }

    /// Gives away what is behind the first `at` bytes.
    ///
    /// # Panics
    /// Where `at` is behind the end, or on no page boundary.
    pub(crate) fn split_off(&mut self, at: usize) -> Self {
        let length = self.length.checked_sub(at).expect("a part of the memory");
        assert!(at.is_multiple_of(Self::ALIGNMENT), "a page boundary");
        self.length = at;
        Self {
            // SAFETY: it is within the allocation, or one behind its last byte.
            start: unsafe { self.start.add(at) },
            length,
            whole: self.whole.clone(),
        }
    }

    /// Takes what was given away.
    ///
    /// # Errors
    /// Gives `next` back where it is not the memory behind this one, in the same allocation.
    pub(crate) fn append(&mut self, next: Self) -> Result<(), Self> {
        let allocation = |pages: &Self| pages.whole.as_ref().map(Arc::as_ptr);
        // SAFETY: the end of what is in an allocation is in it or one behind its last byte.
        let end = unsafe { self.start.add(self.length) };
        if allocation(self) != allocation(&next) || end != next.start {
            return Err(next);
        }
        self.length += next.length;
        Ok(())
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `start` is valid for `length` initialised bytes, which are nobody
        // else's, or dangling and aligned for 0; they live as long as `self`, and `&self`
        // excludes writers.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }

    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; `&mut self` excludes everyone else.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl Default for Pages {
    fn default() -> Self {
        Self {
            start: NonNull::without_provenance(
                const { std::num::NonZeroUsize::new(Self::ALIGNMENT).unwrap() },
            ),
            length: 0,
            whole: None,
        }
    }
}

/// One allocation, released with the last of its parts.
struct Allocation {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: nothing reads or writes through it: its parts do, each its own bytes.
unsafe impl Send for Allocation {}
// SAFETY: as above.
unsafe impl Sync for Allocation {}

impl Allocation {
    /// Zeros; `length` is not 0.
    fn zeroed(length: usize) -> Self {
        let alignment = match length {
            HUGE.. => HUGE,
            _ => Pages::ALIGNMENT,
        };
        let layout = Layout::from_size_align(length, alignment).expect(TOO_LARGE);
        // SAFETY: the layout's size is not 0.
        let start = unsafe { alloc::alloc(layout) };
        let Some(start) = NonNull::new(start) else {
            alloc::handle_alloc_error(layout)
        };
        #[cfg(target_os = "linux")]
        if alignment == HUGE && !cfg!(miri) {
            // A system without huge pages gives small ones. Miri does not know the call.
            // SAFETY: the range is the allocation's, and its bytes stay what they are.
            let _ = unsafe {
                rustix::mm::madvise(start.as_ptr().cast(), length, Advice::LinuxHugepage)
            };
        }
        // SAFETY: `start` is valid for writes of `length` bytes.
        unsafe { start.write_bytes(0, length) };
        Self { start, layout }
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // SAFETY: allocated in `zeroed` with this very layout, released once, and no
        // part of it is left.
        unsafe { alloc::dealloc(self.start.as_ptr(), self.layout) }
    }
}
