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
pub(crate) use self::avx2::{Avx2Planes, ByAes, ByNibbles};
#[cfg(target_arch = "x86_64")]
pub(crate) use self::{avx512::Avx512Bytes, words::by_rows_is_faster};

const WHOLE_REGISTER: &str = "a register of bytes";

/// A table of 256 bytes on whole cache lines, in an order that suits the CPU.
#[repr(C, align(64))]
pub(crate) struct Table([u8; 256]);

impl Drop for Table {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}
