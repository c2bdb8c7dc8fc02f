//! LRW (Liskov, Rivest, Wagner 2002; IEEE P1619 drafts up to D5).
//!
//! ```text
//! Tⱼ = K₂ ⊗ (I + j)      Cⱼ = E(Pⱼ ⊕ Tⱼ) ⊕ Tⱼ
//! ```
//!
//! I is the IV as a big-endian number, K₂ and the product are elements of
//! GF(2¹²⁸) modulo x¹²⁸ + x⁷ + x² + x + 1 whose last byte holds x⁰.
//!
//! The product is a sum of K₂·xᵏ over the bits of the index, all of them added
//! under a mask. It is needed once a sector: from one index to the next only
//! the bits up to the lowest zero change, and K₂ ⊗ (2ᵏ⁺¹ − 1) is kept for
//! every k. Which of these is added depends on the index alone.

use zeroize::Zeroize;

use super::{BATCH, BlockMode, Blocks, add_all, blocks, times_x};

/// Length of the tweak key K₂.
pub(crate) const LRW_KEY_BYTES: usize = 16;

/// A block cipher in LRW mode.
pub(crate) struct Lrw<C> {
    cipher: C,
    products: Box<Products>,
}

struct Products {
    /// K₂·xᵏ.
    powers: [u128; 128],
    /// K₂ ⊗ (2ᵏ⁺¹ − 1).
    steps: [u128; 128],
}

impl<C: Blocks<16>> Lrw<C> {
    /// `tweak_key` has [`LRW_KEY_BYTES`].
    pub(crate) fn new(cipher: C, tweak_key: &[u8]) -> Self {
        let mut products = Box::new(Products {
            powers: [0; 128],
            steps: [0; 128],
        });
        for byte in tweak_key {
            products.powers[0] = products.powers[0] << 8 | u128::from(*byte);
        }
        products.steps[0] = products.powers[0];
        for k in 1..128 {
            products.powers[k] = times_x(products.powers[k - 1]);
            products.steps[k] = products.steps[k - 1] ^ products.powers[k];
        }
        Self { cipher, products }
    }

    fn run(&self, ivs: &[[u8; 16]], data: &mut [u8], crypt: impl Fn(&mut [[u8; 16]])) {
        let sector_blocks = data.len() / 16 / ivs.len();
        let mut index = u128::from_be_bytes(ivs[0]);
        let mut tweak = self.products.times(index);
        let mut ivs = ivs.iter();
        let mut left = 0;
        let mut tweaks = [[0; 16]; BATCH];
        for batch in blocks(data).chunks_mut(BATCH) {
            let tweaks = &mut tweaks[..batch.len()];
            for block in &mut *tweaks {
                if left == 0 {
                    let iv = ivs.next().expect("an IV for every sector");
                    let start = u128::from_be_bytes(*iv);
                    // `benbi` goes on where the sector before ended.
                    if index != start {
                        (index, tweak) = (start, self.products.times(start));
                    }
                    left = sector_blocks;
                }
                *block = tweak.to_be_bytes();
                // Of an index of all ones every bit changes.
                let changed = index.trailing_ones().min(127);
                tweak ^= self.products.steps[changed as usize];
                index = index.wrapping_add(1);
                left -= 1;
            }
            add_all(batch, tweaks);
            crypt(batch);
            add_all(batch, tweaks);
        }
    }
}

impl Products {
    fn times(&self, index: u128) -> u128 {
        let mut product = 0;
        for (k, power) in self.powers.iter().enumerate() {
            product ^= power & (index >> k & 1).wrapping_neg();
        }
        product
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
        self.powers.zeroize();
        self.steps.zeroize();
    }
}
