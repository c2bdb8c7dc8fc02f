//! A simulated drive as a block device. Written data is read again, time is that of the drive and
//! the processor, and its threads are told apart.

extern crate cryptmark_drive as drive;

mod host;

use block::model::{Discarded, Model};
use block::{
    AlignedBuffer, BlockDevice, BlockError, ByteRange, Meter, NullDevice, Operation, Part,
    QueueOptions, RamDevice, Request, Wait,
};
use drive::preset::Preset;
use drive::{DriveError, Driver, Processor, SimulatedDevice, time};
use host::{ClosedLoop, Pattern};
use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::rc::Rc;

const SIZE: u64 = 2 << 20;

fn processor(driver: Driver, cores: u32, mb_s: f64) -> Option<Processor> {
    Some(Processor::new(driver, NonZeroU32::new(cores).unwrap(), mb_s).unwrap())
}

fn device<D: BlockDevice>(
    name: &str,
    content: D,
    processor: Option<Processor>,
) -> SimulatedDevice<D> {
    let preset = Preset::named(name).unwrap();
    let drive = preset.drive(content.geometry().size, 1).unwrap();
    SimulatedDevice::new(drive, content, processor).unwrap()
}

#[test]
fn every_preset_keeps_what_is_written() {
    for name in Preset::names() {
        for processor in [
            None,
            processor(Driver::Queue, 1, 50.0),
            processor(Driver::Queue, 4, 500.0),
            processor(Driver::InTurn, 1, 50.0),
            processor(Driver::TrueCrypt, 2, 500.0),
        ] {
            let device = device(name, RamDevice::new(SIZE), processor);
            let discarded = match device.geometry().discard_granularity {
                Some(_) => Discarded::Zeros,
                None => Discarded::Anything,
            };
            Model {
                discarded,
                ..Model::new(7)
            }
            .run(&device);
        }
    }
}

#[test]
fn a_disk_refuses_discards() {
    let disk = device("hdd-desktop-2003", RamDevice::new(SIZE), None);
    assert!(matches!(
        disk.discard(ByteRange::new(0, 4096)),
        Err(BlockError::Unsupported { .. })
    ));
}

#[test]
fn a_drive_is_no_larger_than_it_is() {
    let preset = Preset::named("hdd-desktop-2003").unwrap();
    assert!(matches!(
        preset.drive(20_000_000_000, 1),
        Err(DriveError::TooSmall {
            capacity: 10_000_000_000,
            needed: 20_000_000_000
        })
    ));
    let drive = preset.drive(SIZE, 1).unwrap();
    let larger = NullDevice::new(20_000_000_000);
    assert!(SimulatedDevice::new(drive, larger, None).is_err());
}

/// Encryption before a write and decryption after a read take the bytes ÷ the
/// rate, and the ledger says so; the rest is the drive's.
#[test]
fn time_is_charged_where_it_passes() {
    let request = 65_536;
    let crypto = request as f64 * 1e3 / 100.0;
    for operation in [Operation::Write, Operation::Read] {
        let took = |processor| {
            let device = device("mlc-128g", NullDevice::new(SIZE), processor);
            let meter = Rc::new(Meter::new(time::now));
            let options = QueueOptions {
                depth: 2,
                meter: Rc::clone(&meter),
            };
            let mut queue = device.queue(options).unwrap();
            let begin = time::now();
            let buffer = AlignedBuffer::new(request);
            queue.submit(Request::new(operation, 0, buffer, 3));
            assert_eq!(time::now(), begin);
            assert!(queue.reap(Wait::No).is_none());
            let completion = queue.reap(Wait::Yes).unwrap();
            let took = time::now() - begin;
            let spent = [Part::Crypto, Part::Wait].map(|part| meter.spent(part));
            assert_eq!(spent[0] + spent[1], took);
            let timeline = completion.request.timeline;
            assert_eq!([timeline.crypto, timeline.device], spent);
            assert_eq!(completion.request.tag, 3);
            spent.map(|spent| spent as f64)
        };
        let [none, plain] = took(None);
        let [charged, device] = took(processor(Driver::Queue, 1, 100.0));
        assert_eq!(none, 0.0);
        assert!((charged - crypto).abs() <= 1.0 && device == plain);
    }
}

