//! The hashes of ESSIV, by the kernel's names.

use std::fmt;

use md5::Md5;
use ripemd::Ripemd160;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use whirlpool::Whirlpool;
use zeroize::Zeroizing;

/// A hash that turns a key into ESSIV's second key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EssivHash {
    /// RFC 1321, 128 bits: `md5`.
    Md5,
    /// ISO/IEC 10118-3, 160 bits: `rmd160`, and read as `ripemd160` too.
    Rmd160,
    /// FIPS 180-4, 160 bits: `sha1`.
    Sha1,
    /// FIPS 180-4, 224 bits: `sha224`.
    Sha224,
    /// FIPS 180-4, 256 bits: `sha256`.
    Sha256,
    /// FIPS 180-4, 384 bits: `sha384`.
    Sha384,
    /// FIPS 180-4, 512 bits: `sha512`.
    Sha512,
    /// Whirlpool (ISO/IEC 10118-3), its first 256 bits: `wp256`.
    Wp256,
    /// Whirlpool, its first 384 bits: `wp384`.
    Wp384,
    /// Whirlpool, all 512 bits: `wp512`, and read as `whirlpool` too.
    Wp512,
}

impl EssivHash {
    /// Every hash, the usual one first.
    pub const ALL: [Self; 10] = [
        Self::Sha256,
        Self::Sha1,
        Self::Sha224,
        Self::Sha384,
        Self::Sha512,
        Self::Md5,
        Self::Rmd160,
        Self::Wp256,
        Self::Wp384,
        Self::Wp512,
    ];

    /// The kernel's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Rmd160 => "rmd160",
            Self::Sha1 => "sha1",
            Self::Sha224 => "sha224",
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
            Self::Wp256 => "wp256",
            Self::Wp384 => "wp384",
            Self::Wp512 => "wp512",
        }
    }

    /// Bytes of the digest, which is ESSIV's key.
    pub const fn digest_bytes(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Rmd160 | Self::Sha1 => 20,
            Self::Sha224 => 28,
            Self::Sha256 | Self::Wp256 => 32,
            Self::Sha384 | Self::Wp384 => 48,
            Self::Sha512 | Self::Wp512 => 64,
        }
    }

    /// Whether no load or branch depends on what is hashed: Whirlpool looks its
    /// S-box up in tables.
    pub(crate) const fn is_constant_time(self) -> bool {
        !matches!(self, Self::Wp256 | Self::Wp384 | Self::Wp512)
    }

    /// The hash called `name` by the kernel or by cryptsetup.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "ripemd160" => Some(Self::Rmd160),
            "whirlpool" => Some(Self::Wp512),
            _ => Self::ALL.into_iter().find(|hash| hash.name() == name),
        }
    }

    /// The digest of `key`.
    pub(crate) fn digest(self, key: &[u8]) -> Zeroizing<Vec<u8>> {
        let mut digest = Zeroizing::new(match self {
            Self::Md5 => Md5::digest(key).to_vec(),
            Self::Rmd160 => Ripemd160::digest(key).to_vec(),
            Self::Sha1 => Sha1::digest(key).to_vec(),
            Self::Sha224 => Sha224::digest(key).to_vec(),
            Self::Sha256 => Sha256::digest(key).to_vec(),
            Self::Sha384 => Sha384::digest(key).to_vec(),
            Self::Sha512 => Sha512::digest(key).to_vec(),
            Self::Wp256 | Self::Wp384 | Self::Wp512 => Whirlpool::digest(key).to_vec(),
        });
        digest.truncate(self.digest_bytes());
        digest
    }
}

impl fmt::Display for EssivHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digests of "abc" in RFC 1321, the RIPEMD-160 paper, FIPS 180-4's
    /// examples and ISO/IEC 10118-3, by their first bytes.
    #[test]
    fn names_are_those_of_the_standards() {
        for (name, first, bytes) in [
            ("md5", [0x90, 0x01, 0x50, 0x98], 16),
            ("rmd160", [0x8e, 0xb2, 0x08, 0xf7], 20),
            ("ripemd160", [0x8e, 0xb2, 0x08, 0xf7], 20),
            ("sha1", [0xa9, 0x99, 0x3e, 0x36], 20),
            ("sha224", [0x23, 0x09, 0x7d, 0x22], 28),
            ("sha256", [0xba, 0x78, 0x16, 0xbf], 32),
            ("sha384", [0xcb, 0x00, 0x75, 0x3f], 48),
            ("sha512", [0xdd, 0xaf, 0x35, 0xa1], 64),
            ("wp256", [0x4e, 0x24, 0x48, 0xa4], 32),
            ("wp384", [0x4e, 0x24, 0x48, 0xa4], 48),
            ("wp512", [0x4e, 0x24, 0x48, 0xa4], 64),
            ("whirlpool", [0x4e, 0x24, 0x48, 0xa4], 64),
        ] {
            let hash = EssivHash::named(name).unwrap();
            let digest = hash.digest(b"abc");
            assert_eq!(digest[..4], first, "{name}");
            assert_eq!(
                (digest.len(), hash.digest_bytes()),
                (bytes, bytes),
                "{name}"
            );
        }
        assert_eq!(EssivHash::named("sha-256"), None);
    }
}
