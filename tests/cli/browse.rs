//! `report --serve`: what a browser on this machine gets, and what everybody
//! else does not.

use super::sandbox;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use testkit::{Pages, Sandbox, status};

/// A server of a sandbox's store.
fn serve(sandbox: &Sandbox) -> Pages {
    Pages::start(sandbox.cryptmark("report --serve"))
}

/// The ids of the stored runs, the oldest first.
fn runs(sandbox: &Sandbox) -> Vec<String> {
    let listed = sandbox.ok(&["list"]);
    let ids = listed.lines().filter_map(|line| line.split(' ').next());
    ids.map(str::to_owned).collect()
}

#[test]
fn runs_are_listed_searched_shown_and_compared() {
    let sandbox = sandbox();
    for _ in 0..2 {
        sandbox.ok(&["run", "tiny.toml", "--at", "at", "--no-progress"]);
    }
    let ids = runs(&sandbox);
    sandbox.ok(&["baseline", "set", "before", &ids[0]]);
    let server = serve(&sandbox);

    let list = server.get("/");
    for id in &ids {
        assert!(list.contains(&format!("\"run?id={id}")), "{list}");
    }
    let newer = list.find(&ids[1]).unwrap();
    assert!(newer < list.find(&ids[0]).unwrap(), "the newest is first");
    let found = server.get("/?q=BEFORE+tiny");
    assert!(found.contains(&ids[0]) && !found.contains(&ids[1]));
    let none = server.get("/?q=%3Cb%3E%22");
    assert!(none.contains("None of the 2 stored runs"));
    assert!(none.contains("&lt;b&gt;&quot;") && !none.contains("<b>"));

    let page = server.get(&format!("/run?id={}", ids[1]));
    assert!(page.contains("rand-4k-read") && page.contains("All figures"));
    assert!(page.contains(&ids[1]) && page.contains("All runs"));
    let (_, body) = page.split_once("\r\n\r\n").unwrap();
    // The same request without its page.
    let (status, head) = server.asked(&format!("HEAD /run?id={}", ids[1]), "");
    assert_eq!(status, 200);
    assert!(head.contains(&format!("content-length: {}\r\n", body.len())));
    assert!(head.ends_with("\r\n\r\n"), "{head}");

    let compared = server.get(&format!("/compare?a=before&b={}", ids[1]));
    assert!(compared.contains("B against A") && compared.contains("seq-64k-write"));
    assert!(compared.contains("Of 4 cells in both runs"), "{compared}");

    // Where the store lies is nobody's business, wherever one looks.
    let folder = sandbox.directory().to_str().unwrap();
    let (_, nothing) = server.asked("GET /run?id=nothing", "");
    for page in [list, found, page, compared, nothing] {
        assert!(!page.contains(folder), "{page}");
        assert!(page.contains("frame-ancestors 'none'"));
        assert!(page.contains("default-src 'none'"));
    }
    assert_eq!(server.end(), (Some(0), String::new()));
}

/// Reports are meant to be shown, as far as the umask lets new files be.
#[test]
fn reports_follow_the_umask() {
    use std::os::unix::fs::MetadataExt;

    let sandbox = sandbox();
    sandbox.ok(&["run", "tiny.toml", "--at", "at", "--no-progress"]);
    for (umask, mode) in [("022", 0o644), ("027", 0o640), ("077", 0o600)] {
        let report = format!("report-{umask}.html");
        let line = format!("umask {umask}; exec \"$0\" report latest -o {report}");
        sandbox.tool("sh", &["-c", &line, super::PROGRAM]);
        let found = std::fs::metadata(sandbox.path(&report)).unwrap().mode();
        assert_eq!(found & 0o777, mode, "{umask}");
    }
}

