//! LUKS2 volumes whose sectors have tags: cryptsetup, dm-crypt and dm-integrity take what the
//! engine makes, the engine takes what they make, and each reads what the other wrote.

use crate::sandbox::{sandbox, succeed};
use sha2::{Digest, Sha256};
use testkit::{CHEAP, Sandbox, have, noise};

/// A name, and the options that cryptsetup and the engine both take.
const METHODS: &[(&str, &str)] = &[
    (
        "gcm",
        "--cipher aes-gcm-random --key-size 256 --integrity aead",
    ),
    (
        "gcm192",
        "--cipher aes-gcm-random --key-size 192 --integrity aead",
    ),
    (
        "gcm-plain64",
        "--cipher aes-gcm-plain64 --key-size 128 --integrity aead --sector-size 4096",
    ),
    (
        "aegis",
        "--cipher aegis128-random --key-size 128 --integrity aead",
    ),
    (
        "aegis-4096",
        "--cipher aegis128-plain64 --key-size 128 --integrity aead --sector-size 4096",
    ),
    (
        "chacha",
        "--cipher chacha20-random --key-size 256 --integrity poly1305",
    ),
    (
        "xts-sha256",
        "--cipher aes-xts-plain64 --integrity hmac-sha256 --sector-size 4096",
    ),
    (
        "xts-sha512",
        "--cipher aes-xts-random --integrity hmac-sha512",
    ),
    (
        "cbc-sha1",
        "--cipher aes-cbc-plain64 --key-size 256 --integrity hmac-sha1",
    ),
    (
        "cbc-essiv",
        "--cipher aes-cbc-essiv:sha256 --key-size 256 --integrity hmac-sha256 --sector-size 4096",
    ),
    (
        "serpent",
        "--cipher serpent-xts-plain64 --key-size 512 --integrity hmac-sha256",
    ),
    (
        "none",
        "--cipher aes-xts-random --key-size 512 --integrity none",
    ),
];

/// Bytes that are written at the start, and behind the first area of tags.
const DATA: usize = 1 << 20;
const FAR: u64 = 17 << 20;

/// The sandbox with the secrets; nothing where there is no kernel or no cryptsetup.
fn with_secrets() -> Option<Sandbox> {
    let sandbox = sandbox().filter(|_| have(&["cryptsetup"]))?;
    sandbox.write("out/key", "a passphrase");
    sandbox.write("line", "a passphrase\n");
    Some(sandbox)
}

fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn export(sandbox: &Sandbox, image: &str) -> Vec<u8> {
    sandbox.volume(&format!("export {image} --passphrase-file line --output -"))
}

/// Those that are made here: none whose nonces repeat.
fn made_here() -> Vec<(&'static str, &'static str)> {
    let repeats = |options: &str| options.contains("plain64") && options.contains("aead");
    let all = METHODS.iter().copied();
    all.filter(|(_, options)| !repeats(options)).collect()
}

/// A script that opens every image as `c`, does `action` there, and closes it.
fn each(methods: &[(&str, &str)], action: &str) -> String {
    let one = |(name, _): &(&str, &str)| {
        format!(
            "cryptsetup open --key-file out/key out/{name}.img c >&2 && {action} && \
             cryptsetup close c || exit 9\n"
        )
    };
    methods.iter().map(one).collect()
}

#[test]
fn dm_integrity_takes_what_is_made_here() {
    let Some(sandbox) = with_secrets() else {
        return;
    };
    sandbox.write("out/near", noise(DATA, 1));
    sandbox.write("out/far", noise(DATA, 2));
    let mut sizes = Vec::new();
    let made = made_here();
    for (name, options) in &made {
        sandbox.volume(&format!(
            "create out/{name}.img --size 48MiB {options} {CHEAP} --passphrase-file line"
        ));
        let plain = export(&sandbox, &format!("out/{name}.img"));
        // Where nothing is authenticated, zeros are never written: that they can be read is all.
        assert!(plain.iter().all(|&byte| byte == 0), "{name}");
        sizes.push(plain.len());
    }
    // The kernel reads every sector, and so it finds every tag to be right.
    let action = format!(
        "sha256sum </dev/mapper/c | cut -c1-64 && \
         dd if=out/near of=/dev/mapper/c bs=64k conv=fsync 2>/dev/null && \
         dd if=out/far of=/dev/mapper/c bs=64k seek={} conv=fsync 2>/dev/null",
        FAR / 65536
    );
    let said = succeed(&sandbox, &["--memory", "1GiB"], &each(&made, &action));
    let sums: Vec<_> = said.lines().filter(|line| line.len() == 64).collect();
    assert_eq!(sums.len(), made.len(), "{said}");
    for (((name, _), size), sum) in made.iter().zip(sizes).zip(sums) {
        assert_eq!(sum, sha256(&vec![0; size]), "{name}");
        let plain = export(&sandbox, &format!("out/{name}.img"));
        assert!(plain[..DATA] == noise(DATA, 1), "{name}");
        assert!(plain[FAR as usize..][..DATA] == noise(DATA, 2), "{name}");
    }
}

#[test]
fn what_dm_integrity_makes_is_taken_here() {
    let Some(sandbox) = with_secrets() else {
        return;
    };
    sandbox.write("out/near", noise(DATA, 3));
    let mut script = String::new();
    for (name, options) in METHODS {
        sandbox.write_zeros(format!("out/{name}.img"), 40 << 20);
        script += &format!(
            "cryptsetup luksFormat -q out/{name}.img --type luks2 {options} \
             --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --key-file out/key >&2 || exit 8\n"
        );
    }
    script += &each(
        METHODS,
        "dd if=out/near of=/dev/mapper/c bs=64k conv=fsync 2>/dev/null",
    );
    succeed(&sandbox, &["--memory", "1GiB"], &script);
    let mut expected = Vec::new();
    for (name, _) in METHODS {
        let image = format!("out/{name}.img");
        let mut plain = export(&sandbox, &image);
        assert!(plain[..DATA] == noise(DATA, 3), "{name}");
        sandbox.write("data", noise(DATA, 4));
        sandbox.volume(&format!(
            "import {image} --yes --input data --passphrase-file line"
        ));
        plain[..DATA].copy_from_slice(&noise(DATA, 4));
        expected.push(sha256(&plain));
    }
    let said = succeed(
        &sandbox,
        &["--memory", "1GiB"],
        &each(METHODS, "sha256sum </dev/mapper/c | cut -c1-64"),
    );
    let sums: Vec<_> = said.lines().collect();
    assert_eq!(sums, expected);
}
