//! The clocks: an UNSAFE ROOM.
//!
//! Safety case: the room reads the time-stamp counter and counts a chain of additions; neither
//! touches memory. On Windows it has the system write this process's times into structures of its
//! own. `rdtsc` is part of every x86-64 processor. If an operating system forbids it to user space,
//! the process faults. The counter is therefore used only if the kernel itself reports it as its
//! clock source or the processor declares it invariant.
//!
//! [`Clock`] is what the rest of the lab sees: ticks, their rate, and what a reading costs.
//! Everything measured is in ticks of one clock; seconds come from [`Clock::seconds`] at the end.

mod counter;
#[cfg(windows)]
mod windows;

#[cfg(windows)]
pub(crate) use windows::process_times;

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

/// The source of the ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The processor's invariant time-stamp counter.
    Tsc,
    /// The kernel's monotonic clock, in nanoseconds.
    Monotonic,
    /// The time of simulated drives, in nanoseconds.
    Virtual,
}

/// A calibrated clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// The source of the ticks.
    pub source: Source,
    /// Ticks a second.
    pub hz: f64,
    /// Smallest step between two readings, nanoseconds.
    pub resolution_ns: f64,
    /// Cost of one reading, nanoseconds.
    pub cost_ns: f64,
    read: fn() -> u64,
}

impl Clock {
    /// The clock of this process, calibrated at the first call (about 60 ms).
    pub fn get() -> &'static Self {
        static CLOCK: OnceLock<Clock> = OnceLock::new();
        CLOCK.get_or_init(Self::calibrate)
    }

    /// A clock of virtual nanoseconds, which `read` counts and which cost nothing.
    pub fn virtual_time(read: fn() -> u64) -> Self {
        Self {
            source: Source::Virtual,
            hz: 1e9,
            resolution_ns: 1.0,
            cost_ns: 0.0,
            read,
        }
    }

    /// The time now, in ticks.
    #[inline]
    pub fn now(&self) -> u64 {
        (self.read)()
    }

    /// The function that reads the clock, for a [`block::Meter`].
    pub fn reader(&self) -> fn() -> u64 {
        self.read
    }

    /// Ticks as seconds.
    pub fn seconds(&self, ticks: u64) -> f64 {
        ticks as f64 / self.hz
    }

    /// A duration as ticks.
    pub fn ticks(&self, duration: Duration) -> u64 {
        (duration.as_secs_f64() * self.hz) as u64
    }

    fn calibrate() -> Self {
        let (source, read): (_, fn() -> u64) = if counter::trustworthy() {
            (Source::Tsc, counter::read)
        } else {
            (Source::Monotonic, monotonic_ns)
        };
        let hz = match source {
            Source::Tsc => tick_rate(read),
            Source::Monotonic | Source::Virtual => 1e9,
        };
        let (resolution, cost) = reading(read);
        Self {
            source,
            hz,
            resolution_ns: resolution / hz * 1e9,
            cost_ns: cost / hz * 1e9,
            read,
        }
    }
}

/// Frequency of the core under load, hertz: a chain of dependent additions retires one a cycle on
/// every processor this program runs on. Median of several short runs; `None` if no such chain is
/// written for the architecture.
pub fn core_hz() -> Option<f64> {
    let mut rates = [0.0; 7];
    for rate in &mut rates {
        *rate = additions_a_second(4_000_000)?;
    }
    rates.sort_by(f64::total_cmp);
    Some(rates[rates.len() / 2])
}

/// [`core_hz`] at this moment, from 0.2 ms of the thread's core: the fastest of
/// three runs, because an interrupt only makes one slower.
pub fn core_hz_now() -> Option<f64> {
    let rates = [(); 3].map(|()| additions_a_second(200_000));
    rates.into_iter().flatten().reduce(f64::max)
}

fn additions_a_second(additions: u64) -> Option<f64> {
    let clock = Clock::get();
    let start = clock.now();
    counter::dependent_additions(additions)?;
    Some(additions as f64 / clock.seconds(clock.now() - start))
}

/// Unix time, seconds: what processes and kernels of one machine have in common.
pub fn unix_time() -> f64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0.0, |time| time.as_secs_f64())
}

fn monotonic_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// Ticks a second against the monotonic clock. Each end is bracketed and the
/// tightest of several brackets is taken, so a preemption does not count.
fn tick_rate(read: fn() -> u64) -> f64 {
    let edge = || {
        (0..50)
            .map(|_| {
                let before = read();
                let at = Instant::now();
                let after = read();
                (after - before, before + (after - before) / 2, at)
            })
            .min_by_key(|(width, ..)| *width)
            .expect("fifty brackets were taken")
    };
    let (_, first_ticks, first) = edge();
    std::thread::sleep(Duration::from_millis(50));
    let (_, last_ticks, last) = edge();
    (last_ticks - first_ticks) as f64 / (last - first).as_secs_f64()
}

/// (smallest step, cost of a reading) in ticks.
fn reading(read: fn() -> u64) -> (f64, f64) {
    const READINGS: u64 = 2_000;
    let mut step = u64::MAX;
    let mut costs = Vec::new();
    for _ in 0..11 {
        let start = read();
        let mut last = start;
        for _ in 0..READINGS {
            let now = read();
            if now > last {
                step = step.min(now - last);
            }
            last = now;
        }
        costs.push((last - start) as f64 / READINGS as f64);
    }
    costs.sort_by(f64::total_cmp);
    (step as f64, costs[costs.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_runs_forward_and_agrees_with_the_kernels() {
        let clock = Clock::get();
        let (start, at) = (clock.now(), Instant::now());
        std::thread::sleep(Duration::from_millis(30));
        let (ticks, elapsed) = (clock.now() - start, at.elapsed());
        let ratio = clock.seconds(ticks) / elapsed.as_secs_f64();
        // Both ends may be preempted; a wrong rate would be off by far more.
        assert!((0.5..2.0).contains(&ratio), "ratio {ratio}");
        assert!(clock.hz > 1e6);
    }

    #[test]
    fn core_clock_is_plausible() {
        for hz in [core_hz(), core_hz_now()].into_iter().flatten() {
            assert!((1e8..2e10).contains(&hz), "{hz} Hz");
        }
    }
}
