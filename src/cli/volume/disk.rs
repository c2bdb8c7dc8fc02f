//! [`Disk`]: what a place of the command line names, and how it is held.

mod names;

use crate::cli::Failure;
use block::hold::{self, Hold, Users};
use block::{BlockDevice, BlockError, ByteRange, Engine, PathKind};
pub use names::Names;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use volume::VolumeError;
use volume::judge::Use;
use volume::parts::{PartError, Parts};
#[cfg(target_os = "linux")]
use {
    serve::disk::{Claim, DiskError, Image},
    serve::nbd::{ClientError, NbdDevice, Uri},
    std::sync::atomic::{AtomicBool, Ordering},
};

/// A file, a block device, an export of an NBD server, the inside of a disk image, or the part of
/// one of them that `--partition` names.
#[derive(Clone)]
pub struct Disk {
    /// The device, which is held as long as it lives.
    pub device: Arc<dyn BlockDevice>,
    /// The disk that it is a part of, and where its start is there.
    pub whole: Option<(Arc<dyn BlockDevice>, ByteRange)>,
    /// It answers as memory does, so that there is nothing to wait for beside.
    pub answers_at_once: bool,
    /// What a failed flush has not made durable is kept, and written again before a later one
    /// succeeds.
    pub keeps_lost_writes: bool,
}

impl Disk {
    fn new(device: impl BlockDevice + 'static) -> Self {
        Self {
            device: Arc::new(device),
            whole: None,
            answers_at_once: false,
            keeps_lost_writes: false,
        }
    }

    #[cfg(target_os = "linux")]
    fn served(device: NbdDevice) -> Self {
        Self {
            keeps_lost_writes: true,
            ..Self::new(device)
        }
    }

    /// Opens all of the file, device or export that `place` names.
    fn whole(place: &Path, use_: Use, steady: bool) -> Result<Self, Failure> {
        if is_remote(place) {
            return Self::remote(place, use_ != Use::Read, use_.hold(steady));
        }
        let opened = volume::open_file(place, use_, steady).map_err(VolumeError::Block)?;
        #[cfg(target_os = "linux")]
        if opened.path_kind() == PathKind::RegularFile
            && let Some(image) = Image::of(place, &opened)?
        {
            // This lock would keep QEMU out, which takes its own.
            drop(opened);
            return Ok(Self::served(image.open(use_ != Use::Read)?));
        }
        Ok(Self {
            answers_at_once: opened.engine() == Engine::Pread,
            ..Self::new(opened)
        })
    }

    /// The part called `name` of this disk, which `place` names.
    fn part(self, place: &Path, name: &str, write: bool) -> Result<Self, Failure> {
        let parts = Parts::find(&*self.device)?;
        let part = parts.choose(name, write).map_err(|error| {
            let remedy = match error {
                PartError::Obstacle { writing: true, .. } => {
                    "Open it with --read-only, or copy it out."
                }
                PartError::Obstacle { .. } => error.remedy(),
                _ => "`cryptmark volume find` lists the parts.",
            };
            Failure::new(2, format!("{}: {error}", place.display()), remedy)
        })?;
        let device = part.open(self.device.clone()).map_err(VolumeError::Block)?;
        let first = part.ranges.first().copied();
        Ok(Self {
            whole: first.map(|range| (self.device.clone(), range)),
            device: device.into(),
            ..self
        })
    }

    #[cfg(target_os = "linux")]
    fn remote(place: &Path, write: bool, hold: Hold) -> Result<Self, Failure> {
        let uri = Uri::parse(place.as_os_str())?;
        let claim = claim(&uri, place, write, hold)?;
        let noted = AtomicBool::new(false);
        let name = place.display().to_string();
        let device = claim.connect(&uri)?.asking(move || {
            if !noted.swap(true, Ordering::Relaxed) {
                let patience = NbdDevice::PATIENCE.as_secs();
                eprintln!(
                    "note: the server of {name} does not answer; waiting {patience} s for it"
                );
            }
            !crate::cli::is_to_end()
        });
        match write && device.is_read_only() {
            true => Err(VolumeError::Block(BlockError::ReadOnly).into()),
            false => Ok(Self::served(device)),
        }
    }

    /// Holds the NBD export at `place`, if it is one, for a measurement that overwrites it, as
    /// long as what is returned lives.
    ///
    /// # Errors
    /// Exit code 4 if another process of this program has it.
    #[cfg(target_os = "linux")]
    pub fn claim_to_measure(place: &Path) -> Result<impl Sized + use<>, Failure> {
        match is_remote(place) {
            true => claim(&Uri::parse(place.as_os_str())?, place, true, Hold::Usual).map(Some),
            false => Ok(None),
        }
    }

    /// There are no exports here.
    #[cfg(not(target_os = "linux"))]
    pub fn claim_to_measure(_: &Path) -> Result<impl Sized + use<>, Failure> {
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    fn remote(_: &Path, _: bool, _: Hold) -> Result<Self, Failure> {
        Err(crate::cli::elsewhere::needs_linux("NBD"))
    }
}

#[cfg(target_os = "linux")]
fn claim(uri: &Uri, place: &Path, write: bool, hold: Hold) -> Result<Claim, Failure> {
    let unlocked = |error: &DiskError| {
        let (place, why) = (place.display(), Failure::of(1, error, ""));
        eprintln!("warning: cannot lock {place} against other processes: {why}");
    };
    Ok(Claim::new(uri, place, write, hold, &unlocked)?)
}

/// Whether `place` is an export of a server, and no path.
pub fn is_remote(place: &Path) -> bool {
    lab::system::names_export(place)
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
    serve::service::absolute(place).map_err(|source| {
        let path = place.to_owned();
        BlockError::Open { path, source }.into()
    })
}

/// The processes that have one of `places` open for writing, as a part of a sentence; `None` if
/// none is known.
pub fn writers<'a>(places: impl IntoIterator<Item = &'a Path>) -> Option<String> {
    let local = places.into_iter().filter(|place| !is_remote(place));
    let mut users = Vec::new();
    for user in local.flat_map(hold::writers) {
        if !users.contains(&user) {
            users.push(user);
        }
    }
    if users.is_empty() {
        return None;
    }
    let users = Users(users).to_string();
    Some(users.trim_start().to_owned())
}

/// Refuses two arguments that lead to one file or device: what is written by one of them
/// is read by the other.
///
/// # Errors
/// Exit code 2.
pub fn check_distinct(option: &str, path: &Path, image: &Path) -> Result<(), Failure> {
    if is_remote(path) || is_remote(image) || !hold::is_same(path, image) {
        return Ok(());
    }
    let (path, image) = (path.display(), image.display());
    let what = format!("{option} {path} is the same as {image}");
    Err(Failure::new(2, what, "Name another file or device."))
}

#[cfg(target_os = "linux")]
impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        DiskError::from(error).into()
    }
}

#[cfg(target_os = "linux")]
impl From<DiskError> for Failure {
    fn from(error: DiskError) -> Self {
        match error {
            DiskError::Block(error) => return error.into(),
            DiskError::Directory(error) => return error.into(),
            _ => {}
        }
        let code = match &error {
            error if error.is_refusal() => 4,
            error if error.is_bad_input() => 2,
            _ => 1,
        };
        Self::of(code, &error, error.remedy())
    }
}
