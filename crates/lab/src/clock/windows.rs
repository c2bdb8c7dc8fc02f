//! The CPU times that Windows counts for a process.

use std::time::Duration;
use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::SystemId::Threading::{GetCurrentProcess, GetProcessTimes};

/// CPU time of this process in user space and in the kernel, all threads;
/// `None` if it cannot be read.
pub(crate) fn process_times() -> Option<(Duration, Duration)> {
    let zero = FILETIME::default();
    let (mut created, mut ended, mut kernel, mut user) = (zero, zero, zero, zero);
    // SAFETY: the handle stands for this process and is never closed; the system
    // writes the four structures, which live beyond the call.
    let told = unsafe {
        GetProcessTimes(
            GetCurrentProcess(),
            &mut created,
            &mut ended,
            &mut kernel,
            &mut user,
        )
    };
    (told != 0).then(|| (duration(user), duration(kernel)))
}

/// Of a count of 100 ns.
fn duration(time: FILETIME) -> Duration {
    let units = u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
    Duration::from_nanos(units.saturating_mul(100))
}
