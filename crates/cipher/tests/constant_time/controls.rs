//! UNSAFE ROOM: what is planted, so that an instrument shows what it sees.
//!
//! For each class of backend a function in its instructions whose branches or
//! addresses depend on a secret, and one that has none of these. An instrument
//! that misses the first, or blames the second, proves nothing for this class.
//!
//! # Safety case
//!
//! A function with `#[target_feature]` is entered only from [`Control::run`],
//! and a control exists only where [`runs_here`] has found what its function
//! enables. Loads take 64 bytes from a `&Secret`, which has 64. Gathers take
//! four or eight bytes at `TABLE + 8 · i` where `i` is below 256, and the
//! table has 256 entries of 8 bytes. A masked load reads at most the table's
//! first 64 bytes.

use cryptmark_cipher::Backend;

/// The input of a control.
pub type Secret = [u8; 64];

type Table = [u64; 256];

static TABLE: Table = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        table[i] = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        i += 1;
    }
    table
};

/// How a secret gets out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leak {
    /// A branch depends on it.
    Branch,
    /// A load from a table has an address that depends on it.
    LookUp,
    /// A gather has: one instruction, many addresses.
    Gather,
    /// How much memory an instruction touches depends on it.
    Mask,
    /// It is divided by, which takes as long as the quotient has digits.
    Division,
}

/// A planted function.
#[derive(Clone, Copy, Debug)]
pub struct Control {
    pub backend: Backend,
    /// None: it is in constant time.
    pub leak: Option<Leak>,
}

/// The controls of each class, but for those that every class has.
const OF_THEIR_OWN: [(Backend, &[Leak]); 6] = [
    (Backend::Portable, &[Leak::Division]),
    (Backend::AesNi, &[]),
    (Backend::Avx2, &[Leak::Gather, Leak::Mask]),
    (Backend::Vaes256, &[Leak::Gather, Leak::Mask]),
    (Backend::Avx512, &[Leak::Gather, Leak::Mask]),
    (Backend::Vaes512, &[Leak::Gather, Leak::Mask]),
];

/// Those that this CPU runs.
pub fn here() -> Vec<Control> {
    let classes = OF_THEIR_OWN
        .iter()
        .filter(|(backend, _)| runs_here(*backend));
    let of_class = |&(backend, leaks): &(Backend, &[Leak])| {
        let common = [None, Some(Leak::Branch), Some(Leak::LookUp)];
        let own: Vec<_> = leaks.iter().copied().map(Some).collect();
        common
            .into_iter()
            .chain(own)
            .map(move |leak| Control { backend, leak })
    };
    classes.flat_map(of_class).collect()
}

