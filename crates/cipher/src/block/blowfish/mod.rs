//! Blowfish (Schneier 1993), in the standard's byte order and in TrueCrypt's.
//!
//! **Not constant-time**, except in `planes`, which needs AVX-512 with VBMI.
//! Elsewhere, which table line is loaded depends on key and data, so another
//! process on the same core can learn about both from the cache.
//!
//! Its 64-bit blocks repeat after 2³² of them: it is here to read old data, not
//! to protect new.

pub(crate) mod pi;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) mod planes;

use zeroize::Zeroize;

use super::BlockCipher;

const ROUNDS: usize = 16;

/// Blocks worked on together, so that one waits for its loads while another
/// computes.
const LANES: usize = 6;

type Block = [u8; 8];

/// Blowfish with a key of 32 to 448 bits.
///
/// `LITTLE_ENDIAN` blocks are those of TrueCrypt up to version 4: the bytes of
/// each half in reverse order, the key as ever.
pub(crate) struct Blowfish<const LITTLE_ENDIAN: bool> {
    p: [u32; ROUNDS + 2],
    s: Box<[[u32; 256]; 4]>,
}

impl<const LITTLE_ENDIAN: bool> Blowfish<LITTLE_ENDIAN> {
    /// The cipher under a key of 4 to 56 bytes.
    ///
    /// Source: the paper, "Generating the Subkeys".
    pub(crate) fn new(key: &[u8]) -> Self {
        let mut this = Self {
            p: first_p(key),
            s: Box::new(pi::S),
        };
        let mut halves = [[0], [0]];
        for at in (0..this.p.len()).step_by(2) {
            this.encrypt_halves(&mut halves);
            [[this.p[at]], [this.p[at + 1]]] = halves;
        }
        for sbox in 0..this.s.len() {
            for at in (0..256).step_by(2) {
                this.encrypt_halves(&mut halves);
                [[this.s[sbox][at]], [this.s[sbox][at + 1]]] = halves;
            }
        }
        halves.as_flattened_mut().zeroize();
        this
    }

    #[inline(always)]
    fn encrypt_lanes<const N: usize>(&self, blocks: &mut [Block; N]) {
        let mut halves = Self::load(blocks);
        self.encrypt_halves(&mut halves);
        Self::store(halves, blocks);
    }

    #[inline(always)]
    fn decrypt_lanes<const N: usize>(&self, blocks: &mut [Block; N]) {
        let mut halves = Self::load(blocks);
        self.decrypt_halves(&mut halves);
        Self::store(halves, blocks);
    }

    #[inline(always)]
    fn encrypt_halves<const N: usize>(&self, [left, right]: &mut [[u32; N]; 2]) {
        let [first, .., last] = self.p;
        for lane in &mut *left {
            *lane ^= first;
        }
        for keys in self.p[1..=ROUNDS].as_chunks::<2>().0 {
            self.half_round(right, left, keys[0]);
            self.half_round(left, right, keys[1]);
        }
        for lane in &mut *right {
            *lane ^= last;
        }
        std::mem::swap(left, right);
    }

    #[inline(always)]
    fn decrypt_halves<const N: usize>(&self, [left, right]: &mut [[u32; N]; 2]) {
        let [first, .., last] = self.p;
        for lane in &mut *left {
            *lane ^= last;
        }
        for keys in self.p[1..=ROUNDS].as_chunks::<2>().0.iter().rev() {
            self.half_round(right, left, keys[1]);
            self.half_round(left, right, keys[0]);
        }
        for lane in &mut *right {
            *lane ^= first;
        }
        std::mem::swap(left, right);
    }

    #[inline(always)]
    fn half_round<const N: usize>(&self, to: &mut [u32; N], from: &[u32; N], key: u32) {
        let [s0, s1, s2, s3] = &*self.s;
        for lane in 0..N {
            let [a, b, c, d] = from[lane].to_be_bytes().map(usize::from);
            let sum = s0[a].wrapping_add(s1[b]);
            to[lane] ^= (sum ^ s2[c]).wrapping_add(s3[d]) ^ key;
        }
    }

    #[inline(always)]
    fn load<const N: usize>(blocks: &[Block; N]) -> [[u32; N]; 2] {
        std::array::from_fn(|half| {
            std::array::from_fn(|lane| {
                let word = blocks[lane].as_chunks().0[half];
                if LITTLE_ENDIAN {
                    u32::from_le_bytes(word)
                } else {
                    u32::from_be_bytes(word)
                }
            })
        })
    }

    #[inline(always)]
    fn store<const N: usize>(halves: [[u32; N]; 2], blocks: &mut [Block; N]) {
        for (lane, block) in blocks.iter_mut().enumerate() {
            for (half, bytes) in block.as_chunks_mut().0.iter_mut().enumerate() {
                let word = halves[half][lane];
                *bytes = if LITTLE_ENDIAN {
                    word.to_le_bytes()
                } else {
                    word.to_be_bytes()
                };
            }
        }
    }
}

/// The P-array that the key schedule starts with: its steps 1 and 2.
fn first_p(key: &[u8]) -> [u32; ROUNDS + 2] {
    let mut key = key.iter().cycle();
    pi::P.map(|word| {
        [24, 16, 8, 0].into_iter().fold(word, |word, bits| {
            word ^ u32::from(*key.next().expect("a key is not empty")) << bits
        })
    })
}

impl<const LITTLE_ENDIAN: bool> BlockCipher<8> for Blowfish<LITTLE_ENDIAN> {
    fn encrypt_blocks(&self, blocks: &mut [Block]) {
        let (groups, rest) = blocks.as_chunks_mut::<LANES>();
        for group in groups {
            self.encrypt_lanes(group);
        }
        for block in rest {
            self.encrypt_lanes(std::array::from_mut(block));
        }
    }

    fn decrypt_blocks(&self, blocks: &mut [Block]) {
        let (groups, rest) = blocks.as_chunks_mut::<LANES>();
        for group in groups {
            self.decrypt_lanes(group);
        }
        for block in rest {
            self.decrypt_lanes(std::array::from_mut(block));
        }
    }
}

impl<const LITTLE_ENDIAN: bool> Drop for Blowfish<LITTLE_ENDIAN> {
    fn drop(&mut self) {
        self.p.zeroize();
        self.s.as_flattened_mut().zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::Blowfish;
    use crate::block::tests;
    use crate::reference;

    const KEY_LENGTHS: [usize; 6] = [4, 5, 16, 31, 32, 56];

    #[test]
    fn known_answers() {
        let keyed = Blowfish::<false>::new;
        tests::known_answers::<reference::Blowfish, _, 8>("blowfish", keyed);
    }

    #[test]
    fn equals_the_reference() {
        let (big, little) = (Blowfish::<false>::new, Blowfish::<true>::new);
        tests::equals_reference::<reference::Blowfish, _, 8>(&KEY_LENGTHS, big);
        tests::equals_reference::<reference::BlowfishLittleEndian, _, 8>(&KEY_LENGTHS, little);
    }

    #[test]
    fn agrees_with_rustcrypto() {
        let (big, little) = (Blowfish::<false>::new, Blowfish::<true>::new);
        tests::agrees_with::<blowfish::Blowfish, _, 8>(&KEY_LENGTHS, big);
        tests::agrees_with::<blowfish::BlowfishLE, _, 8>(&KEY_LENGTHS, little);
    }
}
