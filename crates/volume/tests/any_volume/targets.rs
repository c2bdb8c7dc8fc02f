//! Any bytes as a header, a key file or a notation: what the fuzzer and a test
//! with random bytes drive. All of it must be read or refused.

use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use block::{BlockDevice, BlockError, ByteRange, Geometry, InlineQueue, Queue, QueueOptions};
use cipher::{CipherSpec, IvSector, Key, SectorSize};
use cryptmark_volume::cryptoloop::{Derivation, LoopCipher};
use cryptmark_volume::plain::Hashing;
use cryptmark_volume::{
    Access, CryptDevice, Format, Hash, Keyfiles, Limits, Opening, SealedDevice, SealedMapping,
    Secret, Stop, Terms, VolumeError, bestcrypt, bitlk, fvault2, loopaes, luks1, luks2,
    parts::Parts, tcrypt, unfinished,
};
use sha2::{Digest, Sha256};
use std::ops::ControlFlow;
use std::str::FromStr;
use std::sync::LazyLock;
use std::time::Duration;

#[path = "../parts/maker.rs"]
#[allow(dead_code)]
mod maker;

/// A parser that takes any bytes.
pub type Target = fn(&[u8]);

/// The parsers by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("luks1_header", luks1_header),
    ("luks2_header", luks2_header),
    ("luks2_json", luks2_json),
    ("bestcrypt_header", bestcrypt_header),
    ("bitlk_metadata", bitlk_metadata),
    ("bitlk_bitmaps", bitlk_bitmaps),
    ("fvault2_metadata", fvault2_metadata),
    ("format_detect", format_detect),
    ("parts", parts),
    ("loopaes_key_file", loopaes_key_file),
    ("notations", notations),
    ("tcrypt_header", tcrypt_header),
    ("integrity", integrity),
    ("key_file", key_file),
    ("signature", signature),
];

