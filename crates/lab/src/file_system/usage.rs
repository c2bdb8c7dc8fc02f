//! [`Usage`]: CPU and crypto time, read before and after an operation.

use super::stack::CryptoTimer;
use crate::probe::CpuTimes;
use crate::record::Moved;
use crate::system::engine_file::EngineTimes;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::OnceLock;

/// `PF_KTHREAD` of the kernel's include/linux/sched.h.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// The file with the time of the lab kernel's only processor, nanoseconds by kind.
const LAB_CPU: &str = "/sys/kernel/cryptmark/cpu";

/// Readings of all counters at a moment; seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    pub user: Option<f64>,
    pub sys: Option<f64>,
    pub workers: Option<f64>,
    pub crypto: Option<f64>,
    pub moved: Option<Moved>,
}

impl Usage {
    /// Reads the counters of this process, of the children that it has waited for, of the engine's
    /// server and of the kernel's threads. It also reads the crypto timer and the file system's
    /// block device. The slowest readings come first, so that their time is not part of the
    /// measurement.
    pub(super) fn before(crypto: &mut CryptoTimer, device: &Path) -> Self {
        let moved = moved(device);
        let workers = threads_outside();
        let engine = crypto.read();
        let busy = lab_busy();
        let own = CpuTimes::precise();
        Self::of(own, busy, engine, workers, moved)
    }

    /// Reads all counters in the opposite order.
    pub(super) fn after(crypto: &mut CryptoTimer, device: &Path) -> Self {
        let own = CpuTimes::precise();
        let busy = lab_busy();
        let engine = crypto.read();
        let workers = threads_outside();
        Self::of(own, busy, engine, workers, moved(device))
    }

    fn of(
        own: Option<CpuTimes>,
        busy: Option<f64>,
        engine: EngineTimes,
        workers: Option<f64>,
        moved: Option<Moved>,
    ) -> Self {
        let user = own.map(|own| own.user.as_secs_f64() + engine.user.unwrap_or(0.0));
        let sys = own.map(|own| own.sys.as_secs_f64() + engine.sys.unwrap_or(0.0));
        let known = user.zip(sys).map(|(user, sys)| user + sys);
        Self {
            user,
            sys,
            // Busy time of the lab's processor that belongs to no known process was spent by the
            // kernel's own threads.
            workers: match busy {
                Some(busy) => known.map(|known| busy - known),
                None => workers,
            },
            crypto: engine.crypto,
            // The engine knows what reached it.
            moved: engine.moved.or(moved),
        }
    }

    /// The difference between these readings and `earlier` ones.
    pub(super) fn since(self, earlier: Self) -> Self {
        let since = |now: Option<f64>, then: Option<f64>| Some((now? - then?).max(0.0));
        Self {
            user: since(self.user, earlier.user),
            sys: since(self.sys, earlier.sys),
            workers: since(self.workers, earlier.workers),
            crypto: since(self.crypto, earlier.crypto),
            moved: self
                .moved
                .zip(earlier.moved)
                .map(|(now, then)| now.since(then)),
        }
    }
}

/// The bytes and requests that a block device has moved since it was created. Its counters are in
/// sectors of 512 bytes (Documentation/block/stat.rst).
fn moved(device: &Path) -> Option<Moved> {
    let name = device.file_name()?;
    let text = fs::read_to_string(Path::new("/sys/class/block").join(name).join("stat")).ok()?;
    let fields: Vec<u64> = text
        .split_whitespace()
        .map_while(|field| field.parse().ok())
        .collect();
    Some(Moved {
        read_bytes: fields.get(2)? * 512,
        written_bytes: fields.get(6)? * 512,
        reads: *fields.first()?,
        writes: *fields.get(4)?,
    })
}

/// Whether user and system time are counted separately and without ticks.
pub(super) fn is_exact() -> bool {
    lab_busy().is_some()
}

/// Seconds that the lab kernel's processor was busy, by one system call.
fn lab_busy() -> Option<f64> {
    static FILE: OnceLock<Option<File>> = OnceLock::new();
    let file = FILE.get_or_init(|| File::open(LAB_CPU).ok()).as_ref()?;
    let mut bytes = [0; 512];
    let length = file.read_at(&mut bytes, 0).ok()?;
    let text = str::from_utf8(&bytes[..length]).ok()?;
    let of = |name| counter(text, name);
    Some((of("user")? + of("system")? + of("irq")?) as f64 / 1e9)
}

/// The number behind `name` in one of the lab kernel's files.
pub(super) fn counter(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    let (_, number) = lines.find(|(known, _)| *known == name)?;
    number.trim().parse().ok()
}

/// CPU time of the kernel's threads, outside the lab kernel. The lab kernel reports that time
/// itself.
fn threads_outside() -> Option<f64> {
    match is_exact() {
        true => None,
        false => kernel_threads(),
    }
}

/// CPU time of the kernel's own threads, from the scheduler's counters in nanoseconds; `None` if
/// there are none. The time of threads that have ended in the meantime is lost.
fn kernel_threads() -> Option<f64> {
    let mut sum = None;
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let name = entry.file_name();
        if !name.as_encoded_bytes()[0].is_ascii_digit() {
            continue;
        }
        let path = entry.path();
        if let Some(nanoseconds) = kernel_thread(&path) {
            *sum.get_or_insert(0.0) += nanoseconds as f64 / 1e9;
        }
    }
    sum.filter(|sum| *sum > 0.0)
}

fn kernel_thread(process: &Path) -> Option<u64> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    // The command's name may hold blanks and brackets: fields count from behind it.
    let flags = stat.rsplit_once(')')?.1.split_whitespace().nth(6)?;
    if flags.parse::<u64>().ok()? & KERNEL_THREAD == 0 {
        return None;
    }
    let scheduled = fs::read_to_string(process.join("schedstat")).ok()?;
    scheduled.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_the_lab_kernel_are_read_by_name() {
        let text = "ticks 12\nbytes 512\n";
        assert_eq!(counter(text, "bytes"), Some(512));
        assert_eq!(counter(text, "byte"), None);
        assert_eq!(counter("ticks x", "ticks"), None);
    }

    #[test]
    fn counters_grow_and_differences_know_what_is_missing() {
        let mut none = CryptoTimer::None;
        let before = Usage::before(&mut none, Path::new("/dev/null"));
        let mut x = 1_u64;
        for i in 0..60_000_000_u64 {
            x = std::hint::black_box(x.wrapping_mul(i | 1));
        }
        let spent = Usage::after(&mut none, Path::new("/dev/null")).since(before);
        assert!(spent.user.unwrap() > 0.0, "{x} {spent:?}");
        assert_eq!((spent.crypto, spent.moved), (None, None));
    }
}
