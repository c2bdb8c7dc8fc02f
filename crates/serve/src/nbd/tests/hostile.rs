//! Clients that mean harm, beside one that does not.

use super::raw::Raw;
use super::{Running, named};
use crate::Access;
use crate::nbd::wire::{self, command};
use crate::nbd::{Place, Server};
use block::RamDevice;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

const SIZE: u64 = 64 << 20;

fn start() -> Running {
    Running::start(vec![named("", RamDevice::new(SIZE), Access::Write)], 4)
}

/// A client that wants nothing bad gets what it wants.
fn is_served(path: &Path) {
    let mut raw = Raw::with(path, "", true);
    assert_eq!(raw.write(0, 12345, b"still here"), 0);
    assert_eq!(raw.ask(command::READ, 0, 12345, 10).data, b"still here");
}

#[test]
fn clients_that_speak_something_else_are_sent_away() {
    let running = start();
    for speech in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0; 64],
        &[255; 4096],
        b"\0\0\0\x03IHAVEOP_\0\0\0\x01\0\0\0\0",
        b"\0\0\0\x03IHAVEOPT\0\0\0\x07\xff\xff\xff\xff",
    ] {
        let mut stream = UnixStream::connect(running.path()).unwrap();
        // It may be gone before all was said.
        let _ = stream.write_all(speech);
        let mut raw = Raw::greet(&running.path(), 3);
        drop(stream);
        assert!(!raw.option(wire::option::LIST, &[]).is_empty());
    }
    is_served(&running.path());
}

#[test]
fn a_request_with_the_wrong_magic_ends_the_connection() {
    let running = start();
    let mut raw = Raw::with(&running.path(), "", true);
    raw.stream.write_all(&[0x25; 28]).unwrap();
    assert!(raw.is_over());
    is_served(&running.path());
}

#[test]
fn a_write_of_more_than_the_limit_ends_the_connection() {
    let running = start();
    let mut raw = Raw::with(&running.path(), "", true);
    raw.send(command::WRITE, 0, 0, (32 << 20) + 1, &[0; 100]);
    assert!(raw.is_over());
    is_served(&running.path());
}

#[test]
fn half_a_request_holds_nobody_up() {
    let mut running = start();
    let path = running.path();
    let mut halves = Vec::new();
    for length in [1, 27, 28, 29, 5000] {
        let mut raw = Raw::with(&path, "", true);
        let request = wire::Request {
            flags: 0,
            command: command::WRITE,
            cookie: 1,
            offset: 0,
            length: 1 << 20,
        };
        let mut bytes = request.bytes().to_vec();
        bytes.resize(5000, 7);
        raw.stream.write_all(&bytes[..length]).unwrap();
        halves.push(raw);
    }
    is_served(&path);
    // The server ends although they never say the rest.
    running.stop();
}

#[test]
fn who_does_not_listen_holds_nobody_up() {
    let mut running = start();
    let path = running.path();
    let mut deaf = Vec::new();
    for _ in 0..8 {
        let mut raw = Raw::with(&path, "", true);
        for _ in 0..100 {
            raw.send(command::READ, 0, 0, 32 << 20, &[]);
        }
        deaf.push(raw);
    }
    is_served(&path);
    running.stop();
}

#[test]
fn overlapping_writes_leave_one_of_them_in_each_block() {
    let running = start();
    let path = running.path();
    std::thread::scope(|scope| {
        for byte in 1..=4_u8 {
            let path = &path;
            scope.spawn(move || {
                let mut raw = Raw::with(path, "", true);
                for _ in 0..50 {
                    assert_eq!(raw.write(0, 512, &[byte; 8192]), 0);
                }
            });
        }
    });
    let data = Raw::with(&path, "", true)
        .ask(command::READ, 0, 512, 8192)
        .data;
    for block in data.chunks(512) {
        assert!((1..=4).contains(&block[0]));
        assert!(block.iter().all(|&byte| byte == block[0]));
    }
}

