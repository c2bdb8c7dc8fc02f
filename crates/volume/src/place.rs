//! [`Place`]: where a volume is, opened once and held as long as it is used.

use crate::VolumeError;
use crate::beside::{check_beside, side_header};
use crate::judge::{self, Use};
#[cfg(target_os = "linux")]
use block::BlockError;
#[cfg(target_os = "linux")]
use block::hold::MetadataLock;
use block::{BlockDevice, FileDevice, FileOptions, Hold};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The storage of a volume, and that of its header if it is apart.
///
/// Other programs are kept out as long as it lives: those that write, and from a header that is
/// changed, cryptsetup as well.
pub struct Place {
    data: Arc<dyn BlockDevice>,
    header: Option<Arc<dyn BlockDevice>>,
    is_beside: bool,
    #[cfg(target_os = "linux")]
    _lock: Option<MetadataLock>,
}

impl Place {
    /// Opens the file or block device at `path`, and that of the header: `header`, or the file in
    /// which an interrupted reencryption keeps it beside the volume. [`Use::ChangeHeader`] takes
    /// seconds: it waits for others that change the header, and writes to no data.
    ///
    /// # Errors
    /// [`VolumeError::Block`] with what is wrong there, [`VolumeError::Beside`], and for all uses
    /// but [`Use::Read`] [`VolumeError::RecoveryNeeded`] while the volume is encrypted or decrypted
    /// in place, and those of [`judge::check_device`] for the device with the header.
    pub fn open(path: &Path, header: Option<&Path>, use_: Use) -> Result<Self, VolumeError> {
        let side = side_header(path, None);
        let is_beside = header.is_none() && side.exists();
        if is_beside && use_ != Use::Read {
            return Err(VolumeError::RecoveryNeeded);
        }
        let header = header.or(is_beside.then_some(&*side));
        let is_change = use_ == Use::ChangeHeader;
        let of_data = match (is_change, header) {
            (true, Some(_)) => Use::Read,
            _ => use_,
        };
        let open = |path: &Path, use_: Use| {
            let options = FileOptions {
                write: use_ != Use::Read,
                direct: false,
                engine: None,
                hold: match use_ {
                    Use::ChangeHeader => Hold::Brief,
                    _ => Hold::Usual,
                },
            };
            FileDevice::open(path, &options)
        };
        let data = open(path, of_data)?;
        let apart = header.map(|header| open(header, use_)).transpose()?;
        if let (true, Some(header)) = (is_beside, &apart) {
            check_beside((&side, header), (path, &data))?;
        }
        let changed = (apart.as_ref().unwrap_or(&data), header.unwrap_or(path));
        #[cfg(target_os = "linux")]
        let _lock = match is_change {
            true => locked(changed)?,
            false => None,
        };
        if is_change {
            check_settled(changed.0)?;
            judge::check_device(use_, changed.0, &[])?;
        }
        Ok(Self {
            data: Arc::new(data),
            header: apart.map(|header| Arc::new(header) as Arc<dyn BlockDevice>),
            is_beside,
            #[cfg(target_os = "linux")]
            _lock,
        })
    }

    /// What the caller has opened, and holds: the volume on `data`, and its header on `header`, if
    /// that is another device. What stands beside its file is the caller's to know.
    pub fn of(data: Arc<dyn BlockDevice>, header: Option<Arc<dyn BlockDevice>>) -> Self {
        Self {
            data,
            header,
            is_beside: false,
            #[cfg(target_os = "linux")]
            _lock: None,
        }
    }

    /// The device with the header, which may be that of the data.
    pub fn header(&self) -> &dyn BlockDevice {
        &**self.header.as_ref().unwrap_or(&self.data)
    }

    /// Whether the header is on a device of its own.
    pub const fn is_apart(&self) -> bool {
        self.header.is_some()
    }

    /// Whether an interrupted reencryption keeps the header in a file beside the volume.
    pub const fn is_beside(&self) -> bool {
        self.is_beside
    }

    /// The devices of the header and of the data.
    pub fn devices(&self) -> [Arc<dyn BlockDevice>; 2] {
        let header = self.header.as_ref().unwrap_or(&self.data);
        [Arc::clone(header), Arc::clone(&self.data)]
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place")
            .field("size", &self.data.geometry().size)
            .field("is_apart", &self.is_apart())
            .finish_non_exhaustive()
    }
}

/// The lock under which cryptsetup reads and changes headers; none if its folder cannot be used, as
/// cryptsetup does.
#[cfg(target_os = "linux")]
fn locked((device, path): (&FileDevice, &Path)) -> Result<Option<MetadataLock>, VolumeError> {
    match MetadataLock::of(device, path) {
        Ok(lock) => Ok(Some(lock)),
        Err(BlockError::Examine { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Refuses a volume that another program is reencrypting.
pub(crate) fn check_settled(header: &dyn BlockDevice) -> Result<(), VolumeError> {
    #[cfg(target_os = "linux")]
    if crate::luks2::Header::read(header).is_ok_and(|header| header.reencrypted_by().is_some()) {
        return Err(VolumeError::Reencrypting);
    }
    let _ = header;
    Ok(())
}
