//! HCTR2 (Crowley, Huckleberry, Biggers 2021) over whole sectors: a sector is
//! one block of a wide cipher, as in fscrypt's AES-256-HCTR2.
//!
//! ```text
//! P = M ‖ N, M 16 bytes     h = E(0), L = E(1)     H the hash of tweak and text
//! MM = M ⊕ H(N)     UU = E(MM)     S = MM ⊕ UU ⊕ L
//! V = N ⊕ XCTR(S)     U = UU ⊕ H(V)     C = U ‖ V
//! ```
//!
//! Block i of XCTR, from 1, is E(S ⊕ i).

use zeroize::Zeroize;

use super::polyval::{Polyval, Powers};
use crate::block::BlockCipher;
use crate::iv::Ivs;
use crate::{IvSector, SectorCipher, SectorLayout};

/// Bytes of a tweak.
const TWEAK: usize = 32;

/// Blocks of the stream made in one call.
const BATCH: usize = 64;

/// Sectors whose first blocks are encrypted in one call.
const GROUP: usize = 32;

/// The block cipher `C` in HCTR2 mode.
pub(crate) struct Hctr2<C, P> {
    cipher: C,
    polyval: P,
    powers: Powers,
    l: u128,
    ivs: Box<dyn Ivs<32>>,
    layout: SectorLayout,
}

impl<C: BlockCipher<16>, P: Polyval> Hctr2<C, P> {
    /// The mode over `cipher`, which has its key.
    pub(crate) fn new(cipher: C, polyval: P, ivs: Box<dyn Ivs<32>>, layout: SectorLayout) -> Self {
        let mut derived = [0, 1_u128].map(u128::to_le_bytes);
        cipher.encrypt_blocks(&mut derived);
        let made = Self {
            cipher,
            polyval,
            powers: Powers::new(derived[0]),
            l: u128::from_le_bytes(derived[1]),
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
            let mut tweaks = [[0; TWEAK]; GROUP];
            let tweaks = &mut tweaks[..group.len() / sector_bytes];
            self.ivs.fill(sector, tweaks);
            sector = sector.advance(tweaks.len() as u64, self.layout);
            self.crypt::<ENCRYPT>(tweaks, sector_bytes, group);
        }
    }

    /// At most [`GROUP`] units of `unit_bytes`, of which 16 at least.
    fn crypt<const ENCRYPT: bool>(
        &self,
        tweaks: &[[u8; TWEAK]],
        unit_bytes: usize,
        data: &mut [u8],
    ) {
        const SHORT: &str = "16 bytes at least";
        let mut headers = [0; GROUP];
        let mut before = [[0; 16]; GROUP];
        let before = &mut before[..tweaks.len()];
        for (nth, unit) in data.chunks_exact(unit_bytes).enumerate() {
            let (first, rest) = unit.split_first_chunk().expect(SHORT);
            headers[nth] = self.header(&tweaks[nth], rest.len());
            let sum = u128::from_le_bytes(*first) ^ self.hash(headers[nth], rest);
            before[nth] = sum.to_le_bytes();
        }
        let mut after = [[0; 16]; GROUP];
        let after = &mut after[..tweaks.len()];
        after.copy_from_slice(before);
        if ENCRYPT {
            self.cipher.encrypt_blocks(after);
        } else {
            self.cipher.decrypt_blocks(after);
        }
        for (nth, unit) in data.chunks_exact_mut(unit_bytes).enumerate() {
            let (first, rest) = unit.split_first_chunk_mut().expect(SHORT);
            let after = u128::from_le_bytes(after[nth]);
            self.add_stream(u128::from_le_bytes(before[nth]) ^ after ^ self.l, rest);
            *first = (after ^ self.hash(headers[nth], rest)).to_le_bytes();
        }
    }

    /// The hash of the tweak and of whether a text of `bytes` is whole blocks.
    fn header(&self, tweak: &[u8; TWEAK], bytes: usize) -> u128 {
        let whole = if bytes.is_multiple_of(16) { 2 } else { 3 };
        let mut blocks = [[0; 16]; 1 + TWEAK / 16];
        blocks[0] = (2 * 8 * TWEAK as u128 + whole).to_le_bytes();
        blocks[1..].as_flattened_mut().copy_from_slice(tweak);
        self.polyval.update(&self.powers, 0, &blocks)
    }

    /// The hash of `text` after the header's.
    fn hash(&self, header: u128, text: &[u8]) -> u128 {
        let (blocks, rest) = text.as_chunks();
        let sum = self.polyval.update(&self.powers, header, blocks);
        if rest.is_empty() {
            return sum;
        }
        let mut padded = [0; 16];
        padded[..rest.len()].copy_from_slice(rest);
        padded[rest.len()] = 1;
        self.polyval.update(&self.powers, sum, &[padded])
    }

