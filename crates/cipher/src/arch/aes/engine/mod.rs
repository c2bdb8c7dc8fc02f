//! The three register widths, one a file.

mod aes_ni;
mod vaes256;
mod vaes512;

pub(crate) use self::aes_ni::AesNi;
pub(crate) use self::vaes256::Vaes256;
pub(crate) use self::vaes512::Vaes512;

use super::LINE;
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
