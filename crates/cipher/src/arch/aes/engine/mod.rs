//! The three register widths of x86 and that of Arm, one a file.

#[cfg(target_arch = "aarch64")]
mod aes_ce;
#[cfg(target_arch = "x86_64")]
mod aes_ni;
#[cfg(target_arch = "x86_64")]
mod vaes256;
#[cfg(target_arch = "x86_64")]
mod vaes512;

#[cfg(target_arch = "aarch64")]
pub(crate) use self::aes_ce::AesCe;
#[cfg(target_arch = "x86_64")]
pub(crate) use self::{aes_ni::AesNi, vaes256::Vaes256, vaes512::Vaes512};

use super::LINE;
use crate::block::Block;

/// x⁷ + x² + x + 1, what x¹²⁸ is in XTS's field.
#[cfg(target_arch = "x86_64")]
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