    /// XCTR from `start`.
    fn add_stream(&self, start: u128, text: &mut [u8]) {
        let mut counter = 0;
        for batch in text.chunks_mut(16 * BATCH) {
            let mut stream = [[0; 16]; BATCH];
            let stream = &mut stream[..batch.len().div_ceil(16)];
            for block in &mut *stream {
                counter += 1;
                *block = (start ^ counter).to_le_bytes();
            }
            self.cipher.encrypt_blocks(stream);
            for (byte, stream) in batch.iter_mut().zip(stream.as_flattened()) {
                *byte ^= stream;
            }
        }
    }
}

impl<C: BlockCipher<16>, P: Polyval> SectorCipher for Hctr2<C, P> {
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

impl<C, P> Drop for Hctr2<C, P> {
    fn drop(&mut self) {
        self.l.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SectorSize;
    #[cfg(target_arch = "x86_64")]
    use crate::arch::{Aes, AesNi, Vaes256, Vaes512};
    use crate::block::aes::bitsliced::Bitsliced;
    use crate::block::lanes::AnyCpu;
    use crate::iv::Counted;
    use crate::reference::{self, decrypt_hctr2, encrypt_hctr2};

    fn hex(digits: &str) -> Vec<u8> {
        (0..digits.len() / 2)
            .map(|i| u8::from_str_radix(&digits[2 * i..][..2], 16).unwrap())
            .collect()
    }

    fn hctr2<C: BlockCipher<16>, P: Polyval>(
        cipher: C,
        polyval: P,
        size: SectorSize,
    ) -> Hctr2<C, P> {
        let layout = SectorLayout {
            size,
            large_iv: false,
        };
        Hctr2::new(cipher, polyval, Box::new(Counted::plain64(layout)), layout)
    }

    /// Linux's crypto/testmgr.h, then runs of sectors, all against the
    /// reference.
    fn check<C: BlockCipher<16>>(cipher: impl Fn(&[u8]) -> C, polyval: impl Polyval) {
        let lines = include_str!("../../tests/vectors/aes-hctr2.tsv").lines();
        for line in lines.filter(|line| !line.starts_with('#')) {
            let fields: Vec<&str> = line.split('\t').collect();
            let (plain, expected) = (hex(fields[7]), hex(fields[8]));
            let tweak = hex(fields[5]).try_into().unwrap();
            let keyed = hctr2(cipher(&hex(fields[4])), polyval, SectorSize::B512);
            let mut data = plain.clone();
            keyed.crypt::<true>(&[tweak], plain.len(), &mut data);
            assert!(data == expected, "{}", fields[0]);
            let mut slow = plain.clone();
            encrypt_hctr2::<reference::Aes>(&hex(fields[4]), &tweak, &mut slow);
            assert!(slow == expected, "{}", fields[0]);
            decrypt_hctr2::<reference::Aes>(&hex(fields[4]), &tweak, &mut slow);
            assert!(slow == plain, "{}", fields[0]);
            keyed.crypt::<false>(&[tweak], plain.len(), &mut data);
            assert!(data == plain, "{}", fields[0]);
        }
        let key = [0x5a; 32];
        for size in SectorSize::ALL {
            let ours = hctr2(cipher(&key), polyval, size);
            for sectors in [0, 1, 2, 3, 31, 32, 33] {
                for first in [0, u64::from(u32::MAX), u64::MAX].map(IvSector::new) {
                    let bytes = sectors * size.bytes();
                    let plain: Vec<u8> = (0..bytes).map(|i| ((i * i) >> 5) as u8).collect();
                    let (mut run, mut single) = (plain.clone(), plain.clone());
                    ours.encrypt(first, &mut run);
                    for (nth, sector) in single.chunks_mut(size.bytes()).enumerate() {
                        let mut tweak = [0; TWEAK];
                        let number = first.advance(nth as u64, ours.layout).get();
                        tweak[..8].copy_from_slice(&number.to_le_bytes());
                        encrypt_hctr2::<reference::Aes>(&key, &tweak, sector);
                    }
                    assert!(run == single, "{sectors} × {}", size.bytes());
                    ours.decrypt(first, &mut run);
                    assert!(run == plain, "{sectors} × {}", size.bytes());
                }
            }
        }
    }

    #[test]
    fn portable() {
        check(|key| Bitsliced::new(key, AnyCpu), AnyCpu);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn by_aes_instructions() {
        let Some(aes_ni) = AesNi::detect() else {
            println!("skipped: this CPU has no AES-NI");
            return;
        };
        check(|key| Aes::new(key, aes_ni), aes_ni);
        match Vaes256::detect() {
            Some(vaes) => check(|key| Aes::new(key, vaes), aes_ni),
            None => println!("skipped: this CPU has no VAES on 256 bits"),
        }
        match Vaes512::detect() {
            Some(vaes) => check(|key| Aes::new(key, vaes), aes_ni),
            None => println!("skipped: this CPU has no VAES on 512 bits"),
        }
    }
}
