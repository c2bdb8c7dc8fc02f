//! An export as a file: whatever is done to it equals what is done to a byte
//! array, by direct and by buffered access.

use block::layer::{Effect, Fault, Rule, Trigger, Trim, TrimPolicy};
use block::model::{Discarded, Model};
use block::{
    AlignedBuffer, BlockDevice, ByteRange, FileDevice, FileOptions, OperationKind, RamDevice,
};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::fs::{FallocateFlags, OFlags, SeekFrom, fallocate, seek};
use rustix::io::Errno;
use serve::fuse::{FuseError, FuseMount, Place, Unmount, Visibility, unmount};
use serve::{Access, Export, Extent};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
const SIZE: u64 = 3 * MIB;

/// A mount that goes away with its directory, whatever becomes of the test.
struct Mounted {
    mount: FuseMount,
    directory: tempfile::TempDir,
}

impl Mounted {
    fn new(export: Export) -> Option<Self> {
        Self::served_by(2, export)
    }

    fn served_by(threads: usize, export: Export) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::In {
            directory: directory.path().to_owned(),
            name: "volume".into(),
        };
        match FuseMount::new(Arc::new(export), &place, threads, Visibility::Owner) {
            Ok(mount) => Some(Self { mount, directory }),
            Err(error) => {
                println!("skipped: FUSE: {error}");
                None
            }
        }
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("volume")
    }

    fn open(&self, direct: bool) -> File {
        let flags = if direct {
            OFlags::DIRECT
        } else {
            OFlags::empty()
        };
        OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags.bits() as i32)
            .open(self.file())
            .unwrap()
    }

    fn unmount(&self) {
        // A ring lets go of its files a little after it was closed.
        within_seconds(|| match unmount(self.directory.path(), Unmount::Unused) {
            Err(FuseError::Busy { .. }) => false,
            outcome => outcome.is_ok(),
        });
        within_seconds(|| self.mount.is_over());
    }
}

#[track_caller]
fn within_seconds(mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it does not end");
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Most tests have unmounted it.
        let _ = unmount(self.directory.path(), Unmount::Detached);
    }
}

fn device(path: &Path, direct: bool) -> FileDevice {
    let options = FileOptions {
        write: true,
        direct,
        ..FileOptions::default()
    };
    FileDevice::open(path, &options).unwrap()
}

fn written(device: impl BlockDevice + 'static) -> Export {
    Export::new(Arc::new(device), Access::Write)
}

#[test]
fn equals_the_model_under_every_trim_policy() {
    for (seed, policy) in (0..).zip(TrimPolicy::ALL) {
        // One thread alone writes large requests in parts.
        for (direct, threads) in [(false, 2), (true, 2), (true, 1)] {
            let below = Trim::new(RamDevice::new(SIZE), policy);
            let Some(mounted) = Mounted::served_by(threads, written(below)) else {
                return;
            };
            let file = device(&mounted.file(), direct);
            assert_eq!(file.is_direct(), direct);
            let discards = file.geometry().discard_granularity.is_some();
            assert_eq!(discards, policy != TrimPolicy::Block, "{policy}");
            Model {
                discarded: Discarded::Zeros,
                longest: 2 * MIB,
                steps: 150,
                ..Model::new(seed)
            }
            .run(&file);
            drop(file);
            mounted.unmount();
        }
    }
}

