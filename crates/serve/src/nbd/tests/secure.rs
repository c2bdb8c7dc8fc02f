//! How a negotiation goes over to TLS, with a security that changes nothing.

use super::raw::{Raw, go, name_of, option_bytes};
use super::{Running, named};
use crate::Access;
use crate::nbd::secure::{Security, Session};
use crate::nbd::transport::Wire;
use crate::nbd::wire::{self, command, option, reply};
use block::RamDevice;
use std::io::{self, IoSlice, Write};

struct Transparent {
    required: bool,
}

impl Security for Transparent {
    fn is_required(&self) -> bool {
        self.required
    }

    fn begin(&self, _: &dyn Wire) -> io::Result<Box<dyn Session>> {
        Ok(Box::new(Through))
    }
}

struct Through;

impl Session for Through {
    fn receive(&self, below: &dyn Wire, into: &mut [u8]) -> io::Result<usize> {
        below.receive(into)
    }

    fn send(&self, below: &dyn Wire, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        below.send(parts)
    }

    fn flush(&self, below: &dyn Wire) -> io::Result<()> {
        below.flush()
    }

    fn has_received(&self) -> bool {
        false
    }
}

fn running(required: bool) -> Running {
    let exports = vec![named("one", RamDevice::new(1 << 20), Access::Write)];
    Running::with(exports, 2, |server| {
        server.secured_by(Transparent { required })
    })
}

#[test]
fn without_tls_nothing_is_had_where_it_is_required() {
    let running = running(true);
    let mut raw = Raw::greet(&running.path(), 3);
    let code = |raw: &mut Raw, kind, data: &[u8]| raw.option(kind, data).pop().unwrap().0;
    let one = go("one");
    for (kind, data) in [
        (option::LIST, &[][..]),
        (option::STRUCTURED_REPLY, &[]),
        (option::INFO, &one),
        (option::GO, &one),
        (option::SET_META_CONTEXT, &one),
        (77, b"x"),
    ] {
        assert_eq!(code(&mut raw, kind, data), reply::ERR_TLS_REQD, "{kind}");
    }
    assert_eq!(code(&mut raw, option::STARTTLS, b"x"), reply::ERR_INVALID);
    assert_eq!(code(&mut raw, option::STARTTLS, &[]), reply::ACK);
    assert_eq!(code(&mut raw, option::STARTTLS, &[]), reply::ERR_INVALID);
    assert_eq!(code(&mut raw, option::GO, &one), reply::ACK);
    assert_eq!(raw.ask(command::READ, 0, 0, 512).data, [0; 512]);

    let mut old = Raw::greet(&running.path(), 3);
    let name = option_bytes(option::EXPORT_NAME, b"one");
    old.stream.write_all(&name).unwrap();
    assert!(old.is_over());
    let mut leaves = Raw::greet(&running.path(), 3);
    assert_eq!(code(&mut leaves, option::ABORT, &[]), reply::ACK);
    assert!(leaves.is_over());
}

#[test]
fn what_was_said_before_tls_counts_no_more() {
    let running = running(false);
    let mut raw = Raw::greet(&running.path(), 3);
    let mut code = |kind, data: &[u8]| raw.option(kind, data).pop().unwrap().0;
    assert_eq!(code(option::STRUCTURED_REPLY, &[]), reply::ACK);
    assert_eq!(code(option::STARTTLS, &[]), reply::ACK);
    let mut context = name_of("one");
    context.extend_from_slice(&1_u32.to_be_bytes());
    context.extend_from_slice(&name_of(wire::BASE_ALLOCATION));
    let forgotten = code(option::SET_META_CONTEXT, &context);
    assert_eq!(forgotten, reply::ERR_INVALID);
    assert_eq!(code(option::GO, &go("one")), reply::ACK);
    // The replies are simple ones.
    assert_eq!(raw.ask(command::READ, 0, 0, 512).data, [0; 512]);
}

/// An attacker on the way may put messages before the greeting of TLS, and the client would not
/// know.
#[test]
fn what_comes_with_the_wish_for_tls_ends_it() {
    for required in [false, true] {
        let running = running(required);
        let mut raw = Raw::greet(&running.path(), 3);
        let mut both = option_bytes(option::STARTTLS, &[]);
        both.extend_from_slice(&option_bytes(option::GO, &go("one")));
        raw.stream.write_all(&both).unwrap();
        let mut answer = [0; 20];
        io::Read::read_exact(&mut raw.stream, &mut answer).unwrap();
        assert!(raw.is_over());
    }
}
