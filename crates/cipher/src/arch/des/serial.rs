//! DES block by block, for what is too little to fill the planes: AVX-512 with
//! VBMI and GFNI, in constant time.
//!
//! An S-box takes its input in a qword of its own, as an index: in bits 3 … 0 the
//! column, in bits 7 and 4 the row. GFNI makes an index of a matrix, the rows of
//! which add up to a bit each: half a block is kept as these rows, and so is a
//! round key.
//!
//! ```text
//! look up   four byte shuffles, one a row, over the 16 columns of two S-boxes in
//!           each 128 bits: bit 7 of an index makes 0, and of bit 4 GFNI makes a
//!           mask that picks one of two
//! permute   E(P(…)) of the eight results: a permutation of bytes brings to each
//!           row the byte with its bit, and an AND keeps that bit
//! ```
//!
//! Nothing is loaded or decided by the key or the data.

use std::arch::x86_64::*;

use zeroize::Zeroize;

use crate::arch::Avx512Bytes;
use crate::block::BlockCipher;
use crate::block::des::planes::{INITIAL, TARGETS};
use crate::block::des::{Block, ROUNDS, RoundKey, sbox};

/// A byte for each of a register.
type Bytes = [u8; 64];

/// The bit of an index that each input of an S-box is.
const INDEX_BITS: [usize; 6] = [7, 3, 2, 1, 0, 4];

/// The row for a bit of a qword; GFNI's matrices have that of bit 7 first.
const fn row(qword: usize, bit: usize) -> usize {
    8 * qword + 7 - bit
}

/// Where the rows of matrices come from: a byte of the source, and the bit of it
/// that counts.
struct Gather {
    from: Bytes,
    mask: Bytes,
}

impl Gather {
    const NOTHING: Self = Self {
        from: [0; 64],
        mask: [0; 64],
    };

    /// The matrix of qword `qword` makes its bit `bit` of bit `of` of byte `from`.
    const fn set(&mut self, qword: usize, bit: usize, from: usize, of: usize) {
        let row = row(qword, bit);
        self.from[row] = from as u8;
        self.mask[row] = 1 << of;
    }

    /// The indices of half a block, E of it, by the byte and the bit of it where
    /// each bit of the half is.
    const fn expanding(places: [(usize, usize); 32]) -> Self {
        let mut gather = Self::NOTHING;
        let mut i = 0;
        while i < 48 {
            let (sbox, input) = (i / 6, i % 6);
            let (from, of) = places[(4 * sbox + 31 + input) % 32];
            gather.set(sbox, INDEX_BITS[input], from, of);
            i += 1;
        }
        gather
    }
}

/// From a block: its halves after IP.
const HALVES: [Gather; 2] = {
    let mut places = [[(0, 0); 32]; 2];
    let mut i = 0;
    while i < 64 {
        places[i / 32][i % 32] = (INITIAL[i] / 8, INITIAL[i] % 8);
        i += 1;
    }
    [Gather::expanding(places[0]), Gather::expanding(places[1])]
};

/// From the results of the S-boxes, each in every byte of its qword, those of odd
/// qwords in the upper nibble: the half that P makes of them.
const PERMUTED: Gather = {
    let mut places = [(0, 0); 32];
    let mut i = 0;
    while i < 32 {
        let (sbox, output) = (i / 4, i % 4);
        places[TARGETS[sbox][output]] = (8 * sbox, sbox % 2 * 4 + 3 - output);
        i += 1;
    }
    Gather::expanding(places)
};

/// From the columns of the left half, with those of the right in the upper
/// nibble: the block before IP.
const BLOCK: Gather = {
    let mut gather = Gather::NOTHING;
    let mut i = 0;
    while i < 64 {
        let (half, bit) = (i / 32, i % 32);
        let of = 4 * half + 3 - bit % 4;
        gather.set(INITIAL[i] / 8, INITIAL[i] % 8, 8 * (bit / 4), of);
        i += 1;
    }
    gather
};

/// DES or Triple DES under a key.
pub(super) struct Serial {
    cpu: Avx512Bytes,
    tables: [Bytes; 4],
    round_keys: Box<[Bytes]>,
}

