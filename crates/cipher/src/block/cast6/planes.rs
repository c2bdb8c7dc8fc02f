//! CAST-256 over registers, and so in constant time.

use zeroize::Zeroize;

use super::{Cast6, QUADS};
use crate::block::Block;
use crate::block::cast::planes::{FormKey, half_round};
use crate::block::planes::sectors::{InPlanes, Kernel};
use crate::block::planes::words::{Form, Groups, InWords, Words};

/// CAST-256 with a key of 128, 160, 192, 224 or 256 bits.
pub(crate) struct InTables {
    encryption: [[FormKey; 4]; QUADS],
    /// The same in reverse order.
    decryption: [[FormKey; 4]; QUADS],
}

/// The cipher under a key of 16, 20, 24, 28 or 32 bytes.
pub(crate) fn keyed<P: Words>(key: &[u8], planes: P) -> InPlanes<P, InTables> {
    let portable = Cast6::new(key);
    let encryption = portable.round_keys.map(|quad| quad.map(FormKey::new));
    let mut decryption = encryption;
    decryption.reverse();
    let kernel = InTables {
        encryption,
        decryption,
    };
    InPlanes { planes, kernel }
}

impl<P: Words> Kernel<P> for InTables {
    #[inline(always)]
    fn crypt(&self, planes: P, encrypt: bool, rows: [P::Vector; 16]) -> [P::Vector; 16] {
        let [rows] = self.groups(planes, encrypt, [rows]);
        rows
    }

    const IN_PAIRS: bool = P::PAIRS;

    #[inline(always)]
    fn crypt_pair(
        &self,
        planes: P,
        encrypt: bool,
        pair: [[P::Vector; 16]; 2],
    ) -> [[P::Vector; 16]; 2] {
        self.groups(planes, encrypt, pair)
    }

    const FEW: usize = P::WIDE / 4;

    #[inline(always)]
    fn encrypt_few(&self, planes: P, blocks: &mut [Block]) {
        let form = InWords(planes);
        let words = rounds(form, &self.encryption, form.load::<true, 16, 4>(blocks));
        form.store::<true, 16, 4>(words, blocks);
    }
}

impl InTables {
    #[inline(always)]
    fn groups<P: Words, const G: usize>(
        &self,
        planes: P,
        encrypt: bool,
        mut groups: [[P::Vector; 16]; G],
    ) -> [[P::Vector; 16]; G] {
        let form = planes.groups::<G>();
        let mut words = [[[groups[0][0]; 4]; G]; 4];
        for g in 0..G {
            let [a, b, c, d] = split(planes.transpose(groups[g]));
            words[0][g] = form.arrange(a);
            words[1][g] = form.arrange(b);
            words[2][g] = form.arrange(c);
            words[3][g] = form.arrange(d);
        }
        let keys = match encrypt {
            true => &self.encryption,
            false => &self.decryption,
        };
        let [a, b, c, d] = rounds(form, keys, words);
        for g in 0..G {
            let words = [
                form.restore(a[g]),
                form.restore(b[g]),
                form.restore(c[g]),
                form.restore(d[g]),
            ];
            groups[g] = planes.transpose(join(words));
        }
        groups
    }
}

/// Section 2, with the quad-rounds' keys in reverse order for decryption.
#[inline(always)]
fn rounds<F: Form>(form: F, keys: &[[FormKey; 4]; QUADS], mut words: [F::Word; 4]) -> [F::Word; 4] {
    let (forwards, backwards) = keys.split_at(QUADS / 2);
    for keys in forwards {
        forward(form, &mut words, keys);
    }
    for keys in backwards {
        reverse(form, &mut words, keys);
    }
    words
}

impl Drop for InTables {
    fn drop(&mut self) {
        self.encryption.zeroize();
        self.decryption.zeroize();
    }
}

/// Q of section 2.
#[inline(always)]
fn forward<F: Form>(form: F, [a, b, c, d]: &mut [F::Word; 4], keys: &[FormKey; 4]) {
    half_round::<1, F>(form, c, *d, &keys[0]);
    half_round::<2, F>(form, b, *c, &keys[1]);
    half_round::<3, F>(form, a, *b, &keys[2]);
    half_round::<1, F>(form, d, *a, &keys[3]);
}

/// QBAR of section 2.
#[inline(always)]
fn reverse<F: Form>(form: F, [a, b, c, d]: &mut [F::Word; 4], keys: &[FormKey; 4]) {
    half_round::<1, F>(form, d, *a, &keys[3]);
    half_round::<3, F>(form, a, *b, &keys[2]);
    half_round::<2, F>(form, b, *c, &keys[1]);
    half_round::<1, F>(form, c, *d, &keys[0]);
}

/// The planes of big-endian blocks as words.
#[inline(always)]
fn split<V>(x: [V; 16]) -> [[V; 4]; 4] {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = x;
    [[d, c, b, a], [h, g, f, e], [l, k, j, i], [p, o, n, m]]
}

/// Inverse of [`split`].
#[inline(always)]
fn join<V>(words: [[V; 4]; 4]) -> [V; 16] {
    let [[d, c, b, a], [h, g, f, e], [l, k, j, i], [p, o, n, m]] = words;
    [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]
}

#[cfg(test)]
mod tests {
    use super::{Words, keyed};
    use crate::block::tests;
    use crate::reference;

    const KEY_LENGTHS: [usize; 5] = [16, 20, 24, 28, 32];

    tests::in_words!(check);

    fn check<P: Words>(planes: P) {
        let keyed = |key: &[u8]| keyed(key, planes);
        tests::known_answers::<reference::Cast6, _, 16>("cast6", keyed);
        tests::equals_reference::<reference::Cast6, _, 16>(&KEY_LENGTHS, keyed);
        tests::agrees_with::<cast6::Cast6, _, 16>(&KEY_LENGTHS, keyed);
    }
}
