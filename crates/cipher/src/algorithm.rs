//! The block ciphers by name, and the one table that says which backends each
//! has: where a new cipher or kernel is entered.

use std::fmt;

use crate::Backend;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::arch;
#[cfg(target_arch = "aarch64")]
use crate::arch::{AesCe, Neon};
#[cfg(target_arch = "x86_64")]
use crate::arch::{
    AesNi, Avx2, Avx2Planes, Avx512, Avx512Bytes, ByAes, ByNibbles, Vaes256, Vaes512,
    by_rows_is_faster,
};
use crate::block::aes::bitsliced::Bitsliced;
use crate::block::des::{self, Des, TripleDes};
use crate::block::lanes;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::block::planes::Planes;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::block::planes::words::Words;
use crate::block::serpent::{AnyCpu, Serpent};
use crate::block::{
    Anubis, Aria, BlockCipher, Blowfish, Camellia, Cast5, Cast6, Khazad, Kuznyechik, Null, Seed,
    Sm4, Twofish,
};
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::block::{
    anubis, aria, blowfish, camellia, cast5, cast6, khazad, kuznyechik, seed, sm4, twofish,
};

/// A block cipher by the kernel's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// FIPS 197: `aes`.
    Aes,
    /// Anderson, Biham, Knudsen 1998, the final form: `serpent`.
    Serpent,
    /// Schneier and others 1998: `twofish`.
    Twofish,
    /// RFC 3713: `camellia`.
    Camellia,
    /// RFC 2612, CAST-256: `cast6`.
    Cast6,
    /// GOST R 34.12-2015, RFC 7801: `kuznyechik`.
    Kuznyechik,
    /// GB/T 32907-2016: `sm4`.
    Sm4,
    /// RFC 5794: `aria`.
    Aria,
    /// Barreto, Rijmen 2000: `anubis`.
    Anubis,
    /// RFC 4269: `seed`.
    Seed,
    /// Schneier 1993: `blowfish`.
    Blowfish,
    /// Blowfish with the byte order of TrueCrypt: `blowfish_le`, cryptsetup's name.
    BlowfishLe,
    /// RFC 2144, CAST-128: `cast5`.
    Cast5,
    /// FIPS 46-3: `des`, broken by its key length.
    Des,
    /// FIPS 46-3, three passes: `des3_ede`.
    TripleDes,
    /// Barreto, Rijmen 2000: `khazad`.
    Khazad,
    /// The kernel's stand-in, which leaves the data as they are and takes an
    /// empty key: `cipher_null`, in ECB only.
    Null,
}

/// Every length from `FIRST` on, ascending.
const fn lengths<const FIRST: usize, const N: usize>() -> [usize; N] {
    let mut lengths = [0; N];
    let mut i = 0;
    while i < N {
        lengths[i] = FIRST + i;
        i += 1;
    }
    lengths
}

impl Algorithm {
    /// Every block cipher of this build; [`Null`](Self::Null) is none.
    pub const ALL: [Self; 16] = [
        Self::Aes,
        Self::Serpent,
        Self::Twofish,
        Self::Camellia,
        Self::Cast6,
        Self::Kuznyechik,
        Self::Sm4,
        Self::Aria,
        Self::Anubis,
        Self::Seed,
        Self::Blowfish,
        Self::BlowfishLe,
        Self::Cast5,
        Self::Des,
        Self::TripleDes,
        Self::Khazad,
    ];

