//! Adiantum (Crowley and Biggers 2018) over whole sectors, as dm-crypt's
//! `xchacha12,aes-adiantum-plain64`: a sector is one block of a wide cipher.
//!
//! ```text
//! P = P_L ‖ P_R, P_R 16 bytes      H the hash of tweak and left part
//! P_M = P_R + H(P_L)      C_M = AES(P_M)
//! C_L = P_L ⊕ XChaCha(C_M)      C_R = C_M − H(C_L)
//! ```
//!
//! AES takes the P_M of a whole group of sectors in one call, because a cipher
//! with many lanes takes as long for one block.

use zeroize::Zeroize;

use super::nh_poly1305::{HashKey, KEY_BYTES};
use crate::block::chacha;
use crate::block::lanes::{Lanes, Work};
use crate::block::{Block, BlockCipher};
use crate::iv::Ivs;
use crate::{IvSector, SectorCipher, SectorLayout};

/// Sectors whose middle blocks are encrypted in one call.
const GROUP: usize = 32;

/// Adiantum with `ROUNDS` of ChaCha and the block cipher `C` under a 256-bit
/// key.
pub(crate) struct Adiantum<L, C, const ROUNDS: usize> {
    lanes: L,
    block: C,
    stream: chacha::Key,
    hash: HashKey,
    ivs: Box<dyn Ivs<32>>,
    layout: SectorLayout,
}

impl<L: Lanes, C: BlockCipher<16>, const ROUNDS: usize> Adiantum<L, C, ROUNDS> {
    /// Derives all keys from `key`; `block` makes the block cipher.
    pub(crate) fn new(
        key: &[u8; 32],
        lanes: L,
        block: impl Fn(&[u8]) -> C,
        ivs: Box<dyn Ivs<32>>,
        layout: SectorLayout,
    ) -> Self {
        let stream = chacha::key(key);
        let mut derived = [0; 32 + KEY_BYTES];
        let mut nonce = [0; 24];
        nonce[0] = 1;
        lanes.enter(Stream::<ROUNDS> {
            key: &stream,
            nonce: &nonce,
            data: &mut derived,
        });
        const CUT: &str = "the sum of both lengths";
        let (block_key, hash_key) = derived.split_at(32);
        let made = Self {
            lanes,
            block: block(block_key),
            stream,
            hash: HashKey::new(hash_key.first_chunk().expect(CUT)),
            ivs,
            layout,
        };
        derived.zeroize();
        made
    }

    fn run<const ENCRYPT: bool>(&self, first: IvSector, data: &mut [u8]) {
        let sector_bytes = self.layout.size.bytes();
        assert!(
            data.len().is_multiple_of(sector_bytes),
            "{} bytes are not a whole number of {sector_bytes}-byte sectors",
            data.len()
        );
        let mut sector = first;
        for group in data.chunks_mut(GROUP * sector_bytes) {
            let mut tweaks = [[0; 32]; GROUP];
            let tweaks = &mut tweaks[..group.len() / sector_bytes];
            self.ivs.fill(sector, tweaks);
            sector = sector.advance(tweaks.len() as u64, self.layout);
            self.crypt::<ENCRYPT>(tweaks, sector_bytes, group);
        }
    }

    /// At most [`GROUP`] units of `unit_bytes`, of which 16 at least.
    fn crypt<const ENCRYPT: bool>(&self, tweaks: &[[u8; 32]], unit_bytes: usize, data: &mut [u8]) {
        let mut headers = [0; GROUP];
        for (header, tweak) in headers.iter_mut().zip(tweaks) {
            *header = self.hash.header(tweak, unit_bytes - 16);
        }
        let mut before = [[0; 16]; GROUP];
        let before = &mut before[..tweaks.len()];
        self.lanes.enter(Middle {
            hash: &self.hash,
            headers: &headers,
            unit_bytes,
            data,
            middle: before,
        });
        let mut after = [[0; 16]; GROUP];
        let after = &mut after[..tweaks.len()];
        after.copy_from_slice(before);
        if ENCRYPT {
            self.block.encrypt_blocks(after);
        } else {
            self.block.decrypt_blocks(after);
        }
        let ciphertext = if ENCRYPT { &*after } else { &*before };
        self.lanes.enter(Outer::<ROUNDS> {
            stream: &self.stream,
            hash: &self.hash,
            headers: &headers,
            unit_bytes,
            data,
            ciphertext,
            middle: after,
        });
    }
}

