//! The judge's table, cell by cell, through the libraries for Rust, C and Python. The commands of the
//! program are the questions; tests/questions asks the program itself.

use crate::opened::{Built, Doors, Library};
use crate::states::{CHOICES, build, command, make, standing};
use std::fmt::Write;
use std::fs;
use testkit::{CHEAP, Sandbox};
use volume::judge::{Ruling, State, Use};

/// What a command of the program asks, as the lines for a door.
fn lines(sandbox: &Sandbox, command: &str, accepted: Option<State>) -> String {
    let mut words = command.split_whitespace().peekable();
    let mut verb = words.next().unwrap();
    if ["key", "header"].contains(&verb) {
        verb = words.next().unwrap();
    }
    let path = |name: &str| sandbox.path(name).into_os_string().into_string().unwrap();
    let secret = |name: &str| sandbox.read(name).trim_ascii_end().to_vec();
    let mut text = String::new();
    let mut say = |words: &str, value: &[u8]| {
        text += words;
        text.push(' ');
        for byte in value {
            write!(text, "{byte:02x}").unwrap();
        }
        text.push('\n');
    };
    say("path", path(words.next().unwrap()).as_bytes());
    // Volumes whose derivation is their own say nothing of its cost.
    let is_cheap = command.contains(CHEAP) && !command.contains("veracrypt");
    let mut value = Vec::new();
    while let Some(option) = words.next() {
        let mut next = || words.next().unwrap();
        match option {
            "--passphrase-file" => say("secret 0", &secret(next())),
            "--new-passphrase-file" => value = secret(next()),
            "--input" => value = path(next()).into_bytes(),
            "--size" | "--to" => {
                let bytes = match next() {
                    mebibytes if mebibytes.ends_with("MiB") => {
                        mebibytes.trim_end_matches("MiB").parse::<u64>().unwrap() << 20
                    }
                    sectors => sectors.parse::<u64>().unwrap() * 512,
                };
                value = bytes.to_string().into_bytes();
            }
            "--header" => say("option header", path(next()).as_bytes()),
            "--type" => say("option format", next().as_bytes()),
            "--cipher" => say("option cipher", next().as_bytes()),
            "--veracrypt-pim" => say("option veracrypt_pim", next().as_bytes()),
            "--quick" => say("option quick", b"1"),
            "--encrypt" => verb = "encrypt",
            "--decrypt" => verb = "decrypt",
            "--nbd" | "--pbkdf" | "--pbkdf-force-iterations" => drop(next()),
            "--daemon" | "--no-progress" => {}
            option => panic!("no door is asked with {option}"),
        }
    }
    if is_cheap {
        say("option pbkdf", b"pbkdf2");
        say("option iter_time", b"1");
    }
    if verb == "serve" {
        say("option write", b"1");
    }
    if let Some(state) = accepted {
        say("option allow", state.name().as_bytes());
    }
    let verb = match verb {
        "serve" => "open",
        verb => verb,
    };
    say(verb, &value);
    text
}

/// The loss that an answer asks for, if it is one; or the code of a refusal.
#[derive(Debug, PartialEq)]
enum Said {
    Done,
    Asked(String),
    Refused(i32),
}

fn ask(worker: &mut dyn Library, lines: &str) -> (Said, String) {
    let answer = worker.ask(lines);
    let words: Vec<&str> = answer.split_whitespace().collect();
    let text = |hex: &str| String::from_utf8(crate::asked::bytes(hex)).unwrap();
    match words[..] {
        ["done"] | ["opened", ..] => (Said::Done, String::new()),
        ["refused", code, "-", what] => (Said::Refused(code.parse().unwrap()), text(what)),
        ["refused", "4", question, what] => (Said::Asked(question.to_owned()), text(what)),
        _ => panic!("{lines}: {answer:?}"),
    }
}

fn sandbox() -> Sandbox {
    Sandbox::new(env!("CARGO_BIN_EXE_cryptmark"))
        .with_file("pass", "a passphrase of many letters\n")
        .with_file("other", "another passphrase of many letters\n")
        .with_file("short", "few letters\n")
}

/// All that a command may have changed.
fn files(sandbox: &Sandbox) -> Vec<Option<Vec<u8>>> {
    let names = ["d.img", "h", "new"].into_iter();
    names
        .map(|name| fs::read(sandbox.path(name)).ok())
        .collect()
}

fn restore(sandbox: &Sandbox, before: &[Option<Vec<u8>>]) {
    for (name, bytes) in ["d.img", "h", "new"].into_iter().zip(before) {
        match bytes {
            Some(bytes) => sandbox.write(name, bytes),
            None => drop(fs::remove_file(sandbox.path(name))),
        }
    }
}

#[test]
fn every_cell_of_the_table_is_what_the_libraries_do() {
    let (built, sandbox) = (Built::new(), sandbox());
    let mut doors = Doors::open(&built);
    for state in standing() {
        let (is_apart, words) = build(&sandbox, state);
        let before = files(&sandbox);
        let volume = match is_apart {
            true => "d.img --header h",
            false => "d.img",
        };
        for use_ in Use::ALL {
            // Such a header cannot be read at all.
            if (state, use_) == (State::Unfinished, Use::Read) {
                continue;
            }
            let line = command(use_).replace('V', volume);
            // Whatever stands there goes, and is asked for by that name.
            let asked = match use_ {
                Use::Overwrite => State::Data,
                _ => state,
            };
            let takes = !matches!(use_, Use::Read | Use::ChangeHeader);
            for accepted in [None, Some(asked)] {
                if accepted.is_some() && !takes {
                    continue;
                }
                let lines = lines(&sandbox, &line, accepted);
                for (name, worker) in doors.libraries() {
                    restore(&sandbox, &before);
                    let (said, what) = ask(worker, &lines);
                    let case = format!("{name} {state:?} {use_:?} {accepted:?}: {said:?} {what}");
                    match (use_.ruling(state), accepted) {
                        (Ruling::Ask, None) => {
                            assert_eq!(said, Said::Asked(asked.name().to_owned()), "{case}");
                        }
                        (Ruling::Refused, _) => assert_eq!(said, Said::Refused(4), "{case}"),
                        // It may be refused for something else.
                        (_, _) => assert!(
                            said != Said::Asked(asked.name().to_owned()) && !what.contains(words),
                            "{case}"
                        ),
                    }
                    if said != Said::Done {
                        assert!(files(&sandbox) == before, "{case}: a file was changed");
                    }
                }
            }
        }
    }
}

#[test]
fn every_choice_that_loses_something_is_asked_for_by_the_libraries() {
    let (built, sandbox) = (Built::new(), sandbox());
    let mut doors = Doors::open(&built);
    for (state, use_, makes, line, words) in CHOICES {
        make(&sandbox, makes);
        let before = files(&sandbox);
        let line = line.replace("CHEAP", CHEAP);
        for (name, worker) in doors.libraries() {
            restore(&sandbox, &before);
            let (said, what) = ask(worker, &lines(&sandbox, &line, None));
            let case = format!("{name} {state:?} {use_:?} `{line}`: {said:?} {what}");
            assert_eq!(said, Said::Asked(state.name().to_owned()), "{case}");
            assert!(what.contains(words), "{case}");
            assert!(files(&sandbox) == before, "{case}: a file was changed");
            let (said, what) = ask(worker, &lines(&sandbox, &line, Some(state)));
            assert_eq!(said, Said::Done, "{name} {line}: {what}");
        }
    }
}
