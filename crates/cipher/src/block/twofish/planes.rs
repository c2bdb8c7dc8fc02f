//! Twofish in byte planes, and so in constant time.
//!
//! The S-boxes of g are tables of 256 bytes, made once a key, and their MDS
//! product is eight linear maps and some sums. The rest of a round adds and
//! rotates, so the state is kept in words.

use zeroize::Zeroize;

use super::{KeyWords, ORDER, Q, Subkeys};
use crate::block::Block;
use crate::block::planes::linear::times;
use crate::block::planes::sectors::{InPlanes, Kernel};
use crate::block::planes::{NOTHING, Planes, four};
use crate::work::Work;

/// Twofish with a key of 128, 192 or 256 bits.
pub(crate) struct InTables<P: Planes> {
    /// Per byte of g's input: its way through the S-box.
    tables: Box<[P::Table; 4]>,
    mds: Mds<P>,
    subkeys: Subkeys,
}

/// The factors of the MDS matrix that are not 1.
struct Mds<P: Planes> {
    times_5b: P::Map,
    times_ef: P::Map,
}

/// The cipher under a key of 16, 24 or 32 bytes.
pub(crate) fn keyed<P: Planes>(key: &[u8], planes: P) -> InPlanes<P, InTables<P>> {
    let mds = Mds {
        times_5b: P::map(&times(0x5b, 0x169)),
        times_ef: P::map(&times(0xef, 0x169)),
    };
    let words = KeyWords::new(key);
    let mut sboxes = [[0; 256]; 4];
    let [mut even, mut odd] = [words.even(), words.odd()].map(|l| {
        let sboxes = &mut sboxes;
        planes.enter(Fill { l, sboxes });
        let mut products = [[0; MOST_WIDE]; 4];
        planes.enter(Multiply {
            mds: &mds,
            sboxes,
            products: &mut products,
        });
        products
    });
    let word = |products: &[[u8; MOST_WIDE]; 4], i: u8| {
        u32::from_le_bytes(std::array::from_fn(|row| products[row][usize::from(i)]))
    };
    let subkeys = Subkeys::new(|i| word(&even, i), |i| word(&odd, i));
    planes.enter(Fill {
        l: words.s(),
        sboxes: &mut sboxes,
    });
    let kernel = InTables {
        tables: Box::new(std::array::from_fn(|column| P::table(&sboxes[column]))),
        mds,
        subkeys,
    };
    even.as_flattened_mut().zeroize();
    odd.as_flattened_mut().zeroize();
    sboxes.as_flattened_mut().zeroize();
    InPlanes { planes, kernel }
}

/// Most bytes in a register, more than there are subkeys.
const MOST_WIDE: usize = 64;

/// The MDS products of bytes through every S-box, from 0 up, by rows: not one
/// by one, because compilers make branches of the bits of a factor.
struct Multiply<'a, P: Planes> {
    mds: &'a Mds<P>,
    sboxes: &'a [[u8; 256]; 4],
    products: &'a mut [[u8; MOST_WIDE]; 4],
}

impl<P: Planes> Work<P> for Multiply<'_, P> {
    #[inline(always)]
    fn run(self, planes: P) {
        for at in (0..MOST_WIDE).step_by(P::WIDE) {
            let [a, b, c, d] = self.sboxes;
            let columns = [
                planes.load(&a[at..]),
                planes.load(&b[at..]),
                planes.load(&c[at..]),
                planes.load(&d[at..]),
            ];
            let rows = self.mds.multiply(planes, columns);
            for (row, products) in rows.into_iter().zip(&mut *self.products) {
                planes.store(row, &mut products[at..]);
            }
        }
    }
}

impl<P: Planes> Mds<P> {
    /// The product with a byte of each column.
    #[inline(always)]
    fn multiply(&self, planes: P, [a, b, c, d]: Word<P>) -> Word<P> {
        let times_5b = |x| planes.linear(&self.times_5b, x);
        let times_ef = |x| planes.linear(&self.times_ef, x);
        [
            planes.xor3(a, times_ef(b), times_5b(planes.xor(c, d))),
            planes.xor3(times_5b(a), times_ef(planes.xor(b, c)), d),
            planes.xor3(times_ef(planes.xor(a, d)), times_5b(b), c),
            planes.xor3(times_ef(planes.xor(a, c)), b, times_5b(d)),
        ]
    }
}

