//! Does the lab find what is there, and nothing else?
//!
//! ```text
//! cargo bench -p cryptmark-lab --bench findings -- [DIRECTORY [SECTION]]
//! ```
//!
//! * A/A: ten sessions over memory that compare a system with itself.
//! * Delay: a layer of 100 µs over memory, at depth 1; the added latency.
//! * Disk: layers over DIRECTORY that delay by 100 µs and by 3 %, twenty sessions of 60 s; and A/A.
//! * Slowdown: a cipher whose rate is 3 % lower, ten sessions over memory.
//! * Ledger: the parts against wall × threads, every cell of a session on DIRECTORY.
//! * Timers: the rate with crypto timers against the rate without.

use block::layer::Delay;
use block::{BlockDevice, ByteRange, RamDevice};
use bytesize::ByteSize;
use cipher::{CipherSpec, IvSector, Key, KeyedCipher, SectorCipher, SectorLayout, SectorSize};
use cryptmark_lab::LabError;
use cryptmark_lab::clock::Clock;
use cryptmark_lab::experiment::Devices;
use cryptmark_lab::record::Verdict;
use cryptmark_lab::session::{Session, Unwatched};
use cryptmark_lab::stats;
use cryptmark_lab::system::{Encryption, Place, Storage, SystemId, Target};
use cryptmark_lab::timer_cost::timer_cost;
use cryptmark_lab::trial::{self, Options, Sample};
use cryptmark_lab::workload::{Mix, Pattern, Workload};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use volume::CryptDevice;

/// A session of `plan` over `storage`.
fn opened(plan: &Devices, storage: &Storage, seed: u64) -> Result<Session<'static>, LabError> {
    let filling = &mut |_| ControlFlow::Continue(());
    Session::of_devices(plan, storage, seed, "id".into(), filling)
}

const REPETITIONS: u64 = 10;
static GO_ON: AtomicBool = AtomicBool::new(false);

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let directory = PathBuf::from(arguments.first().map_or(".", String::as_str));
    let wanted = |section: &str| arguments.get(1).is_none_or(|only| only == section);
    if wanted("timers") {
        timers();
    }
    if wanted("delay") {
        delay();
    }
    if wanted("aa") {
        same_thing_twice();
    }
    if wanted("slowdown") {
        slower_cipher();
    }
    if wanted("ledger") {
        ledger(&directory);
    }
    if wanted("disk") {
        let sessions = arguments
            .get(2)
            .map_or(20, |n| n.parse().expect("a number"));
        layers_over_a_disk(&directory, sessions);
    }
}

fn workload(op: Mix, block_size: ByteSize, depth: u32, seconds: f64) -> Workload {
    Workload {
        queue_depth: depth,
        seconds: Some(seconds),
        ..Workload::new("bench", Pattern::Random, op, block_size)
    }
}

fn measure(device: &dyn BlockDevice, workload: &Workload, seed: u64) -> Sample {
    let options = Options {
        seed,
        metered: true,
        slice: false,
        stop: &GO_ON,
        clock: Clock::get(),
    };
    trial::run(device, workload, options).expect("memory answers")
}

/// Rates of a, b and a again, as a session takes them.
fn rounds(
    a: &dyn BlockDevice,
    b: &dyn BlockDevice,
    workload: &Workload,
) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let (mut first, mut second, mut again) = (Vec::new(), Vec::new(), Vec::new());
    measure(a, workload, 0);
    measure(b, workload, 0);
    for round in 0..REPETITIONS {
        let visit = |device, list: &mut Vec<f64>| {
            list.push(measure(device, workload, round).mb_s());
        };
        if round % 2 == 0 {
            visit(a, &mut first);
            visit(b, &mut second);
            visit(a, &mut again);
        } else {
            visit(a, &mut again);
            visit(b, &mut second);
            visit(a, &mut first);
        }
    }
    (first, second, again)
}

