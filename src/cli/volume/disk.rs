//! [`Disk`]: what a place of the command line names, and how it is held.

#[cfg(target_os = "linux")]
mod claim;
#[cfg(target_os = "linux")]
mod image;
mod names;
mod part;

#[cfg(target_os = "linux")]
use crate::cli::CliRemedy;
use crate::cli::Failure;
use block::hold::{self, Hold, Users};
use block::signature::Content;
use block::{
    BlockDevice, BlockError, ByteRange, Engine, Extent, FileDevice, Geometry, OperationKind,
    PathKind, Queue, QueueOptions,
};
#[cfg(target_os = "linux")]
use claim::Claim;
#[cfg(target_os = "linux")]
use image::Image;
pub use names::Names;
#[cfg(target_os = "linux")]
use serve::nbd::{ClientError, NbdDevice, Uri};
use std::path::Path;
#[cfg(target_os = "linux")]
use std::path::PathBuf;
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, Ordering};
use volume::VolumeError;
use volume::judge::Use;

/// A file, a block device, an export of an NBD server, or the inside of a disk image.
pub enum Disk {
    /// The first two.
    File(FileDevice),
    /// The last two.
    #[cfg(target_os = "linux")]
    Nbd(Box<Claimed>),
    /// The part of one of them that `--partition` names.
    Part(Box<part::OpenPart>),
}

/// An export, and what keeps other processes from it.
#[cfg(target_os = "linux")]
pub struct Claimed {
    device: NbdDevice,
    _claim: Option<Claim>,
    /// The server of an image, which QEMU locks. It is dropped after its client.
    _server: Option<image::Server>,
}

impl Disk {
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
            return Ok(Self::Nbd(Box::new(image.open(use_ != Use::Read)?)));
        }
        Ok(Self::File(opened))
    }

    #[cfg(target_os = "linux")]
    fn remote(place: &Path, write: bool, hold: Hold) -> Result<Self, Failure> {
        let uri = Uri::parse(place.as_os_str())?;
        let claim = Claim::new(&uri, place, write, hold)?;
        let noted = AtomicBool::new(false);
        let name = place.display().to_string();
        let device = NbdDevice::open(&uri)?.asking(move || {
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
            false => Ok(Self::Nbd(Box::new(Claimed {
                device,
                _claim: Some(claim),
                _server: None,
            }))),
        }
    }

    /// Holds the NBD export at `place`, if it is one, for a measurement that overwrites it, as
    /// long as what is returned lives.
    ///
    /// # Errors
    /// Exit code 4 if another process of this program has it.
    #[cfg(target_os = "linux")]
    pub fn claim_to_measure(place: &Path) -> Result<impl Sized + use<>, Failure> {
        match lab::target::names_export(place) {
            true => Claim::new(&Uri::parse(place.as_os_str())?, place, true, Hold::Usual).map(Some),
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

    fn device(&self) -> &dyn BlockDevice {
        match self {
            Self::File(device) => device,
            #[cfg(target_os = "linux")]
            Self::Nbd(export) => &export.device,
            Self::Part(part) => part.device(),
        }
    }

    /// Where the start of a part is on its disk.
    pub fn first_range(&self) -> Option<ByteRange> {
        match self {
            Self::Part(part) => part.first_range(),
            _ => None,
        }
    }

    /// The disk that a partition is on, and where on it the partition begins.
    pub fn on_disk(&self) -> Option<(&Self, u64)> {
        match self {
            Self::Part(part) => Some((part.whole(), part.first_range()?.offset)),
            _ => None,
        }
    }

    /// Whether it answers as memory does, so that there is nothing to wait for
    /// beside.
    pub fn answers_at_once(&self) -> bool {
        match self {
            Self::File(device) => device.engine() == Engine::Pread,
            #[cfg(target_os = "linux")]
            Self::Nbd(_) => false,
            Self::Part(part) => part.whole().answers_at_once(),
        }
    }

    /// Whether what a failed flush has not made durable is kept, and written again
    /// before a later one succeeds.
    #[cfg(target_os = "linux")]
    pub fn keeps_lost_writes(&self) -> bool {
        match self {
            Self::File(_) => false,
            Self::Nbd(_) => true,
            Self::Part(part) => part.whole().keeps_lost_writes(),
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

    fn keep_header(&self, kept: bool) -> Result<(), BlockError> {
        self.device().keep_header(kept)
    }

    fn content(&self) -> Result<Content, BlockError> {
        self.device().content()
    }

    fn extents(&self, range: ByteRange) -> Result<Vec<Extent>, BlockError> {
        match self {
            Self::Part(part) => part.extents(range),
            other => other.device().extents(range),
        }
    }

    fn reserve(&self, range: ByteRange) -> Result<(), BlockError> {
        match self {
            Self::Part(part) => part.each(range, |whole, range| whole.reserve(range)),
            other => other.device().reserve(range),
        }
    }

    fn length(&self) -> Result<u64, BlockError> {
        self.device().length()
    }

    fn is_resizable(&self) -> bool {
        self.device().is_resizable()
    }

    fn set_len(&mut self, bytes: u64) -> Result<(), BlockError> {
        match self {
            Self::File(device) => device.set_len(bytes),
            _ => Err(BlockError::Unsupported {
                operation: OperationKind::Write,
            }),
        }
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
    serve::service::absolute(place).map_err(|error| {
        Failure::new(
            2,
            format!("cannot open {}: {error}", place.display()),
            "Check the path.",
        )
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
    Err(Failure::new(
        2,
        format!(
            "{option} {} is the same as {}",
            path.display(),
            image.display()
        ),
        "Name another file or device.",
    ))
}

#[cfg(target_os = "linux")]
impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let code = if error.is_bad_input() { 2 } else { 1 };
        Self::of(code, &error, error.cli_remedy())
    }
}
