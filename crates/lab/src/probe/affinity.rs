//! Which core a thread runs on.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Keeps the calling thread on the `nth` of the cores it may use, counted
/// around; it stays where it is where the kernel does not allow that.
pub fn pin_to_core(nth: u32) {
    let Ok(allowed) = sched_getaffinity(None) else {
        return;
    };
    let cores: Vec<usize> = (0..CpuSet::MAX_CPU)
        .filter(|&core| allowed.is_set(core))
        .collect();
    let Some(core) = cores.get(nth as usize % cores.len().max(1)) else {
        return;
    };
    let mut one = CpuSet::new();
    one.set(*core);
    // An unpinned thread measures the same thing, less steadily.
    let _ = sched_setaffinity(None, &one);
}
