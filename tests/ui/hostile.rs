//! What everybody but the user's own browser gets: nothing.

use super::{PASSPHRASE, PLAN, Ui, create, encoded, ids, sandbox};
use testkit::status;

/// The lines of a form's head.
fn form(origin: Option<&str>, body: &str) -> String {
    let origin = origin.map_or(String::new(), |origin| format!("Origin: {origin}\r\n"));
    format!(
        "{origin}Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n",
        body.len()
    )
}

/// Sends a form as the server's own page would.
pub fn sent(ui: &Ui, page: &str, body: &str) -> (u16, String) {
    let origin = format!("http://{}", ui.pages.address);
    let lines = form(Some(&origin), body);
    ui.pages.sent(&format!("POST /{page}"), &lines, body)
}

/// Nothing was begun.
#[track_caller]
pub fn assert_idle(ui: &Ui) {
    let (status, answer) = ui.pages.asked("GET /watch?job=1", "");
    assert!((400..500).contains(&status), "{answer}");
    assert_eq!(ids(&ui.sandbox), Vec::<String>::new());
}

/// What a form of [`PLAN`] in the server's directory sends.
fn order(ui: &Ui) -> String {
    format!("at={}&what=plan&plan={PLAN}", encoded(ui, ""))
}

#[test]
fn other_names_and_other_sites_get_nothing() {
    let ui = Ui::start();
    let address = &ui.pages.address;
    let port = address.rsplit(':').next().unwrap();
    for (host, more, wanted) in [
        (address.clone(), "", 200),
        (format!("localhost:{port}"), "", 200),
        // Names that an attacker's own name server leads here (DNS rebinding).
        (format!("evil.example:{port}"), "", 403),
        (format!("127.0.0.1.evil.example:{port}"), "", 403),
        (format!("localhost.evil.example:{port}"), "", 403),
        (format!("127.0.0.1@evil.example:{port}"), "", 403),
        (format!("0.0.0.0:{port}"), "", 403),
        (format!("[::1]:{port}"), "", 403),
        ("127.0.0.1:1".to_owned(), "", 403),
        ("127.0.0.1".to_owned(), "", 403),
        (String::new(), "", 403),
        (address.clone(), "Host: evil.example\r\n", 403),
        (address.clone(), "Origin: http://evil.example\r\n", 403),
        (address.clone(), "Origin: https://127.0.0.1\r\n", 403),
        (address.clone(), "Origin: null\r\n", 403),
        (address.clone(), "Sec-Fetch-Site: cross-site\r\n", 403),
        (address.clone(), "Sec-Fetch-Site: same-site\r\n", 403),
        (address.clone(), "Sec-Fetch-Site: same-origin\r\n", 200),
        (address.clone(), "Sec-Fetch-Site: none\r\n", 200),
    ] {
        for page in ["", "runs", "volumes", "drives"] {
            let first = ui.pages.behind_secret(&format!("GET /{page}"));
            let request = format!("{first} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n");
            let answer = ui.pages.answer(request.as_bytes());
            assert_eq!(status(&answer), wanted, "{request}{answer}");
            // No page of another site may show ours, read it or load parts of it.
            for line in [
                "frame-ancestors 'none'",
                "nosniff",
                "no-store",
                "same-origin",
            ] {
                assert!(answer.contains(line), "{line}: {answer}");
            }
            assert!(
                !answer.to_lowercase().contains("access-control-allow"),
                "{answer}"
            );
        }
    }
}

#[test]
fn addresses_without_the_token_get_nothing() {
    let ui = Ui::start();
    let secret = &ui.pages.secret;
    assert!(secret.len() >= 32 && secret.bytes().all(|digit| digit.is_ascii_alphanumeric()));
    let mut wrong: String = secret[1..].to_owned();
    wrong.insert(0, if secret.starts_with('0') { '1' } else { '0' });
    let body = order(&ui);
    let origin = format!("http://{}", ui.pages.address);
    for path in [
        "/".to_owned(),
        "//".to_owned(),
        "/volumes".to_owned(),
        "/start".to_owned(),
        format!("/{secret}"),
        format!("/{wrong}/"),
        format!("/{wrong}/start"),
        format!("/{}/", &secret[1..]),
        format!("/{secret}{secret}/start"),
        format!("/x/{secret}/start"),
        format!("/start?{secret}"),
        format!("/{}/start", secret.to_uppercase() + "0"),
    ] {
        for (method, lines, body) in [
            ("GET", String::new(), ""),
            ("POST", form(Some(&origin), &body), body.as_str()),
        ] {
            let host = &ui.pages.address;
            let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n{body}");
            let answer = ui.pages.answer(request.as_bytes());
            assert!(
                matches!(status(&answer), 400 | 403 | 404),
                "{request}{answer}"
            );
            assert!(!answer.contains(secret.as_str()), "{answer}");
        }
    }
    assert_idle(&ui);
}

#[test]
fn no_path_leads_to_a_file() {
    let ui = Ui::start();
    for path in [
        "/../../../../../../etc/passwd",
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/....//....//etc/passwd",
        "/etc/passwd",
        "//etc/passwd",
        "/tiny.toml",
        "/line",
        "/run?id=../../../../etc/passwd",
        "/run?id=%2e%2e%2fline",
        "/page?id=../line",
        "/page?id=%2fetc%2fpasswd",
        "/compare?a=../line&b=../line",
        "/life?device=../../../../etc/passwd",
        "/life?device=%2fetc%2fpasswd&daily=1",
        "/events?job=../1",
        "/watch?job=-1",
        "/watch?job=18446744073709551616",
    ] {
        let (status, answer) = ui.pages.asked(&format!("GET {path}"), "");
        assert!((400..500).contains(&status), "{path}: {answer}");
        assert!(
            !answer.contains("root:") && !answer.contains(PASSPHRASE),
            "{path}: {answer}"
        );
    }
    // A folder's page tells names, and a volume's page what a header says; neither tells contents.
    for page in ["files?at=", "volume?path="] {
        for file in ["line", "tiny.toml", "../../../../../../etc/passwd"] {
            let file = encoded(&ui, file);
            let (_, answer) = ui.pages.asked(&format!("GET /{page}{file}"), "");
            assert!(
                !answer.contains("root:") && !answer.contains(PASSPHRASE),
                "{answer}"
            );
            assert!(!answer.contains("rand-4k-read"), "{answer}");
        }
    }
}

