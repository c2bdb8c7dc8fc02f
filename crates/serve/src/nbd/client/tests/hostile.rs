//! Servers that lie: nothing panics, hangs or grows without bound.

use super::super::road::{self, Road};
use super::super::{Address, ClientError};
use super::{Folder, NbdDevice, uri};
use crate::nbd::secure::{Security, Session};
use crate::nbd::transport::Wire;
use crate::nbd::wire::{self, chunk, info, option, reply, transmission};
use block::{BlockDevice, BlockError};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const SIZE: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_millis(200);

/// Serves every client by `serve`, until the process ends.
fn serve(socket: &Path, serve: impl Fn(UnixStream) -> io::Result<()> + Send + Sync + 'static) {
    let listener = UnixListener::bind(socket).unwrap();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let serve = Arc::clone(&serve);
            // The client may leave whenever it likes.
            std::thread::spawn(move || drop(serve(client)));
        }
    });
}

fn greeting() -> Vec<u8> {
    let mut bytes = wire::SERVER_MAGIC.to_be_bytes().to_vec();
    bytes.extend(wire::OPTION_MAGIC.to_be_bytes());
    bytes.extend(3_u16.to_be_bytes());
    bytes
}

fn answer(option: u32, kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = wire::OPTION_REPLY_MAGIC.to_be_bytes().to_vec();
    for number in [option, kind, data.len() as u32] {
        bytes.extend(number.to_be_bytes());
    }
    bytes.extend(data);
    bytes
}

fn export(size: u64, flags: u16) -> Vec<u8> {
    let mut bytes = info::EXPORT.to_be_bytes().to_vec();
    bytes.extend(size.to_be_bytes());
    bytes.extend(flags.to_be_bytes());
    bytes
}

fn sizes(least: u32, best: u32, most: u32) -> Vec<u8> {
    let mut bytes = info::BLOCK_SIZE.to_be_bytes().to_vec();
    for size in [least, best, most] {
        bytes.extend(size.to_be_bytes());
    }
    bytes
}

/// All that a server says before the transmission, if it says it at once.
fn negotiation() -> Vec<u8> {
    let flags = transmission::HAS_FLAGS | transmission::SEND_FLUSH | transmission::SEND_TRIM;
    [
        greeting(),
        answer(option::STRUCTURED_REPLY, reply::ACK, &[]),
        answer(option::GO, reply::INFO, &export(SIZE, flags)),
        answer(option::GO, reply::INFO, &sizes(1, 4096, 32 << 20)),
        answer(option::GO, reply::ACK, &[]),
    ]
    .concat()
}

/// Takes a request; its command, cookie, offset and length.
fn request(client: &mut UnixStream) -> io::Result<wire::Request> {
    let mut head = [0; wire::REQUEST_BYTES];
    client.read_exact(&mut head)?;
    let request = wire::Request::parse(&head).ok_or(io::ErrorKind::InvalidData)?;
    if request.command == wire::command::WRITE {
        io::copy(&mut client.take(request.length.into()), &mut io::sink())?;
    }
    Ok(request)
}

/// Takes what a client says before the transmission.
fn hear_negotiation(client: &mut UnixStream) -> io::Result<()> {
    client.read_exact(&mut [0; 4])?;
    loop {
        let mut head = [0; 16];
        client.read_exact(&mut head)?;
        let length = wire::be32(&head, 12);
        io::copy(&mut client.take(length.into()), &mut io::sink())?;
        if wire::be32(&head, 8) == option::GO {
            return Ok(());
        }
    }
}

/// Tries what a device does; says what came of it, which is all the same here.
fn use_it(device: &NbdDevice) -> [Result<(), BlockError>; 4] {
    [
        device.read_at(0, &mut vec![0; 64 << 10]),
        device.write_at(4096, &[1; 8192]),
        device.flush(),
        device.discard(block::ByteRange::new(0, 4096)),
    ]
}

