//! Virtual time: nanoseconds that pass for a thread when something on a
//! simulated drive keeps it waiting, and at no other time.

use std::cell::Cell;

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(0) };
}

/// The calling thread's virtual time, nanoseconds; every thread begins at 0.
pub fn now() -> u64 {
    NOW.get()
}

/// Lets time pass until `time`, where that is still to come.
pub(crate) fn pass_until(time: u64) {
    NOW.set(NOW.get().max(time));
}
