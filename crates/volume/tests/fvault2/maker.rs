//! Makes FileVault 2 volumes, which only macOS does otherwise.

use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes_kw::KwAes128;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cipher::{CipherSpec, IvSector, Key, SectorCipher, SectorLayout};
use cryptmark_volume::{Hash, Kdf, Limits};
use sha2::{Digest, Sha256};

pub const UNIT: usize = 4096;
pub const BLOCK: usize = 8192;
pub const SIZE: usize = 6 << 20;
pub const LABEL: usize = UNIT;
pub const METADATA: usize = 64 * UNIT;
pub const PHYSICAL: [u8; 16] = [0xfc; 16];
pub const METADATA_KEY: [u8; 16] = [0x3c; 16];
pub const FAMILY: &str = "33A76CAA-1481-4BC5-8D04-1AC1707C19C0";
pub const FAMILY_BYTES: [u8; 16] = 0x33a7_6caa_1481_4bc5_8d04_1ac1_707c_19c0_u128.to_be_bytes();
pub const KEK: [u8; 16] = [0x21; 16];
pub const VOLUME_KEY: [u8; 16] = [0x43; 16];
pub const ITERATIONS: u32 = 1000;
pub const PASSPHRASES: [&str; 2] = ["a passphrase", "35AJ-AC98-TI1H-N4M3-HDUQ-UQFG"];

/// Extents of the logical volume: first unit of it, first unit on the device, units.
pub const EXTENTS: [(u64, u64, u64); 2] = [(0, 600, 400), (400, 1100, 200)];
pub const PLAIN: usize = 590 * UNIT + 512;

pub fn crc32c(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0x82f6_3b78 * (crc & 1))
        })
    })
}

pub fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    bytes[at..][..field.len()].copy_from_slice(field);
}

/// With the checksum in front of it.
pub fn summed(bytes: &mut [u8]) {
    put(bytes, 4, &[0xff; 4]);
    let sum = crc32c(&bytes[8..]);
    put(bytes, 0, &sum.to_le_bytes());
}

/// A block of metadata of that kind and transaction.
pub fn block(kind: u16, transaction: u64) -> Vec<u8> {
    let mut block = vec![0; BLOCK];
    put(&mut block, 8, &1_u16.to_le_bytes());
    put(&mut block, 10, &kind.to_le_bytes());
    put(&mut block, 16, &transaction.to_le_bytes());
    block
}

pub fn wrapped(kek: &[u8; 16], key: &[u8; 16]) -> Vec<u8> {
    let mut wrapped = vec![0; 24];
    KwAes128::new(kek.into())
        .wrap_key(key, &mut wrapped)
        .unwrap();
    wrapped
}

pub fn context() -> String {
    let users = PASSPHRASES.iter().enumerate().map(|(nth, passphrase)| {
        let salt = [nth as u8 + 1; 16];
        let kdf = Kdf::Pbkdf2 {
            hash: Hash::Sha256,
            iterations: ITERATIONS,
        };
        let limits = Limits::default();
        let derived = kdf
            .derive(passphrase.as_bytes(), &salt, 16, &limits)
            .unwrap();
        let mut told = vec![0; 284];
        put(&mut told, 0, &[3, 0, 0, 0, 16]);
        put(&mut told, 8, &salt);
        put(&mut told, 24, &[16, 0, 0, 0, 24]);
        put(
            &mut told,
            32,
            &wrapped(derived.as_bytes().try_into().unwrap(), &KEK),
        );
        put(&mut told, 168, &ITERATIONS.to_le_bytes());
        format!(
            "<dict ID=\"{}\"><key>PassphraseWrappedKEKStruct</key><data>{}</data>\
             <key>PassphraseHint</key><string>hint {nth}</string></dict>",
            nth + 5,
            STANDARD.encode(told)
        )
    });
    let mut key = vec![0; 256];
    put(&mut key, 0, &[2, 0, 0, 0, 24]);
    put(&mut key, 8, &wrapped(&KEK, &VOLUME_KEY));
    format!(
        "<dict ID=\"0\"><key>com.apple.corestorage.lvf.encryption.context</key><dict ID=\"1\">\
         <key>CryptoUsers</key><array ID=\"2\">{}</array>\
         <key>WrappedVolumeKeys</key><array ID=\"3\">\
         <dict><key>KEKWrappedVolumeKeyStruct</key><data></data></dict>\
         <dict><key>BlockAlgorithm</key><string>AES-XTS</string>\
         <key>KEKWrappedVolumeKeyStruct</key><data>{}</data></dict></array>\
         <key>ConversionInfo</key><dict><key>ConversionStatus</key><string>Complete</string></dict>\
         </dict></dict>",
        users.collect::<String>(),
        STANDARD.encode(key)
    )
}

pub fn logical_volume(size: usize) -> String {
    format!(
        "<dict ID=\"0\"><key>com.apple.corestorage.lv.familyUUID</key><string>{FAMILY}</string>\
         <key>com.apple.corestorage.lv.name</key><string>Data</string>\
         <key>com.apple.corestorage.lv.uuid</key><string>A</string>\
         <key>com.apple.corestorage.lv.size</key><integer size=\"64\">{size:#x}</integer></dict>"
    )
}

