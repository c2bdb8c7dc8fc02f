//! [`Names`]: what the places on the command line mean.

use super::{Disk, is_remote};
use crate::cli::Failure;
use crate::cli::volume::losses;
use block::BlockDevice;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use volume::judge::Use;
use volume::operate::backups::Backups;
use volume::{Opener, VolumeError, operate};

/// The meaning of the names on the command line.
///
/// A command works on one image. `--partition` says which part of that is meant, and the image then
/// opens as this part. Headers and backups in other files stay whole.
#[derive(Default)]
pub struct Names {
    /// The image of the command, and the part of it that is meant.
    pub chosen: Option<(PathBuf, String)>,
    /// The headers that the command keeps before it changes them.
    pub backups: Backups,
    /// Set once the user knows that a header beside the volume is used.
    pub beside_noted: OnceLock<()>,
}

impl Opener for Names {
    fn open(&self, path: &Path, use_: Use) -> Result<Box<dyn BlockDevice>, VolumeError> {
        Ok(Box::new(self.open(path, use_)?.device))
    }

    fn check(&self, path: &Path, use_: Use) -> Result<(), VolumeError> {
        Ok(self.check_free(path, use_)?)
    }

    fn part(&self, path: &Path) -> Option<String> {
        self.part(path).map(str::to_owned)
    }
}

impl Names {
    /// The part that `place` stands for.
    pub fn part(&self, place: &Path) -> Option<&str> {
        let (image, part) = self.chosen.as_ref()?;
        (image == place).then_some(part)
    }

    /// The name of a place that works from any working directory, with the part that it stands for:
    /// another part is another volume.
    pub fn full_name(&self, place: &Path) -> PathBuf {
        let name = match is_remote(place) {
            true => place.to_owned(),
            false => place.canonicalize().unwrap_or_else(|_| place.to_owned()),
        };
        let mut name = name.into_os_string();
        if let Some(part) = self.part(place) {
            name.push(format!("#{part}"));
        }
        name.into()
    }

    /// Where the header is while a volume is encrypted or decrypted in place.
    pub fn side_header(&self, image: &Path) -> PathBuf {
        volume::side_header(image, self.part(image))
    }

    /// Opens the file, device or export that `place` names. A writer locks out all other programs.
    /// If a command that changes headers writes, the header is backed up first.
    pub fn open(&self, place: &Path, use_: Use) -> Result<Disk, Failure> {
        let disk = self.held(place, use_, false)?;
        if use_ != Use::Read {
            self.backups
                .keep(place, self.full_name(place), &*disk.device)?;
        }
        Ok(disk)
    }

    /// Opens it for reading, and keeps out writers.
    pub fn steady(&self, place: &Path) -> Result<Disk, Failure> {
        self.held(place, Use::Read, true)
    }

    /// Refuses what [`open`](Self::open) would refuse for this use.
    pub fn check_free(&self, place: &Path, use_: Use) -> Result<(), Failure> {
        self.held(place, use_, false).map(drop)
    }

    /// Refuses the file or device of a path that another program is reencrypting; to those
    /// who open it by other means.
    ///
    /// # Errors
    /// Exit code 4, and those of opening it for reading.
    pub fn check_settled(&self, place: &Path) -> Result<(), Failure> {
        Ok(volume::check_settled(
            &*self.open(place, Use::Read)?.device,
            place,
        )?)
    }

    /// Opens what is to be overwritten, if it is not in use and, unless the loss is
    /// `confirmed`, holds nothing. It is looked at while it is held, so that no other command
    /// writes to it in between.
    pub fn take_over(&self, place: &Path, confirmed: bool) -> Result<Disk, Failure> {
        losses::guard_use(place, self)?;
        let disk = self.held(place, Use::Overwrite, false)?;
        operate::check_blank(&*disk.device, losses::accepted(confirmed))
            .map_err(|error| losses::at(place, error))?;
        self.backups
            .keep(place, self.full_name(place), &*disk.device)?;
        Ok(disk)
    }

    fn held(&self, place: &Path, use_: Use, steady: bool) -> Result<Disk, Failure> {
        let whole = Disk::whole(place, use_, steady)?;
        let write = use_ != Use::Read;
        let disk = match self.part(place) {
            None => whole,
            Some(name) => whole.part(place, name, write)?,
        };
        volume::check_opened(&*disk.device, place, use_, steady)
            .map_err(|error| losses::at(place, error))?;
        Ok(disk)
    }
}
