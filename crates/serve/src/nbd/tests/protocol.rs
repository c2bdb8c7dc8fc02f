//! The rules of the protocol, item by item.

use super::raw::{Raw, go, name_of};
use super::{Running, named};
use crate::nbd::wire::{self, be16, be32, be64, command, errno, flag, option, reply, transmission};
use crate::nbd::{ClientError, NbdDevice, Server};
use crate::{Access, Export, Extent};
use block::layer::{Effect, Fault, Rule, Trigger, Trim, TrimPolicy};
use block::{
    AlignedBuffer, BlockDevice, BlockError, ByteRange, Operation, OperationKind, QueueOptions,
    RamDevice, Request, Wait,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

fn two() -> Running {
    Running::start(
        vec![
            named("first", RamDevice::new(1 << 20), Access::Write),
            named("second", RamDevice::new(2 << 20), Access::Read),
        ],
        1,
    )
}

#[test]
fn exports_are_listed_and_described() {
    let running = two();
    let mut raw = Raw::greet(&running.path(), 3);
    let names: Vec<Vec<u8>> = raw
        .option(option::LIST, &[])
        .into_iter()
        .filter(|(code, _)| *code == reply::SERVER)
        .map(|(_, data)| data)
        .collect();
    assert_eq!(names, [name_of("first"), name_of("second")]);

    let replies = raw.option(option::INFO, &go("second"));
    assert_eq!(replies.len(), 5);
    assert_eq!(be64(&replies[0].1, 2), 2 << 20);
    let flags = be16(&replies[0].1, 10);
    assert_eq!(flags & transmission::READ_ONLY, transmission::READ_ONLY);
    assert_eq!(flags & transmission::SEND_TRIM, 0);
    assert_eq!(&replies[1].1[2..], b"second");
    assert_eq!(&replies[2].1[2..], b"the export second");
    let sizes: Vec<u32> = (0..3).map(|n| be32(&replies[3].1, 2 + 4 * n)).collect();
    assert_eq!(sizes, [1, 4096, 32 << 20]);

    // After INFO the client may still choose another.
    let replies = raw.option(option::GO, &go("nothing"));
    assert_eq!(replies[0].0, reply::ERR_UNKNOWN);
    let replies = raw.option(option::GO, &go(""));
    assert_eq!(be64(&replies[0].1, 2), 1 << 20);
    assert_eq!(raw.ask(command::READ, 0, 0, 512).data, [0; 512]);
}

#[test]
fn the_old_way_to_begin_works() {
    use std::io::{Read, Write};
    let running = two();
    for (flags, padding) in [(3, 0), (1, 124)] {
        let mut raw = Raw::greet(&running.path(), flags);
        let option = super::raw::option_bytes(option::EXPORT_NAME, b"first");
        raw.stream.write_all(&option).unwrap();
        let mut answer = vec![1; 10 + padding];
        raw.stream.read_exact(&mut answer).unwrap();
        assert_eq!(be64(&answer, 0), 1 << 20);
        assert!(answer[10..].iter().all(|&byte| byte == 0));
        assert_eq!(raw.write(0, 7, b"seven"), 0);
        assert_eq!(raw.ask(command::READ, 0, 7, 5).data, b"seven");
    }
    let mut raw = Raw::greet(&running.path(), 3);
    let option = super::raw::option_bytes(option::EXPORT_NAME, b"third");
    raw.stream.write_all(&option).unwrap();
    assert!(raw.is_over());
}

#[test]
fn options_that_are_wrong_are_answered_so() {
    let running = two();
    let mut raw = Raw::greet(&running.path(), 3);
    let mut code = |kind, data: &[u8]| raw.option(kind, data).pop().unwrap().0;
    assert_eq!(code(4, b"peek"), reply::ERR_UNSUP);
    assert_eq!(code(11, &[]), reply::ERR_UNSUP);
    assert_eq!(code(option::STARTTLS, &[]), reply::ERR_POLICY);
    assert_eq!(code(option::LIST, b"x"), reply::ERR_INVALID);
    assert_eq!(code(option::STRUCTURED_REPLY, b"x"), reply::ERR_INVALID);
    for malformed in [
        &[][..],
        &[0, 0, 0],
        &[0, 0, 0, 9, 1],
        &[0, 0, 0, 0, 0, 1],
        &[255; 8],
    ] {
        assert_eq!(code(option::INFO, malformed), reply::ERR_INVALID);
        assert_eq!(code(option::GO, malformed), reply::ERR_INVALID);
    }
    let mut context = name_of("first");
    context.extend_from_slice(&1_u32.to_be_bytes());
    context.extend_from_slice(&name_of(wire::BASE_ALLOCATION));
    assert_eq!(code(option::SET_META_CONTEXT, &context), reply::ERR_INVALID);
    assert_eq!(code(option::STRUCTURED_REPLY, &[]), reply::ACK);
    assert_eq!(
        code(option::SET_META_CONTEXT, &context[..9]),
        reply::ERR_INVALID
    );
    context.push(0);
    assert_eq!(code(option::SET_META_CONTEXT, &context), reply::ERR_INVALID);
    assert_eq!(code(option::ABORT, &[]), reply::ACK);
    assert!(raw.is_over());
}

#[test]
fn contexts_are_listed_chosen_and_forgotten() {
    let running = two();
    let mut raw = Raw::greet(&running.path(), 3);
    raw.structured = true;
    raw.option(option::STRUCTURED_REPLY, &[]);
    let ask = |name: &str, queries: &[&str]| {
        let mut data = name_of(name);
        data.extend_from_slice(&(queries.len() as u32).to_be_bytes());
        for query in queries {
            data.extend_from_slice(&name_of(query));
        }
        data
    };
    for (queries, found) in [(&[][..], 2), (&["base:"], 2), (&["qemu:"], 1)] {
        let replies = raw.option(option::LIST_META_CONTEXT, &ask("first", queries));
        assert_eq!(replies.len(), found, "{queries:?}");
    }
    let replies = raw.option(
        option::SET_META_CONTEXT,
        &ask("first", &["x:y", "base:allocation"]),
    );
    assert_eq!(replies.len(), 2);
    // Another choice replaces the first, and it was for another export.
    let replies = raw.option(
        option::SET_META_CONTEXT,
        &ask("second", &["base:allocation"]),
    );
    assert_eq!(replies.len(), 2);
    raw.option(option::GO, &go("first"));
    let answer = raw.ask(command::BLOCK_STATUS, 0, 0, 512);
    assert_eq!(answer.error, errno::EINVAL);
}

#[test]
fn what_is_stored_is_told() {
    let ram = Arc::new(RamDevice::new(1 << 20));
    let hole = ByteRange::new(4096, 8192);
    let export = Export::new(ram, Access::Write).with_allocation(move |range| {
        let end = range.offset + range.length;
        let edges = [range.offset, hole.offset, hole.offset + hole.length, end];
        let mut extents = Vec::new();
        for (index, pair) in edges.windows(2).enumerate() {
            let (start, stop) = (pair[0].max(range.offset), pair[1].min(end));
            if start < stop {
                extents.push(Extent {
                    range: ByteRange::new(start, stop - start),
                    hole: index == 1,
                });
            }
        }
        Ok(extents)
    });
    let mut named = named("", RamDevice::new(512), Access::Write);
    named.export = Arc::new(export);
    let running = Running::start(vec![named], 1);
    let mut raw = Raw::with(&running.path(), "", true);
    let answer = raw.ask(command::BLOCK_STATUS, 0, 0, 1 << 20);
    let rest = (1 << 20) - 12288;
    assert_eq!(answer.extents, [(4096, 0), (8192, 3), (rest, 0)]);
    let answer = raw.ask(command::BLOCK_STATUS, flag::REQ_ONE, 5000, 100);
    assert_eq!(answer.extents, [(100, 3)]);
    assert_eq!(
        raw.ask(command::BLOCK_STATUS, 0, 1 << 20, 1).error,
        errno::EINVAL
    );
    assert_eq!(raw.ask(command::BLOCK_STATUS, 0, 0, 0).error, errno::EINVAL);
}

#[test]
fn requests_that_are_wrong_are_answered_so() {
    let running = two();
    for structured in [false, true] {
        let mut raw = Raw::with(&running.path(), "first", structured);
        let mut error =
            |command, flags, offset, length| raw.ask(command, flags, offset, length).error;
        let size = 1 << 20;
        assert_eq!(error(command::READ, 0, size, 1), errno::EINVAL);
        assert_eq!(error(command::READ, 0, u64::MAX, 2), errno::EINVAL);
        assert_eq!(error(command::READ, 0, 0, u32::MAX), errno::EINVAL);
        assert_eq!(error(command::READ, 1 << 15, 0, 512), errno::EINVAL);
        assert_eq!(error(command::TRIM, 0, size, 512), errno::EINVAL);
        assert_eq!(error(command::WRITE_ZEROES, 0, size - 1, 2), errno::ENOSPC);
        assert_eq!(error(command::WRITE_ZEROES, flag::DF, 0, 2), errno::EINVAL);
        assert_eq!(error(command::CACHE, 0, size, 512), errno::EINVAL);
        assert_eq!(error(8, 0, 0, 0), errno::EINVAL);
        assert_eq!(error(u16::MAX, 0, 0, 512), errno::EINVAL);
        assert_eq!(error(command::CACHE, 0, 0, 1 << 20), 0);
        assert_eq!(raw.write(0, size - 3, b"four"), errno::ENOSPC);
        assert_eq!(raw.write(0, u64::MAX - 1, b"four"), errno::ENOSPC);
        assert_eq!(raw.write(1 << 9, 0, b"four"), errno::EINVAL);
        assert_eq!(raw.write(0, 0, &[]), 0);
        assert_eq!(raw.ask(command::READ, 0, 0, 0).error, 0);
        // Nothing of that was written, and the connection is in step.
        assert!(
            raw.ask(command::READ, 0, 0, size as u32)
                .data
                .iter()
                .all(|&byte| byte == 0)
        );
        raw.send(command::DISC, 0, 0, 0, &[]);
        assert!(raw.is_over());
    }
    let mut raw = Raw::with(&running.path(), "first", true);
    let whole = raw.ask(command::READ, flag::DF, 0, 1 << 20);
    assert_eq!(whole.error, errno::EOVERFLOW);
    assert_eq!(raw.ask(command::READ, flag::DF, 0, 64 << 10).error, 0);
}

#[test]
fn a_read_only_export_stays_as_it_is() {
    let running = two();
    let mut raw = Raw::with(&running.path(), "second", true);
    assert_eq!(raw.write(0, 0, &vec![1; 300_000]), errno::EPERM);
    for command in [command::TRIM, command::WRITE_ZEROES] {
        assert_eq!(raw.ask(command, 0, 0, 512).error, errno::EPERM);
    }
    assert_eq!(raw.ask(command::READ, 0, 0, 512).data, [0; 512]);
}

#[test]
fn zeros_that_have_to_be_fast_are_refused() {
    for policy in TrimPolicy::ALL {
        let device = Trim::new(RamDevice::new(1 << 20), policy);
        let running = Running::start(vec![named("", device, Access::Write)], 1);
        let mut raw = Raw::with(&running.path(), "", true);
        raw.write(0, 0, &[1; 4096]);
        let answer = raw.ask(command::WRITE_ZEROES, flag::FAST_ZERO, 0, 4096);
        assert_eq!(answer.error, errno::ENOTSUP, "{policy}");
        let both = flag::FAST_ZERO | flag::NO_HOLE;
        let answer = raw.ask(command::WRITE_ZEROES, both, 0, 4096);
        assert_eq!(answer.error, errno::ENOTSUP);
        if policy == TrimPolicy::Block {
            let answer = raw.ask(command::TRIM, 0, 0, 4096);
            assert_eq!(answer.error, errno::ENOTSUP);
        }
    }
}

#[test]
fn failures_below_reach_the_client_and_are_told_once() {
    let told = Arc::new(AtomicU32::new(0));
    let heard = Arc::clone(&told);
    let rules = [
        (OperationKind::Write, 28),
        (OperationKind::Read, 5),
        (OperationKind::Flush, 19),
    ]
    .map(|(kind, errno)| Rule::on(kind, Trigger::From(3), Effect::Fail(errno)));
    let device = Fault::new(RamDevice::new(4 << 20), rules);
    let export = Export::new(Arc::new(device), Access::Write).with_listener(move |_| {
        heard.fetch_add(1, Ordering::Relaxed);
    });
    let mut named = named("", RamDevice::new(512), Access::Write);
    named.export = Arc::new(export);
    let running = Running::start(vec![named], 1);
    let mut raw = Raw::with(&running.path(), "", true);
    let mut errors = Vec::new();
    for _ in 0..4 {
        errors.push(raw.write(0, 0, &[1; 512]));
        errors.push(raw.ask(command::READ, 0, 0, 512).error);
        errors.push(raw.ask(command::FLUSH, 0, 0, 0).error);
    }
    assert_eq!(errors[..6], [0; 6]);
    let failed = [errno::ENOSPC, errno::EIO, errno::EIO];
    assert_eq!(errors[6..9], failed);
    assert_eq!(errors[9..], failed);
    assert_eq!(told.load(Ordering::Relaxed), 3);
    // A failure in the midst of a long read, too.
    assert_eq!(raw.ask(command::READ, 0, 0, 4 << 20).error, errno::EIO);
    let mut simple = Raw::with(&running.path(), "", false);
    assert_eq!(simple.ask(command::READ, 0, 0, 4 << 20).error, errno::EIO);
}

/// The system says once only that something could not be written.
#[test]
fn a_failed_flush_is_told_to_all_clients_for_ever() {
    for keeps in [false, true] {
        let rule = Rule::on(OperationKind::Flush, Trigger::Nth(2), Effect::Fail(28));
        let device = Arc::new(Fault::new(RamDevice::new(1 << 20), [rule]));
        let export = Export::new(device, Access::Write);
        let export = Arc::new(match keeps {
            true => export.keeping_lost_writes(),
            false => export,
        });
        let mut named = named("", RamDevice::new(512), Access::Write);
        named.export = Arc::clone(&export);
        let mut running = Running::start(vec![named], 1);
        let mut first = Raw::with(&running.path(), "", true);
        assert_eq!(first.write(flag::FUA, 0, &[1; 512]), 0);
        assert!(export.failures().is_none());
        assert_eq!(first.ask(command::FLUSH, 0, 0, 0).error, errno::ENOSPC);
        let later = if keeps { 0 } else { errno::ENOSPC };
        let mut second = Raw::with(&running.path(), "", true);
        for raw in [&mut first, &mut second] {
            assert_eq!(raw.write(0, 512, &[2; 512]), 0);
            assert_eq!(raw.ask(command::FLUSH, 0, 0, 0).error, later);
            assert_eq!(raw.write(flag::FUA, 0, &[1; 512]), later);
            assert_eq!(raw.ask(command::READ, 0, 512, 512).data, [2; 512]);
        }
        running.stop();
        let last = export.flush();
        assert_eq!(matches!(last, Err(BlockError::Lost { .. })), !keeps);
        let failures = export.failures().unwrap();
        assert_eq!(failures.count, 1);
        assert_eq!(failures.last, "injected fault (errno 28)");
    }
}

#[test]
fn a_forced_write_is_flushed_before_it_is_answered() {
    let trace = Arc::new(block::layer::Trace::new(RamDevice::new(1 << 20)));
    let running = Running::start(vec![named("", Arc::clone(&trace), Access::Write)], 1);
    let mut raw = Raw::with(&running.path(), "", true);
    let mut done = |flags: u16| {
        trace.take();
        raw.write(flags, 0, &[1; 4096]);
        let entries = trace.take();
        entries
            .iter()
            .map(|entry| entry.operation)
            .collect::<Vec<_>>()
    };
    assert_eq!(done(0), [OperationKind::Write]);
    assert_eq!(
        done(flag::FUA),
        [OperationKind::Write, OperationKind::Flush]
    );
}

#[test]
fn a_server_that_ends_takes_its_socket_away_and_no_other() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("socket");
    let place = crate::nbd::Place::Unix(path.clone());
    let exports = || vec![named("", RamDevice::new(1 << 20), Access::Write)];
    let server = Server::listen(place.clone(), exports(), 1).unwrap();
    server.end().now();
    server.run().unwrap();
    std::fs::remove_file(&path).unwrap();
    let another = Server::listen(place, exports(), 1).unwrap();
    drop(server);
    assert!(path.exists());
    drop(another);
    assert!(!path.exists());
}

