//! VeraCrypt and TrueCrypt volumes through their life, as a user leads it.

mod itself;

use std::fs;
use std::process::Stdio;
use testkit::{CHEAP, Expect as _, Sandbox};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");

/// A sandbox with passphrases.
fn sandbox() -> Sandbox {
    let passphrase = |name| format!("passphrase {name}\n");
    let names = ["one", "two", "three", "wrong"].into_iter();
    names.fold(Sandbox::new(PROGRAM), |sandbox, name| {
        sandbox.with_file(name, passphrase(name))
    })
}

/// Opens the normal volume of the tests below.
const V: &str = "v.img --type veracrypt --veracrypt-pim 1 --hash sha512";

/// A VeraCrypt volume with noise in it, which is in `plain`.
fn with_noise(sandbox: &Sandbox, more: &str) {
    let mut state = 1_u64;
    let plain: Vec<u8> = (0..3 << 20)
        .flat_map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state ^ state >> 33).to_le_bytes()
        })
        .collect();
    sandbox.write("plain", plain);
    sandbox.volume(&format!(
        "create {V} --yes --size 24832KiB --cipher aes --quick {more}"
    ));
    sandbox.volume(&format!("import {V} --input plain {more}"));
}

#[test]
fn another_cipher_and_other_keys() {
    let sandbox = sandbox();
    sandbox.write("file", [3; 100]);
    let opens = "--passphrase-file one --keyfile file";
    with_noise(&sandbox, opens);
    let plain = sandbox.read("plain");
    let before = sandbox.read("v.img");
    let reencrypt = format!("reencrypt v.img --type veracrypt --veracrypt-pim 1 {CHEAP} {opens}");
    // There may be a hidden volume.
    let said = sandbox.refused(4, "v.img", &reencrypt);
    assert!(said.contains("hidden"), "{said}");
    sandbox.refused(2, "v.img", &format!("{reencrypt} --yes --sector-size 4096"));
    sandbox.refused(2, "v.img", &format!("{reencrypt} --yes --cipher blowfish"));
    sandbox.refused(3, "v.img", &format!("{reencrypt} --yes --keyfile wrong"));
    sandbox.volume(&format!(
        "{reencrypt} --yes --cipher serpent-aes --hash sha256"
    ));
    assert!(!sandbox.path("v.img.cryptmark-header").exists());
    let opened = format!("v.img --type veracrypt --veracrypt-pim 1 --hash sha256 {opens}");
    let said = String::from_utf8(sandbox.volume(&format!("open {opened}"))).unwrap();
    assert!(said.contains("serpent-aes-xts-plain64"), "{said}");
    for place in ["", "--tcrypt-backup"] {
        assert!(sandbox.volume(&format!("export {opened} {place} --output -")) == plain);
    }
    let after = sandbox.read("v.img");
    assert_eq!(before.len(), after.len());
    let same = before.chunks(512).zip(after.chunks(512)).skip(256);
    let same = same.take(plain.len() / 512).filter(|(old, new)| old == new);
    assert_eq!(same.count(), 0);
}

#[test]
fn killed_while_keys_change_it_opens_and_goes_on() {
    let sandbox = sandbox();
    with_noise(&sandbox, "--passphrase-file one");
    let plain = sandbox.read("plain");
    let original = sandbox.read("v.img");
    let side = sandbox.path("v.img.cryptmark-header");
    let reencrypt = "reencrypt v.img --type veracrypt --veracrypt-pim 1 --passphrase-file one";
    let opened = "v.img --type veracrypt --veracrypt-pim 1 --hash sha512 --passphrase-file one";
    let mut cut = 0;
    for step in 0..40 {
        sandbox.write("v.img", &original);
        let mut child = sandbox
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
            let out = sandbox.volume("export v.img --passphrase-file one --output -");
            assert!(out == plain, "step {step}");
            sandbox.refused(4, "v.img", &format!("resize {opened} --to 32MiB"));
            sandbox.volume(reencrypt);
        }
        assert!(!side.exists());
        assert!(sandbox.volume(&format!("export {opened} --output -")) == plain);
        assert!(sandbox.read("v.img") != original);
        if cut >= 5 {
            break;
        }
    }
    println!("{cut} were cut");
    assert!(cut > 0);
}

