//! UNSAFE ROOM: memory that keeps what is freed, and the stack below.
//!
//! # Safety case
//!
//! [`Arena`] is a global allocator. It passes everything on to the system's, except what a thread
//! asks for that is inside [`recorded`]: that gets the next bytes of one static array, aligned as
//! asked, from a counter that only grows, so no two allocations overlap. They are never handed out
//! again before the next call of [`recorded`] starts from the beginning, and [`Recording`] borrows
//! nothing from it: it copies. A lock lets one thread in at a time. A closure must free or leak all
//! memory that it allocates. No memory may leave it, which its result type `()` ensures.
//!
//! The stack is cleared and copied by assembly, because to the language there
//! is nothing below the stack pointer. The compiler keeps nothing there across
//! a block of assembly that may push (no `nostack`), and [`BELOW`] is a small
//! part of the stack that threads of the test harness have.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Bytes for what one recording allocates.
const ARENA: usize = 4 << 20;

/// Bytes of stack that are looked at.
const BELOW: usize = 256 << 10;

/// The allocator.
pub struct Arena {
    bytes: UnsafeCell<[u8; ARENA]>,
    used: AtomicUsize,
    /// Where the stack is copied to: a place of its own for every recording
    /// would be a difference between them.
    stack: UnsafeCell<[u8; BELOW]>,
}

// SAFETY: `stack` is only touched under the lock of `recorded`; `bytes` is only written through allocations, which do not overlap,
// and read under the lock of `recorded`.
unsafe impl Sync for Arena {}

#[global_allocator]
static ARENA_OF_TESTS: Arena = Arena {
    bytes: UnsafeCell::new([0; ARENA]),
    used: AtomicUsize::new(0),
    stack: UnsafeCell::new([0; BELOW]),
};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

thread_local! {
    static RECORDING: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: the module's safety case.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !RECORDING.get() {
            // SAFETY: the caller's promise is passed on.
            return unsafe { System.alloc(layout) };
        }
        let base = self.bytes.get().cast::<u8>();
        let free = base.addr() + self.used.load(Ordering::Relaxed);
        let start = free.next_multiple_of(layout.align()) - base.addr();
        let end = start + layout.size();
        if end > ARENA {
            return std::ptr::null_mut();
        }
        self.used.store(end, Ordering::Relaxed);
        // SAFETY: `start` is within the array.
        unsafe { base.add(start) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let base = self.bytes.get().addr();
        if !(base..base + ARENA).contains(&pointer.addr()) {
            // SAFETY: it came from the system's allocator.
            unsafe { System.dealloc(pointer, layout) }
        }
    }
}

/// The memory that a closure left behind.
pub struct Recording {
    /// All that it ever had on the heap, in the order in which it asked.
    pub heap: Vec<u8>,
    /// The stack that it used.
    pub stack: Vec<u8>,
}

/// Runs `work` on cleared memory; it gets a function that copies the heap as it is. If a caller
/// runs the same work twice from the same place, everything is at the same addresses.
#[inline(never)]
pub fn recorded(work: impl FnOnce(&dyn Fn() -> Vec<u8>)) -> Recording {
    // A failed test spoils nothing for the others.
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: nobody is recording, so the array has no live allocation.
    unsafe {
        ARENA_OF_TESTS
            .bytes
            .get()
            .cast::<u8>()
            .write_bytes(0, ARENA)
    };
    ARENA_OF_TESTS.used.store(0, Ordering::Relaxed);
    clear_below();
    RECORDING.set(true);
    work(&heap);
    RECORDING.set(false);
    copy_below();
    let recording = Recording {
        heap: heap(),
        // SAFETY: this thread has the lock, and `copy_below` is done.
        stack: unsafe { (*ARENA_OF_TESTS.stack.get()).to_vec() },
    };
    drop(guard);
    recording
}

/// A copy of the heap as it is.
fn heap() -> Vec<u8> {
    let recording = RECORDING.replace(false);
    let used = ARENA_OF_TESTS.used.load(Ordering::Relaxed);
    let mut copy = vec![0; used];
    // SAFETY: `used` bytes of the array are initialised, and nobody writes to
    // them: the only thread that may is this one.
    unsafe {
        let base = ARENA_OF_TESTS.bytes.get().cast::<u8>();
        base.copy_to_nonoverlapping(copy.as_mut_ptr(), used);
    }
    RECORDING.set(recording);
    copy
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn clear_below() {
    // SAFETY: the module's safety case.
    unsafe {
        std::arch::asm!(
            "lea rdi, [rsp - {below}]",
            "rep stosb",
            below = const BELOW,
            inout("rcx") BELOW => _,
            out("rdi") _,
            in("al") 0_u8,
        );
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn copy_below() {
    // SAFETY: the module's safety case; `recorded` has the lock.
    unsafe {
        std::arch::asm!(
            "lea rsi, [rsp - {below}]",
            "rep movsb",
            below = const BELOW,
            inout("rcx") BELOW => _,
            inout("rdi") ARENA_OF_TESTS.stack.get() => _,
            out("rsi") _,
        );
    }
}

/// The stack is looked at on x86-64 only.
#[cfg(not(target_arch = "x86_64"))]
fn clear_below() {}

#[cfg(not(target_arch = "x86_64"))]
fn copy_below() {}
