//! The rules of queues where devices fail, are late, or are left alone.

use block::layer::{Delay, Effect, Fault, Rule, Slice, Trigger};
use block::{
    AlignedBuffer, BlockDevice, BlockError, ByteRange, Completion, Engine, FileDevice, FileOptions,
    Meter, NullDevice, Operation, OperationKind, Part, Queue, QueueOptions, RamDevice, Request,
    TestFile, Timeline, Wait,
};
use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

fn read(offset: u64, length: usize, tag: u64) -> Request {
    Request::new(Operation::Read, offset, AlignedBuffer::new(length), tag)
}

fn write(offset: u64, data: &[u8], tag: u64) -> Request {
    Request::new(Operation::Write, offset, data.into(), tag)
}

fn test_file(size: u64) -> TestFile {
    TestFile::create(Path::new("/var/tmp"), size, 7, &mut |_| {
        ControlFlow::Continue(())
    })
    .unwrap()
}

/// The engines that this system has.
fn engines(file: &TestFile) -> Vec<FileDevice> {
    [Engine::Pread, Engine::Threads, Engine::IoUring]
        .into_iter()
        .filter_map(|engine| match file.device(Some(engine)) {
            Ok(device) => Some(device),
            Err(error) => {
                println!("skipped: {engine}: {error}");
                None
            }
        })
        .collect()
}

fn all(queue: &mut dyn Queue) -> Vec<Completion> {
    let mut completions: Vec<_> = std::iter::from_fn(|| queue.reap(Wait::Yes)).collect();
    completions.sort_by_key(|completion| completion.request.tag);
    completions
}

/// Nanoseconds since the first call: coarse, but a clock.
fn clock() -> u64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64 + 1
}

fn metered(depth: u32) -> QueueOptions {
    QueueOptions {
        depth,
        meter: Rc::new(Meter::new(clock)),
    }
}

#[test]
fn engines_say_their_names() {
    let names: Vec<String> = [Engine::IoUring, Engine::Threads, Engine::Pread]
        .iter()
        .map(Engine::to_string)
        .collect();
    assert_eq!(names, ["io_uring", "threads", "pread"]);
}

#[test]
fn memory_backed_files_are_read_inside_submit_and_never_direct() {
    if !cfg!(target_os = "linux") || !Path::new("/dev/shm").is_dir() {
        println!("skipped: a file system in memory that is known as such");
        return;
    }
    let file = TestFile::create(Path::new("/dev/shm"), MIB, 1, &mut |_| {
        ControlFlow::Continue(())
    })
    .unwrap();
    let device = file.device(None).unwrap();
    assert_eq!(device.engine(), Engine::Pread);
    assert!(!device.is_direct());
}

#[test]
fn files_open_for_reading_refuse_to_change() {
    let file = test_file(MIB);
    for engine in engines(&file).iter().map(FileDevice::engine) {
        let device = file
            .device_with(&FileOptions {
                engine: Some(engine),
                ..FileOptions::default()
            })
            .unwrap();
        assert_eq!(device.geometry().discard_granularity, None);
        let mut queue = device.queue(QueueOptions::new(2)).unwrap();
        queue.submit(write(0, &[1; 4096], 0));
        queue.submit(read(0, 4096, 1));
        let completions = all(&mut *queue);
        assert!(matches!(completions[0].result, Err(BlockError::ReadOnly)));
        assert_eq!(completions[0].request.buffer[..], [1; 4096]);
        completions[1].result.as_ref().unwrap();
    }
}

#[test]
fn a_file_that_shrinks_gives_errors_and_buffers() {
    for direct in [true, false] {
        for engine in [Engine::Pread, Engine::Threads, Engine::IoUring] {
            let file = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
            file.as_file().set_len(MIB).unwrap();
            let options = FileOptions {
                direct,
                engine: Some(engine),
                ..FileOptions::default()
            };
            let device = match FileDevice::open(file.path(), &options) {
                Ok(device) => device,
                Err(error) => {
                    println!("skipped: {engine}: {error}");
                    continue;
                }
            };
            file.as_file().set_len(MIB - 8192).unwrap();
            let mut queue = device.queue(QueueOptions::new(4)).unwrap();
            // Half of the first lies behind the end, all of the second.
            queue.submit(read(MIB - 16384, 16384, 0));
            queue.submit(read(MIB - 4096, 4096, 1));
            queue.submit(read(0, 4096, 2));
            let completions = all(&mut *queue);
            for (completion, length) in completions.iter().zip([16384, 4096, 4096]) {
                assert_eq!(completion.request.buffer.len(), length);
            }
            for completion in &completions[..2] {
                match &completion.result {
                    Err(BlockError::Io { source, .. }) => {
                        assert_eq!(source.kind(), std::io::ErrorKind::UnexpectedEof);
                    }
                    other => panic!("{engine}: {other:?}"),
                }
            }
            completions[2].result.as_ref().unwrap();
        }
    }
}

