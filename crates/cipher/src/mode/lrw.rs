//! LRW (Liskov, Rivest, Wagner 2002; IEEE P1619 drafts up to D5).
//!
//! ```text
//! Tⱼ = K₂ ⊗ (I + j)      Cⱼ = E(Pⱼ ⊕ Tⱼ) ⊕ Tⱼ
//! ```
//!
//! I is the IV as a big-endian number, K₂ and the product are elements of
//! GF(2¹²⁸) modulo x¹²⁸ + x⁷ + x² + x + 1 whose last byte holds x⁰.
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
use super::{BATCH, BlockMode, Blocks, add_all, blocks, times_x};

/// Length of the tweak key K₂.
pub(crate) const LRW_KEY_BYTES: usize = 16;

/// A block cipher in LRW mode.
pub(crate) struct Lrw<C> {
    cipher: C,
    products: Box<Products>,
    secret_index: bool,
}

struct Products {
    /// K₂.
    key: u128,
    /// K₂ ⊗ (2ᵏ⁺¹ − 1).
    steps: [u128; 128],
}

impl<C: Blocks<16>> Lrw<C> {
    /// `tweak_key` has [`LRW_KEY_BYTES`]; `secret_index` says that IVs are not
    /// to show in the timing.
    pub(crate) fn new(cipher: C, tweak_key: &[u8], secret_index: bool) -> Self {
        let mut products = Box::new(Products {
            key: 0,
            steps: [0; 128],
        });
        for byte in tweak_key {
            products.key = products.key << 8 | u128::from(*byte);
        }
        // K₂ ⊗ (2ᵏ⁺¹ − 1) = K₂ ⊗ (2ᵏ − 1)·x + K₂.
        let mut step = 0;
        for place in &mut products.steps {
            step = times_x(step) ^ products.key;
            *place = step;
        }
        Self {
            cipher,
            products,
            secret_index,
        }
    }

    fn run(&self, ivs: &[[u8; 16]], data: &mut [u8], crypt: impl Fn(&mut [[u8; 16]])) {
        let first = u128::from_be_bytes(ivs[0]);
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
        ivs: &[[u8; 16]],
        data: &mut [u8],
        crypt: impl Fn(&mut [[u8; 16]]),
    ) {
        let sector_blocks = data.len() / 16 / ivs.len();
        let mut ivs = ivs.iter();
        let mut left = 0;
        let mut tweaks = [[0; 16]; BATCH];
        for batch in blocks(data).chunks_mut(BATCH) {
            let tweaks = &mut tweaks[..batch.len()];
            for block in &mut *tweaks {
                if left == 0 {
                    let iv = ivs.next().expect("an IV for every sector");
                    tweak.go_to(u128::from_be_bytes(*iv));
                    left = sector_blocks;
                }
                *block = tweak.take().to_be_bytes();
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
struct Stepped<'a> {
    products: &'a Products,
    index: u128,
    tweak: u128,
}

impl<'a> Stepped<'a> {
    fn new(products: &'a Products, index: u128) -> Self {
        let tweak = products.times(index);
        Self {
            products,
            index,
            tweak,
        }
    }
}

impl Tweak for Stepped<'_> {
    fn go_to(&mut self, index: u128) {
        // `benbi` goes on where the sector before ended.
        if self.index != index {
            (self.index, self.tweak) = (index, self.products.times(index));
        }
    }

    fn take(&mut self) -> u128 {
        let tweak = self.tweak;
        // Of an index of all ones every bit changes.
        let changed = self.index.trailing_ones().min(127);
        self.tweak ^= self.products.steps[changed as usize];
        self.index = self.index.wrapping_add(1);
        tweak
    }
}

/// By multiplication, whatever the index.
struct Multiplied<'a> {
    products: &'a Products,
    index: u128,
}

impl Tweak for Multiplied<'_> {
    fn go_to(&mut self, index: u128) {
        self.index = index;
    }

    fn take(&mut self) -> u128 {
        let tweak = self.products.times(self.index);
        self.index = self.index.wrapping_add(1);
        tweak
    }
}

impl Products {
    fn times(&self, index: u128) -> u128 {
        let (low, high) = multiply(self.key, index);
        // x¹²⁸ is x⁷ + x² + x + 1, and so once more for what that carries out.
        let fold = |x: u128| x ^ x << 1 ^ x << 2 ^ x << 7;
        let over = high >> 127 ^ high >> 126 ^ high >> 121;
        low ^ fold(high) ^ fold(over)
    }
}

impl<C: Blocks<16>> BlockMode<16> for Lrw<C> {
    fn encrypt(&self, ivs: &mut [[u8; 16]], data: &mut [u8]) {
        self.run(ivs, data, |blocks| self.cipher.encrypt_blocks(blocks));
    }

    fn decrypt(&self, ivs: &mut [[u8; 16]], data: &mut [u8]) {
        self.run(ivs, data, |blocks| self.cipher.decrypt_blocks(blocks));
    }

    fn encrypt_zeros(&self, ivs: &mut [[u8; 16]]) {
        for iv in &mut *ivs {
            let tweak = self.products.times(u128::from_be_bytes(*iv)).to_be_bytes();
            *iv = tweak;
            self.cipher.encrypt_blocks(std::slice::from_mut(iv));
            super::add(iv, &tweak);
        }
    }
}

impl Drop for Products {
    fn drop(&mut self) {
        self.key.zeroize();
        self.steps.zeroize();
    }
}
