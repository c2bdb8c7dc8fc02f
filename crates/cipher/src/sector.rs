//! Sectors, their numbers as IVs count them, and the one interface of all
//! disk encryption: [`SectorCipher`].

use crate::parallel::Parallel;
use crate::{Backend, CipherError, Sharing};

/// The number that an IV generator takes, in 512-byte units unless the mapping has large IVs. It is
/// neither an offset nor an index: 4096-byte sectors without large IVs are numbered 0, 8, 16, …
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IvSector(u64);

impl IvSector {
    /// The IV number `n`.
    pub const fn new(n: u64) -> Self {
        Self(n)
    }

    /// The number itself.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number `sectors` further on, counted as `layout` counts and
    /// wrapping at 2⁶⁴.
    pub const fn advance(self, sectors: u64, layout: SectorLayout) -> Self {
        Self(self.0.wrapping_add(sectors.wrapping_mul(layout.iv_step())))
    }
}

/// Encryption sector size; dm-crypt's four.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SectorSize {
    /// 512 bytes.
    #[default]
    B512,
    /// 1024 bytes.
    B1024,
    /// 2048 bytes.
    B2048,
    /// 4096 bytes.
    B4096,
}

impl SectorSize {
    /// All four, ascending.
    pub const ALL: [Self; 4] = [Self::B512, Self::B1024, Self::B2048, Self::B4096];

    /// The size of `bytes` bytes, if it is one of the four.
    pub const fn from_bytes(bytes: u32) -> Option<Self> {
        match bytes {
            512 => Some(Self::B512),
            1024 => Some(Self::B1024),
            2048 => Some(Self::B2048),
            4096 => Some(Self::B4096),
            _ => None,
        }
    }

    /// Bytes in a sector.
    pub const fn bytes(self) -> usize {
        match self {
            Self::B512 => 512,
            Self::B1024 => 1024,
            Self::B2048 => 2048,
            Self::B4096 => 4096,
        }
    }
}

/// How data is cut into sectors and how these are numbered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SectorLayout {
    /// Bytes encrypted under one IV.
    pub size: SectorSize,
    /// dm-crypt's `iv_large_sectors`: IVs count sectors, not 512-byte units.
    pub large_iv: bool,
}

impl SectorLayout {
    /// By how much the IV number grows from one sector to the next.
    pub const fn iv_step(self) -> u64 {
        if self.large_iv {
            1
        } else {
            self.size.bytes() as u64 / 512
        }
    }
}

/// A keyed disk cipher over whole runs of sectors, this engine's or another.
///
/// Dispatch happens once per request: an implementation sees the whole run
/// and may work on many sectors at once.
pub trait SectorCipher: Send + Sync {
    /// Sector size and numbering this cipher was made for.
    fn layout(&self) -> SectorLayout;

    /// Encrypts `data` in place; its first sector has IV number `first`.
    ///
    /// # Panics
    /// If the length of `data` is not a multiple of the sector size.
    fn encrypt(&self, first: IvSector, data: &mut [u8]);

    /// Decrypts `data` in place; its first sector has IV number `first`.
    ///
    /// # Panics
    /// If the length of `data` is not a multiple of the sector size.
    fn decrypt(&self, first: IvSector, data: &mut [u8]);
}

impl<C: SectorCipher + ?Sized> SectorCipher for Box<C> {
    fn layout(&self) -> SectorLayout {
        (**self).layout()
    }

    fn encrypt(&self, first: IvSector, data: &mut [u8]) {
        (**self).encrypt(first, data);
    }

    fn decrypt(&self, first: IvSector, data: &mut [u8]) {
        (**self).decrypt(first, data);
    }
}

/// A cipher of this engine under a key.
pub struct KeyedCipher {
    pub(crate) sectors: Box<dyn SectorCipher>,
    pub(crate) backend: Backend,
    pub(crate) constant_time: bool,
}

impl KeyedCipher {
    /// The backend that does the work.
    pub const fn backend(&self) -> Backend {
        self.backend
    }

    /// Whether no load or branch depends on the key or the data.
    pub const fn constant_time(&self) -> bool {
        self.constant_time
    }

    /// The same cipher, which shares large requests among several cores by
    /// threads of its own.
    ///
    /// # Errors
    /// [`CipherError::Threads`] if the system gives no threads.
    pub fn shared(self, sharing: Sharing) -> Result<Self, CipherError> {
        if sharing.cores < 2 {
            return Ok(self);
        }
        Ok(Self {
            sectors: Box::new(Parallel::new(self.sectors, sharing)?),
            ..self
        })
    }
}

impl SectorCipher for KeyedCipher {
    fn layout(&self) -> SectorLayout {
        self.sectors.layout()
    }

    fn encrypt(&self, first: IvSector, data: &mut [u8]) {
        self.sectors.encrypt(first, data);
    }

    fn decrypt(&self, first: IvSector, data: &mut [u8]) {
        self.sectors.decrypt(first, data);
    }
}
