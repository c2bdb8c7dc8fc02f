//! What others do to the file of a volume while a reencryption asks or works.

use crate::kit::{By, SIDE, Task, Volume};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::Write;
use testkit::{CHEAP, have};

/// The file that is looked at before the passphrase is the one that is encrypted after it.
#[test]
fn nobody_encrypts_what_another_is_about_to() {
    let sandbox = Volume::new(Task::Encrypt);
    let encrypt = format!("reencrypt v --encrypt {CHEAP}");
    let (child, mut pipe) = sandbox.asking(&encrypt);
    sandbox.refused("v", 4, &encrypt);
    pipe.write_all(b"a passphrase").unwrap();
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    sandbox.ours("reencrypt v --decrypt");
    assert!(sandbox.read("v") == sandbox.plain);
}

#[test]
fn a_file_that_grows_while_the_passphrase_is_typed_is_not_encrypted() {
    for (length, more) in [(3 << 20, 1 << 20), (1000, 100_000), (100_000, 1)] {
        for header in ["", "--header h"] {
            let sandbox = Volume::empty();
            sandbox.write("v", &sandbox.plain[..length]);
            let (child, mut pipe) =
                sandbox.asking(&format!("reencrypt v --encrypt {header} {CHEAP}"));
            let mut file = File::options()
                .append(true)
                .open(sandbox.path("v"))
                .unwrap();
            file.write_all(&sandbox.plain[length..][..more]).unwrap();
            pipe.write_all(b"a passphrase").unwrap();
            drop(pipe);
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(4), "{length} {header}: {said}");
            let there = sandbox.read("v");
            assert!(there == sandbox.plain[..length + more], "{length} {header}");
            for name in ["h", SIDE] {
                assert!(!sandbox.path(name).exists(), "{length} {header}: {name}");
            }
        }
    }
}

/// Its room is cut off at the end, and no other file's.
#[test]
fn the_file_that_has_the_name_at_the_end_may_be_another() {
    let stopped = (0..20).find_map(|_| {
        let sandbox = Volume::new(Task::Encrypt);
        let mut child = sandbox.begun(Task::Encrypt, By::Us, "");
        // Until it works on the file that it has opened.
        while !sandbox.metadata().contains("in-reencryption") {
            if child.try_wait().unwrap().is_some() {
                return None;
            }
        }
        kill_process(Pid::from_child(&child), Signal::STOP).unwrap();
        if sandbox.is_begun() {
            return Some((sandbox, child));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        None
    });
    let (sandbox, child) = stopped.expect("it can be stopped before its end");
    fs::rename(sandbox.path("v"), sandbox.path("renamed")).unwrap();
    sandbox.make(70 << 20);
    sandbox.ours(&format!("create v {CHEAP} --yes"));
    let other = sandbox.read("v");
    kill_process(Pid::from_child(&child), Signal::CONT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(sandbox.read("v") == other, "{said}");
    fs::rename(sandbox.path("renamed"), sandbox.path("v")).unwrap();
    sandbox.holds("renamed");
}

/// What is written behind a file that is being encrypted is not cut off with its room.
#[test]
fn what_is_added_at_the_end_stays() {
    let stopped = (0..20).find_map(|_| {
        let sandbox = Volume::new(Task::Encrypt);
        let mut child = sandbox.begun(Task::Encrypt, By::Us, "");
        let running = child.try_wait().unwrap().is_none();
        let mut file = File::options()
            .append(true)
            .open(sandbox.path("v"))
            .unwrap();
        file.write_all(b"added").unwrap();
        drop(file);
        let output = child.wait_with_output().unwrap();
        let there = sandbox.read("v");
        assert!(there.ends_with(b"added"), "{output:?}");
        // The room may have been cut off before.
        (running && !output.status.success()).then_some((sandbox, output))
    });
    let (sandbox, output) = stopped.expect("it can be added to before the end");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("made longer meanwhile"), "{said}");
    sandbox.holds("added to");
}

/// Appends to the file.
fn append(sandbox: &Volume, bytes: &[u8]) {
    let file = File::options().append(true).open(sandbox.path("v"));
    file.unwrap().write_all(bytes).unwrap();
}

/// What is added to a file while its encryption is stopped is encrypted, or said to be not.
#[test]
fn a_file_that_grows_while_its_encryption_is_stopped() {
    if !have(&["strace"]) {
        return;
    }
    // More than is worked on at a time.
    let mut whole = Volume::empty();
    let more = whole.plain[..8 << 20].to_vec();
    whole.plain.extend(more);
    fs::write(whole.path("v"), &whole.plain).unwrap();
    let encrypt = format!("reencrypt v --encrypt --header h --sector-size 4096 {CHEAP}");
    let (mut stops, mut said_so) = (0, 0);
    for at in 5..60 {
        let sandbox = whole.copy();
        if !sandbox.ours_killed_at(&encrypt, "fdatasync", at) {
            break;
        }
        if !sandbox.is_begun() || sandbox.is_plain() {
            continue;
        }
        stops += 1;
        for length in [100, 1000, 4096] {
            let mut longer = sandbox.copy();
            let added = vec![9; length];
            append(&longer, &added);
            let when = format!("{at}: {length} bytes more");
            longer.holds(&when);
            let (code, said) = longer.ends("reencrypt v --encrypt --header h");
            match code {
                Some(0) => longer.plain.extend(&added),
                code => {
                    assert_eq!(code, Some(4), "{when}: {said}");
                    assert!(said.contains("made longer meanwhile"), "{when}: {said}");
                    let there = fs::read(longer.path("v")).unwrap();
                    assert!(there.ends_with(&added), "{when}");
                    said_so += 1;
                }
            }
            longer.holds(&when);
        }
        // While the passphrase is typed.
        let (child, mut pipe) = sandbox.asking("reencrypt v --encrypt --header h");
        append(&sandbox, &[9; 4096]);
        pipe.write_all(b"a passphrase").unwrap();
        drop(pipe);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{at}: {output:?}");
        sandbox.holds("with something behind it");
    }
    assert!(stops > 1 && said_so > 1, "{stops} {said_so}");
}
