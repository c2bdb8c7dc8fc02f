//! LUKS volumes through their life, as a user leads it.

use block::{FileDevice, FileOptions};
use cipher::{Key, SectorSize};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use testkit::{CHEAP, Sandbox, have};
use volume::luks2::{Header, Keys, KeyslotOptions, Target};
use volume::{Hash, Kdf, Limits, Secret};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");

/// A sandbox with passphrases, and some data in `plain`.
fn sandbox() -> Sandbox {
    let plain: Vec<u8> = (0..5_u32 << 20)
        .map(|at| ((at / 3) ^ (at >> 9)) as u8)
        .collect();
    Sandbox::new(PROGRAM)
        .with_file("one", "passphrase one\n")
        .with_file("two", "passphrase two\n")
        .with_file("plain", plain)
}

/// A volume with `plain` at its start, which `one` opens.
fn filled(sandbox: &Sandbox, image: &str, kind: &str) {
    sandbox.volume(&format!(
        "create {image} --type {kind} --size 24MiB {CHEAP} --passphrase-file one"
    ));
    sandbox.volume(&format!(
        "import {image} --input plain --passphrase-file one"
    ));
}

/// Whether the volume opens, and holds what it should.
fn holds(sandbox: &Sandbox, image: &str, passphrase: &str) -> bool {
    let export = format!("export {image} --passphrase-file {passphrase} --output -");
    let output = sandbox.volume_command(&export).output().unwrap();
    match output.status.code() {
        Some(0) => {
            assert!(output.stdout.starts_with(&sandbox.read("plain")));
            true
        }
        Some(3) => false,
        other => panic!("{other:?}"),
    }
}

#[test]
fn no_volume_opens_without_a_passphrase() {
    let sandbox = sandbox();
    for secret in ["", "--passphrase-file empty", "--new-passphrase-file one"] {
        sandbox.write("empty", "");
        let create = format!("create x.img --size 20MiB {secret} {CHEAP}");
        let output = sandbox.volume_command(&create).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{create}");
        assert!(!sandbox.path("x.img").exists(), "{create}");
    }
}

#[cfg(unix)]
#[test]
fn plaintext_comes_and_goes_by_named_pipes() {
    let sandbox = sandbox();
    filled(&sandbox, "v.img", "luks2");
    let plain: Vec<u8> = sandbox.read("plain").iter().rev().copied().collect();
    sandbox.write("other", &plain);
    for (feeding, command) in [
        ("cat other > pipe", "import v.img --yes --input pipe"),
        ("cat pipe > out", "export v.img --output pipe"),
    ] {
        let mut feeder = Command::new("sh")
            .args([
                "-c",
                &format!("rm -f pipe; mkfifo pipe; touch made; {feeding}"),
            ])
            .current_dir(sandbox.directory())
            .spawn()
            .unwrap();
        while fs::remove_file(sandbox.path("made")).is_err() {
            std::thread::yield_now();
        }
        sandbox.volume(&format!("{command} --passphrase-file one"));
        assert!(feeder.wait().unwrap().success());
    }
    assert!(sandbox.read("out").starts_with(&plain));
}

#[test]
fn headers_are_saved_and_come_back() {
    let sandbox = sandbox();
    for kind in ["luks1", "luks2"] {
        let image = &format!("{kind}.img");
        filled(&sandbox, image, kind);
        sandbox.volume(&format!("header backup {image} --output {kind}.header"));
        sandbox.refused(
            2,
            image,
            &format!("header backup {image} --output {kind}.header"),
        );
        sandbox.volume(&format!(
            "passwd {image} {CHEAP} --passphrase-file one --new-passphrase-file two"
        ));
        assert!(!holds(&sandbox, image, "one") && holds(&sandbox, image, "two"));
        // What opens it now would be lost.
        let restore = format!("header restore {image} --input {kind}.header");
        sandbox.refused(4, image, &restore);
        sandbox.volume(&format!("{restore} --yes"));
        assert!(holds(&sandbox, image, "one") && !holds(&sandbox, image, "two"));

        // Over another volume, or none, only if that is meant.
        let other = &format!("{kind}-other.img");
        filled(&sandbox, other, kind);
        let restore = format!("header restore {other} --input {kind}.header");
        sandbox.refused(4, other, &restore);
        sandbox.refused(2, image, &format!("header restore {image} --input plain"));
        let mut bytes = sandbox.read(image);
        bytes[..1 << 20].fill(0);
        sandbox.write(image, bytes);
        let restore = format!("header restore {image} --input {kind}.header");
        sandbox.refused(4, image, &restore);
        sandbox.volume(&format!("{restore} --yes"));
        assert!(holds(&sandbox, image, "one"));
    }
}

