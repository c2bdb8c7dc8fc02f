//! [`Site`]: a volume by the names of its devices, for work that opens them more than once.

use super::{Place, check_opened, open_file};
use crate::beside::{check_beside, side_header};
use crate::judge::{Finding, Use};
use crate::{Format, VolumeError};
use block::{BlockDevice, hold};
use std::fmt;
use std::path::{Path, PathBuf};

/// Opens devices by their names: files and block devices, or what else a caller has names for.
pub trait Opener: Sync {
    /// Opens what `path` names for this use, held and [judged](crate::judge::check_device).
    ///
    /// # Errors
    /// [`VolumeError::Block`] with what is wrong there, [`VolumeError::Judged`], and
    /// [`VolumeError::Caller`] with what else the caller knows.
    fn open(&self, path: &Path, use_: Use) -> Result<Box<dyn BlockDevice>, VolumeError>;

    /// Refuses what [`open`](Self::open) would refuse, and keeps nothing of it.
    ///
    /// # Errors
    /// The same.
    fn check(&self, path: &Path, use_: Use) -> Result<(), VolumeError> {
        self.open(path, use_).map(drop)
    }

    /// The name of the part of `path` that is meant, if it is not all of it.
    fn part(&self, path: &Path) -> Option<String>;
}

/// The files and block devices of the system.
#[derive(Clone, Copy, Debug)]
pub struct Files;

impl Opener for Files {
    fn open(&self, path: &Path, use_: Use) -> Result<Box<dyn BlockDevice>, VolumeError> {
        let device = open_file(path, use_, false)?;
        check_opened(&device, path, use_, false)?;
        Ok(Box::new(device))
    }

    fn part(&self, _: &Path) -> Option<String> {
        None
    }
}

/// The names of a volume's devices, and how they are opened.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    image: &'a Path,
    header: Option<&'a Path>,
    opener: &'a dyn Opener,
}

impl<'a> Site<'a> {
    /// The volume in the file or on the block device at `image`, with its header in another file or
    /// on another device if that is `header`.
    pub fn new(image: &'a Path, header: Option<&'a Path>) -> Self {
        Self {
            image,
            header,
            opener: &Files,
        }
    }

    /// The same with devices that `opener` knows.
    #[must_use]
    pub fn opened_by(self, opener: &'a dyn Opener) -> Self {
        Self { opener, ..self }
    }

    /// The name of the volume.
    pub(crate) fn image(&self) -> &'a Path {
        self.image
    }

    /// The name of its header, if the caller has said it.
    pub(crate) fn named_header(&self) -> Option<&'a Path> {
        self.header
    }

    /// Where the header is while the volume is encrypted or decrypted in place.
    pub(crate) fn side(&self) -> PathBuf {
        side_header(self.image, self.opener.part(self.image).as_deref())
    }

    /// Where the header is, if it is not with the data: where the caller says, or where work that was
    /// stopped has left it.
    pub(crate) fn apart(&self) -> Option<PathBuf> {
        let side = self.side();
        let named = self.header.map(Path::to_owned);
        named.or_else(|| side.exists().then_some(side))
    }

    /// Opens the volume for a use.
    ///
    /// # Errors
    /// Those of [`Opener::open`].
    pub(crate) fn open(&self, use_: Use) -> Result<Box<dyn BlockDevice>, VolumeError> {
        self.opener.open(self.image, use_)
    }

    /// Refuses what [`open`](Self::open) would refuse.
    ///
    /// # Errors
    /// Those of [`Opener::check`].
    pub(crate) fn check_free(&self, use_: Use) -> Result<(), VolumeError> {
        self.opener.check(self.image, use_)
    }

    /// Opens another file or device for a use.
    ///
    /// # Errors
    /// Those of [`Opener::open`].
    pub(crate) fn open_at(
        &self,
        path: &Path,
        use_: Use,
    ) -> Result<Box<dyn BlockDevice>, VolumeError> {
        self.opener.open(path, use_)
    }

    /// Refuses one name for header and data: what is written by one is read by the other.
    ///
    /// # Errors
    /// [`VolumeError::Impossible`].
    pub(crate) fn check_names(&self) -> Result<(), VolumeError> {
        match self.header {
            Some(header) if hold::is_same(header, self.image) => Err(VolumeError::Impossible {
                what: format!("{} would be header and data at once", self.image.display()),
                instead: "Name another file for the header, or none.".to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// Refuses a file beside the volume that is not its own.
    ///
    /// # Errors
    /// [`VolumeError::Standing`], and those of opening both.
    #[doc(hidden)]
    pub fn check_beside(&self) -> Result<(), VolumeError> {
        let side = self.side();
        if side.symlink_metadata().is_err() {
            return Ok(());
        }
        let header = self.open_at(&side, Use::Read);
        let data = self.open(Use::Read);
        match (&header, &data) {
            (Ok(header), Ok(data)) => check_beside((&side, header), (self.image, data)),
            _ => Ok(()),
        }
    }

    /// Refuses to open a volume as one of `format` whose header an interrupted reencryption keeps
    /// beside it: that is one of LUKS2, whatever the volume is.
    ///
    /// # Errors
    /// [`VolumeError::Reencrypting`].
    #[doc(hidden)]
    pub fn check_format(&self, format: Format) -> Result<(), VolumeError> {
        let is_luks = matches!(format, Format::Luks1 | Format::Luks2);
        match self.header.is_none() && !is_luks && self.side().exists() {
            true => Err(VolumeError::Reencrypting),
            false => Ok(()),
        }
    }

    /// Opens the volume and its header for a use.
    ///
    /// # Errors
    /// Those of [`Opener::open`], [`check_names`](Self::check_names) and
    /// [`check_beside`](Self::check_beside).
    pub(crate) fn place(&self, use_: Use) -> Result<Place, VolumeError> {
        let Some(path) = self.apart() else {
            return Ok(Place::of(self.open(use_)?.into(), None));
        };
        if use_ != Use::Read {
            self.check_names()?;
        }
        let header = self.open_at(&path, use_).map_err(Finding::of_header)?;
        let data = self.open(use_.of_data(true))?;
        if self.header.is_none() {
            check_beside((&path, &header), (self.image, &data))?;
        }
        Ok(Place::of(data.into(), Some(header.into())))
    }
}

impl fmt::Debug for Site<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site")
            .field("image", &self.image)
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}
