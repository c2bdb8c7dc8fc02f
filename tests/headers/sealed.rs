//! LUKS2 volumes whose sectors have tags: how they are made, and what is refused.

use super::sandbox::sandbox;
use testkit::{CHEAP, Sandbox, noise};

fn create(sandbox: &Sandbox, options: &str) {
    sandbox.volume(&format!(
        "create v --size 24MiB {options} {CHEAP} --passphrase-file pass"
    ));
}

/// Refused before anything is there.
fn refused(sandbox: &Sandbox, code: i32, options: &str) -> String {
    // VeraCrypt has no such options.
    let cheap = if options.contains("veracrypt") {
        ""
    } else {
        CHEAP
    };
    let said = sandbox.fails(
        code,
        &format!("volume create v --size 24MiB {options} {cheap} --passphrase-file pass"),
    );
    assert!(!sandbox.path("v").exists(), "{options}");
    said
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_made() {
    let sandbox = sandbox().with_file("pass", "a passphrase of many letters\n");
    for (options, words) in [
        ("-c aes-gcm-random", "an integrity algorithm"),
        ("-c aes-xts-random --type luks1", "an integrity algorithm"),
        (
            "-c aes-gcm-random --type veracrypt --quick",
            "an integrity algorithm",
        ),
        ("--integrity hmac-sha256 --type luks1", "luks1"),
        ("--integrity crc32c", "hmac-sha256"),
        ("--integrity aead", "aes-gcm-random"),
        (
            "-c aes-gcm-random --integrity hmac-sha256",
            "aes-gcm-random",
        ),
        ("-c chacha20-random --integrity aead", "chacha20-random"),
        (
            "-c aes-cbc-random --integrity hmac-sha256",
            "aes-gcm-random",
        ),
        ("-c aes-gcm-random --integrity aead -s 512", "such a key"),
        ("-c aegis128-random --integrity aead -s 256", "such a key"),
        ("--integrity hmac-sha256 -s 100", "multiple of 8"),
        (
            "-c cipher_null-ecb --integrity hmac-sha256",
            "encrypts nothing",
        ),
    ] {
        let said = refused(&sandbox, 2, options);
        assert!(said.contains(words), "{options}: {said}");
    }
}

#[test]
fn all_sectors_can_be_read_unless_they_need_not() {
    let sandbox = sandbox().with_file("pass", "a passphrase of many letters\n");
    create(
        &sandbox,
        "-c aegis128-random --integrity aead --sector-size 4096",
    );
    let info = sandbox.json("volume info v --json");
    assert_eq!(info["segments"]["0"]["integrity"], "aead");
    assert_eq!(info["segments"]["0"]["cipher"], "aegis128-random");
    assert_eq!(info["keyslots"]["0"]["key_bits"], 128);
    assert_eq!(info["keyslots"]["0"]["cipher"], "aes-xts-plain64");
    assert!(info.get("unusable").is_none(), "{info}");
    let export = "export v --passphrase-file pass -o -";
    let plain = sandbox.volume(export);
    assert!(plain.len() > 6 << 20 && plain.iter().all(|&byte| byte == 0));
    sandbox.volume("passwd v --passphrase-file pass --new-passphrase-file pass");
    assert!(sandbox.volume(export) == plain);

    std::fs::remove_file(sandbox.path("v")).unwrap();
    create(
        &sandbox,
        "--integrity hmac-sha256 --integrity-no-wipe --sector-size 4096",
    );
    let info = sandbox.json("volume info v --json");
    assert_eq!(info["keyslots"]["0"]["key_bits"], 768);
    sandbox.fails(1, "volume export v --passphrase-file pass -o out");
    sandbox.write("data", noise(1 << 20, 5));
    sandbox.volume("import v --input data --passphrase-file pass");
    let wiped = format!("volume {export}");
    let output = sandbox.run(&wiped);
    assert!(!output.status.success());
    assert!(output.stdout.starts_with(&noise(256 << 10, 5)));
}

#[test]
fn a_header_of_its_own_and_a_start_of_the_data() {
    let sandbox = sandbox().with_file("pass", "a passphrase of many letters\n");
    create(&sandbox, "--integrity hmac-sha512 --header h");
    let export = "export v --header h --passphrase-file pass -o -";
    let plain = sandbox.volume(export);
    assert!(plain.len() > 20 << 20 && plain.iter().all(|&byte| byte == 0));
    std::fs::remove_file(sandbox.path("v")).unwrap();
    create(&sandbox, "--integrity hmac-sha1 --offset 4MiB");
    let plain = sandbox.volume("export v --passphrase-file pass -o -");
    assert!(plain.len() > 15 << 20 && plain.iter().all(|&byte| byte == 0));
}

/// A volume that has no room for tags is refused while the old data are still there.
#[test]
fn where_there_is_no_room_nothing_is_changed() {
    let sandbox = sandbox().with_file("pass", "a passphrase of many letters\n");
    let before = noise(17 << 20, 3);
    sandbox.write("v", &before);
    let said = sandbox.fails(
        2,
        &format!("volume create v --yes --integrity hmac-sha512 --sector-size 512 {CHEAP} --passphrase-file pass"),
    );
    assert!(said.contains("some data need"), "{said}");
    assert!(sandbox.read("v") == before);
}
