//! CAST-128 as in RFC 2144 and CAST-256 as in RFC 2612, from their equations.

use super::ReferenceCipher;
use crate::block::cast::sbox;

/// CAST-128, also called CAST5, with a key of 40 to 128 bits.
pub struct Cast5 {
    /// Km and Kr of each round.
    rounds: Vec<(u32, u32)>,
}

/// RFC 2144, section 2.4, as far as K16: on the left the word or key that is
/// set; on the right the word it starts from, the bytes that go through S5, S6,
/// S7 and S8, and which S-box the last byte goes through.
const EQUATIONS: [(&str, &str, &str, usize, &str); 32] = [
    ("z0", "x0", "xD xF xC xE", 7, "x8"),
    ("z4", "x8", "z0 z2 z1 z3", 8, "xA"),
    ("z8", "xC", "z7 z6 z5 z4", 5, "x9"),
    ("zC", "x4", "zA z9 zB z8", 6, "xB"),
    ("K1", "", "z8 z9 z7 z6", 5, "z2"),
    ("K2", "", "zA zB z5 z4", 6, "z6"),
    ("K3", "", "zC zD z3 z2", 7, "z9"),
    ("K4", "", "zE zF z1 z0", 8, "zC"),
    ("x0", "z8", "z5 z7 z4 z6", 7, "z0"),
    ("x4", "z0", "x0 x2 x1 x3", 8, "z2"),
    ("x8", "z4", "x7 x6 x5 x4", 5, "z1"),
    ("xC", "zC", "xA x9 xB x8", 6, "z3"),
    ("K5", "", "x3 x2 xC xD", 5, "x8"),
    ("K6", "", "x1 x0 xE xF", 6, "xD"),
    ("K7", "", "x7 x6 x8 x9", 7, "x3"),
    ("K8", "", "x5 x4 xA xB", 8, "x7"),
    ("z0", "x0", "xD xF xC xE", 7, "x8"),
    ("z4", "x8", "z0 z2 z1 z3", 8, "xA"),
    ("z8", "xC", "z7 z6 z5 z4", 5, "x9"),
    ("zC", "x4", "zA z9 zB z8", 6, "xB"),
    ("K9", "", "z3 z2 zC zD", 5, "z9"),
    ("K10", "", "z1 z0 zE zF", 6, "zC"),
    ("K11", "", "z7 z6 z8 z9", 7, "z2"),
    ("K12", "", "z5 z4 zA zB", 8, "z6"),
    ("x0", "z8", "z5 z7 z4 z6", 7, "z0"),
    ("x4", "z0", "x0 x2 x1 x3", 8, "z2"),
    ("x8", "z4", "x7 x6 x5 x4", 5, "z1"),
    ("xC", "zC", "xA x9 xB x8", 6, "z3"),
    ("K13", "", "x8 x9 x7 x6", 5, "x3"),
    ("K14", "", "xA xB x5 x4", 6, "x7"),
    ("K15", "", "xC xD x3 x2", 7, "x8"),
    ("K16", "", "xE xF x1 x0", 8, "xD"),
];

impl ReferenceCipher<8> for Cast5 {
    /// RFC 2144, sections 2.4 and 2.5.
    fn new(key: &[u8]) -> Self {
        // x, then z.
        let mut bytes = [[0; 16]; 2];
        bytes[0][..key.len()].copy_from_slice(key);
        let mut k = Vec::new();
        for (target, start, looked_up, sbox, last) in EQUATIONS.iter().chain(&EQUATIONS) {
            let mut word = match *start {
                "" => 0,
                start => {
                    let (array, at) = place(start);
                    u32::from_be_bytes(std::array::from_fn(|i| bytes[array][at + i]))
                }
            };
            let looked_up = looked_up.split(' ').zip(5..).chain([(*last, *sbox)]);
            for (name, sbox) in looked_up {
                let (array, at) = place(name);
                word ^= sbox::SCHEDULE[sbox - 5][usize::from(bytes[array][at])];
            }
            if target.starts_with('K') {
                k.push(word);
            } else {
                let (array, at) = place(target);
                bytes[array][at..at + 4].copy_from_slice(&word.to_be_bytes());
            }
        }
        let rounds = if key.len() <= 10 { 12 } else { 16 };
        Self {
            rounds: (0..rounds).map(|i| (k[i], k[16 + i] & 31)).collect(),
        }
    }

    /// RFC 2144, section 2.
    fn encrypt(&self, plain: [u8; 8]) -> [u8; 8] {
        let [mut l, mut r] = words(plain);
        for (i, &(mask, rotation)) in self.rounds.iter().enumerate() {
            (l, r) = (r, l ^ f(1 + i % 3, r, mask, rotation));
        }
        bytes([r, l])
    }

