//! Processor, memory and kernel of Linux.

use crate::probe::host::Facts;
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

/// The current facts about the machine.
pub(in crate::probe) fn facts() -> Facts {
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
    Facts {
        cpu: field(&["model name", "Model", "Hardware"]),
        features: FEATURES
            .iter()
            .filter(|feature| flags.split_whitespace().any(|flag| flag == **feature))
            .map(|feature| (*feature).to_owned())
            .collect(),
        kernel: format!("{} {}", text(name.sysname()), text(name.release())),
        os: os_name(),
        governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        memory: total_memory(),
        load_average: fs::read_to_string("/proc/loadavg")
            .ok()
            .and_then(|text| text.split_whitespace().next()?.parse().ok()),
        hypervisor: line("/sys/hypervisor/type").or_else(|| {
            flags
                .split_whitespace()
                .any(|flag| flag == "hypervisor")
                .then(|| {
                    line("/sys/class/dmi/id/sys_vendor")
                        .unwrap_or_else(|| "a virtual machine".into())
                })
        }),
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

/// Bytes of memory that programs can have without swapping; `None` if the
/// kernel does not report it.
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
