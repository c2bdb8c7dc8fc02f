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
pub(crate) trait Gate: Copy {
    /// Bit 4·x + 2·y + z of `TABLE` for every bit of x, y and z.
    fn gate<const TABLE: i32>(x: Self, y: Self, z: Self) -> Self;
}
