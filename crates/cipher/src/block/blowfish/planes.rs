//! Blowfish over registers, and so in constant time.

use zeroize::Zeroize;

use super::{Block, ROUNDS, first_p, pi};
use crate::block::BlockCipher;
use crate::block::planes::sectors::{InPlanes, Kernel};
use crate::block::planes::words::{Constant, Form, Groups, InWords, WordTable, Words};

/// Blowfish with a key of 32 to 448 bits.
pub(crate) struct InTables<const LITTLE_ENDIAN: bool> {
    encryption: PArray,
    /// The same in reverse order.
    decryption: PArray,
    s: Box<[WordTable; 4]>,
}

type PArray = [Constant; ROUNDS + 2];

/// The cipher under a key of 4 to 56 bytes: "Generating the Subkeys".
pub(crate) fn keyed<P: Words, const LITTLE_ENDIAN: bool>(
    key: &[u8],
    planes: P,
) -> InPlanes<P, InTables<LITTLE_ENDIAN>> {
    let p = first_p(key).map(Constant::new);
    let kernel = InTables {
        encryption: p,
        decryption: p,
        s: Box::new(pi::S.each_ref().map(|words| WordTable::new(words, P::ROWS))),
    };
    let mut cipher = InPlanes { planes, kernel };
    let mut block = [0; 8];
    for at in (0..ROUNDS + 2).step_by(2) {
        let [left, right] = next_words(&cipher, &mut block);
        cipher.kernel.encryption[at] = Constant::new(left);
        cipher.kernel.encryption[at + 1] = Constant::new(right);
    }
    for sbox in 0..4 {
        for at in (0..256).step_by(2) {
            let [left, right] = next_words(&cipher, &mut block);
            cipher.kernel.s[sbox].set(at, left, P::ROWS);
            cipher.kernel.s[sbox].set(at + 1, right, P::ROWS);
        }
    }
    block.zeroize();
    cipher.kernel.decryption = cipher.kernel.encryption;
    cipher.kernel.decryption.reverse();
    cipher
}

/// Encrypts `block` in place, and returns the result as two subkeys.
fn next_words<P: Words, const LITTLE_ENDIAN: bool>(
    cipher: &InPlanes<P, InTables<LITTLE_ENDIAN>>,
    block: &mut Block,
) -> [u32; 2] {
    cipher.encrypt_blocks(std::array::from_mut(block));
    let halves = block.as_chunks().0;
    [0, 1].map(|i| {
        if LITTLE_ENDIAN {
            u32::from_le_bytes(halves[i])
        } else {
            u32::from_be_bytes(halves[i])
        }
    })
}

impl<P: Words, const LITTLE_ENDIAN: bool> Kernel<P, 8> for InTables<LITTLE_ENDIAN> {
    #[inline(always)]
    fn crypt(&self, planes: P, encrypt: bool, rows: [P::Vector; 8]) -> [P::Vector; 8] {
        let [rows] = self.groups(planes, encrypt, [rows]);
        rows
    }

    const IN_PAIRS: bool = P::PAIRS;

    #[inline(always)]
    fn crypt_pair(
        &self,
        planes: P,
        encrypt: bool,
        pair: [[P::Vector; 8]; 2],
    ) -> [[P::Vector; 8]; 2] {
        self.groups(planes, encrypt, pair)
    }

    const FEW: usize = P::WIDE / 4;

    #[inline(always)]
    fn encrypt_few(&self, planes: P, blocks: &mut [Block]) {
        let form = InWords(planes);
        if LITTLE_ENDIAN {
            let halves = self.rounds(form, &self.encryption, form.load::<false, 8, 2>(blocks));
            form.store::<false, 8, 2>(halves, blocks);
        } else {
            let halves = self.rounds(form, &self.encryption, form.load::<true, 8, 2>(blocks));
            form.store::<true, 8, 2>(halves, blocks);
        }
    }
}