/// Gives `test` a file of 1 MiB, which was written and flushed, by each engine: the file, its
/// device, and what does a request.
fn with_each_engine(
    mut test: impl FnMut(
        tempfile::NamedTempFile,
        &FileDevice,
        &mut dyn FnMut(Request) -> Result<(), BlockError>,
        Engine,
    ),
) {
    for engine in [Engine::Pread, Engine::Threads, Engine::IoUring] {
        let file = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
        file.as_file().set_len(MIB).unwrap();
        let options = FileOptions {
            write: true,
            engine: Some(engine),
            ..FileOptions::default()
        };
        let device = match FileDevice::open(file.path(), &options) {
            Ok(device) => device,
            Err(error) => {
                println!("skipped: {engine}: {error}");
                continue;
            }
        };
        let mut queue = device.queue(QueueOptions::new(1)).unwrap();
        let mut done = |request: Request| {
            queue.submit(request);
            queue.reap(Wait::Yes).unwrap().result
        };
        done(write(0, &[1; 4096], 0)).unwrap();
        done(flush()).unwrap();
        test(file, &device, &mut done, engine);
    }
}

fn flush() -> Request {
    Request::new(Operation::Flush, 0, AlignedBuffer::empty(), 0)
}

/// A write behind the end would make it as long as it was, with a hole in it.
#[test]
fn a_file_that_was_cut_off_is_not_written_any_more() {
    let is_cut_off = |result| matches!(result, Err(BlockError::CutOff { size }) if size == MIB);
    for by_read in [true, false] {
        with_each_engine(|file, device, done, engine| {
            file.as_file().set_len(MIB - 65536).unwrap();
            match by_read {
                true => assert!(done(read(MIB - 4096, 4096, 0)).is_err()),
                // It is not seen yet, and makes the file longer.
                false => done(write(MIB - 32768, &[1; 4096], 0)).unwrap(),
            }
            assert!(is_cut_off(done(flush())), "{engine}");
            // Not even when it is as long as it was.
            file.as_file().set_len(MIB).unwrap();
            assert!(is_cut_off(done(write(0, &[2; 4096], 0))), "{engine}");
            assert!(is_cut_off(device.flush()), "{engine}");
            assert!(is_cut_off(device.write_at(0, &[2; 4096])), "{engine}");
            done(read(0, 4096, 0)).unwrap();
        });
    }
}

/// Data that is flushed to a file without a name goes away with the file.
#[cfg(unix)]
#[test]
fn a_file_that_was_removed_has_nothing_durable() {
    let is_removed = |result| matches!(result, Err(BlockError::Removed));
    with_each_engine(|file, device, done, engine| {
        drop(file);
        done(write(0, &[1; 4096], 0)).unwrap();
        assert!(is_removed(done(flush())), "{engine}");
        assert!(is_removed(device.flush()), "{engine}");
        done(read(0, 4096, 0)).unwrap();
    });
}

#[test]
fn queues_may_be_dropped_with_everything_in_flight() {
    let file = test_file(8 * MIB);
    for device in engines(&file) {
        for depth in [1, 16, 256] {
            let mut queue = device.queue(QueueOptions::new(depth)).unwrap();
            for tag in 0..u64::from(depth) {
                let offset = tag % 128 * 65536;
                queue.submit(match tag % 3 {
                    0 => write(offset, &[tag as u8; 65536], tag),
                    _ => read(offset, 65536, tag),
                });
            }
            drop(queue);
        }
        device.read_at(0, &mut [0; 4096]).unwrap();
    }
}

#[test]
fn a_queue_outlives_nothing_and_can_be_opened_again_and_again() {
    let file = test_file(MIB);
    for device in engines(&file) {
        for _ in 0..20 {
            let mut queue = device.queue(QueueOptions::new(4)).unwrap();
            queue.submit(Request::new(
                Operation::Flush,
                u64::MAX,
                AlignedBuffer::empty(),
                5,
            ));
            let completion = queue.reap(Wait::Yes).unwrap();
            assert_eq!(
                (completion.request.tag, completion.request.offset),
                (5, u64::MAX)
            );
            completion.result.unwrap();
            assert!(queue.reap(Wait::Yes).is_none());
        }
        device
            .queue(QueueOptions::new(QueueOptions::MAX_DEPTH))
            .unwrap();
    }
}

#[test]
fn slices_hand_flushes_through_and_offsets_back() {
    let ram = RamDevice::new(MIB);
    let slice = Slice::new(&ram, ByteRange::new(4096, 8192)).unwrap();
    let mut queue = slice.queue(QueueOptions::new(4)).unwrap();
    queue.submit(Request::new(
        Operation::Flush,
        u64::MAX,
        AlignedBuffer::empty(),
        0,
    ));
    queue.submit(write(4096, &[5; 4096], 1));
    queue.submit(read(8192, 4096, 2));
    let completions = all(&mut *queue);
    assert_eq!(completions[0].request.offset, u64::MAX);
    assert_eq!(completions[1].request.offset, 4096);
    assert!(completions[..2].iter().all(|done| done.result.is_ok()));
    assert!(matches!(
        completions[2].result,
        Err(BlockError::OutOfRange { size: 8192, .. })
    ));
    let mut found = [0; 4096];
    ram.read_at(8192, &mut found).unwrap();
    assert_eq!(found, [5; 4096]);
}

