//! Serpent in registers of AVX2 and AVX-512: a word of 8 or 16 blocks in each.
//! With AVX-512 a rotation is one instruction, and so is every gate of the
//! S-boxes.

mod narrow;

use std::arch::x86_64::*;

use self::narrow::Narrow;
use super::registers::{Register256, Register512};
use super::{Avx2, Avx512};
use crate::block::Block;
use crate::block::gates::Gate;
use crate::block::serpent::vectors::{Blocks, DecryptCbc, EncryptCbc, Vectors, Xts};
use crate::block::serpent::words::{self, Word};
use crate::block::serpent::{Cpu, RoundKeys, Words, gates, one, sbox};
use crate::mode::cbc::encrypt_few;
use crate::mode::xts::STRETCH;
use crate::work::Work;

const WHOLE_REGISTER: &str = "a register of blocks";

/// Blocks that are better off in registers of 128 bits, which leave ports to
/// each other that longer ones do not.
const FEW: usize = 4;

impl Cpu for Avx2 {
    fn encrypt(self, keys: &RoundKeys, blocks: &mut [Block]) {
        match blocks {
            [block] => one::<true>(keys, block),
            _ => self.enter(Blocks::<true> { keys, blocks }),
        }
    }

    fn decrypt(self, keys: &RoundKeys, blocks: &mut [Block]) {
        match blocks {
            [block] => one::<false>(keys, block),
            _ => self.enter(Blocks::<false> { keys, blocks }),
        }
    }

    fn encrypt_xts(self, keys: &RoundKeys, starts: &[Block], sector_bytes: usize, data: &mut [u8]) {
        self.enter(Xts::<true> {
            keys,
            starts,
            sector_bytes,
            data,
        });
    }

    fn decrypt_xts(self, keys: &RoundKeys, starts: &[Block], sector_bytes: usize, data: &mut [u8]) {
        self.enter(Xts::<false> {
            keys,
            starts,
            sector_bytes,
            data,
        });
    }

    fn encrypt_cbc(self, keys: &RoundKeys, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        match ivs {
            [iv] => encrypt_few(&[*iv], data, |[block]| one::<true>(keys, block)),
            _ => self.enter(EncryptCbc {
                keys,
                ivs,
                sector_bytes,
                data,
            }),
        }
    }

    fn decrypt_cbc(self, keys: &RoundKeys, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        self.enter(DecryptCbc {
            keys,
            ivs,
            sector_bytes,
            data,
        });
    }
}

impl Cpu for Avx512 {
    const COMPLEMENTS: [Words; 8] = [[0; 4]; 8];

    fn encrypt(self, keys: &RoundKeys, blocks: &mut [Block]) {
        let few = blocks.len() <= FEW;
        let work = Blocks::<true> { keys, blocks };
        if few {
            Narrow(self).enter(work);
        } else {
            self.enter(work);
        }
    }

    fn decrypt(self, keys: &RoundKeys, blocks: &mut [Block]) {
        let few = blocks.len() <= FEW;
        let work = Blocks::<false> { keys, blocks };
        if few {
            Narrow(self).enter(work);
        } else {
            self.enter(work);
        }
    }

    fn encrypt_xts(self, keys: &RoundKeys, starts: &[Block], sector_bytes: usize, data: &mut [u8]) {
        self.enter(Xts::<true> {
            keys,
            starts,
            sector_bytes,
            data,
        });
    }

    fn decrypt_xts(self, keys: &RoundKeys, starts: &[Block], sector_bytes: usize, data: &mut [u8]) {
        self.enter(Xts::<false> {
            keys,
            starts,
            sector_bytes,
            data,
        });
    }

    fn encrypt_cbc(self, keys: &RoundKeys, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        let work = EncryptCbc {
            keys,
            ivs,
            sector_bytes,
            data,
        };
        if ivs.len() <= FEW {
            Narrow(self).enter(work);
        } else {
            self.enter(work);
        }
    }

    fn decrypt_cbc(self, keys: &RoundKeys, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        self.enter(DecryptCbc {
            keys,
            ivs,
            sector_bytes,
            data,
        });
    }
}

impl Vectors for Avx2 {
    const BLOCKS: usize = 2;
    type Word = Register256;

    fn enter<W: Work<Self>>(self, work: W) {
        #[target_feature(enable = "avx2")]
        #[inline(never)]
        fn enabled<W: Work<Avx2>>(cpu: Avx2, work: W) {
            work.run(cpu);
        }
        // SAFETY: `self` proves AVX2.
        unsafe { enabled(self, work) }
    }

