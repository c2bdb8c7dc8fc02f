//! What other programs write between the look at a file and the first write to it.

use super::states::file;
use super::{PROGRAM, nothing_wrong, sandbox};
use rustix::fs::OFlags;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt, chown};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use testkit::{CHEAP, Sandbox};

const SIZE: u64 = 24 << 20;
const PRECIOUS: &[u8] = b"precious data of another program";

/// A user who does not see which processes of root's have a file open.
const NOBODY: u32 = 65534;

/// A sandbox with a pipe for a passphrase; nothing, and a word about it, where there can be none.
fn prepared() -> Option<Sandbox> {
    let sandbox = sandbox();
    let made = Command::new("mkfifo").arg(sandbox.path("pipe")).status();
    if !made.is_ok_and(|made| made.success()) {
        println!("skipped: a command that waits for a passphrase: it needs mkfifo");
        return None;
    }
    Some(sandbox)
}

/// Begins `cryptmark volume` with the words of `line`.
fn begin(sandbox: &Sandbox, mut program: Command, line: &str) -> Child {
    program.arg("volume").args(line.split_whitespace());
    sandbox
        .prepare(program)
        .env("XDG_RUNTIME_DIR", sandbox.directory())
        .env("XDG_STATE_HOME", sandbox.directory())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Lets a command have its passphrase by the pipe, and does something before, when it has
/// been asked for.
fn answer(sandbox: &Sandbox, child: Child, passphrase: &str, before: impl FnOnce()) -> Output {
    let mut opened = File::options();
    opened
        .write(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32);
    let begun = Instant::now();
    let mut pipe = loop {
        // There is an error until it is read.
        match opened.open(sandbox.path("pipe")) {
            Ok(pipe) => break pipe,
            Err(error) => assert!(begun.elapsed() < Duration::from_secs(60), "{error}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    before();
    // It may have ended.
    let _ = pipe.write_all(passphrase.as_bytes());
    drop(pipe);
    child.wait_with_output().unwrap()
}

fn write_precious(sandbox: &Sandbox, name: &str) {
    let file = File::options()
        .write(true)
        .open(sandbox.path(name))
        .unwrap();
    file.write_all_at(PRECIOUS, 4096).unwrap();
}

fn is_precious(sandbox: &Sandbox, name: &str) -> bool {
    fs::read(sandbox.path(name)).is_ok_and(|all| all[4096..].starts_with(PRECIOUS))
}

#[test]
fn what_is_written_while_the_passphrase_is_asked_for_stays() {
    let Some(sandbox) = prepared() else { return };
    let secret = "--passphrase-file pipe";
    let cheap = "--veracrypt-pim 1 --quick --hash sha512";
    let mut wrong = Vec::new();
    for (line, written) in [
        (format!("create x {secret} {CHEAP}"), "x"),
        (
            format!("create x --type luks1 {secret} --pbkdf-force-iterations 1000"),
            "x",
        ),
        (format!("create x --type veracrypt {secret} {cheap}"), "x"),
        (format!("create x --type tcrypt --quick {secret}"), "x"),
        (format!("create data --header x {secret} {CHEAP}"), "x"),
        // Files that were made for the volume.
        (format!("create new --size 24M {secret} {CHEAP}"), "new"),
        (
            format!("create new --size 24M --yes {secret} {CHEAP}"),
            "new",
        ),
    ] {
        file(&sandbox, "x", SIZE, &[]);
        file(&sandbox, "data", SIZE, &[]);
        let _ = fs::remove_file(sandbox.path("new"));
        let child = begin(&sandbox, Command::new(PROGRAM), &line);
        let passphrase = "a passphrase of many letters\n";
        let ended = answer(&sandbox, child, passphrase, || {
            write_precious(&sandbox, written)
        });
        let said = String::from_utf8_lossy(&ended.stderr);
        let asked = said.contains(&format!("{written} holds data from byte 4096 on"));
        if ended.status.code() != Some(4) || !asked {
            wrong.push(format!("{line}: {:?}: {said}", ended.status.code()));
        }
        if !is_precious(&sandbox, written) {
            wrong.push(format!("{line}: the data are gone"));
        }
    }
    nothing_wrong(&wrong);
}

/// A program that has locked a file writes to it, and lets go.
#[test]
fn what_is_written_while_a_command_waits_stays() {
    let sandbox = sandbox();
    sandbox.volume(&format!(
        "create small --size 17M --passphrase-file pass {CHEAP}"
    ));
    let mut wrong = Vec::new();
    for line in [
        format!("create x --passphrase-file pass {CHEAP}"),
        "create x --type plain".to_owned(),
        "export small --passphrase-file pass -o x".to_owned(),
    ] {
        file(&sandbox, "x", SIZE, &[]);
        let file = File::options().write(true).open(sandbox.path("x")).unwrap();
        file.lock().unwrap();
        let child = begin(&sandbox, Command::new(PROGRAM), &line);
        std::thread::sleep(Duration::from_secs(1));
        write_precious(&sandbox, "x");
        file.unlock().unwrap();
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        if ended.status.code() != Some(4) || !is_precious(&sandbox, "x") {
            wrong.push(format!("{line}: {:?}: {said}", ended.status.code()));
        }
    }
    nothing_wrong(&wrong);
}

/// The second one of a user who may not know who holds the file waits for the first.
#[test]
fn of_two_volumes_made_in_one_new_file_the_first_stays() {
    let Some(sandbox) = prepared() else { return };
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: commands of two users: they need root");
    }
    for name in ["", "pipe", "pass", "other"] {
        chown(sandbox.path(name), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let as_nobody = || {
        let mut program = Command::new("setpriv");
        program.args(["--reuid=65534", "--regid=65534", "--clear-groups", PROGRAM]);
        program
    };
    let create = format!("create f --size 24M {CHEAP} --passphrase-file");
    let first = begin(&sandbox, as_nobody(), &format!("{create} pipe"));
    let mut second = None;
    let first = answer(&sandbox, first, "a passphrase of many letters\n", || {
        second = Some(begin(&sandbox, as_nobody(), &format!("{create} other")));
        // It has found a blank file by then.
        std::thread::sleep(Duration::from_secs(1));
    });
    let second = second.unwrap().wait_with_output().unwrap();
    let codes = [&first, &second].map(|ended| ended.status.code());
    assert_eq!(codes, [Some(0), Some(4)], "{first:?}\n{second:?}");
    sandbox.volume("open f --passphrase-file pass");
}
