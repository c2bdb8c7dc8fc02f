//! LRW (Liskov, Rivest, Wagner 2002; IEEE P1619 drafts up to D5).
//!
//! ```text
//! Tⱼ = K₂ ⊗ (I + j)      Cⱼ = E(Pⱼ ⊕ Tⱼ) ⊕ Tⱼ
//! ```
//!
//! I is the IV as a big-endian number, K₂ and the product are elements of
//! GF(2¹²⁸) modulo x¹²⁸ + x⁷ + x² + x + 1 whose last byte holds x⁰. TrueCrypt 4
//! has the same for blocks of 8 bytes, in GF(2⁶⁴) modulo x⁶⁴ + x⁴ + x³ + x + 1.
//!
//! The product is needed once a sector: from one index to the next only the
//! bits up to the lowest zero change, and K₂ ⊗ (2ᵏ⁺¹ − 1) is kept for every k.
//! Which of these is added depends on the index alone, so that an index which is
//! secret, because the IV is encrypted, takes a whole product for every block.
//!
//! Products are made by multiplication, and not by adding K₂·xᵏ under a mask
//! for every bit: compilers make branches of such masks.

use zeroize::Zeroize;

use super::polyval::multiply;
use super::{BATCH, BlockMode, add_all, blocks};
use crate::block::Keyed;

/// A block cipher in LRW mode, with blocks of `N` bytes, 8 or 16.
pub(crate) struct Lrw<const N: usize> {
    cipher: Keyed<N>,
    products: Box<Products<N>>,
    secret_index: bool,
}

struct Products<const N: usize> {
    /// K₂.
    key: u128,
    /// K₂ ⊗ (2ᵏ⁺¹ − 1).
    steps: [u128; 128],
}

/// The number that bytes are, big end first.
fn number<const N: usize>(bytes: &[u8; N]) -> u128 {
    let append = |number, byte: &u8| number << 8 | u128::from(*byte);
    bytes.iter().fold(0, append)
}

/// The last bytes of a number.
fn block<const N: usize>(number: u128) -> [u8; N] {
    let bytes = number.to_be_bytes();
    std::array::from_fn(|i| bytes[16 - N + i])
}

impl<const N: usize> Lrw<N> {
    /// `tweak_key` has as many bytes as a block; `secret_index` says that IVs
    /// are not to show in the timing.
    pub(crate) fn new(cipher: Keyed<N>, tweak_key: &[u8], secret_index: bool) -> Self {
        let mut products = Box::new(Products {
            key: 0,
            steps: [0; 128],
        });
        for byte in tweak_key {
            products.key = products.key << 8 | u128::from(*byte);
        }
        // K₂ ⊗ (2ᵏ⁺¹ − 1) = K₂ ⊗ (2ᵏ − 1)·x + K₂.
        let mut step = 0;
        for place in &mut products.steps[..8 * N] {
            step = Products::<N>::fold(step << 1, step >> (8 * N - 1)) ^ products.key;
            *place = step;
        }
        Self {
            cipher,
            products,
            secret_index,
        }
    }

    fn run(&self, ivs: &[[u8; N]], data: &mut [u8], crypt: impl Fn(&mut [[u8; N]])) {
        let first = number(&ivs[0]);
        if self.secret_index {
            let products = &self.products;
            self.run_along(
                Multiplied {
                    products,
                    index: first,
                },
                ivs,
                data,
                crypt,
            );
        } else {
            self.run_along(Stepped::new(&self.products, first), ivs, data, crypt);
        }
    }

    fn run_along(
        &self,
        mut tweak: impl Tweak,
        ivs: &[[u8; N]],
        data: &mut [u8],
        crypt: impl Fn(&mut [[u8; N]]),
    ) {
        let sector_blocks = data.len() / N / ivs.len();
        let mut ivs = ivs.iter();
        let mut left = 0;
        let mut tweaks = [[0; N]; BATCH];
        for batch in blocks(data).chunks_mut(BATCH) {
            let tweaks = &mut tweaks[..batch.len()];
            for place in &mut *tweaks {
                if left == 0 {
                    let iv = ivs.next().expect("an IV for every sector");
                    tweak.go_to(number(iv));
                    left = sector_blocks;
                }
                *place = block(tweak.take());
                left -= 1;
            }
            add_all(batch, tweaks);
            crypt(batch);
            add_all(batch, tweaks);
        }
    }
}

