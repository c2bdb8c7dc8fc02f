//! Clients that send too much, too little or nothing at all.

use super::Ui;
use super::hostile::assert_idle;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use testkit::status;

#[test]
fn bodies_are_bounded() {
    let ui = Ui::start();
    let origin = format!("http://{}", ui.pages.address);
    let head = |length: &str| {
        let first = ui.pages.behind_secret("POST /start");
        let host = &ui.pages.address;
        format!(
            "{first} HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nContent-Length: {length}\r\n\r\n"
        )
    };
    // It is refused by its length alone; who still sends may not hear that.
    let begun = Instant::now();
    let answer = ui.pages.answer(head("100000000").as_bytes());
    assert!((400..500).contains(&status(&answer)), "{answer}");
    assert!(begun.elapsed() < Duration::from_secs(20));
    let mut stream = ui.pages.connect();
    let mut body = head("100000000").into_bytes();
    body.resize(body.len() + (8 << 20), b'a');
    let _ = stream.write_all(&body);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(matches!(status(&answer), 0 | 400..500), "{answer}");

    for lines in [
        "Content-Length: -1\r\n",
        "Content-Length: 1e9\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Content-Length: 3\r\nContent-Length: 4\r\n",
        "Transfer-Encoding: chunked\r\n",
    ] {
        let lines = format!("Origin: {origin}\r\n{lines}");
        let (status, answer) = ui
            .pages
            .sent("POST /start", &lines, "3\r\nat=\r\n0\r\n\r\n");
        assert!((400..500).contains(&status), "{lines}: {answer}");
    }
    // A body that never comes keeps nobody waiting, and is given up.
    let mut waiting: Vec<TcpStream> = Vec::new();
    for _ in 0..20 {
        let mut stream = ui.pages.connect();
        stream.write_all(head("10").as_bytes()).unwrap();
        waiting.push(stream);
    }
    let begun = Instant::now();
    ui.pages.get("/");
    assert!(begun.elapsed() < Duration::from_secs(20));
    let mut answer = String::new();
    let _ = waiting[0].read_to_string(&mut answer);
    assert!(matches!(status(&answer), 0 | 400..500), "{answer}");
    assert!(kib(&ui) < 200 << 10, "{} KiB", kib(&ui));
    assert_idle(&ui);
}

/// The most memory that the server had, in KiB.
fn kib(ui: &Ui) -> u64 {
    let about = std::fs::read_to_string(format!("/proc/{}/status", ui.pages.running.0.id()));
    let about = about.unwrap();
    let peak = about.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap()
}

/// More clients than there are places wait outside, without a thread.
#[test]
fn connections_are_bounded() {
    let ui = Ui::start();
    let tasks = format!("/proc/{}/task", ui.pages.running.0.id());
    let threads = || std::fs::read_dir(&tasks).unwrap().count();
    let before = threads();
    let crowd: Vec<TcpStream> = (0..350).map(|_| ui.pages.connect()).collect();
    let begun = Instant::now();
    let mut most = 0;
    while begun.elapsed() < Duration::from_secs(2) {
        most = most.max(threads() - before);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(most, 256);
    drop(crowd);
    ui.pages.get("/");
}

#[test]
fn idle_connections_keep_nobody_out() {
    let ui = Ui::start();
    let half = ui.pages.behind_secret("GET /");
    let mut crowd: Vec<TcpStream> = Vec::new();
    for number in 0..256 {
        let mut stream = ui.pages.connect();
        if number % 2 == 1 {
            stream.write_all(half.as_bytes()).unwrap();
        }
        crowd.push(stream);
    }
    let begun = Instant::now();
    for page in ["/", "/runs", "/volumes"] {
        ui.pages.get(page);
    }
    assert!(
        begun.elapsed() < Duration::from_secs(30),
        "{:?}",
        begun.elapsed()
    );
    drop(crowd);
    ui.pages.get("/");
    let (code, errors) = ui.pages.end();
    assert_eq!((code, errors.as_str()), (Some(0), ""));
}

/// Another user of this machine, without the secret, connects as fast as it can.
#[cfg(target_os = "linux")]
#[test]
fn another_user_keeps_nobody_out() {
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65534;
    if !rustix::process::geteuid().is_root() {
        println!("skipped: another user: only root can be one");
        return;
    }
    let ui = Ui::start();
    let port = ui.pages.address.rsplit_once(':').unwrap().1.to_owned();
    let flood = format!(
        "while :; do for n in {{10..900}}; do eval \"exec $n<>/dev/tcp/127.0.0.1/{port}\"; done; done"
    );
    let mut crowd = std::process::Command::new("bash")
        .args(["-c", &flood])
        .stderr(std::process::Stdio::null())
        .uid(NOBODY)
        .gid(NOBODY)
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(1));
    let mut times = Vec::new();
    for page in ["/", "/runs", "/volumes"] {
        let begun = Instant::now();
        ui.pages.get(page);
        times.push(begun.elapsed());
    }
    crowd.kill().unwrap();
    crowd.wait().unwrap();
    // Each silent client would have kept a place for five seconds.
    assert!(
        times.iter().all(|it| *it < Duration::from_secs(3)),
        "{times:?}"
    );
    let (code, errors) = ui.pages.end();
    assert_eq!((code, errors.as_str()), (Some(0), ""));
}