impl<const LITTLE_ENDIAN: bool> InTables<LITTLE_ENDIAN> {
    #[inline(always)]
    fn groups<P: Words, const G: usize>(
        &self,
        planes: P,
        encrypt: bool,
        mut groups: [[P::Vector; 8]; G],
    ) -> [[P::Vector; 8]; G] {
        let form = planes.groups::<G>();
        let mut halves = [[[groups[0][0]; 4]; G]; 2];
        for g in 0..G {
            let [left, right] = split::<LITTLE_ENDIAN, _>(planes.halves_to_planes(groups[g]));
            halves[0][g] = form.arrange(left);
            halves[1][g] = form.arrange(right);
        }
        let keys = match encrypt {
            true => &self.encryption,
            false => &self.decryption,
        };
        let [left, right] = self.rounds(form, keys, halves);
        for g in 0..G {
            let halves = [form.restore(left[g]), form.restore(right[g])];
            groups[g] = planes.planes_to_halves(join::<LITTLE_ENDIAN, _>(halves));
        }
        groups
    }

    /// "Encryption" under a P-array, in reverse order for decryption.
    #[inline(always)]
    fn rounds<F: Form>(
        &self,
        form: F,
        [first, inner @ .., last]: &PArray,
        [mut left, mut right]: [F::Word; 2],
    ) -> [F::Word; 2] {
        left = form.xor(left, form.constant(first));
        // No bounds to check between two rounds: the compiler would put look-ups
        // behind the check, and hold the tables of four in registers until then.
        for [first, second] in inner.as_chunks::<2>().0 {
            self.half_round(form, &mut right, left, first);
            self.half_round(form, &mut left, right, second);
        }
        [form.xor(right, form.constant(last)), left]
    }

    #[inline(always)]
    fn half_round<F: Form>(&self, form: F, to: &mut F::Word, from: F::Word, key: &Constant) {
        let [s0, s1, s2, s3] = &*self.s;
        let sum = form.add(form.look_up(s0, from, 3), form.look_up(s1, from, 2));
        let sum = form.xor(sum, form.look_up(s2, from, 1));
        let sum = form.add(sum, form.look_up(s3, from, 0));
        *to = form.xor(form.xor(*to, sum), form.constant(key));
    }
}

impl<const LITTLE_ENDIAN: bool> Drop for InTables<LITTLE_ENDIAN> {
    fn drop(&mut self) {
        self.encryption.zeroize();
        self.decryption.zeroize();
    }
}

/// The planes of blocks as words.
#[inline(always)]
fn split<const LITTLE_ENDIAN: bool, V>([a, b, c, d, e, f, g, h]: [V; 8]) -> [[V; 4]; 2] {
    if LITTLE_ENDIAN {
        [[a, b, c, d], [e, f, g, h]]
    } else {
        [[d, c, b, a], [h, g, f, e]]
    }
}

/// Inverse of [`split`].
#[inline(always)]
fn join<const LITTLE_ENDIAN: bool, V>([left, right]: [[V; 4]; 2]) -> [V; 8] {
    let ([a, b, c, d], [e, f, g, h]) = (left, right);
    if LITTLE_ENDIAN {
        [a, b, c, d, e, f, g, h]
    } else {
        [d, c, b, a, h, g, f, e]
    }
}

#[cfg(test)]
mod tests {
    use super::{Words, keyed};
    use crate::block::tests;
    use crate::reference;

    const KEY_LENGTHS: [usize; 6] = [4, 5, 16, 31, 32, 56];

    tests::in_words!(check);

    fn check<P: Words>(planes: P) {
        let big = |key: &[u8]| keyed::<_, false>(key, planes);
        tests::known_answers::<reference::Blowfish, _, 8>("blowfish", big);
        tests::equals_reference::<reference::Blowfish, _, 8>(&KEY_LENGTHS, big);
        tests::agrees_with::<blowfish::Blowfish, _, 8>(&KEY_LENGTHS, big);
        let little = |key: &[u8]| keyed::<_, true>(key, planes);
        tests::equals_reference::<reference::BlowfishLittleEndian, _, 8>(&KEY_LENGTHS, little);
        tests::agrees_with::<blowfish::BlowfishLE, _, 8>(&KEY_LENGTHS, little);
    }
}
