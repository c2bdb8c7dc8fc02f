//! Two arguments that are one thing: standard input and output among them.

use super::{PROGRAM, nothing_wrong, refused, run, sandbox};
use std::fs;
use std::process::Command;
use testkit::{CHEAP, Sandbox};

const V: &str = "v --type veracrypt --hash sha256 --veracrypt-pim 1";

fn prepared() -> Sandbox {
    let sandbox = sandbox();
    sandbox.volume(&format!(
        "create v --size 17M --passphrase-file pass {CHEAP}"
    ));
    sandbox
}

/// `cryptmark volume` by a shell, which redirects.
fn shell(sandbox: &Sandbox, line: &str) -> (Option<i32>, String) {
    let output = Command::new("sh")
        .args(["-c", &format!("\"$0\" volume {line}"), PROGRAM])
        .current_dir(sandbox.directory())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), said)
}

#[test]
fn the_volume_is_not_its_own_other_end_by_a_redirection() {
    let sandbox = prepared();
    sandbox.volume(&format!(
        "create d --size 4M --header v2 --passphrase-file pass {CHEAP}"
    ));
    fs::copy(sandbox.path("v2"), sandbox.path("x")).unwrap();
    let before = ["v", "d", "x"].map(|name| sandbox.read(name));
    for line in [
        "export v --passphrase-file pass -o - 1<>v",
        "export v --passphrase-file pass -o - >>v",
        "export d --header x --passphrase-file pass -o - 1<>x",
        "import d --header x --passphrase-file pass -i - <d",
        "import d --header x --passphrase-file pass -i - --yes <x",
        "import v --passphrase-file pass -i - --yes <v",
    ] {
        let (code, said) = shell(&sandbox, line);
        assert_eq!(code, Some(2), "{line}: {said}");
        assert!(said.contains("is the same as"), "{line}: {said}");
        let after = ["v", "d", "x"].map(|name| sandbox.read(name));
        assert!(after == before, "{line}");
    }
}

#[test]
fn standard_input_is_one_thing_at_a_time() {
    let sandbox = prepared();
    sandbox.write("input", vec![b'i'; 4096]);
    let mut wrong = Vec::new();
    for secret in ["--key-file -", "--volume-key-file -"] {
        let line = format!("import v {secret} -i -");
        wrong.extend(refused(
            &sandbox,
            &line,
            b"some bytes",
            2,
            &["standard input"],
        ));
    }
    nothing_wrong(&wrong);
    // The passphrase is a line, and what follows it is the data.
    let input = b"a passphrase of many letters\nabc";
    let answer = run(&sandbox, "import v --passphrase-file - -i -", input);
    assert_eq!(answer.code, Some(0), "{}", answer.said);
    sandbox.volume("export v --passphrase-file pass -o out");
    assert_eq!(sandbox.read("out")[..3], *b"abc");
}

/// What opens a volume is not what it changes.
#[test]
fn no_volume_is_its_own_key_file() {
    let sandbox = prepared();
    sandbox.write("x", vec![0; 17 << 20]);
    fs::hard_link(sandbox.path("v"), sandbox.path("link")).unwrap();
    for (folder, target) in [("to-come", "../made"), ("there", "../x")] {
        fs::create_dir(sandbox.path(folder)).unwrap();
        fs::copy(sandbox.path("pass"), sandbox.path(folder).join("key")).unwrap();
        std::os::unix::fs::symlink(target, sandbox.path(folder).join("link")).unwrap();
    }
    let mut wrong = Vec::new();
    for line in [
        format!("passwd v --passphrase-file pass --new-key-file v {CHEAP}"),
        format!("passwd v --passphrase-file pass --new-key-file link {CHEAP}"),
        format!("passwd v --passphrase-file pass --new-passphrase-file v {CHEAP}"),
        format!("key add v --passphrase-file pass --new-key-file v {CHEAP}"),
        format!("create x --type luks1 --key-file x --keyfile-size 100 {CHEAP}"),
        format!("create x --passphrase-file x {CHEAP}"),
        format!("create other2 --size 17M --header x --key-file x --keyfile-size 100 {CHEAP}"),
        "create x --type veracrypt --quick --passphrase-file pass --keyfile x".to_owned(),
        "create x --type veracrypt --quick --passphrase-file pass --keyfile there".to_owned(),
        "create made --type veracrypt --size 4M --passphrase-file pass --keyfile to-come"
            .to_owned(),
    ] {
        wrong.extend(refused(&sandbox, &line, b"", 2, &["is the same as"]));
    }
    nothing_wrong(&wrong);
    sandbox.volume("open v --passphrase-file pass");
}

/// A hidden volume that opens with what opens the outer one is out of reach.
#[test]
fn outer_and_hidden_passphrase_stay_two() {
    let sandbox = sandbox();
    sandbox.volume(&format!(
        "create {V} --size 4M --quick --passphrase-file pass"
    ));
    sandbox.volume(&format!(
        "create {V} --tcrypt-hidden 1M --outer-pim 1 --passphrase-file pass \
         --new-passphrase-file other --yes"
    ));
    let words = &["hidden volume would open with the same passphrase as the outer one"];
    let outer = format!("passwd {V} --passphrase-file pass --new-passphrase-file other");
    let hidden =
        format!("passwd {V} --tcrypt-hidden --passphrase-file other --new-passphrase-file pass");
    let mut wrong = refused(&sandbox, &hidden, b"", 2, words);
    wrong.extend(refused(&sandbox, &outer, b"", 2, words));
    nothing_wrong(&wrong);
    sandbox.volume(&format!("open {V} --tcrypt-hidden --passphrase-file other"));
}

/// A name may be another file's by the time that a command fails.
#[test]
fn what_has_taken_the_name_of_a_new_file_stays() {
    let sandbox = prepared();
    let made = Command::new("mkfifo").arg(sandbox.path("pipe")).status();
    if !made.is_ok_and(|made| made.success()) {
        return println!("skipped: a failed create: it needs mkfifo");
    }
    let (code, said) = shell(
        &sandbox,
        &format!(
            "create y --size 17M --passphrase-file pipe {CHEAP} & sleep 0.7; mv v y; echo >pipe; wait $!"
        ),
    );
    assert_eq!(code, Some(2), "{said}");
    sandbox.volume("open y --passphrase-file pass");
    // Its own goes.
    let answer = run(&sandbox, &format!("create z --size 17M {CHEAP}"), b"\n");
    assert_eq!(answer.code, Some(2), "{}", answer.said);
    assert!(!sandbox.path("z").exists());
}