/// K₂ ⊗ index, from one index to the next.
trait Tweak {
    /// Goes to the first index of a sector.
    fn go_to(&mut self, index: u128);

    /// The tweak, before it goes to the next index.
    fn take(&mut self) -> u128;
}

/// By the steps.
struct Stepped<'a, const N: usize> {
    products: &'a Products<N>,
    index: u128,
    tweak: u128,
}

impl<'a, const N: usize> Stepped<'a, N> {
    fn new(products: &'a Products<N>, index: u128) -> Self {
        let tweak = products.times(index);
        Self {
            products,
            index,
            tweak,
        }
    }
}

impl<const N: usize> Tweak for Stepped<'_, N> {
    fn go_to(&mut self, index: u128) {
        // `benbi` goes on where the sector before ended.
        if self.index != index {
            (self.index, self.tweak) = (index, self.products.times(index));
        }
    }

    fn take(&mut self) -> u128 {
        let tweak = self.tweak;
        // Of an index of all ones every bit changes.
        let changed = self.index.trailing_ones().min(8 * N as u32 - 1);
        self.tweak ^= self.products.steps[changed as usize];
        self.index = Products::<N>::ELEMENT & self.index.wrapping_add(1);
        tweak
    }
}

/// By multiplication, whatever the index.
struct Multiplied<'a, const N: usize> {
    products: &'a Products<N>,
    index: u128,
}

impl<const N: usize> Tweak for Multiplied<'_, N> {
    fn go_to(&mut self, index: u128) {
        self.index = index;
    }

    fn take(&mut self) -> u128 {
        let tweak = self.products.times(self.index);
        self.index = Products::<N>::ELEMENT & self.index.wrapping_add(1);
        tweak
    }
}

impl<const N: usize> Products<N> {
    /// The bits of an element.
    const ELEMENT: u128 = u128::MAX >> (128 - 8 * N);

    fn times(&self, index: u128) -> u128 {
        match (multiply(self.key, index), N) {
            ((product, _), 8) => Self::fold(product & Self::ELEMENT, product >> 64),
            ((low, high), _) => Self::fold(low, high),
        }
    }

    /// The product with these halves, reduced modulo the field's polynomial.
    fn fold(low: u128, high: u128) -> u128 {
        // x¹²⁸ is x⁷ + x² + x + 1, x⁶⁴ is x⁴ + x³ + x + 1, and so once more for what
        // that carries out.
        let [a, b, c] = match N {
            8 => [1, 3, 4],
            _ => [1, 2, 7],
        };
        let folded = |x: u128| x ^ x << a ^ x << b ^ x << c;
        let over = [a, b, c].map(|shift| high >> (8 * N - shift));
        let over = over[0] ^ over[1] ^ over[2];
        (low ^ folded(high) ^ folded(over)) & Self::ELEMENT
    }
}

impl<const N: usize> BlockMode<N> for Lrw<N> {
    fn encrypt(&self, ivs: &mut [[u8; N]], data: &mut [u8]) {
        self.run(ivs, data, |blocks| self.cipher.encrypt_blocks(blocks));
    }

    fn decrypt(&self, ivs: &mut [[u8; N]], data: &mut [u8]) {
        self.run(ivs, data, |blocks| self.cipher.decrypt_blocks(blocks));
    }

    fn encrypt_zeros(&self, ivs: &mut [[u8; N]]) {
        for iv in &mut *ivs {
            let tweak = block(self.products.times(number(iv)));
            *iv = tweak;
            self.cipher.encrypt_blocks(std::slice::from_mut(iv));
            super::add(iv, &tweak);
        }
    }
}

impl<const N: usize> Drop for Products<N> {
    fn drop(&mut self) {
        self.key.zeroize();
        self.steps.zeroize();
    }
}