/// The secret with this number.
pub fn secret(number: u64) -> Secret {
    let mut state = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    std::array::from_fn(|_| {
        // Xorshift, Marsaglia 2003.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    })
}

impl Control {
    /// How findings call it.
    pub fn name(&self) -> String {
        match self.leak {
            None => format!("planted {}: nothing", self.backend),
            Some(leak) => format!("planted {}: {leak:?}", self.backend),
        }
    }

    /// Runs it.
    pub fn run(&self, secret: &Secret) {
        std::hint::black_box(entered(self.backend, self.leak, secret));
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn runs_here(backend: Backend) -> bool {
    backend == Backend::Portable
}

#[cfg(not(target_arch = "x86_64"))]
fn entered(_backend: Backend, leak: Option<Leak>, secret: &Secret) -> u64 {
    portable(leak, secret)
}

#[cfg(target_arch = "x86_64")]
use x86_64::{entered, runs_here};

#[inline(never)]
fn portable(leak: Option<Leak>, secret: &Secret) -> u64 {
    let words = secret.as_chunks::<8>().0;
    let word = words.iter().fold(0, |sum: u64, word| {
        sum.rotate_left(9) ^ u64::from_le_bytes(*word)
    });
    leaked(leak, word)
}

/// The leaks that need no vectors, for a word that depends on the secret.
#[inline(always)]
fn leaked(leak: Option<Leak>, word: u64) -> u64 {
    let bytes = word.to_le_bytes();
    match leak {
        Some(Leak::Branch) => bytes.iter().map(|byte| branch(*byte)).sum(),
        Some(Leak::LookUp) => bytes
            .iter()
            .fold(0, |sum, byte| sum ^ TABLE[usize::from(*byte)]),
        Some(Leak::Division) => u64::MAX / (word | 1),
        Some(Leak::Gather | Leak::Mask) => unreachable!("a class that has it does it"),
        None => word ^ word.rotate_left(17),
    }
}

#[inline(always)]
fn branch(byte: u8) -> u64 {
    // A call on one side only, which no conditional move can replace.
    match byte & 1 {
        1 => called(byte),
        _ => 0,
    }
}

#[inline(never)]
fn called(byte: u8) -> u64 {
    u64::from(std::hint::black_box(byte))
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::arch::x86_64::*;

    use cryptmark_cipher::Backend;

    use super::{Leak, Secret, TABLE, leaked, portable};

    pub fn runs_here(backend: Backend) -> bool {
        match backend {
            Backend::Portable => true,
            Backend::AesNi => is_x86_feature_detected!("aes"),
            Backend::Avx2 => is_x86_feature_detected!("avx2"),
            Backend::Gfni256 => {
                is_x86_feature_detected!("gfni") && is_x86_feature_detected!("avx2")
            }
            Backend::Vaes256 => {
                is_x86_feature_detected!("vaes") && is_x86_feature_detected!("avx2")
            }
            Backend::Avx512 => has_avx512(),
            Backend::Vaes512 => is_x86_feature_detected!("vaes") && has_avx512(),
            Backend::AesCe | Backend::Neon => false,
        }
    }

    fn has_avx512() -> bool {
        is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw")
    }

    pub fn entered(backend: Backend, leak: Option<Leak>, secret: &Secret) -> u64 {
        assert!(runs_here(backend), "{backend}");
        match backend {
            // SAFETY: the CPU has what the function enables, as was asserted.
            Backend::AesNi => unsafe { aes_ni(leak, secret) },
            // SAFETY: as above.
            Backend::Avx2 => unsafe { avx2(leak, secret) },
            // SAFETY: as above.
            Backend::Gfni256 => unsafe { gfni256(leak, secret) },
            // SAFETY: as above.
            Backend::Vaes256 => unsafe { vaes256(leak, secret) },
            // SAFETY: as above.
            Backend::Avx512 => unsafe { avx512(leak, secret) },
            // SAFETY: as above.
            Backend::Vaes512 => unsafe { vaes512(leak, secret) },
            _ => portable(leak, secret),
        }
    }

    #[inline(never)]
    #[target_feature(enable = "aes")]
    fn aes_ni(leak: Option<Leak>, secret: &Secret) -> u64 {
        // SAFETY: `secret` has 64 bytes.
        let block = unsafe { _mm_loadu_si128(secret.as_ptr().cast()) };
        let block = _mm_aesenc_si128(block, block);
        leaked(leak, _mm_cvtsi128_si64(block).cast_unsigned())
    }

    #[inline(never)]
    #[target_feature(enable = "avx2")]
    fn avx2(leak: Option<Leak>, secret: &Secret) -> u64 {
        // SAFETY: `secret` has 64 bytes.
        let words = unsafe { _mm256_loadu_si256(secret.as_ptr().cast()) };
        let words = _mm256_add_epi64(words, _mm256_slli_epi64(words, 7));
        leaked_by_256(leak, words)
    }

    #[inline(never)]
    #[target_feature(enable = "gfni,avx2")]
    fn gfni256(leak: Option<Leak>, secret: &Secret) -> u64 {
        // SAFETY: `secret` has 64 bytes.
        let bytes = unsafe { _mm256_loadu_si256(secret.as_ptr().cast()) };
        leaked_by_256(leak, _mm256_gf2p8mul_epi8(bytes, bytes))
    }

    #[inline(never)]
    #[target_feature(enable = "vaes,avx2")]
    fn vaes256(leak: Option<Leak>, secret: &Secret) -> u64 {
        // SAFETY: `secret` has 64 bytes.
        let blocks = unsafe { _mm256_loadu_si256(secret.as_ptr().cast()) };
        leaked_by_256(leak, _mm256_aesenc_epi128(blocks, blocks))
    }

    /// Opaque: of memory that is known to be there a compiler loads all, and then
    /// selects, which would be no leak.
    fn table<T>() -> *const T {
        std::hint::black_box(&TABLE).as_ptr().cast()
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn leaked_by_256(leak: Option<Leak>, words: __m256i) -> u64 {
        let out = match leak {
            Some(Leak::Gather) => {
                let indices = _mm256_and_si256(words, _mm256_set1_epi32(0xff));
                // SAFETY: the indices are below 256, the scale is 8.
                unsafe { _mm256_i32gather_epi32::<8>(table(), indices) }
            }
            // SAFETY: the first 32 bytes of the table at most.
            Some(Leak::Mask) => unsafe { _mm256_maskload_epi32(table(), words) },
            _ => return leaked(leak, _mm256_extract_epi64::<1>(words).cast_unsigned()),
        };
        _mm256_extract_epi64::<2>(out).cast_unsigned()
    }

    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn avx512(leak: Option<Leak>, secret: &Secret) -> u64 {
        // SAFETY: `secret` has 64 bytes.
        let words = unsafe { _mm512_loadu_si512(secret.as_ptr().cast()) };
        let words = _mm512_ternarylogic_epi64::<0x96>(
            words,
            _mm512_rol_epi64::<9>(words),
            _mm512_rol_epi64::<23>(words),
        );
        leaked_by_512(leak, words)
    }

    #[inline(never)]
    #[target_feature(enable = "vaes,avx512f,avx512bw")]
    fn vaes512(leak: Option<Leak>, secret: &Secret) -> u64 {
        // SAFETY: `secret` has 64 bytes.
        let blocks = unsafe { _mm512_loadu_si512(secret.as_ptr().cast()) };
        leaked_by_512(leak, _mm512_aesenc_epi128(blocks, blocks))
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn leaked_by_512(leak: Option<Leak>, words: __m512i) -> u64 {
        let out = match leak {
            Some(Leak::Gather) => {
                let indices = _mm512_and_si512(words, _mm512_set1_epi32(0xff));
                // SAFETY: the indices are below 256, the scale is 8.
                unsafe { _mm512_i32gather_epi32::<8>(indices, table()) }
            }
            Some(Leak::Mask) => {
                let mask = _mm512_movepi8_mask(words);
                // SAFETY: the first 64 bytes of the table at most.
                unsafe { _mm512_maskz_expandloadu_epi32(mask as u16, table()) }
            }
            // The secret leaves through a mask register, as it would in a kernel.
            Some(Leak::Branch) => return leaked(leak, _mm512_movepi8_mask(words)),
            _ => words,
        };
        let low = _mm256_extract_epi64::<3>(_mm512_extracti64x4_epi64::<1>(out));
        match leak {
            Some(Leak::Gather | Leak::Mask) => low.cast_unsigned(),
            _ => leaked(leak, low.cast_unsigned()),
        }
    }
}
