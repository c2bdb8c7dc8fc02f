//! Any bytes as a header, a key file or a notation: what the fuzzer and a test
//! with random bytes drive. All of it must be read or refused.

use block::{BlockDevice, BlockError, ByteRange, Geometry, InlineQueue, Queue, QueueOptions};
use cipher::Key;
use cryptmark_volume::cryptoloop::{Derivation, LoopCipher};
use cryptmark_volume::plain::Hashing;
use cryptmark_volume::{
    Access, CryptDevice, Format, Hash, Limits, Opening, Secret, VolumeError, bestcrypt, loopaes,
    luks1, luks2,
};
use sha2::{Digest, Sha256};
use std::ops::ControlFlow;
use std::str::FromStr;

/// A parser that takes any bytes.
pub type Target = fn(&[u8]);

/// What can be driven.
pub const TARGETS: [(&str, Target); 7] = [
    ("luks1_header", luks1_header),
    ("luks2_header", luks2_header),
    ("luks2_json", luks2_json),
    ("bestcrypt_header", bestcrypt_header),
    ("format_detect", format_detect),
    ("loopaes_key_file", loopaes_key_file),
    ("notations", notations),
];

/// Next to no work: what a header asks for beyond it is refused.
const LIMITS: Limits = Limits {
    iterations: 1,
    memory_kib: 8,
    lanes: 1,
    filled_kib: 8,
    all_iterations: 8,
    all_filled_kib: 64,
};

/// Of the binary LUKS2 header, what an input has; zeros follow it.
const BINARY_INPUT: usize = 512;

const HEADER: usize = 16 << 10;
const BINARY: usize = 4096;
const CHECKSUM: usize = 448;

/// Where the keyslots of BestCrypt begin.
const BESTCRYPT_KEYSLOTS: usize = 1536;

/// The signature, the label, the key generator, and the cipher.
const BESTCRYPT_KNOWN: [(usize, &[u8]); 4] = [
    (3, b"LOCOS94 "),
    (43, b"BC_KeyGenID"),
    (54, &[5, 0]),
    (128, &[240, 0, 0, 0]),
];

/// A device that begins with some bytes at an offset, and is zeros elsewhere.
struct Sparse<'a> {
    bytes: &'a [u8],
    offset: usize,
    size: u64,
}

impl BlockDevice for Sparse<'_> {
    fn geometry(&self) -> Geometry {
        Geometry {
            size: self.size,
            logical_block: 512,
            physical_block: 4096,
            discard_granularity: None,
            discard_zeroes: false,
        }
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        self.geometry().check(offset, into.len() as u64)?;
        into.fill(0);
        let (start, end) = (offset as usize, offset as usize + into.len());
        let from = start.max(self.offset);
        let to = end.min(self.offset + self.bytes.len());
        if from < to {
            let bytes = &self.bytes[from - self.offset..to - self.offset];
            into[from - start..to - start].copy_from_slice(bytes);
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        self.geometry().check(offset, data.len() as u64).map(drop)
    }

    fn flush(&self) -> Result<(), BlockError> {
        Ok(())
    }

    fn discard(&self, _: ByteRange) -> Result<(), BlockError> {
        Ok(())
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        Ok(Box::new(InlineQueue::open(self, options, None)?))
    }
}

/// What opens nothing.
fn secrets() -> [Secret; 2] {
    [
        Secret::Passphrase(Key::from_slice(b"a passphrase")),
        Secret::VolumeKey(Key::from_slice(&[7; 64])),
    ]
}

/// Makes what the user would be told.
fn tell<T>(outcome: Result<T, VolumeError>) {
    if let Err(error) = outcome {
        let told = error.to_string() + &error.remedy();
        let short = told.len() < 1000;
        assert!(short && !told.contains(char::is_control), "{told:?}");
    }
}

/// A LUKS1 header.
pub fn luks1_header(input: &[u8]) {
    let device = Sparse {
        bytes: input,
        offset: 0,
        size: 1 << 30,
    };
    let header = match luks1::Header::read(&device) {
        Ok(header) => header,
        refused => return tell(refused),
    };
    for secret in secrets() {
        tell(header.unlock(&device, &secret, None, &LIMITS));
    }
    let key = Key::from_slice(&vec![7; header.key_bytes]);
    let mapping = header.mapping(key, &device);
    tell(mapping.and_then(|mapping| CryptDevice::new(&device, mapping)));
}

