//! BestCrypt containers: keyslots with known passphrases, and headers that lie.

use block::{BlockDevice, RamDevice};
use cipher::{IvSector, Key, SectorCipher, SectorLayout};
use cryptmark_volume::bestcrypt::{Header, KeyslotKind};
use cryptmark_volume::{Format, Limits, Secret, Stop, Verdict, VolumeError};
use std::sync::atomic::AtomicBool;

const SIZE: u64 = 1 << 20;
const DATA: u64 = 64 << 10;

/// A keyslot and what goes with it.
#[derive(Clone)]
struct Vector {
    id: String,
    iterations: u32,
    mode: u32,
    hash: u32,
    salt: Vec<u8>,
    slot: Vec<u8>,
    passphrase: String,
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}

fn number(text: &str) -> u32 {
    let hex = text.strip_prefix("0x");
    hex.map_or_else(|| text.parse(), |hex| u32::from_str_radix(hex, 16))
        .unwrap()
}

fn vectors() -> Vec<Vector> {
    let text = include_str!("vectors/bestcrypt-slots.tsv");
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        Vector {
            id: fields[0].to_owned(),
            iterations: number(fields[3]),
            mode: number(fields[5]),
            hash: number(fields[6]),
            salt: bytes(fields[7]),
            slot: bytes(fields[8]),
            passphrase: fields[9].to_owned(),
        }
    })
    .collect()
}

/// A container with the vector's keyslot, which is number 3.
fn container(vector: &Vector) -> RamDevice {
    let device = RamDevice::new(SIZE);
    let mut header = vec![0; 4096];
    let mut put = |at: usize, bytes: &[u8]| header[at..][..bytes.len()].copy_from_slice(bytes);
    put(3, b"LOCOS94 ");
    put(43, b"BC_KeyGenID");
    put(54, &5_u16.to_le_bytes());
    put(56, &3_u16.to_le_bytes());
    put(58, &vector.iterations.to_le_bytes());
    put(62, &[b'm', 0, b'y', 0]);
    put(112, &DATA.to_le_bytes());
    put(120, &(SIZE - DATA).to_le_bytes());
    put(128, &240_u32.to_le_bytes());
    put(132, &vector.mode.to_le_bytes());
    put(136, &vector.hash.to_le_bytes());
    put(140 + 2, &5_u16.to_le_bytes());
    put(140 + 8 + 2, &3_u16.to_le_bytes());
    put(140 + 3 * 8 + 2, &1_u16.to_le_bytes());
    put(1536, &vector.salt);
    put(1536 + 3 * 256, &vector.slot);
    device.write_at(0, &header).unwrap();
    device
}

fn secret(text: &str) -> Secret {
    Secret::Passphrase(Key::from_slice(text.as_bytes()))
}

#[test]
fn known_passphrases_open_their_keyslots() {
    for vector in vectors() {
        let device = container(&vector);
        assert_eq!(Format::detect(&device).unwrap(), Some(Format::Bestcrypt));
        let header = Header::read(&device).unwrap();
        assert_eq!(header.description, "my");
        let kinds: Vec<_> = header
            .keyslots
            .iter()
            .map(|slot| (slot.number, slot.kind))
            .collect();
        assert_eq!(
            kinds,
            [(1, KeyslotKind::PublicKey), (3, KeyslotKind::Passphrase)]
        );
        let unlocked = header.unlock(&device, &secret(&vector.passphrase), &Limits::default());
        let unlocked = unlocked.unwrap_or_else(|error| panic!("{}: {error}", vector.id));
        assert_eq!(unlocked.slot, Some(3));
        let expected = if vector.id.ends_with("xts") { 64 } else { 32 };
        assert_eq!(unlocked.key.len(), expected, "{}", vector.id);
        let refused = header.unlock(&device, &secret("wrong"), &Limits::default());
        assert_eq!(refused.unwrap_err().verdict(), Verdict::WrongSecret);
    }
}

