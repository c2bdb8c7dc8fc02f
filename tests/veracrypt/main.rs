//! VeraCrypt and TrueCrypt volumes through their life, as a user leads it.

mod itself;

use std::fs;
use std::process::Stdio;
use testkit::{CHEAP, Expect as _, Sandbox};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");

/// A sandbox with passphrases.
fn desk() -> Sandbox {
    let passphrase = |name| format!("passphrase {name}\n");
    let names = ["one", "two", "three", "wrong"].into_iter();
    names.fold(Sandbox::new(PROGRAM), |desk, name| {
        desk.with_file(name, passphrase(name))
    })
}

/// Opens the normal volume of the tests below.
const V: &str = "v.img --type veracrypt --veracrypt-pim 1 --hash sha512";

/// A VeraCrypt volume with noise in it, which is in `plain`.
fn with_noise(desk: &Sandbox, more: &str) {
    let mut state = 1_u64;
    let plain: Vec<u8> = (0..3 << 20)
        .flat_map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state ^ state >> 33).to_le_bytes()
        })
        .collect();
    desk.write("plain", plain);
    desk.volume(&format!(
        "create {V} --yes --size 24832KiB --cipher aes --quick {more}"
    ));
    desk.volume(&format!("import {V} --input plain {more}"));
}

#[test]
fn another_cipher_and_other_keys() {
    let desk = desk();
    desk.write("file", [3; 100]);
    let opens = "--passphrase-file one --keyfile file";
    with_noise(&desk, opens);
    let plain = desk.read("plain");
    let before = desk.read("v.img");
    let reencrypt = format!("reencrypt v.img --type veracrypt --veracrypt-pim 1 {CHEAP} {opens}");
    // There may be a hidden volume.
    let said = desk.refused(4, "v.img", &reencrypt);
    assert!(said.contains("hidden"), "{said}");
    desk.refused(2, "v.img", &format!("{reencrypt} --yes --sector-size 4096"));
    desk.refused(2, "v.img", &format!("{reencrypt} --yes --cipher blowfish"));
    desk.refused(3, "v.img", &format!("{reencrypt} --yes --keyfile wrong"));
    desk.volume(&format!(
        "{reencrypt} --yes --cipher serpent-aes --hash sha256"
    ));
    assert!(!desk.path("v.img.cryptmark-header").exists());
    let opened = format!("v.img --type veracrypt --veracrypt-pim 1 --hash sha256 {opens}");
    let said = String::from_utf8(desk.volume(&format!("open {opened}"))).unwrap();
    assert!(said.contains("serpent-aes-xts-plain64"), "{said}");
    for place in ["", "--tcrypt-backup"] {
        assert!(desk.volume(&format!("export {opened} {place} --output -")) == plain);
    }
    let after = desk.read("v.img");
    assert_eq!(before.len(), after.len());
    let same = before.chunks(512).zip(after.chunks(512)).skip(256);
    let same = same.take(plain.len() / 512).filter(|(old, new)| old == new);
    assert_eq!(same.count(), 0);
}

#[test]
fn killed_while_keys_change_it_opens_and_goes_on() {
    let desk = desk();
    with_noise(&desk, "--passphrase-file one");
    let plain = desk.read("plain");
    let original = desk.read("v.img");
    let side = desk.path("v.img.cryptmark-header");
    let reencrypt = "reencrypt v.img --type veracrypt --veracrypt-pim 1 --passphrase-file one";
    let opened = "v.img --type veracrypt --veracrypt-pim 1 --hash sha512 --passphrase-file one";
    let mut cut = 0;
    for step in 0..40 {
        desk.write("v.img", &original);
        let mut child = desk
            .volume_command(&format!("{reencrypt} --yes {CHEAP}"))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Soon after the journal is there, or after a while: there is much to try before.
        while !side.exists() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        std::thread::sleep(std::time::Duration::from_millis(step * 4));
        child.kill().unwrap();
        child.wait().unwrap();
        if side.exists() {
            cut += 1;
            let out = desk.volume("export v.img --passphrase-file one --output -");
            assert!(out == plain, "step {step}");
            desk.refused(2, "v.img", &format!("resize {opened} --to 32MiB"));
            desk.volume(reencrypt);
        }
        assert!(!side.exists());
        assert!(desk.volume(&format!("export {opened} --output -")) == plain);
        assert!(desk.read("v.img") != original);
        if cut >= 5 {
            break;
        }
    }
    println!("{cut} were cut");
    assert!(cut > 0);
}

#[test]
fn a_normal_volume_with_a_hidden_one() {
    let desk = desk();
    desk.volume(&format!(
        "create {V} --yes --size 8MiB --cipher aes-twofish-serpent --passphrase-file one"
    ));
    // Nothing of it is left empty.
    let image = desk.read("v.img");
    assert!(
        !image
            .chunks(4096)
            .any(|block| block.iter().all(|&byte| byte == 0))
    );

    desk.write("plain", vec![0x5a; 3 << 20]);
    desk.volume(&format!("import {V} --passphrase-file one --input plain"));
    desk.volume(
        "create v.img --yes --type veracrypt --tcrypt-hidden 2MiB --cipher serpent --hash sha256 \
         --veracrypt-pim 2 --outer-pim 1 --passphrase-file one --new-passphrase-file two",
    );
    let hidden = "v.img --type veracrypt --tcrypt-hidden --veracrypt-pim 2 --hash sha256";
    desk.volume(&format!(
        "import {hidden} --passphrase-file two --input two"
    ));
    let out = desk.volume(&format!("export {V} --passphrase-file one --output -"));
    assert!(out[..3 << 20] == [0x5a; 3 << 20]);
    let out = desk.volume(&format!("export {hidden} --passphrase-file two --output -"));
    assert!(out.len() == 2 << 20 && out.starts_with(b"passphrase two\n"));

    // As much as the outer volume would hold goes over the hidden one, unless
    // that is protected.
    let whole = desk.volume(&format!("export {V} --passphrase-file one --output -"));
    desk.write("whole", whole);
    let import = format!("import {V} --passphrase-file one --input whole --yes");
    let protection = "--protect-hidden --protection-pim 2 --protection-passphrase-file two";
    desk.volume_command(&format!("{import} {protection}"))
        .ends(4);
    let out = desk.volume(&format!("export {hidden} --passphrase-file two --output -"));
    assert!(out.starts_with(b"passphrase two\n"));

    // Neither passphrase opens the other one.
    desk.refused(3, "v.img", &format!("open {V} --passphrase-file two"));
    desk.refused(3, "v.img", &format!("open {hidden} --passphrase-file one"));
}

