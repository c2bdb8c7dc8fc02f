//! VeraCrypt and TrueCrypt volumes through their life, as a user leads it.

mod itself;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");

/// A folder with passphrases.
struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["one", "two", "three", "wrong"] {
            fs::write(folder.path().join(name), format!("passphrase {name}\n")).unwrap();
        }
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn try_volume(&self, arguments: &str) -> Output {
        Command::new(PROGRAM)
            .arg("volume")
            .args(arguments.split_whitespace())
            .current_dir(self.path())
            .env("XDG_STATE_HOME", self.path().join("state"))
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    fn volume(&self, arguments: &str) -> Vec<u8> {
        let output = self.try_volume(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments}\n{said}");
        output.stdout
    }

    fn refused(&self, code: i32, arguments: &str) -> String {
        let before = fs::read(self.path().join("v.img")).unwrap();
        let output = self.try_volume(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments}\n{said}");
        assert_eq!(said.lines().count(), 2, "{arguments}\n{said}");
        assert!(
            fs::read(self.path().join("v.img")).unwrap() == before,
            "{arguments}"
        );
        said
    }
}

/// Opens the normal volume of the tests below.
const V: &str = "v.img --type veracrypt --veracrypt-pim 1 --hash sha512";

/// A VeraCrypt volume with noise in it, which is in `plain`.
fn with_noise(desk: &Desk, more: &str) {
    let mut state = 1_u64;
    let plain: Vec<u8> = (0..3 << 20)
        .flat_map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state ^ state >> 33).to_le_bytes()
        })
        .collect();
    fs::write(desk.path().join("plain"), plain).unwrap();
    desk.volume(&format!(
        "create {V} --yes --size 24832KiB --cipher aes --quick {more}"
    ));
    desk.volume(&format!("import {V} --input plain {more}"));
}

/// Cheap key derivations for the journal's file.
const CHEAP: &str = "--pbkdf pbkdf2 --pbkdf-force-iterations 1000";

#[test]
fn another_cipher_and_other_keys() {
    let desk = Desk::new();
    fs::write(desk.path().join("file"), [3; 100]).unwrap();
    let opens = "--passphrase-file one --keyfile file";
    with_noise(&desk, opens);
    let plain = fs::read(desk.path().join("plain")).unwrap();
    let before = fs::read(desk.path().join("v.img")).unwrap();
    let reencrypt = format!("reencrypt v.img --type veracrypt --veracrypt-pim 1 {CHEAP} {opens}");
    // There may be a hidden volume.
    let said = desk.refused(4, &reencrypt);
    assert!(said.contains("hidden"), "{said}");
    desk.refused(2, &format!("{reencrypt} --yes --sector-size 4096"));
    desk.refused(2, &format!("{reencrypt} --yes --cipher blowfish"));
    desk.refused(3, &format!("{reencrypt} --yes --keyfile wrong"));
    desk.volume(&format!(
        "{reencrypt} --yes --cipher serpent-aes --hash sha256"
    ));
    assert!(!desk.path().join("v.img.cryptmark-header").exists());
    let opened = format!("v.img --type veracrypt --veracrypt-pim 1 --hash sha256 {opens}");
    let said = String::from_utf8(desk.volume(&format!("open {opened}"))).unwrap();
    assert!(said.contains("serpent-aes-xts-plain64"), "{said}");
    for place in ["", "--tcrypt-backup"] {
        assert!(desk.volume(&format!("export {opened} {place} --output -")) == plain);
    }
    let after = fs::read(desk.path().join("v.img")).unwrap();
    assert_eq!(before.len(), after.len());
    let same = before.chunks(512).zip(after.chunks(512)).skip(256);
    let same = same.take(plain.len() / 512).filter(|(old, new)| old == new);
    assert_eq!(same.count(), 0);
}

#[test]
fn killed_while_keys_change_it_opens_and_goes_on() {
    let desk = Desk::new();
    with_noise(&desk, "--passphrase-file one");
    let plain = fs::read(desk.path().join("plain")).unwrap();
    let original = fs::read(desk.path().join("v.img")).unwrap();
    let side = desk.path().join("v.img.cryptmark-header");
    let reencrypt = "reencrypt v.img --type veracrypt --veracrypt-pim 1 --passphrase-file one";
    let opened = "v.img --type veracrypt --veracrypt-pim 1 --hash sha512 --passphrase-file one";
    let mut cut = 0;
    for step in 0..40 {
        fs::write(desk.path().join("v.img"), &original).unwrap();
        let mut child = Command::new(PROGRAM)
            .arg("volume")
            .args(format!("{reencrypt} --yes {CHEAP}").split_whitespace())
            .current_dir(desk.path())
            .stdin(Stdio::null())
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
            desk.refused(2, &format!("resize {opened} --to 32MiB"));
            desk.volume(reencrypt);
        }
        assert!(!side.exists());
        assert!(desk.volume(&format!("export {opened} --output -")) == plain);
        assert!(fs::read(desk.path().join("v.img")).unwrap() != original);
        if cut >= 5 {
            break;
        }
    }
    println!("{cut} were cut");
    assert!(cut > 0);
}

