//! Refusing to overwrite: files, and real block devices where this user may
//! make some.

use block::signature::{guard, inspect};
use block::{BlockDevice, BlockError, ByteRange, FileDevice, FileOptions, Hold, PathKind};
use std::path::{Path, PathBuf};
use std::process::Command;

const SIZE: u64 = 16 << 20;

fn image() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(SIZE).unwrap();
    file
}

#[test]
fn files_are_judged_by_their_content() {
    let file = image();
    guard(file.path(), false).unwrap();
    let options = FileOptions {
        write: true,
        ..FileOptions::default()
    };
    let device = FileDevice::open(file.path(), &options).unwrap();
    device.write_at(8192, &[3; 4096]).unwrap();
    assert!(matches!(
        guard(file.path(), false),
        Err(BlockError::Holds { content, .. }) if content.found.is_empty()
    ));
    let mut luks = [0; 4096];
    luks[..6].copy_from_slice(b"LUKS\xba\xbe");
    device.write_at(0, &luks).unwrap();
    let error = guard(file.path(), false).unwrap_err();
    assert!(error.to_string().contains("holds a LUKS volume"));
    assert!(error.remedy().contains("confirm"));
    guard(file.path(), true).unwrap();
}

#[test]
fn what_is_no_device_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    assert!(matches!(
        guard(directory.path(), true),
        Err(BlockError::NotADevice { .. })
    ));
    assert!(matches!(
        guard(Path::new("/dev/null"), true),
        Err(BlockError::NotADevice { .. })
    ));
    assert!(matches!(
        guard(&directory.path().join("missing"), true),
        Err(BlockError::Open { .. })
    ));
    assert!(matches!(
        FileDevice::open(directory.path(), &FileOptions::default()),
        Err(BlockError::NotADevice { .. })
    ));
}

/// A loop device, detached on drop.
struct Loop(PathBuf);

impl Loop {
    fn attach(file: &Path) -> Result<Self, String> {
        Self::of_part(file, 0, SIZE)
    }

    fn of_part(file: &Path, offset: u64, size: u64) -> Result<Self, String> {
        let (offset, size) = (format!("--offset={offset}"), format!("--sizelimit={size}"));
        let file = file.to_str().unwrap();
        let path = run("losetup", &["--find", "--show", &offset, &size, file])?;
        Ok(Self(path.trim().into()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = run("losetup", &["--detach", self.0.to_str().unwrap()]);
    }
}

fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

#[test]
fn two_devices_on_one_part_of_a_file_exclude_each_other() {
    const HALF: u64 = SIZE / 2;
    let file = image();
    let attach = |start, size| Loop::of_part(file.path(), start, size);
    let options = FileOptions {
        write: true,
        ..FileOptions::default()
    };
    for (start, size, are_apart) in [
        (HALF, HALF, true),
        (HALF - 4096, HALF, false),
        (0, 4096, false),
        (0, SIZE, false),
    ] {
        let (one, other) = match (attach(0, HALF), attach(start, size)) {
            (Ok(one), Ok(other)) => (one, other),
            (Err(reason), _) | (_, Err(reason)) => {
                println!("skipped: loop devices: {reason}");
                return;
            }
        };
        let _used = FileDevice::open(&one.0, &options).unwrap();
        let opened = FileDevice::open(&other.0, &options);
        match are_apart {
            true => assert!(opened.is_ok(), "{start} + {size}"),
            false => assert!(
                matches!(opened, Err(BlockError::InUse { .. })),
                "{start} + {size}"
            ),
        }
    }
}

#[test]
fn block_devices_are_protected_and_usable() {
    let file = image();
    let device = match Loop::attach(file.path()) {
        Ok(device) => device,
        Err(reason) => {
            println!("skipped: loop devices: {reason}");
            return;
        }
    };
    let path = device.0.as_path();
    assert!(
        matches!(guard(file.path(), true), Err(BlockError::InUse { .. })),
        "the file under a loop device is in use"
    );
    assert!(inspect(path).unwrap().content.is_blank());
    guard(path, false).unwrap();

    let options = FileOptions {
        write: true,
        hold: Hold::Usual,
        ..FileOptions::default()
    };
    let open = FileDevice::open(path, &options).unwrap();
    assert_eq!(open.path_kind(), PathKind::BlockDevice);
    assert_eq!(open.geometry().size, SIZE);
    assert!(matches!(guard(path, true), Err(BlockError::InUse { .. })));
    assert!(matches!(
        FileDevice::open(path, &options),
        Err(BlockError::InUse { .. })
    ));
    block::model::Model {
        steps: 100,
        ..block::model::Model::new(1)
    }
    .run(&open);
    if open.geometry().discard_granularity.is_some() {
        open.discard(ByteRange::new(0, SIZE)).unwrap();
    }
    drop(open);

    // The kernel lets go of what was opened exclusively a moment after it is closed.
    let make = || run("mkfs.ext2", &["-q", "-F", path.to_str().unwrap()]);
    let mut made = make();
    for _ in 0..50 {
        if made.is_ok() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
        made = make();
    }
    if let Err(reason) = made {
        println!("skipped: mounting: {reason}");
        return;
    }
    assert!(matches!(
        guard(path, false),
        Err(BlockError::Holds { content, .. }) if !content.found.is_empty()
    ));
    let mount_point = tempfile::tempdir().unwrap();
    let place = mount_point.path().to_str().unwrap();
    if let Err(reason) = run("mount", &[path.to_str().unwrap(), place]) {
        println!("skipped: mounting: {reason}");
        return;
    }
    let verdicts = [guard(path, true), guard(file.path(), true)];
    run("umount", &[place]).unwrap();
    for verdict in verdicts {
        match verdict {
            Err(BlockError::Mounted {
                mount_point: found, ..
            }) => assert_eq!(found, mount_point.path()),
            other => panic!("{other:?}"),
        }
    }
}
