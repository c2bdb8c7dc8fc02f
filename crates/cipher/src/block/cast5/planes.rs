//! CAST-128 over registers, and so in constant time.

use zeroize::Zeroize;

use super::{Block, Cast5, ROUNDS};
use crate::block::cast::planes::{FormKey, half_round};
use crate::block::planes::sectors::{InPlanes, Kernel};
use crate::block::planes::words::{Form, Groups, InWords, Words};

/// CAST-128 with a key of 40 to 128 bits.
pub(crate) struct InTables {
    round_keys: [FormKey; ROUNDS],
    /// 12 or 16. No smaller type: what pads it is copied from the stack.
    rounds: u32,
}

/// The cipher under a key of 5 to 16 bytes.
pub(crate) fn keyed<P: Words>(key: &[u8], planes: P) -> InPlanes<P, InTables> {
    let portable = Cast5::new(key);
    let kernel = InTables {
        round_keys: portable.round_keys.map(FormKey::new),
        rounds: if portable.short_key { 12 } else { 16 },
    };
    InPlanes { planes, kernel }
}

impl<P: Words> Kernel<P, 8> for InTables {
    const SAME_BOTH_WAYS: bool = false;

    #[inline(always)]
    fn crypt(&self, planes: P, encrypt: bool, rows: [P::Vector; 8]) -> [P::Vector; 8] {
        let form = planes.groups::<1>();
        let [l, r] = split(planes.halves_to_planes(rows));
        let halves = [[form.arrange(l)], [form.arrange(r)]];
        let [[l], [r]] = match encrypt {
            true => self.encrypt_halves(form, halves),
            false => self.decrypt_halves(form, halves),
        };
        planes.planes_to_halves(join([form.restore(l), form.restore(r)]))
    }

    const FEW: usize = P::WIDE / 4;

    #[inline(always)]
    fn encrypt_few(&self, planes: P, blocks: &mut [Block]) {
        let form = InWords(planes);
        let halves = self.encrypt_halves(form, form.load::<true, 8, 2>(blocks));
        form.store::<true, 8, 2>(halves, blocks);
    }
}

impl InTables {
    /// Three rounds at a time, of one kind each, after which the halves have
    /// changed places; the sixteenth is of the first kind.
    #[inline(always)]
    fn encrypt_halves<F: Form>(&self, form: F, [mut l, mut r]: [F::Word; 2]) -> [F::Word; 2] {
        for k in self.triples() {
            half_round::<1, F>(form, &mut l, r, &k[0]);
            half_round::<2, F>(form, &mut r, l, &k[1]);
            half_round::<3, F>(form, &mut l, r, &k[2]);
            (l, r) = (r, l);
        }
        if self.rounds == 16 {
            half_round::<1, F>(form, &mut l, r, &self.round_keys[ROUNDS - 1]);
            (l, r) = (r, l);
        }
        [r, l]
    }

    #[inline(always)]
    fn decrypt_halves<F: Form>(&self, form: F, [mut r, mut l]: [F::Word; 2]) -> [F::Word; 2] {
        if self.rounds == 16 {
            (l, r) = (r, l);
            half_round::<1, F>(form, &mut l, r, &self.round_keys[ROUNDS - 1]);
        }
        for k in self.triples().iter().rev() {
            (l, r) = (r, l);
            half_round::<3, F>(form, &mut l, r, &k[2]);
            half_round::<2, F>(form, &mut r, l, &k[1]);
            half_round::<1, F>(form, &mut l, r, &k[0]);
        }
        [l, r]
    }

    /// The keys of 12 or of 15 rounds.
    #[inline(always)]
    fn triples(&self) -> &[[FormKey; 3]] {
        let (triples, _) = self.round_keys.as_chunks();
        &triples[..self.rounds as usize / 3]
    }
}

impl Drop for InTables {
    fn drop(&mut self) {
        self.round_keys.zeroize();
    }
}

/// The planes of big-endian blocks as words.
#[inline(always)]
fn split<V>([a, b, c, d, e, f, g, h]: [V; 8]) -> [[V; 4]; 2] {
    [[d, c, b, a], [h, g, f, e]]
}

/// Inverse of [`split`].
#[inline(always)]
fn join<V>([[d, c, b, a], [h, g, f, e]]: [[V; 4]; 2]) -> [V; 8] {
    [a, b, c, d, e, f, g, h]
}

#[cfg(test)]
mod tests {
    use super::{Words, keyed};
    use crate::block::tests;
    use crate::reference;

    const KEY_LENGTHS: [usize; 4] = [5, 10, 11, 16];

    tests::in_words!(check);

    fn check<P: Words>(planes: P) {
        let keyed = |key: &[u8]| keyed(key, planes);
        tests::known_answers::<reference::Cast5, _, 8>("cast5", keyed);
        tests::equals_reference::<reference::Cast5, _, 8>(&KEY_LENGTHS, keyed);
        tests::agrees_with::<cast5::Cast5, _, 8>(&KEY_LENGTHS, keyed);
    }
}
