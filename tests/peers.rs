//! Volumes back and forth with the programs that people have: cryptsetup and
//! qemu-img open what is made here, and the other way round.

use block::TestFile;
use std::fs;
use testkit::{Sandbox, have};

const PASSPHRASE: &str = "a passphrase, with spaces and ümlauts";
const OTHER: &str = "another one";

/// A sandbox with the two passphrases, as lines and as they are.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_cryptmark"));
    for (name, text) in [("one", PASSPHRASE), ("two", OTHER), ("wrong", "no")] {
        sandbox.write(name, text);
        sandbox.write(format!("{name}.line"), format!("{text}\n"));
    }
    sandbox
}

/// Whether cryptsetup opens `image` with the passphrase in `file`.
fn cryptsetup_opens(sandbox: &Sandbox, image: &str, file: &str) -> bool {
    let arguments = ["open", "--test-passphrase", image, "--key-file", file];
    let output = sandbox.command("cryptsetup", &arguments).output().unwrap();
    match output.status.code() {
        Some(0) => true,
        Some(2) => false,
        _ => panic!("{}", String::from_utf8_lossy(&output.stderr)),
    }
}

fn we_open(sandbox: &Sandbox, image: &str, file: &str) -> bool {
    let line = format!("{file}.line");
    let arguments = ["volume", "open", image, "--passphrase-file", &line];
    match sandbox.run(&arguments).status.code() {
        Some(0) => true,
        Some(3) => false,
        other => panic!("{other:?}"),
    }
}

fn both_open(sandbox: &Sandbox, image: &str, file: &str) -> bool {
    let ours = we_open(sandbox, image, file);
    assert_eq!(
        cryptsetup_opens(sandbox, image, file),
        ours,
        "{image} {file}"
    );
    ours
}

/// Cheap key derivations: what is tested is the format.
const CHEAP_PBKDF2: &[&str] = &["--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000"];
const CHEAP_ARGON2: &[&str] = &["--pbkdf-force-iterations", "4", "--pbkdf-memory", "1024"];

#[test]
fn cryptsetup_opens_what_is_created_here() {
    if !have(&["cryptsetup"]) {
        return;
    }
    let sandbox = sandbox();
    let argon2i: Vec<&str> = [CHEAP_ARGON2, &["--pbkdf", "argon2i"]].concat();
    let cases: &[(&str, &[&str], &[&str])] = &[
        ("luks2", &[], CHEAP_ARGON2),
        ("luks2", &["--label", "mine", "--subsystem", "s"], &argon2i),
        ("luks2", &["--sector-size", "4096"], CHEAP_PBKDF2),
        ("luks2", &["--cipher", "serpent-xts-plain64"], CHEAP_PBKDF2),
        (
            "luks2",
            &["--cipher", "aes-cbc-essiv:sha256", "--key-size", "256"],
            CHEAP_PBKDF2,
        ),
        (
            "luks2",
            &[
                "--cipher",
                "xchacha20,aes-adiantum-plain64",
                "--hash",
                "sha512",
            ],
            CHEAP_PBKDF2,
        ),
        ("luks2", &["--offset", "1MiB"], CHEAP_PBKDF2),
        ("luks1", &[], CHEAP_PBKDF2),
        (
            "luks1",
            &["--hash", "sha512", "--key-size", "256"],
            CHEAP_PBKDF2,
        ),
        (
            "luks1",
            &["--cipher", "aes-cbc-essiv:sha256", "--hash", "ripemd160"],
            CHEAP_PBKDF2,
        ),
        (
            "luks1",
            &["--uuid", "11111111-2222-3333-4444-555555555555"],
            CHEAP_PBKDF2,
        ),
    ];
    for (number, (kind, options, kdf)) in cases.iter().enumerate() {
        let image = format!("{number}.img");
        let create = [
            &["create", &image, "--type", kind, "--size", "24MiB"],
            *options,
            kdf,
            &["--passphrase-file", "one.line"],
        ];
        sandbox.volume(&create.concat());
        assert!(both_open(&sandbox, &image, "one"), "{kind} {options:?}");
        assert!(!both_open(&sandbox, &image, "wrong"), "{kind} {options:?}");
    }
    let dump = sandbox.tool("cryptsetup", &["luksDump", "1.img"]);
    assert!(dump.contains("mine") && dump.contains("argon2i"), "{dump}");
}