/// The way of every byte through h under `l`, up to the MDS product.
struct Fill<'a> {
    l: &'a [[u8; 4]],
    sboxes: &'a mut [[u8; 256]; 4],
}

impl<P: Planes> Work<P> for Fill<'_> {
    #[inline(always)]
    fn run(self, planes: P) {
        let q = [P::table(&Q[0]), P::table(&Q[1])];
        for (column, sbox) in self.sboxes.iter_mut().enumerate() {
            let order = &ORDER[column];
            for (nth, entries) in sbox.chunks_mut(P::WIDE).enumerate() {
                let mut y = planes.load(&EVERY_BYTE[nth * P::WIDE..]);
                for (stage, word) in self.l.iter().enumerate().rev() {
                    y = planes.look_up(&q[order[stage]], y);
                    y = planes.xor(y, planes.splat(four(word[column])));
                }
                planes.store(planes.look_up(&q[order[4]], y), entries);
            }
        }
    }
}

const EVERY_BYTE: [u8; 256] = {
    let mut bytes = [0; 256];
    let mut i = 0;
    while i < 256 {
        bytes[i] = i as u8;
        i += 1;
    }
    bytes
};

/// Registers of block pairs that are worked on together when there are few.
const FEW_PAIRS: usize = 2;

/// A word of every block.
type Word<P> = [<P as Planes>::Vector; 4];

impl<P: Planes> Kernel<P> for InTables<P> {
    const SAME_BOTH_WAYS: bool = false;

    #[inline(always)]
    fn crypt(&self, planes: P, encrypt: bool, rows: [P::Vector; 16]) -> [P::Vector; 16] {
        if encrypt {
            self.encrypt(planes, rows)
        } else {
            self.decrypt(planes, rows)
        }
    }

    const FEW: usize = FEW_PAIRS * P::WIDE / 8;

    #[inline(always)]
    fn encrypt_few(&self, planes: P, blocks: &mut [Block]) {
        if blocks.len() <= P::WIDE / 8 {
            self.encrypt_pairs::<1>(planes, blocks);
        } else {
            self.encrypt_pairs::<FEW_PAIRS>(planes, blocks);
        }
    }
}

impl<P: Planes> InTables<P> {
    #[inline(always)]
    fn encrypt(&self, planes: P, rows: [P::Vector; 16]) -> [P::Vector; 16] {
        let keys = &self.subkeys;
        let state = state(planes, rows);
        let [mut a, mut b, mut c, mut d] = add_keys(planes, state, &keys.input_whitening);
        for keys in keys.round_keys.as_chunks::<2>().0 {
            self.round(planes, a, b, &mut c, &mut d, keys[0]);
            self.round(planes, c, d, &mut a, &mut b, keys[1]);
        }
        // The last round does not swap.
        planes.half_turned_words_to_rows(add_keys(planes, [c, d, a, b], &keys.output_whitening))
    }

    #[inline(always)]
    fn decrypt(&self, planes: P, rows: [P::Vector; 16]) -> [P::Vector; 16] {
        let keys = &self.subkeys;
        let state = state(planes, rows);
        let [mut c, mut d, mut a, mut b] = add_keys(planes, state, &keys.output_whitening);
        for keys in keys.round_keys.as_chunks::<2>().0.iter().rev() {
            self.inverse_round(planes, c, d, &mut a, &mut b, keys[1]);
            self.inverse_round(planes, a, b, &mut c, &mut d, keys[0]);
        }
        planes.half_turned_words_to_rows(add_keys(planes, [a, b, c, d], &keys.input_whitening))
    }

