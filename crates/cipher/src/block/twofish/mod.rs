//! Twofish (Schneier and others 1998), with the full keying of the paper's
//! section 5.1: the key-dependent S-boxes and the MDS product merged into four
//! tables of 256 words, made once a key.
//!
//! **Not constant-time.** Which table line is loaded depends on key and data,
//! so another process on the same core can learn about both from the cache.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) mod planes;

use zeroize::Zeroize;

use super::{Block, BlockCipher};

const ROUNDS: usize = 16;

/// Blocks worked on together, so that one waits for its loads while another
/// computes.
const LANES: usize = 2;

/// Twofish with a key of 128, 192 or 256 bits.
pub(crate) struct Twofish {
    /// Per byte of g's input: its way through the S-box and its MDS column.
    tables: Box<[[u32; 256]; 4]>,
    subkeys: Subkeys,
}

impl Twofish {
    /// The cipher under a key of 16, 24 or 32 bytes.
    pub(crate) fn new(key: &[u8]) -> Self {
        let words = KeyWords::new(key);
        let mut tables = Box::new([[0; 256]; 4]);
        for (column, table) in tables.iter_mut().enumerate() {
            for (x, entry) in table.iter_mut().enumerate() {
                let y = sbox(column, x as u8, words.s());
                *entry = MDS_COLUMNS[column][usize::from(y)];
            }
        }
        Self {
            tables,
            subkeys: Subkeys::new(|i| h([i; 4], words.even()), |i| h([i; 4], words.odd())),
        }
    }
}

/// The words that h takes from a key: section 4.3 of the paper.
struct KeyWords {
    /// Of 4 bytes each; `pairs` are used of each array.
    even: [[u8; 4]; 4],
    odd: [[u8; 4]; 4],
    s: [[u8; 4]; 4],
    pairs: usize,
}

impl KeyWords {
    fn new(key: &[u8]) -> Self {
        let (pairs, _) = key.as_chunks::<8>();
        let mut words = Self {
            even: [[0; 4]; 4],
            odd: [[0; 4]; 4],
            s: [[0; 4]; 4],
            pairs: pairs.len(),
        };
        for (i, pair) in pairs.iter().enumerate() {
            words.even[i].copy_from_slice(&pair[..4]);
            words.odd[i].copy_from_slice(&pair[4..]);
            words.s[pairs.len() - 1 - i] = reed_solomon(pair);
        }
        words
    }

    fn even(&self) -> &[[u8; 4]] {
        &self.even[..self.pairs]
    }

    fn odd(&self) -> &[[u8; 4]] {
        &self.odd[..self.pairs]
    }

    fn s(&self) -> &[[u8; 4]] {
        &self.s[..self.pairs]
    }
}

impl Drop for KeyWords {
    fn drop(&mut self) {
        self.even.zeroize();
        self.odd.zeroize();
        self.s.zeroize();
    }
}

/// K₀ … K₃₉.
struct Subkeys {
    input_whitening: [u32; 4],
    output_whitening: [u32; 4],
    round_keys: [[u32; 2]; ROUNDS],
}

impl Subkeys {
    const PAIRS: usize = ROUNDS + 4;

    /// `even` and `odd` are h of a number in every byte, under the key words of
    /// that name: section 4.3.
    fn new(even: impl Fn(u8) -> u32, odd: impl Fn(u8) -> u32) -> Self {
        let mut subkeys = [[0; 2]; Self::PAIRS];
        for (i, subkey) in subkeys.iter_mut().enumerate() {
            let a = even(2 * i as u8);
            let b = odd(2 * i as u8 + 1).rotate_left(8);
            *subkey = [
                a.wrapping_add(b),
                a.wrapping_add(b).wrapping_add(b).rotate_left(9),
            ];
        }
        let mut this = Self {
            input_whitening: [0; 4],
            output_whitening: [0; 4],
            round_keys: [[0; 2]; ROUNDS],
        };
        let flat = subkeys.as_flattened();
        this.input_whitening.copy_from_slice(&flat[..4]);
        this.output_whitening.copy_from_slice(&flat[4..8]);
        this.round_keys.copy_from_slice(&subkeys[4..]);
        subkeys.zeroize();
        this
    }
}

impl Drop for Subkeys {
    fn drop(&mut self) {
        self.input_whitening.zeroize();
        self.output_whitening.zeroize();
        self.round_keys.zeroize();
    }
}

