//! Camellia (RFC 3713), with the S-boxes and the P-function of F merged into
//! eight tables of 256 double words.
//!
//! **Not constant-time.** Which table line is loaded depends on key and data,
//! so another process on the same core can learn about both from the cache.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) mod planes;
pub(crate) mod sbox;

use zeroize::Zeroize;

use super::{Block, BlockCipher};

/// Blocks worked on together, so that one waits for its loads while another
/// computes.
const LANES: usize = 6;

/// Camellia with a key of 128, 192 or 256 bits.
pub(crate) struct Camellia {
    encryption: Subkeys,
    /// The same in reverse order: section 2.3.3.
    decryption: Subkeys,
}

/// The subkeys of one direction, in the order of the rounds.
#[derive(Clone, Copy)]
struct Subkeys {
    before: [u64; 2],
    /// Six rounds each; 128-bit keys leave the last one out.
    sixes: [[u64; 6]; 4],
    /// For FL and FL⁻¹ between one six and the next.
    between: [[u64; 2]; 3],
    after: [u64; 2],
    six_count: usize,
}

impl Camellia {
    /// The cipher under a key of 16, 24 or 32 bytes.
    pub(crate) fn new(key: &[u8]) -> Self {
        let encryption = Subkeys::new(key, f);
        Self {
            decryption: encryption.reversed(),
            encryption,
        }
    }
}

impl Subkeys {
    /// Those of encryption under a key of 16, 24 or 32 bytes, by the function
    /// F without a key: section 2.2.
    fn new(key: &[u8], f: impl Fn(u64) -> u64) -> Self {
        // Two rounds over the key itself.
        let mix = |x: &mut [u64; 2], sigma: [u64; 2]| {
            x[1] ^= f(x[0] ^ sigma[0]);
            x[0] ^= f(x[1] ^ sigma[1]);
        };
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(key.as_chunks::<8>().0) {
            *word = u64::from_be_bytes(*bytes);
        }
        if key.len() == 24 {
            words[3] = !words[2];
        }
        let (l, r) = ([words[0], words[1]], [words[2], words[3]]);
        let mut a = add(l, r);
        mix(&mut a, [0xa09e_667f_3bcc_908b, 0xb67a_e858_4caa_73b2]);
        a = add(a, l);
        mix(&mut a, [0xc6ef_372f_e94f_82be, 0x54ff_53a5_f1d3_6f1c]);
        let mut b = add(a, r);
        mix(&mut b, [0x10e5_27fa_de68_2d1d, 0xb056_88c2_b3e6_c1fd]);

        let subkeys = if key.len() == 16 {
            Self {
                before: l,
                sixes: [
                    six([rotate(a, 0), rotate(l, 15), rotate(a, 15)]),
                    six([
                        rotate(l, 45),
                        [rotate(a, 45)[0], rotate(l, 60)[1]],
                        rotate(a, 60),
                    ]),
                    six([rotate(l, 94), rotate(a, 94), rotate(l, 111)]),
                    [0; 6],
                ],
                between: [rotate(a, 30), rotate(l, 77), [0; 2]],
                after: rotate(a, 111),
                six_count: 3,
            }
        } else {
            Self {
                before: l,
                sixes: [
                    six([rotate(b, 0), rotate(r, 15), rotate(a, 15)]),
                    six([rotate(b, 30), rotate(l, 45), rotate(a, 45)]),
                    six([rotate(r, 60), rotate(b, 60), rotate(l, 77)]),
                    six([rotate(r, 94), rotate(a, 94), rotate(l, 111)]),
                ],
                between: [rotate(r, 30), rotate(l, 60), rotate(a, 77)],
                after: rotate(b, 111),
                six_count: 4,
            }
        };
        words.zeroize();
        a.zeroize();
        b.zeroize();
        subkeys
    }

    fn reversed(mut self) -> Self {
        std::mem::swap(&mut self.before, &mut self.after);
        self.sixes[..self.six_count].as_flattened_mut().reverse();
        self.between[..self.six_count - 1]
            .as_flattened_mut()
            .reverse();
        self
    }

    fn wipe(&mut self) {
        self.before.zeroize();
        self.sixes.as_flattened_mut().zeroize();
        self.between.as_flattened_mut().zeroize();
        self.after.zeroize();
    }

    fn crypt(&self, blocks: &mut [Block]) {
        let (groups, rest) = blocks.as_chunks_mut::<LANES>();
        for group in groups {
            self.crypt_lanes(group);
        }
        for block in rest {
            self.crypt_lanes(std::array::from_mut(block));
        }
    }

    /// Section 2.3.
    #[inline(always)]
    fn crypt_lanes<const N: usize>(&self, blocks: &mut [Block; N]) {
        let mut lanes = blocks.map(|block| {
            let [high, low] = halves(block);
            add([high, low], self.before)
        });
        for (nth, six) in self.sixes[..self.six_count].iter().enumerate() {
            if nth > 0 {
                let keys = self.between[nth - 1];
                for [left, right] in &mut lanes {
                    *left = fl(*left, keys[0]);
                    *right = fl_inverse(*right, keys[1]);
                }
            }
            for keys in six.as_chunks::<2>().0 {
                for [left, right] in &mut lanes {
                    *right ^= f(*left ^ keys[0]);
                }
                for [left, right] in &mut lanes {
                    *left ^= f(*right ^ keys[1]);
                }
            }
        }
        for (block, [left, right]) in blocks.iter_mut().zip(lanes) {
            let [high, low] = add([right, left], self.after);
            *block = (u128::from(high) << 64 | u128::from(low)).to_be_bytes();
        }
    }
}

