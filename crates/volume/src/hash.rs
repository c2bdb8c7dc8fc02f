//! [`Hash`]: the hashes that headers name, for key derivation.

use blake2::Blake2s256;
use hmac::SimpleHmac;
use pbkdf2::{pbkdf2, pbkdf2_hmac};
use ripemd::Ripemd160;
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};
use std::fmt;
use streebog::Streebog512;
use whirlpool::Whirlpool;

/// A hash by cryptsetup's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hash {
    /// FIPS 180-4, 160 bits: `sha1`.
    Sha1,
    /// FIPS 180-4, 256 bits: `sha256`.
    Sha256,
    /// FIPS 180-4, 384 bits: `sha384`.
    Sha384,
    /// FIPS 180-4, 512 bits: `sha512`.
    Sha512,
    /// ISO/IEC 10118-3, 160 bits: `ripemd160`.
    Ripemd160,
    /// ISO/IEC 10118-3, 512 bits: `whirlpool`.
    Whirlpool,
    /// RFC 7693, 256 bits: `blake2s-256`.
    Blake2s256,
    /// GOST R 34.11-2012, RFC 6986, 512 bits: `stribog512`.
    Streebog512,
}

impl Hash {
    /// Every hash.
    pub const ALL: [Self; 8] = [
        Self::Sha1,
        Self::Sha256,
        Self::Sha384,
        Self::Sha512,
        Self::Ripemd160,
        Self::Whirlpool,
        Self::Blake2s256,
        Self::Streebog512,
    ];

    /// cryptsetup's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
            Self::Ripemd160 => "ripemd160",
            Self::Whirlpool => "whirlpool",
            Self::Blake2s256 => "blake2s-256",
            Self::Streebog512 => "stribog512",
        }
    }

    /// The hash of that name, if it is known.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|hash| hash.name() == name)
    }

    /// PBKDF2 with HMAC (RFC 8018, section 5.2) of this hash.
    pub(crate) fn pbkdf2(self, passphrase: &[u8], salt: &[u8], iterations: u32, out: &mut [u8]) {
        let derive = match self {
            Self::Sha1 => pbkdf2_hmac::<Sha1>,
            Self::Sha256 => pbkdf2_hmac::<Sha256>,
            Self::Sha384 => pbkdf2_hmac::<Sha384>,
            Self::Sha512 => pbkdf2_hmac::<Sha512>,
            Self::Ripemd160 => pbkdf2_hmac::<Ripemd160>,
            Self::Whirlpool => pbkdf2_hmac::<Whirlpool>,
            Self::Streebog512 => pbkdf2_hmac::<Streebog512>,
            // The crates' other HMAC is not for hashes that hold back their last block.
            Self::Blake2s256 => |passphrase: &[u8], salt: &[u8], iterations, out: &mut [u8]| {
                pbkdf2::<SimpleHmac<Blake2s256>>(passphrase, salt, iterations, out)
                    .expect("HMAC takes keys of any length");
            },
        };
        derive(passphrase, salt, iterations, out);
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
