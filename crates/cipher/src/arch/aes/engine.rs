//! The three register widths.

use std::arch::x86_64::*;

use super::{Engine, LINE, Lines, Work};
use crate::Backend;
use crate::block::Block;

/// x⁷ + x² + x + 1, what x¹²⁸ is in XTS's field.
const POLYNOMIAL: i64 = 0x87;

const WHOLE_REGISTER: &str = "a register of blocks";

#[inline(always)]
fn line(data: &[u8], at: usize) -> &[Block; LINE / 16] {
    let blocks = data[at..at + LINE].as_chunks().0;
    blocks.first_chunk().expect("a line of blocks")
}

#[inline(always)]
fn line_mut(data: &mut [u8], at: usize) -> &mut [Block; LINE / 16] {
    let blocks = data[at..at + LINE].as_chunks_mut().0;
    blocks.first_chunk_mut().expect("a line of blocks")
}

/// Proof that this CPU has VAES and VPCLMULQDQ on 512-bit registers.
#[derive(Clone, Copy)]
pub(crate) struct Vaes512(());

impl Vaes512 {
    /// The proof, if it is true.
    pub(crate) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("vaes")
            && is_x86_feature_detected!("vpclmulqdq");
        has.then_some(Self(()))
    }
}

impl Engine for Vaes512 {
    const BACKEND: Backend = Backend::Vaes512;
    const LANES: usize = 4;
    type Vector = __m512i;

    #[inline]
    fn enter<W: Work>(self, work: W) {
        #[target_feature(enable = "avx512f,avx512bw,vaes,vpclmulqdq")]
        fn enabled<W: Work>(engine: Vaes512, work: W) {
            work.run(engine);
        }
        // SAFETY: `self` proves the features.
        unsafe { enabled(self, work) }
    }

    #[inline(always)]
    fn load(self, blocks: &[Block]) -> __m512i {
        let blocks: &[Block; Self::LANES] = blocks.first_chunk().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves the feature, and the blocks are borrowed.
        unsafe { _mm512_loadu_si512(blocks.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, x: __m512i, blocks: &mut [Block]) {
        let blocks: &mut [Block; Self::LANES] = blocks.first_chunk_mut().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves the feature, and the blocks are borrowed.
        unsafe { _mm512_storeu_si512(blocks.as_mut_ptr().cast(), x) }
    }

    #[inline(always)]
    fn splat(self, block: &Block) -> __m512i {
        // SAFETY: `self` proves the feature, and the block is borrowed.
        unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128(block.as_ptr().cast())) }
    }

    #[inline(always)]
    fn add(self, x: __m512i, y: __m512i) -> __m512i {
        // SAFETY: `self` proves the feature.
        unsafe { _mm512_xor_si512(x, y) }
    }

    #[inline(always)]
    fn round(self, x: __m512i, key: __m512i) -> __m512i {
        // SAFETY: `self` proves the feature.
        unsafe { _mm512_aesenc_epi128(x, key) }
    }

    #[inline(always)]
    fn last_round(self, x: __m512i, key: __m512i) -> __m512i {
        // SAFETY: `self` proves the feature.
        unsafe { _mm512_aesenclast_epi128(x, key) }
    }

    #[inline(always)]
    fn inverse_round(self, x: __m512i, key: __m512i) -> __m512i {
        // SAFETY: `self` proves the feature.
        unsafe { _mm512_aesdec_epi128(x, key) }
    }

    #[inline(always)]
    fn last_inverse_round(self, x: __m512i, key: __m512i) -> __m512i {
        // SAFETY: `self` proves the feature.
        unsafe { _mm512_aesdeclast_epi128(x, key) }
    }

    #[inline(always)]
    fn spread(self, tweak: &Block) -> __m512i {
        // SAFETY: `self` proves the features, and the tweak is borrowed.
        unsafe {
            let left = _mm512_set_epi64(3, 3, 2, 2, 1, 1, 0, 0);
            let tweak = _mm512_broadcast_i32x4(_mm_loadu_si128(tweak.as_ptr().cast()));
            let shifted = _mm512_sllv_epi64(tweak, left);
            let carries = _mm512_srlv_epi64(tweak, _mm512_sub_epi64(_mm512_set1_epi64(64), left));
            let polynomial = _mm512_set1_epi64(POLYNOMIAL);
            let reduced = _mm512_clmulepi64_epi128::<1>(carries, polynomial);
            let shifted = _mm512_xor_si512(shifted, _mm512_bslli_epi128::<8>(carries));
            _mm512_xor_si512(shifted, reduced)
        }
    }