    /// The kernel's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes => "aes",
            Self::Serpent => "serpent",
            Self::Twofish => "twofish",
            Self::Camellia => "camellia",
            Self::Cast6 => "cast6",
            Self::Kuznyechik => "kuznyechik",
            Self::Sm4 => "sm4",
            Self::Aria => "aria",
            Self::Anubis => "anubis",
            Self::Seed => "seed",
            Self::Blowfish => "blowfish",
            Self::BlowfishLe => "blowfish_le",
            Self::Cast5 => "cast5",
            Self::Des => "des",
            Self::TripleDes => "des3_ede",
            Self::Khazad => "khazad",
            Self::Null => "cipher_null",
        }
    }

    /// Bytes in a block: 16 or 8.
    pub const fn block_bytes(self) -> usize {
        match self {
            Self::Blowfish
            | Self::BlowfishLe
            | Self::Cast5
            | Self::Des
            | Self::TripleDes
            | Self::Khazad => 8,
            _ => 16,
        }
    }

    /// Possible lengths of one key in bytes, ascending.
    pub const fn key_sizes(self) -> &'static [usize] {
        match self {
            Self::Aes | Self::Serpent | Self::Twofish | Self::Camellia | Self::Aria => {
                &[16, 24, 32]
            }
            Self::Cast6 => &[16, 20, 24, 28, 32],
            Self::Kuznyechik => &[32],
            Self::Sm4 | Self::Seed | Self::Khazad => &[16],
            Self::Anubis => &[16, 20, 24, 28, 32, 36, 40],
            Self::Blowfish | Self::BlowfishLe => const { &lengths::<4, 53>() },
            Self::Cast5 => const { &lengths::<5, 12>() },
            Self::Des => &[8],
            Self::TripleDes => &[16, 24],
            Self::Null => &[0],
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
            (Self::Aes, _) => visit_aes(backend, visitor),
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
            #[cfg(target_arch = "aarch64")]
            (Self::Serpent, Backend::Neon) => {
                let cpu = Neon::detect()?;
                Some(visitor.wide(|key| Serpent::new(key, cpu)))
            }
            (Self::Twofish, Backend::Portable) => Some(visitor.wide(Twofish::new)),
            (Self::Camellia, Backend::Portable) => Some(visitor.wide(Camellia::new)),
            (Self::Cast6, Backend::Portable) => Some(visitor.wide(Cast6::new)),
            (Self::Kuznyechik, Backend::Portable) => Some(visitor.wide(Kuznyechik::new)),
            (Self::Sm4, Backend::Portable) => Some(visitor.wide(Sm4::new)),
            (Self::Aria, Backend::Portable) => Some(visitor.wide(Aria::new)),
            (Self::Anubis, Backend::Portable) => Some(visitor.wide(Anubis::new)),
            (Self::Seed, Backend::Portable) => Some(visitor.wide(Seed::new)),
            (Self::Blowfish, Backend::Portable) => Some(visitor.narrow(Blowfish::<false>::new)),
            (Self::BlowfishLe, Backend::Portable) => Some(visitor.narrow(Blowfish::<true>::new)),
            (Self::Cast5, Backend::Portable) => Some(visitor.narrow(Cast5::new)),
            (Self::Khazad, Backend::Portable) => Some(visitor.narrow(Khazad::new)),
            (Self::Null, Backend::Portable) => Some(visitor.wide(|_| Null)),
            (Self::Des | Self::TripleDes, _) => self.visit_des(backend, visitor),
            #[cfg(target_arch = "x86_64")]
            (_, Backend::Avx2) => {
                // Those made of inversions, by AES-NI where the CPU has it.
                if let (Self::Camellia | Self::Aria, Some(planes)) =
                    (self, Avx2Planes::<ByAes>::detect())
                {
                    return self.visit_inversions(planes, visitor);
                }
                let planes = Avx2Planes::<ByNibbles>::detect()?;
                if self.is_of_words() {
                    self.visit_words(planes, visitor)
                } else {
                    self.visit_planes(planes, visitor)
                }
            }
            #[cfg(target_arch = "x86_64")]
            (_, Backend::Avx512) if self.is_of_words() => {
                let planes = Avx512Bytes::detect()?;
                if by_rows_is_faster() {
                    self.visit_words(planes.by_rows(), visitor)
                } else {
                    self.visit_words(planes, visitor)
                }
            }
            #[cfg(target_arch = "x86_64")]
            (Self::Kuznyechik, Backend::Avx512) => {
                let planes = Avx512Bytes::detect()?;
                Some(visitor.wide(|key| kuznyechik::planes::few::keyed(key, planes)))
            }
            #[cfg(target_arch = "x86_64")]
            (Self::Camellia, Backend::Avx512) => {
                let planes = Avx512Bytes::detect()?;
                Some(visitor.wide(|key| camellia::planes::serial::keyed(key, planes)))
            }
            #[cfg(target_arch = "x86_64")]
            (_, Backend::Avx512) => self.visit_planes(Avx512Bytes::detect()?, visitor),
            #[cfg(target_arch = "aarch64")]
            (_, Backend::Neon) if self.is_of_words() => self.visit_words(Neon::detect()?, visitor),
            #[cfg(target_arch = "aarch64")]
            (_, Backend::Neon) => self.visit_planes(Neon::detect()?, visitor),
            _ => None,
        }
    }

    /// The ciphers in byte planes share their CPUs.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn visit_planes<V: Visitor>(self, planes: impl Planes, visitor: V) -> Option<V::Output> {
        match self {
            Self::Twofish => Some(visitor.wide(|key| twofish::planes::keyed(key, planes))),
            Self::Kuznyechik => Some(visitor.wide(|key| kuznyechik::planes::keyed(key, planes))),
            Self::Sm4 => Some(visitor.wide(|key| sm4::planes::keyed(key, planes))),
            Self::Camellia | Self::Aria => self.visit_inversions(planes, visitor),
            Self::Anubis => Some(visitor.wide(|key| anubis::planes::keyed(key, planes))),
            Self::Seed => Some(visitor.wide(|key| seed::planes::keyed(key, planes))),
            Self::Khazad => Some(visitor.narrow(|key| khazad::planes::keyed(key, planes))),
            _ => None,
        }
    }

    /// Those of them that take most of their time for inversions.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn visit_inversions<V: Visitor>(self, planes: impl Planes, visitor: V) -> Option<V::Output> {
        match self {
            Self::Camellia => Some(visitor.wide(|key| camellia::planes::keyed(key, planes))),
            Self::Aria => Some(visitor.wide(|key| aria::planes::keyed(key, planes))),
            _ => None,
        }
    }

    /// Whether its tables are of words.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    const fn is_of_words(self) -> bool {
        matches!(
            self,
            Self::Cast6 | Self::Cast5 | Self::Blowfish | Self::BlowfishLe
        )
    }

    /// Those share their CPUs, too.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn visit_words<V: Visitor>(self, words: impl Words, visitor: V) -> Option<V::Output> {
        match self {
            Self::Cast6 => Some(visitor.wide(|key| cast6::planes::keyed(key, words))),
            Self::Cast5 => Some(visitor.narrow(|key| cast5::planes::keyed(key, words))),
            Self::Blowfish => {
                Some(visitor.narrow(|key| blowfish::planes::keyed::<_, false>(key, words)))
            }
            Self::BlowfishLe => {
                Some(visitor.narrow(|key| blowfish::planes::keyed::<_, true>(key, words)))
            }
            _ => None,
        }
    }

    /// DES and its triple share their backends.
    fn visit_des<V: Visitor>(self, backend: Backend, visitor: V) -> Option<V::Output> {
        fn on<V: Visitor>(triple: bool, cpu: impl des::Cpu, visitor: V) -> V::Output {
            match triple {
                true => visitor.narrow(|key| TripleDes::new(key, cpu)),
                false => visitor.narrow(|key| Des::new(key, cpu)),
            }
        }
        let triple = self == Self::TripleDes;
        Some(match backend {
            Backend::Portable => on(triple, des::AnyCpu, visitor),
            #[cfg(target_arch = "x86_64")]
            Backend::Avx2 => on(triple, Avx2::detect()?, visitor),
            #[cfg(target_arch = "x86_64")]
            Backend::Avx512 => on(triple, Avx512::detect()?, visitor),
            #[cfg(target_arch = "aarch64")]
            Backend::Neon => on(triple, Neon::detect()?, visitor),
            _ => return None,
        })
    }

    /// The backends that this CPU has for this cipher, the best first.
    pub(crate) fn backends(self) -> impl Iterator<Item = Backend> {
        Backend::ALL
            .into_iter()
            .filter(move |&backend| self.visit(backend, Exists).is_some())
    }
}

