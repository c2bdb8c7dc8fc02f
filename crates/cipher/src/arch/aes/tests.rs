//! CBC, CTR and single blocks, by AES instructions and bit-sliced, against the
//! reference; XTS is tested through the crate's interface.

use super::Aes;
#[cfg(target_arch = "aarch64")]
use crate::arch::{AesCe, Neon};
#[cfg(target_arch = "x86_64")]
use crate::arch::{AesNi, Avx2, Avx512, Vaes256, Vaes512};
use crate::block::aes::bitsliced::Bitsliced;
use crate::block::registers::AnyCpu;
use crate::block::{Block, BlockCipher};
use crate::reference::{self, ReferenceCipher};

/// Sectors, or blocks: around every number that fills registers.
const LENGTHS: [usize; 20] = [
    0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 97,
];

fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..len).map(|_| byte()).collect()
}

fn blocks(seed: u64, count: usize) -> Vec<Block> {
    bytes(seed, 16 * count).as_chunks().0.to_vec()
}

fn check<P: Copy, C: BlockCipher<16>>(proof: Option<P>, keyed: impl Fn(&[u8], P) -> C, name: &str) {
    let Some(proof) = proof else {
        println!("skipped: this CPU has no {name}");
        return;
    };
    for key_bytes in [16, 24, 32] {
        let key = bytes(1, key_bytes);
        let aes = keyed(&key, proof);
        check_blocks(&aes, &key, name);
        for sector_bytes in [512, 1024, 2048, 4096] {
            check_cbc(&aes, &key, sector_bytes, name);
            check_ctr(&aes, &key, sector_bytes, name);
        }
    }
}

fn check_blocks(aes: &impl BlockCipher<16>, key: &[u8], name: &str) {
    let reference = reference::Aes::new(key);
    for count in LENGTHS {
        let plain = blocks(2, count);
        let mut data = plain.clone();
        aes.encrypt_blocks(&mut data);
        let expected: Vec<Block> = plain.iter().map(|&x| reference.encrypt(x)).collect();
        assert!(data == expected, "{name} {count} blocks");
        aes.decrypt_blocks(&mut data);
        assert!(data == plain, "{name} {count} blocks");
    }
}

fn check_cbc(aes: &impl BlockCipher<16>, key: &[u8], sector_bytes: usize, name: &str) {
    let reference = reference::Aes::new(key);
    let most = LENGTHS[LENGTHS.len() - 1];
    let (ivs, plain) = (blocks(3, most), bytes(4, most * sector_bytes));
    let mut cipher = plain.clone();
    for (sector, iv) in cipher.chunks_mut(sector_bytes).zip(&ivs) {
        let mut before = *iv;
        for block in sector.as_chunks_mut().0 {
            before = reference.encrypt(std::array::from_fn(|i| block[i] ^ before[i]));
            *block = before;
        }
    }
    for sectors in LENGTHS {
        for offset in [0, 1, 16, 63] {
            let (ivs, len) = (&ivs[..sectors], sectors * sector_bytes);
            let mut around = vec![0xee; offset + len + 64];
            around[offset..][..len].copy_from_slice(&plain[..len]);
            aes.encrypt_cbc(ivs, sector_bytes, &mut around[offset..][..len]);
            let what = format!("{name} {sectors} × {sector_bytes} at {offset}");
            assert!(around[offset..][..len] == cipher[..len], "{what}");
            aes.decrypt_cbc(ivs, sector_bytes, &mut around[offset..][..len]);
            assert!(around[offset..][..len] == plain[..len], "{what}");
            assert!(around[..offset].iter().all(|&byte| byte == 0xee));
            assert!(around[offset + len..].iter().all(|&byte| byte == 0xee));
        }
    }
}

/// IVs whose counters carry in each block of a sector, and those that carry out
/// of each number of bytes.
fn carrying_ivs() -> Vec<Block> {
    let high = u128::from_be_bytes(blocks(5, 1)[0]) & !0xff;
    let low_bytes = (0..=0xff).map(|low| high | low);
    let wraps = (0..=128).step_by(8).flat_map(|bits| {
        let ones = u128::MAX.checked_shr(128 - bits).unwrap_or(0);
        let above = high.checked_shl(bits).unwrap_or(0);
        [0, 1, 31, 32, 33, 255].map(|before| (above | ones).wrapping_sub(before))
    });
    low_bytes.chain(wraps).map(u128::to_be_bytes).collect()
}

fn check_ctr(aes: &impl BlockCipher<16>, key: &[u8], sector_bytes: usize, name: &str) {
    let ivs = carrying_ivs();
    let plain = bytes(6, ivs.len() * sector_bytes);
    let mut cipher = plain.clone();
    for (sector, iv) in cipher.chunks_mut(sector_bytes).zip(&ivs) {
        reference::crypt_ctr::<reference::Aes, 16>(key, *iv, sector);
    }
    let mut data = plain.clone();
    aes.crypt_ctr(&ivs, sector_bytes, &mut data);
    for (nth, iv) in ivs.iter().enumerate() {
        let sector = nth * sector_bytes..(nth + 1) * sector_bytes;
        assert!(
            data[sector.clone()] == cipher[sector],
            "{name} {iv:02x?} × {sector_bytes}"
        );
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn aes_ni() {
    check(AesNi::detect(), Aes::new, "AES-NI");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn vaes_256() {
    check(Vaes256::detect(), Aes::new, "VAES on 256 bits");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn vaes_512() {
    check(Vaes512::detect(), Aes::new, "VAES on 512 bits");
}

#[cfg(target_arch = "aarch64")]
#[test]
fn aes_ce() {
    check(AesCe::detect(), Aes::new, "AES extension");
}

#[test]
fn bitsliced() {
    check(Some(AnyCpu), Bitsliced::new, "portable code");
    #[cfg(target_arch = "x86_64")]
    check(Avx2::detect(), Bitsliced::new, "AVX2");
    #[cfg(target_arch = "x86_64")]
    check(Avx512::detect(), Bitsliced::new, "AVX-512");
    #[cfg(target_arch = "aarch64")]
    check(Neon::detect(), Bitsliced::new, "NEON");
}
