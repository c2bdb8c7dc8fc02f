//! [`Mac`]: what authenticates the ciphertext of a cipher that does not.

use hmac::{Hmac, KeyInit};
use sha1::Sha1;
use sha2::{Sha256, Sha512};

/// The longest of all: HMAC with SHA-512.
pub(super) const MOST_BYTES: usize = 64;

/// HMAC under a key.
pub(super) enum Mac {
    Sha1(Hmac<Sha1>),
    Sha256(Hmac<Sha256>),
    Sha512(Hmac<Sha512>),
}

impl Mac {
    /// Length of the MAC that LUKS2 calls `kind`, if it is known: also that of
    /// its key, if the header says nothing else.
    pub(super) fn bytes_of(kind: &str) -> Option<usize> {
        match kind {
            "hmac(sha1)" => Some(20),
            "hmac(sha256)" => Some(32),
            "hmac(sha512)" => Some(64),
            _ => None,
        }
    }

    /// The one of so many bytes, under `key`.
    pub(super) fn new(bytes: usize, key: &[u8]) -> Self {
        const ANY: &str = "HMAC takes keys of any length";
        match bytes {
            20 => Self::Sha1(Hmac::new_from_slice(key).expect(ANY)),
            32 => Self::Sha256(Hmac::new_from_slice(key).expect(ANY)),
            _ => Self::Sha512(Hmac::new_from_slice(key).expect(ANY)),
        }
    }

    /// Length of what it gives.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Sha1(_) => 20,
            Self::Sha256(_) => 32,
            Self::Sha512(_) => 64,
        }
    }

    /// The MAC of `parts`, one after the other.
    pub(super) fn sum(&self, parts: &[&[u8]], out: &mut [u8]) {
        match self {
            Self::Sha1(keyed) => sum_of(keyed, parts, out),
            Self::Sha256(keyed) => sum_of(keyed, parts, out),
            Self::Sha512(keyed) => sum_of(keyed, parts, out),
        }
    }
}

fn sum_of<M: hmac::Mac + Clone>(keyed: &M, parts: &[&[u8]], out: &mut [u8]) {
    let mut mac = keyed.clone();
    for part in parts {
        mac.update(part);
    }
    out.copy_from_slice(&mac.finalize().into_bytes());
}