#[test]
fn a_normal_volume_with_a_hidden_one() {
    let desk = Desk::new();
    desk.volume(&format!(
        "create {V} --yes --size 8MiB --cipher aes-twofish-serpent --passphrase-file one"
    ));
    // Nothing of it is left empty.
    let image = fs::read(desk.path().join("v.img")).unwrap();
    assert!(
        !image
            .chunks(4096)
            .any(|block| block.iter().all(|&byte| byte == 0))
    );

    fs::write(desk.path().join("plain"), vec![0x5a; 3 << 20]).unwrap();
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
    fs::write(desk.path().join("whole"), whole).unwrap();
    let import = format!("import {V} --passphrase-file one --input whole --yes");
    let protected = desk.try_volume(&format!(
        "{import} --protect-hidden --protection-pim 2 --protection-passphrase-file two"
    ));
    assert_eq!(protected.status.code(), Some(4));
    let out = desk.volume(&format!("export {hidden} --passphrase-file two --output -"));
    assert!(out.starts_with(b"passphrase two\n"));

    // Neither passphrase opens the other one.
    desk.refused(3, &format!("open {V} --passphrase-file two"));
    desk.refused(3, &format!("open {hidden} --passphrase-file one"));
}

#[test]
fn passphrases_change_and_headers_come_back() {
    let desk = Desk::new();
    desk.volume(&format!(
        "create {V} --yes --size 1MiB --quick --passphrase-file one"
    ));
    desk.refused(4, &format!("create {V} --size 1MiB --passphrase-file two"));
    desk.refused(
        3,
        &format!("passwd {V} --passphrase-file two --new-passphrase-file three"),
    );
    desk.volume(&format!(
        "passwd {V} --passphrase-file one --new-passphrase-file two"
    ));
    desk.refused(3, &format!("open {V} --passphrase-file one"));
    desk.volume(&format!("open {V} --passphrase-file two"));
    desk.volume(&format!("open {V} --tcrypt-backup --passphrase-file two"));

    // A backup brings back the passphrase of then.
    desk.volume(&format!("header backup {V} --output saved"));
    desk.volume(&format!(
        "passwd {V} --passphrase-file two --new-passphrase-file three"
    ));
    desk.refused(
        3,
        &format!("header restore {V} --input saved --passphrase-file three"),
    );
    // Nobody can tell whose header it is that opens with neither.
    let restore = format!("header restore {V} --input saved --passphrase-file two");
    desk.refused(4, &restore);
    desk.volume(&format!("{restore} --yes"));
    desk.volume(&format!("open {V} --passphrase-file two"));
    desk.refused(
        3,
        &format!("open {V} --tcrypt-backup --passphrase-file three"),
    );

    let path = desk.path().join("v.img");
    let mut image = fs::read(&path).unwrap();
    image[..512].fill(0xee);
    fs::write(&path, image).unwrap();
    desk.refused(3, &format!("open {V} --passphrase-file two"));
    desk.volume(&format!("header repair {V} --passphrase-file two"));
    desk.volume(&format!("open {V} --passphrase-file two"));
}

#[test]
fn volumes_grow_with_what_they_hold() {
    let desk = Desk::new();
    desk.volume(&format!(
        "create {V} --yes --size 2MiB --passphrase-file one"
    ));
    let before = desk.volume(&format!("export {V} --passphrase-file one --output -"));
    desk.refused(2, &format!("resize {V} --to 1MiB --passphrase-file one"));
    desk.refused(3, &format!("resize {V} --to 3MiB --passphrase-file wrong"));
    desk.volume(&format!("resize {V} --to 3MiB --passphrase-file one"));
    let after = desk.volume(&format!("export {V} --passphrase-file one --output -"));
    assert_eq!(after.len(), before.len() + (1 << 20));
    assert!(after.starts_with(&before));
    desk.volume(&format!("open {V} --tcrypt-backup --passphrase-file one"));
}

#[test]
fn key_files_alone_and_in_folders() {
    let desk = Desk::new();
    fs::create_dir(desk.path().join("keys")).unwrap();
    for name in ["a", "b", ".hidden"] {
        fs::write(
            desk.path().join("keys").join(name),
            vec![name.len() as u8; 2000],
        )
        .unwrap();
    }
    let kind = "--type tcrypt --hash ripemd160";
    desk.volume(&format!(
        "create v.img {kind} --size 1MiB --cipher serpent --keyfile keys"
    ));
    desk.volume(&format!("open v.img {kind} --keyfile keys"));
    desk.volume(&format!(
        "open v.img {kind} --keyfile keys/b --keyfile keys/a"
    ));
    desk.refused(3, &format!("open v.img {kind} --keyfile keys/a"));
    desk.refused(2, &format!("open v.img {kind} --keyfile keys/none"));
    let said = desk.refused(
        2,
        &format!("open v.img {kind} --keyfile keys --veracrypt-pim 3"),
    );
    assert!(said.contains("--veracrypt-pim has no meaning"), "{said}");
}

#[test]
fn what_was_never_possible_is_said() {
    let desk = Desk::new();
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
        let said = desk.refused(2, &command);
        assert!(said.contains(words), "{said}");
    }
}
