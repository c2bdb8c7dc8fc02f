//! One store for what one load will read.

use std::arch::asm;
use std::arch::x86_64::{_mm_set_epi64x, _mm_storeu_si128};

use crate::block::Block;

/// Writes `bytes` by a single store.
///
/// A load of a block that was written by two stores waits until both have reached the cache. So it
/// also waits for all stores before them, which takes longer than encrypting a sector of 512 bytes.
/// If the compiler holds the bytes in two registers, it stores them twice, unless it believes that
/// an instruction needed them in one.
#[inline]
pub(crate) fn store_block(bytes: Block, block: &mut Block) {
    let number = u128::from_le_bytes(bytes);
    // SAFETY: SSE2 is part of x86-64, and the block is borrowed. There is no
    // instruction in the assembly.
    unsafe {
        let mut register = _mm_set_epi64x((number >> 64) as i64, number as i64);
        asm!("/* {0} */", inout(xmm_reg) register, options(pure, nomem, nostack, preserves_flags));
        _mm_storeu_si128(block.as_mut_ptr().cast(), register);
    }
}
