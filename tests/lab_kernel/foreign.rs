//! BitLocker and FileVault 2: cryptsetup and dm-crypt read what the engine reads, and what it
//! writes.

use crate::sandbox::{run, sandbox};
use crate::{bitlk, fvault2};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;
use testkit::{Sandbox, have, noise};

/// What the kernel shows of `image` under the secret in `key`.
fn digest(sandbox: &Sandbox, kind: &str, image: &Path) -> String {
    let image = image.to_str().unwrap();
    let script = format!(
        "cryptsetup open --type {kind} --readonly --key-file out/key /dev/ubda c >&2 &&
         sha256sum /dev/mapper/c | cut -c1-64; cryptsetup close c"
    );
    let output = run(sandbox, &["--disk", image, "--memory", "1GiB"], &script);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn bitlocker() {
    let Some(sandbox) = sandbox() else { return };
    if !have(&["cryptsetup"]) {
        return;
    }
    sandbox.write("out/key", bitlk::RECOVERY);
    sandbox.write("recovery", format!("{}\n", bitlk::RECOVERY));
    let image = sandbox.path("out/v.img");
    let recipes = (0x8000..=0x8005).map(|method| (method, cipher::SectorSize::B512));
    for (method, sector_size) in recipes.chain([(0x8004, cipher::SectorSize::B4096)]) {
        let recipe = bitlk::Recipe {
            method,
            sector_size,
            up_to: 8 << 20,
            protectors: vec![bitlk::protection::RECOVERY],
            ..bitlk::Recipe::default()
        };
        let made = recipe.make(noise(8 << 20, 3));
        fs::write(&image, &made.image).unwrap();
        let read = digest(&sandbox, "bitlk", &image);
        assert_eq!(read, sha256(&made.plaintext), "{method:#x}");
        let mut written = made.plaintext;
        written[5 << 20..].copy_from_slice(&noise(3 << 20, 9));
        sandbox.write("written", &written);
        sandbox.volume("import out/v.img --yes --input written --passphrase-file recovery");
        let read = digest(&sandbox, "bitlk", &image);
        assert_eq!(read, sha256(&written), "{method:#x}");
    }
}

#[test]
fn filevault() {
    let Some(sandbox) = sandbox() else { return };
    if !have(&["cryptsetup"]) {
        return;
    }
    let passphrase = fvault2::PASSPHRASES[0];
    sandbox.write("out/key", passphrase);
    sandbox.write("passphrase", format!("{passphrase}\n"));
    // cryptsetup takes volumes of one extent, and the last block of each kind.
    let places = [(0, 600, 600)];
    let mut blocks = fvault2::metadata();
    blocks.truncate(3);
    blocks.push(fvault2::extents(&places));
    let image = sandbox.path("out/v.img");
    fs::write(&image, fvault2::volume(blocks, &places)).unwrap();
    let plaintext = fvault2::plaintext();
    assert_eq!(digest(&sandbox, "fvault2", &image), sha256(&plaintext));
    let written = noise(plaintext.len(), 4);
    sandbox.write("written", &written);
    sandbox.volume("import out/v.img --yes --input written --passphrase-file passphrase");
    assert_eq!(digest(&sandbox, "fvault2", &image), sha256(&written));
}