    #[inline(always)]
    fn times_x_lanes(self, tweaks: __m512i) -> __m512i {
        // SAFETY: `self` proves the features.
        unsafe {
            let shifted = _mm512_slli_epi64::<4>(tweaks);
            let carries = _mm512_srli_epi64::<60>(tweaks);
            let polynomial = _mm512_set1_epi64(POLYNOMIAL);
            let reduced = _mm512_clmulepi64_epi128::<1>(carries, polynomial);
            let shifted = _mm512_xor_si512(shifted, _mm512_bslli_epi128::<8>(carries));
            _mm512_xor_si512(shifted, reduced)
        }
    }

    #[inline(always)]
    fn times_x8(self, tweaks: __m512i) -> __m512i {
        // SAFETY: `self` proves the features.
        unsafe {
            let over = _mm512_bsrli_epi128::<15>(tweaks);
            let polynomial = _mm512_set1_epi64(POLYNOMIAL);
            let reduced = _mm512_clmulepi64_epi128::<0>(over, polynomial);
            _mm512_xor_si512(_mm512_bslli_epi128::<1>(tweaks), reduced)
        }
    }

    #[inline(always)]
    fn times_x_batch(self, tweaks: __m512i) -> __m512i {
        // SAFETY: `self` proves the features.
        unsafe {
            let over = _mm512_bsrli_epi128::<12>(tweaks);
            let polynomial = _mm512_set1_epi64(POLYNOMIAL);
            let reduced = _mm512_clmulepi64_epi128::<0>(over, polynomial);
            _mm512_xor_si512(_mm512_bslli_epi128::<4>(tweaks), reduced)
        }
    }

    #[inline(always)]
    fn shift_in(self, previous: __m512i, current: __m512i) -> __m512i {
        // SAFETY: `self` proves the feature.
        unsafe { _mm512_alignr_epi64::<6>(current, previous) }
    }

    #[inline(always)]
    fn load_lines(self, data: &[u8], lines: &Lines) -> [__m512i; 4] {
        let a = self.load(line(data, lines[0]));
        let b = self.load(line(data, lines[1]));
        let c = self.load(line(data, lines[2]));
        let d = self.load(line(data, lines[3]));
        transpose(self, [a, b, c, d])
    }

    #[inline(always)]
    fn store_lines(self, x: [__m512i; 4], data: &mut [u8], lines: &Lines, count: usize) {
        let x = transpose(self, x);
        for (x, &at) in x.into_iter().zip(lines).take(count) {
            self.store(x, line_mut(data, at));
        }
    }

    #[inline(always)]
    fn unmix(self, block: &mut Block) {
        // SAFETY: `self` proves AES-NI, and the block is borrowed.
        unsafe {
            let unmixed = _mm_aesimc_si128(_mm_loadu_si128(block.as_ptr().cast()));
            _mm_storeu_si128(block.as_mut_ptr().cast(), unmixed);
        }
    }
}

/// Exchanges rows and columns of a square of blocks.
#[inline(always)]
fn transpose(_: Vaes512, [a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    // SAFETY: the first argument proves the feature.
    unsafe {
        let a01b01 = _mm512_shuffle_i32x4::<0x44>(a, b);
        let a23b23 = _mm512_shuffle_i32x4::<0xee>(a, b);
        let c01d01 = _mm512_shuffle_i32x4::<0x44>(c, d);
        let c23d23 = _mm512_shuffle_i32x4::<0xee>(c, d);
        [
            _mm512_shuffle_i32x4::<0x88>(a01b01, c01d01),
            _mm512_shuffle_i32x4::<0xdd>(a01b01, c01d01),
            _mm512_shuffle_i32x4::<0x88>(a23b23, c23d23),
            _mm512_shuffle_i32x4::<0xdd>(a23b23, c23d23),
        ]
    }
}

/// Proof that this CPU has AVX2, VAES and VPCLMULQDQ on 256-bit registers.
#[derive(Clone, Copy)]
pub(crate) struct Vaes256(());

impl Vaes256 {
    /// The proof, if it is true.
    pub(crate) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("vaes")
            && is_x86_feature_detected!("vpclmulqdq");
        has.then_some(Self(()))
    }
}