/// With the header alone somebody knows how far the data are, and has both keys.
#[test]
fn no_header_comes_back_while_the_data_move() {
    let sandbox = sandbox();
    filled(&sandbox, "v.img", "luks2");
    sandbox.volume("header backup v.img --output saved");
    begin_reencryption(&sandbox.path("v.img"));
    sandbox.refused(4, "v.img", "header restore v.img --input saved");
    sandbox.volume("reencrypt v.img --passphrase-file one");
    assert!(holds(&sandbox, "v.img", "one"));
}

/// Begins to change the volume key, and goes no further.
fn begin_reencryption(image: &Path) {
    let options = FileOptions {
        write: true,
        ..FileOptions::default()
    };
    let device = FileDevice::open(image, &options).unwrap();
    let kdf = Kdf::Pbkdf2 {
        hash: Hash::Sha256,
        iterations: 1000,
    };
    let target = Target {
        spec: "aes-xts-plain64".parse().unwrap(),
        sector_size: SectorSize::default(),
        keyslot: KeyslotOptions::new(kdf),
    };
    let passphrase = Key::from_slice(b"passphrase one");
    let mut header = Header::read(&device).unwrap();
    let secret = Secret::Passphrase(Key::from_slice(passphrase.as_bytes()));
    let unlocked = header.unlock(&device, &secret, None, &Limits::default());
    let keys = Keys {
        old: unlocked.unwrap().key,
        new: Key::random(64).unwrap(),
    };
    header
        .begin_reencryption(&device, &device, &target, &keys, &[(0, &passphrase)], &[])
        .unwrap();
}

#[test]
fn names_and_sizes_change() {
    let sandbox = sandbox();
    filled(&sandbox, "v.img", "luks2");
    sandbox.volume("header set v.img --label mine --uuid 11111111-2222-3333-4444-555555555555");
    let info = String::from_utf8(sandbox.volume("info v.img")).unwrap();
    assert!(
        info.contains("mine") && info.contains("11111111-2222"),
        "{info}"
    );
    sandbox.volume("resize v.img --to 32MiB");
    assert_eq!(sandbox.read("v.img").len(), 32 << 20);
    assert!(holds(&sandbox, "v.img", "one"));
    sandbox.refused(4, "v.img", "resize v.img --to 24MiB");
    sandbox.refused(2, "v.img", "resize v.img --to 15MiB");
    sandbox.volume("resize v.img --to 24MiB --yes");
    assert!(holds(&sandbox, "v.img", "one"));
    let mut bytes = sandbox.read("v.img");
    bytes[..4096].fill(0);
    sandbox.write("v.img", bytes);
    assert!(holds(&sandbox, "v.img", "one"));
    let said = String::from_utf8(sandbox.volume("header repair v.img")).unwrap();
    assert!(said.contains("good again"), "{said}");
    filled(&sandbox, "w.img", "luks1");
    sandbox.refused(2, "w.img", "header set w.img --label mine");
}

/// Writes the size of the data, which has 7 digits, into the header.
fn fix_size(image: &Path, size: &[u8; 7]) {
    let mut bytes = fs::read(image).unwrap();
    for copy in bytes.chunks_mut(16 << 10).take(2) {
        let text = b"dynamic";
        let at = copy
            .windows(text.len())
            .position(|part| part == text)
            .unwrap();
        copy[at..][..text.len()].copy_from_slice(size);
        copy[448..512].fill(0);
        let checksum = Sha256::digest(&*copy);
        copy[448..][..checksum.len()].copy_from_slice(&checksum);
    }
    fs::write(image, bytes).unwrap();
}

