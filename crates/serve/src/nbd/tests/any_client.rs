//! Any bytes from a client: nothing panics, hangs or grows without bound, and
//! every byte of an answer is what the protocol says.

use super::raw::{go, name_of, option_bytes};
use crate::nbd::clients::Clients;
use crate::nbd::handshake::Named;
use crate::nbd::transport::Wire;
use crate::nbd::wire::{self, be16, be32, be64, command, option};
use crate::{Access, Export, Extent};
use block::layer::{Trim, TrimPolicy};
use block::{ByteRange, RamDevice};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::io::{self, IoSlice};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

const SIZE: u64 = 256 << 10;

/// A client whose whole speech is known in advance.
struct Tape {
    speech: Mutex<(Vec<u8>, usize)>,
    /// Bytes that are received at a time.
    step: usize,
    heard: Mutex<Vec<u8>>,
}

impl Wire for Tape {
    fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        let mut speech = self.speech.lock().unwrap();
        let (bytes, at) = &mut *speech;
        let length = into.len().min(self.step).min(bytes.len() - *at);
        into[..length].copy_from_slice(&bytes[*at..*at + length]);
        *at += length;
        Ok(length)
    }

    fn send(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut heard = self.heard.lock().unwrap();
        for part in parts {
            heard.extend_from_slice(part);
        }
        Ok(parts.iter().map(|part| part.len()).sum())
    }

    fn end(&self) {}

    fn cut(&self) {}
}

fn exports() -> Vec<Named> {
    let named = |name: &str, policy, access| {
        let device = Trim::new(RamDevice::new(SIZE), policy);
        let export = Export::new(Arc::new(device), access).with_allocation(|range| {
            let half = range.length / 2;
            let second = ByteRange::new(range.offset + half, range.length - half);
            Ok(vec![
                Extent {
                    range: ByteRange::new(range.offset, half),
                    hole: true,
                },
                Extent {
                    range: second,
                    hole: false,
                },
            ])
        });
        Named {
            name: name.into(),
            description: String::new(),
            export: Arc::new(export),
        }
    };
    vec![
        named("a", TrimPolicy::Pass, Access::Write),
        named("b", TrimPolicy::Zero, Access::Write),
        named("c", TrimPolicy::Block, Access::Read),
    ]
}

/// A client's messages: right, except for bytes that chance spoils.
fn speech(random: &mut Xoshiro256PlusPlus) -> Vec<u8> {
    let mut below = |bound: u64| random.next_u64() % bound;
    let name = ["", "a", "b", "c", "d"][below(5) as usize];
    let mut bytes = 3_u32.to_be_bytes().to_vec();
    if below(4) > 0 {
        bytes.extend(option_bytes(option::STRUCTURED_REPLY, &[]));
        let mut context = name_of(name);
        context.extend_from_slice(&1_u32.to_be_bytes());
        context.extend(name_of(wire::BASE_ALLOCATION));
        bytes.extend(option_bytes(option::SET_META_CONTEXT, &context));
    }
    match below(8) {
        0 => bytes.extend(option_bytes(option::LIST, &[])),
        1 => bytes.extend(option_bytes(option::INFO, &go(name))),
        2 => bytes.extend(option_bytes(
            below(20) as u32,
            &go(name)[..below(8) as usize],
        )),
        _ => {}
    }
    bytes.extend(match below(6) {
        0 => option_bytes(option::EXPORT_NAME, name.as_bytes()),
        _ => option_bytes(option::GO, &go(name)),
    });
    for _ in 0..below(6) {
        let command = match below(10) {
            0 => below(1 << 16) as u16,
            known => known as u16 % 8,
        };
        let length = match below(8) {
            0 => 0,
            1 => below(1 << 32) as u32,
            2 => below(SIZE) as u32,
            _ => below(3000) as u32,
        };
        let offset = match below(10) {
            0 => u64::MAX - below(5000),
            1 => SIZE - below(5000),
            _ => below(SIZE),
        };
        let request = wire::Request {
            flags: if below(3) == 0 { below(64) as u16 } else { 0 },
            command,
            cookie: below(3),
            offset,
            length,
        };
        bytes.extend_from_slice(&request.bytes());
        if command == command::WRITE {
            bytes.extend((0..length.min(5000)).map(|at| at as u8));
        }
    }
    match below(4) {
        0 => bytes.truncate(below(bytes.len() as u64 + 1) as usize),
        1 => {
            for _ in 0..1 + below(4) {
                let at = below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << below(8);
            }
        }
        2 if below(4) == 0 => {
            let at = below(bytes.len() as u64) as usize;
            bytes.splice(at..at, (0..below(40)).map(|n| (n * 37) as u8));
        }
        _ => {}
    }
    bytes
}

/// Reads all that the server said; panics where that is not the protocol.
fn check(heard: &[u8]) {
    assert_eq!(be64(heard, 0), wire::SERVER_MAGIC);
    let mut at = 18;
    let mut rest = || -> Option<u64> {
        let left = heard.get(at..)?;
        if left.is_empty() {
            return None;
        }
        let long = left.len() >= 8 && be64(left, 0) == wire::OPTION_REPLY_MAGIC;
        let length = match be32(left, 0) {
            _ if long => 20 + u64::from(be32(left, 16)),
            wire::CHUNK_MAGIC => 20 + u64::from(be32(left, 16)),
            // The data of a simple reply is known only to the client that asked.
            _ => return None,
        };
        if !long {
            assert!(be16(left, 4) <= 1);
        }
        assert!(length <= left.len() as u64, "an answer is cut off");
        at += length as usize;
        Some(length)
    };
    while rest().is_some() {}
}

fn run(seed: u64, executions: u64) {
    let exports = exports();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    for execution in 0..executions {
        let speech = speech(&mut random);
        let tape = Tape {
            step: [usize::MAX, 1, 7, 4096][execution as usize % 4],
            speech: Mutex::new((speech, 0)),
            heard: Mutex::default(),
        };
        // However it ends, it ends.
        let _ = Clients::new(&exports, 1, None, &AtomicUsize::new(0)).serve(&tape);
        check(&tape.heard.into_inner().unwrap());
    }
}

#[test]
fn any_client_for_a_moment() {
    run(5, 3000);
}

/// As often as FUZZ_EXECUTIONS says.
#[test]
#[ignore = "takes as long as it is told to"]
fn any_client_for_long() {
    let executions: u64 = std::env::var("FUZZ_EXECUTIONS").map_or(100_000, |text| {
        text.parse().expect("FUZZ_EXECUTIONS is a number")
    });
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let seed: u64 = std::env::var("FUZZ_SEED").map_or(1, |text| text.parse().expect("a number"));
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || run(seed * 1000 + thread, executions.div_ceil(threads)));
        }
    });
    println!("{executions} executions of nbd_client");
}