/// Next to no work: what a header asks for beyond it is refused.
const LIMITS: Limits = Limits {
    work: Duration::from_micros(10),
    all_work: Duration::from_micros(50),
    memory_kib: 8,
    lanes: 1,
    stop: Stop::NEVER,
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

/// Secrets that open no volume.
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
            tell(opening.unlock(
                &device,
                &device,
                &secret,
                &Terms::reading(&LIMITS, &|_, _| ControlFlow::Continue(())),
            ));
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

/// A BestCrypt header with the first of its key slots. Its known bytes are made right, and so are
/// the numbers that have only one known value.
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

/// The boot sector of a BitLocker volume, with the places of what is behind it.
fn bitlk_boot(identifier: &[u8; 16], places: &[u64]) -> Vec<u8> {
    let mut boot = vec![0; 4096];
    boot[3..11].copy_from_slice(b"-FVE-FS-");
    boot[11..14].copy_from_slice(&[0, 2, 8]);
    boot[160..176].copy_from_slice(identifier);
    for (nth, place) in places.iter().enumerate() {
        boot[176 + 8 * nth..][..8].copy_from_slice(&place.to_le_bytes());
    }
    boot
}

/// The metadata of a BitLocker volume, and what follows them: the checksum, which is made right,
/// and the digest. All three copies are one.
pub fn bitlk_metadata(input: &[u8]) {
    bitlk(&bitlk_device(input));
}

fn bitlk_device(input: &[u8]) -> Vec<u8> {
    const AT: usize = 4096;
    let identifier = b"\x3b\xd6\x67\x49\x29\x2e\xd8\x4a\x83\x99\xf6\xa3\x39\xe3\xd0\x01";
    let mut bytes = bitlk_boot(identifier, &[AT as u64; 3]);
    bytes.extend_from_slice(&input[..input.len().min(64 << 10)]);
    bytes.resize(bytes.len().max(AT + 128), 0);
    let metadata = &mut bytes[AT..];
    metadata[..8].copy_from_slice(b"-FVE-FS-");
    let size = usize::from(u16::from_le_bytes([metadata[8], metadata[9]]));
    let size = if metadata[10] == 1 { size } else { 16 * size };
    if let Some((metadata, check)) = metadata.split_at_mut_checked(size)
        && let Some(sum) = check.get_mut(4..8)
    {
        sum.copy_from_slice(&crc32(metadata).to_le_bytes());
    }
    bytes
}

/// The head of the bitmaps of a BitLocker volume, a bitmap, and its records: a kilobyte each, the
/// bits behind them. The checksums are made right.
pub fn bitlk_bitmaps(input: &[u8]) {
    const AT: usize = 4096;
    let mut parts = vec![0; input.len().max(4 << 10)];
    parts[..input.len()].copy_from_slice(input);
    for (nth, signature) in [
        &b"FVE-EOW\0"[..],
        b"FVE-EOWBM\0",
        b"FVE-EOWBR\0",
        b"FVE-EOWBR\0",
    ]
    .into_iter()
    .enumerate()
    {
        let part = &mut parts[nth << 10..];
        part[..signature.len()].copy_from_slice(signature);
        let number = |at: usize| u16::from_le_bytes([part[at], part[at + 1]]);
        let (size, sum) = match nth {
            0 => (number(10), 36),
            1 => (number(44), 56),
            _ => (number(12), 32),
        };
        part[sum..sum + 4].fill(0);
        if let Some(summed) = part.get(..usize::from(size)) {
            let crc = crc32(summed).to_le_bytes();
            part[sum..sum + 4].copy_from_slice(&crc);
        }
    }
    // The bitmap is where the head says if that is where it is.
    parts[56..64].copy_from_slice(&((AT + 1024) as u64).to_le_bytes());
    let identifier = b"\x3b\x4d\xa8\x92\x80\xdd\x0e\x4d\x9e\x4e\xb1\xe3\x28\x4e\xae\xd8";
    let metadata = AT + parts.len().next_multiple_of(512);
    let places = [
        metadata as u64,
        metadata as u64,
        metadata as u64,
        AT as u64,
        AT as u64,
    ];
    let mut bytes = bitlk_boot(identifier, &places);
    bytes.extend_from_slice(&parts);
    bytes.resize(metadata + 256, 0);
    let whole = &mut bytes[metadata..];
    whole[..8].copy_from_slice(b"-FVE-FS-");
    for (at, number) in [
        (8, 7),
        (10, 2),
        (12, 4),
        (28, 16),
        (64, 48),
        (72, 48),
        (76, 48),
        (100, 0x8004),
    ] {
        whole[at..at + 2].copy_from_slice(&u16::to_le_bytes(number));
    }
    for at in [32, 40, 48] {
        whole[at..at + 8].copy_from_slice(&(metadata as u64).to_le_bytes());
    }
    whole[56..64].copy_from_slice(&(1_u64 << 20).to_le_bytes());
    let sum = crc32(&whole[..112]).to_le_bytes();
    whole[116..120].copy_from_slice(&sum);
    // Behind it, a sealed entry that no key opens.
    whole[112..114].copy_from_slice(&[60, 0]);
    whole[120..126].copy_from_slice(&[48, 0, 0, 0, 5, 0]);
    bitlk(&bytes);
}

fn bitlk(bytes: &[u8]) {
    let device = Sparse {
        bytes,
        offset: 0,
        size: 1 << 30,
    };
    let header = match bitlk::Header::read(&device) {
        Ok(header) => header,
        refused => return tell(refused),
    };
    for secret in secrets() {
        tell(header.unlock(&secret, &LIMITS));
    }
    let key = Key::from_slice(&vec![7; header.method.key_bytes()]);
    let mapping = header.mapping(&key, &device);
    let volume = mapping.and_then(|mapping| bitlk::BitlkDevice::new(&device, mapping));
    if let Ok(volume) = &volume {
        let mut start = vec![0; 16 << 10];
        tell(volume.read_at(0, &mut start).map_err(VolumeError::from));
    }
    tell(volume);
    let (nothing, watch) = (Secret::VolumeKey(key), |_, _| ControlFlow::Continue(()));
    for access in [Access::Read, Access::Write] {
        let terms = Terms {
            access,
            ..Terms::reading(&LIMITS, &watch)
        };
        let opened = Opening::Bitlk.unlock(&device, &device, &nothing, &terms);
        tell(opened);
    }
}

/// Blocks of FileVault's metadata, three kilobytes of each; their checksums are made right, and they are
/// encrypted as they must be.
pub fn fvault2_metadata(input: &[u8]) {
    const BLOCK: usize = 8192;
    const LABEL: usize = 4096;
    const METADATA: usize = 32 << 10;
    let summed = |bytes: &mut [u8]| {
        bytes[4..8].fill(0xff);
        let sum = crc::<0x82f6_3b78>(&bytes[8..]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
    };
    let blocks = input.chunks(3072).take(6);
    let mut bytes = vec![0; METADATA + blocks.len() * BLOCK];
    for (at, field) in [
        (8, &[1, 0, 0x10, 0][..]),
        (88, b"CS"),
        (96, &[0, 16, 0, 0]),
        (104, &[1]),
        (168, &[16, 0, 0, 0, 2]),
        (LABEL + 10, &[0x11]),
        (LABEL + 220, &[0, 32]),
        (LABEL + BLOCK + 8, &[100]),
        (LABEL + BLOCK + 32, &[8]),
    ] {
        bytes[at..at + field.len()].copy_from_slice(field);
    }
    summed(&mut bytes[..512]);
    summed(&mut bytes[LABEL..LABEL + BLOCK]);
    let key = Aes128::new(&[0; 16].into());
    for (number, part) in blocks.enumerate() {
        let block = &mut bytes[METADATA + number * BLOCK..][..BLOCK];
        block[..part.len()].copy_from_slice(part);
        summed(block);
        let mut tweak = (number as u128).to_le_bytes().into();
        key.encrypt_block(&mut tweak);
        let mut tweak = u128::from_le_bytes(tweak.into());
        for unit in block.as_chunks_mut::<16>().0 {
            let mut mixed = (u128::from_le_bytes(*unit) ^ tweak).to_le_bytes().into();
            key.encrypt_block(&mut mixed);
            *unit = (u128::from_le_bytes(mixed.into()) ^ tweak).to_le_bytes();
            tweak = (tweak << 1) ^ ((tweak >> 127) * 0x87);
        }
    }
    let device = Sparse {
        bytes: &bytes,
        offset: 0,
        size: 1 << 30,
    };
    let header = match fvault2::Header::read(&device) {
        Ok(header) => header,
        refused => return tell(refused),
    };
    for secret in secrets() {
        tell(header.unlock(&secret, &LIMITS));
    }
    tell(header.rows(&Key::from_slice(&[7; 32])));
}

fn crc32(bytes: &[u8]) -> u32 {
    !crc::<0xedb8_8320>(bytes)
}

/// The register after all bytes. A table makes the fuzzer several times as fast.
fn crc<const POLYNOMIAL: u32>(bytes: &[u8]) -> u32 {
    let table = const {
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            let mut crc = byte as u32;
            let mut bit = 0;
            while bit < 8 {
                crc = (crc >> 1) ^ (POLYNOMIAL * (crc & 1));
                bit += 1;
            }
            table[byte] = crc;
            byte += 1;
        }
        table
    };
    bytes.iter().fold(u32::MAX, |crc, byte| {
        (crc >> 8) ^ table[(crc as u8 ^ byte) as usize]
    })
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

/// The notations that users type: `--hash`, `--key-derivation` and `--cipher`.
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
        // The written form is read as the same.
        let again = spec.to_string();
        assert_eq!(again.parse(), Ok(spec), "{text} is {again}");
    }
}