    #[inline(always)]
    fn load(self, blocks: &[Block]) -> Register256 {
        let blocks: &[Block; 2] = blocks.first_chunk().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves AVX2, and the blocks are borrowed.
        let x = unsafe { _mm256_loadu_si256(blocks.as_ptr().cast()) };
        Register256 { x, cpu: self }
    }

    #[inline(always)]
    fn store(self, x: Register256, blocks: &mut [Block]) {
        let blocks: &mut [Block; 2] = blocks.first_chunk_mut().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves AVX2, and the blocks are borrowed.
        unsafe { _mm256_storeu_si256(blocks.as_mut_ptr().cast(), x.x) }
    }

    #[inline(always)]
    fn splat(self, word: u32) -> Register256 {
        // SAFETY: `self` proves AVX2.
        let x = unsafe { _mm256_set1_epi32(word as i32) };
        Register256 { x, cpu: self }
    }

    #[inline(always)]
    fn transpose(self, [a, b, c, d]: [Register256; 4]) -> [Register256; 4] {
        // SAFETY: `self` proves AVX2.
        let columns = unsafe {
            let ab01 = _mm256_unpacklo_epi32(a.x, b.x);
            let ab23 = _mm256_unpackhi_epi32(a.x, b.x);
            let cd01 = _mm256_unpacklo_epi32(c.x, d.x);
            let cd23 = _mm256_unpackhi_epi32(c.x, d.x);
            [
                _mm256_unpacklo_epi64(ab01, cd01),
                _mm256_unpackhi_epi64(ab01, cd01),
                _mm256_unpacklo_epi64(ab23, cd23),
                _mm256_unpackhi_epi64(ab23, cd23),
            ]
        };
        columns.map(|x| Register256 { x, cpu: self })
    }

    #[inline(always)]
    fn blocks_of_lines(self, [a01, a23, b01, b23]: [Register256; 4]) -> [Register256; 4] {
        // SAFETY: `self` proves AVX2.
        let blocks = unsafe {
            [
                _mm256_permute2x128_si256::<0x20>(a01.x, b01.x),
                _mm256_permute2x128_si256::<0x31>(a01.x, b01.x),
                _mm256_permute2x128_si256::<0x20>(a23.x, b23.x),
                _mm256_permute2x128_si256::<0x31>(a23.x, b23.x),
            ]
        };
        blocks.map(|x| Register256 { x, cpu: self })
    }

    #[inline(always)]
    fn lines_of_blocks(self, [ab0, ab1, ab2, ab3]: [Register256; 4]) -> [Register256; 4] {
        // SAFETY: `self` proves AVX2.
        let lines = unsafe {
            [
                _mm256_permute2x128_si256::<0x20>(ab0.x, ab1.x),
                _mm256_permute2x128_si256::<0x20>(ab2.x, ab3.x),
                _mm256_permute2x128_si256::<0x31>(ab0.x, ab1.x),
                _mm256_permute2x128_si256::<0x31>(ab2.x, ab3.x),
            ]
        };
        lines.map(|x| Register256 { x, cpu: self })
    }
}

impl Word for Register256 {
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self ^ other
    }

    #[inline(always)]
    fn rotate<const BY: i32>(self) -> Self {
        // SAFETY: the register proves AVX2.
        let x = unsafe {
            let up = _mm256_sll_epi32(self.x, _mm_cvtsi32_si128(BY));
            _mm256_or_si256(up, _mm256_srl_epi32(self.x, _mm_cvtsi32_si128(32 - BY)))
        };
        Self { x, ..self }
    }

    #[inline(always)]
    fn shift<const BY: i32>(self) -> Self {
        // SAFETY: the register proves AVX2.
        let x = unsafe { _mm256_slli_epi32::<BY>(self.x) };
        Self { x, ..self }
    }

    #[inline(always)]
    fn forward<const I: usize>(x: [Self; 4]) -> [Self; 4] {
        sbox::forward::<I, Self>(x)
    }

    #[inline(always)]
    fn inverse<const I: usize>(x: [Self; 4]) -> [Self; 4] {
        sbox::inverse::<I, Self>(x)
    }
}

impl Vectors for Avx512 {
    const BLOCKS: usize = 4;
    const FOUR_GROUPS: bool = true;
    type Word = Register512;

    fn enter<W: Work<Self>>(self, work: W) {
        #[target_feature(enable = "avx512f,avx512vl")]
        #[inline(never)]
        fn enabled<W: Work<Avx512>>(cpu: Avx512, work: W) {
            work.run(cpu);
        }
        // SAFETY: `self` proves AVX-512 F and VL.
        unsafe { enabled(self, work) }
    }

