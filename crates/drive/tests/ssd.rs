//! An SSD at work: single requests are the sum of their parts, streams are as
//! fast as the narrowest part, and cleaning slows writes down.

extern crate cryptmark_drive as drive;

mod host;

use block::OperationKind;
use drive::Driver;
use drive::demand::{Demand, Drive};
use drive::ftl::Policy;
use drive::preset::Preset;
use drive::ssd::{Ssd, SsdDrive};
use host::{ClosedLoop, Pattern, Rates};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

fn preset(change: impl Fn(&mut Ssd)) -> Ssd {
    let toml = Preset::toml("mlc-128g").unwrap();
    match Preset::parse(&toml.replace("\"128 GB\"", "\"8 GB\"")) {
        Ok(Preset::Ssd(mut ssd)) => {
            change(&mut ssd);
            ssd
        }
        other => panic!("{other:?}"),
    }
}

const RANDOM_READ: ClosedLoop = ClosedLoop {
    offset: 0,
    extent: 1 << 30,
    request: 4096,
    pattern: Pattern::Random,
    writes: 0.0,
    queue_depth: 1,
    requests: 20_000,
    cipher_mb_s: None,
    cores: 1,
    driver: Driver::Queue,
    seed: 1,
};

fn run(ssd: &Ssd, demands: ClosedLoop) -> Rates {
    let mut drive = SsdDrive::new(ssd, Policy::Greedy, 1).unwrap();
    drive.fill(0, demands.extent);
    let rates = demands.run(Box::new(drive));
    println!("{demands:?}\n{rates:?}");
    rates
}

/// Command, cells, channel, interface.
#[test]
fn one_read_is_the_sum_of_its_parts() {
    let rates = run(&preset(|_| ()), RANDOM_READ);
    let sum = 30.0 + 75.0 + 4096.0 / 333.0 + 4096.0 / 550.0;
    assert!(
        (rates.latency_us / sum - 1.0).abs() < 0.01,
        "{} {sum}",
        rates.latency_us
    );
    // 32 chips serve nearly 32 times as much at depth, as far as the interface goes.
    let deep = ClosedLoop {
        queue_depth: 32,
        ..RANDOM_READ
    };
    let deep = run(&preset(|_| ()), deep);
    assert!(
        (8.0..30.0).contains(&(deep.iops / rates.iops)),
        "{}",
        deep.iops
    );
}

#[test]
fn streams_are_as_fast_as_the_narrowest_part() {
    let stream = ClosedLoop {
        request: 1 << 20,
        pattern: Pattern::Sequential,
        queue_depth: 8,
        requests: 1000,
        ..RANDOM_READ
    };
    let near = |got: f64, expected: f64| {
        assert!((got / expected - 1.0).abs() < 0.05, "{got} for {expected}");
    };
    near(run(&preset(|_| ()), stream).mb_s, 550.0);
    let wide = preset(|ssd| ssd.interface_mb_s = 10_000.0);
    near(run(&wide, stream).mb_s, 8.0 * 333.0);
    let writing = ClosedLoop {
        writes: 1.0,
        requests: 2000,
        ..stream
    };
    // 32 pages of 8 KiB at once, and an erase for each 256.
    near(run(&preset(|_| ()), writing).mb_s, 32.0 * 8192.0 / 750.0);
}

/// A full drive that is written at random cleans, and is as slow as what it
/// writes in all.
#[test]
fn cleaning_slows_writes_down() {
    // Small blocks, so that a small drive has enough of them.
    let ssd = preset(|ssd| {
        ssd.capacity = bytesize::ByteSize::gb(2);
        ssd.pages_per_block = 16;
    });
    let units = 2_000_000_000 / 4096;
    let mut drive = SsdDrive::new(&ssd, Policy::Greedy, 1).unwrap();
    drive.fill(0, units * 4096);
    let before = drive.ftl().counts();
    // 32 on their way: each is served as it comes, and the next one comes when
    // the first of them is done.
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut done = BinaryHeap::from(vec![Reverse(0); 32]);
    let writes = 2_000_000;
    let mut end = 0;
    for tag in 0..writes {
        let Reverse(arrival) = done.pop().unwrap();
        drive.submit(Demand {
            arrival,
            tag,
            operation: OperationKind::Write,
            offset: rng.next_u64() % units * 4096,
            bytes: 4096,
        });
        let (_, time) = drive.serve().unwrap();
        done.push(Reverse(time));
        end = end.max(time);
    }
    let mb_s = writes as f64 * 4096.0 * 1e3 / end as f64;
    let amplification = drive
        .ftl()
        .counts()
        .since(&before)
        .write_amplification()
        .unwrap();
    let expected = ssd.write_mb_s(amplification);
    println!("{mb_s} {amplification} {expected}");
    assert!((4.0..9.0).contains(&amplification), "{amplification}");
    assert!((mb_s / expected - 1.0).abs() < 0.05, "{mb_s} {expected}");
}

