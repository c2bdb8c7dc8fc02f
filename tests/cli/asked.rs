//! `ui --tty`: questions in a terminal.

use super::sandbox;
use std::io::Write;
use std::process::{Output, Stdio};
use testkit::{Sandbox, two_lines};

fn answered(sandbox: &Sandbox, answers: &str) -> Output {
    let mut child = sandbox
        .cryptmark(&["ui", "--tty"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    // It may end before it has read all.
    let _ = input.write_all(answers.as_bytes());
    drop(input);
    child.wait_with_output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn nothing_is_measured_before_it_is_confirmed() {
    let sandbox = sandbox();
    let at = sandbox.path("at").display().to_string();
    let output = answered(&sandbox, &format!("1\n{at}\nn\n"));
    two_lines(&output, 2, "nothing was measured");
    let text = said(&output);
    assert!(text.contains("What does encryption cost here?"), "{text}");
    assert!(text.contains("for 60 s at most"), "{text}");
    assert!(
        text.contains(&format!("cryptmark run quick --at={at}")),
        "{text}"
    );
    // Return takes the first of each list.
    let output = answered(&sandbox, "\n\nn\n");
    two_lines(&output, 2, "nothing was measured");
    // The ciphers in memory need no place.
    let output = answered(&sandbox, "3\n1\nn\n");
    assert!(
        said(&output).contains("cryptmark run ciphers\n"),
        "{}",
        said(&output)
    );
    assert!(
        sandbox.ok(&["list"]).contains("No runs"),
        "{}",
        sandbox.ok(&["list"])
    );
}

#[test]
fn what_is_overwritten_is_named_once_more() {
    let sandbox = sandbox();
    sandbox.write("holds", "data that somebody needs\n".repeat(100_000));
    let holds = sandbox.path("holds").display().to_string();
    for name in ["", "yes", "y", "hold"] {
        let output = answered(&sandbox, &format!("1\n{holds}\n{name}\n"));
        two_lines(&output, 2, "nothing was measured");
        assert!(said(&output).contains("all its data will be lost"));
    }
    let kept = std::fs::read_to_string(sandbox.path("holds")).unwrap();
    assert!(kept.starts_with("data that somebody needs\n"));
}

#[test]
fn wrong_answers_are_told() {
    let sandbox = sandbox();
    for (answers, wrong) in [
        ("", "the input has ended"),
        ("1\n", "the input has ended"),
        ("9\n", "not in the list"),
        ("0\n", "not in the list"),
        ("x\n", "not in the list"),
        ("1\n99\n", "not in the list"),
        ("1\n/nothing/is/here\n", "does not exist"),
    ] {
        two_lines(&answered(&sandbox, answers), 2, wrong);
    }
}
