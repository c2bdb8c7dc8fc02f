//! Makes BitLocker volumes, which only Windows does otherwise: from a plaintext, in memory.

use aes::Aes256;
use ccm::aead::consts::{U12, U16};
use ccm::{AeadInOut, Ccm, KeyInit};
use cipher::{IvSector, Key, SectorCipher, SectorLayout, SectorSize};
use cryptmark_volume::bitlk::Method;
use sha2::{Digest, Sha256};

/// Where the metadata are, and what the first sectors are moved to.
pub const COPIES: [usize; 3] = [1 << 20, 2 << 20, 3 << 20];
pub const MOVED: usize = 5 << 19;
pub const MOVED_BYTES: usize = 8192;
/// Where bitmaps are, if there are any.
pub const ON_WRITE: [usize; 2] = [7 << 19, (7 << 19) + (64 << 10)];
pub const BITMAP: usize = (7 << 19) + (128 << 10);
pub const LOG: usize = (7 << 19) + (192 << 10);
pub const CHUNK: usize = 64 << 10;

pub const PASSPHRASE: &str = "a passphrase, \u{fc}\u{1f511}";
pub const RECOVERY: &str = "471207-278498-422125-177177-561902-537405-468006-693451";
const STARTUP_KEY: [u8; 32] = [0x5a; 32];
const STARTUP_IDENTIFIER: [u8; 16] = [0xb2; 16];
const MASTER: [u8; 32] = [0x77; 32];
const VISTA_CLUSTER: usize = 4096;
const VISTA_MIRROR: u64 = 99;

/// How a protector is numbered.
pub mod protection {
    pub const CLEAR: u16 = 0;
    pub const TPM: u16 = 0x0100;
    pub const STARTUP: u16 = 0x0200;
    pub const TPM_PIN: u16 = 0x0500;
    pub const RECOVERY: u16 = 0x0800;
    pub const CERTIFICATE: u16 = 0x1000;
    pub const PASSPHRASE: u16 = 0x2000;
}

/// The properties of a volume.
#[derive(Clone)]
pub struct Recipe {
    pub version: u16,
    pub to_go: bool,
    pub method: u16,
    pub sector_size: SectorSize,
    pub protectors: Vec<u16>,
    /// Number of the state, and of the next one.
    pub state: [u16; 2],
    /// Everything before this offset is encrypted; 0 means all.
    pub up_to: u64,
    /// Which chunks are encrypted, where that is told by bitmaps.
    pub chunks: Option<Vec<bool>>,
}

impl Default for Recipe {
    fn default() -> Self {
        Self {
            version: 2,
            to_go: false,
            method: 0x8004,
            sector_size: SectorSize::B512,
            protectors: vec![
                protection::TPM,
                protection::PASSPHRASE,
                protection::RECOVERY,
                protection::STARTUP,
            ],
            state: [4, 4],
            up_to: 0,
            chunks: None,
        }
    }
}

/// A volume, and what must be read from it.
pub struct Made {
    pub image: Vec<u8>,
    pub plaintext: Vec<u8>,
}

/// The key file.
pub fn startup_key_file() -> Vec<u8> {
    let key = entry(
        0,
        1,
        &[&0x2002_u32.to_le_bytes()[..], &STARTUP_KEY].concat(),
    );
    let name = entry(0, 2, &utf16("ExternalKey"));
    let body = [&STARTUP_IDENTIFIER[..], &[0; 8], &name, &key].concat();
    let entry = entry(6, 9, &body);
    let size = 48 + entry.len() as u32;
    let mut file = Vec::new();
    for number in [size, 1, 48, size] {
        file.extend(number.to_le_bytes());
    }
    file.extend(STARTUP_IDENTIFIER);
    file.resize(48, 0);
    file.extend(entry);
    file
}

/// The key of the data as it is stored, and as a cipher takes it.
pub fn data_key(method: u16) -> (Vec<u8>, Vec<u8>) {
    let whole: Vec<u8> = (0..64).map(|i| 3 * i + 1).collect();
    match method {
        0x8000 => {
            let mut stored = vec![0; 64];
            stored[..16].copy_from_slice(&whole[..16]);
            stored[32..48].copy_from_slice(&whole[16..32]);
            (stored, whole[..32].to_vec())
        }
        0x8002 => (whole[..16].to_vec(), whole[..16].to_vec()),
        0x8003 | 0x8004 => (whole[..32].to_vec(), whole[..32].to_vec()),
        _ => (whole.clone(), whole),
    }
}

fn method(number: u16) -> Method {
    match number {
        0x8000 => Method::Elephant128,
        0x8001 => Method::Elephant256,
        0x8002 => Method::Cbc128,
        0x8003 => Method::Cbc256,
        0x8004 => Method::Xts128,
        _ => Method::Xts256,
    }
}

