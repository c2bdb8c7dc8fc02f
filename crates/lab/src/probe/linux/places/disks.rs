//! The disks that users may write to, and why some of them are busy.

use super::encryption::Walk;
use super::{Machine, entries, models, name, whole};
use crate::probe::linux::host::line;
use crate::probe::linux::mounts::unescape;
use crate::probe::linux::storage::{medium, model};
use crate::probe::{Site, SiteKind};
use rustix::fs::{Access, access};
use std::fs;
use std::path::{Path, PathBuf};

/// Names of memory, compressed memory, CD drives and floppy drives.
const NOT_DISKS: [&str; 4] = ["ram", "zram", "sr", "fd"];

/// Smaller devices hold no test, such as the 1 KiB of an extended partition.
const SMALLEST: u64 = 1 << 20;

/// sysfs counts in these, whatever the sectors of the device are.
const SECTOR: u64 = 512;

/// A use of a device by the system.
struct Use {
    node: PathBuf,
    /// Completes "it is …".
    how: String,
    filesystem: Option<String>,
}

impl Machine {
    /// The disks, partitions and stacked devices that this user may write to.
    pub(super) fn disks(&self) -> Vec<Site> {
        let uses = self.uses();
        let mut walk = Walk::new(self);
        let mut disks = entries(&self.root.join("sys/block"));
        // sdb comes before sdaa, and dm-2 before dm-10.
        disks.sort_by_key(|disk| (name(disk).len(), name(disk)));
        let mut sites = Vec::new();
        for disk in disks.into_iter().filter(|disk| is_disk(disk)) {
            let partitions = partitions(&disk);
            sites.extend(self.site(&disk, &partitions, &uses, &mut walk));
            for partition in &partitions {
                let disk = std::slice::from_ref(&disk);
                sites.extend(self.site(partition, disk, &uses, &mut walk));
            }
        }
        sites
    }

    /// A disk or a partition, unless this user may not write to it. It is busy if one of the
    /// `related` is: the partitions of a disk, or the disk of a partition.
    fn site(
        &self,
        node: &Path,
        related: &[PathBuf],
        uses: &[Use],
        walk: &mut Walk,
    ) -> Option<Site> {
        let path = self.writable_path(node)?;
        let size = size(node);
        if size < SMALLEST {
            return None;
        }
        let of_related =
            |node: &PathBuf| Some(format!("{} is {}", name(node), in_use(node, uses)?));
        let in_use = in_use(node, uses)
            .or_else(|| related.iter().find_map(of_related))
            // Members of a btrfs or of a ZFS pool have no other mark.
            .or_else(|| {
                let held = block::signature::is_held(&self.real(&path));
                held.then(|| "in use by another program".to_owned())
            });
        let mounted = uses.iter().find(|it| it.node == *node);
        Some(Site {
            path,
            kind: SiteKind::Disk,
            size,
            free: None,
            filesystem: mounted.and_then(|it| it.filesystem.clone()),
            device: models(node),
            medium: medium(None, Some(&whole(node))).to_owned(),
            encrypted_by: walk.device(node),
            in_use,
            writable: true,
        })
    }

    /// The mounted devices and those with swap.
    fn uses(&self) -> Vec<Use> {
        let mounted = self.mounts.iter().filter_map(|mount| {
            Some(Use {
                node: self.source(mount)?,
                how: format!("mounted at {}", mount.point.display()),
                filesystem: Some(mount.kind.clone()),
            })
        });
        let swaps = fs::read(self.root.join("proc/swaps")).unwrap_or_default();
        let swaps = swaps
            .split(|&byte| byte == b'\n')
            .skip(1)
            .filter_map(|line| {
                let path = line.split(u8::is_ascii_whitespace).next()?;
                let path = unescape(path);
                // A file with swap is in a file system, which is mounted.
                let node = path.starts_with("/dev").then(|| self.named(&path));
                Some(Use {
                    node: node??,
                    how: "swap".to_owned(),
                    filesystem: None,
                })
            });
        mounted.chain(swaps).collect()
    }

    /// The path of a device, if this user may read and write it.
    fn writable_path(&self, node: &Path) -> Option<PathBuf> {
        let is_set = |file: &str| line(node.join(file)).is_some_and(|value| value == "1");
        if is_set("ro") || is_set("hidden") {
            return None;
        }
        let mapped = line(node.join("dm/name")).map(|name| Path::new("/dev/mapper").join(name));
        // sysfs writes `!` for a slash in a name.
        let plain = Path::new("/dev").join(name(node).replace('!', "/"));
        let path = match mapped {
            Some(mapped) if self.real(&mapped).exists() => mapped,
            _ => plain,
        };
        let rights = Access::READ_OK | Access::WRITE_OK;
        access(self.real(&path), rights).is_ok().then_some(path)
    }
}

/// Whether a folder of `/sys/block` is a disk that could be measured.
fn is_disk(node: &Path) -> bool {
    let name = name(node);
    let is_other = |prefix: &&str| {
        let number = name.strip_prefix(prefix);
        number.is_some_and(|number| number.starts_with(|it: char| it.is_ascii_digit()))
    };
    let is_empty_loop = name.starts_with("loop") && line(node.join("loop/backing_file")).is_none();
    !NOT_DISKS.iter().any(is_other) && !is_empty_loop
}

/// The partitions of a disk, by their numbers.
fn partitions(disk: &Path) -> Vec<PathBuf> {
    let number = |node: &PathBuf| -> Option<u32> { line(node.join("partition"))?.parse().ok() };
    let mut partitions = entries(disk);
    // Other entries are links to other devices.
    partitions.retain(|node| number(node).is_some() && whole(node) == *disk);
    partitions.sort_by_key(number);
    partitions
}

/// Bytes of a device.
fn size(node: &Path) -> u64 {
    let sectors = line(node.join("size")).and_then(|sectors| sectors.parse::<u64>().ok());
    sectors.unwrap_or(0).saturating_mul(SECTOR)
}

/// How the system uses this very device.
fn in_use(node: &Path, uses: &[Use]) -> Option<String> {
    let used = uses.iter().find(|it| it.node == *node);
    used.map(|it| it.how.clone()).or_else(|| {
        let mut holders = entries(&node.join("holders"));
        holders.sort();
        let holder = holders.first()?;
        Some(format!(
            "part of {}",
            model(holder).unwrap_or_else(|| name(holder))
        ))
    })
}
