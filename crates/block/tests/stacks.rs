//! The model test on every device and on stacks of them.

use block::layer::{Concat, Count, Delay, Fault, Slice, Trace, WriteCache};
use block::model::{Discarded, Model};
use block::{BlockDevice, ByteRange, Engine, FileDevice, FileOptions, OperationKind, RamDevice};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const MIB: u64 = 1 << 20;

fn zeroing(seed: u64) -> Model {
    Model {
        discarded: Discarded::Zeros,
        ..Model::new(seed)
    }
}

/// Directories on different kinds of file system, as far as there are any.
fn directories() -> Vec<&'static Path> {
    ["/var/tmp", "/dev/shm"]
        .into_iter()
        .map(Path::new)
        .filter(|path| path.is_dir())
        .collect()
}

fn scratch(directory: &Path, size: u64) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new_in(directory).unwrap();
    file.as_file().set_len(size).unwrap();
    file
}

fn open(path: &Path, engine: Option<Engine>, direct: bool) -> FileDevice {
    let options = FileOptions {
        write: true,
        direct,
        engine,
        hold: block::Hold::Usual,
    };
    FileDevice::open(path, &options).unwrap()
}

#[test]
fn ram() {
    for seed in 0..4 {
        let device = RamDevice::new(3 * MIB + 512);
        Model {
            longest: 2 * MIB,
            steps: 100,
            ..zeroing(seed)
        }
        .run(&device);
    }
    zeroing(9).run(&RamDevice::resident(2 * MIB));
}

#[test]
fn slices_of_ram() {
    let ram = RamDevice::new(3 * MIB);
    let slice = Slice::new(&ram, ByteRange::new(MIB - 512, MIB + 1024)).unwrap();
    zeroing(1).run(&slice);
    let inner = Slice::new(&slice, ByteRange::new(512, 64 << 10)).unwrap();
    zeroing(2).run(&inner);
    let mut before = vec![1; (MIB - 512) as usize];
    ram.read_at(0, &mut before).unwrap();
    assert!(before.iter().all(|&byte| byte == 0));
}

#[test]
fn devices_one_behind_the_other() {
    let parts = || [MIB, 512, MIB - 512].map(RamDevice::new).into();
    zeroing(3).run(&Concat::new(parts()).unwrap());
    let ram = RamDevice::new(2 * MIB);
    let halves = [(MIB, MIB), (0, MIB)]
        .map(|(offset, length)| Slice::new(&ram, ByteRange::new(offset, length)).unwrap());
    zeroing(4).run(&Concat::new(halves.into()).unwrap());
}

#[test]
fn files_by_every_engine() {
    for directory in directories() {
        for engine in [
            None,
            Some(Engine::Pread),
            Some(Engine::Threads),
            Some(Engine::IoUring),
        ] {
            for direct in [true, false] {
                let file = scratch(directory, 2 * MIB + 100);
                if engine == Some(Engine::IoUring)
                    && FileDevice::open(
                        file.path(),
                        &FileOptions {
                            engine,
                            ..FileOptions::default()
                        },
                    )
                    .is_err()
                {
                    println!("skipped: io_uring: this system does not permit it");
                    continue;
                }
                let device = open(file.path(), engine, direct);
                let block = u64::from(device.geometry().logical_block);
                assert_eq!(device.geometry().size, (2 * MIB + 100) / block * block);
                zeroing(3).run(&device);
                Model {
                    depth: 70,
                    ..zeroing(4)
                }
                .run(&device);
                println!(
                    "{}: {engine:?} → {} direct {} {:?}",
                    directory.display(),
                    device.engine(),
                    device.is_direct(),
                    device.geometry()
                );
            }
        }
    }
}

#[test]
fn counting_over_tracing_over_a_file() {
    let file = scratch(&std::env::temp_dir(), MIB);
    let device = Count::new(Trace::new(open(file.path(), None, true)));
    zeroing(5).run(&device);
    let discards = device.geometry().discard_granularity.is_some();
    if !discards {
        println!("skipped: discards of a file (there are none here)");
    }
    for kind in OperationKind::ALL {
        let expected = kind != OperationKind::Discard || discards;
        assert_eq!(device.of(kind).operations > 0, expected, "{kind}");
    }
}

#[test]
fn faultless_faults_and_flushed_caches() {
    zeroing(6).run(&Fault::new(RamDevice::new(MIB), []));
    let ram = RamDevice::new(MIB);
    let cache = WriteCache::new(&ram);
    zeroing(7).run(&cache);
    cache.flush().unwrap();
    let (mut above, mut below) = (vec![0; MIB as usize], vec![1; MIB as usize]);
    cache.read_at(0, &mut above).unwrap();
    ram.read_at(0, &mut below).unwrap();
    assert!(above == below);
}

#[test]
fn delays_over_devices_at_once_and_late() {
    let (read, write) = (Duration::from_micros(20), Duration::from_micros(5));
    zeroing(8).run(&Delay::new(RamDevice::new(MIB), read, write));
    zeroing(8).run(&Delay::new(
        RamDevice::new(MIB),
        Duration::ZERO,
        Duration::ZERO,
    ));
    let file = scratch(&std::env::temp_dir(), MIB);
    for engine in [Engine::Threads, Engine::Pread] {
        zeroing(9).run(&Delay::new(
            open(file.path(), Some(engine), true),
            read,
            write,
        ));
    }
}

#[test]
fn boxed_shared_and_borrowed_devices() {
    let shared: Arc<dyn BlockDevice> = Arc::new(RamDevice::new(MIB));
    zeroing(10).run(&shared);
    let boxed: Box<dyn BlockDevice> =
        Box::new(Slice::new(Arc::clone(&shared), ByteRange::new(0, 64 << 10)).unwrap());
    zeroing(11).run(&boxed);
    zeroing(12).run(&&*boxed);
}
