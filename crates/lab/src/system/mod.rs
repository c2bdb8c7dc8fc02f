//! Systems under test: each opens to a block device over the same extent.
//!
//! This is the only module of the lab that imports ciphers and volumes. A
//! system that is absent is reported as absent with what would bring it,
//! never left out silently and never replaced.

mod bare;
mod causes;
mod encryption;
pub mod fit;
mod format;
mod id;
pub mod java;
pub mod life;
#[allow(unsafe_code)]
pub mod peer;
mod program;
mod sharing;
pub mod simulated;
pub(crate) mod storage;
pub mod unlock;

#[cfg(target_os = "linux")]
pub(crate) mod dm_crypt;
#[cfg(target_os = "linux")]
pub mod engine_file;
#[cfg(target_os = "linux")]
pub mod served;
#[cfg(target_os = "linux")]
mod veracrypt;

pub use bare::Bare;
pub use encryption::{Encryption, SHARED_FROM, notation};
pub use format::VolumeFormat;
pub use id::{SystemId, UnknownSystem};
pub use program::Program;
pub use storage::{Place, Reach, Storage, names_export};

use crate::error::LabError;
use crate::record::Device;
use block::{BlockDevice, ByteRange};
pub use cipher::Backend;
use cipher::{IvSector, Key, SectorLayout};
use std::sync::Arc;
pub use volume::Verdict;
pub(crate) use volume::request::with_causes;
use volume::{CryptDevice, Mapping};

/// A system under test, open.
pub struct Target {
    /// Which system.
    pub system: SystemId,
    /// Version of the system.
    pub version: String,
    /// The system's encryption; `None` for the plain device.
    pub encryption: Option<Encryption>,
    /// Backend in use.
    pub backend: Option<Backend>,
    /// Whether the backend is constant-time.
    pub constant_time: Option<bool>,
    /// The device that holds its data, if that is not the session's own extent.
    pub elsewhere: Option<Device>,
    /// The format of its volume; `None` if all of the storage is data.
    pub format: Option<VolumeFormat>,
    device: Box<dyn BlockDevice>,
    /// The server of the device. It is dropped after the device.
    _server: Option<Box<dyn Send + Sync>>,
    /// Offset of the data on the storage, bytes.
    data_offset: u64,
}

impl Target {
    /// The plain system over `storage`.
    pub fn plain(storage: Arc<dyn BlockDevice>) -> Self {
        Self {
            system: SystemId::None,
            version: "plain device".to_owned(),
            encryption: None,
            backend: None,
            constant_time: None,
            elsewhere: None,
            format: None,
            device: Box::new(storage),
            _server: None,
            data_offset: 0,
        }
    }

    /// The mounted system that holds `storage`, under `name`. Its treatment of
    /// the data is unknown.
    pub fn mounted(name: &str, storage: Storage) -> Self {
        let kind = storage.description.filesystem.as_deref();
        Self {
            system: SystemId::Path(name.to_owned()),
            version: kind.unwrap_or("file system").to_owned(),
            elsewhere: Some(storage.description),
            ..Self::plain(storage.device)
        }
    }

    /// The built-in engine over all of `storage`, under a fresh random key.
    ///
    /// # Errors
    /// [`LabError`] if the cipher cannot be built like that.
    pub fn builtin(
        storage: Arc<dyn BlockDevice>,
        encryption: Encryption,
    ) -> Result<Self, LabError> {
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
            holes: false,
        };
        Self::mapped(storage, encryption, mapping)
    }

    /// The built-in engine over what `mapping` says of `storage`.
    fn mapped(
        storage: Arc<dyn BlockDevice>,
        encryption: Encryption,
        mapping: Mapping,
    ) -> Result<Self, LabError> {
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
            system: SystemId::Builtin,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            backend: Some(crypt.cipher().backend()),
            constant_time: Some(crypt.cipher().constant_time()),
            encryption: Some(encryption),
            elsewhere: None,
            format: None,
            device: Box::new(crypt),
            _server: None,
            data_offset,
        })
    }

    /// Warnings for the user about the cipher that hold at any speed.
    pub fn warnings(&self) -> Vec<String> {
        let Some(Encryption { spec, .. }) = self.encryption else {
            return Vec::new();
        };
        let weak = spec.weaknesses().into_iter();
        let mut warnings: Vec<String> = weak.map(|weak| format!("{spec}: {weak}")).collect();
        if let (Some(backend), Some(false)) = (self.backend, self.constant_time) {
            warnings.push(format!(
                "{spec}: {backend} is not constant-time; a program on the same core may learn \
                 about the key and the data through the cache"
            ));
        }
        warnings
    }

    /// The device that a trial drives.
    pub fn device(&self) -> &dyn BlockDevice {
        &*self.device
    }

    /// Writes a block through the target and reads it back, both through the
    /// target and around it. A benchmark of a system that does not encrypt
    /// would be meaningless.
    ///
    /// # Errors
    /// [`LabError`] says what did not hold.
    pub fn self_check(&self, storage: &dyn BlockDevice) -> Result<(), LabError> {
        let Some(encryption) = &self.encryption else {
            return Ok(());
        };
        let fail = |what| failed_check(&self.system, encryption, what);
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
            return Err(fail("the data read back differs from the data written"));
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

/// A system that does not do what it says.
fn failed_check(system: &SystemId, encryption: &Encryption, what: &str) -> LabError {
    LabError::failed(
        format!(
            "{} with {} failed its self-check: {what}",
            system.as_str(),
            encryption.spec
        ),
        "Do not trust this machine or this build. Please report this with the output of \
         `cryptmark doctor`.",
    )
}
