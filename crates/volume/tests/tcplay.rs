//! Volumes that are made here, in the hands of tcplay. It takes block devices
//! only, so this needs the right to set up loop devices.

use block::{BlockDevice, RamDevice};
use cipher::{CipherSpec, Key};
use cryptmark_volume::tcrypt::{Creation, Family, Opening, Place, Prf, Sealing, Unlocked};
use cryptmark_volume::{Limits, Secret};
use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const SIZE: u64 = 1 << 20;
const HIDDEN_SIZE: u64 = 256 << 10;

/// A file as a block device.
struct Loop {
    name: String,
}

impl Loop {
    fn new(file: &Path) -> Option<Self> {
        let output = Command::new("losetup")
            .args(["--find", "--show"])
            .arg(file)
            .output()
            .ok()?;
        let name = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        output.status.success().then_some(Self { name })
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let detached = Command::new("losetup")
            .args(["--detach", &self.name])
            .status();
        assert!(detached.is_ok_and(|status| status.success()));
    }
}

fn tcplay(device: &Loop, arguments: &[&str], passphrase: &str) -> Output {
    let mut child = Command::new("tcplay")
        .args(["-d", &device.name])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let line = format!("{passphrase}\n");
    child
        .stdin
        .take()
        .unwrap()
        .write_all(line.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

/// The value of the field `name` in tcplay's output, or all of the output.
fn field(output: &Output, name: &str) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    value.unwrap_or(&text).trim().to_owned()
}

/// The sizes that it says, in sectors.
fn place(output: &Output) -> [String; 3] {
    let sectors = |name| field(output, name).replace(" sectors", "");
    [
        sectors("Volume size:"),
        sectors("IV offset:"),
        sectors("Block offset:"),
    ]
}

fn key(text: &str) -> Key {
    Key::from_slice(text.as_bytes())
}

/// An image with a volume and a hidden one in it.
fn image(cipher: &str, prf: &str, path: &Path) {
    let device = RamDevice::new(SIZE);
    let limits = Limits::default();
    let spec: CipherSpec = cipher.parse().unwrap();
    let creation = Creation {
        family: Family::TrueCrypt,
        algorithms: spec.algorithms().to_vec(),
        sealing: Sealing::new(Prf::named(prf).unwrap()),
    };
    let outer = creation.create(&device, &key("outer"), &limits).unwrap();
    creation
        .create_hidden(&device, &outer, HIDDEN_SIZE, &key("hidden"), &limits)
        .unwrap();
    let mut bytes = vec![0; SIZE as usize];
    device.read_at(0, &mut bytes).unwrap();
    fs::write(path, bytes).unwrap();
}

fn we_open(path: &Path, place: Place, passphrase: &str) -> Option<Unlocked> {
    let bytes = fs::read(path).unwrap();
    let device = RamDevice::new(bytes.len() as u64);
    device.write_at(0, &bytes).unwrap();
    let opening = Opening {
        place,
        ..Opening::new(Family::TrueCrypt)
    };
    let secret = Secret::Passphrase(key(passphrase));
    let watch = |_, _| ControlFlow::Continue(());
    opening
        .unlock(&device, &secret, &Limits::default(), &watch)
        .ok()
}

#[test]
fn tcplay_opens_and_restores_what_is_created_here() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image");
    image("aes-xts-plain64", "sha512", &path);
    let usable = Command::new("tcplay").arg("-v").output().is_ok();
    if !usable || Loop::new(&path).is_none() {
        println!("skipped: tcplay is not installed, or there are no loop devices");
        return;
    }
    for (cipher, prf, theirs, their_prf) in [
        ("aes-xts-plain64", "sha512", "AES-256-XTS", "SHA512"),
        (
            "twofish-xts-plain64",
            "ripemd160",
            "TWOFISH-256-XTS",
            "RIPEMD160",
        ),
        (
            "aes-twofish-serpent",
            "whirlpool",
            "SERPENT-256-XTS,TWOFISH-256-XTS,AES-256-XTS",
            "whirlpool",
        ),
        (
            "serpent-aes",
            "sha512",
            "AES-256-XTS,SERPENT-256-XTS",
            "SHA512",
        ),
    ] {
        image(cipher, prf, &path);
        let device = Loop::new(&path).unwrap();
        for backup in [&["-i"][..], &["-i", "--use-backup"]] {
            let outer = tcplay(&device, backup, "outer");
            assert_eq!(field(&outer, "Cipher:"), theirs);
            assert_eq!(field(&outer, "PBKDF2 PRF:"), their_prf);
            assert_eq!(place(&outer), ["1536", "256", "256"]);
            let hidden = tcplay(&device, backup, "hidden");
            assert_eq!(place(&hidden), ["512", "1272", "1272"], "{cipher}");
            assert!(!tcplay(&device, backup, "neither").status.success());
        }
        drop(device);

        // A header that we lose, and that it restores.
        let mut bytes = fs::read(&path).unwrap();
        bytes[..512].fill(0);
        fs::write(&path, bytes).unwrap();
        assert!(we_open(&path, Place::Normal, "outer").is_none());
        let device = Loop::new(&path).unwrap();
        let arguments = ["--modify", "--restore-from-backup-hdr", "-w"];
        let restored = tcplay(&device, &arguments, "outer");
        assert!(restored.status.success(), "{restored:?}");
        drop(device);
        for (place, passphrase) in [
            (Place::Normal, "outer"),
            (Place::NormalBackup, "outer"),
            (Place::Hidden, "hidden"),
        ] {
            let opened = we_open(&path, place, passphrase).unwrap();
            assert_eq!(
                opened.spec.algorithms(),
                cipher.parse::<CipherSpec>().unwrap().algorithms()
            );
        }
    }
}
