//! Every place that sets a secret against every way to give none.

use super::states::file;
use super::{PROGRAM, nothing_wrong, refused, run, sandbox};
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use testkit::{CHEAP, Sandbox};

/// A place that sets a secret: what has to be made before, the command, what says where
/// the new secret comes from, and what is on standard input before it.
struct Place {
    before: &'static [&'static str],
    command: &'static str,
    option: &'static str,
    first: &'static str,
}

const LUKS: &str = "create v --size 24M --passphrase-file pass";
const VERACRYPT: &str =
    "create v --size 4M --type veracrypt --veracrypt-pim 1 --quick --passphrase-file pass";
const OLD: &str = "a passphrase of many letters\n";

const PLACES: &[Place] = &[
    Place {
        before: &[],
        command: "create v --size 24M",
        option: "--passphrase-file",
        first: "",
    },
    Place {
        before: &[],
        command: "create v --size 24M --type luks1",
        option: "--passphrase-file",
        first: "",
    },
    Place {
        before: &[],
        command: "create v --size 24M --header h",
        option: "--passphrase-file",
        first: "",
    },
    Place {
        before: &[],
        command: "create v --size 4M --type veracrypt --quick",
        option: "--passphrase-file",
        first: "",
    },
    Place {
        before: &[],
        command: "create v --size 4M --type tcrypt --quick",
        option: "--passphrase-file",
        first: "",
    },
    Place {
        before: &[LUKS],
        command: "passwd v",
        option: "--new-passphrase-file",
        first: OLD,
    },
    Place {
        before: &[LUKS],
        command: "passwd v --passphrase-file pass",
        option: "--new-passphrase-file",
        first: "",
    },
    Place {
        before: &[LUKS],
        command: "key add v",
        option: "--new-passphrase-file",
        first: OLD,
    },
    Place {
        before: &[LUKS],
        command: "key add v --passphrase-file pass",
        option: "--new-passphrase-file",
        first: "",
    },
    Place {
        before: &[VERACRYPT],
        command: "passwd v --type veracrypt --veracrypt-pim 1 --hash sha512",
        option: "--new-passphrase-file",
        first: OLD,
    },
    Place {
        before: &[VERACRYPT],
        command: "create v --type veracrypt --veracrypt-pim 1 --outer-pim 1 --tcrypt-hidden 1M --yes",
        option: "--new-passphrase-file",
        first: OLD,
    },
    Place {
        before: &[],
        command: "reencrypt plain --encrypt",
        option: "--passphrase-file",
        first: "",
    },
];

impl Place {
    /// A sandbox where the command can run.
    fn prepared(&self) -> Sandbox {
        let sandbox = sandbox();
        file(&sandbox, "plain", 1 << 20, &[(0, b"letter")]);
        sandbox.write("nothing", "");
        sandbox.write("newline", "\n");
        for line in self.before {
            let fast = if line.contains("veracrypt") {
                ""
            } else {
                CHEAP
            };
            sandbox.volume(&format!("{line} {fast}"));
        }
        sandbox
    }

    fn line(&self, more: &str) -> String {
        let takes_kdf = !self.command.contains("veracrypt") && !self.command.contains("tcrypt");
        let fast = if takes_kdf { CHEAP } else { "" };
        let fast = match self.command.contains("luks1") {
            true => "--pbkdf-force-iterations 1000",
            false => fast,
        };
        format!("{} {fast} {more}", self.command)
    }
}

#[test]
fn an_empty_secret_is_set_nowhere() {
    let mut wrong = Vec::new();
    for place in PLACES {
        let sandbox = place.prepared();
        let option = place.option;
        let key = option.replace("passphrase", "key");
        let first = place.first.as_bytes();
        let lines = [first, b"\n\n"].concat();
        let ways: [(String, &[u8]); 6] = [
            // A pipe that ends, or has one line for two questions.
            (String::new(), first),
            (String::new(), &lines),
            (format!("{option} nothing"), first),
            (format!("{option} newline"), first),
            (format!("{option} -"), first),
            (format!("{key} nothing"), first),
        ];
        for (more, input) in ways {
            wrong.extend(refused(&sandbox, &place.line(&more), input, 2, &["empty"]));
        }
    }
    nothing_wrong(&wrong);
}

#[test]
fn an_empty_secret_is_set_where_the_user_insists() {
    // TrueCrypt and VeraCrypt have no such volumes.
    let places: Vec<_> = PLACES
        .iter()
        .filter(|place| !place.command.contains("--type") || place.command.contains("luks1"))
        .collect();
    assert_eq!(places.len(), 8);
    for place in places {
        let sandbox = place.prepared();
        let line = place.line("--allow-empty-passphrase");
        let answer = run(&sandbox, &line, place.first.as_bytes());
        assert_eq!(answer.code, Some(0), "{line}\n{}", answer.said);
        let image = if place.command.contains("plain") {
            "plain"
        } else {
            "v"
        };
        let header = if place.command.contains("--header h") {
            "--header h"
        } else {
            ""
        };
        sandbox.volume(&format!("open {image} {header} --passphrase-file nothing"));
    }
}

