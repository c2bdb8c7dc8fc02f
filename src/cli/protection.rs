//! What keeps others from the memory of this program, in which keys are.

use rustix::process::{
    DumpableBehavior, Resource, dumpable_behavior, getrlimit, set_dumpable_behavior, setrlimit,
};

/// From now on no core is dumped, and no process of the same user may read this one's
/// memory, attach to it, or open what it has open: only root may. What it starts is as
/// open as ever.
pub fn begin() {
    // Neither is ever refused to a process about itself; `doctor` looks.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let mut cores = getrlimit(Resource::Core);
    cores.current = Some(0);
    let _ = setrlimit(Resource::Core, cores);
}

/// Whether that is so.
pub fn is_on() -> bool {
    let closed = dumpable_behavior().is_ok_and(|now| now == DumpableBehavior::NotDumpable);
    closed && getrlimit(Resource::Core).current == Some(0)
}

/// Bytes that the system lets this process lock; `None` is any number.
pub fn lockable() -> Option<u64> {
    getrlimit(Resource::Memlock).current
}