fn utf16(text: &str) -> Vec<u8> {
    let units = text.encode_utf16().chain([0]);
    units.flat_map(u16::to_le_bytes).collect()
}

/// An entry.
pub fn entry(role: u16, kind: u16, body: &[u8]) -> Vec<u8> {
    let mut entry = Vec::new();
    for field in [8 + body.len() as u16, role, kind, 1] {
        entry.extend(field.to_le_bytes());
    }
    entry.extend_from_slice(body);
    entry
}

/// The body of an entry that is sealed.
fn sealed(key: &[u8; 32], counter: u8, inside: &[u8]) -> Vec<u8> {
    let nonce = [counter; 12];
    let mut data = inside.to_vec();
    let cipher = Ccm::<Aes256, U16, U12>::new(key.into());
    let tag = cipher.encrypt_inout_detached(&nonce.into(), &[], (&mut data[..]).into());
    [&nonce[..], &tag.unwrap(), &data].concat()
}

fn key_entry(method: u16, key: &[u8]) -> Vec<u8> {
    let method = u32::from(method).to_le_bytes();
    entry(0, 1, &[&method, key].concat())
}

fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    Sha256::digest(parts.concat()).into()
}

/// As libbde's specification has it.
fn stretched(hashed: [u8; 32], salt: [u8; 16]) -> [u8; 32] {
    let mut last = [0; 32];
    for count in 0..0x10_0000_u64 {
        last = sha256(&[&last, &hashed, &salt, &count.to_le_bytes()]);
    }
    last
}

fn protector(number: u16, nth: u8) -> Vec<u8> {
    let salt = [nth; 16];
    let stretch = |hashed| {
        let body = [&0x1000_u32.to_le_bytes()[..], &salt].concat();
        (stretched(hashed, salt), entry(0, 3, &body))
    };
    let mut properties = entry(0, 2, &utf16("a name"));
    let key = match number {
        protection::CLEAR => {
            let key = [0xc1; 32];
            properties.extend(key_entry(0x2000, &key));
            key
        }
        protection::STARTUP => STARTUP_KEY,
        protection::RECOVERY => {
            let numbers = RECOVERY.split('-');
            let bits: Vec<u8> = numbers
                .flat_map(|group| (group.parse::<u32>().unwrap() / 11).to_le_bytes()[..2].to_vec())
                .collect();
            let (key, salt) = stretch(sha256(&[&bits]));
            properties.extend(salt);
            key
        }
        protection::PASSPHRASE => {
            let units: Vec<u8> = PASSPHRASE
                .encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect();
            let (key, salt) = stretch(sha256(&[&sha256(&[&units])]));
            properties.extend(salt);
            key
        }
        // A TPM's key can be any bytes.
        _ => [0xee; 32],
    };
    properties.extend(entry(0, 5, &sealed(&key, nth, &key_entry(0x2003, &MASTER))));
    let identifier = match number {
        protection::STARTUP => STARTUP_IDENTIFIER,
        _ => [0xa0 + nth; 16],
    };
    let time = 132_000_000_000_000_000_u64 + u64::from(nth) * 10_000_000;
    let head = [
        &identifier[..],
        &time.to_le_bytes(),
        &[0, 0],
        &number.to_le_bytes(),
    ]
    .concat();
    entry(2, 8, &[&head[..], &properties].concat())
}

/// A copy of the metadata, with its checksum and digest.
pub fn metadata(recipe: &Recipe) -> Vec<u8> {
    let mut entries = entry(7, 2, &utf16("HOST C: 27.11.2026"));
    for (nth, &number) in (1..).zip(&recipe.protectors) {
        entries.extend(protector(number, nth));
    }
    let (stored, _) = data_key(recipe.method);
    let key = sealed(&MASTER, 0x40, &key_entry(recipe.method, &stored));
    entries.extend(entry(3, 5, &key));
    if recipe.version == 2 {
        let place = [MOVED as u64, MOVED_BYTES as u64].map(u64::to_le_bytes);
        entries.extend(entry(15, 15, place.as_flattened()));
    }
    let set_bytes = 48 + entries.len();
    let size = (64 + set_bytes).next_multiple_of(16);
    let mut bytes = vec![0; size];
    let mut put = |at: usize, field: &[u8]| bytes[at..][..field.len()].copy_from_slice(field);
    put(0, b"-FVE-FS-");
    let said = if recipe.version == 2 { size / 16 } else { size };
    put(8, &(said as u16).to_le_bytes());
    put(10, &recipe.version.to_le_bytes());
    put(12, &recipe.state[0].to_le_bytes());
    put(14, &recipe.state[1].to_le_bytes());
    put(16, &recipe.up_to.to_le_bytes());
    for (nth, copy) in COPIES.into_iter().enumerate() {
        put(32 + 8 * nth, &(copy as u64).to_le_bytes());
    }
    if recipe.version == 2 {
        let sectors = MOVED_BYTES / recipe.sector_size.bytes();
        put(28, &(sectors as u32).to_le_bytes());
        put(56, &(MOVED as u64).to_le_bytes());
    } else {
        put(56, &VISTA_MIRROR.to_le_bytes());
    }
    for (at, number) in [(64, set_bytes), (68, 1), (72, 48), (76, set_bytes)] {
        put(at, &(number as u32).to_le_bytes());
    }
    put(80, &[0x1d; 16]);
    put(96, &9_u32.to_le_bytes());
    put(100, &recipe.method.to_le_bytes());
    put(104, &132_000_000_000_000_000_u64.to_le_bytes());
    put(112, &entries);
    checked(bytes, recipe.version)
}

