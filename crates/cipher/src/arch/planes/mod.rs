//! Byte planes in registers of AVX2, AVX-512 and NEON.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(test)]
mod tests;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod words;

use zeroize::Zeroize;

#[cfg(target_arch = "x86_64")]
use crate::block::planes::linear::Linear;

#[cfg(target_arch = "x86_64")]
pub(crate) use self::{
    avx2::{Avx2Planes, ByAes, ByGfni, ByNibbles},
    avx512::Avx512Bytes,
};

/// A map in the form that GFNI takes: the bits of a byte that add up to bit 7 of the result, then
/// those for bit 6, and so on.
#[cfg(target_arch = "x86_64")]
fn matrix(map: &Linear) -> u64 {
    let mut rows = [0; 8];
    for (bit, image) in map.iter().enumerate() {
        for (row, mask) in rows.iter_mut().enumerate() {
            *mask |= (image >> (7 - row) & 1) << bit;
        }
    }
    u64::from_le_bytes(rows)
}

/// A table of 256 bytes on whole cache lines, in an order that suits the CPU.
#[repr(C, align(64))]
pub(crate) struct Table([u8; 256]);

impl Drop for Table {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}
