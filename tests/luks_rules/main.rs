//! The rules of LUKS headers, one by one: a header that breaks one, with a right
//! checksum, is given to this program and to cryptsetup.
//!
//! `docs/LUKS-RULES.md` has a line for every row here.

mod luks1;
mod luks2;
mod secrets;

use block::{BlockDevice, RamDevice};
use cipher::{Key, SectorSize};
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use volume::luks2::{DataCipher, KeyslotOptions};
use volume::{Hash, Kdf, Limits, Secret};

const PASSPHRASE: &[u8] = b"one";
const DATA: u64 = 1 << 20;
const SIZE: u64 = DATA + (64 << 10);
const PAGE: usize = 4096;

/// What a program does with a header: whether it reads it, and whether the
/// passphrase opens it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Opens,
    /// The header is read, and does not open.
    Reads,
    Refused,
}

use Verdict::{Opens, Reads, Refused};

/// A rule, and what becomes of a header that breaks it.
struct Row<S> {
    name: &'static str,
    spoil: S,
    /// What cryptsetup 2.6.1 does.
    theirs: Verdict,
    /// What we do on reading.
    ours: Verdict,
    /// Whether the header may be written again, with another change in it.
    writes: bool,
}

const fn row<S>(
    name: &'static str,
    theirs: Verdict,
    ours: Verdict,
    writes: bool,
    spoil: S,
) -> Row<S> {
    Row {
        name,
        spoil,
        theirs,
        ours,
        writes,
    }
}

/// What a program does, as it was seen.
struct Seen {
    ours: Verdict,
    writes: bool,
    /// The header after a change was written.
    written: Vec<u8>,
}

/// Holds every row against this program, against cryptsetup where it is there,
/// and against the page of the rules.
fn check<S: Copy>(rows: &[Row<S>], spoilt: impl Fn(S) -> Vec<u8>, see: impl Fn(&[u8]) -> Seen) {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image");
    let page = std::fs::read_to_string("docs/LUKS-RULES.md").unwrap();
    let oracle = is_installed();
    let mut wrong = String::new();
    let mut note = |name: &str, what: String| writeln!(wrong, "{name}: {what}").unwrap();
    for row in rows {
        let bytes = spoilt(row.spoil);
        let seen = see(&bytes);
        if (seen.ours, seen.writes) != (row.ours, row.writes) {
            note(
                row.name,
                format!("we: {:?}, writes: {}", seen.ours, seen.writes),
            );
        }
        if !page.contains(&format!("`{}`", row.name)) {
            note(row.name, "is not in docs/LUKS-RULES.md".to_owned());
        }
        if row.theirs == Refused && row.writes {
            note(
                row.name,
                "what cryptsetup refuses is never written".to_owned(),
            );
        }
        if !oracle {
            continue;
        }
        std::fs::write(&image, &bytes).unwrap();
        let theirs = cryptsetup(&image);
        if theirs != row.theirs {
            note(row.name, format!("cryptsetup: {theirs:?}"));
        }
        if seen.writes {
            std::fs::write(&image, &seen.written).unwrap();
            let theirs = cryptsetup(&image);
            if theirs != row.theirs {
                note(row.name, format!("cryptsetup on what we wrote: {theirs:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "not as the table says:\n{wrong}");
    match oracle {
        true => println!("{} headers, also by cryptsetup", rows.len()),
        false => println!(
            "skipped: cryptsetup is not installed; {} headers by us alone",
            rows.len()
        ),
    }
}

fn is_installed() -> bool {
    let version = Command::new("cryptsetup").arg("--version").output();
    version.is_ok_and(|output| output.status.success())
}

fn cryptsetup(image: &Path) -> Verdict {
    let passphrase = image.with_file_name("passphrase");
    std::fs::write(&passphrase, PASSPHRASE).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new("cryptsetup");
        command
            .args(["--batch-mode", "--disable-locks"])
            .args(arguments)
            .arg(image);
        command.args(["--key-file"]).arg(&passphrase);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().unwrap().success()
    };
    match (run(&["isLuks"]), run(&["open", "--test-passphrase"])) {
        (false, _) => Refused,
        (true, false) => Reads,
        (true, true) => Opens,
    }
}

fn device_of(bytes: &[u8]) -> RamDevice {
    let device = RamDevice::new(bytes.len() as u64);
    device.write_at(0, bytes).unwrap();
    device
}

fn bytes_of(device: &RamDevice) -> Vec<u8> {
    let mut bytes = vec![0; device.geometry().size as usize];
    device.read_at(0, &mut bytes).unwrap();
    bytes
}

fn secret() -> Secret {
    Secret::Passphrase(Key::from_slice(PASSPHRASE))
}

fn kdf() -> Kdf {
    Kdf::Pbkdf2 {
        hash: Hash::Sha256,
        iterations: 1000,
    }
}

/// Sixteen KiB of header, two keyslots of the data.
static GOOD_LUKS2: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let device = RamDevice::new(SIZE);
    let keyslot = KeyslotOptions {
        key_bytes: 32,
        ..KeyslotOptions::new(kdf())
    };
    let creation = volume::luks2::Creation {
        cipher: DataCipher::Plain("aes-xts-plain64".parse().unwrap()),
        key_bytes: 32,
        sector_size: SectorSize::default(),
        keyslot,
        data_offset: Some(DATA),
        detached: false,
        label: String::new(),
        subsystem: String::new(),
        uuid: None,
    };
    let (key, passphrase) = (Key::random(32).unwrap(), Key::from_slice(PASSPHRASE));
    let mut header = volume::luks2::Header::create(&device, &creation, &key, &passphrase).unwrap();
    let other = Key::from_slice(b"two");
    header
        .add_key(&device, &key, &other, &keyslot, None)
        .unwrap();
    bytes_of(&device)
});

static GOOD_LUKS1: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let device = RamDevice::new(SIZE);
    let creation = volume::luks1::Creation {
        spec: "aes-cbc-essiv:sha256".parse().unwrap(),
        key_bytes: 16,
        hash: Hash::Sha256,
        iterations: 1000,
        payload_offset: Some(DATA),
        detached: false,
        uuid: None,
    };
    let (key, passphrase) = (Key::random(16).unwrap(), Key::from_slice(PASSPHRASE));
    let mut header = volume::luks1::Header::create(&device, &creation, &key, &passphrase).unwrap();
    header
        .add_key(&device, &key, &Key::from_slice(b"two"), 1000, None)
        .unwrap();
    bytes_of(&device)
});

fn limits() -> Limits {
    Limits::default()
}