/// `bytes` with checksum and digest behind them, as their version has them.
pub fn checked(mut bytes: Vec<u8>, version: u16) -> Vec<u8> {
    let digest = key_entry(0x2005, &sha256(&[&bytes]));
    let digest = entry(0, 5, &sealed(&MASTER, 0x41, &digest));
    let sum = crc32(&bytes);
    let behind = match version {
        1 => 8,
        _ => 8 + digest.len(),
    };
    bytes.extend((behind as u16).to_le_bytes());
    bytes.extend(version.to_le_bytes());
    bytes.extend(sum.to_le_bytes());
    if version > 1 {
        bytes.extend(digest);
    }
    bytes
}

/// The checksum of IEEE 802.3.
pub fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 * (crc & 1))
        })
    })
}

/// The boot sector of the volume, before it is in its place.
fn boot(recipe: &Recipe, plain: &[u8]) -> Vec<u8> {
    const IDENTIFIER: [u8; 16] =
        *b"\x3b\xd6\x67\x49\x29\x2e\xd8\x4a\x83\x99\xf6\xa3\x39\xe3\xd0\x01";
    const ON_WRITE_TOO: [u8; 16] =
        *b"\x3b\x4d\xa8\x92\x80\xdd\x0e\x4d\x9e\x4e\xb1\xe3\x28\x4e\xae\xd8";
    if recipe.version == 1 {
        let mut boot = plain[..512].to_vec();
        boot[3..11].copy_from_slice(b"-FVE-FS-");
        boot[56..64].copy_from_slice(&((COPIES[0] / VISTA_CLUSTER) as u64).to_le_bytes());
        return boot;
    }
    // As Windows 7 writes it: the fields are those of FAT32.
    let mut boot = vec![0; 512];
    boot[..11].copy_from_slice(b"\xeb\x58\x90-FVE-FS-");
    boot[11..13].copy_from_slice(&(recipe.sector_size.bytes() as u16).to_le_bytes());
    boot[13] = (VISTA_CLUSTER / recipe.sector_size.bytes()) as u8;
    boot[21] = 0xf8;
    boot[36..40].copy_from_slice(&0x1fe0_u32.to_le_bytes());
    boot[48] = 1;
    boot[50] = 6;
    boot[64..67].copy_from_slice(b"\x80\0\x29");
    boot[71..90].copy_from_slice(b"NO NAME    FAT32   ");
    if recipe.to_go {
        boot[3..11].copy_from_slice(b"MSWIN4.1");
    }
    let mut at = if recipe.to_go { 424 } else { 160 };
    let identifier = match recipe.chunks {
        Some(_) => ON_WRITE_TOO,
        None => IDENTIFIER,
    };
    boot[at..at + 16].copy_from_slice(&identifier);
    let on_write = recipe.chunks.iter().flat_map(|_| ON_WRITE);
    for place in COPIES.into_iter().chain(on_write) {
        boot[at + 16..at + 24].copy_from_slice(&(place as u64).to_le_bytes());
        at += 8;
    }
    boot[510..].copy_from_slice(b"\x55\xaa");
    boot
}