impl Engine for Vaes256 {
    const BACKEND: Backend = Backend::Vaes256;
    const LANES: usize = 2;
    type Vector = __m256i;

    #[inline]
    fn enter<W: Work>(self, work: W) {
        #[target_feature(enable = "avx2,vaes,vpclmulqdq")]
        fn enabled<W: Work>(engine: Vaes256, work: W) {
            work.run(engine);
        }
        // SAFETY: `self` proves the features.
        unsafe { enabled(self, work) }
    }

    #[inline(always)]
    fn load(self, blocks: &[Block]) -> __m256i {
        let blocks: &[Block; Self::LANES] = blocks.first_chunk().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves the feature, and the blocks are borrowed.
        unsafe { _mm256_loadu_si256(blocks.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, x: __m256i, blocks: &mut [Block]) {
        let blocks: &mut [Block; Self::LANES] = blocks.first_chunk_mut().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves the feature, and the blocks are borrowed.
        unsafe { _mm256_storeu_si256(blocks.as_mut_ptr().cast(), x) }
    }

    #[inline(always)]
    fn splat(self, block: &Block) -> __m256i {
        // SAFETY: `self` proves the feature, and the block is borrowed.
        unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(block.as_ptr().cast())) }
    }

    #[inline(always)]
    fn add(self, x: __m256i, y: __m256i) -> __m256i {
        // SAFETY: `self` proves the feature.
        unsafe { _mm256_xor_si256(x, y) }
    }

    #[inline(always)]
    fn round(self, x: __m256i, key: __m256i) -> __m256i {
        // SAFETY: `self` proves the feature.
        unsafe { _mm256_aesenc_epi128(x, key) }
    }

    #[inline(always)]
    fn last_round(self, x: __m256i, key: __m256i) -> __m256i {
        // SAFETY: `self` proves the feature.
        unsafe { _mm256_aesenclast_epi128(x, key) }
    }

    #[inline(always)]
    fn inverse_round(self, x: __m256i, key: __m256i) -> __m256i {
        // SAFETY: `self` proves the feature.
        unsafe { _mm256_aesdec_epi128(x, key) }
    }

    #[inline(always)]
    fn last_inverse_round(self, x: __m256i, key: __m256i) -> __m256i {
        // SAFETY: `self` proves the feature.
        unsafe { _mm256_aesdeclast_epi128(x, key) }
    }

    #[inline(always)]
    fn spread(self, tweak: &Block) -> __m256i {
        // SAFETY: `self` proves the features, and the tweak is borrowed.
        unsafe {
            let left = _mm256_set_epi64x(1, 1, 0, 0);
            let tweak = _mm256_broadcastsi128_si256(_mm_loadu_si128(tweak.as_ptr().cast()));
            let shifted = _mm256_sllv_epi64(tweak, left);
            let carries = _mm256_srlv_epi64(tweak, _mm256_sub_epi64(_mm256_set1_epi64x(64), left));
            let polynomial = _mm256_set1_epi64x(POLYNOMIAL);
            let reduced = _mm256_clmulepi64_epi128::<1>(carries, polynomial);
            let shifted = _mm256_xor_si256(shifted, _mm256_bslli_epi128::<8>(carries));
            _mm256_xor_si256(shifted, reduced)
        }
    }

    #[inline(always)]
    fn times_x_lanes(self, tweaks: __m256i) -> __m256i {
        // SAFETY: `self` proves the features.
        unsafe {
            let shifted = _mm256_slli_epi64::<2>(tweaks);
            let carries = _mm256_srli_epi64::<62>(tweaks);
            let polynomial = _mm256_set1_epi64x(POLYNOMIAL);
            let reduced = _mm256_clmulepi64_epi128::<1>(carries, polynomial);
            let shifted = _mm256_xor_si256(shifted, _mm256_bslli_epi128::<8>(carries));
            _mm256_xor_si256(shifted, reduced)
        }
    }