/// The start of a binary LUKS2 header, and the JSON that follows it: the
/// checksum is made right.
pub fn luks2_header(input: &[u8]) {
    let (start, json) = input.split_at(input.len().min(BINARY_INPUT));
    let mut header = vec![0; HEADER];
    header[..start.len()].copy_from_slice(start);
    let json = &json[..json.len().min(HEADER - BINARY)];
    header[BINARY..][..json.len()].copy_from_slice(json);
    header[CHECKSUM..][..64].fill(0);
    let checksum = Sha256::digest(&header);
    header[CHECKSUM..][..checksum.len()].copy_from_slice(&checksum);
    let device = Sparse {
        // The second copy stands where the first ends.
        offset: match start.starts_with(b"SKUL") {
            true => HEADER,
            false => 0,
        },
        bytes: &header,
        size: 1 << 30,
    };
    let header = match luks2::Header::read(&device) {
        Ok(header) => header,
        refused => return tell(refused),
    };
    for secret in secrets() {
        tell(header.unlock(&device, &secret, None, &LIMITS));
        if header.is_reencrypting() {
            let opening = Opening::Luks2 { slot: None };
            tell(
                opening.unlock(&device, &device, &secret, Access::Read, &LIMITS, &|_| {
                    ControlFlow::Continue(())
                }),
            );
        }
    }
    for bytes in [32, 64] {
        let mapping = header.mapping(Key::from_slice(&vec![7; bytes]), &device);
        tell(mapping.and_then(|mapping| CryptDevice::new(&device, mapping)));
    }
}

/// The JSON of a LUKS2 header.
pub fn luks2_json(input: &[u8]) {
    let mut header = vec![0; BINARY_INPUT];
    header[..8].copy_from_slice(b"LUKS\xba\xbe\0\x02");
    header[8..16].copy_from_slice(&(HEADER as u64).to_be_bytes());
    header[72..78].copy_from_slice(b"sha256");
    header.extend_from_slice(input);
    luks2_header(&header);
}

/// A BestCrypt header with the first of its keyslots. What it begins with is
/// made right, and so are the numbers that only one is known of.
pub fn bestcrypt_header(input: &[u8]) {
    let mut bytes = input.to_vec();
    bytes.resize(bytes.len().max(BESTCRYPT_KEYSLOTS), 0);
    for (at, known) in BESTCRYPT_KNOWN {
        bytes[at..][..known.len()].copy_from_slice(known);
    }
    let device = Sparse {
        bytes: &bytes,
        offset: 0,
        size: 1 << 20,
    };
    let header = match bestcrypt::Header::read(&device) {
        Ok(header) => header,
        refused => return tell(refused),
    };
    for secret in secrets() {
        tell(header.unlock(&device, &secret, &LIMITS));
    }
    for bytes in [32, 64] {
        let key = Key::from_slice(&vec![7; bytes]);
        tell(header.guessed_mapping(&key, &device));
    }
}

/// The start of any device.
pub fn format_detect(input: &[u8]) {
    let device = Sparse {
        bytes: input,
        offset: 0,
        size: (input.len() as u64).next_multiple_of(512),
    };
    tell(Format::detect(&device).map(drop));
}

/// Cipher, length of its keys, hash, and a key file.
pub fn loopaes_key_file(input: &[u8]) {
    let [cipher, length, hash, file @ ..] = input else {
        return;
    };
    let opening = loopaes::Opening {
        cipher: cipher::Algorithm::ALL[usize::from(*cipher) % cipher::Algorithm::ALL.len()],
        key_bytes: [16, 24, 32][usize::from(*length) % 3],
        hash: Hash::ALL.get(usize::from(*hash)).copied(),
        offset: 0,
        skip: None,
        size: None,
    };
    let device = Sparse {
        bytes: &[],
        offset: 0,
        size: 1 << 20,
    };
    let secret = Secret::KeyFile(Key::from_slice(file));
    let mapping = opening.mapping(&secret, &device);
    tell(mapping.and_then(|mapping| CryptDevice::new(&device, mapping)));
}

/// What users write: `--hash`, `--key-derivation` and `--cipher`.
pub fn notations(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok(hashing) = Hashing::from_str(&text) {
        hashing.key(b"a passphrase", 64);
    }
    if let Ok(derivation) = Derivation::from_str(&text) {
        derivation.key(b"a passphrase", 64);
    }
    if let Ok(cipher) = LoopCipher::from_str(&text) {
        Derivation::UtilLinux.key(b"a passphrase", cipher.key_bytes.unwrap_or(32));
    }
    if let Ok(spec) = cipher::CipherSpec::from_str(&text) {
        // What is written is read as the same.
        let again = spec.to_string();
        assert_eq!(again.parse(), Ok(spec), "{text} is {again}");
    }
}