/// The bitmap with both its records: the older one says the opposite.
fn bitmap(chunks: &[bool]) -> Vec<u8> {
    let record = |number: u64, bits: &[bool]| {
        let mut record = b"FVE-EOWBR\0".to_vec();
        let map = bits.chunks(8).map(|bits| {
            let bits = bits.iter().enumerate();
            bits.fold(0, |byte, (nth, &set)| byte | u8::from(set) << nth)
        });
        let map: Vec<u8> = map.collect();
        record.extend(36_u16.to_le_bytes());
        record.extend((36 + map.len() as u32).to_le_bytes());
        record.extend((bits.len() as u32).to_le_bytes());
        record.extend(number.to_le_bytes());
        record.extend([0; 8]);
        record.extend(map);
        summed(record, 32)
    };
    let opposite: Vec<bool> = chunks.iter().map(|set| !set).collect();
    let records = [record(7, &opposite), record(8, chunks)];
    let second = (64 + records[0].len()).next_multiple_of(64);
    let size = (second + records[1].len()).next_multiple_of(512);
    let mut bytes = b"FVE-EOWBM\0".to_vec();
    bytes.extend(60_u16.to_le_bytes());
    bytes.extend((size as u32).to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(0_u64.to_le_bytes());
    bytes.extend(((chunks.len() * CHUNK) as u64).to_le_bytes());
    bytes.extend((LOG as u64).to_le_bytes());
    for number in [64, second as u32, records[0].len() as u32, 0] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.resize(64, 0);
    let mut bytes = summed(bytes, 56);
    bytes.extend(&records[0]);
    bytes.resize(second, 0);
    bytes.extend(&records[1]);
    bytes.resize(size, 0);
    bytes
}

/// With the checksum at `at`.
pub fn summed(mut bytes: Vec<u8>, at: usize) -> Vec<u8> {
    bytes[at..at + 4].fill(0);
    let sum = crc32(&bytes);
    bytes[at..at + 4].copy_from_slice(&sum.to_le_bytes());
    bytes
}

fn on_write_head(sector_size: SectorSize) -> Vec<u8> {
    let mut head = b"FVE-EOW\0".to_vec();
    head.extend(56_u16.to_le_bytes());
    head.extend(64_u16.to_le_bytes());
    for number in [sector_size.bytes(), 0, CHUNK, 4096, 0, 1, 0] {
        head.extend((number as u32).to_le_bytes());
    }
    for place in [ON_WRITE[0], ON_WRITE[1], BITMAP] {
        head.extend((place as u64).to_le_bytes());
    }
    summed(head, 36)
}

impl Recipe {
    /// Makes a volume with the plaintext `plain`, except for BitLocker's own areas.
    pub fn make(&self, mut plain: Vec<u8>) -> Made {
        let sector = self.sector_size.bytes();
        let size = plain.len();
        let metadata = metadata(self);
        let area = if self.version == 1 {
            16 << 10
        } else {
            64 << 10
        };
        let mut own: Vec<(usize, usize)> = COPIES.map(|at| (at, area)).to_vec();
        if self.version == 2 {
            own.push((MOVED, MOVED_BYTES));
        } else {
            plain[3..11].copy_from_slice(b"NTFS    ");
            plain[11..13].copy_from_slice(&(sector as u16).to_le_bytes());
            plain[13] = (VISTA_CLUSTER / sector) as u8;
            plain[..3].copy_from_slice(b"\xeb\x52\x90");
            plain[56..64].copy_from_slice(&VISTA_MIRROR.to_le_bytes());
        }
        let bitmap = self.chunks.as_deref().map(bitmap);
        if let Some(bitmap) = &bitmap {
            let head = on_write_head(self.sector_size)
                .len()
                .next_multiple_of(sector);
            own.extend(ON_WRITE.map(|at| (at, head)));
            own.push((BITMAP, bitmap.len().next_multiple_of(sector)));
            own.push((LOG, 4096));
        }
        // Where each byte of the plaintext goes, and what is there.
        let mut stored = plain.clone();
        if self.version == 2 {
            let (first, rest) = stored.split_at_mut(MOVED);
            rest[..MOVED_BYTES].copy_from_slice(&first[..MOVED_BYTES]);
        }
        let key = Key::new(data_key(self.method).1);
        let layout = SectorLayout {
            size: self.sector_size,
            large_iv: sector != 512,
        };
        let cipher = method(self.method)
            .spec()
            .cipher(&key, layout, None)
            .unwrap();
        for (nth, bytes) in stored.chunks_mut(sector).enumerate() {
            let at = nth * sector;
            let encrypted = match &self.chunks {
                _ if self.version == 1 && at < 8192 => false,
                _ if self.state[0] == 1 => false,
                Some(chunks) => chunks.get(at / CHUNK).copied().unwrap_or(false),
                None => self.up_to == 0 || (at as u64) < self.up_to,
            };
            if encrypted {
                let number = nth as u64 * layout.iv_step();
                cipher.encrypt(IvSector::new(number), bytes);
            }
        }
        let mut put = |at: usize, bytes: &[u8]| stored[at..][..bytes.len()].copy_from_slice(bytes);
        for copy in COPIES {
            put(copy, &metadata);
        }
        if let Some(bitmap) = bitmap {
            for place in ON_WRITE {
                put(place, &on_write_head(self.sector_size));
            }
            put(BITMAP, &bitmap);
        }
        put(0, &boot(self, &plain));
        for (at, length) in own {
            plain[at..at + length].fill(0);
        }
        assert_eq!(stored.len(), size);
        Made {
            image: stored,
            plaintext: plain,
        }
    }
}