#[test]
fn other_users_get_nothing_without_the_secret() {
    let sandbox = sandbox();
    sandbox.ok(&["run", "tiny.toml", "--at", "at", "--no-progress"]);
    let id = runs(&sandbox).remove(0);
    let server = serve(&sandbox);
    let secret = &server.secret;
    assert!(secret.len() == 32 && secret.bytes().all(|digit| digit.is_ascii_hexdigit()));
    let mut wrong = secret.clone().into_bytes();
    wrong[31] = if wrong[31] == b'0' { b'1' } else { b'0' };
    let wrong = String::from_utf8(wrong).unwrap();
    for path in [
        "/".to_owned(),
        "//".to_owned(),
        format!("/run?id={id}"),
        format!("/{secret}"),
        format!("/{wrong}/"),
        format!("/{}/", &secret[..31]),
        format!("/{secret}0/"),
        format!("/x/{secret}/"),
        format!("/?secret={secret}"),
    ] {
        let host = &server.address;
        let answer =
            server.answer(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
        assert_eq!(status(&answer), 403, "{path}: {answer}");
        assert!(
            !answer.contains(&id) && !answer.contains(secret.as_str()),
            "{answer}"
        );
    }
    // Pages lead to each other without it, and tell nobody where they are.
    let page = server.get(&format!("/run?id={id}"));
    assert!(!page.contains(secret.as_str()) && page.contains("referrer-policy: same-origin"));
    // Another server has another one.
    assert_ne!(*secret, serve(&sandbox).secret);
}

#[test]
fn hostile_requests_get_nothing() {
    let sandbox = sandbox();
    let server = serve(&sandbox);
    assert!(server.get("/").contains("No runs are stored yet"));
    let port = server.address.split(':').next_back().unwrap();
    for (first, host, more, wanted) in [
        ("GET /", format!("localhost:{port}"), "", 200),
        ("GET /", format!("LOCALHOST:{port}"), "", 200),
        // A name that leads here: what a page of another host could use.
        ("GET /", format!("evil.example:{port}"), "", 403),
        ("GET /", "evil.example".to_owned(), "", 403),
        ("GET /", "127.0.0.1".to_owned(), "", 403),
        ("GET /", format!("127.0.0.1:{port}.evil.example"), "", 403),
        ("GET /", format!("127.0.0.1:{port}, evil.example"), "", 403),
        ("GET /", String::new(), "", 403),
        ("GET http://evil.example/", server.address.clone(), "", 403),
        (
            "GET /",
            server.address.clone(),
            "Host: evil.example\r\n",
            403,
        ),
        // Pages of others that are open in the same browser.
        (
            "GET /",
            server.address.clone(),
            "Origin: http://evil.example\r\n",
            403,
        ),
        ("GET /", server.address.clone(), "Origin: null\r\n", 403),
        (
            "GET /",
            server.address.clone(),
            "Sec-Fetch-Site: cross-site\r\n",
            403,
        ),
        (
            "GET /",
            server.address.clone(),
            "Sec-Fetch-Site: same-site\r\n",
            403,
        ),
        (
            "GET /",
            server.address.clone(),
            "Sec-Fetch-Site: same-origin\r\n",
            200,
        ),
        (
            "POST /",
            server.address.clone(),
            "Content-Length: 0\r\n",
            405,
        ),
        (
            "PUT /x",
            server.address.clone(),
            "Content-Length: 0\r\n",
            405,
        ),
        ("DELETE /run?id=latest", server.address.clone(), "", 405),
        ("OPTIONS /", server.address.clone(), "", 405),
        ("BREW /", server.address.clone(), "", 405),
        // No file is here, wherever it is looked for.
        (
            "GET /../../../../etc/passwd",
            server.address.clone(),
            "",
            404,
        ),
        (
            "GET /%2e%2e/%2e%2e/etc/passwd",
            server.address.clone(),
            "",
            404,
        ),
        ("GET /tiny.toml", server.address.clone(), "", 404),
        ("GET /data/cryptmark/runs", server.address.clone(), "", 404),
        (
            "GET /run?id=../../etc/passwd",
            server.address.clone(),
            "",
            404,
        ),
        ("GET /run?id=%00%ff'%22;--", server.address.clone(), "", 404),
        ("GET /compare", server.address.clone(), "", 404),
    ] {
        let first = server.behind_secret(first);
        let request = format!("{first} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n");
        let answer = server.answer(request.as_bytes());
        assert_eq!(status(&answer), wanted, "{request}{answer}");
        assert!(!answer.contains("root:"), "{answer}");
    }
    // What is no request at all.
    let long = "x".repeat(1 << 20);
    for (request, wanted) in [
        (format!("GET /{long} HTTP/1.1\r\n\r\n"), [414, 431]),
        (
            format!(
                "GET / HTTP/1.1\r\nHost: {}\r\nX: {long}\r\n\r\n",
                server.address
            ),
            [431, 431],
        ),
        (
            format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(2000)),
            [431, 431],
        ),
        ("GET / HTTP/1.0\r\n\r\n".to_owned(), [403, 403]),
        ("\0\u{1}\u{2}\r\n\r\n".to_owned(), [400, 400]),
        ("GET /\r\n\r\n".to_owned(), [400, 400]),
    ] {
        let answer = server.answer(request.as_bytes());
        // Who is still speaking may not hear the answer.
        let status = status(&answer);
        let deaf = status == 0 && request.len() > 1 << 16;
        assert!(wanted.contains(&status) || deaf, "{status}: {answer}");
    }
    assert!(server.get("/").contains("No runs are stored yet"));
    assert_eq!(server.end(), (Some(0), String::new()));
}

#[test]
fn slow_clients_keep_nobody_waiting() {
    let sandbox = sandbox();
    let server = serve(&sandbox);
    // Some say nothing, some half a request, some never listen to the answer.
    let first = server.behind_secret("GET /");
    let half = format!("{first} HTTP/1.1\r\nHost: {}\r\n", server.address);
    let whole = format!("{half}\r\n");
    let mut crowd: Vec<TcpStream> = Vec::new();
    for number in 0..200 {
        let mut stream = server.connect();
        let said = ["", half.as_str(), whole.as_str()][number % 3];
        stream.write_all(said.as_bytes()).unwrap();
        crowd.push(stream);
    }
    for _ in 0..5 {
        assert!(server.get("/").contains("No runs are stored yet"));
    }
    let about = std::fs::read_to_string(format!("/proc/{}/status", server.running.0.id())).unwrap();
    let peak = about.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: u64 = peak
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    assert!(kib < 100 << 10, "{kib} KiB");
    // Who never said anything is sent away in the end.
    crowd.truncate(1);
    let left = crowd[0].read(&mut [0; 1]);
    assert!(
        matches!(left, Ok(0)) || left.is_err_and(|error| error.kind() != ErrorKind::WouldBlock)
    );
    assert_eq!(server.end(), (Some(0), String::new()));
}

#[test]
fn a_port_that_is_taken_is_told() {
    let sandbox = sandbox();
    let server = serve(&sandbox);
    let port = server.address.split(':').next_back().unwrap();
    let said = sandbox.fails(1, &["report", "--serve", "--port", port]);
    assert!(said.contains("cannot serve on port"), "{said}");
    for wrong in [
        &["report"][..],
        &["report", "--serve", "latest"],
        &["report", "latest", "--port", "1"],
    ] {
        let output = sandbox.run(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
}