impl<L: Lanes, C: BlockCipher<16>, const ROUNDS: usize> SectorCipher for Adiantum<L, C, ROUNDS> {
    fn layout(&self) -> SectorLayout {
        self.layout
    }

    fn encrypt(&self, first: IvSector, data: &mut [u8]) {
        self.run::<true>(first, data);
    }

    fn decrypt(&self, first: IvSector, data: &mut [u8]) {
        self.run::<false>(first, data);
    }
}

impl<L, C, const ROUNDS: usize> Drop for Adiantum<L, C, ROUNDS> {
    fn drop(&mut self) {
        self.stream.zeroize();
    }
}

/// Adds the stream of `nonce` to `data`.
struct Stream<'a, const ROUNDS: usize> {
    key: &'a chacha::Key,
    nonce: &'a [u8; 24],
    data: &'a mut [u8],
}

impl<const ROUNDS: usize> Work for Stream<'_, ROUNDS> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        chacha::add_xchacha::<L, ROUNDS>(lanes, self.key, self.nonce, self.data);
    }
}

/// Right parts plus the hash of left parts, to `middle`.
struct Middle<'a> {
    hash: &'a HashKey,
    headers: &'a [u128],
    unit_bytes: usize,
    data: &'a [u8],
    middle: &'a mut [Block],
}

impl Work for Middle<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let units = self.data.chunks_exact(self.unit_bytes);
        for ((unit, header), middle) in units.zip(self.headers).zip(self.middle) {
            let (left, right) = unit.split_last_chunk().expect("16 bytes at least");
            let hash = self.hash.message(lanes, left).wrapping_add(*header);
            *middle = u128::from_le_bytes(*right).wrapping_add(hash).to_le_bytes();
        }
    }
}

/// Left parts through the stream of `ciphertext`, and right parts from
/// `middle` minus the hash of the new left parts.
struct Outer<'a, const ROUNDS: usize> {
    stream: &'a chacha::Key,
    hash: &'a HashKey,
    headers: &'a [u128],
    unit_bytes: usize,
    data: &'a mut [u8],
    ciphertext: &'a [Block],
    middle: &'a [Block],
}

