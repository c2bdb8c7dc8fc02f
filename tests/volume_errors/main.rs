//! Volumes and secrets that are not what the user thinks: two lines that say
//! so, the right exit code, and nothing changed.

mod files;
mod opened;
mod options;
mod secrets;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use testkit::Sandbox;

const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");

/// A sandbox with volumes, whose passphrase is in `pass` and whose key file is
/// `key`, and with what is none.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new(PROGRAM);
    let files: [(&str, &[u8]); 8] = [
        ("pass", b"a passphrase\n"),
        ("wrong", b"another\n"),
        ("long", &[b'p'; 65_537]),
        ("key", &[7; 64]),
        ("key-cut", &[7; 63]),
        ("nothing", b""),
        ("short", &[0x5a; 100]),
        ("noise", &vec![0x5a; 1 << 20]),
    ];
    for (name, bytes) in files {
        sandbox.write(name, bytes);
    }
    fs::create_dir(sandbox.path("folder")).unwrap();
    let cheap = ["--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000"];
    for (name, more) in [
        ("luks1", ["--type", "luks1"].as_slice()),
        ("luks2", &["--type", "luks2"]),
        ("detached1", &["--type", "luks1", "--header", "header1"]),
        ("detached2", &["--type", "luks2", "--header", "header2"]),
    ] {
        let size = ["--size", "24MiB", "--passphrase-file", "pass"];
        let create = [&["create", name], more, &size, &cheap].concat();
        let (code, said) = start(&sandbox, &create);
        assert_eq!(code, Some(0), "{create:?}\n{said}");
    }
    let luks2 = sandbox.read("luks2");
    sandbox.write("luks2-cut", &luks2[..20_000]);
    sandbox.write("luks2-cut-early", &luks2[..1000]);
    sandbox.write("luks2-without-data", &luks2[..16 << 20]);
    let luks1 = sandbox.read("luks1");
    sandbox.write("luks1-cut", &luks1[..5000]);
    let mut spoilt = luks2;
    spoilt[100] ^= 1;
    spoilt[(16 << 10) + 100] ^= 1;
    sandbox.write("luks2-spoilt", spoilt);
    sandbox
}

/// Exit code and standard error of `cryptmark volume`.
fn start(sandbox: &Sandbox, arguments: &[&str]) -> (Option<i32>, String) {
    let output = sandbox.volume_command(arguments).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), said)
}

/// All files and what they hold.
fn files(sandbox: &Sandbox) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(sandbox.directory()).unwrap();
    let files = entries.map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.is_file())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect()
}

trait Refuses {
    /// Each of `cases` is refused: arguments, exit code, what happened, what
    /// to do.
    fn refuses(&self, cases: &[(&str, i32, &str, &str)]);
}

impl Refuses for Sandbox {
    fn refuses(&self, cases: &[(&str, i32, &str, &str)]) {
        let before = files(self);
        let mut wrong = Vec::new();
        for (arguments, code, what, remedy) in cases {
            let words: Vec<&str> = arguments.split(' ').collect();
            let expected = format!("error: {what}\n  {remedy}\n");
            let got = start(self, &words);
            if got != (Some(*code), expected) {
                wrong.push(format!("{arguments}\n    {:?}\n    {}", got.0, got.1));
            }
            assert!(files(self) == before, "{arguments} changed a file");
        }
        assert!(wrong.is_empty(), "not as expected:\n{}", wrong.join("\n"));
    }
}

#[test]
fn a_file_that_may_not_be_written() {
    let sandbox = sandbox();
    let mut permissions = fs::metadata(sandbox.path("luks2")).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(sandbox.path("luks2"), permissions).unwrap();
    if fs::File::options()
        .write(true)
        .open(sandbox.path("luks2"))
        .is_ok()
    {
        println!("skipped: this user may write files that are read-only");
        return;
    }
    let what = "cannot open luks2: Permission denied (os error 13)";
    let remedy = "Run as a user with access to it, or choose another place.";
    sandbox.refuses(&[
        (
            "passwd luks2 --passphrase-file pass --new-passphrase-file wrong",
            2,
            what,
            remedy,
        ),
        (
            "key add luks2 --passphrase-file pass --new-passphrase-file wrong",
            2,
            what,
            remedy,
        ),
        (
            "import luks2 --passphrase-file pass --input noise --yes",
            2,
            what,
            remedy,
        ),
    ]);
}

/// Something is in the place of a descriptor that was closed, and it swallows all.
#[cfg(target_os = "linux")]
#[test]
fn standard_streams_that_are_closed() {
    let sandbox = sandbox();
    let export = "export luks2 --passphrase-file pass --output -";
    let import = "import luks2 --passphrase-file pass --yes --input -";
    let before = sandbox.read("luks2");
    for (line, code, words) in [
        (
            format!("{export} >&-"),
            2,
            "error: standard output is closed",
        ),
        (format!("{export} >/dev/null"), 0, ""),
        (
            format!("{import} <&-"),
            2,
            "error: standard input is closed",
        ),
        (format!("{import} </dev/null"), 0, ""),
    ] {
        let shell = ["-c", &format!("exec {PROGRAM} volume {line}")];
        let output = sandbox.command("sh", &shell).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{line}\n{said}");
        assert!(said.contains(words), "{line}\n{said}");
    }
    assert!(sandbox.read("luks2") == before);
}
