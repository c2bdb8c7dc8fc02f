//! The effect of the memory of requests on a disk.
//!
//! `cargo bench -p cryptmark-block --bench memory [-- DIRECTORY]`. Visits of 50 ms, one after the
//! other, each with fresh buffers: each by itself, or side by side in one allocation. Odd and even
//! visits are told apart, because a visit may get the memory that the visit before the last one has
//! left.

use block::{AlignedBuffer, BlockDevice, FileDevice, Operation, QueueOptions, Request, Wait};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const SIZE: u64 = 256 << 20;
const VISITS: usize = 24;
const VISIT: Duration = Duration::from_millis(50);

/// KiB of a request, and requests in flight.
const REQUESTS: [(u64, u32); 6] = [
    (4096, 8),
    (1024, 8),
    (256, 16),
    (128, 32),
    (64, 32),
    (4, 32),
];

fn main() {
    let given = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let directory = given.map_or_else(std::env::temp_dir, PathBuf::from);
    let file = block::TestFile::create(&directory, SIZE, 1, &mut |_| ControlFlow::Continue(()))
        .expect("a test file");
    let device = file.device(None).expect("a device");
    println!(
        "{}, {}: MB/s of odd and of even visits",
        directory.display(),
        device.engine().name()
    );
    for operation in [Operation::Read, Operation::Write] {
        for (kib, depth) in REQUESTS {
            let rates = |together| {
                let rates: Vec<f64> = (0..VISITS)
                    .map(|_| visit(&device, operation, kib << 10, depth, together))
                    .collect();
                let of = |first| median(rates.iter().copied().skip(first).step_by(2));
                format!("{:.0} and {:.0}", of(0), of(1))
            };
            println!(
                "{operation:?} {kib} KiB, depth {depth}: each buffer by itself {}, together {}",
                rates(false),
                rates(true)
            );
        }
    }
}

/// MB/s of requests in order.
fn visit(
    device: &FileDevice,
    operation: Operation,
    length: u64,
    depth: u32,
    together: bool,
) -> f64 {
    let (count, bytes) = (depth as usize, length as usize);
    let buffers = match together {
        true => AlignedBuffer::several(count, bytes),
        false => (0..count).map(|_| AlignedBuffer::new(bytes)).collect(),
    };
    let mut queue = device.queue(QueueOptions::new(depth)).expect("a queue");
    let start = Instant::now();
    let mut done = 0;
    let request = |number: u64, buffer| Request::new(operation, number * length % SIZE, buffer, 0);
    let mut next = 0;
    for buffer in buffers {
        queue.submit(request(next, buffer));
        next += 1;
    }
    while let Some(completion) = queue.reap(Wait::Yes) {
        completion.result.expect("done");
        done += length;
        if start.elapsed() < VISIT {
            queue.submit(request(next, completion.request.buffer));
            next += 1;
        }
    }
    done as f64 / start.elapsed().as_secs_f64() / 1e6
}

fn median(rates: impl Iterator<Item = f64>) -> f64 {
    let mut rates: Vec<f64> = rates.collect();
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}
