//! Whatever a passphrase decrypts, a header of TrueCrypt's or VeraCrypt's is
//! refused, or describes data within the device:
//! `cargo +nightly fuzz run tcrypt_header`.
//!
//! An input is the place and the family in one byte, and the decrypted header;
//! its checksums are made right, because no fuzzer guesses them.

#![no_main]

extern crate cryptmark_volume as volume;

use block::{BlockDevice, RamDevice};
use cryptmark_cipher::CipherSpec;
use std::sync::LazyLock;
use volume::tcrypt::{Family, Header, Place, Prf, Unlocked, specs};

const SIZE: u64 = 1 << 20;

static DEVICE: LazyLock<RamDevice> = LazyLock::new(|| RamDevice::new(SIZE));
static SPECS: LazyLock<[Vec<CipherSpec>; 2]> =
    LazyLock::new(|| [Family::TrueCrypt, Family::VeraCrypt].map(specs));

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((&choice, rest)) = input.split_first() else {
        return;
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
    let spec = specs[usize::from(choice >> 4) % specs.len()];
    let Ok(Some(header)) = Header::parse(family, place, &header) else {
        return;
    };
    let unlocked = Unlocked {
        place,
        offset: 0,
        spec,
        prf: Prf::Argon2id,
        header,
    };
    if let Ok(mapping) = unlocked.mapping(&*DEVICE) {
        let end = mapping.data.end().unwrap();
        assert!(end <= DEVICE.geometry().size && mapping.data.length > 0);
        assert!(mapping.data.offset >= 512);
    }
});

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    };
    !bytes.iter().fold(u32::MAX, step)
}
