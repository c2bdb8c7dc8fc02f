//! Kuznyechik over a few blocks, which registers hold as they are.
//!
//! L is a matrix of bytes. By its diagonals it is sixteen products of whole
//! registers, where the bytes of every block are rotated:
//!
//! ```text
//! L(a)ᵢ = Σ L[i, i + d] · aᵢ₊ᵈ        d = 0 … 15, indices modulo 16
//! ```
//!
//! All that is kept in the field of AES, where CPUs multiply.

use zeroize::Zeroize;

use super::super::{KEYS, linear, pi};
use super::{FIELD, InBytes, State};
use crate::block::Block;
use crate::block::planes::few::{Few, encrypt_blocks, encrypt_cbc};
use crate::block::planes::linear::{apply, inverse, to_aes_field};
use crate::block::planes::sectors::{InPlanes, Kernel};
use crate::block::planes::{Planes, Products};

/// [`InBytes`] with a kernel for few blocks.
pub(crate) struct WithFew<P: Planes> {
    many: InBytes<P>,
    into: P::Map,
    out_of: P::Map,
    pi: P::Table,
    /// The diagonals of L.
    diagonals: [[u32; 4]; 16],
    round_keys: [[u32; 4]; KEYS],
}

/// The cipher under a key of 32 bytes.
pub(crate) fn keyed<P: Products>(key: &[u8], planes: P) -> InPlanes<P, WithFew<P>> {
    let into = to_aes_field(FIELD);
    let many = super::keyed(key, planes).kernel;
    let mut table = [0; 256];
    for (x, &y) in pi::PI.iter().enumerate() {
        table[usize::from(apply(&into, x as u8))] = apply(&into, y);
    }
    let columns: [Block; 16] = std::array::from_fn(|j| linear(1 << (8 * j)).to_le_bytes());
    let diagonals = std::array::from_fn(|d| {
        words(std::array::from_fn(|i| {
            apply(&into, columns[(i + d) % 16][i])
        }))
    });
    let round_keys = many
        .round_keys
        .map(|key| words(key.map(|four| apply(&into, four as u8))));
    let kernel = WithFew {
        many,
        into: P::map(&into),
        out_of: P::map(&inverse(&into)),
        pi: P::table(&table),
        diagonals,
        round_keys,
    };
    InPlanes { planes, kernel }
}

fn words(block: Block) -> [u32; 4] {
    let (words, _) = block.as_chunks();
    std::array::from_fn(|i| u32::from_le_bytes(words[i]))
}

impl<P: Products> Kernel<P> for WithFew<P> {
    const SAME_BOTH_WAYS: bool = false;

    #[inline(always)]
    fn crypt(&self, planes: P, encrypt: bool, rows: State<P>) -> State<P> {
        self.many.crypt(planes, encrypt, rows)
    }

    const FEW: usize = P::WIDE / 4;

    #[inline(always)]
    fn encrypt_few(&self, planes: P, blocks: &mut [Block]) {
        match blocks.len().div_ceil(P::WIDE / 16) {
            0 | 1 => encrypt_blocks::<P, Self, 1>(self, planes, blocks),
            2 => encrypt_blocks::<P, Self, 2>(self, planes, blocks),
            _ => encrypt_blocks::<P, Self, 4>(self, planes, blocks),
        }
    }

    fn encrypt_few_cbc(&self, planes: P, ivs: &[Block], sector_bytes: usize, data: &mut [u8]) {
        match ivs.len().div_ceil(P::WIDE / 16) {
            0 | 1 => encrypt_cbc::<P, Self, 1>(self, planes, ivs, sector_bytes, data),
            2 => encrypt_cbc::<P, Self, 2>(self, planes, ivs, sector_bytes, data),
            _ => encrypt_cbc::<P, Self, 4>(self, planes, ivs, sector_bytes, data),
        }
    }
}

impl<P: Products, const ROWS: usize> Few<P, ROWS> for WithFew<P> {
    #[inline(always)]
    fn arrange(&self, planes: P, mut rows: [P::Vector; ROWS]) -> [P::Vector; ROWS] {
        for x in &mut rows {
            *x = planes.linear(&self.into, *x);
        }
        rows
    }

    #[inline(always)]
    fn encrypt(&self, planes: P, mut state: [P::Vector; ROWS]) -> [P::Vector; ROWS] {
        let [first, keys @ ..] = &self.round_keys;
        for x in &mut state {
            *x = planes.xor(*x, planes.splat_words(*first));
        }
        for key in keys {
            for x in &mut state {
                *x = self.mix_few(planes, planes.look_up(&self.pi, *x), key);
            }
        }
        state
    }

    #[inline(always)]
    fn restore(&self, planes: P, mut state: [P::Vector; ROWS]) -> [P::Vector; ROWS] {
        for x in &mut state {
            *x = planes.linear(&self.out_of, *x);
        }
        state
    }
}

impl<P: Products> WithFew<P> {
    /// L, and a key added.
    #[inline(always)]
    fn mix_few(&self, planes: P, x: P::Vector, key: &[u32; 4]) -> P::Vector {
        let sum = planes.xor3(
            self.four_diagonals::<0>(planes, x),
            self.four_diagonals::<4>(planes, x),
            planes.splat_words(*key),
        );
        planes.xor3(
            sum,
            self.four_diagonals::<8>(planes, x),
            self.four_diagonals::<12>(planes, x),
        )
    }

    /// The sum of the products from diagonal `D` on.
    #[inline(always)]
    fn four_diagonals<const D: usize>(&self, planes: P, x: P::Vector) -> P::Vector {
        let a = self.diagonal(planes, x, D);
        let b = self.diagonal(planes, x, D + 1);
        let c = self.diagonal(planes, x, D + 2);
        planes.xor(planes.xor3(a, b, c), self.diagonal(planes, x, D + 3))
    }

    #[inline(always)]
    fn diagonal(&self, planes: P, x: P::Vector, d: usize) -> P::Vector {
        let rotated = planes.shuffle(x, &ROTATIONS[d]);
        planes.multiply(rotated, planes.splat_words(self.diagonals[d]))
    }
}

/// Byte i + d to byte i.
static ROTATIONS: [Block; 16] = {
    let mut rotations = [[0; 16]; 16];
    let mut d = 0;
    while d < 16 {
        let mut i = 0;
        while i < 16 {
            rotations[d][i] = ((i + d) % 16) as u8;
            i += 1;
        }
        d += 1;
    }
    rotations
};

impl<P: Planes> Drop for WithFew<P> {
    fn drop(&mut self) {
        self.round_keys.as_flattened_mut().zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::keyed;
    use crate::arch::Avx512Bytes;
    use crate::block::tests;
    use crate::reference;

    #[test]
    fn avx512() {
        let Some(planes) = Avx512Bytes::detect() else {
            println!("skipped: this CPU has no AVX-512 VBMI with GFNI");
            return;
        };
        let keyed = |key: &[u8]| keyed(key, planes);
        tests::known_answers::<reference::Kuznyechik, _, 16>("kuznyechik", keyed);
        tests::equals_reference::<reference::Kuznyechik, _, 16>(&[32], keyed);
        tests::agrees_with::<kuznyechik::Kuznyechik, _, 16>(&[32], keyed);
    }
}