    #[inline(always)]
    fn load(self, blocks: &[Block]) -> Register512 {
        let blocks: &[Block; 4] = blocks.first_chunk().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves AVX-512 F, and the blocks are borrowed.
        let x = unsafe { _mm512_loadu_si512(blocks.as_ptr().cast()) };
        Register512 { x, cpu: self }
    }

    #[inline(always)]
    fn store(self, x: Register512, blocks: &mut [Block]) {
        let blocks: &mut [Block; 4] = blocks.first_chunk_mut().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves AVX-512 F, and the blocks are borrowed.
        unsafe { _mm512_storeu_si512(blocks.as_mut_ptr().cast(), x.x) }
    }

    #[inline(always)]
    fn splat(self, word: u32) -> Register512 {
        // SAFETY: `self` proves AVX-512 F.
        let x = unsafe { _mm512_set1_epi32(word as i32) };
        Register512 { x, cpu: self }
    }

    #[inline(always)]
    fn transpose(self, [a, b, c, d]: [Register512; 4]) -> [Register512; 4] {
        // SAFETY: `self` proves AVX-512 F.
        let columns = unsafe {
            let ab01 = _mm512_unpacklo_epi32(a.x, b.x);
            let ab23 = _mm512_unpackhi_epi32(a.x, b.x);
            let cd01 = _mm512_unpacklo_epi32(c.x, d.x);
            let cd23 = _mm512_unpackhi_epi32(c.x, d.x);
            [
                _mm512_unpacklo_epi64(ab01, cd01),
                _mm512_unpackhi_epi64(ab01, cd01),
                _mm512_unpacklo_epi64(ab23, cd23),
                _mm512_unpackhi_epi64(ab23, cd23),
            ]
        };
        columns.map(|x| Register512 { x, cpu: self })
    }

    #[inline(always)]
    fn blocks_of_lines(self, [a, b, c, d]: [Register512; 4]) -> [Register512; 4] {
        // SAFETY: `self` proves AVX-512 F.
        let blocks = unsafe {
            let a01b01 = _mm512_shuffle_i32x4::<0x44>(a.x, b.x);
            let a23b23 = _mm512_shuffle_i32x4::<0xee>(a.x, b.x);
            let c01d01 = _mm512_shuffle_i32x4::<0x44>(c.x, d.x);
            let c23d23 = _mm512_shuffle_i32x4::<0xee>(c.x, d.x);
            [
                _mm512_shuffle_i32x4::<0x88>(a01b01, c01d01),
                _mm512_shuffle_i32x4::<0xdd>(a01b01, c01d01),
                _mm512_shuffle_i32x4::<0x88>(a23b23, c23d23),
                _mm512_shuffle_i32x4::<0xdd>(a23b23, c23d23),
            ]
        };
        blocks.map(|x| Register512 { x, cpu: self })
    }

    #[inline(always)]
    fn lines_of_blocks(self, x: [Register512; 4]) -> [Register512; 4] {
        self.blocks_of_lines(x)
    }

    #[inline(always)]
    fn round<const I: usize>(
        self,
        [x, y]: [[Register512; 4]; 2],
        key: [Register512; 4],
    ) -> [[Register512; 4]; 2] {
        separate(words::round::<I, Two>(together(x, y), together(key, key)))
    }

    #[inline(always)]
    fn inverse_round<const I: usize>(
        self,
        [x, y]: [[Register512; 4]; 2],
        key: [Register512; 4],
    ) -> [[Register512; 4]; 2] {
        separate(words::inverse_round::<I, Two>(
            together(x, y),
            together(key, key),
        ))
    }

    /// Each register is a product of one long before it, so that few wait for
    /// one another.
    #[inline(always)]
    fn tweaks(self, stretch: &mut [Block; STRETCH], tweak: u128) -> u128 {
        const { assert!(STRETCH == 32) }
        let mut x = [spread(self, tweak); 8];
        x[1] = times_x::<4, 60>(x[0]);
        for i in 0..2 {
            x[2 + i] = times_x::<8, 56>(x[i]);
        }
        for i in 0..4 {
            x[4 + i] = times_x::<16, 48>(x[i]);
        }
        for (x, blocks) in x.into_iter().zip(stretch.as_chunks_mut::<4>().0) {
            self.store(x, blocks);
        }
        let mut next = [[0; 16]; 4];
        self.store(times_x::<32, 32>(x[0]), &mut next);
        u128::from_le_bytes(next[0])
    }
}

/// A word of two groups, whose operations come in turns: in a group nearly each
/// waits for the one before.
#[derive(Clone, Copy)]
struct Two(Register512, Register512);

