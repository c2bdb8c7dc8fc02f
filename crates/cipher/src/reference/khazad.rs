//! Khazad as in Barreto and Rijmen, "The Khazad Legacy-Level Block Cipher"
//! (2000), the tweaked version of NESSIE: mappings of vectors of bytes, composed.

use super::{ReferenceCipher, gf256_mul};
use crate::block::involution::SBOX;

type Vector = [u8; 8];

/// Khazad with a key of 128 bits.
pub struct Khazad {
    round_keys: Vec<Vector>,
}

impl ReferenceCipher<8> for Khazad {
    /// "The key schedule": Kʳ = ρ[cʳ](Kʳ⁻¹) + Kʳ⁻².
    fn new(key: &[u8]) -> Self {
        let mut keys: Vec<Vector> = key.as_chunks().0.to_vec();
        for r in 0..9 {
            let constant = std::array::from_fn(|i| SBOX[8 * r + i]);
            keys.push(sigma(rho(keys[r + 1], constant), keys[r]));
        }
        Self {
            round_keys: keys.split_off(2),
        }
    }

    fn encrypt(&self, plain: [u8; 8]) -> [u8; 8] {
        crypt(plain, &self.round_keys)
    }

    /// "The inverse cipher".
    fn decrypt(&self, cipher: [u8; 8]) -> [u8; 8] {
        let mut keys: Vec<Vector> = self.round_keys.iter().rev().copied().collect();
        for key in &mut keys[1..8] {
            *key = theta(*key);
        }
        crypt(cipher, &keys)
    }
}

/// "The complete cipher".
fn crypt(block: Vector, keys: &[Vector]) -> Vector {
    let mut a = sigma(block, keys[0]);
    for key in &keys[1..8] {
        a = rho(a, *key);
    }
    sigma(gamma(a), keys[8])
}

/// A round.
fn rho(a: Vector, key: Vector) -> Vector {
    sigma(theta(gamma(a)), key)
}

/// "The nonlinear layer γ".
fn gamma(a: Vector) -> Vector {
    a.map(|x| SBOX[usize::from(x)])
}

/// "The linear diffusion layer θ".
fn theta(a: Vector) -> Vector {
    const H: Vector = [0x01, 0x03, 0x04, 0x05, 0x06, 0x08, 0x0b, 0x07];
    std::array::from_fn(|j| (0..8).fold(0, |sum, i| sum ^ gf256_mul(a[i], H[i ^ j], 0x11d)))
}

/// "The key addition σ[k]".
fn sigma(a: Vector, key: Vector) -> Vector {
    std::array::from_fn(|i| a[i] ^ key[i])
}
