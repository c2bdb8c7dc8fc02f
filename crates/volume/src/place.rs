//! [`Place`]: where a volume is, opened once and held as long as it is used.

mod new_file;

pub use new_file::NewFile;

use crate::VolumeError;
use crate::beside::{check_beside, side_header};
use crate::judge::{self, Finding, State, Use};
use block::hold;
#[cfg(target_os = "linux")]
use block::hold::MetadataLock;
use block::{BlockDevice, BlockError, FileDevice, FileOptions, Hold};
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
    /// The files that were made for the header and the data.
    new: [Option<NewFile>; 2],
    #[cfg(target_os = "linux")]
    _lock: Option<MetadataLock>,
}

/// The room for the data of the smallest volume, bytes.
const LEAST_FILE: u64 = 1 << 20;

/// A detached header, with room for all key slots, bytes.
const HEADER_FILE: u64 = 16 << 20;

impl Place {
    /// Opens the file or block device at `path`, and that of the header: `header`, or the file in
    /// which an interrupted reencryption keeps it beside the volume. [`Use::ChangeHeader`],
    /// [`Use::ChangeLayout`] and [`Use::MendHeader`] take seconds, and wait for others that change the
    /// header. Only the second writes to data.
    ///
    /// # Errors
    /// [`VolumeError::Block`] with what is wrong there, [`VolumeError::Beside`], and for all uses
    /// but [`Use::Read`] [`VolumeError::RecoveryNeeded`] while the volume is encrypted or decrypted
    /// in place. For all uses but that and [`Use::WriteData`], those of [`judge::check_device`].
    pub fn open(path: &Path, header: Option<&Path>, use_: Use) -> Result<Self, VolumeError> {
        let side = side_header(path, None);
        let is_beside = header.is_none() && side.exists();
        if is_beside && use_ != Use::Read {
            return Err(VolumeError::RecoveryNeeded);
        }
        let header = header.or(is_beside.then_some(&*side));
        let is_change = matches!(
            use_,
            Use::ChangeHeader | Use::ChangeLayout | Use::MendHeader
        );
        let of_data = match (use_, header) {
            (Use::ChangeHeader | Use::MendHeader, Some(_)) => Use::Read,
            _ => use_,
        };
        let open = |path: &Path, use_: Use| {
            let options = FileOptions {
                write: use_ != Use::Read,
                direct: false,
                engine: None,
                hold: match use_ {
                    Use::ChangeHeader | Use::ChangeLayout | Use::MendHeader => Hold::Brief,
                    _ => Hold::Usual,
                },
            };
            FileDevice::open(path, &options)
        };
        if use_ != Use::Read && header.is_some_and(|header| hold::is_same(header, path)) {
            return Err(VolumeError::Impossible {
                what: format!("{} would be header and data at once", path.display()),
                instead: "Name another file for the header, or none.".to_owned(),
            });
        }
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
        // A volume that is opened to be written is judged when its secret is known.
        if !matches!(use_, Use::Read | Use::WriteData) {
            check_settled(changed.0)?;
            // Losses that can be accepted are asked for when all is known.
            let judged = judge::check_device(use_, changed.0, &State::ALL);
            judged.map_err(|error| match &apart {
                Some(_) => Finding::of_header(error),
                None => error,
            })?;
            if apart.is_some() {
                judge::check_device(of_data, &data, &State::ALL)?;
            }
        }
        Ok(Self {
            data: Arc::new(data),
            header: apart.map(|header| Arc::new(header) as Arc<dyn BlockDevice>),
            is_beside,
            new: [None, None],
            #[cfg(target_os = "linux")]
            _lock,
        })
    }

    /// Opens the place of a new volume, and of its header if that is to be apart. A file that does
    /// not exist is made: `bytes` long, or as long as a header needs. It goes again unless the
    /// volume is [created](crate::operate::create).
    ///
    /// # Errors
    /// [`VolumeError::Impossible`] if `bytes` are too few for a file that does not exist, and those of
    /// [`open`](Self::open).
    pub fn create(
        path: &Path,
        header: Option<&Path>,
        bytes: Option<u64>,
    ) -> Result<Self, VolumeError> {
        let data = Self::new_file(path, bytes)?;
        let apart = header.map(|header| Self::new_file(header, Some(HEADER_FILE)));
        let apart = apart.transpose()?.flatten();
        let place = Self::open(path, header, Use::Overwrite)?;
        Ok(place.made(apart, data))
    }

    /// A file that is made for a volume, if there is nothing at `path`.
    ///
    /// # Errors
    /// [`VolumeError::Impossible`], and [`VolumeError::Block`] if it cannot be made.
    #[doc(hidden)]
    pub fn new_file(path: &Path, bytes: Option<u64>) -> Result<Option<NewFile>, VolumeError> {
        if path.exists() {
            return Ok(None);
        }
        match bytes.filter(|&bytes| bytes >= LEAST_FILE) {
            None => Err(VolumeError::Impossible {
                what: format!(
                    "{} does not exist, and no size of 1 MiB or more is given",
                    path.display()
                ),
                instead: "Give the size of the file to make, or a file or device that exists."
                    .to_owned(),
            }),
            Some(bytes) => NewFile::make(path, bytes).map(Some).map_err(|source| {
                VolumeError::Block(BlockError::Open {
                    path: path.to_owned(),
                    source,
                })
            }),
        }
    }

    /// The same with files that were made for the header and for the data.
    #[doc(hidden)]
    #[must_use]
    pub fn made(self, header: Option<NewFile>, data: Option<NewFile>) -> Self {
        Self {
            new: [header, data],
            ..self
        }
    }

    /// What the caller has opened, and holds: the volume on `data`, and its header on `header`, if
    /// that is another device. What stands beside its file is the caller's to know.
    pub fn of(data: Arc<dyn BlockDevice>, header: Option<Arc<dyn BlockDevice>>) -> Self {
        Self {
            data,
            header,
            is_beside: false,
            new: [None, None],
            #[cfg(target_os = "linux")]
            _lock: None,
        }
    }

    /// The device with the data.
    pub fn data(&self) -> &dyn BlockDevice {
        &*self.data
    }

    /// Makes the file with the data longer or shorter.
    ///
    /// # Errors
    /// Those of [`BlockDevice::set_len`].
    pub(crate) fn set_len(&mut self, bytes: u64) -> Result<(), VolumeError> {
        Ok(self.data.set_len(bytes)?)
    }

    /// Whether the files of the header and of the data were made for the volume.
    pub(crate) fn is_new(&self) -> [bool; 2] {
        self.new.each_ref().map(Option::is_some)
    }

    /// From now on, what they hold is the volume's.
    pub(crate) fn begin(&mut self) {
        self.new.iter_mut().flatten().for_each(NewFile::begin);
    }

    /// Keeps them.
    pub(crate) fn keep(&mut self) -> Result<(), VolumeError> {
        for file in self.new.iter_mut().flatten() {
            file.keep()?;
        }
        Ok(())
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
