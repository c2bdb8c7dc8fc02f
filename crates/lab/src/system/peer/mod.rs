//! Libraries that people encrypt with today, called as their users must: one
//! call to set the IV and one to encrypt, for every sector. An UNSAFE ROOM.
//!
//! Safety case: the libraries are C, found at run time (`dlopen`), and called
//! through the signatures that their headers publish and have kept stable for
//! the version named in each file's `SONAMES`. Every handle is owned by one
//! value, made and freed by it, and used by one thread at a time (`&mut`).
//! Buffers are passed as pointer and length of one live slice. A library is
//! loaded and initialised once, behind a `OnceLock`, and never unloaded: some
//! of them leave threads or exit handlers behind.

#[cfg(target_os = "linux")]
mod af_alg;
mod botan;
mod gcrypt;
mod nettle;
mod openssl;
#[cfg(feature = "rustcrypto")]
mod rustcrypto;

use cipher::{Algorithm, IvSector, Key, SectorCipher, SectorLayout};
use libloading::{Library as Object, Symbol};
use std::cell::RefCell;
use std::fmt;
use thiserror::Error;
use thread_local::ThreadLocal;

/// A library that can be compared with the built-in engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Library {
    /// OpenSSL's libcrypto, with its legacy provider if that is installed.
    OpenSsl,
    /// GnuPG's libgcrypt.
    Libgcrypt,
    /// Nettle.
    Nettle,
    /// Botan, through its C interface.
    Botan,
    /// RustCrypto's crates, compiled in by the feature `rustcrypto`.
    RustCrypto,
    /// The kernel's ciphers, through its AF_ALG sockets.
    AfAlg,
}

/// Why a library cannot be measured.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Absent {
    /// It is not installed.
    #[error("{library} is not installed ({package})")]
    NotInstalled {
        /// The library.
        library: &'static str,
        /// Debian's package.
        package: &'static str,
    },
    /// It may be there, and this program is static: nothing can be loaded into
    /// it.
    #[error(
        "{library} cannot be loaded into this static program; use a dynamically linked build, such \
         as Debian's package"
    )]
    Static {
        /// The library.
        library: &'static str,
    },
    /// It is compiled into the program, and this build does without.
    #[error("{library} is not in this build (feature `{library}`)")]
    NotBuilt {
        /// The library, whose feature has the same name.
        library: &'static str,
    },
    /// It is there and does not run.
    #[error("{library} cannot be run ({reason})")]
    NotRunnable {
        /// The library.
        library: &'static str,
        /// The system's error.
        reason: std::io::ErrorKind,
    },
    /// It can run programs and not compile the one that it must run.
    #[error("{library} {version} has no compiler ({package})")]
    NoCompiler {
        /// The library.
        library: &'static str,
        /// Its version.
        version: String,
        /// Debian's package.
        package: &'static str,
    },
    /// This kernel offers its ciphers to no program.
    #[error("{library} is not in this kernel ({reason}); one with {option} has it")]
    NotInKernel {
        /// The library.
        library: &'static str,
        /// The kernel's own word.
        reason: &'static str,
        /// The kernel's build option that brings it.
        option: &'static str,
    },
    /// It is here and lacks this cipher, mode or key size.
    #[error("{library} {version} has no {cipher}")]
    NoCipher {
        /// The library.
        library: &'static str,
        /// Its version.
        version: String,
        /// The requested cipher.
        cipher: String,
    },
}

/// The cipher that a library is asked for, in the kernel's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// Block cipher, `aes`.
    pub algorithm: &'a str,
    /// Mode: `xts`, `cbc`, `ctr` (the whole IV a big-endian counter) or `ecb`.
    pub mode: &'a str,
    /// The whole key; for XTS the data key before the tweak key.
    pub key: &'a [u8],
}

impl Wanted<'_> {
    /// The cipher as the engine knows it.
    fn known(&self) -> Option<Algorithm> {
        let named = |known: &Algorithm| known.name() == self.algorithm;
        Algorithm::ALL.into_iter().find(named)
    }

    /// Bits of the block cipher's own key; `None` if it takes no such key, or
    /// the mode is none of the four.
    ///
    /// Libraries are asked only after this check: some of them read or write
    /// beyond a key that is too short or too long.
    fn cipher_bits(&self) -> Option<usize> {
        let bytes = match self.mode {
            "xts" if self.key.len().is_multiple_of(2) => self.key.len() / 2,
            "cbc" | "ctr" | "ecb" => self.key.len(),
            _ => return None,
        };
        let possible = self.known()?.key_sizes().contains(&bytes);
        possible.then_some(bytes * 8)
    }

    /// Bytes of the block cipher's block; 16 if the cipher is unknown.
    fn block_bytes(&self) -> usize {
        self.known().map_or(16, Algorithm::block_bytes)
    }
}

/// One keyed direction pair of a library.
trait Keyed: Send {
    /// Encrypts one sector in place.
    fn encrypt(&mut self, iv: &[u8; 16], sector: &mut [u8]);
    /// Decrypts one sector in place.
    fn decrypt(&mut self, iv: &[u8; 16], sector: &mut [u8]);
}

/// A library's version and, if it has the cipher, the keyed cipher.
type Opened = Result<(String, Option<Box<dyn Keyed>>), Absent>;

/// A library's cipher over runs of sectors, IVs by `plain64`.
///
/// Every thread that uses it gets a handle of its own when it first does, so
/// that threads never wait for each other.
pub struct Peer {
    /// Version that the library reports.
    pub version: String,
    library: Library,
    algorithm: String,
    mode: String,
    key: Key,
    layout: SectorLayout,
    handles: ThreadLocal<RefCell<Box<dyn Keyed>>>,
}