#[test]
fn servers_that_speak_something_else_are_left() {
    let long = answer(option::GO, reply::INFO, &[7; 100]).repeat(2000);
    let flags = transmission::HAS_FLAGS;
    let go = |told: &[u8]| {
        [
            greeting(),
            answer(option::STRUCTURED_REPLY, reply::ACK, &[]),
            answer(option::GO, reply::INFO, told),
            answer(option::GO, reply::ACK, &[]),
        ]
        .concat()
    };
    let mut speeches = vec![
        b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(),
        vec![0; 4096],
        vec![255; 4096],
        // It has no export.
        go(&[0; 3]),
        // It asks for blocks that cannot be.
        go(&sizes(0, 0, 0)),
        go(&sizes(3, 4096, 1 << 20)),
        go(&sizes(1 << 20, 1 << 20, 1 << 20)),
        go(&sizes(4096, 512, 1 << 20)),
        // It never comes to the end.
        [
            &greeting()[..],
            &answer(option::STRUCTURED_REPLY, reply::ACK, &[]),
            &long,
        ]
        .concat(),
        // It says that very much follows.
        [
            &greeting()[..],
            &answer(option::STRUCTURED_REPLY, reply::ACK, &[])[..16],
            &[255; 64],
        ]
        .concat(),
    ];
    let whole = [negotiation(), go(&export(SIZE, flags))].concat();
    speeches.extend(
        (0..negotiation().len())
            .step_by(7)
            .map(|end| whole[..end].to_vec()),
    );
    for speech in speeches {
        let folder = Folder::new();
        let told = speech.clone();
        serve(&folder.path("s"), move |mut client| {
            client.write_all(&told)?;
            client.shutdown(std::net::Shutdown::Write)?;
            io::copy(&mut client, &mut io::sink()).map(drop)
        });
        let opened = NbdDevice::open(&uri(&folder.path("s")));
        assert!(opened.is_err(), "{speech:02x?}");
    }
}

#[test]
fn sizes_at_the_edge_are_no_danger() {
    for (size, flags) in [(0, 1), (1, 1), (511, 0xffff), (u64::MAX, !256)] {
        let folder = Folder::new();
        serve(&folder.path("s"), move |mut client| {
            let speech = negotiation();
            let there = 18 + 20 + 20 + 2;
            client.write_all(&speech[..there])?;
            client.write_all(&u64::to_be_bytes(size))?;
            client.write_all(&u16::to_be_bytes(flags))?;
            client.write_all(&speech[there + 10..])?;
            hear_negotiation(&mut client)?;
            io::copy(&mut client, &mut io::sink()).map(drop)
        });
        let opened = NbdDevice::open(&uri(&folder.path("s")));
        // With several connections it has to answer before it is believed.
        if let Ok(device) = opened {
            assert!(device.geometry().size <= size);
            for result in use_it(&device.with_patience(PATIENCE)) {
                let _ = result;
            }
        }
    }
}

/// A session that changes nothing: for who wants to see what a client does about TLS.
struct Plain;

impl Session for Plain {
    fn receive(&self, below: &dyn Wire, into: &mut [u8]) -> io::Result<usize> {
        below.receive(into)
    }

    fn send(&self, below: &dyn Wire, parts: &[io::IoSlice<'_>]) -> io::Result<usize> {
        below.send(parts)
    }

    fn flush(&self, below: &dyn Wire) -> io::Result<()> {
        below.flush()
    }

    fn has_received(&self) -> bool {
        false
    }
}

impl Security for Plain {
    fn is_required(&self) -> bool {
        true
    }

