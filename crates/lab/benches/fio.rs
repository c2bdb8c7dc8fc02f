//! Compares this lab with fio: whether both measure the same, and which costs less.
//!
//! ```text
//! cargo bench -p cryptmark-lab --bench fio -- [DIRECTORY [PAIRS [SECONDS [agreement|load]]]]
//! ```
//!
//! Agreement: one file, one pattern at a time, fio and this lab in alternation (A B, B A, …), both
//! with O_DIRECT and io_uring. Load generation: 4 KiB random reads of the null device and of a file
//! on tmpfs, one thread, the same alternation. Prints medians, the median of the paired ratio and
//! its 95 % interval.

use block::{BlockDevice, Engine, FileDevice, FileOptions, NullDevice};
use bytesize::ByteSize;
use cryptmark_lab::clock::Clock;
use cryptmark_lab::stats;
use cryptmark_lab::trial::{self, Options};
use cryptmark_lab::workload::{Mix, Pattern, Workload};
use rand_core::{Rng, SeedableRng};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

const FILE_BYTES: u64 = 1 << 30;

fn main() {
    // `cargo bench` passes --bench to every target.
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let directory = PathBuf::from(arguments.first().map_or(".", String::as_str));
    let pairs: u32 = arguments
        .get(1)
        .map_or(10, |n| n.parse().expect("a number of pairs"));
    let seconds: f64 = arguments
        .get(2)
        .map_or(2.0, |s| s.parse().expect("seconds"));
    let version = Command::new("fio").arg("--version").output();
    let Ok(version) = version else {
        println!("skipped: fio is not installed (apt-get install fio)");
        return;
    };
    println!(
        "{}, {pairs} pairs of {seconds} s\n",
        String::from_utf8_lossy(&version.stdout).trim()
    );
    if huge_pages().is_none() {
        println!(
            "fio's buffers are on small pages in part: as root, echo 16 > /proc/sys/vm/nr_hugepages\n\
             and mount -t hugetlbfs none /dev/hugepages\n"
        );
    }
    println!("{:<34}{:>12}{:>12}  ours ÷ fio (95 %)", "", "ours", "fio");

    let wanted = |part: &str| arguments.get(3).is_none_or(|only| only == part);
    if wanted("agreement") {
        agreement(&directory, pairs, seconds);
    }
    if wanted("load") {
        load(pairs, seconds);
    }
}

fn agreement(directory: &Path, pairs: u32, seconds: f64) {
    let scratch = Scratch::create(directory, FILE_BYTES);
    let cases = [
        (
            "seq 1M read  depth 8",
            Pattern::Sequential,
            Mix::Read,
            ByteSize::mib(1),
            8,
        ),
        (
            "seq 1M write depth 8",
            Pattern::Sequential,
            Mix::Write,
            ByteSize::mib(1),
            8,
        ),
        (
            "rand 4k read  depth 1",
            Pattern::Random,
            Mix::Read,
            ByteSize::kib(4),
            1,
        ),
        (
            "rand 4k read  depth 32",
            Pattern::Random,
            Mix::Read,
            ByteSize::kib(4),
            32,
        ),
        (
            "rand 4k write depth 32",
            Pattern::Random,
            Mix::Write,
            ByteSize::kib(4),
            32,
        ),
    ];
    for (name, pattern, op, block_size, depth) in cases {
        let workload = workload(pattern, op, block_size, depth, seconds);
        let device = scratch.device(Engine::IoUring);
        let fio = Fio {
            path: Some(&scratch.path),
            engine: "io_uring",
            direct: true,
        };
        row(
            &format!("agreement: {name} (MB/s)"),
            &workload,
            &device,
            &fio,
            pairs,
            false,
        );
    }
}

fn load(pairs: u32, seconds: f64) {
    let shm = Path::new("/dev/shm");
    if shm.is_dir() {
        let scratch = Scratch::create(shm, FILE_BYTES / 2);
        for (depth, engine, fio_engine, direct) in [
            (1, Engine::Pread, "psync", false),
            (32, Engine::Pread, "io_uring", false),
            (32, Engine::IoUring, "io_uring", false),
        ] {
            let workload = workload(Pattern::Random, Mix::Read, ByteSize::kib(4), depth, seconds);
            let device = scratch.device(engine);
            let fio = Fio {
                path: Some(&scratch.path),
                engine: fio_engine,
                direct,
            };
            let name = format!("load: tmpfs depth {depth}, {engine} / {fio_engine}");
            row(&name, &workload, &device, &fio, pairs, true);
        }
    }
    for depth in [1, 32] {
        let workload = workload(Pattern::Random, Mix::Read, ByteSize::kib(4), depth, seconds);
        let fio = Fio {
            path: None,
            engine: "null",
            direct: false,
        };
        let name = format!("load: null depth {depth} (IOPS)");
        row(
            &name,
            &workload,
            &NullDevice::new(1 << 40),
            &fio,
            pairs,
            true,
        );
    }
}

fn workload(pattern: Pattern, op: Mix, block_size: ByteSize, depth: u32, seconds: f64) -> Workload {
    Workload {
        queue_depth: depth,
        seconds: Some(seconds),
        ..Workload::new("bench", pattern, op, block_size)
    }
}