/// Each queue gets its own completions, and a thread that reads meanwhile takes none of them.
#[test]
fn queues_of_a_device_are_told_apart() {
    let device = device("mlc-128g", RamDevice::new(SIZE), None);
    let mut queues: Vec<_> = (0..3)
        .map(|_| device.queue(QueueOptions::new(4)).unwrap())
        .collect();
    for tag in 0..4 {
        for (number, queue) in queues.iter_mut().enumerate() {
            let mut buffer = AlignedBuffer::new(4096);
            buffer.fill(number as u8 + 1);
            let offset = (number as u64 * 4 + tag) * 4096;
            queue.submit(Request::new(Operation::Write, offset, buffer, tag));
        }
    }
    let mut block = [0; 4096];
    device.read_at(4 * 4096, &mut block).unwrap();
    assert_eq!(block, [2; 4096]);
    for queue in queues.iter_mut().rev() {
        assert_eq!(queue.in_flight(), 4);
        let mut tags: Vec<_> = std::iter::from_fn(|| queue.reap(Wait::Yes))
            .map(|completion| completion.request.tag)
            .collect();
        tags.sort_unstable();
        assert_eq!(tags, [0, 1, 2, 3]);
    }
}

const STREAM: ClosedLoop = ClosedLoop {
    offset: 0,
    extent: 1 << 30,
    request: 1 << 20,
    pattern: Pattern::Sequential,
    writes: 0.0,
    queue_depth: 16,
    requests: 1000,
    cipher_mb_s: Some(100.0),
    cores: 1,
    driver: Driver::Queue,
    seed: 1,
};

fn ssd(demands: ClosedLoop) -> host::Rates {
    let Preset::Ssd(ssd) = Preset::named("mlc-128g").unwrap() else {
        panic!("it is an SSD");
    };
    let mut small = ssd;
    small.capacity = bytesize::ByteSize::gb(8);
    let mut drive = drive::ssd::SsdDrive::new(&small, drive::ftl::Policy::Greedy, 1).unwrap();
    drive.fill(0, demands.extent);
    demands.run(Box::new(drive))
}

/// One core is a bottleneck that four are not: as fast as so many cores, until
/// the drive is the limit.
#[test]
fn cores_encrypt_side_by_side() {
    for writes in [0.0, 1.0] {
        let with = |cores, queue_depth| {
            ssd(ClosedLoop {
                writes,
                cores,
                queue_depth,
                ..STREAM
            })
        };
        let (one, four) = (with(1, 16), with(4, 16));
        assert!((one.mb_s / 100.0 - 1.0).abs() < 0.02, "{}", one.mb_s);
        assert!(one.crypto > 0.8, "{}", one.crypto);
        let expected = 400.0_f64.min(32.0 * 8192.0 / 750.0 * writes + 550.0 * (1.0 - writes));
        assert!((four.mb_s / expected - 1.0).abs() < 0.06, "{}", four.mb_s);
        // A request is encrypted by one core.
        let (alone, in_company) = (with(1, 1), with(4, 1));
        assert_eq!(alone.mb_s, in_company.mb_s);
        let shares = alone.crypto + alone.wait;
        assert!((shares - 1.0).abs() < 1e-9, "{shares}");
    }
}

#[test]
fn the_same_seed_takes_the_same_time() {
    let random = ClosedLoop {
        request: 4096,
        pattern: Pattern::Random,
        writes: 0.5,
        ..STREAM
    };
    assert_eq!(ssd(random), ssd(random));
    let other = ClosedLoop { seed: 2, ..random };
    assert_ne!(ssd(random), ssd(other));
}

/// The progress of filling is reported, and the listener may end it.
#[test]
fn filling_a_large_drive_is_told() {
    let preset = Preset::named("tlc-1t").unwrap();
    let mut told = Vec::new();
    let ended = preset.filled(4_000_000_000, 1, &mut |filled| {
        told.push(filled);
        match filled {
            0..1_000_000_000 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    });
    assert!(ended.unwrap().is_none());
    assert!(told.is_sorted() && told.len() > 2, "{told:?}");
    assert!(*told.last().unwrap() < 2_000_000_000, "{told:?}");
}
