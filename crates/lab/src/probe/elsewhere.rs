//! Windows and macOS, asked by `sysinfo`.

use super::host::Facts;
use super::{Blocks, Capability, CpuTimes, Site, SiteKind};
use crate::record::Device;
use std::path::{Path, PathBuf};
use sysinfo::{CpuRefreshKind, Disk, DiskKind, Disks, MemoryRefreshKind, RefreshKind, SystemId};

/// The current facts about the machine.
pub(super) fn facts() -> Facts {
    let cpus = RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing());
    let system = SystemId::new_with_specifics(cpus);
    let brand = system
        .cpus()
        .first()
        .map(|cpu| cpu.brand().trim().to_owned());
    let name = SystemId::name().unwrap_or_else(|| std::env::consts::OS.to_owned());
    let release = SystemId::kernel_version().unwrap_or_default();
    Facts {
        cpu: brand.filter(|brand| !brand.is_empty()),
        features: features(),
        kernel: format!("{name} {release}").trim().to_owned(),
        os: SystemId::long_os_version(),
        governor: None,
        memory: total_memory(),
        load_average: None,
        hypervisor: None,
    }
}

/// By the names that Linux has for them.
#[cfg(target_arch = "x86_64")]
fn features() -> Vec<String> {
    use std::arch::is_x86_feature_detected as has;
    let features = [
        ("aes", has!("aes")),
        ("pclmulqdq", has!("pclmulqdq")),
        ("ssse3", has!("ssse3")),
        ("avx", has!("avx")),
        ("avx2", has!("avx2")),
        ("avx512f", has!("avx512f")),
        ("avx512bw", has!("avx512bw")),
        ("avx512vl", has!("avx512vl")),
        ("avx512vbmi", has!("avx512vbmi")),
        ("avx512_vbmi2", has!("avx512vbmi2")),
        ("gfni", has!("gfni")),
        ("vaes", has!("vaes")),
        ("vpclmulqdq", has!("vpclmulqdq")),
        ("sha_ni", has!("sha")),
    ];
    those_that_are(&features)
}

/// By the names that Linux has for them.
#[cfg(target_arch = "aarch64")]
fn features() -> Vec<String> {
    use std::arch::is_aarch64_feature_detected as has;
    let features = [
        ("aes", has!("aes")),
        ("pmull", has!("pmull")),
        ("asimd", has!("neon")),
        ("sve", has!("sve")),
        ("sve2", has!("sve2")),
    ];
    those_that_are(&features)
}

fn those_that_are(features: &[(&str, bool)]) -> Vec<String> {
    let present = features.iter().filter(|(_, present)| *present);
    present.map(|(name, _)| (*name).to_owned()).collect()
}

fn memory() -> SystemId {
    let memory = MemoryRefreshKind::nothing().with_ram();
    SystemId::new_with_specifics(RefreshKind::nothing().with_memory(memory))
}

/// Bytes of memory that the machine has.
pub fn total_memory() -> Option<u64> {
    Some(memory().total_memory()).filter(|&bytes| bytes > 0)
}

/// Bytes of memory that programs can have without swapping; `None` if the
/// system does not report it.
pub fn available_memory() -> Option<u64> {
    Some(memory().available_memory()).filter(|&bytes| bytes > 0)
}

/// CPU time of this process.
#[cfg(windows)]
pub(super) fn cpu_times() -> Option<CpuTimes> {
    let (user, sys) = crate::clock::process_times()?;
    Some(CpuTimes { user, sys })
}

/// CPU time of this process.
#[cfg(unix)]
pub(super) fn cpu_times() -> Option<CpuTimes> {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::{TimeVal, TimeValLike};
    use std::time::Duration;

    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    let time =
        |value: TimeVal| Duration::from_micros(value.num_microseconds().try_into().unwrap_or(0));
    Some(CpuTimes {
        user: time(usage.user_time()),
        sys: time(usage.system_time()),
    })
}

/// Does nothing: threads are not pinned on this system.
pub fn pin_to_core(_: u32) {}

/// Describes what holds `path` (a directory or a file). The fields that depend on
/// how it was opened (`cache`, `engine`, `size`) are left for the caller.
pub fn describe(path: &Path) -> Device {
    let unknown = Device {
        kind: "unknown".to_owned(),
        path_kind: "file".to_owned(),
        ..Device::default()
    };
    let Ok(path) = std::path::absolute(path) else {
        return unknown;
    };
    let disks = Disks::new_with_refreshed_list();
    let Some(disk) = holding(&disks, &path) else {
        return unknown;
    };
    let (all, free) = (disk.total_space(), disk.available_space());
    Device {
        kind: medium(disk).to_owned(),
        filesystem: Some(disk.file_system().to_string_lossy().into_owned()),
        in_use: (all > 0).then(|| all.saturating_sub(free) as f64 / all as f64),
        ..unknown
    }
}

/// The disk that holds an absolute path.
fn holding<'a>(disks: &'a Disks, path: &Path) -> Option<&'a Disk> {
    let holds = |disk: &&Disk| path.starts_with(disk.mount_point());
    let length = |disk: &&Disk| disk.mount_point().components().count();
    disks.list().iter().filter(holds).max_by_key(length)
}

fn medium(disk: &Disk) -> &'static str {
    match disk.kind() {
        DiskKind::SSD => "ssd",
        DiskKind::HDD => "hdd",
        DiskKind::Unknown(_) => "unknown",
    }
}

/// The current directory and the home of this user. Whole disks are measured on Linux only.
pub fn places() -> Vec<Site> {
    let disks = Disks::new_with_refreshed_list();
    let site = |path: PathBuf| {
        let disk = holding(&disks, &path)?;
        let metadata = std::fs::metadata(&path).ok()?;
        let name = disk.name().to_string_lossy().into_owned();
        Some(Site {
            kind: SiteKind::Directory,
            size: disk.total_space(),
            free: Some(disk.available_space()),
            filesystem: Some(disk.file_system().to_string_lossy().into_owned()),
            device: Some(name).filter(|name| !name.is_empty()),
            medium: medium(disk).to_owned(),
            encrypted_by: Vec::new(),
            in_use: None,
            writable: !disk.is_read_only() && !metadata.permissions().readonly(),
            path,
        })
    };
    let (current, home) = (std::env::current_dir().ok(), etcetera::home_dir().ok());
    let home = home.filter(|home| current.as_ref() != Some(home));
    [current, home]
        .into_iter()
        .flatten()
        .filter_map(site)
        .collect()
}

/// Nothing is known of a disk's blocks.
pub fn blocks(_: &Path) -> Blocks {
    Blocks::default()
}

/// The capabilities that this system lacks, all of which Linux has.
pub fn capabilities() -> Vec<Capability> {
    vec![Capability {
        name: "Linux",
        purpose: "serving and mounting volumes, dm-crypt, file systems, whole disks",
        state: Err("run cryptmark on Linux, or in a virtual machine with it"),
    }]
}
