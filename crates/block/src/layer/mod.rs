//! Devices over devices.
//!
//! Each has the same interface below and above, owns or borrows what it stands
//! on, and does one thing.

mod concat;
mod count;
mod delay;
mod fault;
mod guarded;
mod protected;
mod record;
mod slice;
mod trace;
mod trim;
mod write_cache;

pub use concat::Concat;
pub use count::{Count, Counted};
pub use delay::Delay;
pub use fault::{Effect, Fault, Rule, Trigger};
pub use guarded::{Guard, Guarded};
pub use protected::{Protected, Protection};
pub use record::{Cut, Log, Record, Survivors};
pub use slice::Slice;
pub use trace::{Trace, TraceEntry};
pub use trim::{Trim, TrimPolicy};
pub use write_cache::WriteCache;
