//! IV generators: from a sector's number to the IV of its mode.

use std::fmt;

use crate::IvSector;

/// How a sector's number becomes an IV; dm-crypt's `ivmode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IvGenerator {
    /// The number modulo 2³², little endian, zero padded: `plain`.
    Plain,
    /// The whole 64-bit number, little endian, zero padded: `plain64`.
    Plain64,
}

impl IvGenerator {
    /// Every IV generator of this build.
    pub const ALL: [Self; 2] = [Self::Plain64, Self::Plain];

    /// dm-crypt's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Plain64 => "plain64",
        }
    }

    /// The IV of sector `sector` for a cipher with 16-byte blocks.
    ///
    /// Source: Linux, Documentation/admin-guide/device-mapper/dm-crypt.rst.
    pub(crate) const fn block(self, sector: IvSector) -> [u8; 16] {
        let number = match self {
            Self::Plain => sector.get() as u32 as u128,
            Self::Plain64 => sector.get() as u128,
        };
        number.to_le_bytes()
    }
}

impl fmt::Display for IvGenerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_wraps_where_plain64_goes_on() {
        for (number, plain, plain64) in [
            (0, 0, 0),
            ((1 << 32) - 1, (1 << 32) - 1, (1 << 32) - 1),
            (1 << 32, 0, 1 << 32),
            (u64::MAX, (1 << 32) - 1, u128::from(u64::MAX)),
        ] {
            let sector = IvSector::new(number);
            assert_eq!(IvGenerator::Plain.block(sector), u128::to_le_bytes(plain));
            assert_eq!(
                IvGenerator::Plain64.block(sector),
                u128::to_le_bytes(plain64)
            );
        }
    }
}
