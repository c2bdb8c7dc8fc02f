//! The attacks that other servers have fallen to, tried one by one. docs/SECURITY.md has the list.

use super::raw::{Raw, name_of, option_bytes};
use super::{Running, named};
use crate::nbd::wire::{self, command, flag, option, reply};
use crate::{Access, Export};
use block::{NullDevice, RamDevice};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

fn start() -> Running {
    let ram = RamDevice::new(1 << 20);
    Running::start(vec![named("one", ram, Access::Write)], 2)
}

fn is_served(running: &Running) {
    let mut raw = Raw::with(&running.path(), "one", true);
    assert_eq!(raw.write(0, 0, b"served"), 0);
    assert_eq!(raw.ask(command::READ, 0, 0, 6).data, b"served");
}

/// CVE-2022-26495, CVE-2022-26496 of nbd-server, CVE-2017-15118 of QEMU.
#[test]
fn lengths_that_lie_are_no_danger() {
    let running = start();
    let long = "x".repeat(wire::LONGEST_NAME + 1);
    let longest = "x".repeat(wire::LONGEST_NAME);
    let lying = |length: u32, more: &[u8]| {
        let mut bytes = length.to_be_bytes().to_vec();
        bytes.extend_from_slice(b"one");
        bytes.extend_from_slice(more);
        bytes
    };
    for kind in [
        option::INFO,
        option::GO,
        option::SET_META_CONTEXT,
        option::LIST_META_CONTEXT,
    ] {
        let mut raw = Raw::greet(&running.path(), 3);
        raw.option(option::STRUCTURED_REPLY, &[]);
        for data in [
            vec![],
            vec![0; 3],
            // A name longer than the option, by a byte and by as much as there is.
            lying(4, &[]),
            lying(u32::MAX, &[0, 0]),
            lying(i32::MAX as u32, &[0, 0]),
            // More is said to follow than does.
            lying(3, &[0xff, 0xff]),
            lying(3, &[0xff, 0xff, 0xff, 0xff]),
            lying(3, &[0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff]),
            lying(3, &[0, 0, 0, 1, 0, 0, 0, 9, b'b']),
            [name_of(&long), vec![0, 0]].concat(),
        ] {
            let (code, _) = raw.option(kind, &data).pop().unwrap();
            assert_eq!(code, reply::ERR_INVALID, "{kind} {data:02x?}");
        }
        let named = [name_of(&longest), vec![0, 0, 0, 0]].concat();
        let named = if kind == option::INFO || kind == option::GO {
            &named[..named.len() - 2]
        } else {
            &named
        };
        let (code, _) = raw.option(kind, named).pop().unwrap();
        assert_eq!(code, reply::ERR_UNKNOWN, "{kind}");
    }
    // An option that is too long to be refused ends the connection; the server does not wait for
    // its data.
    for length in [wire::LONGEST_OPTION + 1, i32::MAX as u32, u32::MAX] {
        for kind in [option::EXPORT_NAME, option::GO, 77] {
            let mut raw = Raw::greet(&running.path(), 3);
            let mut bytes = option_bytes(kind, &[]);
            bytes[12..16].copy_from_slice(&length.to_be_bytes());
            raw.stream.write_all(&bytes).unwrap();
            assert!(raw.is_over(), "{kind} {length}");
        }
    }
    let mut raw = Raw::greet(&running.path(), 3);
    raw.stream
        .write_all(&option_bytes(option::EXPORT_NAME, long.as_bytes()))
        .unwrap();
    assert!(raw.is_over());
    is_served(&running);
}

/// CVE-2025-47711 and CVE-2025-47712 of nbdkit.
#[test]
fn the_largest_requests_are_no_danger() {
    let size = 1_u64 << 40;
    let most = u32::MAX;
    let export = |extent: u64| {
        Export::new(Arc::new(NullDevice::new(size)), Access::Write).with_allocation(move |range| {
            let end = range.offset + range.length;
            let starts = (range.offset..end).step_by(extent as usize).take(100);
            let extents = starts.map(|start| block::Extent {
                range: block::ByteRange::new(start, extent.min(end - start)),
                hole: (start / extent).is_multiple_of(2),
            });
            Ok(extents.collect())
        })
    };
    for extent in [size, 1 << 32, 1 << 31, 65536] {
        let mut one = named("one", NullDevice::new(512), Access::Write);
        one.export = Arc::new(export(extent));
        let running = Running::start(vec![one], 1);
        let mut raw = Raw::with(&running.path(), "one", true);
        for flags in [0, flag::REQ_ONE] {
            for (offset, length) in [
                (0, most),
                (0, 1),
                (1, most),
                (size - 1, 1),
                (size - u64::from(most), most),
                (size / 2, most - 1),
            ] {
                let answer = raw.ask(command::BLOCK_STATUS, flags, offset, length);
                assert_eq!(answer.error, 0);
                let told: u64 = answer
                    .extents
                    .iter()
                    .map(|&(bytes, _)| u64::from(bytes))
                    .sum();
                assert!(answer.extents.iter().all(|&(bytes, _)| bytes > 0));
                assert!((1..=u64::from(length)).contains(&told), "{offset} {length}");
            }
            for (offset, length) in [(size - 1, 2), (size, 1), (u64::MAX, most), (0, 0)] {
                let answer = raw.ask(command::BLOCK_STATUS, flags, offset, length);
                assert_ne!(answer.error, 0, "{offset} {length}");
            }
        }
        for command in [command::WRITE_ZEROES, command::TRIM, command::CACHE] {
            assert_ne!(raw.ask(command, 0, size - 1, most).error, 0);
        }
    }
}

/// CVE-2013-7441 of nbd-server; CVE-2024-7409 of QEMU; CVE-2019-14851 of nbdkit.
#[test]
fn clients_that_leave_in_the_middle_harm_nobody() {
    let mut running = start();
    let mut go = name_of("one");
    go.extend_from_slice(&[0, 0]);
    let speech = [
        3_u32.to_be_bytes().to_vec(),
        // The same ones again, and in no order.
        option_bytes(option::SET_META_CONTEXT, &go),
        option_bytes(option::STRUCTURED_REPLY, &[]),
        option_bytes(option::STRUCTURED_REPLY, &[]),
        option_bytes(option::LIST, &[]),
        option_bytes(option::STARTTLS, &[]),
        option_bytes(option::INFO, &go),
        option_bytes(option::GO, &go),
        vec![0; 5],
    ]
    .concat();
    for length in 0..=speech.len() {
        let mut stream = UnixStream::connect(running.path()).unwrap();
        stream.write_all(&speech[..length]).unwrap();
        if length % 3 == 0 {
            stream
                .set_read_timeout(Some(Duration::from_secs(10)))
                .unwrap();
            stream.read_exact(&mut [0; 18]).unwrap();
        }
    }
    is_served(&running);
    // One stays in the middle while the server ends.
    let mut guest = UnixStream::connect(running.path()).unwrap();
    guest.write_all(&speech[..20]).unwrap();
    running.stop();
}
