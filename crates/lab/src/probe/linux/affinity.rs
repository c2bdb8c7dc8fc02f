//! Which core a thread runs on.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Keeps the calling thread on the `nth` of the cores it may use, modulo their
/// number. If the kernel does not allow that, the thread is not pinned.
pub fn pin_to_core(nth: u32) {
    // An unpinned thread measures the same thing, less steadily.
    let _ = stay_on_core(nth);
}

/// The same; whether it is kept there.
pub(super) fn stay_on_core(nth: u32) -> bool {
    let Ok(allowed) = sched_getaffinity(None) else {
        return false;
    };
    let cores: Vec<usize> = (0..CpuSet::MAX_CPU)
        .filter(|&core| allowed.is_set(core))
        .collect();
    let Some(core) = cores.get(nth as usize % cores.len().max(1)) else {
        return false;
    };
    sched_setaffinity(None, &only(*core)).is_ok()
}

/// Starts processes that stay on the calling thread's current core. That thread
/// itself may still use all of its cores.
pub fn on_one_core<T>(start: impl FnOnce() -> T) -> T {
    let allowed = sched_getaffinity(None);
    let _ = sched_setaffinity(None, &only(sched_getcpu()));
    let started = start();
    if let Ok(allowed) = allowed {
        let _ = sched_setaffinity(None, &allowed);
    }
    started
}

fn only(core: usize) -> CpuSet {
    let mut one = CpuSet::new();
    one.set(core);
    one
}
