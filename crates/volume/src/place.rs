//! [`Place`]: where a volume is, opened once and held as long as it is used.

mod new_file;
mod site;

pub use new_file::NewFile;
pub use site::{Files, Opener, Site};

use crate::judge::{self, Finding, State, Use};
use crate::{VolumeError, check_new_name};
use block::{BlockDevice, BlockError, FileDevice, FileOptions, HeaderLock, Hold};
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
    /// The disk that the data are a partition of, and where that begins there.
    disk: Option<(Arc<dyn BlockDevice>, u64)>,
    /// The files that were made for the header and the data.
    new: [Option<NewFile>; 2],
}

/// The room for the data of the smallest volume, bytes.
const LEAST_FILE: u64 = 1 << 20;

/// A detached header, with room for all key slots, bytes.
#[doc(hidden)]
pub const HEADER_FILE: u64 = 16 << 20;

impl Place {
    /// Opens the file or block device at `path`, and that of the header: `header`, or the file in
    /// which an interrupted reencryption keeps it beside the volume. [`Use::ChangeHeader`],
    /// [`Use::ChangeLayout`] and [`Use::MendHeader`] take seconds, and wait for others that change the
    /// header. Only the second writes to data.
    ///
    /// # Errors
    /// [`VolumeError::Block`] with what is wrong there, [`VolumeError::Standing`], and for all uses
    /// but [`Use::Read`] [`VolumeError::RecoveryNeeded`] while the volume is encrypted or decrypted
    /// in place; those of [`judge::check_device`].
    pub fn open(path: &Path, header: Option<&Path>, use_: Use) -> Result<Self, VolumeError> {
        let site = Site::new(path, header);
        let is_beside = header.is_none() && site.side().exists();
        if is_beside && use_ != Use::Read {
            site.check_beside()?;
            return Err(VolumeError::RecoveryNeeded);
        }
        Ok(Self {
            is_beside,
            ..site.place(use_)?
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
        check_new_name(path)?;
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
            disk: None,
            new: [None, None],
        }
    }

    /// The same with a header that an interrupted reencryption keeps in a file beside the volume.
    #[doc(hidden)]
    #[must_use]
    pub fn beside(self, is_beside: bool) -> Self {
        Self { is_beside, ..self }
    }

    /// The same with the disk that the data are a partition of, which begins at byte `start` there.
    #[must_use]
    pub fn on_disk(self, disk: Arc<dyn BlockDevice>, start: u64) -> Self {
        Self {
            disk: Some((disk, start)),
            ..self
        }
    }

    /// The disk that the data are a partition of, and where that begins there, if it is known.
    pub(crate) fn disk(&self) -> Option<(&dyn BlockDevice, u64)> {
        let (disk, start) = self.disk.as_ref()?;
        Some((&**disk, *start))
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

    /// What was judged where the header is, which may be a device of its own.
    pub(crate) fn at_header<T>(&self, judged: Result<T, VolumeError>) -> Result<T, VolumeError> {
        judged.map_err(|error| match self.is_apart() {
            true => Finding::of_header(error),
            false => error,
        })
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

/// Opens the file or block device at `path` through the page cache, because headers are small and
/// files mostly fresh. A change of a header takes seconds, and waits for others that change it; then
/// cryptsetup may not read it, and while a volume is written or `steady`, not change it: one that is
/// served, from its writes to their flush.
///
/// # Errors
/// Those of [`FileDevice::open`] and [`FileDevice::locking_header`].
#[doc(hidden)]
pub fn open_file(path: &Path, use_: Use, steady: bool) -> Result<FileDevice, BlockError> {
    let hold = use_.hold(steady);
    let options = FileOptions {
        write: use_ != Use::Read,
        direct: false,
        engine: None,
        hold,
    };
    let device = FileDevice::open(path, &options)?.without_footer()?;
    let how = match hold {
        Hold::Brief => HeaderLock::Alone,
        _ if use_ == Use::WriteData => HeaderLock::WhileWritten,
        _ if options.write => HeaderLock::Shared,
        _ if steady => HeaderLock::IfFree,
        _ => return Ok(device),
    };
    device.locking_header(path, how)
}

/// Refuses what is open as `device`, which `path` names, if it may not be used so, or not now: for
/// other uses than reading, and for reading that is `steady`.
///
/// # Errors
/// [`BlockError::InUse`] by a program that reencrypts it, and those of [`judge::check_device`].
#[doc(hidden)]
pub fn check_opened(
    device: &dyn BlockDevice,
    path: &Path,
    use_: Use,
    steady: bool,
) -> Result<(), VolumeError> {
    if use_ != Use::Read || steady {
        check_settled(device, path)?;
    }
    // Losses that can be accepted are asked for when all is known.
    judge::check_device(use_, device, &State::ALL)
}

/// Refuses a volume that another program is reencrypting.
///
/// # Errors
/// [`BlockError::InUse`].
#[doc(hidden)]
pub fn check_settled(header: &dyn BlockDevice, path: &Path) -> Result<(), VolumeError> {
    #[cfg(target_os = "linux")]
    if let Ok(header) = crate::luks2::Header::read(header)
        && let Some(users) = header.reencrypted_by()
    {
        let path = path.to_owned();
        return Err(BlockError::InUse { path, users }.into());
    }
    let _ = (header, path);
    Ok(())
}
