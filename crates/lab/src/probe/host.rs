//! The machine: processor, memory, kernel, versions.

use crate::clock::{self, Clock};
use crate::record::Host;
use std::collections::BTreeMap;
use std::fs;

/// Processor features that decide how fast a cipher can be.
const FEATURES: &[&str] = &[
    "aes",
    "pclmulqdq",
    "ssse3",
    "avx",
    "avx2",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "avx512vbmi",
    "avx512_vbmi2",
    "gfni",
    "vaes",
    "vpclmulqdq",
    "sha_ni",
    "pmull",
    "asimd",
    "sve",
    "sve2",
];

/// Describes the machine as it is now.
pub fn host() -> Host {
    let clock = Clock::get();
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |names: &[&str]| {
        cpuinfo.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            names.contains(&key.trim()).then(|| value.trim().to_owned())
        })
    };
    let flags = field(&["flags", "Features"]).unwrap_or_default();
    let name = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    Host {
        cpu: field(&["model name", "Model", "Hardware"])
            .unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
        features: FEATURES
            .iter()
            .filter(|feature| flags.split_whitespace().any(|flag| flag == **feature))
            .map(|feature| (*feature).to_owned())
            .collect(),
        clock_hz: clock::core_hz(),
        tsc_hz: (clock.source == clock::Source::Tsc).then_some(clock.hz),
        clock_resolution_ns: clock.resolution_ns,
        clock_cost_ns: clock.cost_ns,
        cores: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
        kernel: format!("{} {}", text(name.sysname()), text(name.release())),
        os: os_name().unwrap_or_else(|| std::env::consts::OS.to_owned()),
        governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        memory: total_memory().unwrap_or(0),
        load_average: fs::read_to_string("/proc/loadavg")
            .ok()
            .and_then(|text| text.split_whitespace().next()?.parse().ok()),
        steal: None,
        hypervisor: line("/sys/hypervisor/type").or_else(|| {
            flags
                .split_whitespace()
                .any(|flag| flag == "hypervisor")
                .then(|| {
                    line("/sys/class/dmi/id/sys_vendor")
                        .unwrap_or_else(|| "a virtual machine".into())
                })
        }),
        versions: BTreeMap::from([("cryptmark".to_owned(), env!("CARGO_PKG_VERSION").to_owned())]),
    }
}

/// The trimmed content of a one-line file; `None` when absent or empty.
pub(super) fn line(path: impl AsRef<std::path::Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn os_name() -> Option<String> {
    let release = fs::read_to_string("/etc/os-release").ok()?;
    let name = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

/// Bytes of memory that the machine has.
pub fn total_memory() -> Option<u64> {
    memory("MemTotal:")
}

/// Bytes of memory that programs can have without swapping; `None` where the
/// kernel does not say.
pub fn available_memory() -> Option<u64> {
    memory("MemAvailable:")
}

fn memory(field: &str) -> Option<u64> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let kib = info
        .lines()
        .find_map(|line| line.strip_prefix(field))?
        .split_whitespace()
        .next()?;
    Some(kib.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_names_itself() {
        let host = host();
        assert!(!host.cpu.is_empty() && !host.kernel.is_empty());
        assert!(host.cores >= 1 && host.memory > 1 << 20);
        assert!(host.clock_cost_ns > 0.0);
        assert!(host.key().contains(&host.cpu));
    }
}