    #[inline(always)]
    fn times_x8(self, tweaks: __m256i) -> __m256i {
        // SAFETY: `self` proves the features.
        unsafe {
            let over = _mm256_bsrli_epi128::<15>(tweaks);
            let polynomial = _mm256_set1_epi64x(POLYNOMIAL);
            let reduced = _mm256_clmulepi64_epi128::<0>(over, polynomial);
            _mm256_xor_si256(_mm256_bslli_epi128::<1>(tweaks), reduced)
        }
    }

    #[inline(always)]
    fn times_x_batch(self, tweaks: __m256i) -> __m256i {
        // SAFETY: `self` proves the features.
        unsafe {
            let over = _mm256_bsrli_epi128::<14>(tweaks);
            let polynomial = _mm256_set1_epi64x(POLYNOMIAL);
            let reduced = _mm256_clmulepi64_epi128::<0>(over, polynomial);
            _mm256_xor_si256(_mm256_bslli_epi128::<2>(tweaks), reduced)
        }
    }

    #[inline(always)]
    fn shift_in(self, previous: __m256i, current: __m256i) -> __m256i {
        // SAFETY: `self` proves the feature.
        unsafe { _mm256_permute2x128_si256::<0x21>(previous, current) }
    }

    #[inline(always)]
    fn load_lines(self, data: &[u8], lines: &Lines) -> [__m256i; 4] {
        let (a, b) = (line(data, lines[0]), line(data, lines[1]));
        let (a01, a23, b01, b23) = (
            self.load(a),
            self.load(&a[2..]),
            self.load(b),
            self.load(&b[2..]),
        );
        // SAFETY: `self` proves the feature.
        unsafe {
            [
                _mm256_permute2x128_si256::<0x20>(a01, b01),
                _mm256_permute2x128_si256::<0x31>(a01, b01),
                _mm256_permute2x128_si256::<0x20>(a23, b23),
                _mm256_permute2x128_si256::<0x31>(a23, b23),
            ]
        }
    }

    #[inline(always)]
    fn store_lines(self, x: [__m256i; 4], data: &mut [u8], lines: &Lines, count: usize) {
        // SAFETY: `self` proves the feature.
        let halves = unsafe {
            [
                [
                    _mm256_permute2x128_si256::<0x20>(x[0], x[1]),
                    _mm256_permute2x128_si256::<0x20>(x[2], x[3]),
                ],
                [
                    _mm256_permute2x128_si256::<0x31>(x[0], x[1]),
                    _mm256_permute2x128_si256::<0x31>(x[2], x[3]),
                ],
            ]
        };
        for ([low, high], &at) in halves.into_iter().zip(lines).take(count) {
            let line = line_mut(data, at);
            self.store(low, line);
            self.store(high, &mut line[2..]);
        }
    }

    #[inline(always)]
    fn unmix(self, block: &mut Block) {
        // SAFETY: `self` proves AES-NI, and the block is borrowed.
        unsafe {
            let unmixed = _mm_aesimc_si128(_mm_loadu_si128(block.as_ptr().cast()));
            _mm_storeu_si128(block.as_mut_ptr().cast(), unmixed);
        }
    }
}

/// Proof that this CPU has AES-NI and PCLMULQDQ.
#[derive(Clone, Copy)]
pub(crate) struct AesNi(());

impl AesNi {
    /// The proof, if it is true.
    pub(crate) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("aes") && is_x86_feature_detected!("pclmulqdq");
        has.then_some(Self(()))
    }
}

impl Engine for AesNi {
    const BACKEND: Backend = Backend::AesNi;
    const LANES: usize = 1;
    type Vector = __m128i;

    #[inline]
    fn enter<W: Work>(self, work: W) {
        #[target_feature(enable = "aes,pclmulqdq")]
        fn enabled<W: Work>(engine: AesNi, work: W) {
            work.run(engine);
        }
        // SAFETY: `self` proves the features.
        unsafe { enabled(self, work) }
    }

