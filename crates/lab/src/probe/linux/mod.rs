//! Linux: `/proc` and `/sys`.

mod affinity;
mod capability;
mod host;
mod mounts;
mod pace;
mod places;
mod storage;
mod usage;

pub use affinity::{on_one_core, pin_to_core};
pub use capability::capabilities;
pub(super) use host::facts;
pub use host::{available_memory, total_memory};
pub use pace::{Pace, Seen};
pub use places::places;
pub use storage::{blocks, describe};
pub(super) use usage::cpu_times;
