//! The effects of a disk's memory and flash: reading ahead, writing back, flushing, learning. Also
//! the costs of a file in pieces and of a driver that encrypts.

extern crate cryptmark_drive as drive;

mod host;

use block::OperationKind;
use bytesize::ByteSize;
use drive::Driver;
use drive::demand::{Demand, Drive};
use drive::fragmented::Fragmented;
use drive::hdd::{Hdd, HddPreset, Placement};
use drive::preset::Preset;
use host::{ClosedLoop, Pattern, Rates};

fn preset(name: &str) -> HddPreset {
    match Preset::named(name) {
        Ok(Preset::Hdd(preset)) => preset,
        other => panic!("{other:?}"),
    }
}

/// A drive that is asked for one thing at a time.
struct Asked {
    drive: Box<dyn Drive>,
    now: u64,
}

impl Asked {
    fn new(preset: HddPreset) -> Self {
        let drive = Box::new(Hdd::new(preset).unwrap());
        Self { drive, now: 0 }
    }

    /// Milliseconds.
    fn takes(&mut self, operation: OperationKind, offset: u64, bytes: u64) -> f64 {
        self.drive.submit(Demand {
            arrival: self.now,
            tag: 0,
            operation,
            offset,
            bytes,
        });
        let (_, done) = self.drive.serve().unwrap();
        (done - std::mem::replace(&mut self.now, done)) as f64 / 1e6
    }
}

const MIB: u64 = 1 << 20;

#[test]
fn a_pause_is_read_ahead_in() {
    let disk = preset("hdd-wd");
    let mut asked = Asked::new(disk.clone());
    asked.takes(OperationKind::Read, 0, MIB);
    // A MiB takes 17 ms of the medium; after 50 ms there are two of them.
    asked.now += 50_000_000;
    let transfer = disk.overhead_ms + MIB as f64 / 1e3 / disk.interface_mb_s;
    for next in 1..3 {
        let takes = asked.takes(OperationKind::Read, next * MIB, MIB);
        assert!((takes - transfer).abs() < 0.01, "{takes} {transfer}");
    }
    // The following data comes from the medium, without a seek.
    let takes = asked.takes(OperationKind::Read, 3 * MIB, 4 * MIB);
    assert!((40.0..72.0).contains(&takes), "{takes}");
    // The memory has forgotten what lies far behind.
    let takes = asked.takes(OperationKind::Read, 0, MIB);
    assert!(takes > 17.0, "{takes}");
}

#[test]
fn writes_are_done_in_memory_until_it_is_full() {
    let disk = preset("hdd-wd");
    let places = |n: u64| n * 7_919 % 60_000 * 4_096;
    let mut asked = Asked::new(disk.clone());
    let fit = disk.cache.as_u64() / 2 / 4_096;
    for n in 0..fit {
        let takes = asked.takes(OperationKind::Write, places(n), 4_096);
        assert!(takes < 0.2, "{takes}");
    }
    // By now nearly all of them wait, and a further one waits for room.
    let more: f64 = (fit..fit + 400)
        .map(|n| asked.takes(OperationKind::Write, places(n), 4_096))
        .sum();
    assert!(more / 400.0 > 1.0, "{more}");
    // Waiting data is read from the memory.
    let takes = asked.takes(OperationKind::Read, places(fit + 399), 4_096);
    assert!(takes < 0.2, "{takes}");
    // A flush waits for all of them.
    let flush = asked.takes(OperationKind::Flush, 0, 0);
    assert!(flush > 0.8 * fit as f64, "{flush}");
    assert!(asked.takes(OperationKind::Flush, 0, 0) < 0.2);
    // Idle time is used for it.
    asked.takes(OperationKind::Write, places(0), 4_096);
    asked.now += 100_000_000;
    assert!(asked.takes(OperationKind::Flush, 0, 0) < 0.2);
}

/// Writes that come later do not keep a flush waiting.
#[test]
fn a_flush_waits_for_what_was_there() {
    let mut disk = Hdd::new(preset("hdd-wd")).unwrap();
    let mut submit = |operation, arrival, tag: u64| {
        let written = operation == OperationKind::Write;
        disk.submit(Demand {
            arrival,
            tag,
            operation,
            offset: tag * 7_919 % 60_000 * 4_096,
            bytes: if written { 4_096 } else { 0 },
        });
    };
    for tag in 0..100 {
        submit(OperationKind::Write, 0, tag);
    }
    submit(OperationKind::Flush, 50_000_000, 100);
    // One a millisecond, for ten seconds.
    for tag in 101..10_000 {
        submit(OperationKind::Write, tag * 1_000_000, tag);
    }
    let mut served = 0;
    let flushed = loop {
        let (demand, done) = disk.serve().unwrap();
        served += 1;
        if demand.operation == OperationKind::Flush {
            break done;
        }
    };
    // A hundred writes, a few milliseconds each.
    assert!((100_000_000..3_000_000_000).contains(&flushed), "{flushed}");
    assert!(served < 5_000, "{served}");
}

