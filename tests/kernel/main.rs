//! The real dm-crypt, in a User-Mode Linux kernel, on volumes that are made
//! here; and here, volumes that cryptsetup made there.

mod boot;

use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use testkit::{CHEAP, Sandbox, noise};

const PASSPHRASE: &str = "a passphrase, with spaces";

/// A volume: how it is made, how we open it, how cryptsetup opens it.
struct Case {
    name: &'static str,
    /// Options of `volume create`; nothing where there is no header to make.
    create: &'static str,
    /// Our options to open it.
    ours: &'static str,
    /// cryptsetup's.
    theirs: &'static str,
}

/// Files: `line` has the passphrase and a newline, `raw` has it alone, `key`
/// has 64 bytes of noise, `loopaes` 65 lines, `keyfile` some bytes.
const CASES: &[Case] = &[
    Case {
        name: "luks2",
        create: "--type luks2 --size 24MiB",
        ours: "--passphrase-file line",
        theirs: "--key-file raw",
    },
    Case {
        name: "luks2-4096",
        create: "--type luks2 --size 24MiB --sector-size 4096 --cipher serpent-xts-plain64",
        ours: "--passphrase-file line",
        theirs: "--key-file raw",
    },
    Case {
        name: "luks2-adiantum",
        create: "--type luks2 --size 24MiB --cipher xchacha20,aes-adiantum-plain64",
        ours: "--passphrase-file line",
        theirs: "--key-file raw",
    },
    Case {
        name: "luks2-lrw",
        create: "--type luks2 --size 24MiB --cipher twofish-lrw-benbi --key-size 384",
        ours: "--passphrase-file line",
        theirs: "--key-file raw",
    },
    Case {
        name: "luks1",
        create: "--type luks1 --size 8MiB --cipher aes-cbc-essiv:sha256 --hash sha512",
        ours: "--passphrase-file line",
        theirs: "--key-file raw",
    },
    Case {
        name: "luks1-camellia",
        create: "--type luks1 --size 8MiB --cipher camellia-xts-plain64",
        ours: "--passphrase-file line",
        theirs: "--key-file raw",
    },
    Case {
        name: "luks1-blowfish",
        create: "--type luks1 --size 8MiB --cipher blowfish-cbc-plain64 --key-size 256",
        ours: "--passphrase-file line",
        theirs: "--key-file raw",
    },
    Case {
        name: "plain",
        create: "",
        ours: "--type plain --cipher aes-xts-plain64 --key-size 512 --hash sha256 --passphrase-file line --offset 8 --skip 5",
        theirs: "--type plain --cipher aes-xts-plain64 --key-size 512 --hash sha256 --offset 8 --skip 5 <line",
    },
    Case {
        name: "plain-large-iv",
        create: "",
        ours: "--type plain --cipher cast6-cbc-essiv:sha256 --key-size 256 --sector-size 4096 --iv-large-sectors --skip 8 --key-file key",
        theirs: "--type plain --cipher cast6-cbc-essiv:sha256 --key-size 256 --sector-size 4096 --iv-large-sectors --skip 8 --key-file key",
    },
    Case {
        name: "cryptoloop",
        create: "",
        ours: "--type cryptoloop --cipher serpent --key-derivation debian-rmd160 --passphrase-file line",
        theirs: "--type plain --cipher serpent-cbc-plain --key-size 256 --hash ripemd160 <line",
    },
    Case {
        name: "loopaes",
        create: "",
        ours: "--type loopaes --key-size 256 --key-file loopaes",
        theirs: "--type loopaes --key-size 256 --key-file loopaes",
    },
    Case {
        name: "truecrypt",
        create: "--type tcrypt --size 3MiB --cipher twofish-serpent --hash ripemd160 --quick",
        ours: "--type tcrypt --hash ripemd160 --passphrase-file line",
        theirs: "--type tcrypt --disable-veracrypt <line",
    },
    Case {
        name: "veracrypt",
        create: "--type veracrypt --yes --size 3MiB --cipher aes-twofish-serpent --veracrypt-pim 1 --quick",
        ours: "--type veracrypt --veracrypt-pim 1 --hash sha512 --passphrase-file line",
        theirs: "--type tcrypt --veracrypt --veracrypt-pim 1 --hash sha512 <line",
    },
    Case {
        name: "veracrypt-keyfile",
        create: "--type veracrypt --yes --size 3MiB --cipher camellia --hash sha256 --veracrypt-pim 1 --keyfile keyfile --quick",
        ours: "--type veracrypt --veracrypt-pim 1 --hash sha256 --keyfile keyfile --passphrase-file line",
        theirs: "--type tcrypt --veracrypt --veracrypt-pim 1 --hash sha256 --key-file keyfile <line",
    },
];

