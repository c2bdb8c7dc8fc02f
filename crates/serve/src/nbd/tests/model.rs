//! Random requests through an export, against an array of bytes.

use super::raw::Raw;
use super::{Running, named};
use crate::nbd::wire::{command, flag};
use crate::nbd::{NbdDevice, Place};
use crate::{Access, Zeros};
use block::layer::{Trim, TrimPolicy};
use block::model::{Discarded, Model};
use block::{ByteRange, RamDevice};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const SIZE: u64 = 3 << 20;

fn policy(seed: u64) -> TrimPolicy {
    TrimPolicy::ALL[seed as usize % 3]
}

#[test]
fn an_export_is_a_device() {
    for (seed, threads) in [(1, 1), (2, 1), (3, 8), (4, 8)] {
        let device = Trim::new(RamDevice::new(SIZE), policy(seed));
        let running = Running::start(vec![named("", device, Access::Write)], threads);
        let client = NbdDevice::connect(&running.place, "").unwrap();
        Model {
            longest: 1 << 20,
            depth: 16,
            discarded: Discarded::Anything,
            ..Model::new(seed)
        }
        .run(&client);
    }
}

#[test]
fn tcp_serves_as_well() {
    let place = Place::parse("localhost:0".as_ref()).unwrap();
    let export = named("disk", RamDevice::new(SIZE), Access::Write);
    let server = crate::nbd::Server::listen(place, vec![export], 4).unwrap();
    let place = server.place();
    let end = server.end();
    let thread = std::thread::spawn(move || server.run().unwrap());
    let client = NbdDevice::connect(&place, "disk").unwrap();
    Model::new(9).run(&client);
    drop(client);
    end.now();
    thread.join().unwrap();
}

#[test]
fn any_byte_range_is_written_read_zeroed_and_trimmed() {
    for seed in 0..6 {
        let structured = seed % 2 == 0;
        let policy = policy(seed);
        let device = Trim::new(RamDevice::new(SIZE), policy);
        let running = Running::start(vec![named("x", device, Access::Write)], 1);
        let mut raw = Raw::with(&running.path(), "x", structured);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut bytes = vec![0_u8; SIZE as usize];
        for _ in 0..300 {
            let offset = random.next_u64() % SIZE;
            let most = match random.next_u64() % 4 {
                0 => 2 << 20,
                1 => 70_000,
                _ => 5000,
            };
            let length = (1 + random.next_u64() % most).min(SIZE - offset);
            let range = offset as usize..(offset + length) as usize;
            let fua = flag::FUA * (random.next_u64() % 2) as u16;
            let length = length as u32;
            match random.next_u64() % 8 {
                0..=2 => {
                    let mut data = vec![0; length as usize];
                    random.fill_bytes(&mut data);
                    assert_eq!(raw.write(fua, offset, &data), 0);
                    bytes[range].copy_from_slice(&data);
                }
                3 => {
                    let hole = flag::NO_HOLE * (random.next_u64() % 2) as u16;
                    let answer = raw.ask(command::WRITE_ZEROES, fua | hole, offset, length);
                    assert_eq!(answer.error, 0);
                    bytes[range].fill(0);
                }
                4 if policy != TrimPolicy::Block => {
                    assert_eq!(raw.ask(command::TRIM, fua, offset, length).error, 0);
                    // Only whole blocks are given up; here they read as zeros.
                    let (start, end) = (range.start.next_multiple_of(512), range.end / 512 * 512);
                    if start < end {
                        bytes[start..end].fill(0);
                    }
                }
                _ => {
                    let answer = raw.ask(command::READ, 0, offset, length);
                    assert_eq!(answer.error, 0);
                    assert!(
                        answer.data == bytes[range],
                        "seed {seed}: {length} at {offset}"
                    );
                }
            }
        }
        assert!(raw.ask(command::READ, 0, 0, SIZE as u32).data == bytes);
        assert_eq!(raw.ask(command::FLUSH, 0, 0, 0).error, 0);
    }
}

#[test]
fn neighbours_of_a_partial_block_survive_other_writers() {
    // Each client owns every fourth byte of the same blocks.
    let running = Running::start(vec![named("", RamDevice::new(SIZE), Access::Write)], 4);
    let path = running.path();
    std::thread::scope(|scope| {
        for client in 0..4_u64 {
            let path = &path;
            scope.spawn(move || {
                let mut raw = Raw::with(path, "", true);
                for round in 0..100_u64 {
                    for at in (client..64).step_by(4) {
                        assert_eq!(raw.write(0, 1000 + at, &[round as u8 ^ at as u8]), 0);
                    }
                }
            });
        }
    });
    let data = Raw::with(&path, "", true)
        .ask(command::READ, 0, 1000, 64)
        .data;
    let expected: Vec<u8> = (0..64).map(|at| 99 ^ at).collect();
    assert_eq!(data, expected);
}

#[test]
fn lanes_zero_what_they_are_told_to() {
    let export = named("", RamDevice::new(SIZE), Access::Write).export;
    let mut lane = export.lane(64 << 10).unwrap();
    for (offset, length) in [
        (0, SIZE),
        (1, 1),
        (511, 2),
        (513, 70_001),
        (4096, 512),
        (77, 0),
    ] {
        for zeros in [Zeros::Written, Zeros::Punched] {
            for at in (0..SIZE).step_by(64 << 10) {
                lane.space(64 << 10).fill(9);
                lane.write(at).unwrap();
            }
            lane.zero(ByteRange::new(offset, length), zeros).unwrap();
            for at in (0..SIZE).step_by(64 << 10) {
                let piece = lane.read(at, 64 << 10).unwrap();
                for (inside, &byte) in piece.iter().enumerate() {
                    let position = at + inside as u64;
                    let zeroed = (offset..offset + length).contains(&position);
                    assert_eq!(byte == 0, zeroed, "{position}");
                }
            }
        }
    }
}
