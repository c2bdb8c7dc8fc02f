//! The device below a path: model, kind, caches, scheduler.

use super::host::line;
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
    let memory = mount
        .as_ref()
        .is_some_and(|mount| matches!(mount.kind.as_str(), "tmpfs" | "ramfs"));
    Device {
        kind: match (memory, queue("rotational").as_deref()) {
            (true, _) => "ram",
            (false, Some("0")) => "ssd",
            // Virtual disks say "rotational" for want of knowledge.
            (false, Some("1")) if is_virtual(disk.as_deref()) => "virtual disk",
            (false, Some("1")) => "hdd",
            _ => "unknown",
        }
        .to_owned(),
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

fn model(disk: &Path) -> Option<String> {
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

struct Mount {
    kind: String,
    source: String,
}

/// The mount that holds `path`: the longest mount point that is a prefix.
fn mount_of(path: &Path) -> Option<Mount> {
    let path = fs::canonicalize(path).ok()?;
    let table = fs::read_to_string("/proc/self/mountinfo").ok()?;
    table
        .lines()
        .filter_map(|line| {
            let (left, right) = line.split_once(" - ")?;
            let point = unescape(left.split(' ').nth(4)?);
            let mut right = right.split(' ');
            let mount = Mount {
                kind: right.next()?.to_owned(),
                source: right.next()?.to_owned(),
            };
            path.starts_with(&point).then_some((point.len(), mount))
        })
        // Of two mounts on the same point the later one is seen.
        .max_by_key(|(length, _)| *length)
        .map(|(_, mount)| mount)
}

/// Undoes mountinfo's octal escapes of blanks and backslashes.
fn unescape(field: &str) -> String {
    field
        .replace("\\040", " ")
        .replace("\\011", "\t")
        .replace("\\012", "\n")
        .replace("\\134", "\\")
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

    #[test]
    fn mount_points_with_blanks_are_read() {
        assert_eq!(unescape("/mnt/my\\040disk\\134x"), "/mnt/my disk\\x");
    }
}