    #[inline(always)]
    fn load(self, blocks: &[Block]) -> __m128i {
        let blocks: &[Block; Self::LANES] = blocks.first_chunk().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves the feature, and the blocks are borrowed.
        unsafe { _mm_loadu_si128(blocks.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, x: __m128i, blocks: &mut [Block]) {
        let blocks: &mut [Block; Self::LANES] = blocks.first_chunk_mut().expect(WHOLE_REGISTER);
        // SAFETY: `self` proves the feature, and the blocks are borrowed.
        unsafe { _mm_storeu_si128(blocks.as_mut_ptr().cast(), x) }
    }

    #[inline(always)]
    fn splat(self, block: &Block) -> __m128i {
        // SAFETY: `self` proves the feature, and the block is borrowed.
        unsafe { _mm_loadu_si128(block.as_ptr().cast()) }
    }

    #[inline(always)]
    fn add(self, x: __m128i, y: __m128i) -> __m128i {
        // SAFETY: `self` proves the feature.
        unsafe { _mm_xor_si128(x, y) }
    }

    #[inline(always)]
    fn round(self, x: __m128i, key: __m128i) -> __m128i {
        // SAFETY: `self` proves the feature.
        unsafe { _mm_aesenc_si128(x, key) }
    }

    #[inline(always)]
    fn last_round(self, x: __m128i, key: __m128i) -> __m128i {
        // SAFETY: `self` proves the feature.
        unsafe { _mm_aesenclast_si128(x, key) }
    }

    #[inline(always)]
    fn inverse_round(self, x: __m128i, key: __m128i) -> __m128i {
        // SAFETY: `self` proves the feature.
        unsafe { _mm_aesdec_si128(x, key) }
    }

    #[inline(always)]
    fn last_inverse_round(self, x: __m128i, key: __m128i) -> __m128i {
        // SAFETY: `self` proves the feature.
        unsafe { _mm_aesdeclast_si128(x, key) }
    }

    #[inline(always)]
    fn spread(self, tweak: &Block) -> __m128i {
        self.splat(tweak)
    }

    #[inline(always)]
    fn times_x_lanes(self, tweaks: __m128i) -> __m128i {
        // SAFETY: `self` proves the features.
        unsafe {
            let shifted = _mm_slli_epi64::<1>(tweaks);
            let carries = _mm_srli_epi64::<63>(tweaks);
            let polynomial = _mm_set1_epi64x(POLYNOMIAL);
            let reduced = _mm_clmulepi64_si128::<1>(carries, polynomial);
            let shifted = _mm_xor_si128(shifted, _mm_slli_si128::<8>(carries));
            _mm_xor_si128(shifted, reduced)
        }
    }

    #[inline(always)]
    fn times_x8(self, tweaks: __m128i) -> __m128i {
        // SAFETY: `self` proves the features.
        unsafe {
            let over = _mm_srli_si128::<15>(tweaks);
            let polynomial = _mm_set1_epi64x(POLYNOMIAL);
            let reduced = _mm_clmulepi64_si128::<0>(over, polynomial);
            _mm_xor_si128(_mm_slli_si128::<1>(tweaks), reduced)
        }
    }

    #[inline(always)]
    fn times_x_batch(self, tweaks: __m128i) -> __m128i {
        self.times_x8(tweaks)
    }

    #[inline(always)]
    fn shift_in(self, previous: __m128i, current: __m128i) -> __m128i {
        let _ = current;
        previous
    }

    #[inline(always)]
    fn load_lines(self, data: &[u8], lines: &Lines) -> [__m128i; 4] {
        let blocks = line(data, lines[0]);
        let (a, b) = (self.load(blocks), self.load(&blocks[1..]));
        let (c, d) = (self.load(&blocks[2..]), self.load(&blocks[3..]));
        [a, b, c, d]
    }

    #[inline(always)]
    fn store_lines(self, x: [__m128i; 4], data: &mut [u8], lines: &Lines, count: usize) {
        if count > 0 {
            let blocks = line_mut(data, lines[0]);
            for (j, x) in x.into_iter().enumerate() {
                self.store(x, &mut blocks[j..]);
            }
        }
    }

    #[inline(always)]
    fn unmix(self, block: &mut Block) {
        // SAFETY: `self` proves AES-NI, and the block is borrowed.
        unsafe {
            let unmixed = _mm_aesimc_si128(_mm_loadu_si128(block.as_ptr().cast()));
            _mm_storeu_si128(block.as_mut_ptr().cast(), unmixed);
        }
    }
}