#[test]
fn a_normal_volume_with_a_hidden_one() {
    let sandbox = sandbox();
    sandbox.volume(&format!(
        "create {V} --yes --size 8MiB --cipher aes-twofish-serpent --passphrase-file one"
    ));
    // Nothing of it is left empty.
    let image = sandbox.read("v.img");
    assert!(
        !image
            .chunks(4096)
            .any(|block| block.iter().all(|&byte| byte == 0))
    );

    sandbox.write("plain", vec![0x5a; 3 << 20]);
    // The noise of a new volume could be data as well.
    let import = format!("import {V} --passphrase-file one --input plain");
    sandbox.fails(4, &format!("volume {import}"));
    sandbox.volume(&format!("{import} --yes"));
    sandbox.volume(
        "create v.img --yes --type veracrypt --tcrypt-hidden 2MiB --cipher serpent --hash sha256 \
         --veracrypt-pim 2 --outer-pim 1 --passphrase-file one --new-passphrase-file two",
    );
    let hidden = "v.img --type veracrypt --tcrypt-hidden --veracrypt-pim 2 --hash sha256";
    sandbox.volume(&format!(
        "import {hidden} --passphrase-file two --input two --yes"
    ));
    let out = sandbox.volume(&format!("export {V} --passphrase-file one --output -"));
    assert!(out[..3 << 20].iter().all(|&byte| byte == 0x5a));
    let out = sandbox.volume(&format!("export {hidden} --passphrase-file two --output -"));
    assert!(out.len() == 2 << 20 && out.starts_with(b"passphrase two\n"));

    // As much as the outer volume would hold goes over the hidden one, unless
    // that is protected.
    let whole = sandbox.volume(&format!("export {V} --passphrase-file one --output -"));
    sandbox.write("whole", whole);
    let import = format!("import {V} --passphrase-file one --input whole --yes");
    let protection = "--protect-hidden --protection-pim 2 --protection-passphrase-file two";
    sandbox
        .volume_command(&format!("{import} {protection}"))
        .ends(4);
    let out = sandbox.volume(&format!("export {hidden} --passphrase-file two --output -"));
    assert!(out.starts_with(b"passphrase two\n"));

    // Neither passphrase opens the other one.
    sandbox.refused(3, "v.img", &format!("open {V} --passphrase-file two"));
    sandbox.refused(3, "v.img", &format!("open {hidden} --passphrase-file one"));
}

#[test]
fn passphrases_change_and_headers_come_back() {
    let sandbox = sandbox();
    sandbox.volume(&format!(
        "create {V} --yes --size 1MiB --quick --passphrase-file one"
    ));
    sandbox.refused(
        4,
        "v.img",
        &format!("create {V} --size 1MiB --passphrase-file two"),
    );
    sandbox.refused(
        3,
        "v.img",
        &format!("passwd {V} --passphrase-file two --new-passphrase-file three"),
    );
    sandbox.volume(&format!(
        "passwd {V} --passphrase-file one --new-passphrase-file two"
    ));
    sandbox.refused(3, "v.img", &format!("open {V} --passphrase-file one"));
    sandbox.volume(&format!("open {V} --passphrase-file two"));
    sandbox.volume(&format!("open {V} --tcrypt-backup --passphrase-file two"));

    // A backup brings back the passphrase of then.
    sandbox.volume(&format!("header backup {V} --output saved"));
    sandbox.volume(&format!(
        "passwd {V} --passphrase-file two --new-passphrase-file three"
    ));
    sandbox.refused(
        3,
        "v.img",
        &format!("header restore {V} --input saved --passphrase-file three"),
    );
    // Nobody can tell whose header it is that opens with neither.
    let restore = format!("header restore {V} --input saved --passphrase-file two");
    sandbox.refused(4, "v.img", &restore);
    sandbox.volume(&format!("{restore} --yes"));
    sandbox.volume(&format!("open {V} --passphrase-file two"));
    sandbox.refused(
        3,
        "v.img",
        &format!("open {V} --tcrypt-backup --passphrase-file three"),
    );

    let path = sandbox.path("v.img");
    let mut image = fs::read(&path).unwrap();
    image[..512].fill(0xee);
    fs::write(&path, image).unwrap();
    sandbox.refused(3, "v.img", &format!("open {V} --passphrase-file two"));
    sandbox.volume(&format!("header repair {V} --passphrase-file two"));
    sandbox.volume(&format!("open {V} --passphrase-file two"));
}

