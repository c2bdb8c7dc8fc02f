//! The users of a device: mounts, swap, volumes and loop devices on top of it.

use super::{Mount, Usage};
use crate::BlockError;
use crate::hold::{Identity, Number, loop_backing};
use rustix::fs::OFlags;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{Metadata, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// All mounts that this process sees, in the order of their making.
///
/// # Errors
/// [`BlockError::Examine`].
pub fn mounts() -> Result<Vec<Mount>, BlockError> {
    let mounts = parse_mounts(&read("/proc/self/mountinfo")?);
    Ok(mounts.into_iter().map(|(_, mount)| mount).collect())
}

/// The users of a file or block device.
pub(super) fn of(path: &Path, metadata: &Metadata) -> Result<Usage, BlockError> {
    let identity = Identity::of(metadata);
    Ok(Usage {
        held: match identity {
            Identity::Inode { .. } => false,
            Identity::Device(_) => is_held(path).map_err(|source| BlockError::Open {
                path: path.to_owned(),
                source,
            })?,
        },
        ..standing_on(identity)?
    })
}

/// Whether someone has opened the block device exclusively, as mounts and
/// volume managers do.
///
/// The kernel gives up the rings of an ended program, and the devices that they hold, a little
/// later. So a device is asked for a while.
fn is_held(path: &Path) -> io::Result<bool> {
    const ATTEMPTS: u32 = 50;
    const PAUSE: Duration = Duration::from_millis(20);
    for _ in 0..ATTEMPTS {
        if !is_exclusive(path)? {
            return Ok(false);
        }
        std::thread::sleep(PAUSE);
    }
    Ok(true)
}

/// Whether someone has opened the block device exclusively now.
pub(super) fn is_exclusive(path: &Path) -> io::Result<bool> {
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::EXCL.bits() as i32)
        .open(path);
    match opened {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Ok(true),
        Err(error) => Err(error),
    }
}

/// The mounts, swap, loop devices and volumes on a file or block device.
pub(crate) fn standing_on(identity: Identity) -> Result<Usage, BlockError> {
    let sys = Path::new("/sys/dev/block");
    let mut family = Family::default();
    match identity {
        Identity::Device(number) => family.add(number, sys),
        Identity::Inode { .. } => {
            for device in entries(Path::new("/sys/block")) {
                if loop_backing(&device) == Some(identity)
                    && let Some(number) = read_number(&device.join("dev"))
                {
                    family.holders.push(device_path(&device));
                    family.add(number, sys);
                }
            }
        }
    }
    family.usage(identity)
}

/// A device with everything on top of it.
#[derive(Default)]
struct Family {
    numbers: BTreeSet<Number>,
    holders: Vec<PathBuf>,
}

impl Family {
    /// Adds a device, its partitions and, recursively, their holders.
    fn add(&mut self, number: Number, sys: &Path) {
        if !self.numbers.insert(number) {
            return;
        }
        let directory = sys.join(format!("{}:{}", number.0, number.1));
        for holder in entries(&directory.join("holders")) {
            self.holders.push(device_path(&holder));
            if let Some(number) = read_number(&holder.join("dev")) {
                self.add(number, sys);
            }
        }
        for partition in entries(&directory) {
            if partition.join("partition").exists()
                && let Some(number) = read_number(&partition.join("dev"))
            {
                self.add(number, sys);
            }
        }
    }

    fn usage(self, itself: Identity) -> Result<Usage, BlockError> {
        let is_of = |found: Identity| match found {
            Identity::Device(number) => self.numbers.contains(&number),
            Identity::Inode { .. } => found == itself,
        };
        // The name of a swap file can have been given to another one since.
        let leads_to = |path: &Path| std::fs::metadata(path).ok().map(|it| Identity::of(&it));
        let mounts = parse_mounts(&read("/proc/self/mountinfo")?)
            .into_iter()
            .filter(|(number, mount)| {
                // Btrfs mounts have a number of their own; their source tells.
                let source = mount.device.is_absolute().then(|| leads_to(&mount.device));
                self.numbers.contains(number)
                    || matches!(source.flatten(), Some(Identity::Device(number)) if self.numbers.contains(&number))
            })
            .map(|(_, mount)| mount)
            .collect();
        let swaps = parse_swaps(&read("/proc/swaps").unwrap_or_default())
            .into_iter()
            .filter(|path| leads_to(path).is_some_and(is_of))
            .collect();
        Ok(Usage {
            mounts,
            swaps,
            holders: self.holders,
            held: false,
        })
    }
}

