//! Files on Windows: around the cache, by threads with handles of their own, and
//! test files that go with their last user.

#![cfg(windows)]

use block::{
    AlignedBuffer, BlockDevice, BlockError, ByteRange, Engine, FileDevice, FileOptions, Operation,
    Queue, QueueOptions, Request, TestFile, Wait,
};
use std::ops::ControlFlow;
use std::path::Path;

const SIZE: u64 = 8 << 20;

fn on(_: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn files_in(directory: &Path) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

/// Sixteen reads at a time, which must give what the seed says.
fn read_by_queue(device: &FileDevice, seed: u64) {
    let mut expected = vec![0; SIZE as usize];
    for (chunk, into) in expected.chunks_mut(TestFile::CHUNK as usize).enumerate() {
        TestFile::content(seed, chunk as u64, into);
    }
    let mut queue = device.queue(QueueOptions::new(16)).unwrap();
    let check = |queue: &mut dyn Queue| {
        let done = queue.reap(Wait::Yes).unwrap();
        done.result.unwrap();
        let at = done.request.offset as usize;
        assert!(done.request.buffer[..] == expected[at..at + 65_536]);
    };
    for request in 0..SIZE / 65_536 {
        if queue.in_flight() == 16 {
            check(&mut *queue);
        }
        let buffer = AlignedBuffer::new(65_536);
        let offset = request * 65_536;
        queue.submit(Request::new(Operation::Read, offset, buffer, request));
    }
    while queue.in_flight() > 0 {
        check(&mut *queue);
    }
}

#[test]
fn a_test_file_goes_with_its_last_device() {
    let folder = tempfile::tempdir().unwrap();
    let file = TestFile::create(folder.path(), SIZE, 42, &mut on).unwrap();
    assert!(file.allocated().unwrap() >= SIZE);
    assert_eq!(files_in(folder.path()), 1);
    let device = file.device(None).unwrap();
    assert!(device.is_direct());
    assert_eq!(device.engine(), Engine::Threads);
    read_by_queue(&device, 42);
    drop(file);
    // Its threads open it once more.
    read_by_queue(&device, 42);
    let mut unaligned = vec![0; 4097];
    device.read_at(4096, &mut unaligned[1..]).unwrap();
    device.write_at(4096, &unaligned[1..]).unwrap();
    device.flush().unwrap();
    read_by_queue(&device, 42);
    drop(device);
    assert_eq!(files_in(folder.path()), 0);
}

#[test]
fn a_file_is_a_device_of_whole_blocks_and_nothing_else_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, vec![7; 10_000]).unwrap();
    let device = FileDevice::open(&path, &FileOptions::default()).unwrap();
    let geometry = device.geometry();
    assert_eq!(
        geometry.size,
        10_000 / u64::from(geometry.logical_block) * u64::from(geometry.logical_block)
    );
    assert_eq!(geometry.discard_granularity, None);
    let mut read = vec![0; geometry.logical_block as usize];
    device.read_at(0, &mut read).unwrap();
    assert!(read.iter().all(|&byte| byte == 7));
    // Nothing was written, so that there is nothing to do.
    device.flush().unwrap();
    assert!(matches!(
        device.write_at(0, &read),
        Err(BlockError::ReadOnly)
    ));
    let whole = ByteRange::new(0, geometry.size);
    assert!(
        device
            .extents(whole)
            .unwrap()
            .iter()
            .all(|extent| !extent.hole)
    );
    let refused = FileDevice::open(folder.path(), &FileOptions::default());
    assert!(matches!(refused, Err(BlockError::NotADevice { .. })));
    let options = FileOptions {
        write: true,
        ..FileOptions::default()
    };
    let device = FileDevice::open(&path, &options).unwrap();
    assert!(matches!(
        device.discard(whole),
        Err(BlockError::Unsupported { .. })
    ));
    let ring = FileOptions {
        engine: Some(Engine::IoUring),
        ..FileOptions::default()
    };
    assert!(matches!(
        FileDevice::open(&path, &ring),
        Err(BlockError::Engine { .. })
    ));
}