/// Measures both in alternation and prints a line.
fn row(
    name: &str,
    workload: &Workload,
    device: &dyn BlockDevice,
    fio: &Fio<'_>,
    pairs: u32,
    iops: bool,
) {
    let stop = AtomicBool::new(false);
    let measure = |seed: u64| {
        let options = Options {
            seed,
            metered: true,
            slice: false,
            stop: &stop,
            clock: Clock::get(),
        };
        let sample = trial::run(device, workload, options).expect("the device answers");
        if iops { sample.iops() } else { sample.mb_s() }
    };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for pair in 0..u64::from(pairs) {
        if pair % 2 == 0 {
            ours.push(measure(pair));
            theirs.push(fio.measure(workload, iops));
        } else {
            theirs.push(fio.measure(workload, iops));
            ours.push(measure(pair));
        }
    }
    let ratio = stats::paired_ratio(&ours, &theirs).expect("at least one pair");
    println!(
        "{name:<34}{:>12.0}{:>12.0}  {:.3} ({:.3}–{:.3})",
        stats::median(&ours).expect("at least one pair"),
        stats::median(&theirs).expect("at least one pair"),
        ratio.median,
        ratio.low,
        ratio.high
    );
}

/// fio, asked for the same thing.
struct Fio<'a> {
    path: Option<&'a Path>,
    engine: &'a str,
    direct: bool,
}

impl Fio<'_> {
    fn measure(&self, workload: &Workload, iops: bool) -> f64 {
        let direction = match workload.op {
            Mix::Write => "write",
            _ => "read",
        };
        let rw = match workload.pattern {
            Pattern::Sequential => direction.to_owned(),
            Pattern::Random => format!("rand{direction}"),
        };
        let mut command = Command::new("fio");
        // Fio's buffers lie on huge pages if ours do. With small pages, a virtual disk gets a large
        // request in parts, and is up to half as fast.
        match huge_pages() {
            Some(folder) => command.arg(format!("--iomem=mmaphuge:{}/fio", folder.display())),
            // Its buffers begin in the middle of one, so this is the smaller part of it.
            None => command.env("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"),
        };
        command.args([
            "--name=beside",
            &format!("--rw={rw}"),
            &format!("--bs={}", workload.block_bytes()),
            &format!("--iodepth={}", workload.queue_depth),
            &format!("--ioengine={}", self.engine),
            &format!("--direct={}", u8::from(self.direct)),
            &format!(
                "--runtime={}ms",
                (workload.seconds.unwrap_or(1.0) * 1e3) as u64
            ),
            "--time_based",
            "--norandommap",
            "--randrepeat=0",
            // By default fio rewrites a part of every buffer, which costs it
            // 7 % at 1 MiB here; the lab's marks cost less. Without, both
            // hand over buffers as they are.
            "--scramble_buffers=0",
            "--output-format=json",
        ]);
        match self.path {
            Some(path) => command.arg(format!("--filename={}", path.display())),
            None => command.arg("--size=1T"),
        };
        let output = command.output().expect("fio starts");
        assert!(
            output.status.success(),
            "fio failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let text = String::from_utf8_lossy(&output.stdout);
        // fio may print notes before the document.
        let start = text.find('{').expect("fio prints JSON");
        let json: serde_json::Value =
            serde_json::from_str(&text[start..]).expect("fio prints JSON");
        let side = &json["jobs"][0][direction];
        let value = match iops {
            true => side["iops"].as_f64(),
            false => side["bw_bytes"].as_f64().map(|rate| rate / 1e6),
        };
        value.expect("fio reports a rate")
    }
}

/// A named file that both programs use, filled with noise, removed in the end.
struct Scratch {
    path: PathBuf,
}

impl Scratch {
    fn create(directory: &Path, bytes: u64) -> Self {
        let path = directory.join(format!(".cryptmark-bench-{}", std::process::id()));
        let mut file = File::create_new(&path).expect("the directory can be written");
        let scratch = Self { path };
        let mut noise = vec![0; 4 << 20];
        let mut rng = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(1);
        for _ in 0..bytes / noise.len() as u64 {
            rng.fill_bytes(&mut noise);
            file.write_all(&noise).expect("the file can be filled");
        }
        file.sync_all().expect("the file can be flushed");
        scratch
    }

    fn device(&self, engine: Engine) -> FileDevice {
        let options = FileOptions {
            write: true,
            direct: true,
            engine: Some(engine),
            hold: block::Hold::Usual,
        };
        FileDevice::open(&self.path, &options).expect("the file opens")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing more can be done about a file that will not go.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A directory whose files consist of huge pages, if enough of them are free for fio's buffers.
fn huge_pages() -> Option<PathBuf> {
    const ENOUGH: u64 = 16;
    let memory = fs::read_to_string("/proc/meminfo").ok()?;
    let free = memory
        .lines()
        .find_map(|line| line.strip_prefix("HugePages_Free:"))?;
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mut mounts = mounts.lines().map(|line| line.split(' '));
    let folder = mounts.find_map(|mut words| {
        let place = words.nth(1)?;
        (words.next() == Some("hugetlbfs")).then(|| place.into())
    });
    folder.filter(|_| free.trim().parse().is_ok_and(|free: u64| free >= ENOUGH))
}
