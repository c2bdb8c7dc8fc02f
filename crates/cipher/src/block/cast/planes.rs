//! The rounds of CAST-128 and CAST-256 over registers, and so in constant time.

use zeroize::Zeroize;

use super::RoundKey;
use super::sbox::ROUND;
use crate::block::planes::words::{Constant, Form, Rotation, Rows, WordTable};

/// S1 … S4.
static PLAIN: [WordTable; 4] = sboxes(Rows::Plain);

#[cfg(target_arch = "x86_64")]
static ADDED_IN_PAIRS: [WordTable; 4] = sboxes(Rows::AddedInPairs);

const fn sboxes(rows: Rows) -> [WordTable; 4] {
    [
        WordTable::new(&ROUND[0], rows),
        WordTable::new(&ROUND[1], rows),
        WordTable::new(&ROUND[2], rows),
        WordTable::new(&ROUND[3], rows),
    ]
}

/// A masking and a rotation subkey.
#[derive(Clone, Copy)]
pub(in crate::block) struct FormKey {
    mask: Constant,
    rotation: Rotation,
}

impl FormKey {
    pub(in crate::block) fn new([mask, rotation]: RoundKey) -> Self {
        Self {
            mask: Constant::new(mask),
            rotation: Rotation::new(rotation),
        }
    }
}

impl Zeroize for FormKey {
    fn zeroize(&mut self) {
        self.mask.zeroize();
        self.rotation.zeroize();
    }
}

/// Adds f of kind `KIND`, 1 to 3, of `from` to `to`: RFC 2144, section 2.2, and
/// RFC 2612, section 2.
#[inline(always)]
pub(in crate::block) fn half_round<const KIND: usize, F: Form>(
    form: F,
    to: &mut F::Word,
    from: F::Word,
    key: &FormKey,
) {
    let [s1, s2, s3, s4] = match F::ROWS {
        Rows::Plain => &PLAIN,
        #[cfg(target_arch = "x86_64")]
        Rows::AddedInPairs => &ADDED_IN_PAIRS,
    };
    let mask = form.constant(&key.mask);
    let i = match KIND {
        1 => form.add(mask, from),
        2 => form.xor(mask, from),
        _ => form.subtract(mask, from),
    };
    let i = form.rotate(i, &key.rotation);
    let (a, b) = (form.look_up(s1, i, 3), form.look_up(s2, i, 2));
    let sum = match KIND {
        1 => form.xor(a, b),
        2 => form.subtract(a, b),
        _ => form.add(a, b),
    };
    let c = form.look_up(s3, i, 1);
    let sum = match KIND {
        1 => form.subtract(sum, c),
        2 => form.add(sum, c),
        _ => form.xor(sum, c),
    };
    let d = form.look_up(s4, i, 0);
    let sum = match KIND {
        1 => form.add(sum, d),
        2 => form.xor(sum, d),
        _ => form.subtract(sum, d),
    };
    *to = form.xor(*to, sum);
}
