//! Small volumes that are good, and ways to spoil them.

use block::{BlockDevice, RamDevice};
use cipher::{Key, SectorSize};
use cryptmark_volume::luks2::{Keys, KeyslotOptions, Target};
use cryptmark_volume::{
    Access, Format, Hash, Kdf, Limits, Opening, Secret, Terms, Verdict, VolumeError, luks1, luks2,
};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::error::Error;
use std::ops::ControlFlow;
use std::sync::LazyLock;

/// The passphrase of every volume.
pub const PASSPHRASE: &[u8] = b"hostile";

/// The start of the plaintext of every volume.
pub const PLAINTEXT: [u8; 4096] = [0x5a; 4096];

/// Where the data begins.
pub const DATA: u64 = 1 << 20;

/// Length of the volumes.
pub const SIZE: u64 = DATA + (64 << 10);

/// Length of a LUKS2 header, binary and JSON, and place of the second copy.
pub const HEADER: usize = 16 << 10;

const BINARY: usize = 4096;
const CHECKSUM: usize = 448;

const KDF: Kdf = Kdf::Pbkdf2 {
    hash: Hash::Sha256,
    iterations: 1000,
};

/// The expected outcome: an error message, or an opened volume.
pub enum Expected {
    /// The first line and what it means.
    Refused(String, Verdict),
    /// To [`PLAINTEXT`].
    Opens,
}

/// A volume with a name.
pub struct Case {
    pub name: String,
    pub expected: Expected,
    pub format: Format,
    pub bytes: Vec<u8>,
    pub attempt: Attempt,
}

/// The operation on the volume.
#[derive(Clone, Copy)]
pub enum Attempt {
    /// It is opened with the passphrase.
    Open,
    /// It is opened with the passphrase and this keyslot.
    OpenSlot(u32),
    /// It gets a label.
    Label,
}

impl Case {
    /// Does what is to be done; the start of the plaintext, or what the user
    /// is told.
    pub fn open(&self) -> Result<[u8; 4096], (String, Verdict)> {
        self.try_open(Access::Read).map_err(|error| {
            // For writing, it is refused as well, and with the same words.
            let again = self.try_open(Access::Write).map(drop);
            assert_eq!(again.map_err(|e| told(&e)), Err(told(&error)));
            (told(&error), error.verdict())
        })
    }

    fn try_open(&self, access: Access) -> Result<[u8; 4096], VolumeError> {
        let device = device_of(&self.bytes);
        if let Attempt::Label = self.attempt {
            luks2::Header::read(&device)?.set_labels(&device, Some("a label"), None)?;
        }
        let slot = match self.attempt {
            Attempt::OpenSlot(slot) => Some(slot),
            _ => None,
        };
        let opening = match self.format {
            Format::Luks1 => Opening::Luks1 { slot },
            _ => Opening::Luks2 { slot },
        };
        let secret = Secret::Passphrase(Key::from_slice(PASSPHRASE));
        let opened = opening.unlock(
            &device,
            &device,
            &secret,
            &Terms {
                access,
                ..Terms::reading(&Limits::default(), &unwatched)
            },
        )?;
        let plain = opened.device(&device, &device)?;
        let mut start = [0; 4096];
        plain.read_at(0, &mut start)?;
        Ok(start)
    }
}

/// The first line that the program prints.
fn told(error: &VolumeError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        if !text.ends_with(&cause.to_string()) {
            text = format!("{text}: {cause}");
        }
        source = cause.source();
    }
    text
}

/// A refusal of a damaged header.
pub fn damaged(format: Format, damage: &str) -> Expected {
    let text = format!(
        "the header of this {} volume is damaged: {damage}",
        format.title()
    );
    Expected::Refused(text, Verdict::BadInput)
}

/// Another refusal of bad input.
pub fn refused(text: &str) -> Expected {
    Expected::Refused(text.to_owned(), Verdict::BadInput)
}

/// Refused to protect data.
pub fn protected(text: &str) -> Expected {
    Expected::Refused(text.to_owned(), Verdict::Protected)
}

/// A refusal of the passphrase.
pub fn refused_secret(text: &str) -> Expected {
    Expected::Refused(text.to_owned(), Verdict::WrongSecret)
}

/// The keyslot of the passphrase cannot be tried, and the other one does not open.
pub fn untried(slot: u32, why: &str) -> Expected {
    let text = "none of the usable keyslots opens with this passphrase or key file";
    let text = format!("{text}; keyslot {slot}: {why}");
    refused_secret(&text)
}

