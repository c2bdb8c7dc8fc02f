//! dm-crypt's cipher notation, and the only way from it to a cipher.

use std::fmt;
use std::str::FromStr;

#[cfg(target_arch = "x86_64")]
use crate::arch::{Aes, AesEngine, AesNi, Avx2, Avx512, Vaes256, Vaes512};
use crate::block::aes::bitsliced::Bitsliced;
use crate::block::lanes::{self, Lanes};
use crate::block::serpent::{AnyCpu, Cpu, Serpent};
use crate::block::{BlockCipher, Twofish};
use crate::mode::Xts;
use crate::{Backend, CipherError, IvGenerator, Key, SectorCipher, SectorLayout};

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
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How a block cipher is applied to the blocks of a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// IEEE Std 1619, data key before tweak key: `xts`.
    Xts,
}

impl Mode {
    /// Every mode of this build.
    pub const ALL: [Self; 1] = [Self::Xts];

    /// The kernel's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Xts => "xts",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A disk cipher in dm-crypt's notation, such as `aes-xts-plain64`.
///
/// Reads also the kernel crypto API's form, `capi:xts(aes)-plain64`, and
/// prints the short one. A value of this type is always possible: what cannot
/// be built is refused when it is parsed. The length of the key is not part
/// of the notation.
///
/// Source: Linux, Documentation/admin-guide/device-mapper/dm-crypt.rst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CipherSpec {
    algorithm: Algorithm,
    mode: Mode,
    iv: IvGenerator,
}

impl CipherSpec {
    /// Specifications for help texts: one of every cipher and mode, the one
    /// that cryptsetup creates by default first.
    pub const KNOWN: &[&str] = &[
        "aes-xts-plain64",
        "serpent-xts-plain64",
        "twofish-xts-plain64",
    ];

    /// The block cipher.
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The mode of operation.
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// The IV generator.
    pub const fn iv(&self) -> IvGenerator {
        self.iv
    }

    /// Possible key lengths in bytes, ascending, as cryptsetup counts: an XTS
    /// key holds the data key and the tweak key.
    pub const fn key_sizes(&self) -> &'static [usize] {
        match (self.algorithm, self.mode) {
            (Algorithm::Aes | Algorithm::Serpent | Algorithm::Twofish, Mode::Xts) => &[32, 48, 64],
        }
    }

    /// The key length in bytes to take where the user names none.
    pub const fn default_key_size(&self) -> usize {
        match self.mode {
            Mode::Xts => 64,
        }
    }

    /// The backends that this CPU has for this cipher, the fastest first.
    pub fn backends(&self) -> Vec<Backend> {
        Backend::ALL
            .into_iter()
            .filter(|&backend| self.maker(backend).is_some())
            .collect()
    }

    /// The cipher itself, by `backend` or by the fastest there is.
    ///
    /// # Errors
    /// [`CipherError::KeySize`] if the length of `key` is none of
    /// [`key_sizes`](Self::key_sizes); [`CipherError::BackendUnavailable`] if
    /// `backend` is none of [`backends`](Self::backends).
    pub fn cipher(
        &self,
        key: &Key,
        layout: SectorLayout,
        backend: Option<Backend>,
    ) -> Result<Box<dyn SectorCipher>, CipherError> {
        if !self.key_sizes().contains(&key.len()) {
            return Err(CipherError::KeySize {
                spec: *self,
                got_bits: key.len() * 8,
                possible_bits: self.key_sizes().iter().map(|bytes| bytes * 8).collect(),
            });
        }
        let available = self.backends();
        let backend = backend.unwrap_or(available[0]);
        match self.maker(backend) {
            Some(make) => Ok(make(self, key.as_bytes(), layout)),
            None => Err(CipherError::BackendUnavailable {
                spec: *self,
                backend,
                available,
            }),
        }
    }

    /// How `backend` makes this cipher, if this CPU lets it.
    fn maker(&self, backend: Backend) -> Option<Maker> {
        match (self.algorithm, backend) {
            (Algorithm::Aes, Backend::Portable) => Some(bitsliced_aes(lanes::AnyCpu)),
            #[cfg(target_arch = "x86_64")]
            (Algorithm::Aes, Backend::Avx2) => Avx2::detect().map(bitsliced_aes),
            #[cfg(target_arch = "x86_64")]
            (Algorithm::Aes, Backend::Avx512) => Avx512::detect().map(bitsliced_aes),
            #[cfg(target_arch = "x86_64")]
            (Algorithm::Aes, Backend::AesNi) => AesNi::detect().map(aes),
            #[cfg(target_arch = "x86_64")]
            (Algorithm::Aes, Backend::Vaes256) => Vaes256::detect().map(aes),
            #[cfg(target_arch = "x86_64")]
            (Algorithm::Aes, Backend::Vaes512) => Vaes512::detect().map(aes),
            (Algorithm::Serpent, Backend::Portable) => Some(serpent(AnyCpu)),
            #[cfg(target_arch = "x86_64")]
            (Algorithm::Serpent, Backend::Avx2) => Avx2::detect().map(serpent),
            #[cfg(target_arch = "x86_64")]
            (Algorithm::Serpent, Backend::Avx512) => Avx512::detect().map(serpent),
            (Algorithm::Twofish, Backend::Portable) => Some(Box::new(|spec, key, layout| {
                spec.with_mode(Twofish::new, key, layout)
            })),
            _ => None,
        }
    }

    fn with_mode<C: BlockCipher<16>>(
        &self,
        keyed: impl Fn(&[u8]) -> C,
        key: &[u8],
        layout: SectorLayout,
    ) -> Box<dyn SectorCipher> {
        match self.mode {
            Mode::Xts => Box::new(Xts::new(keyed, key, self.iv, layout)),
        }
    }
}