/// Without write-back a write is done on the medium.
#[test]
fn writes_through() {
    let mut disk = preset("hdd-wd");
    disk.write_back = false;
    let mut asked = Asked::new(disk);
    let takes = asked.takes(OperationKind::Write, 1 << 30, 4_096);
    assert!(takes > 1.0, "{takes}");
    assert!(asked.takes(OperationKind::Flush, 0, 0) < 0.2);
}

/// Requests at once and a full memory: all are done, and the queue's order pays.
#[test]
fn mixed_requests_at_depth_are_all_served() {
    let mixed = ClosedLoop {
        offset: 0,
        extent: 20_000_000_000,
        request: 4_096,
        pattern: Pattern::Random,
        writes: 0.5,
        queue_depth: 32,
        requests: 10_000,
        cipher_mb_s: None,
        cores: 1,
        driver: Driver::Queue,
        seed: 1,
    };
    let run = |reorders| {
        let disk = HddPreset {
            reorders,
            ..preset("hdd-wd")
        };
        mixed.run(Box::new(Hdd::new(disk).unwrap()))
    };
    let (deep, flat): (Rates, Rates) = (run(32), run(1));
    assert!(deep.iops > 1.3 * flat.iops, "{deep:?} {flat:?}");
    assert!(
        deep.utilisation <= 1.0 && deep.utilisation > 0.9,
        "{deep:?}"
    );
}

#[test]
fn flash_learns_what_is_read_twice() {
    let mut disk = preset("sshd-seagate");
    let nand = disk.nand.as_mut().unwrap();
    nand.window = 4;
    nand.capacity = ByteSize::b(2 * 4_096);
    // Or it would be the disk's memory that is read from.
    disk.cache = ByteSize::b(0);
    let mut asked = Asked::new(disk);
    let far = |n: u64| (n + 1) << 33;
    let mut read = |n: u64| asked.takes(OperationKind::Read, far(n), 4_096);
    let quick = 0.1 + 0.1 + 4.096 / 200.0;
    let is_quick = |takes: f64| (takes - quick).abs() < 0.05;
    assert!(!is_quick(read(0)) && !is_quick(read(1)));
    // Read again it is known, and read a third time it is there.
    assert!(!is_quick(read(0)) && is_quick(read(0)));
    // Out of sight, out of mind: five others were read in between.
    for n in 2..7 {
        read(n);
    }
    assert!(!is_quick(read(1)) && is_quick(read(0)));
    // Two more take its place.
    read(6);
    read(5);
    assert!(is_quick(read(6)) && is_quick(read(5)) && !is_quick(read(0)));
    // The flash does not have data that was written later.
    asked.takes(OperationKind::Write, far(6), 4_096);
    assert!(asked.takes(OperationKind::Read, far(6), 4_096) > 1.0);
}

fn stream(extent: u64) -> ClosedLoop {
    ClosedLoop {
        offset: 0,
        extent,
        request: MIB,
        pattern: Pattern::Sequential,
        writes: 0.0,
        queue_depth: 1,
        requests: extent / MIB,
        cipher_mb_s: None,
        cores: 1,
        driver: Driver::Queue,
        seed: 1,
    }
}

/// A piece costs a seek; a file in one piece costs none, and less outside than
/// inside of a disk. All bytes are asked for, each once.
#[test]
fn fragmented_files() {
    const FILE: u64 = 200 * MIB;
    let disk = || Box::new(Hdd::new(preset("hdd-wd")).unwrap());
    let on = |placement| {
        let file = Fragmented::new(disk(), FILE, placement, 1).unwrap();
        let pieces = file.pieces();
        (stream(FILE).run(Box::new(file)).mb_s, pieces)
    };
    let whole = |used| on(Placement { used, pieces: None });
    let (outside, pieces) = whole(0.0);
    assert_eq!(pieces, 1);
    assert!((outside / 60.0 - 1.0).abs() < 0.03, "{outside}");
    // Nearly full: the inner tracks.
    let (inside, _) = whole(0.99);
    assert!((0.48..0.56).contains(&(inside / outside)), "{inside}");
    let (month, pieces) = on(Placement::ONE_MONTH);
    assert!((300..500).contains(&pieces), "{pieces}");
    // Seek, half a revolution and the piece itself, about.
    let expected = 0.5243 / (0.5243 / 50.0 + 0.0055 + 0.009);
    assert!((month / expected - 1.0).abs() < 0.25, "{month} {expected}");
    // The same by a preset.
    let mut placed = preset("hdd-wd");
    placed.placement = Some(Placement::ONE_MONTH);
    let drive = Preset::Hdd(placed).drive(FILE, 1).unwrap();
    assert!((stream(FILE).run(drive).mb_s / month - 1.0).abs() < 0.05);
    let refused = |used, pieces| {
        let placement = Placement { used, pieces };
        let error = Fragmented::new(disk(), FILE, placement, 1).err().unwrap();
        assert!(error.to_string().contains("placement.used"), "{error}");
    };
    refused(1.0, None);
    refused(0.001, Some(ByteSize::mib(1)));
    refused(0.5, Some(ByteSize::b(0)));
    refused(f64::NAN, None);
}