    #[inline(always)]
    fn round(
        &self,
        planes: P,
        a: Word<P>,
        b: Word<P>,
        c: &mut Word<P>,
        d: &mut Word<P>,
        keys: [u32; 2],
    ) {
        let [x, y] = self.f(planes, a, b);
        let keys = keys.map(|key| planes.splat(key));
        for i in 0..4 {
            let sum = planes.add_words(x[i], y[i]);
            let f0 = planes.add_words(sum, keys[0]);
            let f1 = planes.add_words(planes.add_words(sum, y[i]), keys[1]);
            c[i] = planes.rotate_words(planes.xor(c[i], f0), 31);
            d[i] = planes.xor(planes.rotate_words(d[i], 1), f1);
        }
    }

    #[inline(always)]
    fn inverse_round(
        &self,
        planes: P,
        a: Word<P>,
        b: Word<P>,
        c: &mut Word<P>,
        d: &mut Word<P>,
        keys: [u32; 2],
    ) {
        let [x, y] = self.f(planes, a, b);
        let keys = keys.map(|key| planes.splat(key));
        for i in 0..4 {
            let sum = planes.add_words(x[i], y[i]);
            let f0 = planes.add_words(sum, keys[0]);
            let f1 = planes.add_words(planes.add_words(sum, y[i]), keys[1]);
            c[i] = planes.xor(planes.rotate_words(c[i], 1), f0);
            d[i] = planes.rotate_words(planes.xor(d[i], f1), 31);
        }
    }

    /// At most `N` times as many blocks as two registers hold. Of two words of
    /// the state, a and b or c and d, the first is every even word of a
    /// register, and the second every odd one.
    #[inline(always)]
    fn encrypt_pairs<const N: usize>(&self, planes: P, blocks: &mut [Block]) {
        let keys = &self.subkeys;
        let [p, q, r, s] = keys.input_whitening;
        let (ab_key, cd_key) = ([p, q, p, q], [r, s, r, s]);
        let mut padded = [[0; 16]; FEW_PAIRS * 8];
        padded[..blocks.len()].copy_from_slice(blocks);
        let mut rows = padded.as_flattened_mut().chunks_mut(P::WIDE);
        let mut ab = [planes.splat_words(ab_key); N];
        let mut cd = [planes.splat_words(cd_key); N];
        for i in 0..N {
            let mut row = || planes.load(rows.next().expect("room for every pair"));
            let [x, y] = planes.interleave_halves(row(), row());
            (ab[i], cd[i]) = (planes.xor(ab[i], x), planes.xor(cd[i], y));
        }
        for keys in keys.round_keys.as_chunks::<2>().0 {
            self.round_in_pairs(planes, &ab, &mut cd, keys[0]);
            self.round_in_pairs(planes, &cd, &mut ab, keys[1]);
        }
        let [p, q, r, s] = keys.output_whitening;
        let (cd_key, ab_key) = (
            planes.splat_words([p, q, p, q]),
            planes.splat_words([r, s, r, s]),
        );
        for i in 0..N {
            let cd = planes.xor(cd[i], cd_key);
            let ab = planes.xor(ab[i], ab_key);
            let rows = padded.as_flattened_mut()[2 * i * P::WIDE..].chunks_mut(P::WIDE);
            for (x, row) in planes.interleave_halves(cd, ab).into_iter().zip(rows) {
                planes.store(x, row);
            }
        }
        blocks.copy_from_slice(&padded[..blocks.len()]);
    }

    #[inline(always)]
    fn round_in_pairs<const N: usize>(
        &self,
        planes: P,
        ab: &[P::Vector; N],
        cd: &mut [P::Vector; N],
        [k0, k1]: [u32; 2],
    ) {
        const NEIGHBOURS: [u8; 16] = [4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11];
        let keys = planes.splat_words([k0, k1, k0, k1]);
        let odd = planes.splat_words([0, u32::MAX, 0, u32::MAX]);
        let turn_b = planes.splat_words([0, 8, 0, 8]);
        let turn_d = planes.splat_words([0, 1, 0, 1]);
        let turn_c = planes.splat_words([31, 0, 31, 0]);
        for i in 0..N {
            let xy = self.g_in_words(planes, planes.rotate_each_word(ab[i], turn_b));
            let sum = planes.add_words(xy, planes.shuffle(xy, &NEIGHBOURS));
            let besides = planes.add_words(keys, planes.and(xy, odd));
            let f = planes.add_words(sum, besides);
            let x = planes.xor(planes.rotate_each_word(cd[i], turn_d), f);
            cd[i] = planes.rotate_each_word(x, turn_c);
        }
    }