/// The format has keyslots, and none is left.
pub fn without_keyslots(format: Format) -> Expected {
    refused_secret(&format!(
        "this {} volume has no keyslot left for its data",
        format.title()
    ))
}

/// The file ends before the header and its key material do.
pub fn cut(format: Format, got: usize, needed: usize) -> Expected {
    refused(&format!(
        "this {} volume is cut off: it needs {needed} bytes, and the file or device has {got}",
        format.title()
    ))
}

/// No keyslot opens.
pub fn no_keyslot() -> Expected {
    refused_secret("no keyslot opens with this passphrase or key file")
}

fn device_of(bytes: &[u8]) -> RamDevice {
    let device = RamDevice::new(bytes.len() as u64);
    let whole = bytes.len() / 512 * 512;
    device.write_at(0, &bytes[..whole]).unwrap();
    device
}

fn bytes_of(device: &RamDevice) -> Vec<u8> {
    let mut bytes = vec![0; device.geometry().size as usize];
    device.read_at(0, &mut bytes).unwrap();
    bytes
}

/// Fills a new volume.
fn fill(device: &RamDevice, opening: &Opening) {
    let secret = Secret::Passphrase(Key::from_slice(PASSPHRASE));
    let limits = Limits::default();
    let opened = opening.unlock(
        device,
        device,
        &secret,
        &Terms {
            access: Access::Write,
            ..Terms::reading(&limits, &unwatched)
        },
    );
    let plain = opened.unwrap().device(device, device).unwrap();
    plain.write_at(0, &PLAINTEXT).unwrap();
}

static GOOD_LUKS1: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let device = RamDevice::new(SIZE);
    let creation = luks1::Creation {
        spec: "aes-cbc-essiv:sha256".parse().unwrap(),
        key_bytes: 16,
        hash: Hash::Sha256,
        iterations: 1000,
        payload_offset: Some(DATA),
        detached: false,
        uuid: None,
    };
    let (key, passphrase) = (Key::random(16).unwrap(), Key::from_slice(PASSPHRASE));
    let mut header = luks1::Header::create(&device, &creation, &key, &passphrase).unwrap();
    let other = Key::from_slice(b"another");
    header.add_key(&device, &key, &other, 1000, None).unwrap();
    fill(&device, &Opening::Luks1 { slot: None });
    bytes_of(&device)
});

fn new_luks2(device: &RamDevice) -> (luks2::Header, Key) {
    let creation = luks2::Creation {
        cipher: luks2::DataCipher::Plain("aes-xts-plain64".parse().unwrap()),
        key_bytes: 32,
        sector_size: SectorSize::default(),
        keyslot: options(),
        data_offset: Some(DATA),
        detached: false,
        label: String::new(),
        subsystem: String::new(),
        uuid: None,
    };
    let (key, passphrase) = (Key::random(32).unwrap(), Key::from_slice(PASSPHRASE));
    let header = luks2::Header::create(device, &creation, &key, &passphrase).unwrap();
    fill(device, &Opening::Luks2 { slot: None });
    (header, key)
}

fn options() -> KeyslotOptions {
    KeyslotOptions {
        key_bytes: 32,
        ..KeyslotOptions::new(KDF)
    }
}

/// With a second keyslot, and its copies of different age.
static GOOD_LUKS2: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let device = RamDevice::new(SIZE);
    let (mut header, key) = new_luks2(&device);
    let other = Key::from_slice(b"another");
    header
        .add_key(&device, &key, &other, &options(), None)
        .unwrap();
    bytes_of(&device)
});

/// Whose reencryption has begun, and not come far.
static BEGUN: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let device = RamDevice::new(SIZE);
    let (mut header, old) = new_luks2(&device);
    let target = Target {
        spec: "aes-xts-plain64".parse().unwrap(),
        sector_size: SectorSize::default(),
        keyslot: options(),
    };
    let passphrase = Key::from_slice(PASSPHRASE);
    let keys = Keys {
        old,
        new: Key::random(32).unwrap(),
    };
    header
        .begin_reencryption(&device, &device, &target, &keys, &[(0, &passphrase)], &[])
        .unwrap();
    bytes_of(&device)
});