#[test]
fn a_socket_of_another_server_is_left_alone_and_one_of_a_dead_server_is_not() {
    let running = two();
    let exports = || vec![named("", RamDevice::new(1 << 20), Access::Write)];
    let refused = Server::listen(running.place.clone(), exports(), 1);
    assert!(matches!(refused, Err(crate::nbd::ServeError::InUse { .. })));

    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("socket");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let place = crate::nbd::Place::Unix(path.clone());
    drop(Server::listen(place.clone(), exports(), 1).unwrap());
    std::fs::write(&path, b"a letter").unwrap();
    let refused = Server::listen(place, exports(), 1);
    assert!(matches!(
        refused,
        Err(crate::nbd::ServeError::NoSocket { .. })
    ));
    assert_eq!(std::fs::read(&path).unwrap(), b"a letter");
}

#[test]
fn clients_learn_why_there_is_no_export() {
    let running = two();
    let refused = NbdDevice::connect(&running.place, "third").err();
    assert!(matches!(
        refused,
        Some(ClientError::NoExport { name, .. }) if name == "third"
    ));
    let client = NbdDevice::connect(&running.place, "second").unwrap();
    assert!(client.write_at(0, &[0; 512]).is_err());
    let place = crate::nbd::Place::Unix("/nonexistent/socket".into());
    let absent = NbdDevice::connect(&place, "").err();
    assert!(matches!(absent, Some(ClientError::Connect { .. })));
}

/// A server that dies is named, and not the engine that speaks to it.
#[test]
fn clients_learn_that_the_server_has_gone_away() {
    let mut running = two();
    let client = NbdDevice::connect(&running.place, "second").unwrap();
    let mut queue = client.queue(QueueOptions::new(2)).unwrap();
    let address = running.place.to_string();
    running.stop();
    let is_gone = |error: &BlockError| matches!(error, BlockError::ServerGone { address: at, .. } if *at == address);
    for number in 0..3 {
        let buffer = AlignedBuffer::new(512);
        queue.submit(Request::new(Operation::Read, 0, buffer, number));
        let error = queue.reap(Wait::Yes).unwrap().result.unwrap_err();
        assert!(is_gone(&error), "{error}");
    }
    let again = client.flush().unwrap_err();
    assert!(is_gone(&again), "{again}");
    assert!(again.to_string().ends_with("is lost") && !again.remedy().contains("io_uring"));
}
