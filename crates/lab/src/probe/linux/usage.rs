//! CPU time of this process, as Linux counts it.

use crate::probe::CpuTimes;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use std::fs;
use std::time::Duration;

/// CPU time of this process, in the kernel's ticks.
pub(in crate::probe) fn cpu_times() -> Option<CpuTimes> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The command name may hold blanks and brackets: fields count from behind it.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let tick = 1.0 / rustix::param::clock_ticks_per_second() as f64;
    let mut time = || -> Option<Duration> {
        Some(Duration::from_secs_f64(
            fields.next()?.parse::<u64>().ok()? as f64 * tick,
        ))
    };
    Some(CpuTimes {
        user: time()?,
        sys: time()?,
    })
}

impl CpuTimes {
    /// Reads the counters of this process and of the children that it has waited for, in
    /// microseconds. Their sum is that exact, but the split into user and system is known only in
    /// the kernel's ticks. `None` if they cannot be read.
    pub fn precise() -> Option<Self> {
        let read = |who| {
            let usage = getrusage(who).ok()?;
            let time = |value: TimeVal| {
                Duration::from_micros(value.num_microseconds().try_into().unwrap_or(0))
            };
            Some((time(usage.user_time()), time(usage.system_time())))
        };
        let own = read(UsageWho::RUSAGE_SELF)?;
        let children = read(UsageWho::RUSAGE_CHILDREN)?;
        Some(Self {
            user: own.0 + children.0,
            sys: own.1 + children.1,
        })
    }
}
