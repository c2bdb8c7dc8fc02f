//! Programs in C: the example, and one that uses everything wrongly. Both are built by gcc and
//! clang, and run beside the shared and the static library, and under valgrind.

#![cfg(target_os = "linux")]

use cipher::Key;
use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use volume::operate::{self, Creation, NewKey, unwatched};
use volume::{Access, Format, Hash, Kdf, OpenOptions, Place, Secret, Volume};

const PASSPHRASE: &[u8] = b"correct horse";

/// What the static library needs besides.
const PRIVATE: [&str; 4] = ["-lpthread", "-ldl", "-lm", "-lgcc_s"];

/// Where cargo has put the libraries.
fn libraries() -> PathBuf {
    let program = env::current_exe().unwrap();
    let folder = program.parent().unwrap().to_owned();
    assert!(folder.join("libcryptmark.so").exists(), "{folder:?}");
    folder
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn is_there(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output();
    let there = found.is_ok_and(|output| output.status.success());
    if !there {
        println!("skipped: {program} is not installed");
    }
    there
}

/// Builds a program with the shared library, or with the static one.
fn built(compiler: &str, name: &str, shared: bool, folder: &Path) -> PathBuf {
    let program = folder.join(format!("{compiler}-{shared}"));
    let mut command = Command::new(compiler);
    command
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-g"])
        .arg("-I")
        .arg(source("include"))
        .arg(source(name))
        .arg("-o")
        .arg(&program);
    let libraries = libraries();
    // Programs ask for the library by the version of its interface.
    let named = folder.join("libcryptmark.so.0");
    if !named.exists() {
        std::os::unix::fs::symlink(libraries.join("libcryptmark.so"), &named).unwrap();
    }
    match shared {
        true => command
            .arg("-L")
            .arg(&libraries)
            .arg("-lcryptmark")
            .arg(format!("-Wl,-rpath,{}", folder.display())),
        false => command.arg(libraries.join("libcryptmark.a")).args(PRIVATE),
    };
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    program
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs `program` with the passphrase on its standard input.
fn run(program: &mut Command, passphrase: &[u8]) -> Output {
    let mut child = program
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(passphrase).unwrap();
    input.write_all(b"\n").unwrap();
    drop(input);
    child.wait_with_output().unwrap()
}

/// A file with a LUKS2 volume, and its plaintext.
fn volume_in(folder: &Path) -> (PathBuf, Vec<u8>) {
    let path = folder.join("disk.img");
    let kdf = Kdf::Pbkdf2 {
        hash: Hash::Sha256,
        iterations: 1000,
    };
    let new = NewKey {
        secret: Key::from_slice(PASSPHRASE),
        cost: kdf.into(),
        allow_empty: false,
    };
    let mut place = Place::create(&path, None, Some(18 << 20)).unwrap();
    operate::create(
        &mut place,
        Some(&new),
        &Creation::new(Format::Luks2),
        &unwatched,
    )
    .unwrap();
    drop(place);
    let options = OpenOptions {
        access: Access::Write,
        ..OpenOptions::default()
    };
    let secret = Secret::Passphrase(Key::from_slice(PASSPHRASE));
    let volume = Volume::open(&path, Some(&secret), &options).unwrap();
    let plaintext: Vec<u8> = (0..volume.size())
        .map(|at| (at * at / 77 + at) as u8)
        .collect();
    volume.write_at(0, &plaintext).unwrap();
    volume.flush().unwrap();
    (path, plaintext)
}

#[test]
fn the_example_exports_a_volume() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, plaintext) = volume_in(folder.path());
    for compiler in ["gcc", "clang"] {
        if !is_there(compiler) {
            continue;
        }
        for shared in [true, false] {
            let program = built(compiler, "examples/export.c", shared, folder.path());
            let exported = folder.path().join("exported");
            let output = run(Command::new(&program).arg(&disk).arg(&exported), PASSPHRASE);
            assert!(output.status.success(), "{}", text(&output.stderr));
            assert!(text(&output.stdout).starts_with("2097152 bytes of {\"format\":\"luks2\""));
            assert!(fs::read(&exported).unwrap() == plaintext);
            // It does not overwrite what is there.
            let again = run(Command::new(&program).arg(&disk).arg(&exported), PASSPHRASE);
            assert_eq!(again.status.code(), Some(1));
            fs::remove_file(&exported).unwrap();

            let wrong = run(Command::new(&program).arg(&disk).arg(&exported), b"wrong");
            assert_eq!(wrong.status.code(), Some(3), "{}", text(&wrong.stderr));
            assert!(text(&wrong.stderr).contains("no keyslot opens"));
            assert!(!exported.exists());
        }
    }
}

#[test]
fn pkg_config_has_what_a_program_needs() {
    if !is_there("pkg-config") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let described = fs::read_to_string(source("cryptmark.pc.in"))
        .unwrap()
        .replace("@prefix@", "/opt/cryptmark")
        .replace("@version@", env!("CARGO_PKG_VERSION"))
        .replace("@private@", &PRIVATE.join(" "));
    fs::write(folder.path().join("cryptmark.pc"), described).unwrap();
    let said = |options: &[&str]| {
        let output = Command::new("pkg-config")
            .env("PKG_CONFIG_PATH", folder.path())
            .args(options)
            .arg("cryptmark")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).trim().to_owned()
    };
    assert_eq!(said(&["--modversion"]), env!("CARGO_PKG_VERSION"));
    let flags = said(&["--cflags", "--libs"]);
    assert_eq!(
        flags,
        "-I/opt/cryptmark/include -L/opt/cryptmark/lib -lcryptmark"
    );
    assert!(said(&["--libs", "--static"]).ends_with(PRIVATE[3]));
}

#[test]
fn wrong_calls_get_codes_and_valgrind_finds_nothing() {
    if !is_there("gcc") || !is_there("valgrind") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (disk, plaintext) = volume_in(folder.path());
    let program = built("gcc", "tests/wrong.c", true, folder.path());
    let socket = folder.path().join("socket");
    let plain = run(Command::new(&program).arg(&disk).arg(&socket), PASSPHRASE);
    let (said, complained) = (text(&plain.stdout), text(&plain.stderr));
    assert!(plain.status.success(), "{said}\n{complained}");
    assert!(said.ends_with("all done\n"), "{said}\n{complained}");
    let checked = run(
        Command::new("valgrind")
            .args(["--error-exitcode=99", "--leak-check=full", "--quiet"])
            .args(["--show-leak-kinds=definite,indirect,possible"])
            .args(["--errors-for-leak-kinds=definite,indirect,possible"])
            .arg(format!(
                "--suppressions={}",
                source("tests/valgrind.supp").display()
            ))
            .arg(&program)
            .arg(&disk)
            .arg(&socket)
            .arg("valgrind"),
        PASSPHRASE,
    );
    let complained = text(&checked.stderr);
    assert!(checked.status.success(), "{complained}");
    // It writes what it read, and nothing else.
    let secret = Secret::Passphrase(Key::from_slice(PASSPHRASE));
    let volume = Volume::open(&disk, Some(&secret), &OpenOptions::default()).unwrap();
    let mut bytes = vec![0; plaintext.len()];
    volume.read_at(0, &mut bytes).unwrap();
    assert!(bytes == plaintext);
}