/// Buffered and direct requests to one file in turn, each seeing what the
/// other did; any byte range where the road takes it.
#[test]
fn any_bytes_by_either_road() {
    let Some(mounted) = Mounted::new(written(RamDevice::new(SIZE))) else {
        return;
    };
    let roads = [mounted.open(false), mounted.open(true)];
    let mut expected = vec![0; SIZE as usize];
    let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
    for step in 0..1500 {
        let direct = random.next_u64() % 2 == 1;
        let file = &roads[usize::from(direct)];
        let unit = if direct { 512 } else { 1 };
        let longest = if random.next_u64() % 8 == 0 {
            MIB + MIB / 2
        } else {
            20_000
        };
        let length = (1 + random.next_u64() % longest).next_multiple_of(unit);
        let offset = random.next_u64() % (SIZE - length + 1) / unit * unit;
        let range = offset as usize..(offset + length) as usize;
        let mut data = AlignedBuffer::new(length as usize);
        match random.next_u64() % 8 {
            0 => {
                let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                fallocate(file, mode, offset, length).unwrap();
                expected[range].fill(0);
            }
            1 => {
                fallocate(file, FallocateFlags::ZERO_RANGE, offset, length).unwrap();
                expected[range].fill(0);
            }
            2..=4 => {
                random.fill_bytes(&mut data);
                file.write_all_at(&data, offset).unwrap();
                expected[range].copy_from_slice(&data);
            }
            _ => {
                file.read_exact_at(&mut data, offset).unwrap();
                assert!(expected[range] == data[..], "step {step}, direct {direct}");
            }
        }
    }
    drop(roads);
    assert!(std::fs::read(mounted.file()).unwrap() == expected);
    mounted.unmount();
}

#[test]
fn clients_do_not_disturb_each_other() {
    let Some(mounted) = Mounted::new(written(RamDevice::new(SIZE))) else {
        return;
    };
    let part = SIZE / 4;
    std::thread::scope(|scope| {
        for client in 0..4_u64 {
            let file = mounted.open(client % 2 == 1);
            scope.spawn(move || {
                let mut data = AlignedBuffer::new(64 << 10);
                for round in 0..40 {
                    let offset = client * part + round % 12 * (64 << 10);
                    data.fill((client * 64 + round) as u8);
                    file.write_all_at(&data, offset).unwrap();
                    data.fill(0);
                    file.read_exact_at(&mut data, offset).unwrap();
                    assert!(data.iter().all(|&byte| byte == (client * 64 + round) as u8));
                }
            });
        }
    });
    mounted.unmount();
}

#[test]
fn failures_below_are_the_client_s_and_heard_of_once() {
    let rules = [
        Rule::on(
            OperationKind::Read,
            Trigger::Touching(ByteRange::new(MIB, 512)),
            Effect::Fail(5),
        ),
        Rule::on(
            OperationKind::Write,
            Trigger::Touching(ByteRange::new(MIB, 512)),
            Effect::Fail(28),
        ),
        Rule::on(OperationKind::Flush, Trigger::Nth(1), Effect::Fail(5)),
    ];
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&heard);
    let export = written(Fault::new(RamDevice::new(SIZE), rules))
        .with_listener(move |error| listener.lock().unwrap().push(error.errno()));
    let Some(mounted) = Mounted::new(export) else {
        return;
    };
    let file = mounted.open(true);
    let mut data = AlignedBuffer::new(4096);
    let error = |result: std::io::Result<()>| result.unwrap_err().raw_os_error();
    for _ in 0..3 {
        assert_eq!(error(file.read_exact_at(&mut data, MIB)), Some(5));
        assert_eq!(error(file.write_all_at(&data, MIB)), Some(28));
    }
    // Other writers hear of it, too, and later.
    let other = mounted.open(false);
    for file in [&file, &other, &file] {
        assert_eq!(error(file.sync_all()), Some(5));
    }
    drop(other);
    file.write_all_at(&data, 0).unwrap();
    file.read_exact_at(&mut data, 2 * MIB).unwrap();
    let mut heard = heard.lock().unwrap().clone();
    heard.sort_unstable();
    // Injected faults are told apart by their number alone.
    assert_eq!(heard, [5, 28]);
    drop(file);
    mounted.unmount();
}

#[test]
fn a_file_that_is_only_read() {
    let export = Export::new(Arc::new(RamDevice::new(SIZE)), Access::Read);
    let Some(mounted) = Mounted::new(export) else {
        return;
    };
    let refused = OpenOptions::new().write(true).open(mounted.file());
    assert_eq!(refused.unwrap_err().raw_os_error(), Some(30));
    assert_eq!(
        std::fs::read(mounted.file()).unwrap(),
        vec![0; SIZE as usize]
    );
    mounted.unmount();
}