    fn decrypt(&self, cipher: [u8; 8]) -> [u8; 8] {
        let [mut l, mut r] = words(cipher);
        for (i, &(mask, rotation)) in self.rounds.iter().enumerate().rev() {
            (l, r) = (r, l ^ f(1 + i % 3, r, mask, rotation));
        }
        bytes([r, l])
    }
}

/// CAST-256, also called CAST6, with a key of 128 to 256 bits.
pub struct Cast6 {
    /// Kr and Km of each quad-round.
    keys: Vec<([u32; 4], [u32; 4])>,
}

impl ReferenceCipher<16> for Cast6 {
    /// RFC 2612, section 2.4.
    fn new(key: &[u8]) -> Self {
        let mut padded = [0; 32];
        padded[..key.len()].copy_from_slice(key);
        let mut kappa: [u32; 8] = words(padded);
        let constant = |n: u32| {
            let mask = n.wrapping_mul(0x6ed9_eba1).wrapping_add(0x5a82_7999);
            (mask, (19 + 17 * n) % 32)
        };
        let mut keys = Vec::new();
        for i in 0..12 {
            for octave in [2 * i, 2 * i + 1] {
                // Each word in turn is changed by the one after it, G first.
                for (n, kind) in [1, 2, 3, 1, 2, 3, 1, 2].into_iter().enumerate() {
                    let (mask, rotation) = constant(8 * octave + n as u32);
                    let target = (14 - n) % 8;
                    let source = kappa[(target + 1) % 8];
                    kappa[target] ^= f(kind, source, mask, rotation);
                }
            }
            let [a, b, c, d, e, f, g, h] = kappa;
            keys.push(([a, c, e, g].map(|kr| kr & 31), [h, f, d, b]));
        }
        Self { keys }
    }

    /// RFC 2612, section 2.
    fn encrypt(&self, plain: [u8; 16]) -> [u8; 16] {
        let mut beta = words(plain);
        for (i, keys) in self.keys.iter().enumerate() {
            beta = if i < 6 {
                q(beta, keys)
            } else {
                q_bar(beta, keys)
            };
        }
        bytes(beta)
    }

    fn decrypt(&self, cipher: [u8; 16]) -> [u8; 16] {
        let mut beta = words(cipher);
        for (i, keys) in self.keys.iter().rev().enumerate() {
            beta = if i < 6 {
                q(beta, keys)
            } else {
                q_bar(beta, keys)
            };
        }
        bytes(beta)
    }
}

/// RFC 2612, section 2.
fn q([mut a, mut b, mut c, mut d]: [u32; 4], (kr, km): &([u32; 4], [u32; 4])) -> [u32; 4] {
    c ^= f(1, d, km[0], kr[0]);
    b ^= f(2, c, km[1], kr[1]);
    a ^= f(3, b, km[2], kr[2]);
    d ^= f(1, a, km[3], kr[3]);
    [a, b, c, d]
}

/// RFC 2612, section 2.
fn q_bar([mut a, mut b, mut c, mut d]: [u32; 4], (kr, km): &([u32; 4], [u32; 4])) -> [u32; 4] {
    d ^= f(1, a, km[3], kr[3]);
    a ^= f(3, b, km[2], kr[2]);
    b ^= f(2, c, km[1], kr[1]);
    c ^= f(1, d, km[0], kr[0]);
    [a, b, c, d]
}

/// RFC 2144, section 2.2: f of type `kind`.
fn f(kind: usize, d: u32, mask: u32, rotation: u32) -> u32 {
    let lookup = |i: u32| -> [u32; 4] {
        let bytes = i.rotate_left(rotation).to_be_bytes();
        std::array::from_fn(|n| sbox::ROUND[n][usize::from(bytes[n])])
    };
    match kind {
        1 => {
            let [a, b, c, d] = lookup(mask.wrapping_add(d));
            (a ^ b).wrapping_sub(c).wrapping_add(d)
        }
        2 => {
            let [a, b, c, d] = lookup(mask ^ d);
            a.wrapping_sub(b).wrapping_add(c) ^ d
        }
        _ => {
            let [a, b, c, d] = lookup(mask.wrapping_sub(d));
            (a.wrapping_add(b) ^ c).wrapping_sub(d)
        }
    }
}

/// Array and index of a byte that the equations name.
fn place(name: &str) -> (usize, usize) {
    let (array, index) = name.split_at(1);
    let index = usize::from_str_radix(index, 16).expect("a hexadecimal digit");
    (usize::from(array == "z"), index)
}

fn words<const BYTES: usize, const WORDS: usize>(bytes: [u8; BYTES]) -> [u32; WORDS] {
    std::array::from_fn(|i| u32::from_be_bytes(std::array::from_fn(|j| bytes[4 * i + j])))
}

fn bytes<const BYTES: usize, const WORDS: usize>(words: [u32; WORDS]) -> [u8; BYTES] {
    std::array::from_fn(|i| words[i / 4].to_be_bytes()[i % 4])
}
