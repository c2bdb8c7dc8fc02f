//! How many 4 KiB random reads a second one thread gets through a queue.
//!
//! `cargo bench -p cryptmark-block [-- DIRECTORY…]`; directories hold the test files (default: the
//! temporary directory and, where there is one, /dev/shm). It guides changes to an engine, with one
//! run and no interval; the lab is for measurements.

use block::{
    AlignedBuffer, BlockDevice, Engine, FileDevice, FileOptions, NullDevice, Operation,
    QueueOptions, RamDevice, Request, Wait,
};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const SIZE: u64 = 1 << 30;
const LENGTH: u64 = 4096;
const TIME: Duration = Duration::from_millis(1500);

fn main() {
    measure("null", &NullDevice::new(SIZE));
    measure("ram", &RamDevice::resident(SIZE));
    let mut directories: Vec<PathBuf> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .map(PathBuf::from)
        .collect();
    if directories.is_empty() {
        directories.push(std::env::temp_dir());
        directories.push("/dev/shm".into());
    }
    for directory in directories.iter().filter(|path| path.is_dir()) {
        files(directory);
    }
}

fn files(directory: &Path) {
    let file = tempfile::NamedTempFile::new_in(directory).expect("a file to measure on");
    let path = file.path();
    let open = |engine, write| {
        let options = FileOptions {
            write,
            engine,
            ..FileOptions::default()
        };
        FileDevice::open(path, &options)
    };
    file.as_file().set_len(SIZE).expect("room for a file");
    fill(&open(None, true).expect("the file opens"));
    let chosen = open(None, false).expect("the file opens").engine();
    for engine in [Engine::Pread, Engine::Threads, Engine::IoUring] {
        match open(Some(engine), false) {
            Ok(device) => measure(
                &format!(
                    "{} {engine}{}{}",
                    directory.display(),
                    if device.is_direct() { " direct" } else { "" },
                    if engine == chosen { " (default)" } else { "" },
                ),
                &device,
            ),
            Err(error) => println!("{error}"),
        }
    }
}

fn fill(device: &dyn BlockDevice) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut buffer = AlignedBuffer::new(4 << 20);
    for offset in (0..SIZE).step_by(buffer.len()) {
        random.fill_bytes(&mut buffer);
        device.write_at(offset, &buffer).expect("the file fills");
    }
    device.flush().expect("the file is flushed");
}

fn measure(name: &str, device: &dyn BlockDevice) {
    for depth in [1, 32] {
        let iops = random_reads(device, depth);
        println!("{name:<44} depth {depth:>2} {iops:>12.0} IOPS");
    }
}

/// Keeps `depth` reads in flight for a while.
fn random_reads(device: &dyn BlockDevice, depth: u32) -> f64 {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(2);
    let mut queue = device
        .queue(QueueOptions::new(depth))
        .expect("a queue opens");
    let blocks = device.geometry().size / LENGTH;
    let mut offset = move || (random.next_u64() & (blocks - 1)) * LENGTH;
    for tag in 0..u64::from(depth) {
        let buffer = AlignedBuffer::new(LENGTH as usize);
        queue.submit(Request::new(Operation::Read, offset(), buffer, tag));
    }
    let mut done = 0u64;
    let start = Instant::now();
    while !done.is_multiple_of(1024) || start.elapsed() < TIME {
        let completion = queue.reap(Wait::Yes).expect("requests are in flight");
        completion.result.expect("reads succeed");
        queue.submit(Request {
            offset: offset(),
            ..completion.request
        });
        done += 1;
    }
    done as f64 / start.elapsed().as_secs_f64()
}
