//! Where on the stack a kernel keeps its vectors.

use std::hint::black_box;
use std::mem::MaybeUninit;

/// Does `work` on a stack that has most of a page left before it comes to the next.
///
/// Zen 4 takes up to half as long again for kernels that keep vectors on a stack where
/// that lies on two pages, and where it begins differs from run to run.
#[inline(always)]
pub(crate) fn on_one_page(work: impl FnOnce()) {
    let here = 0_u8;
    match (&raw const here).addr() % 4096 / 512 {
        0 => further_on::<512>(work),
        1 => further_on::<1024>(work),
        2 => further_on::<1536>(work),
        3 => further_on::<2048>(work),
        4 => further_on::<2560>(work),
        5 => further_on::<3072>(work),
        6 => further_on::<3584>(work),
        _ => work(),
    }
}

/// Leaves `BYTES` of the stack out.
#[inline(never)]
fn further_on<const BYTES: usize>(work: impl FnOnce()) {
    let left_out = [MaybeUninit::<u8>::uninit(); BYTES];
    work();
    // Memory that is used after the work exists during it.
    black_box(&left_out);
}