#[test]
fn what_cryptsetup_creates_opens_here() {
    if !have(&["cryptsetup"]) {
        return;
    }
    let sandbox = sandbox();
    let cases: &[&[&str]] = &[
        &["--type", "luks1"],
        &[
            "--type",
            "luks1",
            "--hash",
            "sha512",
            "--cipher",
            "aes-cbc-plain64",
        ],
        &["--type", "luks2"],
        &[
            "--type",
            "luks2",
            "--sector-size",
            "4096",
            "--label",
            "theirs",
        ],
        &[
            "--type",
            "luks2",
            "--luks2-metadata-size",
            "64k",
            "--pbkdf",
            "argon2id",
        ],
    ];
    for (number, options) in cases.iter().enumerate() {
        let image = format!("{number}.img");
        sandbox.write_zeros(&image, 24 << 20);
        let argon2 = options.contains(&"argon2id");
        let cheap = if argon2 {
            CHEAP_ARGON2
        } else {
            &["--iter-time", "10"]
        };
        let pbkdf2: &[&str] = match argon2 || options.contains(&"luks1") {
            true => &[],
            false => &["--pbkdf", "pbkdf2"],
        };
        let format = [
            &["luksFormat", "--batch-mode", &image, "--key-file", "one"],
            *options,
            cheap,
            pbkdf2,
        ];
        sandbox.tool("cryptsetup", &format.concat());
        assert!(both_open(&sandbox, &image, "one"), "{options:?}");
        assert!(!both_open(&sandbox, &image, "wrong"), "{options:?}");
    }
}

#[test]
fn keys_and_labels_are_edited_by_turns() {
    if !have(&["cryptsetup"]) {
        return;
    }
    let sandbox = sandbox();
    for kind in ["luks1", "luks2"] {
        let image = format!("{kind}.img");
        let ours = ["--passphrase-file", "one.line"];
        let create = ["create", &image, "--type", kind, "--size", "24MiB"];
        sandbox.volume(&[&create, CHEAP_PBKDF2, &ours].concat());
        // A key of ours, killed by them.
        let add = ["key", "add", &image, "--new-passphrase-file", "two.line"];
        sandbox.volume(&[&add, CHEAP_PBKDF2, &ours].concat());
        assert!(both_open(&sandbox, &image, "two"));
        sandbox.tool(
            "cryptsetup",
            &["luksKillSlot", "-q", &image, "0", "--key-file", "two"],
        );
        assert!(!both_open(&sandbox, &image, "one"));
        // A key of theirs, changed by us.
        let theirs = ["luksAddKey", &image, "one", "--key-file", "two"];
        sandbox.tool("cryptsetup", &[&theirs, CHEAP_PBKDF2].concat());
        assert!(both_open(&sandbox, &image, "one"));
        sandbox.write("three.line", "a third\n");
        sandbox.write("three", "a third");
        let passwd = ["passwd", &image, "--new-passphrase-file", "three.line"];
        sandbox.volume(&[&passwd, CHEAP_PBKDF2, &ours].concat());
        assert!(!both_open(&sandbox, &image, "one") && both_open(&sandbox, &image, "three"));
        // One of ours, changed by them, and killed by us.
        let change = ["luksChangeKey", &image, "one", "--key-file", "three"];
        sandbox.tool("cryptsetup", &[&change, CHEAP_PBKDF2].concat());
        assert!(both_open(&sandbox, &image, "one") && !both_open(&sandbox, &image, "three"));
        sandbox.volume(&[&["key", "kill", &image], &ours[..]].concat());
        assert!(!both_open(&sandbox, &image, "one") && both_open(&sandbox, &image, "two"));
    }
    sandbox.tool("cryptsetup", &["config", "luks2.img", "--label", "theirs"]);
    let info = sandbox.volume(&["info", "luks2.img", "--json"]);
    let info: serde_json::Value = serde_json::from_slice(&info).unwrap();
    assert_eq!(info["label"], "theirs");
    assert_eq!(info["copies"], "both are good");
}

