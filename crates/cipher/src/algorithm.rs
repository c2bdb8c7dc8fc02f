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
    AesNi, Avx2, Avx2Planes, Avx512, Avx512Bytes, ByAes, ByGfni, ByNibbles, Vaes256, Vaes512,
};
use crate::block::aes::bitsliced::Bitsliced;
use crate::block::des::{self, ByPasses, Des, TripleDes};
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::block::planes::Planes;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::block::planes::words::Words;
use crate::block::registers::{AnyCpu, Registers};
use crate::block::serpent::Serpent;
use crate::block::{
    Anubis, AnyKeying, Aria, BlockCipher, Blowfish, Camellia, Cast5, Cast6, Khazad, Kuznyechik,
    Null, Seed, Sm4, Twofish,
};
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::block::{
    anubis, aria, blowfish, camellia, cast5, cast6, khazad, kuznyechik, seed, sm4, twofish,
};
#[cfg(target_arch = "x86_64")]
use crate::choice::faster;

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

    /// Whether no load or branch of `backend` depends on the key or the data: those
    /// of table look-ups do.
    pub(crate) const fn is_constant_time(self, backend: Backend) -> bool {
        let has_tables = !matches!(
            self,
            Self::Aes | Self::Serpent | Self::Des | Self::TripleDes | Self::Null
        );
        !(has_tables && matches!(backend, Backend::Portable))
    }

    /// How `backend` keys this cipher, if it has that backend and this CPU lets it
    /// run.
    pub(crate) fn keying(self, backend: Backend) -> Option<AnyKeying> {
        match self {
            Self::Aes => key_aes(backend),
            Self::Serpent => key_serpent(backend),
            Self::Des | Self::TripleDes => self.key_des(backend),
            _ => match backend {
                Backend::Portable => self.key_tables(),
                #[cfg(target_arch = "x86_64")]
                Backend::Avx2 => self.key_avx2(),
                #[cfg(target_arch = "x86_64")]
                Backend::Gfni256 => self.key_gfni256(),
                #[cfg(target_arch = "x86_64")]
                Backend::Avx512 => self.key_avx512(),
                #[cfg(target_arch = "aarch64")]
                Backend::Neon => self.key_neon(),
                _ => None,
            },
        }
    }

    /// The ciphers that look up tables in memory, and the one that does nothing.
    fn key_tables(self) -> Option<AnyKeying> {
        Some(match self {
            Self::Twofish => wide(Twofish::new),
            Self::Camellia => wide(Camellia::new),
            Self::Cast6 => wide(Cast6::new),
            Self::Kuznyechik => wide(Kuznyechik::new),
            Self::Sm4 => wide(Sm4::new),
            Self::Aria => wide(Aria::new),
            Self::Anubis => wide(Anubis::new),
            Self::Seed => wide(Seed::new),
            Self::Blowfish => narrow(Blowfish::<false>::new),
            Self::BlowfishLe => narrow(Blowfish::<true>::new),
            Self::Cast5 => narrow(Cast5::new),
            Self::Khazad => narrow(Khazad::new),
            Self::Null => wide(|_| Null),
            Self::Aes | Self::Serpent | Self::Des | Self::TripleDes => return None,
        })
    }

    #[cfg(target_arch = "x86_64")]
    fn key_avx2(self) -> Option<AnyKeying> {
        let planes = Avx2Planes::<ByNibbles>::detect()?;
        match self {
            Self::Kuznyechik => Some(wide(move |key| kuznyechik::planes::keyed(key, planes))),
            // By AES-NI where the CPU has it.
            Self::Camellia | Self::Aria => match Avx2Planes::<ByAes>::detect() {
                Some(by_aes) => self.key_inversions(by_aes),
                None => self.key_inversions(planes),
            },
            _ => self.key_words(planes).or_else(|| self.key_planes(planes)),
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn key_gfni256(self) -> Option<AnyKeying> {
        let planes = Avx2Planes::<ByGfni>::detect()?;
        match self {
            Self::Kuznyechik => Some(wide(move |key| kuznyechik::planes::few::keyed(key, planes))),
            Self::Camellia | Self::Aria => self.key_inversions(planes),
            _ => self.key_planes(planes),
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn key_avx512(self) -> Option<AnyKeying> {
        let planes = Avx512Bytes::detect()?;
        match self {
            // These two have kernels for few blocks besides.
            Self::Kuznyechik => Some(wide(move |key| kuznyechik::planes::few::keyed(key, planes))),
            Self::Camellia => Some(wide(move |key| {
                camellia::planes::serial::keyed(key, planes)
            })),
            Self::Aria => Some(wide(move |key| aria::planes::keyed(key, planes))),
            _ => self
                .key_words(planes)
                .zip(self.key_words(planes.by_rows()))
                .map(|(plain, by_rows)| faster(self, [plain, by_rows])),
        }
        .or_else(|| self.key_planes(planes))
    }

    #[cfg(target_arch = "aarch64")]
    fn key_neon(self) -> Option<AnyKeying> {
        let cpu = Neon::detect()?;
        match self {
            Self::Kuznyechik => Some(wide(move |key| kuznyechik::planes::keyed(key, cpu))),
            Self::Camellia | Self::Aria => self.key_inversions(cpu),
            _ => self.key_words(cpu).or_else(|| self.key_planes(cpu)),
        }
    }

    /// Ciphers in byte planes.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn key_planes(self, planes: impl Planes) -> Option<AnyKeying> {
        Some(match self {
            Self::Twofish => wide(move |key| twofish::planes::keyed(key, planes)),
            Self::Sm4 => wide(move |key| sm4::planes::keyed(key, planes)),
            Self::Anubis => wide(move |key| anubis::planes::keyed(key, planes)),
            Self::Seed => wide(move |key| seed::planes::keyed(key, planes)),
            Self::Khazad => narrow(move |key| khazad::planes::keyed(key, planes)),
            _ => return None,
        })
    }

    /// Those that take most of their time for inversions.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn key_inversions(self, planes: impl Planes) -> Option<AnyKeying> {
        Some(match self {
            Self::Camellia => wide(move |key| camellia::planes::keyed(key, planes)),
            Self::Aria => wide(move |key| aria::planes::keyed(key, planes)),
            _ => return None,
        })
    }

    /// Those whose tables are of words.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn key_words(self, words: impl Words) -> Option<AnyKeying> {
        Some(match self {
            Self::Cast6 => wide(move |key| cast6::planes::keyed(key, words)),
            Self::Cast5 => narrow(move |key| cast5::planes::keyed(key, words)),
            Self::Blowfish => narrow(move |key| blowfish::planes::keyed::<_, false>(key, words)),
            Self::BlowfishLe => narrow(move |key| blowfish::planes::keyed::<_, true>(key, words)),
            _ => return None,
        })
    }

    /// DES and its triple share their backends.
    fn key_des(self, backend: Backend) -> Option<AnyKeying> {
        fn on(triple: bool, cpu: impl des::Cpu) -> AnyKeying {
            match triple {
                true => narrow(move |key| TripleDes::new(key, cpu)),
                false => narrow(move |key| Des::new(key, cpu)),
            }
        }
        let triple = self == Self::TripleDes;
        Some(match backend {
            Backend::Portable => on(triple, ByPasses(AnyCpu)),
            #[cfg(target_arch = "x86_64")]
            Backend::Avx2 => on(triple, ByPasses(Avx2::detect()?)),
            #[cfg(target_arch = "x86_64")]
            Backend::Avx512 => on(triple, Avx512::detect()?),
            #[cfg(target_arch = "aarch64")]
            Backend::Neon => on(triple, ByPasses(Neon::detect()?)),
            _ => return None,
        })
    }

    /// The backends that this CPU has for this cipher, the best first.
    pub(crate) fn backends(self) -> impl Iterator<Item = Backend> {
        Backend::ALL
            .into_iter()
            .filter(move |&backend| self.keying(backend).is_some())
    }
}

