//! [`Bare`]: a cipher in memory as a system under test, this engine's or a
//! library's.

use super::peer::{Absent, Library, Peer, Wanted};
use super::{Encryption, System};
use cipher::{
    Backend, CipherError, IvGenerator, IvSector, Key, KeyedCipher, SectorCipher, SectorLayout,
};
use std::sync::Arc;
use thiserror::Error;

/// Bytes that are encrypted by two implementations before anything is timed.
const CHECKED: usize = 64 << 10;

/// Why a bare cipher cannot be measured.
#[derive(Debug, Error)]
pub enum BareError {
    /// The engine refuses it.
    #[error(transparent)]
    Cipher(#[from] CipherError),
    /// The library is not there, or lacks the cipher.
    #[error(transparent)]
    Absent(#[from] Absent),
    /// Two implementations do not agree, or decryption does not undo encryption.
    #[error("{system} with {cipher} failed its self-check: {what}")]
    SelfCheck {
        /// The contract's word for the system.
        system: String,
        /// The cipher in dm-crypt notation.
        cipher: String,
        /// What went wrong.
        what: &'static str,
    },
}

impl BareError {
    /// What the user can do about it, one sentence.
    pub fn remedy(&self) -> String {
        match self {
            Self::Cipher(error) => error.remedy(),
            Self::Absent(_) => "Install the package, or leave the system out.".into(),
            Self::SelfCheck { .. } => {
                "Do not trust this machine or this build; please report it with `cryptmark doctor`."
                    .into()
            }
        }
    }
}

/// A cipher under a random key, ready to be timed.
pub struct Bare {
    /// Which system.
    pub system: System,
    /// Version of the system.
    pub version: String,
    /// The cipher.
    pub encryption: Encryption,
    /// Backend in use, of the built-in engine.
    pub backend: Option<Backend>,
    /// Whether the backend is constant-time.
    pub constant_time: Option<bool>,
    maker: Maker,
}

/// Where a thread's cipher comes from.
enum Maker {
    Engine(KeyedCipher),
    Library(Library, Arc<Key>),
}

impl Bare {
    /// The built-in engine and every one of `libraries` that has the cipher,
    /// under one key; what they make of the same sectors is compared first.
    /// With them come the libraries that lack the cipher or are not there.
    ///
    /// # Errors
    /// [`BareError::Cipher`], [`BareError::SelfCheck`].
    pub fn open(
        encryption: Encryption,
        libraries: &[Library],
    ) -> Result<(Vec<Self>, Vec<Absent>), BareError> {
        let key = Arc::new(Key::random(encryption.key_bits as usize / 8)?);
        let layout = layout(&encryption);
        let engine = encryption.spec.cipher(&key, layout, encryption.backend)?;
        let mut systems = vec![Self {
            system: System::Builtin,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            encryption,
            backend: Some(engine.backend()),
            constant_time: Some(engine.constant_time()),
            maker: Maker::Engine(engine),
        }];
        let mut absent = Vec::new();
        for &library in libraries {
            match peer(library, &encryption, &key) {
                Ok(peer) => systems.push(Self {
                    system: System::Library(library),
                    version: peer.version.clone(),
                    encryption,
                    backend: None,
                    constant_time: None,
                    maker: Maker::Library(library, Arc::clone(&key)),
                }),
                Err(reason) => absent.push(reason),
            }
        }
        let other = encryption.spec.backends().into_iter().rev();
        let slowest = encryption.spec.cipher(&key, layout, other.take(1).next())?;
        for system in &systems {
            system.check(&slowest)?;
        }
        Ok((systems, absent))
    }

    /// Compares with `other` around the carry of 32-bit sector numbers.
    fn check(&self, other: &KeyedCipher) -> Result<(), BareError> {
        let fail = |what| BareError::SelfCheck {
            system: self.system.as_str().to_owned(),
            cipher: self.encryption.spec.to_string(),
            what,
        };
        // `plain` repeats there, and libraries are called with `plain64`.
        let first = u64::from(u32::MAX) - 63;
        let plain: Vec<u8> = (0..CHECKED).map(|index| (index / 5) as u8).collect();
        let (mut ours, mut others) = (plain.clone(), plain.clone());
        let mut worker = self.worker()?;
        worker.crypt(true, first, &mut ours);
        other.encrypt(IvSector::new(first), &mut others);
        if ours != others {
            return Err(fail(
                "it encrypts differently from the engine's plainest code",
            ));
        }
        worker.crypt(false, first, &mut ours);
        if ours != plain {
            return Err(fail("decryption does not undo encryption"));
        }
        Ok(())
    }

    /// A cipher for one thread.
    ///
    /// # Errors
    /// [`BareError::Absent`] where a library gives no second handle.
    pub fn worker(&self) -> Result<Worker<'_>, BareError> {
        Ok(match &self.maker {
            Maker::Engine(cipher) => Worker::Engine(cipher),
            Maker::Library(library, key) => {
                Worker::Library(Box::new(peer(*library, &self.encryption, key)?))
            }
        })
    }
}

/// A library's cipher with the engine's layout.
fn peer(library: Library, encryption: &Encryption, key: &Key) -> Result<Peer, Absent> {
    let spec = &encryption.spec;
    let counts_alike = matches!(spec.iv(), None | Some(IvGenerator::Plain64));
    let algorithm = match spec.algorithms() {
        [algorithm] if counts_alike && spec.key_count() == 1 => algorithm.name(),
        _ => {
            return Err(Absent::NoCipher {
                library: library.name(),
                version: String::new(),
                cipher: spec.to_string(),
            });
        }
    };
    let wanted = Wanted {
        algorithm,
        mode: spec.mode().name(),
        key: key.as_bytes(),
    };
    library.open(wanted, layout(encryption))
}

fn layout(encryption: &Encryption) -> SectorLayout {
    SectorLayout {
        size: encryption.sector_size,
        large_iv: false,
    }
}

/// One thread's cipher.
pub enum Worker<'a> {
    /// The engine's, which threads share.
    Engine(&'a KeyedCipher),
    /// A handle of a library.
    Library(Box<Peer>),
}

impl Worker<'_> {
    /// Encrypts or decrypts `data` in place; its first sector has IV number
    /// `sector`.
    ///
    /// # Panics
    /// Where `data` is no whole number of sectors.
    #[inline]
    pub fn crypt(&mut self, encrypts: bool, sector: u64, data: &mut [u8]) {
        let first = IvSector::new(sector);
        match (self, encrypts) {
            (Self::Engine(cipher), true) => cipher.encrypt(first, data),
            (Self::Engine(cipher), false) => cipher.decrypt(first, data),
            (Self::Library(peer), true) => peer.encrypt(first, data),
            (Self::Library(peer), false) => peer.decrypt(first, data),
        }
    }
}