/// Bytes of this process that are in memory.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    let kib: u64 = line.trim().trim_end_matches(" kB").trim().parse().unwrap();
    kib << 10
}

#[test]
fn a_thousand_clients_that_ask_for_much_and_take_little_fit_200_mb() {
    let running = Running::start(
        vec![named("", block::NullDevice::new(SIZE), Access::Write)],
        16,
    );
    let path = running.path();
    if !may_open(2100) {
        return println!("skipped: fewer than 2100 files may be open");
    }
    let before = resident();
    let mut clients = Vec::new();
    // With one more, all that one user may have.
    for index in 0..999 {
        let mut raw = Raw::with(&path, "", index % 2 == 0);
        match index % 3 {
            0 => drop(raw.send(command::WRITE, 0, 0, 32 << 20, &[1; 20_000])),
            _ => drop(raw.send(command::READ, 0, 0, 32 << 20, &[])),
        }
        clients.push(raw);
    }
    // One more is served at its ease.
    is_answered(&path);
    std::thread::sleep(Duration::from_millis(300));
    let grown = resident().saturating_sub(before);
    assert!(grown < 200_000_000, "{grown} bytes");
    println!("1000 clients: {} MB", grown / 1_000_000);
}

/// The null device keeps nothing, but it answers.
fn is_answered(path: &Path) {
    let mut raw = Raw::with(path, "", true);
    assert_eq!(raw.write(0, 4096, &[1; 4096]), 0);
    assert_eq!(raw.ask(command::READ, 0, 4096, 4096).error, 0);
}

/// Says of its greeting one byte, and of what follows one more whenever it is told to.
struct Slow {
    stream: UnixStream,
    said: usize,
}

impl Slow {
    /// The complete message: a request to go on with an export.
    const SPEECH: &'static [u8] = b"\0\0\0\x03IHAVEOPT\0\0\0\x07\0\0\0\x06\0\0\0\0\0\0";

    fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        let mut slow = Self { stream, said: 0 };
        slow.say();
        slow
    }

    /// False when the server has ended it.
    fn say(&mut self) -> bool {
        let byte = [Self::SPEECH[self.said % Self::SPEECH.len()]];
        self.said += 1;
        self.stream.write_all(&byte).is_ok()
    }

    fn is_over(&mut self) -> bool {
        self.stream.set_nonblocking(true).unwrap();
        let mut greeting = [0; 64];
        loop {
            match self.stream.read(&mut greeting) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() != std::io::ErrorKind::WouldBlock,
            }
        }
    }
}

/// Both ends of every connection are in this process.
fn may_open(files: u64) -> bool {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    limit.current.is_none_or(|most| most >= files)
}

#[test]
fn a_thousand_slow_clients_keep_nobody_out() {
    if !may_open(2300) {
        return println!("skipped: fewer than 2300 files may be open");
    }
    let running = start();
    let path = running.path();
    // In use before, and longer than any of them.
    let mut early = Raw::with(&path, "", true);
    let mut slow: Vec<Slow> = (0..1024).map(|_| Slow::connect(&path)).collect();
    for _ in 0..3 {
        is_served(&path);
        for slow in &mut slow {
            slow.say();
        }
    }
    assert_eq!(early.write(0, 0, b"as before"), 0);
    // It was the first that had to go.
    assert!(slow[0].is_over());
    assert!(!slow[1023].is_over());
}

/// The last places are for another user, who may be root.
#[test]
fn a_user_cannot_take_all_places() {
    if !may_open(2300) {
        return println!("skipped: fewer than 2300 files may be open");
    }
    let running = start();
    let path = running.path();
    let mut chosen: Vec<Raw> = (0..1000).map(|_| Raw::with(&path, "", true)).collect();
    let mut more = UnixStream::connect(&path).unwrap();
    assert!(more.read_exact(&mut [0; 18]).is_err(), "it is greeted");
    assert_eq!(chosen[0].ask(command::READ, 0, 0, 512).error, 0);
}