/// For blocks of 16 bytes.
fn wide<C: BlockCipher<16> + 'static>(keyed: impl Fn(&[u8]) -> C + 'static) -> AnyKeying {
    AnyKeying::Wide(Box::new(move |key| Box::new(keyed(key))))
}

/// For blocks of 8 bytes.
fn narrow<C: BlockCipher<8> + 'static>(keyed: impl Fn(&[u8]) -> C + 'static) -> AnyKeying {
    AnyKeying::Narrow(Box::new(move |key| Box::new(keyed(key))))
}

fn key_serpent(backend: Backend) -> Option<AnyKeying> {
    fn on(cpu: impl Registers) -> AnyKeying {
        wide(move |key| Serpent::new(key, cpu))
    }
    Some(match backend {
        Backend::Portable => on(AnyCpu),
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 => on(Avx2::detect()?),
        #[cfg(target_arch = "x86_64")]
        Backend::Avx512 => on(Avx512::detect()?),
        #[cfg(target_arch = "aarch64")]
        Backend::Neon => on(Neon::detect()?),
        _ => return None,
    })
}

fn key_aes(backend: Backend) -> Option<AnyKeying> {
    fn bitsliced(cpu: impl Registers) -> AnyKeying {
        wide(move |key| Bitsliced::new(key, cpu))
    }
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn by_instruction(engine: impl arch::AesEngine) -> AnyKeying {
        wide(move |key| arch::Aes::new(key, engine))
    }
    Some(match backend {
        Backend::Portable => bitsliced(AnyCpu),
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 => bitsliced(Avx2::detect()?),
        #[cfg(target_arch = "x86_64")]
        Backend::Avx512 => bitsliced(Avx512::detect()?),
        #[cfg(target_arch = "x86_64")]
        Backend::AesNi => by_instruction(AesNi::detect()?),
        #[cfg(target_arch = "x86_64")]
        Backend::Vaes256 => by_instruction(Vaes256::detect()?),
        #[cfg(target_arch = "x86_64")]
        Backend::Vaes512 => by_instruction(Vaes512::detect()?),
        #[cfg(target_arch = "aarch64")]
        Backend::Neon => bitsliced(Neon::detect()?),
        #[cfg(target_arch = "aarch64")]
        Backend::AesCe => by_instruction(AesCe::detect()?),
        _ => return None,
    })
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