#[test]
fn what_a_volume_cannot_do_is_refused() {
    let trim = Trim::new(RamDevice::new(SIZE), TrimPolicy::Block);
    let Some(mounted) = Mounted::new(written(trim)) else {
        return;
    };
    let file = mounted.open(false);
    for size in [0, SIZE - 1, SIZE + 1] {
        let error = file.set_len(size).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(1), "{size}");
    }
    file.set_len(SIZE).unwrap();
    assert!(File::create(mounted.file()).is_err());
    assert!(File::create(mounted.directory.path().join("other")).is_err());
    assert!(std::fs::remove_file(mounted.file()).is_err());
    for mode in [
        FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
        FallocateFlags::empty(),
        FallocateFlags::KEEP_SIZE,
    ] {
        assert_eq!(
            fallocate(&file, mode, 0, 4096),
            Err(Errno::OPNOTSUPP),
            "{mode:?}"
        );
    }
    fallocate(&file, FallocateFlags::ZERO_RANGE, 0, 4096).unwrap();
    let error = file.write_at(&[1], SIZE).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(28));
    assert_eq!(file.write_at(&[1; 4096], SIZE - 100).unwrap(), 100);
    assert_eq!(file.metadata().unwrap().len(), SIZE);
    assert_eq!(file.read_at(&mut [0; 4096], SIZE - 100).unwrap(), 100);
    drop(file);
    mounted.unmount();
}

#[test]
fn holes_are_found() {
    let export = written(RamDevice::new(SIZE)).with_allocation(|range| {
        // The second MiB is a hole.
        let parts = [(0, MIB, false), (MIB, MIB, true), (2 * MIB, MIB, false)];
        let inside = parts.iter().filter_map(|&(start, length, hole)| {
            let end = (start + length).min(range.offset + range.length);
            let start = start.max(range.offset);
            (start < end).then(|| Extent {
                range: ByteRange::new(start, end - start),
                hole,
            })
        });
        Ok(inside.collect())
    });
    let Some(mounted) = Mounted::new(export) else {
        return;
    };
    let file = mounted.open(false);
    for (from, expected) in [
        (SeekFrom::Hole(0), Ok(MIB)),
        (SeekFrom::Hole(MIB + 7), Ok(MIB + 7)),
        (SeekFrom::Hole(2 * MIB), Ok(SIZE)),
        (SeekFrom::Data(5), Ok(5)),
        (SeekFrom::Data(MIB + 7), Ok(2 * MIB)),
        (SeekFrom::Data(SIZE), Err(Errno::NXIO)),
    ] {
        assert_eq!(seek(&file, from), expected, "{from:?}");
    }
    drop(file);
    mounted.unmount();
}

#[test]
fn what_is_open_stays_mounted() {
    let Some(mounted) = Mounted::new(written(RamDevice::new(SIZE))) else {
        return;
    };
    let file = mounted.open(false);
    let refused = unmount(mounted.directory.path(), Unmount::Unused);
    assert!(matches!(refused, Err(FuseError::Busy { .. })));
    file.write_all_at(b"still here", 0).unwrap();
    drop(file);
    mounted.unmount();
    let refused = unmount(mounted.directory.path(), Unmount::Unused);
    assert!(matches!(refused, Err(FuseError::Unmount { .. })));
}

