//! Libraries that people encrypt with today, called as their users must: one
//! call to set the IV and one to encrypt, for every sector. An UNSAFE ROOM.
//!
//! Safety case: the libraries are C, found at run time (`dlopen`), and called
//! through the signatures that their headers publish and have kept stable for
//! the version named in each file's `SONAMES`. Every handle is owned by one
//! value, made and freed by it, and used by one thread at a time (`&mut`).
//! Buffers are passed as pointer and length of one live slice. Libraries are
//! never unloaded: some of them leave threads or exit handlers behind.

mod botan;
mod gcrypt;
mod nettle;
mod openssl;

use cipher::{IvSector, SectorCipher, SectorLayout};
use libloading::{Library as Object, Symbol};
use std::sync::Mutex;
use thiserror::Error;

/// A library that can be measured beside the built-in engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Library {
    /// OpenSSL's libcrypto.
    OpenSsl,
    /// GnuPG's libgcrypt.
    Libgcrypt,
    /// Nettle.
    Nettle,
    /// Botan, through its C interface.
    Botan,
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
    /// It is installed and lacks this cipher, mode or key size.
    #[error("{library} {version} has no {cipher}")]
    NoCipher {
        /// The library.
        library: &'static str,
        /// Its version.
        version: String,
        /// What was asked for.
        cipher: String,
    },
}

/// What a library is asked to do, in the kernel's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// Block cipher, `aes`.
    pub algorithm: &'a str,
    /// Mode, `xts` or `cbc`.
    pub mode: &'a str,
    /// The whole key; for XTS the data key before the tweak key.
    pub key: &'a [u8],
}

impl Wanted<'_> {
    /// Bits of the block cipher's own key.
    fn cipher_bits(&self) -> usize {
        match self.mode {
            "xts" => self.key.len() * 4,
            _ => self.key.len() * 8,
        }
    }
}

/// One keyed direction pair of a library.
trait Keyed: Send {
    /// Encrypts one sector in place.
    fn encrypt(&mut self, iv: &[u8; 16], sector: &mut [u8]);
    /// Decrypts one sector in place.
    fn decrypt(&mut self, iv: &[u8; 16], sector: &mut [u8]);
}

/// A library's cipher over runs of sectors, IVs by `plain64`.
pub struct Peer {
    /// Version that the library reports.
    pub version: String,
    layout: SectorLayout,
    keyed: Mutex<Box<dyn Keyed>>,
}

impl Library {
    /// Every library, in the order of reports.
    pub const ALL: [Self; 4] = [Self::OpenSsl, Self::Libgcrypt, Self::Nettle, Self::Botan];

    /// CONTRACT's word for the system.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenSsl => "openssl",
            Self::Libgcrypt => "libgcrypt",
            Self::Nettle => "nettle",
            Self::Botan => "botan",
        }
    }

    /// Opens the library's cipher.
    ///
    /// # Errors
    /// [`Absent`] says whether the library or only the cipher is missing.
    pub fn open(self, wanted: Wanted<'_>, layout: SectorLayout) -> Result<Peer, Absent> {
        let (version, keyed) = match self {
            Self::OpenSsl => openssl::open(wanted),
            Self::Libgcrypt => gcrypt::open(wanted),
            Self::Nettle => nettle::open(wanted),
            Self::Botan => botan::open(wanted),
        }
        .ok_or_else(|| Absent::NotInstalled {
            library: self.name(),
            package: match self {
                Self::OpenSsl => "Debian: libssl3",
                Self::Libgcrypt => "Debian: libgcrypt20",
                Self::Nettle => "Debian: libnettle8",
                Self::Botan => "Debian: libbotan-2-19",
            },
        })?;
        match keyed {
            Some(keyed) => Ok(Peer {
                version,
                layout,
                keyed: Mutex::new(keyed),
            }),
            None => Err(Absent::NoCipher {
                library: self.name(),
                version,
                cipher: format!(
                    "{}-{} with {} bits",
                    wanted.algorithm,
                    wanted.mode,
                    wanted.key.len() * 8
                ),
            }),
        }
    }
}

/// A library's version and, where it has the cipher, the keyed cipher.
type Opened = Option<(String, Option<Box<dyn Keyed>>)>;

impl Peer {
    fn each(
        &self,
        first: IvSector,
        data: &mut [u8],
        mut crypt: impl FnMut(&mut dyn Keyed, &[u8; 16], &mut [u8]),
    ) {
        let mut keyed = self
            .keyed
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut number = first;
        for sector in data.chunks_exact_mut(self.layout.size.bytes()) {
            let mut iv = [0; 16];
            iv[..8].copy_from_slice(&number.get().to_le_bytes());
            crypt(&mut **keyed, &iv, sector);
            number = number.advance(1, self.layout);
        }
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

/// Loads the first shared object that is there; kept for the life of the process.
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