impl<const ROUNDS: usize> Work for Outer<'_, ROUNDS> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let units = self.data.chunks_exact_mut(self.unit_bytes);
        for (nth, unit) in units.enumerate() {
            let (left, right) = unit.split_last_chunk_mut().expect("16 bytes at least");
            let mut nonce = [0; 24];
            nonce[..16].copy_from_slice(&self.ciphertext[nth]);
            nonce[16] = 1;
            chacha::add_xchacha::<L, ROUNDS>(lanes, self.stream, &nonce, left);
            let hash = self
                .hash
                .message(lanes, left)
                .wrapping_add(self.headers[nth]);
            *right = u128::from_le_bytes(self.middle[nth])
                .wrapping_sub(hash)
                .to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SectorSize;
    #[cfg(target_arch = "x86_64")]
    use crate::arch::{Avx2, Avx512};
    use crate::block::aes::bitsliced::Bitsliced;
    use crate::block::lanes::AnyCpu;
    use crate::iv::Counted;

    fn hex(digits: &str) -> Vec<u8> {
        (0..digits.len() / 2)
            .map(|i| u8::from_str_radix(&digits[2 * i..][..2], 16).unwrap())
            .collect()
    }

    fn adiantum<L: Lanes, const ROUNDS: usize>(
        key: &[u8],
        lanes: L,
        size: SectorSize,
    ) -> Adiantum<L, Bitsliced<L>, ROUNDS> {
        let layout = SectorLayout {
            size,
            large_iv: false,
        };
        let block = |key: &[u8]| Bitsliced::new(key, lanes);
        Adiantum::new(
            key.try_into().unwrap(),
            lanes,
            block,
            Box::new(Counted::plain64(layout)),
            layout,
        )
    }

    /// Linux's crypto/testmgr.h, by any lanes.
    fn known_answers<const ROUNDS: usize>(lanes: impl Lanes) -> usize {
        let mut count = 0;
        for line in include_str!("../../tests/vectors/adiantum.tsv").lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            if fields[2] != format!("xchacha{ROUNDS},aes") {
                continue;
            }
            let (plain, cipher) = (hex(fields[7]), hex(fields[8]));
            let tweak = hex(fields[5]).try_into().unwrap();
            let keyed = adiantum::<_, ROUNDS>(&hex(fields[4]), lanes, SectorSize::B512);
            let mut data = plain.clone();
            keyed.crypt::<true>(&[tweak], plain.len(), &mut data);
            assert!(data == cipher, "{}", fields[0]);
            keyed.crypt::<false>(&[tweak], plain.len(), &mut data);
            assert!(data == plain, "{}", fields[0]);
            count += 1;
        }
        count
    }

    /// Runs of sectors equal those of the portable lanes, one by one.
    fn runs(lanes: impl Lanes) {
        let key = [0x5a; 32];
        for size in SectorSize::ALL {
            let ours = adiantum::<_, 12>(&key, lanes, size);
            let portable = adiantum::<_, 12>(&key, AnyCpu, size);
            for sectors in [0, 1, 2, 3, 7, 31, 32, 33, 65] {
                for first in [0, u64::from(u32::MAX), u64::MAX].map(IvSector::new) {
                    let bytes = sectors * size.bytes();
                    let plain: Vec<u8> = (0..bytes).map(|i| ((i * i) >> 5) as u8).collect();
                    let (mut run, mut single) = (plain.clone(), plain.clone());
                    ours.encrypt(first, &mut run);
                    for (nth, sector) in single.chunks_mut(size.bytes()).enumerate() {
                        portable.encrypt(first.advance(nth as u64, portable.layout), sector);
                    }
                    assert!(run == single, "{sectors} × {}", size.bytes());
                    ours.decrypt(first, &mut run);
                    assert!(run == plain, "{sectors} × {}", size.bytes());
                }
            }
        }
    }

    fn check(lanes: Option<impl Lanes>, name: &str) {
        let Some(lanes) = lanes else {
            println!("skipped: this CPU has no {name}");
            return;
        };
        assert_eq!(known_answers::<12>(lanes), 4);
        assert_eq!(known_answers::<20>(lanes), 4);
        runs(lanes);
    }

    #[test]
    fn portable() {
        check(Some(AnyCpu), "portable code");
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn avx2() {
        check(Avx2::detect(), "AVX2");
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn avx512() {
        check(Avx512::detect(), "AVX-512");
    }

    /// Linux's crypto/testmgr.h; the last bytes of an IV count the blocks
    /// before the first.
    fn streams<const ROUNDS: usize>(lines: &str) {
        for line in lines.lines().skip(1) {
            let fields: Vec<&str> = line.split('\t').collect();
            let (key, iv) = (hex(fields[4]), hex(fields[5]));
            let key = &chacha::key(&key.try_into().unwrap());
            let nonce = iv.first_chunk().unwrap();
            let mut data = vec![0; 64 * usize::from(iv[24])];
            let before = data.len();
            data.extend(hex(fields[7]));
            chacha::add_xchacha::<_, ROUNDS>(AnyCpu, key, nonce, &mut data);
            assert!(data[before..] == hex(fields[8]), "{}", fields[0]);
        }
    }

    #[test]
    fn xchacha() {
        streams::<12>(include_str!("../../tests/vectors/xchacha12.tsv"));
        streams::<20>(include_str!("../../tests/vectors/xchacha20.tsv"));
    }
}
