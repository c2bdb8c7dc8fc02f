//! System-specific access to files, and the properties that each system reports about them.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(super) use linux::*;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub(super) use windows::*;

#[cfg(not(any(target_os = "linux", windows)))]
mod unix;
#[cfg(not(any(target_os = "linux", windows)))]
pub(super) use unix::*;

/// The alignment that a system reports for requests around its cache.
#[allow(dead_code, reason = "not every system says all of it")]
pub(super) enum Alignment {
    /// They must be multiples of these, in memory and in the file.
    Known { memory: u32, offset: u32 },
    /// It has to be tried.
    Unknown,
    /// There is no way around.
    Impossible,
}
