//! CPU time: of this process, and stolen from this machine.

use super::system;
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
    /// Reads the counters; some kernels advance them in ticks of 1 to 16 ms, so sum over many
    /// operations. `None` if they cannot be read.
    pub fn now() -> Option<Self> {
        system::cpu_times()
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

    /// Stolen ÷ all CPU time since the start, 0 to 1; `None` if the kernel does not report it.
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
