//! Camellia block by block, for what is too little to fill the planes: AVX-512 VL
//! with GFNI, in constant time.
//!
//! A register has a half of two blocks, each twice in its 128 bits. An inversion and
//! a map take all bytes through an S-box, and the map of the lower copy is another
//! than that of the upper: s₄ rotates before s₁, so bytes of its places are kept
//! rotated, and what is added to them is.
//!
//! ```text
//! substitute   three inversions: s₁ and s₄, s₂, s₃
//! permute      of each result as many shuffles as one byte of P takes bytes of it
//! ```
//!
//! Nothing is loaded or decided by the key or the data.

use std::arch::x86_64::*;

use zeroize::Zeroize;

use super::Avx512Bytes;
use crate::block::Block;
use crate::block::camellia::{P_COLUMNS, is_of_s4};
use crate::block::planes::NOTHING;

/// The keys and maps of a block's encryption. Halves are their bytes in memory, as images except
/// for those of FL. Maps are matrices for GFNI, one for the places of s₁, s₂ and s₃ and one for
/// those of s₄.
pub(crate) struct Keys {
    /// From bytes to their images, and back.
    pub(crate) enter: [u64; 2],
    pub(crate) leave: [u64; 2],
    /// s₁, s₂ and s₃ of the inverses of images, to images.
    pub(crate) substitute: [[u64; 2]; 3],
    /// Added to the left half at first.
    pub(crate) before: u64,
    /// Added by each round. Six rounds each; 128-bit keys leave the last out.
    pub(crate) sixes: [[u64; 6]; 4],
    /// FL and FL⁻¹ between one six and the next.
    pub(crate) between: [[Layer; 2]; 3],
    /// Added to the halves of the result.
    pub(crate) after: [u64; 2],
    pub(crate) six_count: usize,
}

/// FL or FL⁻¹ without what it adds: masks for the halves of a half as two numbers, the
/// upper bits of which are the second.
#[derive(Clone, Copy)]
pub(crate) struct Layer {
    right: u64,
    left: u64,
}

impl Layer {
    /// That of this subkey.
    pub(crate) fn new(key: u64) -> Self {
        let (left, right) = ((key >> 32) as u32, key as u32);
        Self {
            right: u64::from(left.rotate_left(1)) << 32,
            left: u64::from(!right),
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.before.zeroize();
        self.sixes.as_flattened_mut().zeroize();
        for layer in self.between.as_flattened_mut() {
            layer.right.zeroize();
            layer.left.zeroize();
        }
        self.after.zeroize();
    }
}

/// The S-box of every place, of [`Keys::substitute`].
const SBOXES: [usize; 8] = [0, 1, 2, 0, 1, 2, 0, 0];

/// For a shuffle: the byte that `from` says for each of eight places, of the copy with
/// the map for the place; twice.
const fn gather(from: [usize; 8]) -> [u8; 16] {
    let mut bytes = [0; 16];
    let mut place = 0;
    while place < 8 {
        let byte = from[place] + if is_of_s4(place) { 8 } else { 0 };
        bytes[place] = byte as u8;
        bytes[8 + place] = byte as u8;
        place += 1;
    }
    bytes
}

/// Where big-endian bytes are in two numbers of 32 bits, and the other way round.
const IN_NUMBERS: [usize; 8] = [3, 2, 1, 0, 7, 6, 5, 4];

const IN_PLACE: [u8; 16] = gather([0, 1, 2, 3, 4, 5, 6, 7]);
const FROM_NUMBERS: [u8; 16] = gather(IN_NUMBERS);
const TO_NUMBERS: [u8; 16] = {
    let mut bytes = IN_PLACE;
    let mut i = 0;
    while i < 16 {
        bytes[i] = IN_PLACE[IN_NUMBERS[i % 8]];
        i += 1;
    }
    bytes
};

/// The shuffles of the P-function: those of s₁, those of s₂, those of s₃.
const PERMUTE: [[u8; 16]; 8] = {
    let mut shuffles = [[NOTHING; 16]; 8];
    let mut place = 0;
    while place < 8 {
        let mut next = [0, 4, 6];
        let mut from = 0;
        while from < 8 {
            if P_COLUMNS[from] >> (56 - 8 * place) & 1 == 1 {
                let shuffle = &mut shuffles[next[SBOXES[from]]];
                let byte = from + if is_of_s4(place) { 8 } else { 0 };
                shuffle[place] = byte as u8;
                shuffle[8 + place] = byte as u8;
                next[SBOXES[from]] += 1;
            }
            from += 1;
        }
        place += 1;
    }
    shuffles
};

/// Camellia under a key, for at most [`MOST`](Self::MOST) blocks at a time.
pub(crate) struct Serial {
    cpu: Avx512Bytes,
    keys: Keys,
}

impl Serial {
    /// Blocks of two registers: a round waits for itself.
    pub(crate) const MOST: usize = 4;

