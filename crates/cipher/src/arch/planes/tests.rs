//! Every operation of every register width against code for one byte or word.

#[cfg(target_arch = "aarch64")]
use crate::arch::Neon;
#[cfg(target_arch = "x86_64")]
use crate::arch::{Avx2Planes, Avx512Bytes, ByAes, ByGfni, ByNibbles};
use crate::block::planes::linear::{AES_FIELD, Linear, apply, multiply, to_aes_field};
use crate::block::planes::words::{WordTable, Words};
use crate::block::planes::{LINE, NOTHING, Planes, four};
use crate::mode::times_x;
use crate::work::Work;

#[cfg(target_arch = "x86_64")]
#[test]
fn avx2() {
    check(Avx2Planes::<ByNibbles>::detect(), "AVX2");
    check(Avx2Planes::<ByAes>::detect(), "AVX2 with AES-NI");
    check(Avx2Planes::<ByGfni>::detect(), "AVX2 with GFNI");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn avx512() {
    check(Avx512Bytes::detect(), "AVX-512 VBMI with GFNI");
}

mod words {
    use super::check_words;

    crate::block::tests::in_words!(check_words);
}

fn check_words<P: Words>(planes: P) {
    planes.enter(EverythingOfWords);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn sums_of_bytes_avx512() {
    match Avx512Bytes::detect() {
        Some(proof) => {
            proof.enter(SumsOfBytes);
            proof.by_rows().enter(SumsOfBytes);
        }
        None => println!("skipped: this CPU has no AVX-512 VBMI with GFNI"),
    }
}

#[cfg(target_arch = "aarch64")]
#[test]
fn neon() {
    check(Neon::detect(), "NEON");
}

fn check<P: Planes>(proof: Option<P>, name: &str) {
    match proof {
        Some(proof) => proof.enter(Everything),
        None => println!("skipped: this CPU has no {name}"),
    }
}

struct Everything;

impl<P: Planes> Work<P> for Everything {
    fn run(self, planes: P) {
        memory(planes);
        bytes(planes);
        maps(planes);
        words(planes);
        transposes(planes);
        tweaks(planes);
        shuffles(planes);
        lines(planes);
    }
}

struct EverythingOfWords;

impl<P: Words> Work<P> for EverythingOfWords {
    fn run(self, planes: P) {
        word_tables(planes);
        differences_of_words(planes);
    }
}

#[cfg(target_arch = "x86_64")]
struct SumsOfBytes;

#[cfg(target_arch = "x86_64")]
impl<const BY_ROWS: bool> Work<Avx512Bytes<BY_ROWS>> for SumsOfBytes {
    fn run(self, planes: Avx512Bytes<BY_ROWS>) {
        sums_of_bytes(planes);
    }
}

/// Different for every seed, with every byte in some place.
fn noise(seed: u32) -> [u8; 256] {
    let factor = seed.wrapping_mul(0x9e37_79b1) >> 24 | 1;
    std::array::from_fn(|i| ((i as u32 * factor) ^ (seed >> 3)) as u8)
}

/// The words of whole registers.
fn split(x: &[u8]) -> Vec<u32> {
    x.as_chunks()
        .0
        .iter()
        .map(|&x| u32::from_le_bytes(x))
        .collect()
}

fn stored<P: Planes>(planes: P, x: P::Vector) -> Vec<u8> {
    let mut bytes = vec![0; P::WIDE];
    planes.store(x, &mut bytes);
    bytes
}

/// Checks `found` of every byte against `expected`, 256 of them in registers.
fn each<P: Planes>(
    planes: P,
    what: &str,
    found: impl Fn(P::Vector) -> P::Vector,
    expected: impl Fn(u8) -> u8,
) {
    for x in noise(1).chunks(P::WIDE) {
        let y = stored(planes, found(planes.load(x)));
        let expected: Vec<u8> = x.iter().map(|&x| expected(x)).collect();
        assert_eq!(y, expected, "{what} of {x:?}");
    }
}

/// The same with two arguments.
fn each_pair<P: Planes>(
    planes: P,
    what: &str,
    found: impl Fn(P::Vector, P::Vector) -> P::Vector,
    expected: impl Fn(u8, u8) -> u8,
) {
    for y in 0..=255 {
        let other = planes.splat(four(y));
        each(planes, what, |x| found(x, other), |x| expected(x, y));
    }
}

fn memory<P: Planes>(planes: P) {
    let mut bytes = noise(2);
    let x = planes.load(&bytes[3..]);
    planes.store(x, &mut bytes[7..]);
    let mut expected = noise(2);
    expected.copy_within(3..3 + P::WIDE, 7);
    assert_eq!(bytes, expected);
    let splat = stored(planes, planes.splat(0x0403_0201));
    assert!(splat.chunks(4).all(|word| word == [1, 2, 3, 4]));
    assert_eq!(stored(planes, planes.splat(four(9))), vec![9; P::WIDE]);
    let splat = stored(planes, planes.splat_words([1, 2, 3, 4 << 24]));
    let words = [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 4];
    assert!(splat.chunks(16).all(|found| found == words));
}

fn bytes<P: Planes>(planes: P) {
    each_pair(planes, "xor", |x, y| planes.xor(x, y), |x, y| x ^ y);
    each_pair(planes, "and", |x, y| planes.and(x, y), |x, y| x & y);
    each_pair(
        planes,
        "and_not",
        |x, y| planes.and_not(x, y),
        |x, y| !x & y,
    );
    each_pair(planes, "or", |x, y| planes.or(x, y), |x, y| x | y);
    each_pair(
        planes,
        "xor3",
        |x, y| planes.xor3(x, y, planes.upper_nibble(y)),
        |x, y| x ^ y ^ y >> 4,
    );
    each(
        planes,
        "upper_nibble",
        |x| planes.upper_nibble(x),
        |x| x >> 4,
    );
    each(
        planes,
        "lower_nibble",
        |x| planes.lower_nibble(x),
        |x| x & 15,
    );
}

fn maps<P: Planes>(planes: P) {
    for seed in 3..20 {
        let noise = noise(seed);
        let table = P::table(&noise);
        each(
            planes,
            "look_up",
            |x| planes.look_up(&table, x),
            |x| noise[usize::from(x)],
        );
        let nibbles: [u8; 16] = noise[50..66].try_into().unwrap();
        each(
            planes,
            "look_up_nibble",
            |x| planes.look_up_nibble(&nibbles, planes.lower_nibble(x)),
            |x| nibbles[usize::from(x & 15)],
        );
        let linear: Linear = noise[90..98].try_into().unwrap();
        let map = P::map(&linear);
        each(
            planes,
            "linear",
            |x| planes.linear(&map, x),
            |x| apply(&linear, x),
        );
        let map = P::inverse_map(&linear);
        let from_aes = P::map(&P::FROM_AES_FIELD);
        let expected = |x| {
            let inverse = (0..=255).find(|&y| multiply(x, y, AES_FIELD) == 1);
            apply(&linear, inverse.unwrap_or(0))
        };
        each(
            planes,
            "invert",
            |x| planes.invert(&map, planes.linear(&from_aes, x)),
            expected,
        );
        each(
            planes,
            "invert_moving",
            |x| planes.in_order(planes.invert_moving(&map, planes.linear(&from_aes, x))),
            expected,
        );
        let map_back = P::inverse_map_back(&linear);
        let from_aes_back = P::map(&P::FROM_AES_FIELD_BACK);
        let added = planes.splat(four(P::BACK_ADDS));
        each(
            planes,
            "invert_back",
            |x| {
                let x = planes.xor(planes.linear(&from_aes_back, x), added);
                planes.invert_back(&map_back, planes.moved(x))
            },
            expected,
        );
    }
    each(
        planes,
        "four moves",
        |x| planes.moved(planes.moved(planes.moved(planes.moved(x)))),
        |x| x,
    );
    // The S-box of AES.
    let map = P::inverse_map(&[0x1f, 0x3e, 0x7c, 0xf8, 0xf1, 0xe3, 0xc7, 0x8f]);
    let from_aes = P::map(&P::FROM_AES_FIELD);
    let x = planes.linear(&from_aes, planes.splat(0x1000_53c9));
    let y = planes.xor(planes.invert(&map, x), planes.splat(four(0x63)));
    assert_eq!(stored(planes, y)[..4], [0xdd, 0xed, 0x63, 0xca]);
    assert_eq!(apply(&to_aes_field(AES_FIELD), 0x53), 0x53);
}

fn words<P: Planes>(planes: P) {
    for seed in 20..40 {
        let (x, y) = (noise(seed), noise(seed + 100));
        let (x, y) = (&x[..P::WIDE], &y[..P::WIDE]);
        let (a, b) = (planes.load(x), planes.load(y));
        let (x, y) = (split(x), split(y));
        let check = |what: &str, found: P::Vector, expected: &dyn Fn(u32, u32) -> u32| {
            let expected: Vec<u32> = x.iter().zip(&y).map(|(&x, &y)| expected(x, y)).collect();
            assert_eq!(split(&stored(planes, found)), expected, "{what}");
        };
        check("add_words", planes.add_words(a, b), &u32::wrapping_add);
        check(
            "rotate_each_word",
            planes.rotate_each_word(a, planes.and(b, planes.splat(31))),
            &|x, y| x.rotate_left(y & 31),
        );
        for by in 0..32 {
            let rotated = planes.rotate_words(a, by);
            check("rotate_words", rotated, &|x, _| x.rotate_left(by));
        }
    }
}

/// `N` registers through `change`, where `to` says to which register and
/// byte of 16 another register's byte of 16 has to go.
fn moves<P: Planes, const N: usize>(
    planes: P,
    what: &str,
    change: impl Fn([P::Vector; N]) -> [P::Vector; N],
    to: impl Fn(usize, usize) -> (usize, usize),
) {
    let before: [Vec<u8>; N] = std::array::from_fn(|j| noise(40 + j as u32)[..P::WIDE].to_vec());
    let after = change(std::array::from_fn(|j| planes.load(&before[j])));
    let after = after.map(|x| stored(planes, x));
    for (j, before) in before.iter().enumerate() {
        for (at, &byte) in before.iter().enumerate() {
            let (to_register, to_byte) = to(j, at % 16);
            let found = after[to_register][at - at % 16 + to_byte];
            assert_eq!(found, byte, "{what}: byte {at} of register {j}");
        }
    }
}

fn transposes<P: Planes>(planes: P) {
    moves(planes, "transpose", |x| planes.transpose(x), |j, i| (i, j));
    let to_plane = |j, at| (at % 8, 2 * j + at / 8);
    moves(
        planes,
        "halves_to_planes",
        |x| planes.halves_to_planes(x),
        to_plane,
    );
    let to_word = |k, at| (at / 4, 4 * (at % 4) + k);
    moves(planes, "to_words", |x| planes.to_words(x), to_word);
    let to_half = |k, at| (at / 2, 8 * (at % 2) + k);
    moves(
        planes,
        "planes_to_halves",
        |x| planes.planes_to_halves(x),
        to_half,
    );
    let to_plane = |i, at| match P::TURNS {
        true => (at % 4, at - at % 4 + i),
        false => (at % 4, 4 * i + at / 4),
    };
    moves(planes, "to_planes", |x| planes.to_planes(x), to_plane);
}

fn tweaks<P: Planes>(planes: P) {
    for start in [
        1,
        1 << 127,
        u128::MAX,
        0x0123_4567_89ab_cdef << 64 | 0xfedc_ba98,
    ] {
        let mut expected = start;
        let mut tweaks = planes.first_tweaks(&start.to_le_bytes());
        for _ in 0..5 {
            for tweak in tweaks {
                for found in stored(planes, tweak).as_chunks::<16>().0 {
                    assert_eq!(u128::from_le_bytes(*found), expected, "{start:#x}");
                    expected = times_x(expected);
                }
            }
            tweaks = planes.next_tweaks(tweaks);
        }
    }
}

fn shuffles<P: Planes>(planes: P) {
    let x = &noise(61)[..P::WIDE];
    let from = [
        15, 3, NOTHING, 0, 9, 9, NOTHING, 1, 2, 4, 8, 7, 6, 5, 14, 13,
    ];
    let found = stored(planes, planes.shuffle(planes.load(x), &from));
    for (found, x) in found.chunks(16).zip(x.chunks(16)) {
        let expected = from.map(|i| if i == NOTHING { 0 } else { x[usize::from(i)] });
        assert_eq!(found, expected);
    }
    let [a, b] = planes.interleave_halves(planes.load(x), planes.splat(four(5)));
    for ((a, b), x) in stored(planes, a)
        .chunks(16)
        .zip(stored(planes, b).chunks(16))
        .zip(x.chunks(16))
    {
        assert_eq!(
            (a, b),
            (&*[&x[..8], &[5; 8]].concat(), &*[&x[8..], &[5; 8]].concat())
        );
    }
}

fn lines<P: Planes>(planes: P) {
    let lanes = P::WIDE / 16;
    let data: Vec<u8> = (0..4).flat_map(|seed| noise(70 + seed)).collect();
    let starts = [700, 3, 900, 66];
    let x = planes.load_lines(&data, &starts);
    for (j, x) in x.into_iter().enumerate() {
        for (block, start) in stored(planes, x).chunks(16).zip(starts) {
            assert_eq!(block, &data[start + 16 * j..][..16]);
        }
    }
    for count in 1..=lanes {
        let mut written = vec![0; data.len()];
        planes.store_lines(x, &mut written, &starts, count);
        let mut expected = vec![0; data.len()];
        for start in &starts[..count] {
            expected[*start..][..LINE].copy_from_slice(&data[*start..][..LINE]);
        }
        assert_eq!(written, expected, "{count} lines");
    }
}

fn word_tables<P: Words>(planes: P) {
    for seed in 80..90 {
        let (a, b) = (noise(seed), noise(seed + 100));
        let words: [u32; 256] =
            std::array::from_fn(|i| u32::from_le_bytes([a[i], b[i], a[255 - i], !b[i]]));
        let mut table = WordTable::new(&[0x0123_4567; 256], P::ROWS);
        for (i, &word) in words.iter().enumerate() {
            table.set(i, word, P::ROWS);
        }
        for plane in 0..4 {
            each(
                planes,
                "look_up_planes",
                |x| planes.look_up_planes(&table, [x])[0][plane],
                |x| words[usize::from(x)].to_le_bytes()[plane],
            );
        }
        for byte in 0..4 {
            for x in noise(1).chunks(P::WIDE) {
                let found = stored(planes, planes.look_up_words(&table, planes.load(x), byte));
                for (found, x) in found.chunks(4).zip(x.chunks(4)) {
                    assert_eq!(found, words[usize::from(x[byte])].to_le_bytes());
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn sums_of_bytes<const BY_ROWS: bool>(planes: Avx512Bytes<BY_ROWS>) {
    let carry = |sum: u16| (sum >> 8) as u8;
    let borrow = |x: u8, y: u8, more: u8| u8::from(u16::from(x) < u16::from(y) + u16::from(more));
    each_pair(
        planes,
        "add_bytes",
        |x, y| planes.add_bytes(x, y),
        u8::wrapping_add,
    );
    each_pair(
        planes,
        "subtract_bytes",
        |x, y| planes.subtract_bytes(x, y),
        u8::wrapping_sub,
    );
    for more in 0..=1 {
        let one = planes.splat(four(more));
        each_pair(
            planes,
            "carries",
            |x, y| planes.carries(x, y, planes.add_bytes(planes.add_bytes(x, y), one)),
            |x, y| carry(u16::from(x) + u16::from(y) + u16::from(more)),
        );
        each_pair(
            planes,
            "borrows",
            |x, y| {
                planes.borrows(
                    x,
                    y,
                    planes.subtract_bytes(planes.subtract_bytes(x, y), one),
                )
            },
            |x, y| borrow(x, y, more),
        );
    }
    each_pair(
        planes,
        "select",
        |x, y| planes.select(y, x, planes.upper_nibble(x)),
        |x, y| x & !y | x >> 4 & y,
    );
}

fn differences_of_words<P: Words>(planes: P) {
    for seed in 40..60 {
        let (x, y) = (noise(seed), noise(seed + 300));
        let found = planes.subtract_words(planes.load(&x), planes.load(&y));
        let expected: Vec<u32> = split(&x[..P::WIDE])
            .iter()
            .zip(split(&y[..P::WIDE]))
            .map(|(x, y)| x.wrapping_sub(y))
            .collect();
        assert_eq!(split(&stored(planes, found)), expected, "subtract_words");
    }
}
