//! Every place that sets a secret against every way to give none.

use super::{Desk, FAST, PROGRAM, nothing_wrong};
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

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
    /// A desk where the command can run.
    fn desk(&self) -> Desk {
        let desk = Desk::new();
        desk.file("plain", 1 << 20, &[(0, b"letter")]);
        fs::write(desk.path("nothing"), "").unwrap();
        fs::write(desk.path("newline"), "\n").unwrap();
        for line in self.before {
            let fast = if line.contains("veracrypt") { "" } else { FAST };
            desk.done(&format!("{line} {fast}"));
        }
        desk
    }

    fn line(&self, more: &str) -> String {
        let takes_kdf = !self.command.contains("crypt --quick") && !self.command.contains("hidden");
        let fast = if takes_kdf { FAST } else { "" };
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
        let desk = place.desk();
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
            wrong.extend(desk.refused(&place.line(&more), input, 2, &["empty"]));
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
        let desk = place.desk();
        let line = place.line("--allow-empty-passphrase");
        let answer = desk.run(&line, place.first.as_bytes());
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
        desk.done(&format!("open {image} {header} --passphrase-file nothing"));
    }
}

#[test]
fn enter_pressed_twice_is_no_passphrase() {
    let desk = Desk::new();
    let line = format!("{PROGRAM} volume create v --size 24M {FAST}");
    let script = Command::new("script")
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .current_dir(desk.folder.path())
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
    assert!(!desk.path("v").exists());
}

#[test]
fn empty_key_files_and_folders_are_no_secret() {
    let desk = Desk::new();
    fs::create_dir(desk.path("folder")).unwrap();
    fs::write(desk.path("folder/.hidden"), "x").unwrap();
    fs::write(desk.path("nothing"), "").unwrap();
    desk.done(VERACRYPT);
    let mut wrong = Vec::new();
    for (keyfile, words) in [("folder", "has no key file"), ("nothing", "is empty")] {
        for command in [
            "create w --size 4M --type veracrypt --quick",
            "create w --size 4M --type tcrypt --quick --passphrase-file pass",
            "open v --type veracrypt --passphrase-file pass",
            "passwd v --type veracrypt --passphrase-file pass --new-passphrase-file other",
        ] {
            let line = format!("{command} --keyfile {keyfile}");
            wrong.extend(desk.refused(&line, b"", 2, &[words]));
        }
    }
    nothing_wrong(&wrong);
}

#[test]
fn long_passphrases_come_from_files_as_from_a_prompt() {
    let desk = Desk::new();
    let long = "p".repeat(600);
    fs::write(desk.path("long"), &long).unwrap();
    desk.done(&format!(
        "create v --size 24M --passphrase-file long {FAST}"
    ));
    let answer = desk.run("open v", long.as_bytes());
    assert_eq!(answer.code, Some(0), "{}", answer.said);
}

#[test]
fn a_line_of_windows_is_warned_of() {
    let desk = Desk::new();
    fs::write(desk.path("crlf"), "a passphrase\r\n").unwrap();
    let answer = desk.run(
        &format!("create v --size 24M --passphrase-file crlf {FAST}"),
        b"",
    );
    assert_eq!(answer.code, Some(0), "{}", answer.said);
    assert!(answer.said.contains("carriage return"), "{}", answer.said);
    fs::write(desk.path("lf"), "a passphrase\n").unwrap();
    desk.run(
        &format!("create w --size 24M --passphrase-file lf {FAST}"),
        b"",
    );
    let answer = desk.run("open w --passphrase-file crlf", b"");
    assert_eq!(answer.code, Some(3), "{}", answer.said);
    assert!(answer.said.contains("line ends of Unix"), "{}", answer.said);
    assert!(!answer.said.contains("keyboard"), "{}", answer.said);
}

#[test]
fn halves_of_a_volume_key_differ() {
    let desk = Desk::new();
    fs::write(desk.path("same"), [7; 64]).unwrap();
    let line = format!("create v --size 24M --passphrase-file pass --volume-key-file same {FAST}");
    nothing_wrong(&desk.refused(&line, b"", 2, &["halves"]));
    // Made by a program that does not look, it opens, with a warning.
    fs::write(desk.path("v"), vec![0; 1 << 20]).unwrap();
    let answer = desk.run(
        "open v --type plain --cipher aes-xts-plain64 --key-size 512 --key-file same",
        b"",
    );
    assert_eq!(answer.code, Some(0), "{}", answer.said);
    assert!(answer.said.contains("halves"), "{}", answer.said);
}

#[test]
fn a_passphrase_of_an_old_veracrypt_opens_by_its_first_64_bytes() {
    let desk = Desk::new();
    let long: String = ('!'..='~').collect();
    fs::write(desk.path("short"), &long[..64]).unwrap();
    fs::write(desk.path("long"), &long).unwrap();
    desk.done(
        "create v --size 4M --type veracrypt --veracrypt-pim 1 --quick --passphrase-file short",
    );
    desk.done("open v --type veracrypt --veracrypt-pim 1 --hash sha512 --passphrase-file long");
    // A volume of today takes all of them.
    desk.done(
        "create w --size 4M --type veracrypt --veracrypt-pim 1 --quick --passphrase-file long",
    );
    let open = "open w --type veracrypt --veracrypt-pim 1 --hash sha512 --passphrase-file";
    desk.done(&format!("{open} long"));
    assert_eq!(desk.run(&format!("{open} short"), b"").code, Some(3));
}
