//! IVs that are the sector's number in some form: `null`, `plain`, `plain64`,
//! `plain64be`, `benbi`, and the byte offset of `eboiv`.

use super::Ivs;
use crate::{IvSector, SectorLayout};

/// Numbers as IVs of `N` bytes.
#[derive(Clone, Copy)]
pub(crate) struct Counted {
    form: Form,
    /// Of [`Form::Blocks`], and zero for others: compilers look at it before they look at the
    /// form, and valgrind then takes what was not written for a secret.
    shift: u32,
    layout: SectorLayout,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Zero,
    Little32,
    Little64,
    Big64,
    /// Big endian, times 2 to the shift, plus 1.
    Blocks,
    /// Little endian, times the sector size; the mode makes the IV of it.
    Offset,
}

impl Counted {
    /// `null`.
    pub(crate) const fn null(layout: SectorLayout) -> Self {
        Self::new(Form::Zero, layout)
    }

    /// `plain`.
    pub(crate) const fn plain(layout: SectorLayout) -> Self {
        Self::new(Form::Little32, layout)
    }

    /// `plain64`.
    pub(crate) const fn plain64(layout: SectorLayout) -> Self {
        Self::new(Form::Little64, layout)
    }

    /// `plain64be`.
    pub(crate) const fn plain64be(layout: SectorLayout) -> Self {
        Self::new(Form::Big64, layout)
    }

    /// `benbi`, for a mode that works in units of `unit_bytes`, a power of two.
    ///
    /// The kernel takes the number of units in 512 bytes, whatever the sector
    /// size.
    pub(crate) const fn benbi(unit_bytes: usize, layout: SectorLayout) -> Self {
        Self {
            shift: 9 - unit_bytes.ilog2(),
            ..Self::new(Form::Blocks, layout)
        }
    }

    /// `eboiv`.
    pub(crate) const fn eboiv(layout: SectorLayout) -> Self {
        Self::new(Form::Offset, layout)
    }

    const fn new(form: Form, layout: SectorLayout) -> Self {
        Self {
            form,
            shift: 0,
            layout,
        }
    }
}

impl<const N: usize> Ivs<N> for Counted {
    fn fill(&self, first: IvSector, ivs: &mut [[u8; N]]) {
        let mut sector = first;
        for iv in ivs {
            let n = sector.get();
            let size = self.layout.size.bytes() as u64;
            let mut bytes = [0; N];
            match self.form {
                Form::Zero => {}
                Form::Little32 => bytes[..4].copy_from_slice(&(n as u32).to_le_bytes()),
                Form::Little64 => bytes[..8].copy_from_slice(&n.to_le_bytes()),
                Form::Big64 => bytes[N - 8..].copy_from_slice(&n.to_be_bytes()),
                Form::Blocks => {
                    let block = (n << self.shift).wrapping_add(1);
                    bytes[N - 8..].copy_from_slice(&block.to_be_bytes());
                }
                Form::Offset => bytes[..8].copy_from_slice(&n.wrapping_mul(size).to_le_bytes()),
            }
            write(bytes, iv);
            sector = sector.advance(1, self.layout);
        }
    }

    fn through_mode(&self) -> bool {
        self.form == Form::Offset
    }
}

/// Writes the IV; a block by one store, for the kernel that loads it next.
fn write<const N: usize>(bytes: [u8; N], iv: &mut [u8; N]) {
    #[cfg(target_arch = "x86_64")]
    if let (Some(bytes), Some(iv), 16) = (bytes.first_chunk(), iv.first_chunk_mut(), N) {
        return crate::arch::store_block(*bytes, iv);
    }
    *iv = bytes;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SectorSize;

    fn one<const N: usize>(counted: Counted, n: u64) -> [u8; N] {
        let mut ivs = [[0xee; N]];
        counted.fill(IvSector::new(n), &mut ivs);
        ivs[0]
    }

    #[test]
    fn plain_wraps_where_plain64_goes_on() {
        let layout = SectorLayout::default();
        for (number, plain, plain64) in [
            (0, 0, 0),
            ((1 << 32) - 1, (1 << 32) - 1, (1 << 32) - 1),
            (1 << 32, 0, 1 << 32),
            (u64::MAX, (1 << 32) - 1, u128::from(u64::MAX)),
        ] {
            let iv: [u8; 16] = one(Counted::plain(layout), number);
            assert_eq!(iv, u128::to_le_bytes(plain));
            let iv: [u8; 16] = one(Counted::plain64(layout), number);
            assert_eq!(iv, u128::to_le_bytes(plain64));
            let iv: [u8; 16] = one(Counted::plain64be(layout), number);
            assert_eq!(iv, u128::to_be_bytes(plain64));
            let iv: [u8; 8] = one(Counted::plain(layout), number);
            assert_eq!(iv, (plain as u64).to_le_bytes());
            let iv: [u8; 8] = one(Counted::plain64be(layout), number);
            assert_eq!(iv, (plain64 as u64).to_be_bytes());
        }
    }

    #[test]
    fn benbi_counts_blocks_of_512_bytes_and_wraps() {
        let layout = SectorLayout::default();
        for (number, wide, narrow) in [
            (0, 1, 1),
            (1, 33, 65),
            (1 << 59, 1, 1),
            (u64::MAX, u64::MAX - 30, u64::MAX - 62),
        ] {
            let iv: [u8; 16] = one(Counted::benbi(16, layout), number);
            assert_eq!(iv, u128::from(wide).to_be_bytes());
            let iv: [u8; 8] = one(Counted::benbi(8, layout), number);
            assert_eq!(iv, u64::to_be_bytes(narrow));
        }
    }

    #[test]
    fn eboiv_counts_bytes_and_wraps() {
        for (number, size, offset) in [
            (0, SectorSize::B512, 0),
            ((1 << 32) - 1, SectorSize::B512, (1 << 41) - 512),
            (1 << 32, SectorSize::B4096, 1 << 44),
            (u64::MAX, SectorSize::B512, u64::MAX - 511),
            (u64::MAX, SectorSize::B4096, u64::MAX - 4095),
        ] {
            let large_iv = false;
            let layout = SectorLayout { size, large_iv };
            let iv: [u8; 16] = one(Counted::eboiv(layout), number);
            assert_eq!(iv, u128::from(offset).to_le_bytes());
            let iv: [u8; 8] = one(Counted::eboiv(layout), number);
            assert_eq!(iv, u64::to_le_bytes(offset));
        }
    }
}