impl BlockCipher<16> for Twofish {
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

impl Drop for Twofish {
    fn drop(&mut self) {
        self.tables.as_flattened_mut().zeroize();
    }
}

impl Twofish {
    #[inline(always)]
    fn encrypt_lanes<const N: usize>(&self, blocks: &mut [Block; N]) {
        let mut lanes = load(blocks, &self.subkeys.input_whitening);
        for keys in self.subkeys.round_keys.as_chunks::<2>().0 {
            for [a, b, c, d] in &mut lanes {
                self.round(*a, *b, c, d, keys[0]);
            }
            for [a, b, c, d] in &mut lanes {
                self.round(*c, *d, a, b, keys[1]);
            }
        }
        // The last round does not swap.
        let lanes = lanes.map(|[a, b, c, d]| [c, d, a, b]);
        store(lanes, &self.subkeys.output_whitening, blocks);
    }

    #[inline(always)]
    fn decrypt_lanes<const N: usize>(&self, blocks: &mut [Block; N]) {
        let lanes = load(blocks, &self.subkeys.output_whitening);
        let mut lanes = lanes.map(|[c, d, a, b]| [a, b, c, d]);
        for keys in self.subkeys.round_keys.as_chunks::<2>().0.iter().rev() {
            for [a, b, c, d] in &mut lanes {
                self.inverse_round(*c, *d, a, b, keys[1]);
            }
            for [a, b, c, d] in &mut lanes {
                self.inverse_round(*a, *b, c, d, keys[0]);
            }
        }
        store(lanes, &self.subkeys.input_whitening, blocks);
    }

    #[inline(always)]
    fn round(&self, a: u32, b: u32, c: &mut u32, d: &mut u32, key: [u32; 2]) {
        let [f0, f1] = self.f(a, b, key);
        *c = (*c ^ f0).rotate_right(1);
        *d = d.rotate_left(1) ^ f1;
    }

    #[inline(always)]
    fn inverse_round(&self, a: u32, b: u32, c: &mut u32, d: &mut u32, key: [u32; 2]) {
        let [f0, f1] = self.f(a, b, key);
        *c = c.rotate_left(1) ^ f0;
        *d = (*d ^ f1).rotate_right(1);
    }

