//! A reencryption that is killed, again and again: the volume opens each time
//! with all of its data, and ends as it should.

use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");

/// Kills, and data that takes some tens of milliseconds.
const KILLS: u32 = 50;
const SIZE: &str = "64MiB";

fn volume(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .arg("volume")
        .args(arguments)
        .args(["--passphrase-file", "line"])
        .current_dir(folder)
        .stdin(Stdio::null());
    command
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let output = volume(folder, arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}\n{said}");
    output
}

fn digest(folder: &Path) -> Vec<u8> {
    let output = run(folder, &["export", "x.img", "--output", "-"]);
    Sha256::digest(&output.stdout).to_vec()
}

#[test]
fn killed_fifty_times() {
    let desk = tempfile::tempdir().unwrap();
    let folder = desk.path();
    fs::write(folder.join("line"), "a passphrase\n").unwrap();
    let cheap = ["--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000"];
    run(
        folder,
        &[&["create", "x.img", "--size", SIZE], &cheap[..]].concat(),
    );
    // A fresh volume decrypts to noise: data enough.
    let expected = digest(folder);

    let ciphers = ["aes-cbc-essiv:sha256", "aes-xts-plain64"];
    let mut state = 1_u64;
    let (mut kills, mut finished) = (0, 0);
    while kills < KILLS {
        let cipher = ciphers[finished % 2];
        let reencrypt = ["reencrypt", "x.img", "--cipher", cipher];
        let mut child = volume(folder, &[&reencrypt, &cheap[..]].concat())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        std::thread::sleep(Duration::from_micros((state >> 33) % 120_000));
        let ended = child.try_wait().unwrap();
        child.kill().unwrap();
        let status = child.wait().unwrap();
        match ended {
            Some(_) => {
                assert!(status.success());
                finished += 1;
            }
            None => kills += 1,
        }
        assert!(digest(folder) == expected, "after {kills} kills");
    }
    println!("{kills} kills, {finished} reencryptions finished");
    while cipher_of(folder) != "aes-xts-plain64" {
        let reencrypt = ["reencrypt", "x.img", "--cipher", "aes-xts-plain64"];
        run(folder, &[&reencrypt, &cheap[..]].concat());
    }
    assert!(digest(folder) == expected);
}

/// The cipher of the only segment; nothing while there are two.
fn cipher_of(folder: &Path) -> String {
    let output = Command::new(PROGRAM)
        .args(["volume", "info", "x.img", "--json"])
        .current_dir(folder)
        .output()
        .unwrap();
    let info: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    match info["segments"].as_object() {
        Some(segments) if segments.len() == 1 => {
            segments["0"]["cipher"].as_str().unwrap().to_owned()
        }
        _ => String::new(),
    }
}
