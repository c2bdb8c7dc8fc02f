//! What each system tells about a file, and how it is reached there.

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

/// What a system says of requests that go around its cache.
#[allow(dead_code, reason = "not every system says all of it")]
pub(super) enum Alignment {
    /// They must be multiples of these, in memory and in the file.
    Known { memory: u32, offset: u32 },
    /// It has to be tried.
    Unknown,
    /// There is no way around.
    Impossible,
}
