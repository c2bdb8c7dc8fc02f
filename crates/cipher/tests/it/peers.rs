//! Random sectors against RustCrypto's crates, of ciphers and of modes: a
//! second opinion that shares no code with the reference.

use aes::cipher::consts::U16;
use aes::cipher::{
    BlockCipherDecrypt, BlockCipherEncrypt, BlockModeEncrypt, BlockSizeUser, InnerIvInit, KeyInit,
    StreamCipher, StreamCipherCoreWrapper,
};
use cryptmark_cipher::{CipherSpec, IvSector, Key, SectorCipher, SectorLayout, SectorSize};
use ctr::CtrCore;
use ctr::flavors::{Ctr64BE, Ctr128BE};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use xts_mode::{Xts128, get_tweak_default};

/// Random keys of each length, each with a random run of sectors.
const ROUNDS: usize = 8;

/// Both directions of every backend, where `peer` encrypts a sector under a
/// key and the sector's number as a block, little endian.
fn compare(notation: &str, key_bytes: usize, peer: impl Fn(&[u8], &[u8], &mut [u8])) {
    let spec: CipherSpec = notation.parse().unwrap();
    let block_bytes = spec.algorithms()[0].block_bytes();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(key_bytes as u64);
    for _ in 0..ROUNDS {
        let mut key = vec![0; key_bytes];
        random.fill_bytes(&mut key);
        let size = SectorSize::ALL[random.next_u64() as usize % 4];
        let layout = SectorLayout {
            size,
            large_iv: random.next_u64() % 2 == 1,
        };
        let first = IvSector::new(random.next_u64());
        let mut plain = vec![0; size.bytes() * (1 + random.next_u64() as usize % 70)];
        random.fill_bytes(&mut plain);

        let mut expected = plain.clone();
        for (nth, sector) in expected.chunks_mut(size.bytes()).enumerate() {
            let number = u128::from(first.advance(nth as u64, layout).get());
            peer(&key, &number.to_le_bytes()[..block_bytes], sector);
        }
        for backend in spec.backends() {
            let key = Key::from_slice(&key);
            let ours = spec.cipher(&key, layout, Some(backend)).unwrap();
            let mut data = plain.clone();
            ours.encrypt(first, &mut data);
            assert!(data == expected, "{spec} {backend} {first:?} {layout:?}");
            ours.decrypt(first, &mut data);
            assert!(data == plain, "{spec} {backend} {first:?} {layout:?}");
        }
    }
}

fn ecb<C: BlockCipherEncrypt + KeyInit>(key: &[u8], _iv: &[u8], sector: &mut [u8]) {
    let cipher = C::new_from_slice(key).unwrap();
    for block in sector.chunks_mut(C::block_size()) {
        cipher.encrypt_block(block.try_into().unwrap());
    }
}

fn cbc<C: BlockCipherEncrypt + KeyInit>(key: &[u8], iv: &[u8], sector: &mut [u8]) {
    let cipher = C::new_from_slice(key).unwrap();
    let mut mode = cbc::Encryptor::inner_iv_init(cipher, iv.try_into().unwrap());
    for block in sector.chunks_mut(C::block_size()) {
        mode.encrypt_block(block.try_into().unwrap());
    }
}

fn xts<C>(key: &[u8], iv: &[u8], sector: &mut [u8])
where
    C: BlockSizeUser<BlockSize = U16> + BlockCipherEncrypt + BlockCipherDecrypt + KeyInit,
{
    let (data_key, tweak_key) = key.split_at(key.len() / 2);
    let keyed = |key| C::new_from_slice(key).unwrap();
    let number = u128::from_le_bytes(iv.try_into().unwrap());
    Xts128::new(keyed(data_key), keyed(tweak_key))
        .encrypt_sector(sector, get_tweak_default(number));
}

/// Every mode that a cipher of the peer's can have, for keys of each length.
macro_rules! agrees {
    ($name:literal, $cipher:ty, $key_sizes:expr, $counter:ty) => {
        for key_bytes in $key_sizes {
            compare(concat!($name, "-ecb"), key_bytes, ecb::<$cipher>);
            compare(concat!($name, "-cbc-plain64"), key_bytes, cbc::<$cipher>);
            compare(
                concat!($name, "-ctr-plain64"),
                key_bytes,
                |key, iv, sector| {
                    let cipher = <$cipher>::new_from_slice(key).unwrap();
                    let core: CtrCore<_, $counter> =
                        InnerIvInit::inner_iv_init(cipher, iv.try_into().unwrap());
                    StreamCipherCoreWrapper::from_core(core).apply_keystream(sector);
                },
            );
        }
    };
    (wide $name:literal, $cipher:ty, $key_sizes:expr) => {
        agrees!($name, $cipher, $key_sizes, Ctr128BE);
        for key_bytes in $key_sizes {
            compare(
                concat!($name, "-xts-plain64"),
                2 * key_bytes,
                xts::<$cipher>,
            );
        }
    };
    (narrow $name:literal, $cipher:ty, $key_sizes:expr) => {
        agrees!($name, $cipher, $key_sizes, Ctr64BE);
    };
}

#[test]
fn aes_agrees_with_rustcrypto() {
    agrees!(wide "aes", aes::Aes128, [16]);
    agrees!(wide "aes", aes::Aes192, [24]);
    agrees!(wide "aes", aes::Aes256, [32]);
}

#[test]
fn serpent_agrees_with_rustcrypto() {
    agrees!(wide "serpent", serpent::Serpent, [16, 24, 32]);
}

#[test]
fn twofish_agrees_with_rustcrypto() {
    agrees!(wide "twofish", twofish::Twofish, [16, 24, 32]);
}

#[test]
fn camellia_agrees_with_rustcrypto() {
    agrees!(wide "camellia", camellia::Camellia128, [16]);
    agrees!(wide "camellia", camellia::Camellia192, [24]);
    agrees!(wide "camellia", camellia::Camellia256, [32]);
}

#[test]
fn cast6_agrees_with_rustcrypto() {
    agrees!(wide "cast6", cast6::Cast6, [16, 20, 24, 28, 32]);
}

#[test]
fn kuznyechik_agrees_with_rustcrypto() {
    agrees!(wide "kuznyechik", kuznyechik::Kuznyechik, [32]);
}

#[test]
fn sm4_agrees_with_rustcrypto() {
    agrees!(wide "sm4", sm4::Sm4, [16]);
}

#[test]
fn aria_agrees_with_rustcrypto() {
    agrees!(wide "aria", aria::Aria128, [16]);
    agrees!(wide "aria", aria::Aria192, [24]);
    agrees!(wide "aria", aria::Aria256, [32]);
}

#[test]
fn blowfish_agrees_with_rustcrypto() {
    agrees!(narrow "blowfish", blowfish::Blowfish, [4, 16, 31, 56]);
    agrees!(narrow "blowfish_le", blowfish::BlowfishLE, [16, 56]);
}

#[test]
fn cast5_agrees_with_rustcrypto() {
    agrees!(narrow "cast5", cast5::Cast5, [5, 10, 11, 16]);
}

#[test]
fn des_agrees_with_rustcrypto() {
    agrees!(narrow "des", des::Des, [8]);
    agrees!(narrow "des3_ede", des::TdesEde2, [16]);
    agrees!(narrow "des3_ede", des::TdesEde3, [24]);
}