/// The guess is tested with what it guesses, and nothing more is claimed of it.
#[test]
fn data_are_believed_only_with_a_signature() {
    let Some(vector) = vectors()
        .into_iter()
        .find(|vector| vector.id == "sha256-xts")
    else {
        return;
    };
    let device = container(&vector);
    let header = Header::read(&device).unwrap();
    let limits = Limits::default();
    let key = header
        .unlock(&device, &secret(&vector.passphrase), &limits)
        .unwrap()
        .key;
    let refused = header.guessed_mapping(&key, &device);
    assert!(matches!(refused, Err(VolumeError::Unsupported { .. })));

    let spec: cipher::CipherSpec = "aes-xts-plain64".parse().unwrap();
    let cipher = spec.cipher(&key, SectorLayout::default(), None).unwrap();
    for first in [0, DATA / 512] {
        let mut start = vec![0; 4096];
        // A superblock has blocks, and its magic.
        start[1024 + 4] = 1;
        start[1024 + 0x38..][..2].copy_from_slice(b"\x53\xef");
        cipher.encrypt(IvSector::new(first), &mut start);
        device.write_at(DATA, &start).unwrap();
        let mapping = header.guessed_mapping(&key, &device).unwrap();
        assert_eq!(mapping.first, IvSector::new(first));
    }
}

#[test]
fn headers_that_lie_are_refused() {
    let vector = Vector {
        id: String::new(),
        iterations: 16_384,
        mode: 0xBC00_0004,
        hash: 0x80,
        salt: vec![1; 32],
        slot: vec![2; 256],
        passphrase: String::new(),
    };
    let cases: &[(&str, usize, &[u8], &str)] = &[
        (
            "no_signature",
            3,
            b"LOCOS93 ",
            "this is not a BestCrypt volume",
        ),
        (
            "no_label",
            43,
            b"BC_KeyGen__",
            "`label` is not `BC_KeyGenID`",
        ),
        ("older_generator", 54, &[4, 0], "key generator 4"),
        ("no_iterations", 58, &[0; 4], "`iterations` is 0"),
        ("other_cipher", 128, &[241, 0, 0, 0], "cipher 241"),
        ("other_mode", 132, &[5, 0, 0, 0xBC], "mode 0xbc000005"),
        ("other_hash", 136, &[0x84, 0, 0, 0], "hash 0x84"),
        ("data_beyond_any_end", 120, &[0xff; 8], "`data length`"),
    ];
    for (name, at, bytes, expected) in cases {
        let device = container(&vector);
        let mut block = vec![0; 4096];
        device.read_at(0, &mut block).unwrap();
        block[*at..][..bytes.len()].copy_from_slice(bytes);
        device.write_at(0, &block).unwrap();
        let error = Header::read(&device).unwrap_err();
        assert!(error.to_string().contains(expected), "{name}: {error}");
        assert_eq!(error.verdict(), Verdict::BadInput, "{name}");
    }
    // Costs are refused before any work.
    let device = container(&Vector {
        iterations: u32::MAX,
        ..vector.clone()
    });
    let header = Header::read(&device).unwrap();
    let error = header
        .unlock(&device, &secret("x"), &Limits::default())
        .unwrap_err();
    assert!(matches!(error, VolumeError::KdfWork { .. }), "{error}");
    // What is allowed ends when it is told to.
    static STOP: AtomicBool = AtomicBool::new(true);
    let device = container(&Vector {
        iterations: 100_000_000,
        ..vector
    });
    let limits = Limits {
        stop: Stop::when(&STOP),
        ..Limits::default()
    };
    let header = Header::read(&device).unwrap();
    let ended = header.unlock(&device, &secret("x"), &limits);
    assert!(matches!(ended, Err(VolumeError::Stopped)));
    // No length causes a panic.
    for length in (0..4096).step_by(512) {
        let mut bytes = vec![0; 4096];
        device.read_at(0, &mut bytes).unwrap();
        assert!(Header::parse(&bytes[..length]).is_err() || length >= 1792);
    }
}
