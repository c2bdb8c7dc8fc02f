//! Anubis as in Barreto and Rijmen, "The ANUBIS Block Cipher" (2000), the
//! tweaked version of NESSIE: mappings of matrices of bytes, composed.

use super::{ReferenceCipher, gf256_mul};
use crate::block::involution::SBOX;

const MODULUS: u16 = 0x11d;

/// Rows of four bytes: four of a block, as many as it has words of a key.
type Matrix = Vec<[u8; 4]>;

/// Anubis with a key of 128 to 320 bits.
pub struct Anubis {
    round_keys: Vec<Matrix>,
}

impl ReferenceCipher for Anubis {
    /// "The key schedule": Kʳ = (φ ∘ ψᵣ ∘ … ∘ ψ₁)(key).
    fn new(key: &[u8]) -> Self {
        let mut kappa = matrix(key);
        let rounds = 8 + kappa.len();
        let mut round_keys = Vec::new();
        for r in 0..=rounds {
            if r > 0 {
                kappa = sigma(&theta(&pi(&gamma(&kappa))), &constant(r, kappa.len()));
            }
            round_keys.push(tau(&omega(&gamma(&kappa))));
        }
        Self { round_keys }
    }

    fn encrypt(&self, plain: [u8; 16]) -> [u8; 16] {
        crypt(plain, &self.round_keys)
    }

    /// "The inverse cipher".
    fn decrypt(&self, cipher: [u8; 16]) -> [u8; 16] {
        let mut keys: Vec<Matrix> = self.round_keys.iter().rev().cloned().collect();
        let inner = 1..keys.len() - 1;
        for key in &mut keys[inner] {
            *key = theta(key);
        }
        crypt(cipher, &keys)
    }
}

/// "The complete cipher".
fn crypt(block: [u8; 16], keys: &[Matrix]) -> [u8; 16] {
    let rounds = keys.len() - 1;
    let mut a = sigma(&matrix(&block), &keys[0]);
    for key in &keys[1..rounds] {
        a = sigma(&theta(&tau(&gamma(&a))), key);
    }
    a = sigma(&tau(&gamma(&a)), &keys[rounds]);
    std::array::from_fn(|i| a[i / 4][i % 4])
}

fn matrix(bytes: &[u8]) -> Matrix {
    bytes.as_chunks().0.to_vec()
}

/// "The nonlinear layer γ".
fn gamma(a: &Matrix) -> Matrix {
    a.iter()
        .map(|row| row.map(|x| SBOX[usize::from(x)]))
        .collect()
}

/// "The transposition τ".
fn tau(a: &Matrix) -> Matrix {
    (0..4).map(|i| [0, 1, 2, 3].map(|j| a[j][i])).collect()
}

/// "The linear diffusion layer θ".
fn theta(a: &Matrix) -> Matrix {
    const H: [u8; 4] = [0x01, 0x02, 0x04, 0x06];
    let row = |row: &[u8; 4]| {
        [0, 1, 2, 3_usize]
            .map(|j| (0..4).fold(0, |sum, k| sum ^ gf256_mul(row[k], H[j ^ k], MODULUS)))
    };
    a.iter().map(row).collect()
}

/// "The key addition σ[k]".
fn sigma(a: &Matrix, key: &Matrix) -> Matrix {
    let rows = a.iter().zip(key);
    rows.map(|(a, k)| [0, 1, 2, 3].map(|j| a[j] ^ k[j]))
        .collect()
}

/// "The cyclical permutation π": column j goes down by j places.
fn pi(a: &Matrix) -> Matrix {
    let n = a.len();
    (0..n)
        .map(|i| [0, 1, 2, 3].map(|j| a[(n + i - j) % n][j]))
        .collect()
}

/// "The key extraction ω": the product of a Vandermonde matrix and `a`.
fn omega(a: &Matrix) -> Matrix {
    let row = |base: u8| {
        [0, 1, 2, 3].map(|j| {
            let mut power = 1;
            a.iter().fold(0, |sum, row| {
                let term = gf256_mul(row[j], power, MODULUS);
                power = gf256_mul(power, base, MODULUS);
                sum ^ term
            })
        })
    };
    [0x01, 0x02, 0x06, 0x08].map(row).to_vec()
}

/// "The round constants cʳ", in the first row.
fn constant(r: usize, rows: usize) -> Matrix {
    let mut constant = vec![[0; 4]; rows];
    constant[0] = [0, 1, 2, 3].map(|j| SBOX[4 * (r - 1) + j]);
    constant
}