/// Changes of one of the disks that the tests make: pairs of a place and a byte, put in before its
/// checksums are right again.
pub fn parts(input: &[u8]) {
    let Some((kind, changes)) = input.split_first() else {
        return;
    };
    let makers = [
        maker::gpt,
        maker::mbr,
        maker::lvm,
        maker::raid,
        maker::old_raid,
    ];
    let mut disk = makers[usize::from(*kind) % makers.len()]();
    for change in changes.as_chunks::<4>().0 {
        let [low, high, wide, byte] = *change;
        // A table is in the first or the last 64 KiB.
        let at = usize::from(u16::from_le_bytes([low, high]));
        let at = if wide & 1 == 0 {
            at
        } else {
            disk.len() - 1 - at
        };
        disk[at] = byte;
    }
    if kind & 0x80 == 0 {
        maker::mend(&mut disk);
    }
    let device = Sparse {
        bytes: &disk,
        offset: 0,
        size: disk.len() as u64,
    };
    let parts = Parts::find(&device).inspect(|parts| {
        for range in parts.all.iter().flat_map(|part| &part.ranges) {
            assert!(range.end().is_some_and(|end| end <= device.size));
        }
    });
    tell(parts);
}

/// The place and the family in one byte, and a decrypted header of TrueCrypt or VeraCrypt; its
/// checksums are made right. A header that is read describes data within the device.
pub fn tcrypt_header(input: &[u8]) {
    use tcrypt::{Family, Header, Place, Prf, Unlocked, specs};
    static SPECS: LazyLock<[Vec<CipherSpec>; 2]> =
        LazyLock::new(|| [Family::TrueCrypt, Family::VeraCrypt].map(specs));
    let Some((&choice, rest)) = input.split_first() else {
        return;
    };
    let device = Sparse {
        bytes: &[],
        offset: 0,
        size: 1 << 20,
    };
    let mut header = [0; 448];
    let length = rest.len().min(header.len());
    header[..length].copy_from_slice(&rest[..length]);
    let family = [Family::TrueCrypt, Family::VeraCrypt][usize::from(choice & 1)];
    header[..4].copy_from_slice([b"TRUE", b"VERA"][usize::from(choice & 1)]);
    let keys = crc32(&header[192..]).to_be_bytes();
    header[8..12].copy_from_slice(&keys);
    let all = crc32(&header[..188]).to_be_bytes();
    header[188..192].copy_from_slice(&all);
    let places = [
        Place::Normal,
        Place::NormalBackup,
        Place::Hidden,
        Place::HiddenBackup,
        Place::System,
    ];
    let place = places[usize::from(choice >> 1) % places.len()];
    let specs = &SPECS[usize::from(choice & 1)];
    let Ok(Some(header)) = Header::parse(family, place, &header) else {
        return;
    };
    let unlocked = Unlocked {
        place,
        offset: 0,
        spec: specs[usize::from(choice >> 4) % specs.len()],
        prf: Prf::Argon2id,
        header,
    };
    let mapping = unlocked.mapping(&device).inspect(|mapping| {
        let end = mapping.data.end().unwrap();
        assert!(end <= device.size && mapping.data.length > 0 && mapping.data.offset >= 512);
    });
    tell(mapping);
}

