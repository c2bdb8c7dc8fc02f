//! Byte planes in AVX2 and AVX-512 registers.

mod avx2;
mod avx512;
#[cfg(test)]
mod tests;
mod words;

use zeroize::Zeroize;

pub(crate) use self::avx512::Avx512Bytes;

const WHOLE_REGISTER: &str = "a register of bytes";

/// A table of 256 bytes on whole cache lines, in an order that suits the CPU.
#[repr(C, align(64))]
pub(crate) struct Table([u8; 256]);

impl Drop for Table {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// A table of nibbles.
type Row = [u8; 16];
