//! The whitepaper's desktop drive, and what queues and processors do to a disk.

extern crate cryptmark_drive as drive;

mod host;

use block::OperationKind;
use drive::Driver;
use drive::demand::{Demand, Drive};
use drive::hdd::{Hdd, HddPreset, Order};
use drive::preset::Preset;
use host::{ClosedLoop, Pattern, Rates};

fn preset() -> HddPreset {
    match Preset::named("hdd-desktop-2003") {
        Ok(Preset::Hdd(preset)) => preset,
        other => panic!("{other:?}"),
    }
}

const RANDOM: ClosedLoop = ClosedLoop {
    offset: 0,
    extent: 10_000_000_000,
    request: 16 << 10,
    pattern: Pattern::Random,
    writes: 0.5,
    queue_depth: 1,
    requests: 20_000,
    cipher_mb_s: None,
    cores: 1,
    driver: Driver::Queue,
    seed: 1,
};

fn run(preset: HddPreset, demands: ClosedLoop) -> Rates {
    let rates = demands.run(Box::new(Hdd::new(preset).unwrap()));
    println!("{demands:?}\n{rates:?}");
    rates
}

/// Of the whitepaper and its analysis: 1.04 MB/s over the full stroke at depth 1, and 1.79 MB/s
/// within 200 MB at depth 20.
#[test]
fn published_rates() {
    let full = run(preset(), RANDOM);
    assert!((full.mb_s / 1.04 - 1.0).abs() < 0.1, "{}", full.mb_s);
    let short = ClosedLoop {
        extent: 200_000_000,
        queue_depth: 20,
        ..RANDOM
    };
    let short = run(preset(), short);
    assert!((short.mb_s / 1.79 - 1.0).abs() < 0.1, "{}", short.mb_s);
}

/// Overhead, seek between random places, half a revolution, transfer.
#[test]
fn one_at_a_time_is_the_sum_of_its_parts() {
    let rates = run(
        preset(),
        ClosedLoop {
            writes: 0.0,
            requests: 200_000,
            ..RANDOM
        },
    );
    let transfer = 16_384.0 / 16.5;
    let sum = 300.0 + 9_400.0 + 60e6 / 5400.0 / 2.0 + transfer;
    assert!(
        (rates.latency_us / sum - 1.0).abs() < 0.02,
        "{} {sum}",
        rates.latency_us
    );
}

#[test]
fn better_orders_serve_more() {
    let deep = ClosedLoop {
        queue_depth: 32,
        ..RANDOM
    };
    let with = |queue| {
        let preset = HddPreset { queue, ..preset() };
        run(preset, deep).iops
    };
    let (fifo, elevator, sptf) = (with(Order::Fifo), with(Order::Elevator), with(Order::Sptf));
    assert!(
        fifo < elevator && elevator < sptf,
        "{fifo} {elevator} {sptf}"
    );
    // At depth 1 there is nothing to choose.
    let alone = |queue| {
        let preset = HddPreset { queue, ..preset() };
        run(preset, RANDOM).seconds
    };
    assert_eq!(alone(Order::Fifo), alone(Order::Sptf));
}

/// Outside it is as fast as its outer tracks, inside as its inner ones.
#[test]
fn zones() {
    let stream = |offset| {
        let demands = ClosedLoop {
            offset,
            extent: 100 << 20,
            request: 1 << 20,
            pattern: Pattern::Sequential,
            writes: 0.0,
            requests: 100,
            ..RANDOM
        };
        run(preset(), demands).mb_s
    };
    assert!((stream(0) / 21.0 - 1.0).abs() < 0.01);
    assert!((stream(9_889_999_872) / 12.0 - 1.0).abs() < 0.02);
}

/// A slow processor costs a stream more than seeks: those hide it.
#[test]
fn the_cipher_matters_to_streams() {
    let encrypted = |demands: ClosedLoop| {
        let plain = run(preset(), demands).mb_s;
        let slow = ClosedLoop {
            cipher_mb_s: Some(15.0),
            ..demands
        };
        run(preset(), slow).mb_s / plain
    };
    let stream = ClosedLoop {
        extent: 200_000_000,
        request: 1 << 20,
        pattern: Pattern::Sequential,
        writes: 0.0,
        queue_depth: 20,
        requests: 190,
        ..RANDOM
    };
    let random = encrypted(RANDOM);
    let stream = encrypted(stream);
    assert!((0.9..0.96).contains(&random), "{random}");
    assert!(stream < 0.75, "{stream}");
}

/// Written data is on the medium, and nothing on it can be discarded. So the arm stays where it is,
/// and a stream goes on afterwards.
#[test]
fn flushes_and_discards_move_nothing() {
    let mut disk = Hdd::new(preset()).unwrap();
    let mut now = 0;
    let mut takes = |operation, offset, bytes| {
        disk.submit(Demand {
            arrival: now,
            tag: 0,
            operation,
            offset,
            bytes,
        });
        let (_, done) = disk.serve().unwrap();
        done - std::mem::replace(&mut now, done)
    };
    takes(OperationKind::Read, 1 << 30, 65_536);
    let stream = takes(OperationKind::Read, (1 << 30) + 65_536, 65_536);
    assert_eq!(takes(OperationKind::Flush, 0, 0), 300_000);
    assert_eq!(takes(OperationKind::Discard, 0, 65_536), 300_000);
    let after = takes(OperationKind::Read, (1 << 30) + 131_072, 65_536);
    // Meanwhile the disk has read ahead; it counts whole bytes.
    assert!(stream.abs_diff(after + 600_000) < 60, "{stream} {after}");
}

#[test]
fn impossible_disks() {
    let refused = |change: &dyn Fn(&mut HddPreset)| {
        let mut preset = preset();
        change(&mut preset);
        Hdd::new(preset).expect_err("it is impossible").to_string()
    };
    assert!(refused(&|p| p.rpm = 0.0).contains("rpm"));
    assert!(refused(&|p| p.average_seek_ms = 1.0).contains("average_seek_ms"));
    assert!(refused(&|p| p.full_seek_ms = 9.0).contains("full_seek_ms"));
    assert!(refused(&|p| p.full_seek_ms = 60.0).contains("full_seek_ms"));
    assert!(refused(&|p| p.inner_mb_s = f64::NAN).contains("inner_mb_s"));
}