impl Serial {
    /// The cipher of these keys, those of DES three times for Triple DES.
    pub(super) fn new(cpu: Avx512Bytes, round_keys: &[RoundKey]) -> Self {
        let rows = |key: &RoundKey| {
            let mut rows = [0; 64];
            for (i, word) in key.iter().enumerate() {
                rows[row(i / 6, INDEX_BITS[i % 6])] = *word as u8 & 1;
            }
            rows
        };
        Self {
            cpu,
            tables: tables(),
            round_keys: round_keys.iter().map(rows).collect(),
        }
    }
}

impl Drop for Serial {
    fn drop(&mut self) {
        self.round_keys.as_flattened_mut().zeroize();
    }
}

/// A row of the S-boxes in each: in every 128 bits the columns of two S-boxes,
/// the second in the upper nibbles.
fn tables() -> [Bytes; 4] {
    /// Bit i of word j is input j of an S-box for index i.
    const INPUTS: [u64; 6] = [
        0xffff_ffff_0000_0000,
        0xffff_0000_ffff_0000,
        0xff00_ff00_ff00_ff00,
        0xf0f0_f0f0_f0f0_f0f0,
        0xcccc_cccc_cccc_cccc,
        0xaaaa_aaaa_aaaa_aaaa,
    ];
    let sboxes = [
        sbox::substitute::<0, u64>(INPUTS),
        sbox::substitute::<1, u64>(INPUTS),
        sbox::substitute::<2, u64>(INPUTS),
        sbox::substitute::<3, u64>(INPUTS),
        sbox::substitute::<4, u64>(INPUTS),
        sbox::substitute::<5, u64>(INPUTS),
        sbox::substitute::<6, u64>(INPUTS),
        sbox::substitute::<7, u64>(INPUTS),
    ];
    let mut tables = [[0; 64]; 4];
    for (row, table) in tables.iter_mut().enumerate() {
        for (place, byte) in table.iter_mut().enumerate() {
            let (pair, column) = (place / 16, place % 16);
            let input = row >> 1 << 5 | column << 1 | row & 1;
            for (nibble, outputs) in sboxes[2 * pair..][..2].iter().enumerate() {
                for (output, word) in outputs.iter().enumerate() {
                    *byte |= ((word >> input & 1) as u8) << (4 * nibble + 3 - output);
                }
            }
        }
    }
    tables
}

impl BlockCipher<8> for Serial {
    fn encrypt_blocks(&self, blocks: &mut [Block]) {
        // SAFETY: `cpu` proves the features.
        unsafe { crypt_blocks::<true>(self, blocks) }
    }

    fn decrypt_blocks(&self, blocks: &mut [Block]) {
        // SAFETY: `cpu` proves the features.
        unsafe { crypt_blocks::<false>(self, blocks) }
    }

    fn encrypt_cbc(&self, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        // SAFETY: `cpu` proves the features.
        unsafe { encrypt_sectors(self, ivs, sector_bytes, data) }
    }
}

