//! Reencryptions that one program begins and the other finishes, killed at random: after each
//! kill all of the data can be read, and no byte differs at the end.
//!
//! `CRYPTMARK_KILLS=50 cargo test-all --test reencryption` kills so often each way.

mod beside;
mod halfway;
mod headers;
mod kit;
mod meanwhile;
mod rules;
mod strangers;

use kit::{By, Task, Volume};

/// Kills of one test, unless the environment says otherwise.
const KILLS: u32 = 2;

fn kills() -> u32 {
    let asked = std::env::var("CRYPTMARK_KILLS").ok();
    asked.map_or(KILLS, |asked| asked.parse().unwrap())
}

/// The data are all there after a kill, and when the program has finished what has begun.
fn go_on(sandbox: &Volume, task: Task, by: By, begun: bool, when: &str) {
    if task.decrypts() && sandbox.is_said_to_be_decrypted(when) {
        // The old keyslots are wiped before the header says that nothing is left to do.
        assert!(sandbox.is_plain(), "{when}");
        return;
    }
    if begun {
        sandbox.holds(when);
        sandbox.finish(task, by);
    }
    sandbox.ended(task, begun);
}

/// Begins the task by one program, kills it, reads the data, lets the other one finish it, and
/// reads the data again.
fn both_ways(task: Task, resiliences: &[&str]) {
    if !testkit::have(&["cryptsetup"]) {
        return;
    }
    let mut seen = kit::Seen::default();
    for _ in 0..kills() {
        for by in [By::Us, By::Them] {
            // They have a choice of how a window survives; we have none.
            let choices = if by == By::Them {
                resiliences
            } else {
                &["journal"][..]
            };
            for resilience in choices {
                let when = format!("{task:?} by {by:?}, {resilience}, killed");
                let in_time = kit::delays().any(|within| {
                    let sandbox = Volume::new(task);
                    let begun = sandbox.begin_and_kill(task, by, resilience, within);
                    seen.count(by, &sandbox, begun);
                    go_on(&sandbox, task, by.other(), begun, &when);
                    begun
                });
                assert!(in_time, "{when}: never before its end");
            }
        }
    }
    println!("{task:?}: {seen:?}");
}

#[test]
fn another_key() {
    both_ways(Task::Reencrypt, &["checksum", "journal"]);
}

#[test]
fn encryption_with_a_detached_header() {
    both_ways(Task::EncryptDetached, &["checksum", "journal"]);
}

#[test]
fn decryption_with_a_detached_header() {
    both_ways(Task::DecryptDetached, &["checksum", "journal"]);
}

#[test]
fn encryption_that_makes_room() {
    both_ways(Task::Encrypt, &["datashift"]);
}

#[test]
fn decryption_over_the_header() {
    both_ways(Task::Decrypt, &["checksum", "journal"]);
}

/// Without protection a volume survives only what it is told of beforehand.
#[test]
fn a_reencryption_without_protection_that_was_stopped() {
    if !testkit::have(&["cryptsetup"]) {
        return;
    }
    for _ in 0..kills() {
        let in_time = kit::delays().any(|within| {
            let sandbox = Volume::new(Task::Reencrypt);
            let begun = sandbox.begin_and_interrupt(Task::Reencrypt, "none", within);
            if begun {
                sandbox.holds("stopped");
                sandbox.finish(Task::Reencrypt, By::Us);
            }
            sandbox.ended(Task::Reencrypt, begun);
            begun
        });
        assert!(in_time, "never stopped before its end");
    }
}

/// After a kill at any write of theirs the data are all there, and we finish it; also where they
/// do not, because the old keyslots are gone already.
fn at_every_write(task: Task, resilience: &str) {
    if !testkit::have(&["cryptsetup", "strace"]) {
        return;
    }
    let untouched = Volume::new(task);
    if task == Task::Reencrypt {
        // Each is removed by itself at the end.
        untouched.add_keyslot();
    }
    let (mut writes, mut changed) = (0, 0);
    // A write of the header is six.
    let step = if kills() == KILLS { 3 } else { 1 };
    for at in (1..).step_by(step) {
        let sandbox = untouched.copy();
        if !sandbox.begin_and_kill_at(task, resilience, at) {
            break;
        }
        let begun = sandbox.is_begun();
        let when = format!("{task:?}, {resilience}, killed at write {at}");
        if begun || !sandbox.is_as(&untouched) {
            go_on(&sandbox, task, By::Us, begun, &when);
            changed += 1;
        }
        writes = at;
    }
    println!("{task:?}, {resilience}: {writes} writes, {changed} volumes changed");
    assert!(writes > 30, "{task:?}: only {writes} writes");
    assert!(changed > 3, "{task:?}: only {changed} volumes changed");
}

#[test]
fn another_key_killed_at_every_write() {
    at_every_write(Task::Reencrypt, "checksum");
    at_every_write(Task::Reencrypt, "journal");
}

#[test]
fn encryption_killed_at_every_write() {
    at_every_write(Task::EncryptDetached, "checksum");
    at_every_write(Task::Encrypt, "datashift");
}

#[test]
fn decryption_killed_at_every_write() {
    at_every_write(Task::DecryptDetached, "checksum");
    at_every_write(Task::Decrypt, "journal");
}
