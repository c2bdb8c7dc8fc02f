//! The directories and disks of this machine where users can measure.

mod directories;
mod disks;
mod encryption;
#[cfg(test)]
mod tests;

use super::mounts::{Mount, Mounts};
use super::storage::model;
use crate::probe::Site;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The directories and then the disks of this machine where users can measure. The file system
/// that holds the current directory is the first.
///
/// Each file system is listed once, with a directory that this user may write to. Only a directory
/// that fscrypt encrypts is listed besides a plain one of its file system. Disks are those that
/// this user may write to.
pub fn places() -> Vec<Site> {
    let machine = Machine::new(
        Path::new("/"),
        std::env::current_dir().ok(),
        etcetera::home_dir().ok(),
        is_encrypted_dataset,
    );
    let mut places = machine.directories();
    places.extend(machine.disks());
    places
}

/// The machine, or a simulated one in a folder.
struct Machine {
    /// The folder of `/sys`, `/proc`, `/dev` and all that is mounted.
    root: PathBuf,
    mounts: Mounts,
    current: Option<PathBuf>,
    home: Option<PathBuf>,
    /// Whether a dataset of ZFS is encrypted.
    dataset: fn(&Path) -> bool,
}

impl Machine {
    fn new(
        root: &Path,
        current: Option<PathBuf>,
        home: Option<PathBuf>,
        dataset: fn(&Path) -> bool,
    ) -> Self {
        Self {
            root: root.to_owned(),
            mounts: Mounts::read(&root.join("proc")),
            current,
            home,
            dataset,
        }
    }

    /// Where a path of the machine really is.
    fn real(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// A path of the machine without symbolic links.
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        let real = fs::canonicalize(self.real(path)).ok()?;
        Some(Path::new("/").join(real.strip_prefix(&self.root).ok()?))
    }

    /// The folder in `/sys` of the block device with this number.
    fn numbered(&self, (major, minor): (u32, u32)) -> Option<PathBuf> {
        fs::canonicalize(self.root.join(format!("sys/dev/block/{major}:{minor}"))).ok()
    }

    /// The folder in `/sys` of the block device at this path.
    fn named(&self, path: &Path) -> Option<PathBuf> {
        let real = fs::canonicalize(self.real(path)).ok()?;
        let metadata = fs::metadata(&real).ok()?;
        if metadata.file_type().is_block_device() {
            let number = metadata.rdev();
            return self.numbered((rustix::fs::major(number), rustix::fs::minor(number)));
        }
        let name = real.strip_prefix(self.root.join("dev")).ok()?.to_str()?;
        // sysfs writes `!` for a slash in a name.
        let name = name.replace('/', "!");
        fs::canonicalize(self.root.join("sys/class/block").join(name)).ok()
    }

    /// The folder in `/sys` of the block device that is mounted.
    fn source(&self, mount: &Mount) -> Option<PathBuf> {
        match mount.number.0 {
            // File systems with anonymous device numbers (btrfs) name their source.
            0 if mount.source.starts_with("/dev") => self.named(&mount.source),
            0 => None,
            _ => self.numbered(mount.number),
        }
    }
}

/// The whole disk of a partition; other devices are whole themselves.
fn whole(node: &Path) -> PathBuf {
    match node.parent() {
        Some(disk) if node.join("partition").exists() => disk.to_owned(),
        _ => node.to_owned(),
    }
}

/// The whole disks that `node` stands on directly.
fn slaves(node: &Path) -> Vec<PathBuf> {
    let below = entries(&node.join("slaves")).into_iter();
    let below: BTreeSet<PathBuf> = below.map(|node| whole(&node)).collect();
    below.into_iter().collect()
}

/// The models and names of the disks at the bottom of `node`.
fn models(node: &Path) -> Option<String> {
    let mut waiting = vec![whole(node)];
    let mut seen = BTreeSet::new();
    let mut names = Vec::new();
    while let Some(node) = waiting.pop() {
        if !seen.insert(node.clone()) {
            continue;
        }
        let below = slaves(&node);
        if below.is_empty() {
            names.extend(model(&node));
        }
        waiting.extend(below.into_iter().rev());
    }
    (!names.is_empty()).then(|| names.join(", "))
}

/// The entries of a folder of sysfs, without symbolic links; none if there is no such folder.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(folder).into_iter().flatten().flatten();
    found
        .filter_map(|entry| fs::canonicalize(entry.path()).ok())
        .collect()
}

fn name(node: &Path) -> String {
    let name = node.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Asks `zfs`, because the kernel does not publish the properties of datasets.
fn is_encrypted_dataset(name: &Path) -> bool {
    let output = block::program::command("zfs")
        .args(["get", "-H", "-o", "value", "encryption"])
        .arg(name)
        .stdin(Stdio::null())
        .output();
    output.is_ok_and(|output| {
        let value = output.stdout.trim_ascii();
        output.status.success() && !matches!(value, b"" | b"-" | b"off")
    })
}
