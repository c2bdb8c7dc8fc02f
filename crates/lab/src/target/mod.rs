//! Systems under test: each opens to a block device over the same extent.
//!
//! This is the only module of the lab that imports ciphers and volumes. A
//! system that is absent is reported as absent with what would bring it,
//! never left out silently and never replaced.

mod bare;
pub mod fit;
mod format;
pub mod java;
pub mod life;
#[allow(unsafe_code)]
pub mod peer;
mod program;
mod sharing;
pub mod simulated;
mod storage;
pub mod unlock;

#[cfg(target_os = "linux")]
pub(crate) mod dm_crypt;
#[cfg(target_os = "linux")]
pub mod engine_file;
#[cfg(target_os = "linux")]
pub mod served;
#[cfg(target_os = "linux")]
mod veracrypt;

pub use bare::{Bare, BareError};
pub use format::VolumeFormat;
use peer::Library;
pub use program::Program;
use simulated::DRIVE;
pub use storage::{Place, Reach, Storage, StorageError, names_export};

use crate::record::Device;
use block::{BlockDevice, BlockError, ByteRange};
pub use cipher::Backend;
use cipher::{CipherError, CipherSpec, IvSector, Key, SectorLayout, SectorSize, Sharing};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;
use volume::{CryptDevice, Mapping, VolumeError};

/// A system that the contract names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum System {
    /// The plain device.
    None,
    /// This program's engine, in process.
    Builtin,
    /// This program's engine behind its own NBD server.
    BuiltinNbd,
    /// This program's engine behind a file of its own, by FUSE.
    BuiltinFuse,
    /// The kernel's dm-crypt.
    DmCrypt,
    /// Whatever is mounted on a directory: `path:` and the directory.
    Path(String),
    /// Another program's volumes, behind its NBD server.
    Served(Program),
    /// A drive that is not here, plain and encrypted: `drive:` and its name.
    Simulated(String),
    /// A cipher library, in the cipher tier only.
    Library(Library),
    /// Java's own ciphers, in the cipher tier only.
    Java,
    /// A system of the contract that this version cannot drive, by the
    /// contract's word.
    Absent(String),
}

/// Systems of the contract that this version cannot drive yet, by name or by
/// the part before a colon.
const ABSENT: &[(&str, &str)] = &[
    (
        "builtin-ublk",
        "ublk here: serve a volume by `volume serve --ublk`, and measure it by --at /dev/ublkbN",
    ),
    ("cryptoloop", UNDER_A_FILE_SYSTEM),
    ("lab:none", UNDER_A_FILE_SYSTEM),
    ("lab:builtin-fuse", UNDER_A_FILE_SYSTEM),
    ("lab:dm-crypt", UNDER_A_FILE_SYSTEM),
    ("lab:cryptoloop", UNDER_A_FILE_SYSTEM),
];

const UNDER_A_FILE_SYSTEM: &str = "it as a bare device: measure it under a file system, --tier fs";

/// What the names of mounted systems begin with.
const PATH: &str = "path:";

/// A word that names no system.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "unknown system {name:?}; known are none, builtin, dm-crypt, veracrypt and the others of `cryptmark doctor`"
)]
pub struct UnknownSystem {
    /// What was given.
    pub name: String,
}

impl System {
    /// The contract's word.
    pub fn as_str(&self) -> &str {
        match self {
            Self::None => "none",
            Self::Builtin => "builtin",
            Self::BuiltinNbd => "builtin-nbd",
            Self::BuiltinFuse => "builtin-fuse",
            Self::DmCrypt => "dm-crypt",
            Self::Path(name) | Self::Simulated(name) => name,
            Self::Served(program) => program.name(),
            Self::Library(library) => library.name(),
            Self::Java => "java",
            Self::Absent(name) => name,
        }
    }