    /// Section 4.1.
    #[inline(always)]
    fn f(&self, a: u32, b: u32, key: [u32; 2]) -> [u32; 2] {
        let [t0, t1, t2, t3] = &*self.tables;
        let [a0, a1, a2, a3] = a.to_le_bytes().map(usize::from);
        // g of b rotated left by 8: its bytes one table further.
        let [b0, b1, b2, b3] = b.to_le_bytes().map(usize::from);
        let x = t0[a0] ^ t1[a1] ^ t2[a2] ^ t3[a3];
        let y = t1[b0] ^ t2[b1] ^ t3[b2] ^ t0[b3];
        let sum = x.wrapping_add(y);
        [
            sum.wrapping_add(key[0]),
            sum.wrapping_add(y).wrapping_add(key[1]),
        ]
    }
}

#[inline(always)]
fn load<const N: usize>(blocks: &[Block; N], whitening: &[u32; 4]) -> [[u32; 4]; N] {
    std::array::from_fn(|i| {
        let words = blocks[i].as_chunks().0;
        std::array::from_fn(|j| u32::from_le_bytes(words[j]) ^ whitening[j])
    })
}

#[inline(always)]
fn store<const N: usize>(lanes: [[u32; 4]; N], whitening: &[u32; 4], blocks: &mut [Block; N]) {
    for (lane, block) in lanes.iter().zip(blocks) {
        for (j, word) in block.as_chunks_mut().0.iter_mut().enumerate() {
            *word = (lane[j] ^ whitening[j]).to_le_bytes();
        }
    }
}

/// Section 4.3.2, with Lₖ₋₁ … L₀ from the end of `l`.
fn h(x: [u8; 4], l: &[[u8; 4]]) -> u32 {
    (0..4).fold(0, |sum, column| {
        sum ^ MDS_COLUMNS[column][usize::from(sbox(column, x[column], l))]
    })
}

/// The way of byte `column` through h, up to the MDS product.
fn sbox(column: usize, x: u8, l: &[[u8; 4]]) -> u8 {
    let order = &ORDER[column];
    let y = l.iter().enumerate().rev().fold(x, |y, (stage, word)| {
        Q[order[stage]][usize::from(y)] ^ word[column]
    });
    Q[order[4]][usize::from(y)]
}

/// Section 4.3: the product of the RS matrix and eight bytes of key.
fn reed_solomon(key: &[u8; 8]) -> [u8; 4] {
    const RS: [[u8; 8]; 4] = [
        [0x01, 0xa4, 0x55, 0x87, 0x5a, 0x58, 0xdb, 0x9e],
        [0xa4, 0x56, 0x82, 0xf3, 0x1e, 0xc6, 0x68, 0xe5],
        [0x02, 0xa1, 0xfc, 0xc1, 0x47, 0xae, 0x3d, 0x19],
        [0xa4, 0x55, 0x87, 0x5a, 0x58, 0xdb, 0x9e, 0x03],
    ];
    RS.map(|row| {
        row.iter()
            .zip(key)
            .fold(0, |sum, (&a, &b)| sum ^ field_mul(a, b, 0x14d))
    })
}

/// Figure 4, by byte of h: which q comes before the key word of each stage;
/// then the last one.
const ORDER: [[usize; 5]; 4] = [
    [0, 0, 1, 1, 1],
    [0, 1, 1, 0, 0],
    [1, 0, 0, 0, 1],
    [1, 1, 0, 1, 0],
];

/// q₀ and q₁, section 4.3.5.
const Q: [[u8; 256]; 2] = [
    permutation([
        0x817d_6f32_0b59_eca4,
        0xecb8_1235_f4a6_709d,
        0xba5e_6d90_c8f3_2471,
        0xd7f4_126e_9b30_85ca,
    ]),
    permutation([
        0x28bd_f76e_3194_0ac5,
        0x1e2b_4c37_6da5_f908,
        0x4c75_169a_0ed8_2b3f,
        0xb951_c3de_647f_208a,
    ]),
];

/// Section 4.3.2.
const MDS: [[u8; 4]; 4] = [
    [0x01, 0xef, 0x5b, 0x5b],
    [0x5b, 0xef, 0xef, 0x01],
    [0xef, 0x5b, 0x01, 0xef],
    [0xef, 0x01, 0xef, 0x5b],
];

/// Column j of the MDS matrix times every byte, section 4.3.2; row i in byte i.
const MDS_COLUMNS: [[u32; 256]; 4] = {
    let mut columns = [[0; 256]; 4];
    let mut column = 0;
    while column < 4 {
        let mut x = 0;
        while x < 256 {
            columns[column][x] = u32::from_le_bytes([
                field_mul(MDS[0][column], x as u8, 0x169),
                field_mul(MDS[1][column], x as u8, 0x169),
                field_mul(MDS[2][column], x as u8, 0x169),
                field_mul(MDS[3][column], x as u8, 0x169),
            ]);
            x += 1;
        }
        column += 1;
    }
    columns
};

/// One of the fixed permutations from its four tables of nibbles, each the 16
/// hexadecimal digits of a number as section 4.3.5 prints them.
const fn permutation(t: [u64; 4]) -> [u8; 256] {
    const fn digit(table: u64, nibble: usize) -> usize {
        (table >> (60 - 4 * nibble)) as usize & 15
    }
    const fn half(a: usize, b: usize) -> (usize, usize) {
        let rotated = b >> 1 | b << 3 & 15;
        (a ^ b, a ^ rotated ^ a << 3 & 15)
    }
    let mut q = [0; 256];
    let mut x = 0;
    while x < 256 {
        let (a, b) = half(x >> 4, x & 15);
        let (a, b) = half(digit(t[0], a), digit(t[1], b));
        q[x] = (digit(t[3], b) << 4 | digit(t[2], a)) as u8;
        x += 1;
    }
    q
}

/// The product in GF(2⁸) modulo `modulus`, given with its x⁸ term. No branch
/// and no load depends on the factors: one of them can be key.
const fn field_mul(a: u8, b: u8, modulus: u16) -> u8 {
    let mut product = 0_u16;
    let mut bit = 8;
    while bit > 0 {
        bit -= 1;
        product <<= 1;
        product ^= modulus & (product >> 8 & 1).wrapping_neg();
        product ^= a as u16 & (b as u16 >> bit & 1).wrapping_neg();
    }
    product as u8
}