/// The superblock of dm-integrity, and the sectors of its journal: 16 bytes of its beginning, and a
/// byte of the turn that wrote it. Commit ids are made right for the fields that the superblock has.
pub fn integrity(input: &[u8]) {
    const SUPERBLOCK: usize = 4096;
    const TAG_BYTES: u16 = 16;
    let Some((fields, journal)) = input.split_at_checked(64) else {
        return;
    };
    let mut bytes = vec![0; SUPERBLOCK];
    bytes[..64].copy_from_slice(fields);
    bytes[..8].copy_from_slice(b"integrt\0");
    let access = match bytes[63] & 1 {
        0 => Access::Read,
        _ => Access::Write,
    };
    // Other sizes of tags and sectors are refused at once.
    if bytes[63] & 6 != 6 {
        bytes[10..12].copy_from_slice(&TAG_BYTES.to_le_bytes());
        bytes[28] = 0;
    }
    // A sector of 504 bytes has 15 entries of 32 bytes, and each of 120 has a sector of data.
    const SECTION: u64 = 8 + 15 * 8;
    for (at, sector) in (0..).zip(journal.chunks(17)) {
        let (start, turn) = (&sector[..sector.len() - 1], sector[sector.len() - 1]);
        let place = ((at / SECTION) << 32) | (at % SECTION);
        let id = (0x1111_1111_1111_1111 * (u64::from(turn & 3) + 1)) ^ place;
        bytes.extend_from_slice(start);
        bytes.resize(SUPERBLOCK + 512 * at as usize + 504, 0);
        bytes.extend_from_slice(&id.to_le_bytes());
    }
    let device = Sparse {
        bytes: &bytes,
        offset: 0,
        size: 1 << 20,
    };
    let mapping = SealedMapping {
        encryption: "aes-xts-random".to_owned(),
        integrity: "none".to_owned(),
        key: Key::from_slice(&std::array::from_fn::<u8, 64, _>(|at| at as u8)),
        mac_key_bytes: None,
        sector_size: SectorSize::B512,
        offset: 0,
        size: None,
        first: IvSector::new(0),
        access,
    };
    let opened = SealedDevice::open(&device, &mapping).inspect(|opened| {
        let size = opened.geometry().size;
        assert!(size <= device.size);
        let mut sector = [0; 512];
        for at in [0, size / 1024 * 512, size - 512] {
            tell(opened.read_at(at, &mut sector).map_err(VolumeError::from));
            if access == Access::Write {
                tell(opened.write_at(at, &sector).map_err(VolumeError::from));
            }
        }
    });
    tell(opened.map(drop));
}

/// A file that is given as a key, a recovery key or a key file.
pub fn key_file(input: &[u8]) {
    static BITLK: LazyLock<bitlk::Header> = LazyLock::new(|| {
        const SEED: &[u8] = include_bytes!("../../../../fuzz/seeds/bitlk_metadata/vista");
        let mut seed = SEED.to_vec();
        for place in seed[32..56].as_chunks_mut().0 {
            *place = 4096_u64.to_le_bytes();
        }
        let bytes = bitlk_device(&seed);
        let device = Sparse {
            bytes: &bytes,
            offset: 0,
            size: 1 << 30,
        };
        bitlk::Header::read(&device).expect("the seed is a header")
    });
    let _ = bitlk::is_recovery_text(input);
    let key = || Key::from_slice(input);
    for secret in [
        Secret::KeyFile(key()),
        Secret::VolumeKey(key()),
        Secret::Passphrase(key()),
    ] {
        tell(BITLK.unlock(&secret, &LIMITS));
    }
    tell(Keyfiles::default().add(input));
}

/// The start of a device that may hold a file system, a table or an image: whatever must not be
/// overwritten.
pub fn signature(input: &[u8]) {
    let device = Sparse {
        bytes: input,
        offset: 0,
        size: (input.len() as u64).next_multiple_of(512),
    };
    for found in block::signature::names(&device).unwrap() {
        let told = found.to_string();
        assert!(!told.contains(char::is_control), "{told:?}");
    }
    let content = block::signature::content(&device).unwrap();
    let _ = content.is_blank();
    let _ = block::signature::readable(&device).unwrap();
    if let Some(unfinished) = unfinished(&device) {
        let told = unfinished.to_string();
        assert!(!told.contains(char::is_control), "{told:?}");
    }
}