#[test]
fn forms_of_other_sites_do_nothing() {
    let sandbox = sandbox();
    create(&sandbox, "volume.img");
    let ui = Ui::serve(sandbox);
    let volume = encoded(&ui, "volume.img");
    let output = encoded(&ui, "output");
    let on_volume = format!("path={volume}&output={output}&passphrase=x&folder={output}");
    for (page, body) in [
        ("start", order(&ui)),
        ("backup", on_volume.clone()),
        ("export", on_volume.clone()),
        ("mount", on_volume.clone()),
        ("umount", on_volume.clone()),
        ("open", on_volume),
        ("baseline", "id=latest&name=theirs".to_owned()),
        ("stop", "job=1".to_owned()),
        ("pause", "job=1".to_owned()),
    ] {
        let ours = format!("http://{}", ui.pages.address);
        let others = format!(
            "http://evil.example:{}",
            ui.pages.address.rsplit(':').next().unwrap()
        );
        for origin in [
            None,
            Some("null"),
            Some("http://evil.example"),
            Some(&*others),
        ] {
            let lines = form(origin, &body);
            let (status, answer) = ui.pages.sent(&format!("POST /{page}"), &lines, &body);
            assert_eq!(status, 403, "{page} {origin:?}: {answer}");
        }
        let lines = format!("Sec-Fetch-Site: cross-site\r\n{}", form(Some(&ours), &body));
        let (status, answer) = ui.pages.sent(&format!("POST /{page}"), &lines, &body);
        assert_eq!(status, 403, "{page}: {answer}");
        // What changes something is no address that a picture or a link could name.
        let (status, answer) = ui.pages.asked(&format!("GET /{page}?{body}"), "");
        assert!(matches!(status, 404 | 405), "{page}: {answer}");
    }
    for method in ["PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW"] {
        let (status, answer) = ui
            .pages
            .asked(&format!("{method} /start"), "Content-Length: 0\r\n");
        assert!(matches!(status, 400 | 404 | 405), "{method}: {answer}");
    }
    assert!(!ui.sandbox.path("output").exists());
    assert_idle(&ui);
}

#[test]
fn places_that_are_not_offered_are_refused() {
    let ui = Ui::start();
    for at in [
        "",
        "-",
        "--yes",
        "-h",
        "--at=/etc",
        "--store=/tmp",
        "/nowhere/at/all",
        "/proc/self/mem",
        "%00",
        "a%0Ab",
        "%FF",
    ] {
        for what in ["cost", "advise", "crystaldiskmark", "plan"] {
            let body = format!("at={at}&what={what}&plan={PLAN}");
            let (status, answer) = sent(&ui, "start", &body);
            assert!((400..500).contains(&status), "{body}: {answer}");
        }
    }
    for (what, plan) in [
        ("", ""),
        ("plan", ""),
        ("plan", "--yes"),
        ("plan", "tiny.toml"),
        ("plan", "../tiny.toml"),
        ("--help", ""),
        ("doctor", ""),
    ] {
        let body = format!("at={}&what={what}&plan={plan}", encoded(&ui, ""));
        let (status, answer) = sent(&ui, "start", &body);
        assert!((400..500).contains(&status), "{body}: {answer}");
    }
    // A file that holds something: without its name, with another, with the right one elsewhere.
    let file = encoded(&ui, "tiny.toml");
    for confirm in ["", "&confirm=yes", "&confirm=tiny.toml", "&yes=on"] {
        let body = format!("at={file}&what=plan&plan={PLAN}{confirm}");
        let (status, answer) = sent(&ui, "start", &body);
        assert!((400..500).contains(&status), "{body}: {answer}");
    }
    assert_eq!(ui.sandbox.read_text("tiny.toml"), super::TINY);
    assert_idle(&ui);
}

#[test]
fn options_of_volumes_cannot_be_smuggled_in() {
    let sandbox = sandbox();
    create(&sandbox, "volume.img");
    let ui = Ui::serve(sandbox);
    let before = ui.sandbox.read("volume.img");
    let volume = encoded(&ui, "volume.img");
    for value in [
        "--help",
        "-",
        "--output=x",
        "--passphrase-file=line",
        "--header=line",
        "",
    ] {
        for page in ["backup", "export", "mount", "umount", "open"] {
            for body in [
                format!("path={value}&passphrase=x&output=y&folder=z"),
                format!("path={volume}&passphrase=x&output={value}&folder={value}"),
            ] {
                let (_, answer) = sent(&ui, page, &body);
                assert!(!answer.contains(PASSPHRASE), "{page} {body}: {answer}");
                assert!(!answer.contains("Usage:"), "{page} {body}: {answer}");
            }
        }
    }
    assert!(ui.sandbox.read("volume.img") == before);
    // Such a value is the name of a file, and never an option.
    for made in ["x", "y", "z"] {
        assert!(!ui.sandbox.path(made).exists(), "{made}");
    }
}