    /// The cipher of these keys.
    pub(crate) fn new(cpu: Avx512Bytes, keys: Keys) -> Self {
        Self { cpu, keys }
    }

    /// Encrypts at most [`MOST`](Self::MOST) blocks in place: sectors of one block with
    /// nothing before it.
    pub(crate) fn encrypt(&self, blocks: &mut [Block]) {
        let sectors = blocks.len();
        self.encrypt_cbc(
            &[[0; 16]; Self::MOST][..sectors],
            16,
            blocks.as_flattened_mut(),
        );
    }

    /// Encrypts at most [`MOST`](Self::MOST) sectors in place in CBC mode; `ivs` has
    /// one for each.
    pub(crate) fn encrypt_cbc(&self, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        let Self { cpu, keys } = self;
        match ivs.len() {
            0 => {}
            // SAFETY: `cpu` proves the features.
            1 | 2 => unsafe { encrypt_sectors::<1>(*cpu, keys, ivs, sector_bytes, data) },
            // SAFETY: `cpu` proves the features.
            _ => unsafe { encrypt_sectors::<2>(*cpu, keys, ivs, sector_bytes, data) },
        }
    }
}

/// At most twice `N` sectors.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,gfni")]
fn encrypt_sectors<const N: usize>(
    _: Avx512Bytes,
    keys: &Keys,
    ivs: &[Block],
    sector_bytes: usize,
    data: &mut [u8],
) {
    let engine = Engine::new(keys);
    let before = splat(keys.before);
    let after = keys.after.map(|half| splat(half));
    // Lanes without a sector repeat the last one and are not written.
    let sector = |lane: usize| lane.min(ivs.len() - 1);
    let (blocks, _) = data.as_chunks_mut::<16>();
    let sector_blocks = sector_bytes / 16;
    let mut chain = [[splat(0); N]; 2];
    for i in 0..N {
        let iv = pair([&ivs[sector(2 * i)], &ivs[sector(2 * i + 1)]]);
        [chain[0][i], chain[1][i]] = engine.images(iv);
    }
    for nth in 0..sector_blocks {
        let places = |i: usize| [2 * i, 2 * i + 1].map(|lane| sector(lane) * sector_blocks + nth);
        let [mut left, mut right] = chain;
        for i in 0..N {
            let [a, b] = places(i);
            let [x, y] = engine.images(pair([&blocks[a], &blocks[b]]));
            left[i] = xor3(left[i], x, before);
            right[i] = _mm256_xor_si256(right[i], y);
        }
        engine.rounds(&mut left, &mut right);
        for i in 0..N {
            chain[0][i] = _mm256_xor_si256(right[i], after[0]);
            chain[1][i] = _mm256_xor_si256(left[i], after[1]);
            let found = engine.blocks([chain[0][i], chain[1][i]]);
            for (lane, found) in found.into_iter().enumerate() {
                if 2 * i + lane < ivs.len() {
                    blocks[places(i)[lane]] = found;
                }
            }
        }
    }
}

/// The values that a function with these CPU features keeps in registers.
struct Engine<'a> {
    keys: &'a Keys,
    enter: __m256i,
    leave: __m256i,
    substitute: [__m256i; 3],
    permute: [__m256i; 8],
}

impl<'a> Engine<'a> {
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,gfni")]
    fn new(keys: &'a Keys) -> Self {
        let maps = |[a, b]: [u64; 2]| _mm256_set_epi64x(b as i64, a as i64, b as i64, a as i64);
        Self {
            keys,
            enter: maps(keys.enter),
            leave: maps(keys.leave),
            substitute: keys.substitute.map(maps),
            permute: PERMUTE.map(|from| pair([&from, &from])),
        }
    }

    /// The images of both halves of two blocks.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,gfni")]
    fn images(&self, blocks: __m256i) -> [__m256i; 2] {
        let left = _mm256_unpacklo_epi64(blocks, blocks);
        let right = _mm256_unpackhi_epi64(blocks, blocks);
        [
            mapped(left, self.enter, &IN_PLACE),
            mapped(right, self.enter, &IN_PLACE),
        ]
    }

