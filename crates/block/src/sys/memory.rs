//! Page-aligned memory.

use std::alloc::{self, Layout};
use std::ptr::NonNull;
use std::slice;

/// One zero-initialised allocation on a page boundary.
pub(crate) struct Pages {
    /// Aligned; dangling when `length` is 0.
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: `Pages` owns its memory alone, as `Box<[u8]>` does; `&Pages` only
// reads it.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    pub(crate) const ALIGNMENT: usize = 4096;

    pub(crate) fn zeroed(length: usize) -> Self {
        if length == 0 {
            return Self::default();
        }
        let layout = Self::layout(length);
        // SAFETY: the layout's size is not 0.
        let start = unsafe { alloc::alloc_zeroed(layout) };
        match NonNull::new(start) {
            Some(start) => Self { start, length },
            None => alloc::handle_alloc_error(layout),
        }
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `start` is valid for `length` initialised bytes, or dangling
        // and aligned for 0; they live as long as `self`, and `&self` excludes
        // writers.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }

    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; `&mut self` excludes everyone else.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }

    /// The same layout for the same length, on allocation and on release.
    fn layout(length: usize) -> Layout {
        Layout::from_size_align(length, Self::ALIGNMENT)
            .expect("a buffer is smaller than half the address space")
    }
}

impl Default for Pages {
    fn default() -> Self {
        Self {
            start: NonNull::without_provenance(
                const { std::num::NonZeroUsize::new(Self::ALIGNMENT).unwrap() },
            ),
            length: 0,
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if self.length > 0 {
            // SAFETY: allocated in `zeroed` with this very layout, released
            // once.
            unsafe { alloc::dealloc(self.start.as_ptr(), Self::layout(self.length)) }
        }
    }
}