    /// The directory of a mounted system.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Self::Path(name) => name.strip_prefix(PATH).map(Path::new),
            _ => None,
        }
    }

    /// The simulated drive: its name, or the file that describes it.
    pub fn drive(&self) -> Option<&str> {
        match self {
            Self::Simulated(name) => name.strip_prefix(DRIVE),
            _ => None,
        }
    }

    /// Whether something outside the engine's reach does the work: what part of
    /// the time is the cipher's is not known then.
    pub fn is_served(&self) -> bool {
        matches!(
            self,
            Self::BuiltinNbd | Self::BuiltinFuse | Self::DmCrypt | Self::Served(_) | Self::Path(_)
        )
    }

    /// Whether it is measured on Linux alone.
    pub fn needs_linux(&self) -> bool {
        match self {
            Self::Path(_) => false,
            Self::Library(Library::AfAlg) | Self::Absent(_) => true,
            other => other.is_served(),
        }
    }

    /// Whether every cipher of a plan is a target of its own.
    pub fn takes_ciphers(&self) -> bool {
        matches!(
            self,
            Self::Builtin
                | Self::BuiltinNbd
                | Self::BuiltinFuse
                | Self::DmCrypt
                | Self::Served(_)
                | Self::Simulated(_)
        )
    }

    /// What would bring an absent system; `None` for those that are here.
    pub fn needs(&self) -> Option<&'static str> {
        let Self::Absent(name) = self else {
            return None;
        };
        ABSENT
            .iter()
            .find(|(absent, _)| is_named(absent, name))
            .map(|(_, needs)| *needs)
    }

    /// Every system of the contract, with what would bring it where it is absent.
    pub fn all() -> impl Iterator<Item = Self> {
        let path = Self::Path(format!("{PATH}…"));
        let drive = Self::Simulated(format!("{DRIVE}…"));
        [Self::None, Self::Builtin, Self::BuiltinNbd]
            .into_iter()
            .chain([Self::BuiltinFuse, Self::DmCrypt, path, drive])
            .chain(Program::ALL.map(Self::Served))
            .chain(Library::ALL.map(Self::Library))
            .chain([Self::Java])
            .chain(ABSENT.iter().map(|(name, _)| {
                let argument = if name.ends_with(':') { "…" } else { "" };
                Self::Absent(format!("{name}{argument}"))
            }))
    }
}

/// Whether `name` is the system `known`; one that ends in a colon takes an argument.
fn is_named(known: &str, name: &str) -> bool {
    match name.strip_prefix(known) {
        Some(argument) => known.ends_with(':') != argument.is_empty(),
        None => false,
    }
}

impl std::str::FromStr for System {
    type Err = UnknownSystem;

    fn from_str(name: &str) -> Result<Self, UnknownSystem> {
        match name {
            "none" => Ok(Self::None),
            "builtin" => Ok(Self::Builtin),
            "builtin-nbd" => Ok(Self::BuiltinNbd),
            "builtin-fuse" => Ok(Self::BuiltinFuse),
            "dm-crypt" => Ok(Self::DmCrypt),
            "qemu" => Ok(Self::Served(Program::Qemu)),
            "nbdkit" => Ok(Self::Served(Program::Nbdkit)),
            "veracrypt" => Ok(Self::Served(Program::Veracrypt)),
            "java" => Ok(Self::Java),
            _ if is_named(PATH, name) => Ok(Self::Path(name.to_owned())),
            _ if is_named(DRIVE, name) => Ok(Self::Simulated(name.to_owned())),
            _ if let Some(library) = Library::ALL.into_iter().find(|l| l.name() == name) => {
                Ok(Self::Library(library))
            }
            _ if ABSENT.iter().any(|(absent, _)| is_named(absent, name)) => {
                Ok(Self::Absent(name.to_owned()))
            }
            _ => Err(UnknownSystem {
                name: name.to_owned(),
            }),
        }
    }
}

impl TryFrom<String> for System {
    type Error = UnknownSystem;

    fn try_from(name: String) -> Result<Self, UnknownSystem> {
        name.parse()
    }
}

impl From<System> for String {
    fn from(system: System) -> Self {
        match system {
            System::Absent(name) | System::Path(name) | System::Simulated(name) => name,
            known => known.as_str().to_owned(),
        }
    }
}

/// What a target encrypts with.
#[derive(Clone, Copy, Debug)]
pub struct Encryption {
    /// Cipher, mode and IV generator.
    pub spec: CipherSpec,
    /// Bits of the volume key, as cryptsetup counts.
    pub key_bits: u32,
    /// Encryption sector size.
    pub sector_size: SectorSize,
    /// Backend to force; `None` takes the fastest.
    pub backend: Option<Backend>,
    /// How the engine shares large requests among cores; `None` takes one core.
    pub sharing: Option<Sharing>,
}

/// An encryption that cannot be.
#[derive(Debug, Error)]
pub enum EncryptionError {
    /// The cipher is unknown, or not with this key size.
    #[error(transparent)]
    Cipher(#[from] CipherError),
    /// No such encryption sectors.
    #[error("sector_size = {0} is not an encryption sector size")]
    SectorSize(u32),
}

impl EncryptionError {
    /// What the user can do about it, one sentence.
    pub fn remedy(&self) -> String {
        match self {
            Self::Cipher(error) => error.remedy(),
            Self::SectorSize(_) => "Use 512, 1024, 2048 or 4096.".into(),
        }
    }
}

impl Encryption {
    /// Reads dm-crypt notation; without `key_bits` the cipher's default
    /// applies, without `backend` the fastest.
    ///
    /// # Errors
    /// [`EncryptionError`] names what is possible.
    pub fn parse(
        notation: &str,
        key_bits: Option<u32>,
        sector_bytes: u32,
        backend: Option<Backend>,
    ) -> Result<Self, EncryptionError> {
        let spec: CipherSpec = notation.parse()?;
        let bits = key_bits.unwrap_or(spec.default_key_size() as u32 * 8);
        if !spec
            .key_sizes()
            .iter()
            .any(|size| size * 8 == bits as usize)
        {
            return Err(EncryptionError::Cipher(CipherError::KeySize {
                spec,
                got_bits: bits as usize,
                possible_bits: spec.key_sizes().iter().map(|size| size * 8).collect(),
            }));
        }
        if let Some(backend) = backend.filter(|backend| !spec.backends().contains(backend)) {
            return Err(EncryptionError::Cipher(CipherError::BackendUnavailable {
                spec,
                backend,
                available: spec.backends(),
            }));
        }
        Ok(Self {
            spec,
            key_bits: bits,
            sector_size: SectorSize::from_bytes(sector_bytes)
                .ok_or(EncryptionError::SectorSize(sector_bytes))?,
            backend,
            sharing: None,
        })
    }

