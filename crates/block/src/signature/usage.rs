//! Who uses a device: mounts, swap, volumes and loop devices on top of it.

use super::{Mount, Usage};
use crate::{BlockError, PathKind};
use rustix::fs::{OFlags, major, minor};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{Metadata, OpenOptions};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Major and minor number.
type Number = (u32, u32);

/// All mounts that this process sees, in the order of their making.
///
/// # Errors
/// [`BlockError::Examine`].
pub fn mounts() -> Result<Vec<Mount>, BlockError> {
    let mounts = parse_mounts(&read("/proc/self/mountinfo")?);
    Ok(mounts.into_iter().map(|(_, mount)| mount).collect())
}

/// Who uses a file or block device with this metadata.
pub(super) fn of(path: &Path, kind: PathKind, metadata: &Metadata) -> Result<Usage, BlockError> {
    match kind {
        PathKind::RegularFile => of_file(path),
        PathKind::BlockDevice => Ok(Usage {
            held: is_held(path).map_err(|source| BlockError::Open {
                path: path.to_owned(),
                source,
            })?,
            ..of_device(metadata)?
        }),
    }
}

/// Whether someone has opened the block device exclusively, as mounts and
/// volume managers do.
///
/// The kernel gives up the rings of a program that just ended, and with them
/// the devices they hold, a little later: so a device is asked for a while.
fn is_held(path: &Path) -> io::Result<bool> {
    const ATTEMPTS: u32 = 50;
    const PAUSE: Duration = Duration::from_millis(20);
    for attempt in 1.. {
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::EXCL.bits() as i32)
            .open(path);
        match opened {
            Ok(_) => break,
            Err(error) if error.kind() != io::ErrorKind::ResourceBusy => return Err(error),
            Err(_) if attempt == ATTEMPTS => return Ok(true),
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
    Ok(false)
}

/// Who uses the block device with this metadata.
fn of_device(metadata: &Metadata) -> Result<Usage, BlockError> {
    let number = number_of(metadata);
    let mut family = Family::default();
    family.add(number, Path::new("/sys/dev/block"));
    family.usage(None)
}

/// Who uses a regular file: loop devices and the swap.
fn of_file(path: &Path) -> Result<Usage, BlockError> {
    let path = path.canonicalize().map_err(|source| BlockError::Open {
        path: path.to_owned(),
        source,
    })?;
    let mut family = Family::default();
    for device in entries(Path::new("/sys/block")) {
        let backing = std::fs::read(device.join("loop/backing_file")).unwrap_or_default();
        if backing.trim_ascii_end() == path.as_os_str().as_bytes()
            && let Some(number) = read_number(&device.join("dev"))
        {
            family.holders.push(device_path(&device));
            family.add(number, Path::new("/sys/dev/block"));
        }
    }
    family.usage(Some(&path))
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

    fn usage(self, file: Option<&Path>) -> Result<Usage, BlockError> {
        let number_at = |path: &Path| {
            std::fs::metadata(path)
                .ok()
                .filter(|metadata| metadata.file_type().is_block_device())
                .map(|metadata| number_of(&metadata))
        };
        let mounts = parse_mounts(&read("/proc/self/mountinfo")?)
            .into_iter()
            .filter(|(number, mount)| {
                // Btrfs mounts have a number of their own; their source tells.
                self.numbers.contains(number)
                    || number_at(&mount.device).is_some_and(|n| self.numbers.contains(&n))
            })
            .map(|(_, mount)| mount)
            .collect();
        let swaps = parse_swaps(&read("/proc/swaps").unwrap_or_default())
            .into_iter()
            .filter(|path| {
                Some(path.as_path()) == file
                    || number_at(path).is_some_and(|n| self.numbers.contains(&n))
            })
            .collect();
        Ok(Usage {
            mounts,
            swaps,
            holders: self.holders,
            held: false,
        })
    }
}

fn number_of(metadata: &Metadata) -> Number {
    (major(metadata.rdev()), minor(metadata.rdev()))
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
