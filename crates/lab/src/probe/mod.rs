//! What the machine says of itself: processor, memory, kernel, storage.
//!
//! Reads `/proc` and `/sys` only; whatever is not there stays `None`.

mod affinity;
mod capability;
mod host;
mod storage;
mod usage;

pub use affinity::{on_one_core, pin_to_core};
pub use capability::{Capability, capabilities};
pub use host::{available_memory, host, total_memory};
pub use storage::{Blocks, blocks, describe};
pub use usage::{CpuTimes, StealMeter};
