//! [`Bare`]: a cipher in memory as a system under test, this engine's or a
//! library's.

use super::peer::{Absent, Library, Peer, Wanted};
use super::{Encryption, SystemId};
use crate::error::LabError;
use cipher::{Backend, IvGenerator, IvSector, Key, SectorCipher, SectorLayout};

/// Bytes that are encrypted by two implementations before anything is timed.
const CHECKED: usize = 64 << 10;

/// A cipher under a random key, ready to be timed.
pub struct Bare {
    /// Which system.
    pub system: SystemId,
    /// Version of the system.
    pub version: String,
    /// The cipher.
    pub encryption: Encryption,
    /// Backend in use, of the built-in engine.
    pub backend: Option<Backend>,
    /// Whether the backend is constant-time.
    pub constant_time: Option<bool>,
    cipher: Box<dyn SectorCipher>,
}

impl Bare {
    /// The built-in engine and every one of `libraries` that has the cipher,
    /// under one key; what they make of the same sectors is compared first.
    /// With them come the libraries that lack the cipher or are not there.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn open(
        encryption: Encryption,
        libraries: &[Library],
    ) -> Result<(Vec<Self>, Vec<Absent>), LabError> {
        let key = Key::random(encryption.key_bits as usize / 8)?;
        let layout = layout(&encryption);
        let mut engine = encryption.spec.cipher(&key, layout, encryption.backend)?;
        if let Some(sharing) = encryption.sharing {
            engine = engine.shared(sharing)?;
        }
        let mut systems = vec![Self {
            system: SystemId::Builtin,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            encryption,
            backend: Some(engine.backend()),
            constant_time: Some(engine.constant_time()),
            cipher: Box::new(engine),
        }];
        let mut absent = Vec::new();
        for &library in libraries {
            match peer(library, &encryption, &key) {
                Ok(peer) => systems.push(Self {
                    system: SystemId::Library(library),
                    version: peer.version.clone(),
                    encryption,
                    backend: None,
                    constant_time: None,
                    cipher: Box::new(peer),
                }),
                Err(reason) => absent.push(reason),
            }
        }
        let plainest = encryption.spec.backends().last().copied();
        let plainest = encryption.spec.cipher(&key, layout, plainest)?;
        for system in &systems {
            system.check(&plainest)?;
        }
        Ok((systems, absent))
    }

    /// Compares with `other` around the carry of 32-bit sector numbers.
    fn check(&self, other: &impl SectorCipher) -> Result<(), LabError> {
        let fail = |what| super::failed_check(&self.system, &self.encryption, what);
        let first = u64::from(u32::MAX) - 63;
        let plain: Vec<u8> = (0..CHECKED).map(|index| (index / 5) as u8).collect();
        let (mut ours, mut others) = (plain.clone(), plain.clone());
        self.crypt(true, first, &mut ours);
        other.encrypt(IvSector::new(first), &mut others);
        if ours != others {
            return Err(fail(
                "it encrypts differently from the engine's reference code",
            ));
        }
        self.crypt(false, first, &mut ours);
        if ours != plain {
            return Err(fail("decryption does not undo encryption"));
        }
        Ok(())
    }

    /// Encrypts or decrypts `data` in place; its first sector has IV number
    /// `sector`. A thread's first call may open a library's handle for it.
    ///
    /// # Panics
    /// If `data` is not a whole number of sectors.
    #[inline]
    pub fn crypt(&self, encrypts: bool, sector: u64, data: &mut [u8]) {
        let first = IvSector::new(sector);
        match encrypts {
            true => self.cipher.encrypt(first, data),
            false => self.cipher.decrypt(first, data),
        }
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