fn read(path: &str) -> Result<Vec<u8>, BlockError> {
    std::fs::read(path).map_err(|source| BlockError::Examine {
        path: path.into(),
        source,
    })
}

/// The entries of a directory of sysfs; none where there is no such directory.
fn entries(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect()
}

/// sysfs writes `!` for a slash in a name.
fn device_path(sysfs: &Path) -> PathBuf {
    let name = sysfs.file_name().unwrap_or_default().to_string_lossy();
    Path::new("/dev").join(name.replace('!', "/"))
}

fn read_number(path: &Path) -> Option<Number> {
    parse_number(std::fs::read_to_string(path).ok()?.trim())
}

fn parse_number(text: &str) -> Option<Number> {
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Lines of /proc/self/mountinfo:
/// `id parent major:minor root mount-point options [tags…] - type source …`.
fn parse_mounts(text: &[u8]) -> Vec<(Number, Mount)> {
    let line = |line: &[u8]| {
        let mut fields = line.split(|&byte| byte == b' ').skip(2);
        let number = parse_number(std::str::from_utf8(fields.next()?).ok()?)?;
        let mount_point = unescape(fields.nth(1)?);
        let source = fields.skip_while(|&field| field != b"-").nth(2)?;
        let device = unescape(source);
        Some((
            number,
            Mount {
                device,
                mount_point,
            },
        ))
    };
    text.split(|&byte| byte == b'\n').filter_map(line).collect()
}

/// Lines of /proc/swaps after the heading; the path is the first column.
fn parse_swaps(text: &[u8]) -> Vec<PathBuf> {
    text.split(|&byte| byte == b'\n')
        .skip(1)
        .filter_map(|line| line.split(|byte| byte.is_ascii_whitespace()).next())
        .filter(|path| !path.is_empty())
        .map(unescape)
        .collect()
}

/// Undoes the kernel's `\ooo` for blanks and backslashes.
fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        match (first, tail) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..]) => {
                bytes.push(((a - b'0') << 6) | ((b - b'0') << 3) | (c - b'0'));
                rest = tail;
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_mountinfo() {
        let text = br"22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
31 22 0:27 /sub /mnt/with\040blank rw shared:5 master:2 - btrfs /dev/sdz1 rw,space_cache
40 22 0:5 / /odd rw - tmpfs tm\134fs rw
broken line
";
        let mounts = parse_mounts(text);
        let mount = |device: &str, mount_point: &str| Mount {
            device: device.into(),
            mount_point: mount_point.into(),
        };
        assert_eq!(
            mounts,
            [
                ((254, 0), mount("/dev/vda", "/")),
                ((0, 27), mount("/dev/sdz1", "/mnt/with blank")),
                ((0, 5), mount("tm\\fs", "/odd")),
            ]
        );
    }

    #[test]
    fn reads_swaps() {
        let text = b"Filename\t\t\tType\t\tSize\n/dev/sda2      partition\t1\t0\t-2\n/swap\\040file file\t1\n";
        assert_eq!(
            parse_swaps(text),
            [Path::new("/dev/sda2"), Path::new("/swap file")]
        );
        assert!(parse_swaps(b"").is_empty());
    }

    #[test]
    fn finds_partitions_and_holders() {
        let sys = tempfile::tempdir().unwrap();
        let make = |path: &str, content: &str| {
            let path = sys.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        };
        make("8:0/sda1/partition", "1\n");
        make("8:0/sda1/dev", "8:1\n");
        make("8:0/queue/rotational", "0\n");
        make("8:1/holders/dm-0/dev", "253:0\n");
        make("253:0/holders/dm-1/dev", "253:1\n");
        let mut family = Family::default();
        family.add((8, 0), sys.path());
        assert_eq!(
            family.numbers.into_iter().collect::<Vec<_>>(),
            [(8, 0), (8, 1), (253, 0), (253, 1)]
        );
        assert_eq!(
            family.holders,
            [Path::new("/dev/dm-0"), Path::new("/dev/dm-1")]
        );
    }
}
