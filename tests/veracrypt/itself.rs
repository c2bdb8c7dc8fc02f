//! VeraCrypt's own console program and this one, each with the other's volumes.
//!
//! No distribution brings it: these tests run where somebody has installed it.

use super::sandbox;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use testkit::Sandbox;

/// Its ciphers, as it names them; lower case gives this program's names.
const CIPHERS: [&str; 15] = [
    "AES",
    "Serpent",
    "Twofish",
    "Camellia",
    "Kuznyechik",
    "AES-Twofish",
    "AES-Twofish-Serpent",
    "Camellia-Kuznyechik",
    "Camellia-Serpent",
    "Kuznyechik-AES",
    "Kuznyechik-Serpent-Camellia",
    "Kuznyechik-Twofish",
    "Serpent-AES",
    "Serpent-Twofish-AES",
    "Twofish-Serpent",
];

/// Its derivations, as it names them and as this program does.
const HASHES: [(&str, &str); 5] = [
    ("sha-512", "sha512"),
    ("sha-256", "sha256"),
    ("whirlpool", "whirlpool"),
    ("blake2s-256", "blake2s-256"),
    ("streebog", "stribog512"),
];

/// Long enough for a PIM of 1.
const PASSPHRASE: &str = "twenty characters, at least";
const HIDDEN: &str = "another one of twenty characters";

/// Slots in which nothing was opened yet: it does not keep those apart that are
/// opened at once.
static SLOT: AtomicU32 = AtomicU32::new(0);

/// Writes the passphrases; `false` where VeraCrypt cannot be had.
fn is_there(sandbox: &Sandbox) -> bool {
    let version = Command::new("veracrypt")
        .args(["--text", "--version"])
        .output();
    let fuse = fs::metadata("/dev/fuse").is_ok();
    if version.is_err() || !fuse || !rustix::process::geteuid().is_root() {
        println!("skipped: no veracrypt, no /dev/fuse, or not root");
        return false;
    }
    sandbox.write("long", PASSPHRASE);
    sandbox.write("hidden", HIDDEN);
    true
}

fn veracrypt(sandbox: &Sandbox, words: &[&str], passphrase: &str) -> Output {
    let mut child = Command::new("veracrypt")
        .args(["--text", "--non-interactive"])
        .args(words)
        .current_dir(sandbox.directory())
        .env("TMPDIR", sandbox.directory())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = child.stdin.take().unwrap();
    let _ = writeln!(line, "{passphrase}");
    drop(line);
    child.wait_with_output().unwrap()
}

/// A volume that VeraCrypt has opened.
struct Open<'a> {
    sandbox: &'a Sandbox,
    file: PathBuf,
}

impl<'a> Open<'a> {
    fn new(sandbox: &'a Sandbox, passphrase: &str, more: &[&str]) -> Result<Self, String> {
        let slot = 1 + SLOT.fetch_add(1, Ordering::Relaxed) % 64;
        let slot = format!("--slot={slot}");
        let words = [
            "--mount",
            &slot,
            "--stdin",
            "--protect-hidden=no",
            "--filesystem=none",
            "--pim=1",
            "--mount-options=nokernelcrypto",
            "v.img",
        ];
        let output = veracrypt(sandbox, &[&words[..], more].concat(), passphrase);
        match output.status.success() {
            true => Ok(Self {
                sandbox,
                file: sandbox.path(".veracrypt_aux_mnt1/volume"),
            }),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let image = self.sandbox.path("v.img");
        veracrypt(self.sandbox, &["--dismount", image.to_str().unwrap()], "");
    }
}

/// What no other place of a volume holds.
fn content(seed: u8, length: usize) -> Vec<u8> {
    (0..length as u32)
        .map(|place| (place.wrapping_mul(2_654_435_761) >> 16) as u8 ^ seed)
        .collect()
}

/// What VeraCrypt reads of the volume is what this program does, and what it
/// writes is read here.
fn is_read_by_both(sandbox: &Sandbox, passphrase: &str, ours: &str, theirs: &[&str]) {
    let export = format!("export v.img --type veracrypt --veracrypt-pim 1 {ours} --output -");
    let seen = sandbox.volume(&export);
    let open =
        Open::new(sandbox, passphrase, theirs).unwrap_or_else(|said| panic!("{ours}: {said}"));
    let mut plain = fs::read(&open.file).unwrap();
    assert!(plain == seen, "{ours}");
    // Its file takes whole sectors only.
    let written = content(7, 136 * 512);
    let file = fs::File::options().write(true).open(&open.file).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &written, 12_288).unwrap();
    drop((file, open));
    plain[12_288..][..written.len()].copy_from_slice(&written);
    assert!(sandbox.volume(&export) == plain, "{ours}");
}