#[test]
fn a_size_in_the_header_changes_with_the_file() {
    let sandbox = sandbox();
    filled(&sandbox, "v.img", "luks2");
    let length = |sandbox: &Sandbox| {
        let export = "export v.img --passphrase-file one --output -";
        assert!(holds(sandbox, "v.img", "one"));
        sandbox.volume(export).len()
    };
    // The file is longer than header and data.
    fix_size(&sandbox.path("v.img"), b"7340032");
    assert_eq!(length(&sandbox), 7 << 20);
    sandbox.refused(4, "v.img", "resize v.img --to 22MiB");
    sandbox.refused(2, "v.img", "resize v.img --to 16MiB");
    sandbox.volume("resize v.img --to 32MiB");
    assert_eq!(
        (sandbox.read("v.img").len(), length(&sandbox)),
        (32 << 20, 16 << 20)
    );
    sandbox.volume("resize v.img --to 22MiB --yes");
    assert_eq!(
        (sandbox.read("v.img").len(), length(&sandbox)),
        (22 << 20, 6 << 20)
    );
    sandbox.volume("resize v.img --to 22MiB");
    // What is behind the data may go without a question if it is nothing.
    fs::File::options()
        .write(true)
        .open(sandbox.path("v.img"))
        .unwrap()
        .set_len(40 << 20)
        .unwrap();
    sandbox.volume("resize v.img --to 24MiB");
    assert_eq!(
        (sandbox.read("v.img").len(), length(&sandbox)),
        (24 << 20, 8 << 20)
    );
    let mut longer = sandbox.read("v.img");
    longer.resize(40 << 20, 0);
    longer[39 << 20] = 1;
    sandbox.write("v.img", longer);
    sandbox.refused(4, "v.img", "resize v.img --to 26MiB");
    sandbox.volume("resize v.img --to 26MiB --yes");
}

/// Whether it would be taken into the volume or cut off.
#[test]
fn nothing_behind_a_fixed_size_goes_unasked() {
    let sandbox = sandbox();
    filled(&sandbox, "v.img", "luks2");
    fix_size(&sandbox.path("v.img"), b"1048576");
    let at = |end: usize, bytes: &[u8]| {
        let mut image = sandbox.read("v.img");
        image.truncate(17 << 20);
        image.resize(end, 0);
        image.extend_from_slice(bytes);
        sandbox.write("v.img", image);
    };
    at(18 << 20, &[b'p'; 4096]);
    for to in ["17MiB", "18MiB", "19MiB", "24MiB"] {
        sandbox.refused(4, "v.img", &format!("resize v.img --to {to}"));
    }
    // Bytes behind the last whole block are bytes.
    at(20 << 20, &[b'p'; 100]);
    for to in ["18MiB", "20MiB", "24MiB"] {
        sandbox.refused(4, "v.img", &format!("resize v.img --to {to}"));
    }
    sandbox.volume("resize v.img --to 18MiB --yes");
    assert_eq!(sandbox.read("v.img").len(), 18 << 20);
}

