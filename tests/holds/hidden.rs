//! Who is in the way, where this user may not look.

use crate::kit::{Format, PROGRAM, Volumes};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::chown;
use std::process::{Command, Output, Stdio};
use testkit::Running;

/// A user who is nobody in particular.
const NOBODY: u32 = 65534;

/// A sandbox whose files are nobody's; nothing, and a word about it, where that cannot be.
fn prepared() -> Option<Volumes> {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: what other users see: it needs root");
        return None;
    }
    let sandbox = Volumes::new(Format::Luks2);
    for name in ["", "image", "pass"] {
        chown(sandbox.path(name), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    Some(sandbox)
}

fn as_nobody(sandbox: &Volumes, arguments: &str) -> Command {
    let user = format!("--reuid={NOBODY} --regid={NOBODY} --clear-groups {PROGRAM} {arguments}");
    let mut command = sandbox.command("setpriv", &user);
    command.env("XDG_RUNTIME_DIR", sandbox.path(""));
    command.env("XDG_STATE_HOME", sandbox.path(""));
    command
}

fn set(sandbox: &Volumes) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = as_nobody(sandbox, "volume header set image --label x")
        .output()
        .unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

/// This program hides from its own user what it has open.
#[test]
fn a_server_of_the_same_user_is_another_process() {
    let Some(sandbox) = prepared() else { return };
    let serve = "volume serve image --nbd s.sock --passphrase-file pass";
    let mut server = as_nobody(&sandbox, serve);
    let mut server = Running::start(server.stdout(Stdio::piped()));
    let mut line = String::new();
    let told = server.0.stdout.take().unwrap();
    BufReader::new(told).read_line(&mut line).unwrap();
    assert!(line.contains("is served"), "{line}");
    let (code, said) = set(&sandbox);
    assert_eq!(code, Some(4), "{said}");
    assert!(
        said.contains("image is in use by another process\n"),
        "{said}"
    );
}

/// Root's processes cannot be looked at, and the kernel's list of locks can.
#[test]
fn a_lock_of_root_has_a_name() {
    let Some(sandbox) = prepared() else { return };
    let mut flock = sandbox.command("flock", "-x image sh -c");
    flock
        .arg("echo locked; exec sleep 60")
        .stdout(Stdio::piped());
    let mut flock = Running(flock.spawn().unwrap());
    let mut line = String::new();
    let told = flock.0.stdout.take().unwrap();
    BufReader::new(told).read_line(&mut line).unwrap();
    assert_eq!(line, "locked\n");
    let (code, said) = set(&sandbox);
    assert_eq!(code, Some(4), "{said}");
    let named = format!("image is in use by flock (process {}", flock.0.id());
    assert!(said.contains(&named), "{said}");
}