impl Library {
    /// Every library, in the order of reports.
    pub const ALL: [Self; 6] = [
        Self::OpenSsl,
        Self::Libgcrypt,
        Self::Nettle,
        Self::Botan,
        Self::RustCrypto,
        Self::AfAlg,
    ];

    /// The contract's word for the system.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenSsl => "openssl",
            Self::Libgcrypt => "libgcrypt",
            Self::Nettle => "nettle",
            Self::Botan => "botan",
            Self::RustCrypto => "rustcrypto",
            Self::AfAlg => "af_alg",
        }
    }

    /// Opens the library's cipher.
    ///
    /// # Errors
    /// [`Absent`] says whether the library or only the cipher is missing.
    pub fn open(self, wanted: Wanted<'_>, layout: SectorLayout) -> Result<Peer, Absent> {
        let (version, keyed) = self.keyed(wanted)?;
        let Some(keyed) = keyed else {
            return Err(Absent::NoCipher {
                library: self.name(),
                version,
                cipher: format!(
                    "{}-{} with {} bits",
                    wanted.algorithm,
                    wanted.mode,
                    wanted.key.len() * 8
                ),
            });
        };
        let handles = ThreadLocal::new();
        handles.get_or(|| RefCell::new(keyed));
        Ok(Peer {
            version,
            library: self,
            algorithm: wanted.algorithm.to_owned(),
            mode: wanted.mode.to_owned(),
            key: Key::from_slice(wanted.key),
            layout,
            handles,
        })
    }

    fn keyed(self, wanted: Wanted<'_>) -> Opened {
        let is_static = cfg!(all(target_os = "linux", target_feature = "crt-static"));
        match self {
            Self::OpenSsl | Self::Libgcrypt | Self::Nettle | Self::Botan if is_static => {
                Err(Absent::Static {
                    library: self.name(),
                })
            }
            Self::OpenSsl => openssl::open(wanted),
            Self::Libgcrypt => gcrypt::open(wanted),
            Self::Nettle => nettle::open(wanted),
            Self::Botan => botan::open(wanted),
            #[cfg(feature = "rustcrypto")]
            Self::RustCrypto => rustcrypto::open(wanted),
            #[cfg(not(feature = "rustcrypto"))]
            Self::RustCrypto => Err(Absent::NotBuilt {
                library: self.name(),
            }),
            #[cfg(target_os = "linux")]
            Self::AfAlg => af_alg::open(wanted),
            #[cfg(not(target_os = "linux"))]
            Self::AfAlg => Err(Absent::NotInKernel {
                library: self.name(),
                reason: "not Linux",
                option: "CONFIG_CRYPTO_USER_API_SKCIPHER",
            }),
        }
    }
}

impl Peer {
    /// A handle for a thread that has none yet.
    fn another(&self) -> RefCell<Box<dyn Keyed>> {
        let wanted = Wanted {
            algorithm: &self.algorithm,
            mode: &self.mode,
            key: self.key.as_bytes(),
        };
        match self.library.keyed(wanted) {
            Ok((_, Some(keyed))) => RefCell::new(keyed),
            _ => panic!(
                "{} gave one handle and refused another",
                self.library.name()
            ),
        }
    }

    fn each(
        &self,
        first: IvSector,
        data: &mut [u8],
        mut crypt: impl FnMut(&mut dyn Keyed, &[u8; 16], &mut [u8]),
    ) {
        let sector_bytes = self.layout.size.bytes();
        assert!(
            data.len().is_multiple_of(sector_bytes),
            "{} bytes do not consist of whole sectors of {sector_bytes} bytes",
            data.len()
        );
        let mut keyed = self.handles.get_or(|| self.another()).borrow_mut();
        let mut number = first;
        for sector in data.chunks_exact_mut(sector_bytes) {
            let mut iv = [0; 16];
            iv[..8].copy_from_slice(&number.get().to_le_bytes());
            crypt(&mut **keyed, &iv, sector);
            number = number.advance(1, self.layout);
        }
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (algorithm, mode) = (&self.algorithm, &self.mode);
        write!(
            f,
            "{} {}: {algorithm}-{mode}, key of {} bits, sectors of {} bytes",
            self.library.name(),
            self.version,
            self.key.len() * 8,
            self.layout.size.bytes()
        )
    }
}

/// One call a sector, as the users of a library must.
impl SectorCipher for Peer {
    fn layout(&self) -> SectorLayout {
        self.layout
    }

    fn encrypt(&self, first: IvSector, data: &mut [u8]) {
        self.each(first, data, |keyed, iv, sector| keyed.encrypt(iv, sector));
    }

    fn decrypt(&self, first: IvSector, data: &mut [u8]) {
        self.each(first, data, |keyed, iv, sector| keyed.decrypt(iv, sector));
    }
}

/// Loads the first shared object that is there; kept for the life of the
/// process, so to be called once a library.
fn load(sonames: &[&str]) -> Option<&'static Object> {
    sonames.iter().find_map(|name| {
        // SAFETY: these are the system's own libraries; their initialisers
        // run in every program that links them.
        let object = unsafe { Object::new(*name) }.ok()?;
        Some(&*Box::leak(Box::new(object)))
    })
}

/// A function of a library, by name.
///
/// # Safety
/// `F` must be the type that the library's header gives the function.
unsafe fn function<F: Copy + 'static>(object: &'static Object, name: &str) -> Option<F> {
    // SAFETY: the caller vouches for the type; the library is never unloaded.
    let symbol: Symbol<'static, F> = unsafe { object.get(name.as_bytes()) }.ok()?;
    Some(*symbol)
}

/// A C string that a library returned and keeps.
///
/// # Safety
/// `text` must be null or point to a terminated string that outlives the call.
unsafe fn text(text: *const std::ffi::c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller vouches for the pointer.
    unsafe { std::ffi::CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}