#[test]
fn a_luks1_volume_becomes_luks2_and_is_reencrypted() {
    let sandbox = sandbox();
    filled(&sandbox, "v.img", "luks1");
    sandbox.volume(&format!(
        "key add v.img {CHEAP} --passphrase-file one --new-passphrase-file two --new-key-slot 5"
    ));
    sandbox.volume("header backup v.img --output saved");
    let reencrypt = format!("reencrypt v.img {CHEAP} --passphrase-file two --yes");
    let said = sandbox.refused(2, "v.img", &reencrypt);
    assert!(
        said.contains("cryptmark volume convert v.img --type luks2"),
        "{said}"
    );
    sandbox.refused(2, "v.img", "convert v.img --type veracrypt");
    sandbox.refused(2, "plain", "convert plain --type luks2");
    sandbox.volume("convert v.img --type luks2");
    for passphrase in ["one", "two"] {
        assert!(holds(&sandbox, "v.img", passphrase));
    }
    let info = sandbox.volume("info v.img --json");
    let info: serde_json::Value = serde_json::from_slice(&info).unwrap();
    assert_eq!(info["format"], "luks2");
    let slots: Vec<&str> = info["keyslots"]
        .as_object()
        .unwrap()
        .keys()
        .map(|key| &**key)
        .collect();
    assert_eq!(slots, ["0", "5"]);
    let converted = sandbox.read("v.img");
    sandbox.volume("convert v.img --type luks2");
    assert!(sandbox.read("v.img") == converted);

    // The way back.
    sandbox.volume("header restore v.img --input saved");
    assert!(holds(&sandbox, "v.img", "one"));
    sandbox.volume("convert v.img --type luks2");
    sandbox.volume(&reencrypt);
    assert!(holds(&sandbox, "v.img", "two") && !holds(&sandbox, "v.img", "one"));
}

#[test]
fn a_detached_luks1_header_becomes_one_of_luks2() {
    let sandbox = sandbox();
    let detached = "--header h.img --passphrase-file one";
    sandbox.volume(&format!(
        "create v.img --type luks1 --size 8MiB {CHEAP} {detached}"
    ));
    sandbox.volume(&format!("import v.img {detached} --input plain"));
    let before = sandbox.read("v.img");
    sandbox.volume("convert v.img --header h.img --type luks2");
    assert!(sandbox.read("v.img") == before);
    let out = sandbox.volume(&format!("export v.img {detached} --output -"));
    assert!(out.starts_with(&sandbox.read("plain")));
}

/// A volume that `one`, `two` and the key file `plain-key` open.
fn with_three_keyslots(sandbox: &Sandbox) {
    filled(sandbox, "v.img", "luks2");
    sandbox.write("plain-key", [7; 40]);
    for new in ["--new-passphrase-file two", "--new-key-file plain-key"] {
        sandbox.volume(&format!(
            "key add v.img {CHEAP} --passphrase-file one {new}"
        ));
    }
}

#[test]
fn keyslots_that_are_opened_survive_another_volume_key() {
    let sandbox = sandbox();
    with_three_keyslots(&sandbox);
    let reencrypt = format!("reencrypt v.img {CHEAP} --passphrase-file one");
    sandbox.refused(4, "v.img", &reencrypt);
    // Before anything is asked of the new keyslots, whose costs take seconds to find.
    sandbox.refused(
        4,
        "v.img",
        "reencrypt v.img --passphrase-file one --pbkdf pbkdf2 --pbkdf-force-iterations 1",
    );
    sandbox.refused(
        4,
        "v.img",
        &format!("{reencrypt} --keep-passphrase-file two"),
    );
    sandbox.write("three", "three\n");
    for wrong in ["three", "two --keep-passphrase-file two"] {
        sandbox.refused(
            3,
            "v.img",
            &format!("{reencrypt} --keep-passphrase-file {wrong}"),
        );
    }
    let keep = "--keep-passphrase-file two --keep-key-file plain-key";
    sandbox.volume(&format!("{reencrypt} {keep}"));
    assert!(holds(&sandbox, "v.img", "one") && holds(&sandbox, "v.img", "two"));
    let export = "export v.img --key-file plain-key --output -";
    assert!(sandbox.volume(export).starts_with(&sandbox.read("plain")));
    // One stays, the other goes.
    sandbox.volume(&format!("{reencrypt} --keep-passphrase-file two --yes"));
    assert!(holds(&sandbox, "v.img", "one") && holds(&sandbox, "v.img", "two"));
    let gone = sandbox.volume_command(export).output().unwrap();
    assert_eq!(gone.status.code(), Some(3));
}