impl BlockCipher<16> for Camellia {
    fn encrypt_blocks(&self, blocks: &mut [Block]) {
        self.encryption.crypt(blocks);
    }

    fn decrypt_blocks(&self, blocks: &mut [Block]) {
        self.decryption.crypt(blocks);
    }
}

impl Drop for Camellia {
    fn drop(&mut self) {
        self.encryption.wipe();
        self.decryption.wipe();
    }
}

fn halves(block: Block) -> [u64; 2] {
    let number = u128::from_be_bytes(block);
    [(number >> 64) as u64, number as u64]
}

fn add(x: [u64; 2], y: [u64; 2]) -> [u64; 2] {
    [x[0] ^ y[0], x[1] ^ y[1]]
}

fn six(pairs: [[u64; 2]; 3]) -> [u64; 6] {
    let [[a, b], [c, d], [e, f]] = pairs;
    [a, b, c, d, e, f]
}

fn rotate(key: [u64; 2], bits: u32) -> [u64; 2] {
    let number = (u128::from(key[0]) << 64 | u128::from(key[1])).rotate_left(bits);
    [(number >> 64) as u64, number as u64]
}

/// Section 2.4.1, after the addition of the key.
#[inline(always)]
fn f(x: u64) -> u64 {
    let [a, b, c, d, e, f, g, h] = x.to_be_bytes().map(usize::from);
    let [ta, tb, tc, td, te, tf, tg, th] = &TABLES;
    ta[a] ^ tb[b] ^ tc[c] ^ td[d] ^ te[e] ^ tf[f] ^ tg[g] ^ th[h]
}

/// Section 2.4.2.
#[inline(always)]
fn fl(x: u64, key: u64) -> u64 {
    let (mut left, mut right) = ((x >> 32) as u32, x as u32);
    right ^= (left & (key >> 32) as u32).rotate_left(1);
    left ^= right | key as u32;
    u64::from(left) << 32 | u64::from(right)
}

/// Section 2.4.3.
#[inline(always)]
fn fl_inverse(x: u64, key: u64) -> u64 {
    let (mut left, mut right) = ((x >> 32) as u32, x as u32);
    left ^= right | key as u32;
    right ^= (left & (key >> 32) as u32).rotate_left(1);
    u64::from(left) << 32 | u64::from(right)
}

/// Whether s₄ takes the byte at this place of F's input.
#[cfg(target_arch = "x86_64")]
pub(crate) const fn is_of_s4(place: usize) -> bool {
    place == 3 || place == 6
}

/// Column j of the P-function, as a mask.
pub(crate) const P_COLUMNS: [u64; 8] = [
    0xffff_ff00_ff00_00ff,
    0x00ff_ffff_ffff_0000,
    0xff00_ffff_00ff_ff00,
    0xffff_00ff_0000_ffff,
    0x00ff_ffff_00ff_ffff,
    0xff00_ffff_ff00_ffff,
    0xffff_00ff_ffff_00ff,
    0xffff_ff00_ffff_ff00,
];

/// Per byte of F's input: its way through the S-box, and which bytes of the
/// result the P-function adds it to.
static TABLES: [[u64; 256]; 8] = {
    let mut tables = [[0; 256]; 8];
    let mut x = 0;
    while x < 256 {
        let s1 = sbox::SBOX1[x];
        let (s2, s3) = (s1.rotate_left(1), s1.rotate_left(7));
        let s4 = sbox::SBOX1[(x as u8).rotate_left(1) as usize];
        let outputs = [s1, s2, s3, s4, s2, s3, s4, s1];
        let mut byte = 0;
        while byte < 8 {
            tables[byte][x] = u64::from_ne_bytes([outputs[byte]; 8]) & P_COLUMNS[byte];
            byte += 1;
        }
        x += 1;
    }
    tables
};

#[cfg(test)]
mod tests {
    use super::Camellia;
    use crate::block::tests;
    use crate::reference;

    #[test]
    fn known_answers() {
        tests::known_answers::<reference::Camellia, _, 16>("camellia", Camellia::new);
    }

    #[test]
    fn equals_the_reference() {
        tests::equals_reference::<reference::Camellia, _, 16>(&[16, 24, 32], Camellia::new);
    }

    #[test]
    fn agrees_with_rustcrypto() {
        tests::agrees_with::<camellia::Camellia128, _, 16>(&[16], Camellia::new);
        tests::agrees_with::<camellia::Camellia192, _, 16>(&[24], Camellia::new);
        tests::agrees_with::<camellia::Camellia256, _, 16>(&[32], Camellia::new);
    }
}