impl Word for Two {
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(self.0.add(other.0), self.1.add(other.1))
    }

    #[inline(always)]
    fn rotate<const BY: i32>(self) -> Self {
        Self(self.0.rotate::<BY>(), self.1.rotate::<BY>())
    }

    #[inline(always)]
    fn shift<const BY: i32>(self) -> Self {
        Self(self.0.shift::<BY>(), self.1.shift::<BY>())
    }

    #[inline(always)]
    fn forward<const I: usize>(x: [Self; 4]) -> [Self; 4] {
        gates::forward::<I, Self>(x)
    }

    #[inline(always)]
    fn inverse<const I: usize>(x: [Self; 4]) -> [Self; 4] {
        gates::inverse::<I, Self>(x)
    }
}

impl Gate for Two {
    #[inline(always)]
    fn gate<const TABLE: i32>(x: Self, y: Self, z: Self) -> Self {
        Self(
            Register512::gate::<TABLE>(x.0, y.0, z.0),
            Register512::gate::<TABLE>(x.1, y.1, z.1),
        )
    }
}

#[inline(always)]
fn together([a, b, c, d]: [Register512; 4], [e, f, g, h]: [Register512; 4]) -> [Two; 4] {
    [Two(a, e), Two(b, f), Two(c, g), Two(d, h)]
}

/// What undoes [`together`].
#[inline(always)]
fn separate([a, b, c, d]: [Two; 4]) -> [[Register512; 4]; 2] {
    [[a.0, b.0, c.0, d.0], [a.1, b.1, c.1, d.1]]
}

/// `tweak`·xⁱ in block i.
#[inline(always)]
fn spread(cpu: Avx512, tweak: u128) -> Register512 {
    let tweak = tweak.to_le_bytes();
    // SAFETY: `cpu` proves AVX-512 F, and the tweak is borrowed.
    let x = unsafe {
        let tweak = _mm512_broadcast_i32x4(_mm_loadu_si128(tweak.as_ptr().cast()));
        let by = _mm512_set_epi64(3, 3, 2, 2, 1, 1, 0, 0);
        let over = _mm512_srlv_epi64(tweak, _mm512_sub_epi64(_mm512_set1_epi64(64), by));
        reduced(_mm512_sllv_epi64(tweak, by), over)
    };
    Register512 { x, cpu }
}

/// Every block as a tweak, times x to the power of `BY`, which is at most 57;
/// `REST` is 64 − `BY`.
#[inline(always)]
fn times_x<const BY: u32, const REST: u32>(tweaks: Register512) -> Register512 {
    // SAFETY: the register proves AVX-512 F.
    let x = unsafe {
        let over = _mm512_srli_epi64::<REST>(tweaks.x);
        reduced(_mm512_slli_epi64::<BY>(tweaks.x), over)
    };
    Register512 { x, ..tweaks }
}

/// What was shifted, with what left either half of a block: the lower one's goes
/// to the upper one, the upper one's comes back times x⁷ + x² + x + 1.
///
/// # Safety
///
/// The CPU has AVX-512 F.
#[inline(always)]
unsafe fn reduced(shifted: __m512i, over: __m512i) -> __m512i {
    let low_halves = 0x55;
    // SAFETY: the caller's.
    unsafe {
        let carries = _mm512_shuffle_epi32::<0x4e>(over);
        let by_x = _mm512_maskz_slli_epi64::<1>(low_halves, carries);
        let by_x2 = _mm512_maskz_slli_epi64::<2>(low_halves, carries);
        let by_x7 = _mm512_maskz_slli_epi64::<7>(low_halves, carries);
        let over = _mm512_ternarylogic_epi64::<0x96>(by_x, by_x2, by_x7);
        _mm512_ternarylogic_epi64::<0x96>(shifted, carries, over)
    }
}

impl Word for Register512 {
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self ^ other
    }

    #[inline(always)]
    fn rotate<const BY: i32>(self) -> Self {
        // SAFETY: the register proves AVX-512 F.
        let x = unsafe { _mm512_rol_epi32::<BY>(self.x) };
        Self { x, ..self }
    }

    #[inline(always)]
    fn shift<const BY: i32>(self) -> Self {
        // SAFETY: the register proves AVX-512 F.
        let x = unsafe { _mm512_sll_epi32(self.x, _mm_cvtsi32_si128(BY)) };
        Self { x, ..self }
    }

    #[inline(always)]
    fn forward<const I: usize>(x: [Self; 4]) -> [Self; 4] {
        gates::forward::<I, Self>(x)
    }

    #[inline(always)]
    fn inverse<const I: usize>(x: [Self; 4]) -> [Self; 4] {
        gates::inverse::<I, Self>(x)
    }
}
