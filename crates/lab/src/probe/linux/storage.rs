//! The device below a path: model, kind, caches, scheduler.

use super::host::line;
use super::mounts::{Mount, Mounts};
use crate::probe::Blocks;
use crate::record::Device;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Describes what holds `path` (a directory, a file or a block device). The
/// fields that depend on how it was opened (`cache`, `engine`, `size`) are
/// left for the caller.
pub fn describe(path: &Path) -> Device {
    let Some(Below {
        is_device,
        mount,
        disk,
    }) = below(path)
    else {
        return unknown();
    };
    let queue = |name: &str| {
        disk.as_ref()
            .and_then(|disk| line(disk.join("queue").join(name)))
    };
    Device {
        kind: medium(mount.as_ref(), disk.as_deref()).to_owned(),
        model: disk.as_deref().and_then(model),
        path_kind: if is_device { "block-device" } else { "file" }.to_owned(),
        filesystem: mount.map(|mount| mount.kind),
        in_use: if is_device { None } else { in_use(path) },
        cache: String::new(),
        write_cache: queue("write_cache"),
        engine: String::new(),
        scheduler: queue("scheduler").map(|all| {
            all.split_whitespace()
                .find_map(|name| name.strip_prefix('[')?.strip_suffix(']'))
                .unwrap_or(&all)
                .to_owned()
        }),
        driver: None,
        size: 0,
    }
}

/// The kind of storage below a file system, or of `disk`, a folder in `/sys`.
pub(super) fn medium(mount: Option<&Mount>, disk: Option<&Path>) -> &'static str {
    let memory = mount.is_some_and(|mount| matches!(mount.kind.as_str(), "tmpfs" | "ramfs"));
    let rotational = disk.and_then(|disk| line(disk.join("queue/rotational")));
    match (memory, rotational.as_deref()) {
        (true, _) => "ram",
        (false, Some("0")) => "ssd",
        // Virtual disks say "rotational" because they do not know.
        (false, Some("1")) if is_virtual(disk) => "virtual disk",
        (false, Some("1")) => "hdd",
        _ => "unknown",
    }
}

/// Share of the file system at `path` that is in use, by what users may fill.
fn in_use(path: &Path) -> Option<f64> {
    let all = rustix::fs::statvfs(path).ok()?;
    let used = all.f_blocks.checked_sub(all.f_bfree)?;
    let usable = used + all.f_bavail;
    (usable > 0).then(|| used as f64 / usable as f64)
}

/// The block properties that the disk below `path` reports. Without a disk,
/// both are `None`.
pub fn blocks(path: &Path) -> Blocks {
    let disk = below(path).and_then(|below| below.disk);
    let queue = |name: &str| -> Option<u64> {
        let value = line(disk.as_ref()?.join("queue").join(name))?;
        value.parse().ok()
    };
    Blocks {
        physical: queue("physical_block_size"),
        discards: queue("discard_max_bytes").map(|most| most > 0),
    }
}

/// The device or mount that holds a path.
struct Below {
    is_device: bool,
    mount: Option<Mount>,
    /// Its folder in `/sys`.
    disk: Option<PathBuf>,
}

fn below(path: &Path) -> Option<Below> {
    let metadata = fs::metadata(path).ok()?;
    let is_device = metadata.file_type().is_block_device();
    let number = if is_device {
        metadata.rdev()
    } else {
        metadata.dev()
    };
    let mount = (!is_device).then(|| mount_of(path)).flatten();
    let disk = block_device(number).or_else(|| {
        // File systems with anonymous device numbers (btrfs) name their source.
        let source = mount.as_ref()?.source.clone();
        let rdev = fs::metadata(source).ok()?.rdev();
        block_device(rdev)
    });
    Some(Below {
        is_device,
        mount,
        disk,
    })
}

fn unknown() -> Device {
    Device {
        kind: "unknown".to_owned(),
        ..Device::default()
    }
}

/// The whole disk in `/sys` that a device number belongs to.
fn block_device(number: u64) -> Option<PathBuf> {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let mut node = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    // A partition has no queue of its own: its disk is the folder above.
    if !node.join("queue").exists() {
        node.pop();
    }
    node.join("queue").exists().then_some(node)
}

fn is_virtual(disk: Option<&Path>) -> bool {
    disk.and_then(|disk| disk.file_name()?.to_str())
        .is_some_and(|name| {
            ["vd", "xvd", "loop", "nbd", "dm-"]
                .iter()
                .any(|p| name.starts_with(p))
        })
}

/// The model and the name of `disk`, a folder in `/sys`.
pub(super) fn model(disk: &Path) -> Option<String> {
    let name = disk.file_name()?.to_string_lossy().into_owned();
    let model = line(disk.join("device/model"))
        .or_else(|| line(disk.join("dm/name")))
        .or_else(|| line(disk.join("loop/backing_file")).map(|_| "loop device".to_owned()))
        .or_else(|| {
            let driver = fs::canonicalize(disk.join("device/driver")).ok()?;
            Some(driver.file_name()?.to_string_lossy().into_owned())
        });
    Some(match model {
        Some(model) => format!("{model} ({name})"),
        None => name,
    })
}

/// The mount that holds `path`.
fn mount_of(path: &Path) -> Option<Mount> {
    let path = fs::canonicalize(path).ok()?;
    Mounts::read(Path::new("/proc")).holding(&path).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_unknown() {
        assert_eq!(describe(Path::new("/nonexistent")).kind, "unknown");
        assert_eq!(blocks(Path::new("/nonexistent")), Blocks::default());
    }

    #[test]
    fn the_root_file_system_is_described() {
        let device = describe(Path::new("/"));
        assert_eq!(device.path_kind, "file");
        assert!(device.filesystem.is_some());
    }
}