fn same_thing_twice() {
    let ram = RamDevice::resident(64 << 20);
    let workload = workload(Mix::Read, ByteSize::kib(64), 1, 0.2);
    let mut quiet = 0;
    let mut worst = 0.0_f64;
    for _ in 0..10 {
        let (plain, subject, again) = rounds(&ram, &ram, &workload);
        let floor = stats::noise_floor(stats::paired_ratio(&again, &plain));
        let ratio = stats::paired_ratio(&subject, &plain).expect("ten pairs");
        worst = worst.max((ratio.median - 1.0).abs());
        quiet += u32::from(stats::verdict(ratio, floor) == Verdict::NotDistinguishable);
    }
    println!(
        "A/A: not distinguishable in {quiet} of 10 runs; farthest median {:.2} % from equal",
        worst * 100.0
    );
}

fn delay() {
    let plain = RamDevice::resident(64 << 20);
    let slow = Delay::new(
        RamDevice::resident(64 << 20),
        Duration::from_micros(100),
        Duration::ZERO,
    );
    let workload = workload(Mix::Read, ByteSize::kib(4), 1, 0.4);
    let mut added = Vec::new();
    for round in 0..REPETITIONS {
        let plain = measure(&plain, &workload, round)
            .latency
            .value_at_quantile(0.5) as f64;
        let slow = measure(&slow, &workload, round)
            .latency
            .value_at_quantile(0.5) as f64;
        added.push((slow - plain) / 1e3);
    }
    let found = stats::interval(&added).expect("ten rounds");
    println!(
        "delay of 100 µs: found {:.2} µs ({:.2}–{:.2}), {:+.2} % off",
        found.median,
        found.low,
        found.high,
        found.median - 100.0
    );
}

/// A cipher that takes 1/0.97 of its time: its rate is 3 % lower.
struct Slower(KeyedCipher);

impl Slower {
    fn and_a_bit(&self, work: impl FnOnce()) {
        let clock = Clock::get();
        let start = clock.now();
        work();
        let end = clock.now();
        let until = end + ((end - start) as f64 * (1.0 / 0.97 - 1.0)) as u64;
        while clock.now() < until {
            std::hint::spin_loop();
        }
    }
}

impl SectorCipher for Slower {
    fn layout(&self) -> SectorLayout {
        self.0.layout()
    }
    fn encrypt(&self, first: IvSector, data: &mut [u8]) {
        self.and_a_bit(|| self.0.encrypt(first, data));
    }
    fn decrypt(&self, first: IvSector, data: &mut [u8]) {
        self.and_a_bit(|| self.0.decrypt(first, data));
    }
}

fn slower_cipher() {
    // Fits the second-level cache: memory is not what is measured.
    const EXTENT: u64 = 1 << 20;
    let spec: CipherSpec = "serpent-xts-plain64".parse().expect("a known cipher");
    let layout = SectorLayout {
        size: SectorSize::B4096,
        large_iv: false,
    };
    let crypt = |slower: bool| {
        let key = Key::random(64).expect("randomness");
        let cipher = spec.cipher(&key, layout, None).expect("a known cipher");
        let cipher: Box<dyn SectorCipher> = match slower {
            true => Box::new(Slower(cipher)),
            false => Box::new(cipher),
        };
        let data = ByteRange {
            offset: 0,
            length: EXTENT,
        };
        CryptDevice::with_cipher(
            RamDevice::resident(EXTENT),
            cipher,
            data,
            IvSector::new(0),
            false,
        )
        .expect("the mapping fits")
    };
    let (reference, slower) = (crypt(false), crypt(true));
    let workload = workload(Mix::Read, ByteSize::kib(64), 1, 0.4);
    let mut found = 0;
    let mut medians = Vec::new();
    for _ in 0..10 {
        let (plain, subject, again) = rounds(&reference, &slower, &workload);
        let floor = stats::noise_floor(stats::paired_ratio(&again, &plain));
        let ratio = stats::paired_ratio(&subject, &plain).expect("ten pairs");
        medians.push(ratio.median);
        found += u32::from(stats::verdict(ratio, floor) == Verdict::Slower);
    }
    println!(
        "3 % slower cipher: found in {found} of 10 runs; median rate ratio {:.4}",
        stats::median(&medians).expect("ten runs")
    );
}