    /// Inverse of [`images`](Self::images): two blocks from the images of their halves.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,gfni")]
    fn blocks(&self, [left, right]: [__m256i; 2]) -> [Block; 2] {
        let left = mapped(left, self.leave, &IN_PLACE);
        let right = mapped(right, self.leave, &IN_PLACE);
        let both = _mm256_unpacklo_epi64(left, right);
        let mut blocks = [[0; 16]; 2];
        // SAFETY: the blocks are borrowed.
        unsafe { _mm256_storeu_si256(blocks.as_mut_ptr().cast(), both) };
        blocks
    }

    /// All rounds.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,gfni")]
    fn rounds<const N: usize>(&self, left: &mut [__m256i; N], right: &mut [__m256i; N]) {
        let keys = self.keys;
        for (nth, six) in keys.sixes[..keys.six_count].iter().enumerate() {
            if nth > 0 {
                let [fl, fl_inverse] = &keys.between[nth - 1];
                for x in &mut *left {
                    let y = mapped(*x, self.leave, &TO_NUMBERS);
                    let y = change_left(change_right(y, fl), fl);
                    *x = mapped(y, self.enter, &FROM_NUMBERS);
                }
                for x in &mut *right {
                    let y = mapped(*x, self.leave, &TO_NUMBERS);
                    let y = change_right(change_left(y, fl_inverse), fl_inverse);
                    *x = mapped(y, self.enter, &FROM_NUMBERS);
                }
            }
            for added in six.as_chunks::<2>().0 {
                for i in 0..N {
                    right[i] = self.round(left[i], right[i], added[0]);
                }
                for i in 0..N {
                    left[i] = self.round(right[i], left[i], added[1]);
                }
            }
        }
    }

    /// `to` with F of `from` and what else a round adds.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,gfni")]
    fn round(&self, from: __m256i, to: __m256i, added: u64) -> __m256i {
        let [s1, s2, s3] = self
            .substitute
            .map(|maps| _mm256_gf2p8affineinv_epi64_epi8::<0>(from, maps));
        let [a, b, c, d, e, f, g, h] = self.permute;
        let sum = _mm256_xor_si256(to, splat(added));
        let sum = xor3(sum, _mm256_shuffle_epi8(s1, a), _mm256_shuffle_epi8(s2, e));
        let besides = xor3(
            _mm256_shuffle_epi8(s1, b),
            _mm256_shuffle_epi8(s2, f),
            _mm256_shuffle_epi8(s3, g),
        );
        let rest = xor3(
            _mm256_shuffle_epi8(s1, c),
            _mm256_shuffle_epi8(s1, d),
            _mm256_shuffle_epi8(s3, h),
        );
        xor3(sum, besides, rest)
    }
}

/// The first line of FL, section 2.4.2 of RFC 3713, without its constants.
#[target_feature(enable = "avx512f,avx512vl")]
fn change_right(x: __m256i, layer: &Layer) -> __m256i {
    add_product(x, swapped(_mm256_rol_epi32::<1>(x)), layer.right)
}

/// Its second line, without its constants.
#[target_feature(enable = "avx512f,avx512vl")]
fn change_left(x: __m256i, layer: &Layer) -> __m256i {
    add_product(x, swapped(x), layer.left)
}

/// The two numbers of every half in each other's place.
#[target_feature(enable = "avx2")]
fn swapped(x: __m256i) -> __m256i {
    _mm256_shuffle_epi32::<0b10_11_00_01>(x)
}

#[target_feature(enable = "avx512f,avx512vl")]
fn add_product(x: __m256i, y: __m256i, mask: u64) -> __m256i {
    /// x ⊕ (y ∧ z).
    const ADD_PRODUCT: i32 = 0x78;
    _mm256_ternarylogic_epi64::<ADD_PRODUCT>(x, y, splat(mask))
}

#[target_feature(enable = "avx512f,avx512vl")]
fn xor3(x: __m256i, y: __m256i, z: __m256i) -> __m256i {
    _mm256_ternarylogic_epi64::<0x96>(x, y, z)
}

/// Both copies of every half through `maps`, and of them what `gather` takes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,gfni")]
fn mapped(x: __m256i, maps: __m256i, gather: &[u8; 16]) -> __m256i {
    let both = _mm256_gf2p8affine_epi64_epi8::<0>(x, maps);
    _mm256_shuffle_epi8(both, pair([gather, gather]))
}

#[target_feature(enable = "avx2")]
fn splat(half: u64) -> __m256i {
    _mm256_set1_epi64x(half as i64)
}

#[target_feature(enable = "avx2")]
fn pair(blocks: [&Block; 2]) -> __m256i {
    // SAFETY: the blocks are borrowed.
    let [lower, upper] = blocks.map(|block| unsafe { _mm_loadu_si128(block.as_ptr().cast()) });
    _mm256_set_m128i(upper, lower)
}
