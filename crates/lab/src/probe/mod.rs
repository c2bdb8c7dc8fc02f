//! The facts that the machine reports about itself: processor, memory, kernel,
//! storage.
//!
//! On Linux this module reads `/proc` and `/sys`, and asks file systems for their space. Only
//! `zfs` says whether a dataset of ZFS is encrypted. On other systems this module asks `sysinfo`.
//! A fact that is not available stays `None`.

mod capability;
mod host;
mod site;
mod usage;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as system;
#[cfg(target_os = "linux")]
pub use linux::{Pace, Seen, on_one_core};

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(not(target_os = "linux"))]
use elsewhere as system;

pub use capability::Capability;
pub use host::host;
pub use site::{Site, SiteKind};
pub use system::{
    available_memory, blocks, capabilities, describe, pin_to_core, places, total_memory,
};
pub use usage::{CpuTimes, StealMeter};

/// The blocks of a disk, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// Bytes that it writes whole.
    pub physical: Option<u64>,
    /// Whether it takes discards.
    pub discards: Option<bool>,
}
