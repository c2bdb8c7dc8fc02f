//! Which code does the work: a value that is listed, compared and forced, and
//! never a build flag.

use std::fmt;
use std::str::FromStr;

use crate::CipherError;

/// An implementation of a cipher's inner loop.
///
/// Which of them a cipher has on this CPU is
/// [`CipherSpec::backends`](crate::CipherSpec::backends)'s answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Backend {
    /// Own code for CPUs with VAES on 512-bit registers: `vaes512`.
    Vaes512,
    /// Own code for CPUs with VAES on 256-bit registers: `vaes256`.
    Vaes256,
    /// Own code for CPUs with AES-NI: `aes-ni`.
    AesNi,
    /// Own code for CPUs with Armv8's AES and PMULL extensions: `aes-ce`,
    /// Linux's name.
    AesCe,
    /// Own code for CPUs with AVX-512: `avx512`.
    Avx512,
    /// Own code for CPUs with AVX2 and GFNI: `gfni256`.
    Gfni256,
    /// Own code for CPUs with AVX2: `avx2`.
    Avx2,
    /// Own code for aarch64 CPUs with NEON: `neon`.
    Neon,
    /// Own code without CPU-specific instructions: `portable`.
    Portable,
}

impl Backend {
    /// Every backend there is, whether or not this CPU can run it. If a cipher has several, the
    /// better comes first. Backends that take the same time for every secret come before those that
    /// do not, and then the faster ones.
    pub const ALL: [Self; 9] = [
        Self::Vaes512,
        Self::Vaes256,
        Self::AesNi,
        Self::AesCe,
        Self::Avx512,
        Self::Gfni256,
        Self::Avx2,
        Self::Neon,
        Self::Portable,
    ];

    /// The name that [`Display`](fmt::Display) prints and [`FromStr`] reads.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vaes512 => "vaes512",
            Self::Vaes256 => "vaes256",
            Self::AesNi => "aes-ni",
            Self::AesCe => "aes-ce",
            Self::Avx512 => "avx512",
            Self::Gfni256 => "gfni256",
            Self::Avx2 => "avx2",
            Self::Neon => "neon",
            Self::Portable => "portable",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Backend {
    type Err = CipherError;

    fn from_str(name: &str) -> Result<Self, CipherError> {
        Self::ALL
            .into_iter()
            .find(|backend| backend.name() == name)
            .ok_or_else(|| CipherError::UnknownBackend {
                name: name.to_owned(),
            })
    }
}