#[test]
fn keyslots_are_opened_at_a_terminal() {
    let terminal = Command::new("script").arg("--version").output();
    if !terminal.is_ok_and(|output| output.status.success()) {
        println!("skipped: script is not installed");
        return;
    }
    let sandbox = sandbox();
    with_three_keyslots(&sandbox);
    let typed = |lines: &str| {
        let command = format!("{PROGRAM} volume reencrypt v.img {CHEAP}");
        let mut script = Command::new("script")
            .args(["--quiet", "--return", "--command", &command, "/dev/null"])
            .current_dir(sandbox.directory())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        script
            .stdin
            .take()
            .unwrap()
            .write_all(lines.as_bytes())
            .unwrap();
        let output = script.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), said)
    };
    // The key file cannot be typed: without --yes nothing is lost.
    let (code, said) = typed("passphrase one\npassphrase two\n\n");
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("would lose 1 more key slot"), "{said}");
    assert!(holds(&sandbox, "v.img", "one") && holds(&sandbox, "v.img", "two"));

    sandbox.volume("key kill v.img --key-slot 2 --passphrase-file one");
    let (code, said) = typed("passphrase one\nwrong\nwrong\nwrong\n");
    assert_eq!(code, Some(3), "{said}");
    let (code, said) = typed("passphrase one\nwrong\npassphrase two\n");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("key slot 1"), "{said}");
    assert!(holds(&sandbox, "v.img", "one") && holds(&sandbox, "v.img", "two"));
}

#[test]
fn an_image_is_encrypted_and_decrypted_where_it_is() {
    let sandbox = sandbox();
    fs::copy(sandbox.path("plain"), sandbox.path("v.img")).unwrap();
    let encrypt = format!("reencrypt v.img --encrypt {CHEAP} --passphrase-file one");
    sandbox.volume(&encrypt);
    assert!(holds(&sandbox, "v.img", "one"));
    assert!(!sandbox.path("v.img.cryptmark-header").exists());
    sandbox.refused(4, "v.img", &encrypt);
    sandbox.refused(
        3,
        "v.img",
        "reencrypt v.img --cipher serpent-xts-plain64 --passphrase-file two",
    );
    sandbox.volume("reencrypt v.img --decrypt --passphrase-file one");
    assert!(sandbox.read("v.img") == sandbox.read("plain"));
    assert!(!sandbox.path("v.img.cryptmark-header").exists());

    // With a header of its own for good, nothing moves.
    let detached = "--header h.img --passphrase-file one";
    sandbox.volume(&format!("reencrypt v.img --encrypt {CHEAP} {detached}"));
    assert_eq!(sandbox.read("v.img").len(), sandbox.read("plain").len());
    let out = sandbox.volume(&format!("export v.img {detached} --output -"));
    assert!(out == sandbox.read("plain"));
}

#[test]
fn killed_while_the_data_move_it_opens_and_goes_on() {
    let sandbox = sandbox();
    let plain = sandbox.read("plain").repeat(6);
    sandbox.write("plain", &plain);
    let encrypt = format!("reencrypt v.img --encrypt {CHEAP} --passphrase-file one");
    sandbox.write("v.img", &plain);
    let begun = std::time::Instant::now();
    sandbox.volume(&encrypt);
    let whole = begun.elapsed().as_millis() as u64;
    let mut cut = 0;
    for pause in (0..20).map(|step| step * whole / 20) {
        sandbox.write("v.img", &plain);
        let mut child = sandbox
            .volume_command(&encrypt)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(pause));
        child.kill().unwrap();
        let ended = child.wait().unwrap().success();
        let side = sandbox.path("v.img.cryptmark-header");
        cut += u32::from(!ended && (side.exists() || !sandbox.read("v.img").starts_with(&plain)));
        if side.exists() {
            // Before the header says anything there is nothing to go on with.
            let begun = sandbox
                .volume_command("info v.img")
                .output()
                .unwrap()
                .status
                .success();
            if begun {
                // There may be no room for the header yet: the data are as they were.
                let export = "export v.img --passphrase-file one --output -";
                let output = sandbox.volume_command(export).output().unwrap();
                let data = match output.status.code() {
                    Some(0) => output.stdout,
                    Some(4) => sandbox.read("v.img"),
                    other => panic!("after {pause} ms: {other:?}"),
                };
                assert!(data.starts_with(&plain), "after {pause} ms");
                sandbox.volume("reencrypt v.img --passphrase-file one");
            } else {
                assert!(
                    sandbox.read("v.img").starts_with(&plain),
                    "after {pause} ms"
                );
                fs::remove_file(&side).unwrap();
                continue;
            }
        }
        if !sandbox.read("v.img").starts_with(&plain) {
            assert!(holds(&sandbox, "v.img", "one"), "after {pause} ms");
            assert!(!side.exists());
            sandbox.volume(&format!(
                "reencrypt v.img --passphrase-file one --yes {CHEAP}"
            ));
            assert!(holds(&sandbox, "v.img", "one"), "after {pause} ms");
        }
    }
    println!("{cut} encryptions were cut");
    assert!(cut > 0);
}

