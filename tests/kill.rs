//! A reencryption that is killed, again and again: the volume opens each time
//! with all of its data, and ends as it should.

use sha2::{Digest, Sha256};
use std::process::{Command, Stdio};
use std::time::Duration;
use testkit::{CHEAP, Expect as _, Sandbox};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");

/// Kills, and data that takes some tens of milliseconds.
const KILLS: u32 = 50;
const SIZE: &str = "64MiB";

fn volume(sandbox: &Sandbox, arguments: &str) -> Command {
    sandbox.volume_command(&format!("{arguments} --passphrase-file line"))
}

fn digest(sandbox: &Sandbox) -> Vec<u8> {
    let export = volume(sandbox, "export x.img --output -").succeeds();
    Sha256::digest(&export.stdout).to_vec()
}

#[test]
fn killed_fifty_times() {
    let sandbox = Sandbox::new(PROGRAM).with_file("line", "a passphrase\n");
    volume(&sandbox, &format!("create x.img --size {SIZE} {CHEAP}")).succeeds();
    // A fresh volume decrypts to noise: data enough.
    let expected = digest(&sandbox);

    let ciphers = ["aes-cbc-essiv:sha256", "aes-xts-plain64"];
    let mut state = 1_u64;
    let (mut kills, mut finished) = (0, 0);
    while kills < KILLS {
        let cipher = ciphers[finished % 2];
        let reencrypt = format!("reencrypt x.img --cipher {cipher} {CHEAP}");
        let mut child = volume(&sandbox, &reencrypt)
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
        assert!(digest(&sandbox) == expected, "after {kills} kills");
    }
    println!("{kills} kills, {finished} reencryptions finished");
    while cipher_of(&sandbox) != "aes-xts-plain64" {
        // What has begun ends as it began.
        let cipher = match cipher_of(&sandbox).is_empty() {
            true => "",
            false => "--cipher aes-xts-plain64 ",
        };
        volume(&sandbox, &format!("reencrypt x.img {cipher}{CHEAP}")).succeeds();
    }
    assert!(digest(&sandbox) == expected);
}

/// The cipher of the only segment; nothing while there are two.
fn cipher_of(sandbox: &Sandbox) -> String {
    let info = sandbox.json("volume info x.img --json");
    match info["segments"].as_object() {
        Some(segments) if segments.len() == 1 => {
            segments["0"]["cipher"].as_str().unwrap().to_owned()
        }
        _ => String::new(),
    }
}
