//! Connections that are cut while the server lives: nbdkit's memory, which would
//! not survive its server.

use crate::killed::{model, opened};
use crate::sandbox::{Kind, MIB, create, given, sandbox};
use block::{BlockDevice, layer::Slice};
use serve::nbd::{NbdDevice, Uri};
use std::io;
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testkit::Sandbox;

/// Passes on what comes to the socket `door` to the socket `back`; its
/// connections.
fn proxy(sandbox: &Sandbox) -> Arc<Mutex<Vec<UnixStream>>> {
    let open = Arc::new(Mutex::new(Vec::new()));
    let listener = UnixListener::bind(sandbox.path("door")).unwrap();
    let (own, back) = (Arc::clone(&open), sandbox.path("back"));
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = UnixStream::connect(&back) else {
                continue;
            };
            for (from, to) in [(&client, &server), (&server, &client)] {
                let mut from = from.try_clone().unwrap();
                let mut to = to.try_clone().unwrap();
                own.lock().unwrap().push(from.try_clone().unwrap());
                std::thread::spawn(move || {
                    let _ = io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Both);
                });
            }
        }
    });
    open
}

/// Cuts connections under load; `false` if nbdkit itself has crashed, and with it its
/// memory: 1.32 does, one time in ten, where connections break off.
fn cut_under_load(cuts: u64) -> bool {
    let sandbox = sandbox();
    let mut back = Kind::NbdkitMemory.start(&sandbox);
    let open = proxy(&sandbox);
    let place = format!("nbd+unix:///?socket={}", sandbox.path("door").display());
    create(&sandbox, &place);
    let device = NbdDevice::open(&Uri::parse(place.as_ref()).unwrap()).unwrap();
    // Whoever waits for a server that has crashed is left behind.
    let device: &'static NbdDevice = Box::leak(Box::new(device));
    let plain = Slice::new(opened(device), block::ByteRange::new(0, 2 * MIB)).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let load = std::thread::spawn({
        let over = Arc::clone(&over);
        move || {
            let mut rounds = 0;
            while !over.load(Ordering::SeqCst) {
                rounds += 1;
                model(rounds).run(&plain);
            }
            plain.flush().unwrap();
            rounds
        }
    });
    let mut cut = 0;
    for round in 0..cuts {
        std::thread::sleep(Duration::from_millis(20 + round * 37 % 80));
        assert!(!load.is_finished(), "the load has failed");
        let mut open = open.lock().unwrap();
        // All of them, or one while the others go on.
        let number = if round % 2 == 0 { open.len() } else { 1 };
        let first = open.len().saturating_sub(number);
        for stream in open.drain(first..) {
            let _ = stream.shutdown(Shutdown::Both);
            cut += 1;
        }
    }
    over.store(true, Ordering::SeqCst);
    while !load.is_finished() {
        if back.0.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let rounds = load.join().unwrap();
    println!("{cuts} cuts of {cut} connections, {rounds} rounds of the load");
    true
}

#[test]
fn connections_that_are_cut_under_load_are_made_anew() {
    if !Kind::NbdkitMemory.is_here() {
        return;
    }
    let cuts = given("NBD_KILLS", 10);
    if !(0..5).any(|_| cut_under_load(cuts)) {
        println!("skipped: nbdkit crashed five times when connections were cut");
    }
}