#[test]
fn enter_pressed_twice_is_no_passphrase() {
    let sandbox = sandbox();
    let line = format!("{PROGRAM} volume create v --size 24M {CHEAP}");
    let script = Command::new("script")
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .current_dir(sandbox.directory())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut script = match script {
        Ok(script) => script,
        Err(error) => return println!("skipped: a terminal: script: {error}"),
    };
    script.stdin.take().unwrap().write_all(b"\n\n").unwrap();
    let output = script.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("the new passphrase is empty"), "{said}");
    assert!(!sandbox.path("v").exists());
}

#[test]
fn empty_key_files_and_folders_are_no_secret() {
    let sandbox = sandbox();
    fs::create_dir(sandbox.path("folder")).unwrap();
    sandbox.write("folder/.hidden", "x");
    sandbox.write("nothing", "");
    sandbox.volume(VERACRYPT);
    let mut wrong = Vec::new();
    for (keyfile, words) in [("folder", "has no key file"), ("nothing", "is empty")] {
        for command in [
            "create w --size 4M --type veracrypt --quick",
            "create w --size 4M --type tcrypt --quick --passphrase-file pass",
            "open v --type veracrypt --passphrase-file pass",
            "passwd v --type veracrypt --passphrase-file pass --new-passphrase-file other",
        ] {
            let line = format!("{command} --keyfile {keyfile}");
            wrong.extend(refused(&sandbox, &line, b"", 2, &[words]));
        }
    }
    nothing_wrong(&wrong);
}

#[test]
fn long_passphrases_come_from_files_as_from_a_prompt() {
    let sandbox = sandbox();
    let long = "p".repeat(600);
    sandbox.write("long", &long);
    sandbox.volume(&format!(
        "create v --size 24M --passphrase-file long {CHEAP}"
    ));
    let answer = run(&sandbox, "open v", long.as_bytes());
    assert_eq!(answer.code, Some(0), "{}", answer.said);
}

#[test]
fn a_line_of_windows_is_warned_of() {
    let sandbox = sandbox();
    sandbox.write("crlf", "a passphrase\r\n");
    let answer = run(
        &sandbox,
        &format!("create v --size 24M --passphrase-file crlf {CHEAP}"),
        b"",
    );
    assert_eq!(answer.code, Some(0), "{}", answer.said);
    assert!(answer.said.contains("carriage return"), "{}", answer.said);
    sandbox.write("lf", "a passphrase\n");
    run(
        &sandbox,
        &format!("create w --size 24M --passphrase-file lf {CHEAP}"),
        b"",
    );
    let answer = run(&sandbox, "open w --passphrase-file crlf", b"");
    assert_eq!(answer.code, Some(3), "{}", answer.said);
    assert!(answer.said.contains("Unix line ends"), "{}", answer.said);
    assert!(!answer.said.contains("keyboard"), "{}", answer.said);
}

#[test]
fn halves_of_a_volume_key_differ() {
    let sandbox = sandbox();
    sandbox.write("same", [7; 64]);
    let line = format!("create v --size 24M --passphrase-file pass --volume-key-file same {CHEAP}");
    nothing_wrong(&refused(&sandbox, &line, b"", 2, &["halves"]));
    // Made by a program that does not look, it opens, with a warning.
    sandbox.write("v", vec![0; 1 << 20]);
    let answer = run(
        &sandbox,
        "open v --type plain --cipher aes-xts-plain64 --key-size 512 --key-file same",
        b"",
    );
    assert_eq!(answer.code, Some(0), "{}", answer.said);
    assert!(answer.said.contains("halves"), "{}", answer.said);
}

#[test]
fn a_passphrase_of_an_old_veracrypt_opens_by_its_first_64_bytes() {
    let sandbox = sandbox();
    let long: String = ('!'..='~').collect();
    sandbox.write("short", &long[..64]);
    sandbox.write("long", &long);
    sandbox.volume(
        "create v --size 4M --type veracrypt --veracrypt-pim 1 --quick --passphrase-file short",
    );
    sandbox
        .volume("open v --type veracrypt --veracrypt-pim 1 --hash sha512 --passphrase-file long");
    // A volume of today takes all of them.
    sandbox.volume(
        "create w --size 4M --type veracrypt --veracrypt-pim 1 --quick --passphrase-file long",
    );
    let open = "open w --type veracrypt --veracrypt-pim 1 --hash sha512 --passphrase-file";
    sandbox.volume(&format!("{open} long"));
    assert_eq!(run(&sandbox, &format!("{open} short"), b"").code, Some(3));
}

