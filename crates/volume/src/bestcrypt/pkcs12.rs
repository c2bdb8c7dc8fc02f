//! The key derivation of PKCS #12, as BestCrypt has it: with blocks of 64 bytes
//! whatever the hash.
//!
//! Source: RFC 7292, appendix B.2, where the block is the hash's own, 128 bytes
//! for SHA-512: the keyslots that are known say 64.

use crate::Hash;
use cipher::Key;
use std::convert::Infallible;
use zeroize::Zeroizing;

const BLOCK: usize = 64;

/// The RFC's number for a key; an IV and a MAC key have others.
const FOR_A_KEY: u8 = 1;

/// A key of `length` bytes; `passphrase` is what the user typed.
pub(super) fn derive(
    hash: Hash,
    passphrase: &str,
    salt: &[u8],
    iterations: u32,
    length: usize,
) -> Key {
    let mut password = Zeroizing::new(Vec::with_capacity(2 * passphrase.len() + 2));
    for unit in passphrase.encode_utf16().chain([0]) {
        password.extend_from_slice(&unit.to_be_bytes());
    }
    let mut input = Zeroizing::new(Vec::new());
    for part in [salt, &password] {
        let whole = part.len().next_multiple_of(BLOCK);
        input.extend(part.iter().cycle().take(whole));
    }
    let filled = Key::filled(length, |key| {
        for piece in key.chunks_mut(hash.digest_bytes()) {
            let mut digest = hash.digest(&[&[FOR_A_KEY; BLOCK], &input]);
            for _ in 1..iterations {
                digest = hash.digest(&[&digest]);
            }
            piece.copy_from_slice(&digest[..piece.len()]);
            for block in input.chunks_mut(BLOCK) {
                add_one_and(block, &digest);
            }
        }
        Ok::<_, Infallible>(())
    });
    filled.expect("nothing fails")
}

/// Adds 1 and `digest`, again and again up to a block's length, to a block: a
/// big-endian number without its overflow.
fn add_one_and(block: &mut [u8], digest: &[u8]) {
    let mut carry = 1;
    for (at, byte) in block.iter_mut().enumerate().rev() {
        carry += u16::from(*byte) + u16::from(digest[at % digest.len()]);
        *byte = carry as u8;
        carry >>= 8;
    }
}
