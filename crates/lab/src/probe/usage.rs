//! CPU time: of this process, and stolen from this machine.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use std::fs;
use std::time::Duration;

/// CPU time of this process, all threads, kernel workers for it included.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuTimes {
    /// In user space.
    pub user: Duration,
    /// In the kernel.
    pub sys: Duration,
}

impl CpuTimes {
    /// Reads the counters; some kernels advance them in ticks of 1 to 10 ms,
    /// so sum over many operations. `None` where they cannot be read.
    pub fn now() -> Option<Self> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        // The command name may hold blanks and brackets: fields count from behind it.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let tick = 1.0 / rustix::param::clock_ticks_per_second() as f64;
        let mut time = || -> Option<Duration> {
            Some(Duration::from_secs_f64(
                fields.next()?.parse::<u64>().ok()? as f64 * tick,
            ))
        };
        Some(Self {
            user: time()?,
            sys: time()?,
        })
    }

    /// Reads the counters of this process and of the children that it has waited
    /// for, in microseconds: their sum is as exact; how it is split into user and
    /// system is known in the kernel's ticks only. `None` where they cannot be read.
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

    /// The difference to an earlier reading.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            sys: self.sys.saturating_sub(earlier.sys),
        }
    }
}

/// Measures which share of the machine's CPU time a hypervisor took away.
#[derive(Debug)]
pub struct StealMeter {
    start: Option<(u64, u64)>,
}

impl StealMeter {
    /// Starts measuring.
    pub fn start() -> Self {
        Self { start: read() }
    }

    /// Stolen ÷ all CPU time since the start, 0 to 1; `None` where the kernel does not say.
    pub fn share(&self) -> Option<f64> {
        let ((stolen, all), (stolen_now, all_now)) = (self.start?, read()?);
        let elapsed = all_now.checked_sub(all)?;
        (elapsed > 0).then(|| stolen_now.saturating_sub(stolen) as f64 / elapsed as f64)
    }
}

/// (stolen, all) ticks since boot, over all processors.
fn read() -> Option<(u64, u64)> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let fields: Vec<u64> = stat
        .lines()
        .next()?
        .split_whitespace()
        .skip(1)
        .map_while(|field| field.parse().ok())
        .collect();
    // user nice system idle iowait irq softirq steal; guest time is within user.
    Some((*fields.get(7)?, fields.iter().take(8).sum()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_grows_with_work() {
        let before = CpuTimes::now().unwrap();
        let mut x = 1_u64;
        for i in 0..60_000_000_u64 {
            x = std::hint::black_box(x.wrapping_mul(i | 1));
        }
        let spent = CpuTimes::now().unwrap().since(before);
        assert!(spent.user > Duration::ZERO, "{x} {spent:?}");
    }

    #[test]
    fn stolen_time_is_a_share() {
        let meter = StealMeter::start();
        std::thread::sleep(Duration::from_millis(50));
        if let Some(share) = meter.share() {
            assert!((0.0..=1.0).contains(&share));
        }
    }
}