/// What a command writes to has none of its secrets: they would be lost.
#[test]
fn no_command_writes_to_a_file_with_its_secrets() {
    let sandbox = sandbox();
    let options = [
        "--passphrase-file v",
        "--key-file v",
        "--key-file link",
        "--volume-key-file v",
        "--passphrase-file pass --keep-passphrase-file v",
        "--passphrase-file pass --keep-key-file v",
    ];
    let commands = [
        "create v --yes",
        "reencrypt v --encrypt",
        "reencrypt v",
        "reencrypt other --header v",
        "import v --input x --yes",
        "header repair v",
        "export other --output v --yes",
    ];
    let mut wrong = Vec::new();
    for name in ["v", "other", "x"] {
        sandbox.write(name, "a secret that is a file\n".repeat(50_000));
    }
    std::os::unix::fs::symlink("v", sandbox.path("link")).unwrap();
    let before = sandbox.read("v");
    for command in commands {
        for option in options {
            let is_kept = option.contains("--keep");
            if is_kept && !command.starts_with("reencrypt v") {
                continue;
            }
            if is_kept && command.ends_with("--encrypt") {
                continue;
            }
            if option.contains("volume-key") && command.starts_with("header") {
                continue;
            }
            let line = format!("{command} {option}");
            wrong.extend(refused(&sandbox, &line, b"", 2, &["is the same as"]));
        }
    }
    assert!(sandbox.read("v") == before);
    nothing_wrong(&wrong);
}

/// Who changes or removes a passphrase believes that it opens nothing afterwards.
#[test]
fn a_passphrase_that_opens_another_key_slot_as_well_is_told() {
    let sandbox = sandbox();
    for kind in ["luks1", "luks2"] {
        for (command, told) in [
            (
                format!("passwd v --passphrase-file pass --new-passphrase-file other {CHEAP}"),
                true,
            ),
            ("key kill v --passphrase-file pass".to_owned(), true),
            (
                "key kill v --passphrase-file pass --key-slot 1".to_owned(),
                false,
            ),
        ] {
            sandbox.volume(&format!(
                "create v --yes --size 24M --type {kind} {CHEAP} --passphrase-file pass"
            ));
            sandbox.volume(&format!(
                "key add v --passphrase-file pass --new-passphrase-file pass {CHEAP}"
            ));
            let answer = run(&sandbox, &command, b"");
            assert_eq!(answer.code, Some(0), "{}", answer.said);
            let is_told = answer.said.contains("still opens key slot 1");
            assert_eq!(is_told, told, "{kind}, {command}: {}", answer.said);
        }
    }
}

/// A key slot that is changed in a copy of the header stays as it was in the volume's own.
#[test]
fn who_changes_a_copy_of_the_header_hears_of_the_other_one() {
    let sandbox = sandbox();
    sandbox.write("third", "a third passphrase\n");
    let told = |line: &str| String::from_utf8(sandbox.volume(line)).unwrap();
    for kind in ["luks1", "luks2"] {
        sandbox.volume(&format!(
            "create v --yes --size 24M --type {kind} {CHEAP} --passphrase-file pass"
        ));
        sandbox.volume(&format!("header backup v -o {kind}"));
        for command in [
            format!("key add v --passphrase-file pass --new-passphrase-file other {CHEAP}"),
            format!("passwd v --passphrase-file pass --new-passphrase-file third {CHEAP}"),
            "key kill v --passphrase-file other".to_owned(),
        ] {
            let apart = told(&format!("{command} --header {kind}"));
            assert!(
                apart.contains("the volume has its own header"),
                "{command}: {apart}"
            );
        }
        sandbox.volume("open v --passphrase-file pass");
        let alone = told(&format!(
            "passwd v --passphrase-file pass --new-passphrase-file other {CHEAP}"
        ));
        assert!(!alone.contains("its own header"), "{alone}");
    }
}

/// Only where it is set: others may have to open with it.
#[test]
fn a_new_key_file_of_equal_bytes_is_warned_of() {
    let sandbox = sandbox();
    sandbox.write("equal", vec![7; 64]);
    sandbox.write("plain", vec![1; 1 << 20]);
    for (command, is_told) in [
        (
            format!("create v --size 24M {CHEAP} --key-file equal"),
            true,
        ),
        ("open v --key-file equal".to_owned(), false),
        (
            format!("key add v --key-file equal --new-key-file equal {CHEAP}"),
            true,
        ),
        (
            format!("passwd v --key-file equal --new-key-file pass {CHEAP}"),
            false,
        ),
        (
            format!("reencrypt plain --encrypt --key-file equal {CHEAP} --no-progress"),
            true,
        ),
    ] {
        let answer = run(&sandbox, &command, b"");
        assert_eq!(answer.code, Some(0), "{command}: {}", answer.said);
        let told = answer
            .said
            .contains("all bytes of the key file are the same");
        assert_eq!(told, is_told, "{command}: {}", answer.said);
    }
}