/// Bytes behind the last sector are no data, whatever size sectors have.
#[test]
fn a_tail_stays_what_it_is_when_sectors_become_smaller() {
    let sandbox = sandbox();
    sandbox.volume(&format!(
        "create v.img --size 8MiB --offset 2MiB --sector-size 4096 --passphrase-file one {CHEAP}"
    ));
    sandbox.volume("import v.img --passphrase-file one --input plain");
    let mut file = fs::File::options()
        .append(true)
        .open(sandbox.path("v.img"))
        .unwrap();
    file.write_all(&[0x55; 1000]).unwrap();
    drop(file);
    let export = "export v.img --passphrase-file one --output -";
    let before = sandbox.volume(export);
    for size in [512, 4096, 512] {
        sandbox.volume(&format!(
            "reencrypt v.img --passphrase-file one --sector-size {size} {CHEAP}"
        ));
        assert!(sandbox.volume(export) == before, "{size}");
        assert!(sandbox.read("v.img").ends_with(&[0x55; 1000]), "{size}");
    }
}

#[test]
fn a_volume_without_a_header_is_noise() {
    let sandbox = sandbox();
    sandbox.volume("create v.img --type plain --size 6MiB");
    let bytes = sandbox.read("v.img");
    assert!(bytes.len() == 6 << 20 && !bytes.chunks(512).any(|part| part == [0; 512]));
    let open = "v.img --type plain --passphrase-file one";
    sandbox.refused(4, "v.img", &format!("import {open} --input plain"));
    sandbox.volume(&format!("import {open} --input plain --yes"));
    let out = sandbox.volume(&format!("export {open} --output -"));
    assert!(out.starts_with(&sandbox.read("plain")));
    sandbox.refused(4, "v.img", "create v.img --type plain --size 6MiB");
    sandbox.refused(2, "v.img", "create v.img --type plain --label mine --yes");
}

#[test]
fn plain_mode_knows_the_defaults_of_both_eras() {
    if !have(&["mkfs.ext4"]) {
        return;
    }
    let sandbox = sandbox();
    sandbox.write_zeros("file-system", 8 << 20);
    sandbox.tool("mkfs.ext4", &["-q", "-L", "treasure", "file-system"]);
    const EARLIER: &str = "-c aes-cbc-essiv:sha256 -s 256 --hash ripemd160";
    for (options, note) in [(EARLIER, true), ("", false)] {
        sandbox.write_zeros("v.img", 8 << 20);
        sandbox.volume(&format!(
            "import v.img --type plain --passphrase-file one --input file-system --yes {options}"
        ));
        let output = sandbox.run("volume open v.img --type plain --passphrase-file one");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains("an ext4 file system \"treasure\""), "{said}");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(told.contains("cryptsetup up to 2.6"), note, "{told}");
        let out = sandbox.volume("export v.img --type plain --passphrase-file one --output -");
        assert!(out == sandbox.read("file-system"));
    }
    let output = sandbox.run("volume open v.img --type plain --passphrase-file two");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("Both were tried"), "{told}");
}