/// The checks of pjdfstest for names and attributes, as far as they apply to one file that stays as
/// it is.
#[test]
fn nothing_is_made_renamed_or_taken_away() {
    use rustix::fs::{self, AtFlags, CWD, Gid, Mode, RenameFlags, Timestamps, Uid};
    let Some(mounted) = Mounted::new(written(RamDevice::new(SIZE))) else {
        return;
    };
    let (directory, file) = (mounted.directory.path(), mounted.file());
    let new = directory.join("new");
    let below = file.join("below");
    let long = directory.join("x".repeat(256));
    let mode = Mode::from_raw_mode(0o644);
    let create = OFlags::CREATE | OFlags::RDWR;
    let open = |path: &Path, flags| fs::open(path, flags, mode).map(drop);
    let stat = |path: &Path| fs::stat(path).map(drop);
    let device = fs::FileType::Fifo;
    let outside = tempfile::tempdir().unwrap();
    let to = outside.path().join("to");
    let root = (Some(Uid::from_raw(7)), Some(Gid::from_raw(7)));
    let now = Timestamps {
        last_access: fs::Timespec {
            tv_sec: 7,
            tv_nsec: 0,
        },
        last_modification: fs::Timespec {
            tv_sec: 7,
            tv_nsec: 0,
        },
    };
    let opened = mounted.open(false);
    for (what, outcome, expected) in [
        ("open", open(&new, OFlags::RDONLY), Err(Errno::NOENT)),
        ("create", open(&new, create), Err(Errno::PERM)),
        ("create it", open(&file, create), Ok(())),
        (
            "create anew",
            open(&file, create | OFlags::EXCL),
            Err(Errno::EXIST),
        ),
        ("below a file", open(&below, create), Err(Errno::NOTDIR)),
        (
            "as directory",
            open(&file, OFlags::DIRECTORY),
            Err(Errno::NOTDIR),
        ),
        (
            "directory",
            open(directory, OFlags::RDWR),
            Err(Errno::ISDIR),
        ),
        (
            "truncate",
            open(&file, OFlags::RDWR | OFlags::TRUNC),
            Err(Errno::PERM),
        ),
        ("long name", stat(&long), Err(Errno::NAMETOOLONG)),
        ("create long", open(&long, create), Err(Errno::NAMETOOLONG)),
        ("mkdir", fs::mkdir(&new, mode), Err(Errno::PERM)),
        ("mkdir it", fs::mkdir(&file, mode), Err(Errno::EXIST)),
        (
            "mknod",
            fs::mknodat(CWD, &new, device, mode, 0),
            Err(Errno::PERM),
        ),
        ("symlink", fs::symlink(&file, &new), Err(Errno::PERM)),
        ("symlink it", fs::symlink(&new, &file), Err(Errno::EXIST)),
        ("link", fs::link(&file, &new), Err(Errno::PERM)),
        ("link out", fs::link(&file, &to), Err(Errno::XDEV)),
        ("unlink", fs::unlink(&file), Err(Errno::PERM)),
        ("unlink nothing", fs::unlink(&new), Err(Errno::NOENT)),
        ("rmdir", fs::rmdir(&file), Err(Errno::NOTDIR)),
        ("rmdir the mount", fs::rmdir(directory), Err(Errno::BUSY)),
        ("rename", fs::rename(&file, &new), Err(Errno::PERM)),
        ("rename nothing", fs::rename(&new, &file), Err(Errno::NOENT)),
        ("rename out", fs::rename(&file, &to), Err(Errno::XDEV)),
        (
            "rename to itself",
            fs::renameat_with(CWD, &file, CWD, &file, RenameFlags::NOREPLACE),
            Err(Errno::EXIST),
        ),
        ("chmod", fs::chmod(&file, mode), Err(Errno::PERM)),
        ("chown", fs::chown(&file, root.0, root.1), Err(Errno::PERM)),
        (
            "utimensat",
            fs::utimensat(CWD, &file, &now, AtFlags::empty()),
            Ok(()),
        ),
        ("ftruncate", fs::ftruncate(&opened, SIZE), Ok(())),
        (
            "shorter",
            fs::ftruncate(&opened, SIZE - 1),
            Err(Errno::PERM),
        ),
        ("longer", fs::ftruncate(&opened, SIZE + 1), Err(Errno::PERM)),
        (
            "allocate",
            fallocate(&opened, FallocateFlags::empty(), 0, 1),
            Err(Errno::OPNOTSUPP),
        ),
    ] {
        assert_eq!(outcome, expected, "{what}");
    }
    drop(opened);
    let found = std::fs::read_dir(directory).unwrap();
    let names: Vec<_> = found.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["volume"]);
    assert_eq!(std::fs::metadata(&file).unwrap().len(), SIZE);
    mounted.unmount();
}
