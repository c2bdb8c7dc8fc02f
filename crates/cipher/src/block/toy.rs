//! A toy cipher: all that a new cipher is, in one file. It runs in every mode, with
//! every IV generator and on every register width, and hides nothing.
//!
//! ```text
//! 8 rounds over halves of 8 bytes      leftᵢ ← leftᵢ + rightᵢ · rightᵢ₊₁ + keyᵢ, then the
//!                                      halves change places
//! ```

use crate::Mode;
use crate::block::planes::Planes;
use crate::block::planes::four;
use crate::block::planes::sectors::{InPlanes, Kernel};
use crate::block::{AnyKeying, Block, tests};
use crate::mode::tests::equals_the_reference;
use crate::reference::{ReferenceCipher, ReferenceMode};

const ROUNDS: usize = 8;

type RoundKeys = [[u8; 8]; ROUNDS];

fn round_keys(key: &[u8]) -> RoundKeys {
    std::array::from_fn(|nth| std::array::from_fn(|i| key[(3 * nth + i) % 16] ^ nth as u8))
}

/// One block at a time.
struct Toy(RoundKeys);

impl Toy {
    fn crypt(&self, order: impl Iterator<Item = usize>, block: Block) -> Block {
        let (mut left, mut right) = (block, block);
        right.rotate_left(8);
        for nth in order {
            let keys = &self.0[nth];
            let before = right;
            for i in 0..8 {
                right[i] = left[i] ^ before[i] & before[(i + 1) % 8] ^ keys[i];
            }
            left = before;
        }
        std::array::from_fn(|i| if i < 8 { right[i] } else { left[i - 8] })
    }
}

impl ReferenceCipher for Toy {
    fn new(key: &[u8]) -> Self {
        Self(round_keys(key))
    }

    fn encrypt(&self, plain: Block) -> Block {
        self.crypt(0..ROUNDS, plain)
    }

    fn decrypt(&self, cipher: Block) -> Block {
        self.crypt((0..ROUNDS).rev(), cipher)
    }
}

/// As many blocks at once as a register has bytes.
struct ToyInPlanes {
    encryption: RoundKeys,
    decryption: RoundKeys,
}

impl<P: Planes> Kernel<P> for ToyInPlanes {
    #[inline(always)]
    fn crypt(&self, planes: P, encrypt: bool, rows: [P::Vector; 16]) -> [P::Vector; 16] {
        let keys = match encrypt {
            true => &self.encryption,
            false => &self.decryption,
        };
        let mut x = planes.transpose(rows);
        for keys in keys {
            for i in 0..8 {
                let product = planes.and(x[8 + i], x[8 + (i + 1) % 8]);
                x[i] = planes.xor3(x[i], product, planes.splat(four(keys[i])));
            }
            x.rotate_left(8);
        }
        x.rotate_left(8);
        planes.transpose(x)
    }
}

tests::in_planes!(check);

fn check(planes: impl Planes) {
    let keyed = move |key: &[u8]| {
        let encryption = round_keys(key);
        let mut decryption = encryption;
        decryption.reverse();
        let kernel = ToyInPlanes {
            encryption,
            decryption,
        };
        InPlanes { planes, kernel }
    };
    tests::equals_reference::<Toy, _, 16>(&[16], keyed);
    let keying = AnyKeying::Wide(Box::new(move |key| Box::new(keyed(key))));
    for mode in Mode::ALL {
        equals_the_reference(&keying, ReferenceMode::wide::<Toy>(), mode);
    }
}