/// A write is done in the drive's memory, a flush on the flash; what is
/// discarded is not read from there any more.
#[test]
fn flushes_and_discards_reach_the_flash() {
    let mut drive = SsdDrive::new(&preset(|_| ()), Policy::Greedy, 1).unwrap();
    let mut now = 0;
    let mut takes_us = |operation, offset, bytes| {
        drive.submit(Demand {
            arrival: now,
            tag: 0,
            operation,
            offset,
            bytes,
        });
        let (_, done) = drive.serve().unwrap();
        (done - std::mem::replace(&mut now, done)) as f64 / 1e3
    };
    let near = |got: f64, expected: f64| {
        assert!((got - expected).abs() < 1.0, "{got} for {expected}");
    };
    let transfer = 30.0 + 4096.0 / 550.0;
    near(takes_us(OperationKind::Write, 0, 4096), transfer);
    // Half a page of 8 KiB: it is programmed all the same.
    let programmed = 30.0 + 8192.0 / 333.0 + 750.0;
    near(takes_us(OperationKind::Flush, 0, 0), programmed);
    near(takes_us(OperationKind::Flush, 0, 0), 30.0);
    let read = transfer + 75.0 + 4096.0 / 333.0;
    near(takes_us(OperationKind::Read, 0, 4096), read);
    // Less than a unit stays.
    near(takes_us(OperationKind::Discard, 512, 4096), 30.0);
    near(takes_us(OperationKind::Read, 0, 4096), read);
    near(takes_us(OperationKind::Discard, 0, 4096), 30.0);
    near(takes_us(OperationKind::Read, 0, 4096), transfer);
    assert_eq!(drive.ftl().counts().discarded, 1);
}

/// What drives promise, and what they do here within 15 %: random 4 KiB alone and at depth, and
/// streams; 10⁶ bytes a second at last. `None` is what nobody states.
#[test]
fn drives_are_as_fast_as_their_data_sheets_say() {
    type Sheet = [Option<f64>; 6];
    let sheets: [(&str, Sheet); 5] = [
        ("tlc-1t", [10e3, 42e3, 98e3, 90e3, 550.0, 520.0].map(Some)),
        (
            "nvme-1t-2023",
            [22e3, 80e3, 1.2e6, 1.55e6, 7450.0, 6900.0].map(Some),
        ),
        (
            "nvme-1t-2025",
            [
                None,
                None,
                Some(1.85e6),
                Some(2.6e6),
                Some(14_700.0),
                Some(13_300.0),
            ],
        ),
        (
            "emmc-64g",
            [None, None, Some(11e3), Some(13e3), Some(250.0), Some(125.0)],
        ),
        (
            "sd-64g",
            [None, None, Some(4e3), Some(2e3), Some(104.0), Some(30.0)],
        ),
    ];
    for (name, sheet) in sheets {
        let Ok(Preset::Ssd(ssd)) = Preset::named(name) else {
            panic!("{name}");
        };
        let capacity = ssd.least_capacity().as_u64().max(8 << 30);
        let ssd = Ssd {
            capacity: bytesize::ByteSize::b(capacity),
            ..ssd
        };
        let depth = 512;
        let stream = ClosedLoop {
            request: 1 << 20,
            pattern: Pattern::Sequential,
            queue_depth: 32,
            requests: 4000,
            ..RANDOM_READ
        };
        let deep = ClosedLoop {
            queue_depth: depth,
            requests: 100_000,
            ..RANDOM_READ
        };
        let loops = [
            RANDOM_READ,
            ClosedLoop {
                writes: 1.0,
                requests: 2000,
                ..RANDOM_READ
            },
            deep,
            ClosedLoop {
                writes: 1.0,
                requests: 20_000,
                ..deep
            },
            stream,
            ClosedLoop {
                writes: 1.0,
                ..stream
            },
        ];
        for (number, (demands, promised)) in loops.into_iter().zip(sheet).enumerate() {
            let Some(promised) = promised else { continue };
            let rates = run(&ssd, demands);
            let got = if number < 4 { rates.iops } else { rates.mb_s };
            let ratio = got / promised;
            assert!(
                (0.85..1.15).contains(&ratio),
                "{name} {number}: {got} for {promised}"
            );
        }
    }
}