fn visit_aes<V: Visitor>(backend: Backend, visitor: V) -> Option<V::Output> {
    fn bitsliced<V: Visitor>(lanes: impl lanes::Lanes, visitor: V) -> V::Output {
        visitor.wide(|key| Bitsliced::new(key, lanes))
    }
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn by_instruction<V: Visitor>(engine: impl arch::AesEngine, visitor: V) -> V::Output {
        visitor.wide(|key| arch::Aes::new(key, engine))
    }
    Some(match backend {
        Backend::Portable => bitsliced(lanes::AnyCpu, visitor),
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 => bitsliced(Avx2::detect()?, visitor),
        #[cfg(target_arch = "x86_64")]
        Backend::Avx512 => bitsliced(Avx512::detect()?, visitor),
        #[cfg(target_arch = "x86_64")]
        Backend::AesNi => by_instruction(AesNi::detect()?, visitor),
        #[cfg(target_arch = "x86_64")]
        Backend::Vaes256 => by_instruction(Vaes256::detect()?, visitor),
        #[cfg(target_arch = "x86_64")]
        Backend::Vaes512 => by_instruction(Vaes512::detect()?, visitor),
        #[cfg(target_arch = "aarch64")]
        Backend::Neon => bitsliced(Neon::detect()?, visitor),
        #[cfg(target_arch = "aarch64")]
        Backend::AesCe => by_instruction(AesCe::detect()?, visitor),
        _ => return None,
    })
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
    fn narrow<C: BlockCipher<8>>(self, keyed: impl Fn(&[u8]) -> C) -> Self::Output;
}

struct Exists;

impl Visitor for Exists {
    type Output = ();

    fn wide<C: BlockCipher<16>>(self, _: impl Fn(&[u8]) -> C) {}

    fn narrow<C: BlockCipher<8>>(self, _: impl Fn(&[u8]) -> C) {}
}