/// A LUKS1 volume of either side, made LUKS2 by either side, says the same, and
/// becomes LUKS1 again.
#[test]
fn converted_volumes_open_on_both_sides() {
    if !have(&["cryptsetup"]) {
        return;
    }
    let sandbox = sandbox();
    let cases: &[&[&str]] = &[
        &[],
        &["--hash", "sha512", "--key-size", "256"],
        &["--cipher", "aes-cbc-essiv:sha256", "--hash", "sha1"],
        &["--hash", "ripemd160"],
    ];
    for (number, options) in cases.iter().enumerate() {
        let image = format!("{number}.img");
        let create = ["create", &image, "--type", "luks1", "--size", "8MiB"];
        let ours = ["--passphrase-file", "one.line"];
        sandbox.volume(&[&create, *options, CHEAP_PBKDF2, &ours].concat());
        let theirs = ["luksAddKey", &image, "two", "--key-file", "one"];
        sandbox.tool("cryptsetup", &[&theirs, CHEAP_PBKDF2].concat());
        let twin = format!("{number}-twin.img");
        fs::copy(sandbox.path(&image), sandbox.path(&twin)).unwrap();
        sandbox.volume(&["convert", &image, "--type", "luks2"]);
        sandbox.tool("cryptsetup", &["convert", "-q", &twin, "--type", "luks2"]);
        for file in ["one", "two"] {
            assert!(both_open(&sandbox, &image, file), "{options:?}");
            assert!(both_open(&sandbox, &twin, file), "{options:?}");
        }
        assert!(!both_open(&sandbox, &image, "wrong"), "{options:?}");
        // But for the places of key material, which are free to choose.
        let [of_ours, of_theirs] = [&image, &twin].map(|image| {
            let json = ["luksDump", "--dump-json-metadata", image];
            let json = sandbox.tool("cryptsetup", &json);
            let mut json: serde_json::Value = serde_json::from_str(&json).unwrap();
            for keyslot in json["keyslots"].as_object_mut().unwrap().values_mut() {
                keyslot["area"]["offset"].take();
            }
            json
        });
        assert_eq!(of_ours, of_theirs, "{options:?}");
        // Back again, what the other side has converted, and cryptsetup goes on with it.
        sandbox.volume(&["convert", &twin, "--type", "luks1"]);
        for file in ["one", "two"] {
            assert!(both_open(&sandbox, &twin, file), "{options:?}");
        }
        let dump = sandbox.tool("cryptsetup", &["luksDump", &twin]);
        assert!(dump.contains("Version:       \t1"), "{dump}");
        let add = ["luksAddKey", &twin, "wrong", "--key-file", "two"];
        sandbox.tool("cryptsetup", &[&add, CHEAP_PBKDF2].concat());
        assert!(both_open(&sandbox, &twin, "wrong"), "{options:?}");
        assert!(both_open(&sandbox, &twin, "one"), "{options:?}");
        // What is converted is kept by either side.
        let add = ["luksAddKey", &image, "wrong", "--key-file", "two"];
        sandbox.tool("cryptsetup", &[&add, CHEAP_PBKDF2].concat());
        assert!(both_open(&sandbox, &image, "wrong"), "{options:?}");
    }
}

#[test]
fn qemu_img_reads_and_writes_the_same_luks1() {
    if !have(&["qemu-img"]) {
        return;
    }
    let sandbox = sandbox();
    let mut plain = vec![0; 3 << 20];
    TestFile::content(1, 0, &mut plain);
    sandbox.write("plain", &plain);
    let secret = ["--object", "secret,id=s,file=one"];
    let options = |image: &str| format!("driver=luks,key-secret=s,file.filename={image}");

    let cases: &[&[&str]] = &[
        &[],
        &["--cipher", "serpent-xts-plain64", "--hash", "sha512"],
        &["--cipher", "twofish-cbc-plain64"],
        &["--cipher", "aes-cbc-essiv:sha256", "--key-size", "128"],
        &["--cipher", "cast5-cbc-plain64"],
    ];
    for (number, cipher) in cases.iter().enumerate() {
        let image = format!("ours{number}.img");
        let passphrase = ["--passphrase-file", "one.line"];
        let create = ["create", &image, "--type", "luks1", "--size", "5MiB"];
        sandbox.volume(&[&create, *cipher, CHEAP_PBKDF2, &passphrase].concat());
        let import = ["import", &image, "--input", "plain"];
        sandbox.volume(&[&import[..], &passphrase].concat());
        let convert = [
            "convert",
            "--image-opts",
            &options(&image),
            "-O",
            "raw",
            "out",
        ];
        sandbox.tool(
            "qemu-img",
            &[&convert[..1], &secret, &convert[1..]].concat(),
        );
        let out = sandbox.read("out");
        assert!(out[..plain.len()] == plain[..], "{cipher:?}");
    }

    // qemu-img times the derivation by ticks, and fails where a fast hash takes none.
    for (number, made_of) in [
        "cipher-alg=aes-256,hash-alg=sha512",
        "cipher-alg=serpent-256,hash-alg=sha512",
    ]
    .iter()
    .enumerate()
    {
        let image = format!("theirs{number}.img");
        let format = format!("key-secret=s,iter-time=10,{made_of}");
        let create = ["create", "-f", "luks", "-o", &format, &image, "4M"];
        sandbox.tool("qemu-img", &[&create[..1], &secret, &create[1..]].concat());
        let target = options(&image);
        let convert = [
            "convert",
            "-n",
            "-f",
            "raw",
            "plain",
            "--target-image-opts",
            &target,
        ];
        sandbox.tool(
            "qemu-img",
            &[&convert[..1], &secret, &convert[1..]].concat(),
        );
        let passphrase = ["--passphrase-file", "one.line"];
        let export = ["export", &image, "--output", "-"];
        let out = sandbox.volume(&[&export[..], &passphrase].concat());
        assert!(out[..plain.len()] == plain[..], "{made_of}");
    }
}

#[test]
fn nothing_is_left_of_what_failed() {
    let sandbox = sandbox();
    let create = [
        "volume",
        "create",
        "x.img",
        "--size",
        "1MiB",
        "--passphrase-file",
        "one.line",
    ];
    let output = sandbox.run(&create);
    assert_eq!(output.status.code(), Some(2));
    assert!(!sandbox.path("x.img").exists());
}
