//! Kuznyechik as in GOST R 34.12-2015 and RFC 7801: S, R, L and F, one after
//! the other.

use super::{ReferenceCipher, gf256_mul};
use crate::block::kuznyechik::pi::PI;

/// A vector of 128 bits, a₁₅ first.
type Vector = [u8; 16];

/// Kuznyechik with a key of 256 bits.
pub struct Kuznyechik {
    round_keys: Vec<Vector>,
}

impl ReferenceCipher for Kuznyechik {
    /// RFC 7801, section 4.
    fn new(key: &[u8]) -> Self {
        let mut a1: Vector = std::array::from_fn(|i| key[i]);
        let mut a0: Vector = std::array::from_fn(|i| key[16 + i]);
        let mut round_keys = vec![a1, a0];
        for i in 1..=32 {
            let mut constant = [0; 16];
            constant[15] = i;
            (a1, a0) = (x(a0, l(s(x(a1, l(constant))))), a1);
            if i % 8 == 0 {
                round_keys.extend([a1, a0]);
            }
        }
        Self { round_keys }
    }

    /// RFC 7801, section 4.
    fn encrypt(&self, plain: [u8; 16]) -> [u8; 16] {
        let mut a = plain;
        for key in &self.round_keys[..9] {
            a = l(s(x(a, *key)));
        }
        x(a, self.round_keys[9])
    }

    /// RFC 7801, section 4.
    fn decrypt(&self, cipher: [u8; 16]) -> [u8; 16] {
        let mut a = x(cipher, self.round_keys[9]);
        for key in self.round_keys[..9].iter().rev() {
            a = x(s_inverse(l_inverse(a)), *key);
        }
        a
    }
}

fn x(a: Vector, k: Vector) -> Vector {
    std::array::from_fn(|i| a[i] ^ k[i])
}

fn s(a: Vector) -> Vector {
    a.map(|byte| PI[usize::from(byte)])
}

fn s_inverse(a: Vector) -> Vector {
    a.map(|byte| {
        let place = PI.iter().position(|&image| image == byte);
        place.expect("π′ is a permutation") as u8
    })
}

/// ℓ of RFC 7801, section 4.
fn linear(a: Vector) -> u8 {
    const FACTORS: Vector = [
        148, 32, 133, 16, 194, 192, 1, 251, 1, 192, 194, 16, 133, 32, 148, 1,
    ];
    let products = a.iter().zip(FACTORS);
    products.fold(0, |sum, (&a, factor)| sum ^ gf256_mul(a, factor, 0x1c3))
}

fn r(a: Vector) -> Vector {
    std::array::from_fn(|i| if i == 0 { linear(a) } else { a[i - 1] })
}

fn r_inverse(a: Vector) -> Vector {
    let mut rotated = a;
    rotated.rotate_left(1);
    let last = linear(rotated);
    std::array::from_fn(|i| if i == 15 { last } else { a[i + 1] })
}

fn l(a: Vector) -> Vector {
    (0..16).fold(a, |a, _| r(a))
}

fn l_inverse(a: Vector) -> Vector {
    (0..16).fold(a, |a, _| r_inverse(a))
}