/// Parts of a file are where they belong, no two of them in the same place.
#[test]
fn pieces_do_not_overlap() {
    /// A drive that only writes down what it is asked for.
    #[derive(Clone)]
    struct Notes(
        std::sync::Arc<std::sync::Mutex<Vec<(u64, u64)>>>,
        Vec<Demand>,
    );
    impl Drive for Notes {
        fn duplicate(&self) -> Box<dyn Drive> {
            Box::new(self.clone())
        }
        fn capacity(&self) -> u64 {
            1 << 30
        }
        fn discard_granularity(&self) -> Option<u32> {
            None
        }
        fn submit(&mut self, demand: Demand) {
            self.0.lock().unwrap().push((demand.offset, demand.bytes));
            self.1.push(demand);
        }
        fn next_start(&self) -> Option<u64> {
            self.1.first().map(|demand| demand.arrival)
        }
        fn serve(&mut self) -> Option<(Demand, u64)> {
            let demand = self.1.pop()?;
            Some((demand, demand.arrival + 1))
        }
        fn hold(&mut self, _: u64) {}
        fn utilisation(&self, _: u64) -> f64 {
            0.0
        }
    }
    const FILE: u64 = 64 * MIB;
    let asked = std::sync::Arc::default();
    let below = Box::new(Notes(std::sync::Arc::clone(&asked), Vec::new()));
    let placement = Placement {
        used: 0.3,
        pieces: Some(ByteSize::kib(128)),
    };
    let file = Fragmented::new(below, FILE, placement, 7).unwrap();
    stream(FILE).run(Box::new(file));
    let mut asked = std::mem::take(&mut *asked.lock().unwrap());
    asked.sort_unstable();
    assert_eq!(asked.iter().map(|(_, bytes)| bytes).sum::<u64>(), FILE);
    let apart = |pair: &[(u64, u64)]| pair[0].0 + pair[0].1 <= pair[1].0;
    assert!(asked.windows(2).all(apart));
    let (last, bytes) = asked[asked.len() - 1];
    assert!(last + bytes <= (1 << 30) * 3 / 10 + MIB);
}

/// TrueCrypt's threads, piece by piece, on a drive of which the times are known.
#[test]
fn truecrypts_threads() {
    let ssd = || match Preset::named("mlc-128g") {
        Ok(preset) => preset.drive(1 << 30, 1).unwrap(),
        Err(error) => panic!("{error}"),
    };
    let single = |writes, requests| ClosedLoop {
        request: 4_096,
        pattern: Pattern::Random,
        writes,
        requests,
        ..stream(1 << 30)
    };
    let encrypted = |demands: ClosedLoop, mb_s| ClosedLoop {
        driver: Driver::TrueCrypt,
        cipher_mb_s: Some(mb_s),
        ..demands
    };
    let plain = |demands: ClosedLoop| demands.run(ssd()).latency_us;
    let latency = |demands| encrypted(demands, 400.0).run(ssd()).latency_us;
    let near = |got: f64, expected: f64| {
        assert!((got / expected - 1.0).abs() < 0.03, "{got} for {expected}");
    };
    // Two threads are woken for a write, three for a read, and the cipher works.
    let cipher = 4_096.0 / 400.0;
    let (write, read) = (30.0 + 4_096.0 / 550.0, plain(single(0.0, 500)));
    near(latency(single(1.0, 100)), write + 30.0 + cipher);
    near(
        latency(single(0.0, 1)),
        plain(single(0.0, 1)) + 45.0 + cipher,
    );
    // From the second one on, a read waits for what the first read ahead.
    let second = latency(single(0.0, 2_000));
    assert!(
        (1.8 * read..2.0 * read + 45.0).contains(&second),
        "{second} {read}"
    );
    // That is the drive's doing, and hides the cipher.
    let rates = encrypted(single(0.0, 2_000), 400.0).run(ssd());
    assert!(rates.crypto < 0.05 && rates.wait > 0.95, "{rates:?}");
    // Streams: the cipher is the narrowest part, whatever the drive does beside.
    let rates = encrypted(stream(1 << 30), 100.0).run(ssd());
    near(rates.mb_s, 98.0);
    assert!(rates.crypto > 0.9, "{rates:?}");
    let rates = encrypted(stream(1 << 30), 10_000.0).run(ssd());
    assert!(rates.crypto < 0.1, "{rates:?}");
}

#[test]
fn impossible_flash() {
    let refused = |change: &dyn Fn(&mut HddPreset)| {
        let mut disk = preset("sshd-seagate");
        change(&mut disk);
        Hdd::new(disk).expect_err("it is impossible").to_string()
    };
    assert!(refused(&|disk| disk.nand = None).contains("sshd"));
    assert!(refused(&|disk| disk.interface_mb_s = 0.0).contains("interface_mb_s"));
    assert!(refused(&|disk| disk.reorders = 0).contains("reorders"));
    let nand = |change: &dyn Fn(&mut drive::hdd::NandPreset)| {
        refused(&|disk| change(disk.nand.as_mut().unwrap()))
    };
    assert!(nand(&|nand| nand.block = ByteSize::b(0)).contains("nand.block"));
    assert!(nand(&|nand| nand.read_us = -1.0).contains("nand.read_us"));
}
