//! How a server ends, or goes on: two that unmount, clients that cannot be taken, a full output.

use crate::{PROGRAM, create, sandbox, service_of};
use block::BlockDevice;
use serve::nbd::{NbdDevice, Place};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Stdio};
use std::time::Duration;
use testkit::{Sandbox, have, wait_until};

/// Nobody means to cut anybody off.
#[test]
fn two_that_unmount_at_once_end_it_once() {
    let sandbox = sandbox();
    create(&sandbox, "x.img", 20);
    for round in 0..10 {
        sandbox.ok("volume serve x.img --passphrase-file line --nbd disk.sock --daemon");
        let umount = |_| {
            let mut command = sandbox.cryptmark("volume umount x.img");
            command.stderr(Stdio::piped()).spawn().unwrap()
        };
        for child in [0, 1].map(umount) {
            let ended = child.wait_with_output().unwrap();
            // One may have found it ended.
            let code = ended.status.code();
            assert!(matches!(code, Some(0 | 2)), "round {round}: {ended:?}");
        }
        assert!(service_of(&sandbox, "x.img").is_none());
    }
}

/// The server of a file that was removed has the only copy of its data.
#[test]
fn a_server_of_a_removed_file_is_not_ended_unasked() {
    let sandbox = sandbox();
    create(&sandbox, "x.img", 20);
    sandbox.ok("volume serve x.img --passphrase-file line --nbd disk.sock --daemon");
    let image = sandbox.path("x.img").canonicalize().unwrap();
    fs::remove_file(&image).unwrap();
    let ended = sandbox
        .cryptmark("volume umount disk.sock")
        .output()
        .unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(4), "{said}");
    assert!(said.contains("has the only copy of its data"), "{said}");
    let served = || {
        let all = sandbox.json("volume status --json");
        let mut all = all.as_array().unwrap().iter();
        all.find(|service| service["image"] == image.to_str().unwrap())
            .cloned()
    };
    let service = served().expect("it is served");
    assert_eq!(service["alive"], true);
    // As the remedy says.
    let pid = service["pid"].to_string();
    assert!(said.contains(&format!("`kill {pid}`")), "{said}");
    sandbox.command("kill", &pid).status().unwrap();
    wait_until("the server does not end", || {
        served().is_none_or(|service| service["alive"] != true)
    });
}

/// A server whose system call `accept4` fails as `error` says when it is called the second
/// time, and its trace; nothing where that cannot be done.
fn with_failing_accept(sandbox: &Sandbox, error: &str) -> Option<(Child, ChildStderr)> {
    if !have(&["strace"]) {
        return None;
    }
    let arguments = format!(
        "-f -o trace -e trace=accept4 -e inject=accept4:error={error}:when=2 {PROGRAM} volume \
         serve x.img --passphrase-file line --nbd disk.sock"
    );
    let mut child = sandbox
        .command("strace", &arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut told = BufReader::new(child.stdout.take().unwrap());
    told.read_line(&mut line).unwrap();
    let mut stderr = child.stderr.take().unwrap();
    if !line.contains("is served") {
        let mut said = String::new();
        stderr.read_to_string(&mut said).unwrap();
        child.wait().unwrap();
        println!("skipped: failing system calls: {said}");
        return None;
    }
    Some((child, stderr))
}

#[test]
fn a_client_that_cannot_be_taken_ends_no_server() {
    let sandbox = sandbox();
    create(&sandbox, "x.img", 20);
    for error in ["ENOBUFS", "EHOSTUNREACH", "EMFILE"] {
        let Some((mut server, _)) = with_failing_accept(&sandbox, error) else {
            return;
        };
        let client = || NbdDevice::connect(&Place::Unix(sandbox.path("disk.sock")), "").unwrap();
        let first = client();
        first.write_at(0, &[1; 512]).unwrap();
        let second = client();
        second.read_at(0, &mut [0; 512]).unwrap();
        first.flush().unwrap();
        drop((first, second));
        sandbox.ok("volume umount x.img");
        assert_eq!(server.wait().unwrap().code(), Some(0), "{error}");
    }
}

#[test]
fn a_server_that_cannot_go_on_says_so() {
    let sandbox = sandbox();
    create(&sandbox, "x.img", 20);
    let Some((mut server, mut stderr)) = with_failing_accept(&sandbox, "EBADF") else {
        return;
    };
    for _ in 0..2 {
        let _ = std::os::unix::net::UnixStream::connect(sandbox.path("disk.sock"));
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(server.wait().unwrap().code(), Some(1));
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    assert!(
        said.contains("error: the server cannot continue: Bad file descriptor"),
        "{said}"
    );
}

/// What was begun is said to be begun, though nobody can print where it is.
#[test]
fn a_full_output_does_not_hide_a_server() {
    let sandbox = sandbox();
    create(&sandbox, "x.img", 20);
    let full = fs::OpenOptions::new().write(true).open("/dev/full");
    let arguments = "volume serve x.img --passphrase-file line --nbd disk.sock --daemon";
    let ended = sandbox
        .cryptmark(arguments)
        .stdout(full.unwrap())
        .output()
        .unwrap();
    let served = service_of(&sandbox, "x.img").is_some();
    let umount = sandbox.cryptmark("volume umount x.img").output();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{said}");
    assert!(served && said.contains("x.img is served"), "{said}");
    assert!(umount.unwrap().status.success());
}
