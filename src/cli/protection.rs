//! Protection of this program's memory, which holds keys, from other processes.

use rustix::process::{
    DumpableBehavior, Resource, dumpable_behavior, getrlimit, set_dumpable_behavior, setrlimit,
};

/// From now on no core is dumped. No other process of the same user can read this one's memory,
/// attach to it, or open its files; only root can. Child processes are not protected.
pub fn begin() {
    // Neither is ever refused to a process about itself; `doctor` looks.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let mut cores = getrlimit(Resource::Core);
    cores.current = Some(0);
    let _ = setrlimit(Resource::Core, cores);
}

/// Whether the protection is on.
pub fn is_on() -> bool {
    let closed = dumpable_behavior().is_ok_and(|now| now == DumpableBehavior::NotDumpable);
    closed && getrlimit(Resource::Core).current == Some(0)
}

/// Bytes that the system lets this process lock; `None` is any number.
pub fn lockable() -> Option<u64> {
    getrlimit(Resource::Memlock).current
}