/// What cryptsetup formats there, and how we open that.
const THEIRS: &[(&str, &str)] = &[
    (
        "f-luks1",
        "--type luks1 --cipher twofish-cbc-essiv:sha256 --key-size 256",
    ),
    ("f-luks2", "--type luks2 --pbkdf pbkdf2"),
    (
        "f-luks2-4096",
        "--type luks2 --pbkdf pbkdf2 --sector-size 4096 --cipher aes-cbc-plain64 --key-size 192",
    ),
    (
        "f-luks2-capi",
        "--type luks2 --pbkdf pbkdf2 --cipher capi:xts(serpent)-plain64",
    ),
    (
        "f-luks2-hmac",
        "--type luks2 --pbkdf pbkdf2 --sector-size 4096 --integrity hmac-sha256",
    ),
    (
        "f-luks2-gcm",
        "--type luks2 --pbkdf pbkdf2 --cipher aes-gcm-random --key-size 256 --integrity aead",
    ),
];

/// Data for every volume: no two sectors are equal.
const DATA: usize = 1 << 20;

/// A sandbox with secrets.
fn sandbox() -> Sandbox {
    let lines: String = (0..65)
        .map(|line| format!("{line:02}-{:060}\n", line * 7919))
        .collect();
    Sandbox::new(env!("CARGO_BIN_EXE_cryptmark"))
        .with_file("line", format!("{PASSPHRASE}\n"))
        .with_file("raw", PASSPHRASE)
        .with_file("key", noise(64, 3))
        .with_file("keyfile", noise(3000, 5))
        .with_file("loopaes", lines)
}

fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn dm_crypt_reads_what_is_written_here_and_the_other_way_round() {
    let sandbox = sandbox();
    let mut script = String::new();
    let mut expected = Vec::new();
    for (seed, case) in (100..).zip(CASES) {
        let image = format!("{}.img", case.name);
        sandbox.write("data", noise(DATA, seed));
        if case.create.is_empty() {
            sandbox.write(&image, noise(DATA + (1 << 20), seed));
        } else {
            let luks = case.name.starts_with("luks");
            let cheap = if luks { CHEAP } else { "" };
            let options = format!("{} {cheap} --passphrase-file line", case.create);
            sandbox.volume(&format!("create {image} {options}"));
        }
        sandbox.volume(&format!("import {image} {} --input data --yes", case.ours));
        if case.name == "veracrypt" {
            let other = format!("{} --cipher serpent-twofish-aes --yes {CHEAP}", case.ours);
            sandbox.volume(&format!("reencrypt {image} {other}"));
        }
        let plain = sandbox.volume(&format!("export {image} {} --output -", case.ours));
        assert!(plain[..DATA] == noise(DATA, seed)[..], "{}", case.name);
        expected.push((case.name, digest(&plain)));
        let _ = writeln!(
            script,
            "cryptsetup open {image} x {} && sha256sum /dev/mapper/x >{}.sum; cryptsetup close x",
            case.theirs, case.name
        );
    }
    sandbox.write("data", noise(DATA, 1));
    for (name, options) in THEIRS {
        let image = format!("{name}.img");
        sandbox.write_zeros(&image, 20 << 20);
        let _ = writeln!(
            script,
            "cryptsetup luksFormat -q {image} {} --iter-time 10 --key-file raw && \
             cryptsetup open {image} x --key-file raw && \
             dd if=data of=/dev/mapper/x bs=1M conv=fsync && cryptsetup close x",
            options.replace('(', "\\(").replace(')', "\\)")
        );
    }
    if boot::run(sandbox.directory(), &script).is_none() {
        return;
    }
    let log = sandbox.read_text("log");
    for (name, digest) in &expected {
        let sum = read(&sandbox.path(format!("{name}.sum")));
        assert_eq!(
            sum.split(' ').next(),
            Some(digest.as_str()),
            "{name}\n{log}"
        );
    }
    for (name, _) in THEIRS {
        let plain = sandbox.volume(&format!(
            "export {name}.img --passphrase-file line --output -"
        ));
        assert!(plain[..DATA] == noise(DATA, 1)[..], "{name}\n{log}");
    }
    write_back(&sandbox);
    println!(
        "{} volumes of ours, {} of cryptsetup's",
        expected.len(),
        THEIRS.len()
    );
}

/// Writes into what cryptsetup formatted, and lets it read that; one volume as
/// it is, and once more after it has become LUKS2 here.
fn write_back(sandbox: &Sandbox) {
    let mut script = String::new();
    sandbox.write("data", noise(DATA, 2));
    fs::copy(sandbox.path("f-luks1.img"), sandbox.path("converted.img")).unwrap();
    sandbox.volume("convert converted.img --type luks2");
    let names: Vec<&str> = THEIRS
        .iter()
        .map(|(name, _)| *name)
        .chain(["converted"])
        .collect();
    for name in &names {
        let image = format!("{name}.img");
        let import = "--passphrase-file line --input data --yes";
        sandbox.volume(&format!("import {image} {import}"));
        let _ = writeln!(
            script,
            "cryptsetup open {image} x --key-file raw && head -c {DATA} /dev/mapper/x | sha256sum >{name}.back; \
             cryptsetup close x"
        );
    }
    fs::remove_file(sandbox.path("end")).unwrap();
    boot::run(sandbox.directory(), &script);
    for name in &names {
        let sum = read(&sandbox.path(format!("{name}.back")));
        let expected = digest(&noise(DATA, 2));
        let log = read(&sandbox.path("log"));
        assert_eq!(
            sum.split(' ').next(),
            Some(expected.as_str()),
            "{name}\n{log}"
        );
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