/// Makes a cipher for a specification from a key of possible length.
type Maker = Box<dyn Fn(&CipherSpec, &[u8], SectorLayout) -> Box<dyn SectorCipher>>;

#[cfg(target_arch = "x86_64")]
fn aes(engine: impl AesEngine) -> Maker {
    Box::new(move |spec, key, layout| spec.with_mode(|part| Aes::new(part, engine), key, layout))
}

fn bitsliced_aes(lanes: impl Lanes) -> Maker {
    Box::new(move |spec, key, layout| {
        spec.with_mode(|part| Bitsliced::new(part, lanes), key, layout)
    })
}

fn serpent(cpu: impl Cpu) -> Maker {
    Box::new(move |spec, key, layout| spec.with_mode(|part| Serpent::new(part, cpu), key, layout))
}

impl fmt::Display for CipherSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}-{}-{}", self.algorithm, self.mode, self.iv))
    }
}

impl FromStr for CipherSpec {
    type Err = CipherError;

    fn from_str(text: &str) -> Result<Self, CipherError> {
        let parts = match text.strip_prefix("capi:") {
            Some(rest) => capi_parts(rest),
            None => plain_parts(text),
        };
        let Some((cipher, mode, iv)) = parts else {
            return Err(CipherError::Notation {
                text: text.to_owned(),
            });
        };
        let algorithm = named(Algorithm::ALL, Algorithm::name, cipher).ok_or_else(|| {
            CipherError::UnknownCipher {
                name: cipher.to_owned(),
            }
        })?;
        let mode = named(Mode::ALL, Mode::name, mode).ok_or_else(|| CipherError::UnknownMode {
            name: mode.to_owned(),
        })?;
        let iv = iv.ok_or(CipherError::MissingIv { mode })?;
        let iv = named(IvGenerator::ALL, IvGenerator::name, iv).ok_or_else(|| {
            CipherError::UnknownIv {
                name: iv.to_owned(),
            }
        })?;
        Ok(Self {
            algorithm,
            mode,
            iv,
        })
    }
}

/// Cipher, mode and, where there is one, IV generator.
type Parts<'a> = (&'a str, &'a str, Option<&'a str>);

/// The parts of `aes-xts-plain64`.
fn plain_parts(text: &str) -> Option<Parts<'_>> {
    let (cipher, rest) = text.split_once('-')?;
    let (mode, iv) = match rest.split_once('-') {
        Some((mode, iv)) => (mode, Some(iv)),
        None => (rest, None),
    };
    (!cipher.is_empty() && !mode.is_empty()).then_some((cipher, mode, iv))
}

/// The parts of `xts(aes)-plain64`.
fn capi_parts(text: &str) -> Option<Parts<'_>> {
    let (mode, rest) = text.split_once('(')?;
    let (cipher, rest) = rest.rsplit_once(')')?;
    let iv = match rest {
        "" => None,
        _ => Some(rest.strip_prefix('-')?),
    };
    (!cipher.is_empty() && !mode.is_empty()).then_some((cipher, mode, iv))
}

fn named<T: Copy, const N: usize>(
    all: [T; N],
    name: fn(T) -> &'static str,
    wanted: &str,
) -> Option<T> {
    all.into_iter().find(|&item| name(item) == wanted)
}