    /// The same with large requests shared among `cores`, from the size on from
    /// which that is measured to be faster here; unchanged where it never is.
    ///
    /// # Errors
    /// [`TargetError::Cipher`] where the cipher cannot be built or gets no threads.
    pub fn shared_among(self, cores: u32) -> Result<Self, TargetError> {
        Ok(Self {
            sharing: match cores {
                0 | 1 => None,
                _ => sharing::sharing(&self, cores as usize)?,
            },
            ..self
        })
    }

    /// What came of sharing among `cores`, for a user who asked for several.
    pub fn tell_sharing(&self, cores: u32) -> Option<String> {
        let Self {
            spec, sector_size, ..
        } = self;
        let cipher = format!("{spec}, {}-byte sectors", sector_size.bytes());
        match self.sharing {
            _ if cores < 2 => None,
            Some(Sharing { part, .. }) => Some(format!(
                "{cipher}: {cores} cores share requests of {} KiB and more",
                2 * part / 1024
            )),
            None => Some(format!(
                "{cipher}: {cores} cores are not faster than one for every large request; one works"
            )),
        }
    }

    /// The engine's backend as records name it: `vaes512`, `vaes512 on 2 cores`.
    pub(crate) fn engine(&self, backend: Backend) -> String {
        match self.sharing {
            Some(Sharing { cores, .. }) => format!("{backend} on {cores} cores"),
            None => backend.to_string(),
        }
    }
}

/// Why a target cannot be opened or does not do what it says.
#[derive(Debug, Error)]
pub enum TargetError {
    /// The volume cannot be opened.
    #[error(transparent)]
    Volume(#[from] VolumeError),
    /// No key could be made.
    #[error(transparent)]
    Cipher(#[from] CipherError),
    /// The device failed.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// What was written did not come back, or went to the device unencrypted.
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

/// A system under test, open.
pub struct Target {
    /// Which system.
    pub system: System,
    /// Version of the system.
    pub version: String,
    /// What it encrypts with; `None` for the plain device.
    pub encryption: Option<Encryption>,
    /// Backend in use.
    pub backend: Option<Backend>,
    /// Whether the backend is constant-time.
    pub constant_time: Option<bool>,
    /// What its data are on, where that is not the session's own extent.
    pub elsewhere: Option<Device>,
    /// The format of its volume; `None` where all of the storage is data.
    pub format: Option<VolumeFormat>,
    device: Box<dyn BlockDevice>,
    /// Where on the storage the data begins.
    data_offset: u64,
}

impl Target {
    /// The plain system over `storage`.
    pub fn plain(storage: Arc<dyn BlockDevice>) -> Self {
        Self {
            system: System::None,
            version: "plain device".to_owned(),
            encryption: None,
            backend: None,
            constant_time: None,
            elsewhere: None,
            format: None,
            device: Box::new(storage),
            data_offset: 0,
        }
    }

    /// Whatever is mounted where `storage` is, by `name`: nothing is known of
    /// what it does with the data.
    pub fn mounted(name: &str, storage: Storage) -> Self {
        let kind = storage.description.filesystem.as_deref();
        Self {
            system: System::Path(name.to_owned()),
            version: kind.unwrap_or("file system").to_owned(),
            elsewhere: Some(storage.description),
            ..Self::plain(storage.device)
        }
    }

    /// The built-in engine over all of `storage`, under a fresh random key.
    ///
    /// # Errors
    /// [`TargetError::Volume`] where the cipher cannot be built so.
    pub fn builtin(
        storage: Arc<dyn BlockDevice>,
        encryption: Encryption,
    ) -> Result<Self, TargetError> {
        let key = Key::random(encryption.key_bits as usize / 8)?;
        let layout = SectorLayout {
            size: encryption.sector_size,
            large_iv: false,
        };
        let data = ByteRange {
            offset: 0,
            length: storage.geometry().size,
        };
        let mapping = Mapping {
            spec: encryption.spec,
            key,
            layout,
            data,
            first: IvSector::new(0),
            backend: None,
            sharing: None,
            allow_discards: false,
        };
        Self::mapped(storage, encryption, mapping)
    }

    /// The built-in engine over what `mapping` says of `storage`.
    fn mapped(
        storage: Arc<dyn BlockDevice>,
        encryption: Encryption,
        mapping: Mapping,
    ) -> Result<Self, TargetError> {
        let data_offset = mapping.data.offset;
        let crypt = CryptDevice::new(
            storage,
            Mapping {
                backend: encryption.backend,
                sharing: encryption.sharing,
                ..mapping
            },
        )?;
        Ok(Self {
            system: System::Builtin,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            backend: Some(crypt.cipher().backend()),
            constant_time: Some(crypt.cipher().constant_time()),
            encryption: Some(encryption),
            elsewhere: None,
            format: None,
            device: Box::new(crypt),
            data_offset,
        })
    }

    /// What a user should know about the cipher, however fast it is.
    pub fn warnings(&self) -> Vec<String> {
        let Some(Encryption { spec, .. }) = self.encryption else {
            return Vec::new();
        };
        let weak = spec.weaknesses().into_iter();
        let mut warnings: Vec<String> = weak.map(|weak| format!("{spec}: {weak}")).collect();
        if let (Some(backend), Some(false)) = (self.backend, self.constant_time) {
            warnings.push(format!(
                "{spec}: {backend} is not constant-time; programs on the same core may learn \
                 about key and data from the cache"
            ));
        }
        warnings
    }

    /// The device that a trial drives.
    pub fn device(&self) -> &dyn BlockDevice {
        &*self.device
    }

    /// Writes a block through the target and reads it back, through it and
    /// around it: a benchmark of something that does not encrypt is no answer.
    ///
    /// # Errors
    /// [`TargetError::SelfCheck`] says what did not hold.
    pub fn self_check(&self, storage: &dyn BlockDevice) -> Result<(), TargetError> {
        let Some(encryption) = &self.encryption else {
            return Ok(());
        };
        let fail = |what| TargetError::SelfCheck {
            system: self.system.as_str().to_owned(),
            cipher: encryption.spec.to_string(),
            what,
        };
        let length = 64 << 10;
        let offset = (self.device.geometry().size / 2 / length as u64) * length as u64;
        let mut written = block::AlignedBuffer::new(length);
        for (index, byte) in written.iter_mut().enumerate() {
            *byte = (index / 512) as u8;
        }
        let mut read = block::AlignedBuffer::new(length);
        self.device.write_at(offset, &written)?;
        self.device.read_at(offset, &mut read)?;
        if *read != *written {
            return Err(fail("what was written did not come back"));
        }
        self.device.flush()?;
        storage.read_at(self.data_offset + offset, &mut read)?;
        let sector = encryption.sector_size.bytes();
        if read
            .chunks(sector)
            .zip(written.chunks(sector))
            .any(|(stored, plain)| stored == plain)
        {
            return Err(fail("a sector reached the device unencrypted"));
        }
        // Equal plaintext in two sectors must not be seen below.
        self.device.write_at(offset, &vec![0; length])?;
        self.device.flush()?;
        storage.read_at(self.data_offset + offset, &mut read)?;
        if read[..sector] == read[sector..2 * sector] {
            return Err(fail("equal sectors look equal on the device"));
        }
        Ok(())
    }
}

impl TargetError {
    /// What the user can do about it, one sentence.
    pub fn remedy(&self) -> String {
        match self {
            Self::Volume(error) => error.remedy(),
            Self::Cipher(error) => error.remedy(),
            Self::Block(error) => error.remedy().to_owned(),
            Self::SelfCheck { .. } => {
                "Do not trust this machine or this build; please report it with `cryptmark doctor`."
                    .to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_asked_for_several_cores_is_told_of_them() {
        let mut encryption = Encryption::parse("aes-xts-plain64", None, 512, None).unwrap();
        assert_eq!(encryption.shared_among(1).unwrap().sharing, None);
        assert_eq!(encryption.tell_sharing(1), None);
        assert_eq!(encryption.engine(Backend::Portable), "portable");
        let refused = encryption.tell_sharing(4).unwrap();
        assert!(refused.contains("4 cores are not faster"), "{refused}");

        encryption.sharing = Some(Sharing {
            cores: 4,
            part: 64 << 10,
        });
        assert_eq!(
            encryption.tell_sharing(4).unwrap(),
            "aes-xts-plain64, 512-byte sectors: 4 cores share requests of 128 KiB and more"
        );
        assert_eq!(encryption.engine(Backend::Portable), "portable on 4 cores");
    }
}
