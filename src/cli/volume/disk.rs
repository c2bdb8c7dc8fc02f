//! [`Disk`]: what a place of the command line names.

use super::backups;
use super::losses;
use crate::cli::Failure;
use block::{
    BlockDevice, BlockError, ByteRange, Engine, Extent, FileDevice, FileOptions, Geometry,
    PathKind, Queue, QueueOptions, signature,
};
#[cfg(target_os = "linux")]
use serve::nbd::{ClientError, NbdDevice, Uri};
use std::path::Path;
#[cfg(target_os = "linux")]
use std::path::PathBuf;
use volume::VolumeError;

/// A file, a block device, or an export of an NBD server.
pub enum Disk {
    /// The first two.
    File(FileDevice),
    /// The last.
    #[cfg(target_os = "linux")]
    Nbd(Box<NbdDevice>),
}

impl Disk {
    /// Opens what `place` names; a file through the page cache: headers are
    /// small, and files mostly fresh. To write in a command that changes headers,
    /// the header is kept first.
    pub fn open(place: &Path, write: bool) -> Result<Self, Failure> {
        let disk = Self::opened(place, write)?;
        if write {
            backups::keep(place, &disk)?;
        }
        Ok(disk)
    }

    fn opened(place: &Path, write: bool) -> Result<Self, Failure> {
        if is_remote(place) {
            return Self::remote(place, write);
        }
        let options = FileOptions {
            write,
            direct: false,
            exclusive: write,
            ..FileOptions::default()
        };
        let opened = FileDevice::open(place, &options).map_err(VolumeError::Block)?;
        Ok(Self::File(opened))
    }

    #[cfg(target_os = "linux")]
    fn remote(place: &Path, write: bool) -> Result<Self, Failure> {
        let device = NbdDevice::open(&Uri::parse(place.as_os_str())?)?;
        match write && device.is_read_only() {
            true => Err(VolumeError::Block(BlockError::ReadOnly).into()),
            false => Ok(Self::Nbd(Box::new(device))),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn remote(_: &Path, _: bool) -> Result<Self, Failure> {
        Err(crate::cli::elsewhere::needs_linux("NBD"))
    }

    fn device(&self) -> &dyn BlockDevice {
        match self {
            Self::File(device) => device,
            #[cfg(target_os = "linux")]
            Self::Nbd(device) => &**device,
        }
    }

    /// Whether its length can be changed.
    pub fn is_file(&self) -> bool {
        matches!(self, Self::File(device) if device.path_kind() == PathKind::RegularFile)
    }

    /// Whether it answers as memory does, so that there is nothing to wait for
    /// beside.
    pub fn answers_at_once(&self) -> bool {
        matches!(self, Self::File(device) if device.engine() == Engine::Pread)
    }

    /// What is stored in `range`, as far as anybody knows.
    pub fn extents(&self, range: ByteRange) -> Result<Vec<Extent>, BlockError> {
        match self {
            Self::File(device) => device.extents(range),
            #[cfg(target_os = "linux")]
            Self::Nbd(_) => Ok(vec![Extent { range, hole: false }]),
        }
    }
}

impl BlockDevice for Disk {
    fn geometry(&self) -> Geometry {
        self.device().geometry()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        self.device().read_at(offset, into)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        self.device().write_at(offset, data)
    }

    fn flush(&self) -> Result<(), BlockError> {
        self.device().flush()
    }

    fn discard(&self, range: ByteRange) -> Result<(), BlockError> {
        self.device().discard(range)
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        self.device().queue(options)
    }
}

/// Whether `place` is an export of a server, and no path.
pub fn is_remote(place: &Path) -> bool {
    lab::target::names_export(place)
}

/// The name of `place` wherever the program goes, and however it is spelled.
///
/// # Errors
/// Those of finding it; of an export, that its URI is none.
#[cfg(target_os = "linux")]
pub fn whole_name(place: &Path) -> Result<PathBuf, Failure> {
    if is_remote(place) {
        return Ok(Uri::parse(place.as_os_str())?.to_string().into());
    }
    super::service::absolute(place).map_err(|error| {
        Failure::new(
            2,
            format!("cannot open {}: {error}", place.display()),
            "Check the path.",
        )
    })
}

/// Refuses what is mounted or in use; who else uses an export, nobody here knows.
pub fn check_usage(place: &Path) -> Result<(), Failure> {
    if is_remote(place) {
        return Ok(());
    }
    Ok(signature::guard(place, true).map_err(VolumeError::Block)?)
}

/// Opens what is to be overwritten, if it is not in use and, unless the loss is
/// `confirmed`, holds nothing.
pub fn take_over(place: &Path, confirmed: bool) -> Result<Disk, Failure> {
    losses::guard(place, confirmed)?;
    Disk::open(place, true)
}

#[cfg(target_os = "linux")]
impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let code = if error.is_bad_input() { 2 } else { 1 };
        Self::of(code, &error, error.remedy())
    }
}
