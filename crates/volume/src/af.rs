//! The anti-forensic splitter: a key spread over so many stripes that the loss
//! of one of them is the loss of the key.
//!
//! ```text
//! d₀ = 0      dᵢ₊₁ = H(dᵢ ⊕ sᵢ)      key = dₙ₋₁ ⊕ sₙ₋₁
//! ```
//!
//! H is a diffuser as long as the key. It hashes the key in pieces of a digest's length, each after
//! its number. The last piece keeps only its own length.
//!
//! Source: LUKS1 On-Disk Format Specification 1.2.3, section 2.4.

use crate::Hash;
use cipher::{CipherError, Key};
use zeroize::Zeroizing;

/// Merges the key of `material`, which holds stripes of `key_bytes` each.
///
/// # Panics
/// If `material` is empty or not made of whole stripes.
pub(crate) fn merge(hash: Hash, material: &[u8], key_bytes: usize) -> Key {
    let (folded, last) = fold(hash, material, key_bytes);
    Key::filled(key_bytes, |key| {
        xor(key, &folded);
        xor(key, last);
        Ok::<_, std::convert::Infallible>(())
    })
    .expect("nothing fails")
}

/// Splits `key` into `stripes` stripes, one at least: all but the last are random.
///
/// # Errors
/// [`CipherError::Random`] if the system has no random numbers.
pub(crate) fn split(hash: Hash, key: &Key, stripes: usize) -> Result<Key, CipherError> {
    let random = Key::random((stripes - 1) * key.len())?;
    Key::filled(stripes * key.len(), |material| {
        material[..random.len()].copy_from_slice(random.as_bytes());
        // The last stripe is zero still.
        let (folded, _) = fold(hash, material, key.len());
        let last = &mut material[random.len()..];
        xor(last, &folded);
        xor(last, key.as_bytes());
        Ok(())
    })
}

/// dₙ₋₁, and the last stripe.
fn fold(hash: Hash, material: &[u8], key_bytes: usize) -> (Zeroizing<Vec<u8>>, &[u8]) {
    let (stripes, last) = material.split_at(material.len() - key_bytes);
    assert!(stripes.len().is_multiple_of(key_bytes));
    let mut folded = Zeroizing::new(vec![0; key_bytes]);
    for stripe in stripes.chunks_exact(key_bytes) {
        xor(&mut folded, stripe);
        diffuse(hash, &mut folded);
    }
    (folded, last)
}

fn diffuse(hash: Hash, bytes: &mut [u8]) {
    let mut digest = Zeroizing::new(vec![0; hash.digest_bytes()]);
    for (number, piece) in bytes.chunks_mut(hash.digest_bytes()).enumerate() {
        let number = (number as u32).to_be_bytes();
        hash.digest_into(&[&number, piece], &mut digest);
        piece.copy_from_slice(&digest[..piece.len()]);
    }
}

fn xor(into: &mut [u8], other: &[u8]) {
    for (byte, other) in into.iter_mut().zip(other) {
        *byte ^= other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_split_merges() {
        for hash in Hash::ALL {
            for key_bytes in [1, 16, 20, 24, 32, 48, 64, 65, 512] {
                for stripes in [1, 2, 7, 100] {
                    let key = Key::random(key_bytes).unwrap();
                    let material = split(hash, &key, stripes).unwrap();
                    assert_eq!(material.len(), stripes * key_bytes);
                    let merged = merge(hash, material.as_bytes(), key_bytes);
                    assert_eq!(merged.as_bytes(), key.as_bytes());
                }
            }
        }
    }

    #[test]
    fn every_stripe_counts() {
        let key = Key::random(48).unwrap();
        let material = split(Hash::Sha256, &key, 9).unwrap();
        for stripe in 0..9 {
            let mut spoilt = material.as_bytes().to_vec();
            spoilt[stripe * 48 + 3] ^= 1;
            let merged = merge(Hash::Sha256, &spoilt, 48);
            assert_ne!(merged.as_bytes(), key.as_bytes());
        }
    }
}