#[test]
fn volumes_grow_with_what_they_hold() {
    let sandbox = sandbox();
    sandbox.volume(&format!(
        "create {V} --yes --size 2MiB --passphrase-file one"
    ));
    let before = sandbox.volume(&format!("export {V} --passphrase-file one --output -"));
    sandbox.refused(
        2,
        "v.img",
        &format!("resize {V} --to 1MiB --passphrase-file one"),
    );
    sandbox.refused(
        3,
        "v.img",
        &format!("resize {V} --to 3MiB --passphrase-file wrong"),
    );
    sandbox.volume(&format!("resize {V} --to 3MiB --passphrase-file one"));
    let after = sandbox.volume(&format!("export {V} --passphrase-file one --output -"));
    assert_eq!(after.len(), before.len() + (1 << 20));
    assert!(after.starts_with(&before));
    sandbox.volume(&format!("open {V} --tcrypt-backup --passphrase-file one"));
}

#[test]
fn key_files_alone_and_in_folders() {
    let sandbox = sandbox();
    fs::create_dir(sandbox.path("keys")).unwrap();
    for name in ["a", "b", ".hidden"] {
        fs::write(
            sandbox.path("keys").join(name),
            vec![name.len() as u8; 2000],
        )
        .unwrap();
    }
    let kind = "--type tcrypt --hash ripemd160";
    sandbox.volume(&format!(
        "create v.img {kind} --size 1MiB --cipher serpent --keyfile keys"
    ));
    sandbox.volume(&format!("open v.img {kind} --keyfile keys"));
    sandbox.volume(&format!(
        "open v.img {kind} --keyfile keys/b --keyfile keys/a"
    ));
    sandbox.refused(3, "v.img", &format!("open v.img {kind} --keyfile keys/a"));
    sandbox.refused(
        2,
        "v.img",
        &format!("open v.img {kind} --keyfile keys/none"),
    );
    let said = sandbox.refused(
        2,
        "v.img",
        &format!("open v.img {kind} --keyfile keys --veracrypt-pim 3"),
    );
    assert!(said.contains("--veracrypt-pim has no meaning"), "{said}");
}

#[test]
fn what_was_never_possible_is_said() {
    let sandbox = sandbox();
    sandbox.volume(&format!(
        "create {V} --yes --size 1MiB --quick --passphrase-file one"
    ));
    for (arguments, words) in [
        ("--hash md5", "unknown key derivation `md5`"),
        ("--cipher cast6", "cast6"),
        ("--key-slot 1", "--key-slot has no meaning"),
        ("--veracrypt-pim 4000000000", "4000000000"),
    ] {
        let command = format!("open v.img --type veracrypt --passphrase-file one {arguments}");
        let said = sandbox.refused(2, "v.img", &command);
        assert!(said.contains(words), "{said}");
    }
}

/// With a new file in a folder of key files, the same options would open nothing.
#[test]
fn no_file_is_made_in_a_folder_of_key_files() {
    let sandbox = sandbox();
    fs::create_dir(sandbox.path("keys")).unwrap();
    sandbox.write("keys/k", "key file");
    std::os::unix::fs::symlink("keys", sandbox.path("link")).unwrap();
    let create = "create --type veracrypt --veracrypt-pim 1 --size 2MiB --quick --yes \
                  --passphrase-file one --no-progress";
    sandbox.volume(&format!("{create} v.img --keyfile keys"));
    for line in [
        &format!("{create} keys/a --keyfile keys"),
        &format!("{create} keys/a --keyfile ./link/"),
        &format!("{create} link/a --keyfile keys"),
        &format!("{create} ./keys/../keys/a --keyfile one --keyfile keys"),
        &format!("export {V} --passphrase-file one --keyfile keys -o keys/out"),
        &format!("serve {V} --passphrase-file one --keyfile keys --fuse keys/out"),
        &format!("reencrypt {V} --passphrase-file one --keyfile keys --yes --header keys/journal"),
        "create keys/a --type veracrypt --tcrypt-hidden 1MiB --outer-keyfile keys --yes \
         --passphrase-file one --new-passphrase-file two",
    ] {
        let said = sandbox.volume_command(line).fails(2);
        assert!(said.contains("folder of key files"), "{line}: {said}");
        assert_eq!(fs::read_dir(sandbox.path("keys")).unwrap().count(), 1);
    }
    // Names that begin with a dot do not count.
    sandbox.volume(&format!("{create} keys/.a --keyfile keys"));
    sandbox.volume(&format!("open {V} --passphrase-file one --keyfile keys"));
}