/// A block with a property list, whose place stands at `at`.
pub fn with_list(kind: u16, transaction: u64, at: usize, list: &str) -> Vec<u8> {
    let mut block = block(kind, transaction);
    put(&mut block, at, &200_u32.to_le_bytes());
    put(&mut block, at + 4, &(list.len() as u32).to_le_bytes());
    put(&mut block, 200, list.as_bytes());
    block
}

pub fn extents(of: &[(u64, u64, u64)]) -> Vec<u8> {
    let mut block = block(0x305, 5);
    put(&mut block, 64, &(of.len() as u32).to_le_bytes());
    for (nth, (start, place, units)) in of.iter().enumerate() {
        let at = 72 + 40 * nth;
        put(&mut block, at + 8, &start.to_le_bytes());
        put(&mut block, at + 16, &(*units as u32).to_le_bytes());
        put(&mut block, at + 32, &place.to_le_bytes());
    }
    block
}

/// The metadata blocks of a volume: one of each kind, and an older one of the extents, which does
/// not count.
pub fn metadata() -> Vec<Vec<u8>> {
    let mut old = extents(&[(0, 1, 1)]);
    put(&mut old, 16, &4_u64.to_le_bytes());
    vec![
        block(0x13, 5),
        with_list(0x19, 5, 112, &context()),
        with_list(0x1a, 5, 128, &logical_volume(PLAIN)),
        extents(&EXTENTS),
        old,
    ]
}

/// AES-XTS over a whole block.
pub fn encrypt_block(number: u64, block: &mut [u8]) {
    let data = Aes128::new(&METADATA_KEY.into());
    let mut first = u128::from(number).to_le_bytes().into();
    Aes128::new(&PHYSICAL.into()).encrypt_block(&mut first);
    let mut tweak = u128::from_le_bytes(first.into());
    for unit in block.as_chunks_mut::<16>().0 {
        let mut mixed = (u128::from_le_bytes(*unit) ^ tweak).to_le_bytes().into();
        data.encrypt_block(&mut mixed);
        *unit = (u128::from_le_bytes(mixed.into()) ^ tweak).to_le_bytes();
        tweak = (tweak << 1) ^ ((tweak >> 127) * 0x87);
    }
}

pub fn volume_key() -> Key {
    let tweak = Sha256::digest([VOLUME_KEY, FAMILY_BYTES].concat());
    Key::new([&VOLUME_KEY[..], &tweak[..16]].concat())
}

pub fn plaintext() -> Vec<u8> {
    let mut plain: Vec<u8> = (0..PLAIN as u32 / 4)
        .flat_map(|word| word.wrapping_mul(0x9e37_79b9).to_le_bytes())
        .collect();
    // The signature of HFS+.
    put(&mut plain, 1024, b"H+\0\x04");
    plain
}

/// A volume whose metadata are `blocks`, with its data in `places`.
pub fn volume(blocks: Vec<Vec<u8>>, places: &[(u64, u64, u64)]) -> Vec<u8> {
    let mut image = vec![0; SIZE];
    let mut header = vec![0; 512];
    for (at, field) in [
        (8, &[1, 0, 0x10, 0][..]),
        (64, &(SIZE as u64).to_le_bytes()),
        (88, b"CS"),
        (90, &[1, 0, 0, 0]),
        (96, &(UNIT as u32).to_le_bytes()),
        (104, &((LABEL / UNIT) as u64).to_le_bytes()),
        (168, &[16, 0, 0, 0, 2, 0, 0, 0]),
        (176, &METADATA_KEY),
        (304, &PHYSICAL),
    ] {
        put(&mut header, at, field);
    }
    summed(&mut header);
    put(&mut image, 0, &header);
    let mut label = block(0x11, 6);
    put(&mut label, 220, &(BLOCK as u32).to_le_bytes());
    summed(&mut label);
    put(&mut image, LABEL, &label);
    put(&mut image, LABEL + BLOCK + 8, &100_u64.to_le_bytes());
    put(
        &mut image,
        LABEL + BLOCK + 32,
        &((METADATA / UNIT) as u64).to_le_bytes(),
    );
    for (number, mut block) in (0..).zip(blocks) {
        summed(&mut block);
        encrypt_block(number, &mut block);
        put(&mut image, METADATA + number as usize * BLOCK, &block);
    }
    let spec: CipherSpec = "aes-xts-plain64".parse().unwrap();
    let cipher = spec
        .cipher(&volume_key(), SectorLayout::default(), None)
        .unwrap();
    let mut encrypted = plaintext();
    cipher.encrypt(IvSector::new(0), &mut encrypted);
    for &(start, place, units) in places {
        let from = start as usize * UNIT;
        let to = PLAIN.min(from + units as usize * UNIT);
        put(&mut image, place as usize * UNIT, &encrypted[from..to]);
    }
    image
}