#[test]
fn it_opens_what_is_made_here() {
    let sandbox = sandbox();
    if !is_there(&sandbox) {
        return;
    }
    let sha512 = CIPHERS.map(|cipher| (cipher, HASHES[0]));
    let others = HASHES[1..].iter().map(|hash| ("AES", *hash));
    for (number, (cipher, (theirs, ours))) in sha512.into_iter().chain(others).enumerate() {
        let cipher = cipher.to_lowercase();
        sandbox.volume(&format!(
            "create v.img --size 2MiB --type veracrypt --cipher {cipher} --hash {ours} \
             --veracrypt-pim 1 --passphrase-file long --yes --no-progress"
        ));
        sandbox.write("content", content(number as u8, 300_000));
        let opened = format!("--hash {ours} --passphrase-file long");
        sandbox.volume(&format!(
            "import v.img --type veracrypt --veracrypt-pim 1 {opened} --input content"
        ));
        is_read_by_both(
            &sandbox,
            PASSPHRASE,
            &opened,
            &["--hash", theirs, "--keyfiles="],
        );
        assert!(Open::new(&sandbox, HIDDEN, &["--keyfiles="]).is_err());
    }
}

#[test]
fn its_volumes_are_opened_here() {
    let sandbox = sandbox();
    if !is_there(&sandbox) {
        return;
    }
    sandbox.write("key", content(3, 2000));
    let sha512 = CIPHERS.map(|cipher| (cipher, HASHES[0]));
    let others = HASHES[1..].iter().map(|hash| ("Serpent", *hash));
    for (cipher, (theirs, ours)) in sha512.into_iter().chain(others) {
        let key = if cipher == "AES" { "key" } else { "" };
        let keyfiles = format!("--keyfiles={key}");
        let encryption = format!("--encryption={cipher}");
        let hash = format!("--hash={theirs}");
        let create = [
            "--create",
            "v.img",
            "--stdin",
            "--volume-type=normal",
            "--size=2M",
            "--filesystem=none",
            "--pim=1",
            "--random-source=/dev/urandom",
            &keyfiles,
            &encryption,
            &hash,
        ];
        let _ = fs::remove_file(sandbox.path("v.img"));
        let made = veracrypt(&sandbox, &create, PASSPHRASE);
        let said = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "{cipher}: {said}");
        let mut opened = format!("--hash {ours} --passphrase-file long");
        if !key.is_empty() {
            opened += " --keyfile key";
        }
        is_read_by_both(
            &sandbox,
            PASSPHRASE,
            &opened,
            &["--hash", theirs, &keyfiles],
        );
    }
}

#[test]
fn a_hidden_volume_is_the_same_to_both() {
    let sandbox = sandbox();
    if !is_there(&sandbox) {
        return;
    }
    sandbox.volume(
        "create v.img --size 4MiB --type veracrypt --cipher twofish --veracrypt-pim 1 \
         --passphrase-file long --yes --no-progress",
    );
    sandbox.volume(
        "create v.img --type veracrypt --tcrypt-hidden 1MiB --cipher serpent-aes --hash sha256 \
         --veracrypt-pim 1 --outer-pim 1 --passphrase-file long --new-passphrase-file hidden \
         --yes --no-progress",
    );
    let outer = "--hash sha512 --passphrase-file long";
    is_read_by_both(&sandbox, PASSPHRASE, outer, &["--keyfiles="]);
    let hidden = "--tcrypt-hidden --hash sha256 --passphrase-file hidden";
    is_read_by_both(&sandbox, HIDDEN, hidden, &["--keyfiles="]);
}