    fn begin(&self, _: &dyn Wire) -> io::Result<Box<dyn Session>> {
        Ok(Box::new(Plain))
    }
}

/// CVE-2019-14842 of libnbd: a client that wants TLS goes on without.
#[test]
fn a_server_that_refuses_tls_is_left() {
    let begin = |answer_to_tls: Vec<u8>| {
        let folder = Folder::new();
        let speech = [
            greeting(),
            answer_to_tls,
            negotiation()[greeting().len()..].to_vec(),
        ]
        .concat();
        serve(&folder.path("s"), move |mut client| {
            client.write_all(&speech)?;
            io::copy(&mut client, &mut io::sink()).map(drop)
        });
        let server = road::Server {
            address: Address::Unix(folder.path("s")),
            name: String::new(),
            security: Some(Box::new(Plain)),
        };
        Road::begin(&server, Duration::from_secs(10))
            .map(|_| ())
            .unwrap_err()
    };
    for code in [reply::ERR_UNSUP, reply::ERR_POLICY] {
        let refused = begin(answer(option::STARTTLS, code, &[]));
        assert!(matches!(refused, ClientError::NoTls { .. }), "{refused:?}");
    }
    for (kind, code) in [
        (option::STARTTLS, reply::ERR_INVALID),
        (option::STARTTLS, reply::ERR_TLS_REQD),
        (option::STARTTLS, 7),
        (option::STRUCTURED_REPLY, reply::ACK),
    ] {
        begin(answer(kind, code, &[]));
    }
    // TLS begins, and data that an attacker on the way has put behind that does not count.
    let early = begin(answer(option::STARTTLS, reply::ACK, &[]));
    assert!(matches!(early, ClientError::Protocol(_)), "{early:?}");
}

/// Replies to a read that are whole by their form, and lack bytes of the data.
#[test]
fn a_read_without_all_of_its_data_has_failed() {
    type Lie = fn(wire::Request) -> Vec<u8>;
    fn data(request: wire::Request, flags: u16, from: u64, length: u32) -> Vec<u8> {
        let mut bytes =
            wire::chunk_head(flags, chunk::OFFSET_DATA, request.cookie, 8 + length).to_vec();
        bytes.extend((request.offset + from).to_be_bytes());
        bytes.resize(bytes.len() + length as usize, 5);
        bytes
    }
    let lies: [(&str, Lie); 6] = [
        ("nothing at all", |request| {
            wire::chunk_head(1, chunk::NONE, request.cookie, 0).to_vec()
        }),
        ("the first half", |request| {
            data(request, 1, 0, request.length / 2)
        }),
        ("the second half", |request| {
            data(
                request,
                1,
                u64::from(request.length / 2),
                request.length / 2,
            )
        }),
        ("all but a byte in the middle", |request| {
            let half = request.length / 2;
            let second = data(request, 1, u64::from(half) + 1, half - 1);
            [data(request, 0, 0, half), second].concat()
        }),
        ("the same half twice", |request| {
            let half = data(request, 0, 0, request.length / 2);
            let done = wire::chunk_head(1, chunk::NONE, request.cookie, 0);
            [&half[..], &half, &done].concat()
        }),
        ("no bytes, again and again", |request| {
            data(request, 0, 0, 0).repeat(100)
        }),
    ];
    for (what, lie) in lies {
        let folder = Folder::new();
        serve(&folder.path("s"), move |mut client| {
            client.write_all(&negotiation())?;
            hear_negotiation(&mut client)?;
            loop {
                let asked = request(&mut client)?;
                client.write_all(&lie(asked))?;
            }
        });
        let device = NbdDevice::open(&uri(&folder.path("s"))).unwrap();
        let device = device.with_patience(PATIENCE);
        assert!(device.read_at(0, &mut [0; 4096]).is_err(), "{what}");
    }
    // All of it, the second half first and a hole.
    let folder = Folder::new();
    serve(&folder.path("s"), move |mut client| {
        client.write_all(&negotiation())?;
        hear_negotiation(&mut client)?;
        loop {
            let asked = request(&mut client)?;
            let half = asked.length / 2;
            client.write_all(&data(asked, 0, u64::from(half), half))?;
            let hole = wire::chunk_head(1, chunk::OFFSET_HOLE, asked.cookie, 12);
            client.write_all(&hole)?;
            client.write_all(&asked.offset.to_be_bytes())?;
            client.write_all(&half.to_be_bytes())?;
        }
    });
    let device = NbdDevice::open(&uri(&folder.path("s"))).unwrap();
    let mut read = [1; 4096];
    device.read_at(0, &mut read).unwrap();
    assert_eq!(read[..2048], [0; 2048]);
    assert_eq!(read[2048..], [5; 2048]);
}

/// Replies that are wrong, one kind after another.
#[test]
fn wrong_replies_end_in_errors() {
    let reply = |error: u32, cookie: u64| wire::simple(error, cookie).to_vec();
    type Lie = fn(wire::Request) -> Vec<u8>;
    let lies: [Lie; 12] = [
        |_| vec![0; 16],
        |_| vec![255; 64],
        // A request that was never made.
        |request| wire::simple(0, request.cookie ^ 77).to_vec(),
        // An error that no system has.
        |request| wire::simple(u32::MAX, request.cookie).to_vec(),
        // Half a reply.
        |request| wire::simple(0, request.cookie)[..7].to_vec(),
        // Data for a request that wants none, and much of it.
        |request| wire::chunk_head(1, chunk::OFFSET_DATA, request.cookie, u32::MAX).to_vec(),
        |request| {
            let mut bytes =
                wire::chunk_head(1, chunk::OFFSET_DATA, request.cookie, 8 + 512).to_vec();
            bytes.extend(u64::MAX.to_be_bytes());
            bytes.extend([1; 512]);
            bytes
        },
        |request| {
            let mut bytes = wire::chunk_head(1, chunk::OFFSET_HOLE, request.cookie, 12).to_vec();
            bytes.extend((request.offset + 512).to_be_bytes());
            bytes.extend(u32::MAX.to_be_bytes());
            bytes
        },
        |request| wire::chunk_head(1, chunk::NONE, request.cookie, 5).to_vec(),
        |request| wire::chunk_head(1, chunk::BLOCK_STATUS, request.cookie, 8).to_vec(),
        |request| wire::chunk_head(1, chunk::ERROR, request.cookie, u32::MAX).to_vec(),
        // Chunks without end.
        |request| wire::chunk_head(0, chunk::NONE, request.cookie, 0).repeat(5000),
    ];
    for (index, lie) in lies.into_iter().enumerate() {
        let folder = Folder::new();
        serve(&folder.path("s"), move |mut client| {
            client.write_all(&negotiation())?;
            hear_negotiation(&mut client)?;
            loop {
                let asked = request(&mut client)?;
                client.write_all(&lie(asked))?;
            }
        });
        let device = NbdDevice::open(&uri(&folder.path("s"))).unwrap();
        for result in use_it(&device.with_patience(PATIENCE)) {
            assert!(result.is_err(), "lie {index}");
        }
    }
    // And one that says the truth.
    let folder = Folder::new();
    serve(&folder.path("s"), move |mut client| {
        client.write_all(&negotiation())?;
        hear_negotiation(&mut client)?;
        loop {
            let asked = request(&mut client)?;
            client.write_all(&reply(0, asked.cookie))?;
            if asked.command == wire::command::READ {
                client.write_all(&vec![5; asked.length as usize])?;
            }
        }
    });
    let device = NbdDevice::open(&uri(&folder.path("s"))).unwrap();
    for result in use_it(&device) {
        result.unwrap();
    }
}

/// A server that greets, and then says nothing, or one byte at a time.
#[test]
fn who_waits_for_a_silent_server_waits_no_longer_than_was_said() {
    for trickles in [false, true] {
        let folder = Folder::new();
        serve(&folder.path("s"), move |mut client| {
            client.write_all(&negotiation())?;
            hear_negotiation(&mut client)?;
            let mut told: Vec<u8> = Vec::new();
            if trickles {
                let asked = request(&mut client)?;
                told = wire::simple(0, asked.cookie).to_vec();
            }
            for byte in told.into_iter().chain(std::iter::repeat_n(0, 4000)) {
                std::thread::sleep(Duration::from_millis(20));
                if trickles {
                    client.write_all(&[byte])?;
                }
            }
            Ok(())
        });
        let device = NbdDevice::open(&uri(&folder.path("s"))).unwrap();
        let device = device.with_patience(2 * PATIENCE);
        let begun = Instant::now();
        let error = device.read_at(0, &mut vec![0; 64 << 10]).unwrap_err();
        assert!(matches!(error, BlockError::Io { .. }));
        // Far from the 80 s that the server takes.
        assert!(
            begun.elapsed() < Duration::from_secs(40),
            "{:?}",
            begun.elapsed()
        );
    }
}

/// A server's messages are right, except for bytes that chance spoils.
#[test]
fn any_server_for_a_moment() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
    for _ in 0..150 {
        let mut speech = negotiation();
        for cookie in 1..5 {
            speech.extend(wire::simple(0, cookie));
            if cookie == 1 {
                speech.extend(vec![3; 64 << 10]);
            }
        }
        let mut below = |bound: usize| (random.next_u64() % bound as u64) as usize;
        for _ in 0..1 + below(4) {
            // Most of it is what is read, which cannot be wrong.
            let place = match below(2) {
                0 => below(180).min(speech.len() - 1),
                _ => speech.len() - 1 - below(64.min(speech.len())),
            };
            match below(3) {
                0 => speech[place] ^= 1 << below(8),
                1 => drop(speech.splice(place..place, (0..below(20)).map(|n| (n * 37) as u8))),
                _ => speech.truncate(place.max(1)),
            }
        }
        let folder = Folder::new();
        serve(&folder.path("s"), move |mut client| {
            client.write_all(&speech)?;
            client.shutdown(std::net::Shutdown::Write)?;
            io::copy(&mut client, &mut io::sink()).map(drop)
        });
        // However it ends, it ends.
        if let Ok(device) = NbdDevice::open(&uri(&folder.path("s"))) {
            for result in use_it(&device.with_patience(Duration::from_millis(20))) {
                let _ = result;
            }
        }
    }
}