#[test]
fn passphrases_change_and_headers_come_back() {
    let desk = desk();
    desk.volume(&format!(
        "create {V} --yes --size 1MiB --quick --passphrase-file one"
    ));
    desk.refused(
        4,
        "v.img",
        &format!("create {V} --size 1MiB --passphrase-file two"),
    );
    desk.refused(
        3,
        "v.img",
        &format!("passwd {V} --passphrase-file two --new-passphrase-file three"),
    );
    desk.volume(&format!(
        "passwd {V} --passphrase-file one --new-passphrase-file two"
    ));
    desk.refused(3, "v.img", &format!("open {V} --passphrase-file one"));
    desk.volume(&format!("open {V} --passphrase-file two"));
    desk.volume(&format!("open {V} --tcrypt-backup --passphrase-file two"));

    // A backup brings back the passphrase of then.
    desk.volume(&format!("header backup {V} --output saved"));
    desk.volume(&format!(
        "passwd {V} --passphrase-file two --new-passphrase-file three"
    ));
    desk.refused(
        3,
        "v.img",
        &format!("header restore {V} --input saved --passphrase-file three"),
    );
    // Nobody can tell whose header it is that opens with neither.
    let restore = format!("header restore {V} --input saved --passphrase-file two");
    desk.refused(4, "v.img", &restore);
    desk.volume(&format!("{restore} --yes"));
    desk.volume(&format!("open {V} --passphrase-file two"));
    desk.refused(
        3,
        "v.img",
        &format!("open {V} --tcrypt-backup --passphrase-file three"),
    );

    let path = desk.path("v.img");
    let mut image = fs::read(&path).unwrap();
    image[..512].fill(0xee);
    fs::write(&path, image).unwrap();
    desk.refused(3, "v.img", &format!("open {V} --passphrase-file two"));
    desk.volume(&format!("header repair {V} --passphrase-file two"));
    desk.volume(&format!("open {V} --passphrase-file two"));
}

#[test]
fn volumes_grow_with_what_they_hold() {
    let desk = desk();
    desk.volume(&format!(
        "create {V} --yes --size 2MiB --passphrase-file one"
    ));
    let before = desk.volume(&format!("export {V} --passphrase-file one --output -"));
    desk.refused(
        2,
        "v.img",
        &format!("resize {V} --to 1MiB --passphrase-file one"),
    );
    desk.refused(
        3,
        "v.img",
        &format!("resize {V} --to 3MiB --passphrase-file wrong"),
    );
    desk.volume(&format!("resize {V} --to 3MiB --passphrase-file one"));
    let after = desk.volume(&format!("export {V} --passphrase-file one --output -"));
    assert_eq!(after.len(), before.len() + (1 << 20));
    assert!(after.starts_with(&before));
    desk.volume(&format!("open {V} --tcrypt-backup --passphrase-file one"));
}

#[test]
fn key_files_alone_and_in_folders() {
    let desk = desk();
    fs::create_dir(desk.path("keys")).unwrap();
    for name in ["a", "b", ".hidden"] {
        fs::write(desk.path("keys").join(name), vec![name.len() as u8; 2000]).unwrap();
    }
    let kind = "--type tcrypt --hash ripemd160";
    desk.volume(&format!(
        "create v.img {kind} --size 1MiB --cipher serpent --keyfile keys"
    ));
    desk.volume(&format!("open v.img {kind} --keyfile keys"));
    desk.volume(&format!(
        "open v.img {kind} --keyfile keys/b --keyfile keys/a"
    ));
    desk.refused(3, "v.img", &format!("open v.img {kind} --keyfile keys/a"));
    desk.refused(
        2,
        "v.img",
        &format!("open v.img {kind} --keyfile keys/none"),
    );
    let said = desk.refused(
        2,
        "v.img",
        &format!("open v.img {kind} --keyfile keys --veracrypt-pim 3"),
    );
    assert!(said.contains("--veracrypt-pim has no meaning"), "{said}");
}

#[test]
fn what_was_never_possible_is_said() {
    let desk = desk();
    desk.volume(&format!(
        "create {V} --yes --size 1MiB --quick --passphrase-file one"
    ));
    for (arguments, words) in [
        ("--hash md5", "unknown key derivation `md5`"),
        ("--cipher cast6", "cast6"),
        ("--key-slot 1", "--key-slot has no meaning"),
        ("--veracrypt-pim 4000000000", "4000000000"),
    ] {
        let command = format!("open v.img --type veracrypt --passphrase-file one {arguments}");
        let said = desk.refused(2, "v.img", &command);
        assert!(said.contains(words), "{said}");
    }
}