    /// g of every word.
    #[inline(always)]
    fn g_in_words(&self, planes: P, x: P::Vector) -> P::Vector {
        let mut y = planes.splat(0);
        for (column, table) in self.tables.iter().enumerate() {
            let place = planes.splat(0xff << (8 * column));
            y = planes.or(y, planes.and(place, planes.look_up(table, x)));
        }
        // The MDS matrix by rows, in as few shuffles as its factors allow.
        let times_5b = planes.linear(&self.mds.times_5b, y);
        let times_ef = planes.linear(&self.mds.times_ef, y);
        let terms = planes.xor3(
            planes.shuffle(y, &in_words([0, 3, 2, 1])),
            planes.shuffle(times_5b, &in_words([2, 0, 1, 3])),
            planes.shuffle(times_5b, &in_words([3, NOTHING, NOTHING, NOTHING])),
        );
        planes.xor3(
            terms,
            planes.shuffle(times_ef, &in_words([1, 1, 0, 0])),
            planes.shuffle(times_ef, &in_words([NOTHING, 2, 3, 2])),
        )
    }

    /// The two g of section 4.1.
    #[inline(always)]
    fn f(&self, planes: P, a: Word<P>, b: Word<P>) -> [Word<P>; 2] {
        let x = self.g(planes, planes.to_planes(a));
        let [b0, b1, b2, b3] = planes.to_planes(b);
        [x, self.g(planes, [b3, b0, b1, b2])]
    }

    #[inline(always)]
    fn g(&self, planes: P, [a, b, c, d]: Word<P>) -> Word<P> {
        let [t0, t1, t2, t3] = &*self.tables;
        let a = planes.look_up(t0, a);
        let b = planes.look_up(t1, b);
        let c = planes.look_up(t2, c);
        let d = planes.look_up(t3, d);
        planes.to_words(self.mds.multiply(planes, [a, b, c, d]))
    }
}

/// The same shuffle in every word.
const fn in_words(from: [u8; 4]) -> [u8; 16] {
    let mut bytes = [NOTHING; 16];
    let mut i = 0;
    while i < 16 {
        if from[i % 4] != NOTHING {
            bytes[i] = from[i % 4] + (i - i % 4) as u8;
        }
        i += 1;
    }
    bytes
}

/// The words of a state. f gives turned words, so the half that they are added to must be turned as
/// well. The two halves take turns as the input of f, so the second half is turned all the time.
#[inline(always)]
fn state<P: Planes>(planes: P, rows: [P::Vector; 16]) -> [Word<P>; 4] {
    let [a, b, ..] = planes.rows_to_words(rows);
    let [.., c, d] = planes.rows_to_turned_words(rows);
    [a, b, c, d]
}

#[inline(always)]
fn add_keys<P: Planes>(planes: P, mut state: [Word<P>; 4], keys: &[u32; 4]) -> [Word<P>; 4] {
    for i in 0..4 {
        let key = planes.splat(keys[i]);
        for x in &mut state[i] {
            *x = planes.xor(*x, key);
        }
    }
    state
}

#[cfg(test)]
mod tests {
    use super::{Planes, keyed};
    use crate::block::tests;
    use crate::reference;

    fn check(planes: impl Planes) {
        let keyed = |key: &[u8]| keyed(key, planes);
        tests::known_answers::<reference::Twofish, _, 16>("twofish", keyed);
        tests::equals_reference::<reference::Twofish, _, 16>(&[16, 24, 32], keyed);
        tests::agrees_with::<twofish::Twofish, _, 16>(&[16, 24, 32], keyed);
    }

    tests::in_planes!(check);
}