fn test_file(directory: &std::path::Path, plan: &Devices) -> Storage {
    let place = Place {
        at: directory,
        size: plan.extent_bytes(),
        seed: 1,
        overwrite: false,
        engine: None,
    };
    Storage::prepare(place, &mut |_| ControlFlow::Continue(()))
        .expect("the directory takes a test file")
}

/// As a user would look for a cost of 3 % and of 100 µs on a disk that others use as well.
fn layers_over_a_disk(directory: &std::path::Path, sessions: u32) {
    let mut plan = Devices::load("quick").expect("a shipped plan");
    plan.workloads = vec![workload(Mix::Read, ByteSize::kib(4), 1, 0.4)];
    let storage = test_file(directory, &plan);
    let plain = measure(&*storage.device, &plan.workloads[0], 0);
    let latency = Duration::from_nanos(plain.latency.value_at_quantile(0.5));
    let delays = [Duration::from_micros(100), latency.mul_f64(0.03)];
    let mut right = [0; 3];
    for seed in 1..=sessions {
        let later = delays.map(|delay| {
            let device = Delay::new(Arc::clone(&storage.device), delay, delay);
            let mut target = Target::plain(Arc::new(device));
            target.system = SystemId::Path(format!("{delay:?} later"));
            target
        });
        let targets = [Target::plain(Arc::clone(&storage.device))]
            .into_iter()
            .chain(later)
            .chain([Target::plain(Arc::clone(&storage.device))]);
        let session = Session::over_targets(
            &plan,
            &storage,
            targets.collect(),
            seed.into(),
            "bench".into(),
        )
        .expect("a session of targets");
        let begun = std::time::Instant::now();
        let (run, outcome) = session.measure(&GO_ON, &mut Unwatched);
        outcome.expect("the session runs");
        let found = run
            .trials
            .iter()
            .filter_map(|trial| trial.overhead.as_ref());
        print!("{:.0} s", begun.elapsed().as_secs_f64());
        let wanted = [
            Verdict::Slower,
            Verdict::Slower,
            Verdict::NotDistinguishable,
        ];
        for ((overhead, wanted), right) in found.zip(wanted).zip(&mut right) {
            *right += u32::from(overhead.verdict == wanted);
            let ratio = &overhead.ratio;
            print!(
                "  {:.4} ({:.4}–{:.4}, n {})",
                ratio.median, ratio.low, ratio.high, ratio.n
            );
        }
        println!();
    }
    println!(
        "on the disk, of {sessions} sessions: 100 µs found in {}, 3 % ({:?}) in {}; A/A not distinguishable in {}",
        right[0], delays[1], right[1], right[2]
    );
}

fn ledger(directory: &std::path::Path) {
    let mut plan = Devices::load("quick").expect("a shipped plan");
    plan.repetitions = 3;
    let storage = test_file(directory, &plan);
    let session = opened(&plan, &storage, 1).expect("the systems open");
    let (run, outcome) = session.measure(&GO_ON, &mut Unwatched);
    outcome.expect("the session runs");
    let mut worst = 0.0_f64;
    for trial in &run.trials {
        let time = &trial.time_s;
        let parts: f64 = [time.crypto, time.copy, time.submit, time.wait, time.other]
            .into_iter()
            .flatten()
            .sum();
        let gap = 1.0 - parts / (trial.thread_seconds().expect("it is measured here"));
        worst = if gap.abs() > worst.abs() { gap } else { worst };
    }
    println!(
        "ledger: over {} cells the parts miss wall × threads by at most {:.2} %",
        run.trials.len(),
        worst * 100.0
    );
}

fn timers() {
    for notation in [
        "aes-xts-plain64",
        "serpent-xts-plain64",
        "twofish-xts-plain64",
    ] {
        let encryption = Encryption::parse(notation, None, 4096, None).expect("a known cipher");
        let ratio = timer_cost(encryption, 41, 0.1)
            .expect("memory answers")
            .expect("pairs were taken");
        println!(
            "timers: {notation} at 4 KiB costs {:.2} % ({:.2} to {:.2})",
            (1.0 - ratio.median) * 100.0,
            (1.0 - ratio.high) * 100.0,
            (1.0 - ratio.low) * 100.0
        );
    }
}
