//! A fault is planted in the program: each thread tries to reach foreign files, ports, programs and
//! processes before it is confined, and after. Only the first may succeed.

use super::*;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// The attempts, in the order in which they are told.
const ALL: &str = "read write make list connect bind run signal abstract";

struct Outside {
    sandbox: Sandbox,
    _tcp: TcpListener,
    _abstract: UnixListener,
}

fn outside() -> Outside {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let sandbox = sandbox()
        .with_directory("other")
        .with_file("other/foreign", "secret");
    // No other sandbox has this name.
    let name = sandbox.path("abstract").display().to_string();
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let planted = format!(
        "{} {} {} {name}",
        sandbox.path("other/foreign").display(),
        tcp.local_addr().unwrap(),
        std::process::id()
    );
    create(&sandbox, "x.img", 18);
    Outside {
        sandbox: sandbox.with_variable("CRYPTMARK_PLANTED", planted),
        _tcp: tcp,
        _abstract: UnixListener::bind_addr(&address).unwrap(),
    }
}

/// Checks what the threads have told, of which there are so many. The file can be made once.
fn check(said: &str, threads: usize) {
    let lines = |when: &str| -> Vec<String> {
        let start = format!("planted {when}:");
        let lines = said.lines().filter_map(|line| line.strip_prefix(&start));
        lines.map(|line| line.trim().to_owned()).collect()
    };
    let (before, after) = (lines("before"), lines("after"));
    assert_eq!((before.len(), after.len()), (threads, threads), "{said}");
    assert_eq!(before[0], ALL, "{said}");
    assert!(after.iter().all(String::is_empty), "{said}");
}

/// Whether this kernel confines all that is tried.
fn is_confined(sandbox: &Sandbox) -> bool {
    let all = sandbox.ok("doctor").contains("confine themselves");
    if !all {
        println!("skipped: Landlock of Linux 6.12: this kernel is older");
    }
    all
}

/// The threads of a process, and how many of them got `no_new_privs` as they were confined.
fn threads(process: u32) -> (usize, usize) {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let states = tasks.map(|task| fs::read_to_string(task.unwrap().path().join("status")).unwrap());
    let states: Vec<String> = states.collect();
    let confined = states
        .iter()
        .filter(|state| state.contains("NoNewPrivs:\t1"));
    (states.len(), confined.count())
}

#[test]
fn a_server_reaches_nothing_else() {
    let Outside { sandbox, .. } = &outside();
    if !is_confined(sandbox) {
        return;
    }
    let serving = served(sandbox, "x.img", "");
    let client = serving.client();
    client.write_at(0, &[7; 4096]).unwrap();
    client.flush().unwrap();
    let (all, confined) = threads(serving.program.0.id());
    assert!(all > 3 && all == confined, "{confined} of {all} threads");
    drop(client);
    // The thread of signals, and the one that starts all others.
    check(&serving.end(), 2);
    assert!(service_of(sandbox, "x.img").is_none());
}

#[test]
fn a_mount_reaches_nothing_else() {
    let outside = outside();
    let sandbox = outside.sandbox.with_directory("d");
    if !Path::new("/dev/fuse").exists() {
        return println!("skipped: /dev/fuse: this machine has none");
    }
    if !is_confined(&sandbox) {
        return;
    }
    let mut command = sandbox.cryptmark("volume mount x.img d --as file --passphrase-file line");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut program = Running::start(&mut command);
    let mut told = BufReader::new(program.0.stdout.take().unwrap());
    told.read_line(&mut String::new()).unwrap();
    fs::read(sandbox.path("d/volume")).unwrap();
    let (all, confined) = threads(program.0.id());
    assert!(all > 3 && all == confined, "{confined} of {all} threads");
    program.signal("-TERM");
    assert_eq!(program.0.wait().unwrap().code(), Some(0));
    let mut said = String::new();
    program
        .0
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    // The thread of signals, that of FUSE, and the one that waits.
    check(&said, 3);
    assert!(!sandbox.path("d/volume").exists() && service_of(&sandbox, "x.img").is_none());
}

#[test]
fn exports_and_searches_reach_nothing_else() {
    let Outside { sandbox, .. } = &outside();
    if !is_confined(sandbox) {
        return;
    }
    let said = |arguments: &str| {
        let output = sandbox.run(arguments);
        let _ = fs::remove_file(sandbox.path("other/foreign.before"));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        said
    };
    let export = "volume export x.img --passphrase-file line -o";
    check(&said(&format!("{export} new")), 2);
    // The same over a file that is there.
    check(&said(&format!("{export} new --yes")), 2);
    assert_eq!(fs::metadata(sandbox.path("new")).unwrap().len(), 2 * MIB);
    check(&said(&format!("{export} -")), 2);
    check(&said("volume find x.img"), 1);
}

/// What serves an image of QEMU is confined, too.
#[test]
fn programs_for_an_image_reach_nothing_else() {
    if !have(&["qemu-img", "qemu-nbd"]) {
        return;
    }
    let Outside { sandbox, .. } = &outside();
    if !is_confined(sandbox) {
        return;
    }
    sandbox.tool("qemu-img", "convert -O qcow2 x.img x.qcow2");
    let serving = served(sandbox, "x.qcow2", "");
    let server = fs::read_to_string(format!(
        "/proc/{0}/task/{0}/children",
        serving.program.0.id()
    ));
    let server = server.unwrap();
    let named =
        |process: &&str| fs::read(format!("/proc/{process}/comm")).unwrap() == b"qemu-nbd\n";
    let server = server.split_whitespace().find(named).unwrap();
    let (all, confined) = threads(server.parse().unwrap());
    assert_eq!(all, confined);
    serving.client().read_at(0, &mut [0; 4096]).unwrap();
    serving.end();
}