#[test]
fn the_null_device_touches_no_buffer_and_no_clock() {
    fn forbidden() -> u64 {
        panic!("the null queue read the clock")
    }
    let device = NullDevice::new(1 << 60);
    let mut queue = device
        .queue(QueueOptions {
            depth: 4,
            meter: Rc::new(Meter::new(forbidden)),
        })
        .unwrap();
    let mut request = read((1 << 60) - 4096, 4096, 0);
    request.buffer.fill(9);
    queue.submit(request);
    let completion = queue.reap(Wait::No).unwrap();
    completion.result.unwrap();
    assert_eq!(completion.request.buffer[..], [9; 4096]);
    assert_eq!(completion.request.timeline, Timeline::default());
    assert!(device.write_at(1 << 60, &[0; 512]).is_err());
    assert!(device.discard(ByteRange::new(0, 100)).is_err());
}

#[test]
fn time_is_charged_where_it_was_spent() {
    let ram = RamDevice::new(MIB);
    let options = metered(1);
    let mut queue = ram.queue(options.clone()).unwrap();
    queue.submit(write(0, &[1; 65536], 0));
    let done = queue.reap(Wait::Yes).unwrap().request.timeline.device;
    assert!(done > 0);
    assert_eq!(options.meter.spent(Part::Copy), done);
    assert_eq!(options.meter.spent(Part::Submit), 0);

    let file = test_file(MIB);
    for device in engines(&file) {
        let options = metered(4);
        let mut queue = device.queue(options.clone()).unwrap();
        let before = clock();
        queue.submit(read(0, 65536, 0));
        let done = queue.reap(Wait::Yes).unwrap().request.timeline.device;
        let (submit, wait) = (
            options.meter.spent(Part::Submit),
            options.meter.spent(Part::Wait),
        );
        assert!(submit > 0, "{}", device.engine());
        assert!(submit + wait <= clock() - before);
        assert!(done > 0);
        match device.engine() {
            Engine::Pread => assert_eq!((submit, wait), (done, 0)),
            Engine::Threads | Engine::IoUring => assert_eq!(options.meter.spent(Part::Copy), 0),
        }
    }
}

#[test]
fn timelines_add_up_and_keep_what_was_there() {
    let ram = RamDevice::new(MIB);
    let mut queue = ram.queue(metered(1)).unwrap();
    let mut request = read(0, 4096, 0);
    request.timeline = Timeline {
        crypto: 11,
        device: 1 << 40,
    };
    queue.submit(request);
    let timeline = queue.reap(Wait::Yes).unwrap().request.timeline;
    assert_eq!(timeline.crypto, 11);
    assert!(timeline.device > 1 << 40);
}

#[test]
fn delays_are_kept_at_the_least() {
    let delay = Duration::from_millis(3);
    let device = Delay::new(RamDevice::new(MIB), delay, Duration::ZERO);
    let start = Instant::now();
    device.read_at(0, &mut [0; 512]).unwrap();
    assert!(start.elapsed() >= delay);

    let options = metered(8);
    let mut queue = device.queue(options.clone()).unwrap();
    let start = Instant::now();
    for tag in 0..8 {
        queue.submit(read(0, 512, tag));
    }
    assert_eq!(queue.in_flight(), 8);
    for tag in 0..8 {
        let completion = queue.reap(Wait::Yes).unwrap();
        assert!(start.elapsed() >= delay);
        assert_eq!(completion.request.tag, tag);
        assert!(completion.request.timeline.device >= delay.as_nanos() as u64);
    }
    assert!(options.meter.spent(Part::Wait) > 0);
}

#[test]
fn undelayed_requests_overtake_delayed_ones() {
    let device = Delay::new(
        RamDevice::new(MIB),
        Duration::from_millis(200),
        Duration::ZERO,
    );
    let mut queue = device.queue(QueueOptions::new(2)).unwrap();
    queue.submit(read(0, 512, 0));
    queue.submit(write(0, &[1; 512], 1));
    assert_eq!(queue.reap(Wait::Yes).unwrap().request.tag, 1);
    assert_eq!(queue.reap(Wait::Yes).unwrap().request.tag, 0);
}

#[test]
fn delays_over_faults_hand_failures_through() {
    let faulty = Fault::new(
        RamDevice::new(MIB),
        [Rule::on(
            OperationKind::Read,
            Trigger::Nth(1),
            Effect::Fail(5),
        )],
    );
    let device = Delay::new(faulty, Duration::from_micros(50), Duration::ZERO);
    let mut queue = device.queue(QueueOptions::new(4)).unwrap();
    for tag in 0..5 {
        queue.submit(read(0, 512, tag));
    }
    let completions = all(&mut *queue);
    assert_eq!(completions.len(), 5);
    assert_eq!(completions[0].result.as_ref().unwrap_err().errno(), 5);
    assert!(matches!(
        completions[4].result,
        Err(BlockError::QueueFull { depth: 4 })
    ));
    assert!(completions[1..4].iter().all(|done| done.result.is_ok()));
}