/// Blocks side by side: a round waits for itself.
const BESIDE: usize = 2;

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
fn crypt_blocks<const ENCRYPT: bool>(serial: &Serial, blocks: &mut [Block]) {
    let engine = Engine::new(serial);
    let (pairs, rest) = blocks.as_chunks_mut();
    for pair in pairs {
        engine.crypt_blocks::<ENCRYPT, BESIDE>(pair);
    }
    for block in rest {
        engine.crypt_blocks::<ENCRYPT, 1>(std::array::from_mut(block));
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
fn encrypt_sectors(serial: &Serial, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
    let engine = Engine::new(serial);
    let (pairs, rest) = ivs.as_chunks();
    let (data, data_of_rest) = data.split_at_mut(BESIDE * pairs.len() * sector_bytes);
    let groups = data.chunks_exact_mut(BESIDE * sector_bytes);
    for (ivs, data) in pairs.iter().zip(groups) {
        engine.encrypt_cbc::<BESIDE>(ivs, data);
    }
    let sectors = data_of_rest.chunks_exact_mut(sector_bytes);
    for (iv, data) in rest.iter().zip(sectors) {
        engine.encrypt_cbc::<1>(&[*iv], data);
    }
}

/// The rows of the halves of a block, to the right one of which `results` are
/// still to be added, those of S-boxes before [`PERMUTED`] masks them.
#[derive(Clone, Copy)]
struct Halves {
    left: __m512i,
    right: __m512i,
    results: __m512i,
}

/// The values that a function with these CPU features keeps in registers, and the proof of the
/// features.
struct Engine<'a> {
    cpu: Avx512Bytes,
    round_keys: &'a [Bytes],
    tables: [__m512i; 4],
    zero: __m512i,
    ones: __m512i,
}

/// (x ∧ y) ⊕ z.
const KEEP_AND_ADD: i32 = 0x6a;

/// y where z has a one, else x.
const CHOOSE: i32 = 0xd8;

// Every method is inlined into a function with the features.
impl<'a> Engine<'a> {
    #[inline(always)]
    fn new(serial: &'a Serial) -> Self {
        let cpu = serial.cpu;
        let tables = &serial.tables;
        Self {
            cpu,
            round_keys: &serial.round_keys,
            tables: [
                load(cpu, &tables[0]),
                load(cpu, &tables[1]),
                load(cpu, &tables[2]),
                load(cpu, &tables[3]),
            ],
            zero: load(cpu, &[0; 64]),
            ones: load(cpu, &[0xff; 64]),
        }
    }

    /// The bytes of `x` that have the bits of `gather`, and others.
    #[inline(always)]
    fn permute(&self, x: __m512i, gather: &Gather) -> __m512i {
        // SAFETY: `cpu` proves AVX-512 VBMI.
        unsafe { _mm512_permutexvar_epi8(load(self.cpu, &gather.from), x) }
    }

    /// The bits of what [`permute`](Self::permute) gave, added to `rows`.
    #[inline(always)]
    fn add(&self, permuted: __m512i, gather: &Gather, rows: __m512i) -> __m512i {
        let mask = load(self.cpu, &gather.mask);
        // SAFETY: `cpu` proves AVX-512 F.
        unsafe { _mm512_ternarylogic_epi64::<KEEP_AND_ADD>(permuted, mask, rows) }
    }

    /// The bits that `rows` add up to, in every byte of a qword.
    #[inline(always)]
    fn sum(&self, rows: __m512i) -> __m512i {
        // SAFETY: `cpu` proves GFNI and AVX-512 F.
        unsafe { _mm512_gf2p8affine_epi64_epi8::<0>(self.ones, rows) }
    }

    /// The right half with the results.
    #[inline(always)]
    fn right(&self, x: Halves) -> __m512i {
        self.add(x.results, &PERMUTED, x.right)
    }

    /// IP of `block`, added to `left` and `right`.
    #[inline(always)]
    fn halves(&self, block: &Block, left: __m512i, right: __m512i) -> Halves {
        // SAFETY: `cpu` proves AVX-512 F.
        let x = unsafe { _mm512_set1_epi64(i64::from_le_bytes(*block)) };
        let [of_left, of_right] = &HALVES;
        Halves {
            left: self.add(self.permute(x, of_left), of_left, left),
            right: self.add(self.permute(x, of_right), of_right, right),
            results: self.zero,
        }
    }

    /// The inverse of IP.
    #[inline(always)]
    fn block(&self, x: Halves) -> Block {
        let (left, right) = (self.sum(x.left), self.sum(self.right(x)));
        // SAFETY: `cpu` proves AVX-512 F.
        let columns = unsafe {
            let right = _mm512_slli_epi64::<4>(right);
            _mm512_ternarylogic_epi64::<CHOOSE>(left, right, _mm512_set1_epi8(-16))
        };
        let bytes = self.sum(self.add(self.permute(columns, &BLOCK), &BLOCK, self.zero));
        // SAFETY: `cpu` proves AVX-512 F.
        let block = unsafe { _mm_cvtsi128_si64(_mm512_cvtepi64_epi8(bytes)) };
        block.to_le_bytes()
    }

    /// All rounds, and the exchange of the halves after them.
    #[inline(always)]
    fn crypt<const ENCRYPT: bool, const N: usize>(&self, mut x: [Halves; N]) -> [Halves; N] {
        let last = self.round_keys.len() - 1;
        for des in 0..self.round_keys.len() / ROUNDS {
            for nth in des * ROUNDS..(des + 1) * ROUNDS {
                let key = &self.round_keys[if ENCRYPT { nth } else { last - nth }];
                for x in &mut x {
                    *x = self.round(*x, key);
                }
            }
            for x in &mut x {
                *x = Halves {
                    left: self.right(*x),
                    right: x.left,
                    results: self.zero,
                };
            }
        }
        x
    }

    #[inline(always)]
    fn round(&self, x: Halves, key: &Bytes) -> Halves {
        /// For every row that of bit 4.
        const LOWER_ROW: Bytes = {
            let mut from = [0; 64];
            let mut i = 0;
            while i < 64 {
                from[i] = row(i / 8 % 2, 4) as u8;
                i += 1;
            }
            from
        };
        /// The nibbles without a result, which need no mask.
        const OTHER_NIBBLES: Bytes = {
            let mut nibbles = [0; 64];
            let mut i = 0;
            while i < 64 {
                nibbles[i] = if i / 8 % 2 == 0 { 0xf0 } else { 0x0f };
                i += 1;
            }
            nibbles
        };
        let [row_0, row_1, row_2, row_3] = self.tables;
        // SAFETY: `cpu` proves GFNI, AVX-512 F and BW.
        let results = unsafe {
            let keyed = _mm512_xor_si512(x.right, load(self.cpu, key));
            let rows = self.add(x.results, &PERMUTED, keyed);
            let index = self.sum(rows);
            let flipped = _mm512_gf2p8affine_epi64_epi8::<0x80>(self.ones, rows);
            let odd = self.sum(_mm512_shuffle_epi8(rows, load(self.cpu, &LOWER_ROW)));
            // An instruction that reads a result of GFNI waits a cycle longer for all its inputs.
            // The only use of this sum is to be read in place of such a result.
            let odd = _mm512_xor_si512(odd, load(self.cpu, &OTHER_NIBBLES));
            let row_0 = _mm512_shuffle_epi8(row_0, index);
            let row_1 = _mm512_shuffle_epi8(row_1, index);
            let row_2 = _mm512_shuffle_epi8(row_2, flipped);
            let row_3 = _mm512_shuffle_epi8(row_3, flipped);
            // One of each pair is 0, and nothing here waits for `odd`.
            let even_row = _mm512_or_si512(row_0, row_2);
            let odd_row = _mm512_or_si512(row_1, row_3);
            _mm512_ternarylogic_epi64::<CHOOSE>(even_row, odd_row, odd)
        };
        Halves {
            left: self.right(x),
            right: x.left,
            results: self.permute(results, &PERMUTED),
        }
    }

    #[inline(always)]
    fn crypt_blocks<const ENCRYPT: bool, const N: usize>(&self, blocks: &mut [Block; N]) {
        let nothing = Halves {
            left: self.zero,
            right: self.zero,
            results: self.zero,
        };
        let mut x = [nothing; N];
        for (x, block) in x.iter_mut().zip(&*blocks) {
            *x = self.halves(block, self.zero, self.zero);
        }
        let x = self.crypt::<ENCRYPT, N>(x);
        for (x, block) in x.iter().zip(blocks) {
            *block = self.block(*x);
        }
    }

    /// As many sectors as `ivs`, side by side.
    #[inline(always)]
    fn encrypt_cbc<const N: usize>(&self, ivs: &[Block; N], data: &mut [u8]) {
        let data = data.as_chunks_mut().0;
        let sector_blocks = data.len() / N;
        let mut chain = ivs.map(|iv| self.halves(&iv, self.zero, self.zero));
        for nth in 0..sector_blocks {
            for (sector, x) in chain.iter_mut().enumerate() {
                // There are no results between the rounds.
                *x = self.halves(&data[sector * sector_blocks + nth], x.left, x.right);
            }
            chain = self.crypt::<true, N>(chain);
            for (sector, x) in chain.iter().enumerate() {
                data[sector * sector_blocks + nth] = self.block(*x);
            }
        }
    }
}

#[inline(always)]
fn load(_: Avx512Bytes, bytes: &Bytes) -> __m512i {
    // SAFETY: the first argument proves AVX-512 F, and the bytes are borrowed.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}