/// Spoils a LUKS1 volume.
pub fn luks1(name: &str, spoil: impl FnOnce(&mut Vec<u8>), expected: Expected) -> Case {
    let mut bytes = GOOD_LUKS1.clone();
    spoil(&mut bytes);
    Case {
        name: format!("luks1_{name}"),
        expected,
        format: Format::Luks1,
        bytes,
        attempt: Attempt::Open,
    }
}

/// Spoils a LUKS2 volume.
pub fn luks2(name: &str, spoil: impl FnOnce(&mut Luks2), expected: Expected) -> Case {
    luks2_for(Attempt::Open, name, spoil, expected)
}

/// Spoils a LUKS2 volume for something else than opening.
pub fn luks2_for(
    attempt: Attempt,
    name: &str,
    spoil: impl FnOnce(&mut Luks2),
    expected: Expected,
) -> Case {
    spoilt(&GOOD_LUKS2, attempt, name, spoil, expected)
}

/// Spoils a LUKS2 volume whose reencryption has begun.
pub fn begun(name: &str, spoil: impl FnOnce(&mut Luks2), expected: Expected) -> Case {
    spoilt(&BEGUN, Attempt::Open, name, spoil, expected)
}

fn spoilt(
    good: &[u8],
    attempt: Attempt,
    name: &str,
    spoil: impl FnOnce(&mut Luks2),
    expected: Expected,
) -> Case {
    let mut volume = Luks2 {
        bytes: good.to_vec(),
    };
    spoil(&mut volume);
    Case {
        name: format!("luks2_{name}"),
        expected,
        format: Format::Luks2,
        bytes: volume.bytes,
        attempt,
    }
}

/// Overwrites what is at `at`.
pub fn put(bytes: &mut [u8], at: usize, new: &[u8]) {
    bytes[at..][..new.len()].copy_from_slice(new);
}

/// A LUKS2 volume to be spoilt.
pub struct Luks2 {
    pub bytes: Vec<u8>,
}

/// Where the two copies of the header are.
pub const COPIES: [usize; 2] = [0, HEADER];

impl Luks2 {
    /// The parsed JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text()).unwrap()
    }

    /// The JSON as a text.
    pub fn text(&self) -> String {
        let area = &self.bytes[BINARY..HEADER];
        let end = area.iter().position(|&byte| byte == 0).unwrap();
        String::from_utf8(area[..end].to_vec()).unwrap()
    }

    /// Another JSON area for both copies.
    pub fn set_area(&mut self, area: &[u8]) {
        for copy in COPIES {
            let old = &mut self.bytes[copy + BINARY..copy + HEADER];
            old.fill(0);
            put(old, 0, area);
            self.seal(copy);
        }
    }

    /// Changes the JSON of both copies.
    pub fn edit(&mut self, edit: impl FnOnce(&mut Value)) {
        let mut json = self.json();
        edit(&mut json);
        self.set_area(json.to_string().as_bytes());
    }

    /// Changes the text of the JSON of both copies, which must have `from`.
    pub fn replace(&mut self, from: &str, to: &str) {
        let text = self.text();
        assert!(text.contains(from), "{from} is not in {text}");
        self.set_area(text.replacen(from, to, 1).as_bytes());
    }

    /// Changes a value of the JSON, or adds it.
    pub fn set(&mut self, pointer: &str, value: Value) {
        let (object, member) = pointer.rsplit_once('/').unwrap();
        self.edit(|json| json.pointer_mut(object).unwrap()[member] = value);
    }

    /// Changes a field of the binary header of one copy.
    pub fn field(&mut self, copy: usize, at: usize, value: &[u8]) {
        put(&mut self.bytes, copy + at, value);
        self.seal(copy);
    }

    /// Changes a field of both copies.
    pub fn fields(&mut self, at: usize, value: &[u8]) {
        for copy in COPIES {
            self.field(copy, at, value);
        }
    }

    /// Makes a copy unusable.
    pub fn destroy(&mut self, copy: usize) {
        self.bytes[copy..copy + BINARY].fill(0xa5);
    }

    /// Writes the right checksum into a copy.
    pub fn seal(&mut self, copy: usize) {
        self.seal_length(copy, HEADER);
    }

    /// Writes the right checksum into a copy of another length.
    pub fn seal_length(&mut self, copy: usize, length: usize) {
        let copy = &mut self.bytes[copy..copy + length];
        copy[CHECKSUM..CHECKSUM + 64].fill(0);
        let digest = Sha256::digest(&*copy);
        put(copy, CHECKSUM, &digest);
    }
}

fn unwatched(_: u64, _: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}
