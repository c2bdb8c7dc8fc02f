//! A sandbox with passphrases, whose volumes this program and cryptsetup open.

use std::path::PathBuf;
use std::process::Output;
use testkit::{CHEAP, Sandbox};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");

/// With `a long passphrase one` in `one`, and so on.
pub fn sandbox() -> Sandbox {
    // Without a newline: cryptsetup takes it for the passphrase as well.
    let passphrase = |name| format!("a long passphrase {name}");
    ["one", "two", "three"]
        .into_iter()
        .fold(Sandbox::new(PROGRAM), |sandbox, name| {
            sandbox.with_file(name, passphrase(name))
        })
}

/// Where the program keeps headers.
pub fn kept(sandbox: &Sandbox) -> PathBuf {
    sandbox.path("state/cryptmark/headers")
}

/// The files that it has kept, in their order.
pub fn all_kept(sandbox: &Sandbox) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(kept(sandbox)) else {
        return Vec::new();
    };
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort_by_key(|path| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        name.split('_').nth(2).map(str::to_owned)
    });
    files
}

/// Runs what has to end with `code`; what it said.
#[track_caller]
pub fn ends(sandbox: &Sandbox, code: i32, arguments: &str) -> String {
    let output = sandbox.volume_command(arguments).output().unwrap();
    let said = text(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments}\n{said}");
    said
}

/// Makes a volume that `one` opens.
#[track_caller]
pub fn create(sandbox: &Sandbox, image: &str, kind: &str) {
    sandbox.volume(&format!(
        "create {image} --type {kind} --size 20MiB {CHEAP} --key-file one"
    ));
}

/// Whether `secret` opens the volume, by this program and by cryptsetup.
#[track_caller]
pub fn opens(sandbox: &Sandbox, image: &str, secret: &str) -> bool {
    let open = format!("open {image} --key-file {secret}");
    let output = sandbox.volume_command(&open).output().unwrap();
    let ours = match output.status.code() {
        Some(0) => true,
        Some(3) => false,
        _ => panic!("{}", text(&output)),
    };
    let theirs = cryptsetup(
        sandbox,
        &format!("open --test-passphrase {image} --key-file {secret}"),
    );
    assert!(
        theirs.is_none_or(|theirs| theirs == ours),
        "{image} {secret}: {ours}"
    );
    ours
}

/// Whether cryptsetup does that; nothing where there is none.
pub fn cryptsetup(sandbox: &Sandbox, arguments: &str) -> Option<bool> {
    let arguments = format!("-q --disable-locks {arguments}");
    let mut command = sandbox.command("cryptsetup", &arguments);
    match command.output() {
        Ok(output) => Some(output.status.success()),
        Err(_) => {
            println!("skipped: cryptsetup's opinion, for there is no cryptsetup");
            None
        }
    }
}
/// What a program said.
pub fn text(output: &Output) -> String {
    let said = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&said).into_owned()
}

/// Writes noise over a part of an image.
pub fn spoil(bytes: &mut [u8]) {
    bytes.copy_from_slice(&testkit::noise(bytes.len(), 1));
}
