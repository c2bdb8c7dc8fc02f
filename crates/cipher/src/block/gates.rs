//! Gates: one function of bits over all bits of a register at once, which
//! bit-sliced S-boxes are circuits of.

use std::ops::{BitAnd, BitOr, BitXor, BitXorAssign, Not};

/// Registers with gates of two inputs.
pub(crate) trait Gates:
    Copy
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + BitXorAssign
    + Not<Output = Self>
{
}

impl<R> Gates for R where
    R: Copy
        + BitAnd<Output = Self>
        + BitOr<Output = Self>
        + BitXor<Output = Self>
        + BitXorAssign
        + Not<Output = Self>
{
}

/// Registers that have every function of three bits in one gate.
#[cfg(target_arch = "x86_64")]
pub(crate) trait Gate: Copy {
    /// Bit 4·x + 2·y + z of `TABLE` for every bit of x, y and z.
    fn gate<const TABLE: i32>(x: Self, y: Self, z: Self) -> Self;
}

/// What the circuits are tested with.
#[cfg(all(test, target_arch = "x86_64"))]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bits(pub(crate) u64);

#[cfg(all(test, target_arch = "x86_64"))]
impl Gate for Bits {
    fn gate<const TABLE: i32>(x: Self, y: Self, z: Self) -> Self {
        let bit = |word: Self, i: u64| word.0 >> i & 1;
        Self((0..64).fold(0, |word, i| {
            let place = 4 * bit(x, i) + 2 * bit(y, i) + bit(z, i);
            word | (TABLE as u64 >> place & 1) << i
        }))
    }
}