#[test]
fn without_a_host_it_is_this_machine_only() {
    let place = Place::parse(":10809".as_ref()).unwrap();
    assert_eq!(place, Place::Tcp(([127, 0, 0, 1], 10809).into()));
}

#[test]
fn a_socket_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let running = start();
    let mode = running.path().metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{mode:o}");
}

#[test]
fn clients_that_have_chosen_are_not_sent_away_for_others() {
    if !may_open(2300) {
        return println!("skipped: fewer than 2300 files may be open");
    }
    let running = start();
    let path = running.path();
    let mut chosen: Vec<Raw> = (0..1000).map(|_| Raw::with(&path, "", false)).collect();
    let _slow: Vec<Slow> = (0..200).map(|_| Slow::connect(&path)).collect();
    for raw in &mut chosen {
        assert_eq!(raw.ask(command::READ, 0, 0, 512).error, 0);
    }
}

#[test]
fn one_deadline_holds_for_a_whole_negotiation() {
    let exports = vec![named("", RamDevice::new(SIZE), Access::Write)];
    let patience = Duration::from_millis(500);
    let running = Running::with(exports, 4, |server| server.with_patience(patience));
    let begun = Instant::now();
    let mut slow = Slow::connect(&running.path());
    let mut chosen = Raw::with(&running.path(), "", true);
    // It is never silent for long, and would not have said all before it is too late.
    while !slow.is_over() {
        assert!(begun.elapsed() < 6 * patience);
        std::thread::sleep(patience / 4);
        slow.say();
    }
    assert!(slow.said < Slow::SPEECH.len());
    assert!(begun.elapsed() >= patience);
    assert_eq!(chosen.write(0, 0, b"was in time"), 0);
}

/// A client of the server at `port` that comes from `address`.
fn from(address: [u8; 4], port: u16) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let stream = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&stream, &SocketAddr::from((address, 0))).unwrap();
    connect(&stream, &SocketAddr::from(([127, 0, 0, 1], port))).unwrap();
    stream.into()
}

#[test]
fn an_address_cannot_take_all_places() {
    if !may_open(1300) {
        return println!("skipped: fewer than 1300 files may be open");
    }
    let exports = vec![named("", RamDevice::new(SIZE), Access::Write)];
    let place = Place::parse(":0".as_ref()).unwrap();
    let server = Server::listen(place, exports, 1).unwrap();
    let end = server.end();
    let Place::Tcp(address) = server.place() else {
        unreachable!("it listens on TCP");
    };
    let chosen = |from: TcpStream| {
        let mut from = from;
        from.write_all(&3_u32.to_be_bytes()).ok()?;
        let export_name = super::raw::option_bytes(wire::option::EXPORT_NAME, &[]);
        from.write_all(&export_name).ok()?;
        let read = wire::Request {
            flags: 0,
            command: command::READ,
            cookie: 1,
            offset: 0,
            length: 512,
        };
        from.write_all(&read.bytes()).ok()?;
        // The greeting, the size and the flags, and what was read.
        from.read_exact(&mut [0; 18 + 10 + wire::SIMPLE_BYTES + 512])
            .ok()?;
        Some(from)
    };
    std::thread::scope(|scope| {
        scope.spawn(|| server.run().unwrap());
        let all = (0..600).map(|_| chosen(from([127, 0, 0, 2], address.port())));
        let let_in: Vec<_> = all.flatten().collect();
        let another = chosen(from([127, 0, 0, 3], address.port()));
        end.now();
        assert_eq!(let_in.len(), 256);
        assert!(another.is_some());
    });
}

/// A client that has its answer has chosen: it is not sent away just because the server has not
/// noted that yet.
#[test]
fn who_was_answered_counts() {
    let running = start();
    let mut chosen = Vec::new();
    for count in 1..=500 {
        chosen.push(Raw::with(&running.path(), "", count % 2 == 0));
        assert_eq!(running.end.users(), count);
    }
}
