//! Random sectors against RustCrypto's crates in the crate `xts-mode`: a
//! second opinion that shares no code with the reference.

use aes::cipher::consts::U16;
use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, BlockSizeUser, KeyInit};
use cryptmark_cipher::{CipherSpec, IvSector, Key, SectorCipher, SectorLayout, SectorSize};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use xts_mode::{Xts128, get_tweak_default};

const ROUNDS: usize = 24;

fn agree<C>(cipher: &str, key_bytes: usize)
where
    C: BlockSizeUser<BlockSize = U16> + BlockCipherEncrypt + BlockCipherDecrypt + KeyInit,
{
    let spec: CipherSpec = format!("{cipher}-xts-plain64").parse().unwrap();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(key_bytes as u64);
    for _ in 0..ROUNDS {
        let mut key = vec![0; key_bytes];
        random.fill_bytes(&mut key);
        let (data_key, tweak_key) = key.split_at(key_bytes / 2);
        let peer = Xts128::new(
            C::new_from_slice(data_key).unwrap(),
            C::new_from_slice(tweak_key).unwrap(),
        );
        let size = SectorSize::ALL[random.next_u64() as usize % 4];
        let layout = SectorLayout {
            size,
            large_iv: true,
        };
        // The peer's own counter must not overflow.
        let first = random.next_u64() >> 1;
        let mut plain = vec![0; size.bytes() * (1 + random.next_u64() as usize % 5)];
        random.fill_bytes(&mut plain);

        let mut expected = plain.clone();
        peer.encrypt_area(
            &mut expected,
            size.bytes(),
            u128::from(first),
            get_tweak_default,
        );
        for backend in spec.backends() {
            let key = Key::from_slice(&key);
            let ours = spec.cipher(&key, layout, Some(backend)).unwrap();
            let mut data = plain.clone();
            ours.encrypt(IvSector::new(first), &mut data);
            assert!(data == expected, "{spec} {backend} {first} {layout:?}");
            ours.decrypt(IvSector::new(first), &mut data);
            assert!(data == plain, "{spec} {backend} {first} {layout:?}");
        }
    }
}

#[test]
fn aes_agrees_with_rustcrypto() {
    agree::<aes::Aes128>("aes", 32);
    agree::<aes::Aes192>("aes", 48);
    agree::<aes::Aes256>("aes", 64);
}

#[test]
fn serpent_agrees_with_rustcrypto() {
    for key_bytes in [32, 48, 64] {
        agree::<serpent::Serpent>("serpent", key_bytes);
    }
}

#[test]
fn twofish_agrees_with_rustcrypto() {
    for key_bytes in [32, 48, 64] {
        agree::<twofish::Twofish>("twofish", key_bytes);
    }
}
