//! The block ciphers by name, and the one table that says which backends each
//! has: where a new cipher or kernel is entered.

use std::fmt;

use crate::Backend;
#[cfg(target_arch = "x86_64")]
use crate::arch::{Avx2, Avx512};
use crate::block::serpent::{AnyCpu, Serpent};
use crate::block::{Aes, BlockCipher, Twofish};

/// A block cipher by the kernel's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// FIPS 197: `aes`.
    Aes,
    /// Anderson, Biham, Knudsen 1998, the final form: `serpent`.
    Serpent,
    /// Schneier and others 1998: `twofish`.
    Twofish,
}

impl Algorithm {
    /// Every block cipher of this build.
    pub const ALL: [Self; 3] = [Self::Aes, Self::Serpent, Self::Twofish];

    /// The kernel's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes => "aes",
            Self::Serpent => "serpent",
            Self::Twofish => "twofish",
        }
    }

    /// Bytes in a block: 16 or 8.
    pub const fn block_bytes(self) -> usize {
        match self {
            Self::Aes | Self::Serpent | Self::Twofish => 16,
        }
    }

    /// Possible lengths of one key in bytes, ascending.
    pub const fn key_sizes(self) -> &'static [usize] {
        match self {
            Self::Aes | Self::Serpent | Self::Twofish => &[16, 24, 32],
        }
    }

    /// The longest key in bytes: what VeraCrypt and TrueCrypt take.
    pub(crate) const fn longest_key(self) -> usize {
        let sizes = self.key_sizes();
        sizes[sizes.len() - 1]
    }

    /// Shows `visitor` how `backend` keys this cipher, if it has that backend
    /// and this CPU lets it run.
    pub(crate) fn visit<V: Visitor>(self, backend: Backend, visitor: V) -> Option<V::Output> {
        match (self, backend) {
            (Self::Aes, Backend::RustCrypto) => Some(visitor.wide(Aes::new)),
            (Self::Serpent, Backend::Portable) => {
                Some(visitor.wide(|key| Serpent::new(key, AnyCpu)))
            }
            #[cfg(target_arch = "x86_64")]
            (Self::Serpent, Backend::Avx2) => {
                let cpu = Avx2::detect()?;
                Some(visitor.wide(|key| Serpent::new(key, cpu)))
            }
            #[cfg(target_arch = "x86_64")]
            (Self::Serpent, Backend::Avx512) => {
                let cpu = Avx512::detect()?;
                Some(visitor.wide(|key| Serpent::new(key, cpu)))
            }
            (Self::Twofish, Backend::Portable) => Some(visitor.wide(Twofish::new)),
            _ => None,
        }
    }

    /// The backends that this CPU has for this cipher, the fastest first.
    pub(crate) fn backends(self) -> impl Iterator<Item = Backend> {
        Backend::ALL
            .into_iter()
            .filter(move |&backend| self.visit(backend, Exists).is_some())
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What is done with a cipher once its concrete type is known.
pub(crate) trait Visitor {
    /// What comes of it.
    type Output;

    /// For ciphers with 16-byte blocks; `keyed` takes any of the cipher's key sizes.
    fn wide<C: BlockCipher<16>>(self, keyed: impl Fn(&[u8]) -> C) -> Self::Output;

    /// For ciphers with 8-byte blocks; `keyed` takes any of the cipher's key sizes.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "no cipher of this build has 8-byte blocks")
    )]
    fn narrow<C: BlockCipher<8>>(self, keyed: impl Fn(&[u8]) -> C) -> Self::Output;
}

struct Exists;

impl Visitor for Exists {
    type Output = ();

    fn wide<C: BlockCipher<16>>(self, _: impl Fn(&[u8]) -> C) {}

    fn narrow<C: BlockCipher<8>>(self, _: impl Fn(&[u8]) -> C) {}
}
