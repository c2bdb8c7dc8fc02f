//! [`Storage`]: the extent that all systems of a run share.

use crate::error::LabError;
use crate::probe;
use crate::record::Device;
use block::layer::Slice;
use block::{
    BlockDevice, BlockError, ByteRange, Engine, FileDevice, FileOptions, Hold, NullDevice,
    PathKind, RamDevice, TestFile, signature,
};
#[cfg(target_os = "linux")]
use serve::nbd::{NbdDevice, Uri};
use std::fs::{self, Metadata};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The extent under test, filled with incompressible data.
pub struct Storage {
    /// The plain device: exactly the extent and nothing else.
    pub device: Arc<dyn BlockDevice>,
    /// The path by which another program reaches it.
    pub reach: Option<Reach>,
    /// The description of the device for records.
    pub description: Device,
    /// Warnings for readers of the figures.
    pub warnings: Vec<String>,
}

/// How other processes reach an extent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// By its name.
    Named(PathBuf),
    /// It has no name, and is open.
    Nameless {
        /// The open file in /proc.
        open: PathBuf,
        /// A folder of its file system.
        directory: PathBuf,
    },
}

/// Whether `path` is the URI of an NBD export, valid or not, instead of a path. Such a URI has a
/// scheme `nbd` or `nbds`, alone or followed by a plus, and `//`.
pub fn names_export(path: &Path) -> bool {
    let scheme = path.to_str().and_then(|text| text.split_once("://"));
    scheme.is_some_and(|(scheme, _)| {
        let kind = scheme.split_once('+').map_or(scheme, |(kind, _)| kind);
        matches!(kind, "nbd" | "nbds")
    })
}

/// The place of an extent, and the way in which it is made.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// A directory (a test file is made there and never seen), a file, a block device, or the
    /// URI of an NBD export.
    pub at: &'a Path,
    /// Bytes of the extent.
    pub size: u64,
    /// Same seed, same content.
    pub seed: u64,
    /// Whether the user allowed to overwrite what a file or device holds.
    pub overwrite: bool,
    /// I/O engine to force; `None` takes the best that the kernel permits.
    pub engine: Option<Engine>,
}

/// What an extent can be made of.
const PLACES: &str =
    "Give `at` a directory, a file, a block device or an NBD export (nbd+unix://, nbd://).";

/// The refusal of what is at `path`, which exists.
pub(crate) fn unusable(path: &Path) -> LabError {
    let what = format!(
        "{} is neither a directory, nor a file, nor a block device",
        path.display()
    );
    LabError::invalid(what, PLACES)
}

/// The refusal of a place that is smaller than the plan needs.
fn too_small(place: Place<'_>, available: u64) -> LabError {
    let (at, needed) = (place.at.display(), place.size);
    LabError::invalid(
        format!("{at} has {available} bytes, but the plan needs {needed}"),
        format!("Use `size` {available} or less, or choose another place."),
    )
}

/// The metadata of what is at `path`.
pub(crate) fn examine(path: &Path) -> Result<Metadata, LabError> {
    fs::metadata(path).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => {
            LabError::invalid(format!("{} does not exist", path.display()), PLACES)
        }
        _ => LabError::from(BlockError::Open {
            path: path.to_owned(),
            source,
        }),
    })
}

impl Storage {
    /// Prepares the extent, filled whole with incompressible data: sparse
    /// files and fresh devices answer without looking. `progress` hears the
    /// bytes filled and may stop it.
    ///
    /// # Errors
    /// [`LabError`]; nothing stays behind.
    pub fn prepare(
        place: Place<'_>,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Self, LabError> {
        let path = place.at;
        if names_export(path) {
            return Self::export(place, progress);
        }
        let metadata = examine(path)?;
        if metadata.is_dir() {
            let Place { size, seed, .. } = place;
            return Self::in_directory(path, size, seed, place.engine, progress);
        }
        if PathKind::of(&metadata).is_none() {
            return Err(unusable(path));
        }
        let device = Self::overwrite(place, progress)?;
        let reach = Some(Reach::Named(path.to_owned()));
        Self::over(device, path, place.size, reach, Vec::new())
    }

    /// Prepares the extent in a file of its own, which is made in `directory` and gone with the
    /// storage; `size` and `engine` are those of a [`Place`]. Nothing is overwritten.
    ///
    /// # Errors
    /// [`LabError`], also for a file, a device or an export; nothing stays behind.
    pub fn in_directory(
        directory: &Path,
        size: u64,
        seed: u64,
        engine: Option<Engine>,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Self, LabError> {
        if names_export(directory) || !examine(directory)?.is_dir() {
            return Err(LabError::invalid(
                format!("{} is not a directory", directory.display()),
                "Name a directory. Files and devices are measured by `cryptmark run`.",
            ));
        }
        let file = TestFile::create(directory, size, seed, progress)?;
        let mut warnings = Vec::new();
        if file.allocated()? < size {
            warnings.push(
                "the file system stores less than was written (compression, deduplication or \
                 no report): the figures may be those of memory; use another file system"
                    .to_owned(),
            );
        }
        let device = file.device(engine)?;
        let reach = device.path_for_others().map(|open| Reach::Nameless {
            open,
            directory: directory.to_owned(),
        });
        Self::over(device, directory, size, reach, warnings)
    }

    /// The first `size` bytes of a `device` at `path`.
    fn over(
        device: FileDevice,
        path: &Path,
        size: u64,
        reach: Option<Reach>,
        mut warnings: Vec<String>,
    ) -> Result<Self, LabError> {
        let mut description = probe::describe(path);
        description.engine = device.engine().to_string();
        description.size = size;
        description.cache = if device.is_direct() {
            "direct"
        } else {
            "buffered"
        }
        .to_owned();
        if description.kind == "ram" {
            warnings.push(
                "this file system is in memory: the figures show the cost of the cipher, not the \
                 speed of a disk; choose a place on a disk to see that"
                    .to_owned(),
            );
        } else if !device.is_direct() {
            warnings.push(
                "O_DIRECT was refused, so requests went through the page cache: the figures are those of memory; use another file system"
                    .to_owned(),
            );
        }
        Ok(Self {
            device: Arc::new(Slice::new(device, ByteRange::new(0, size))?),
            reach,
            description,
            warnings,
        })
    }

    /// Takes over the export of a server, by a client that outlives broken
    /// connections.
    #[cfg(target_os = "linux")]
    fn export(
        place: Place<'_>,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Self, LabError> {
        let device = NbdDevice::open(&Uri::parse(place.at.as_os_str())?)?;
        if device.is_read_only() {
            return Err(BlockError::ReadOnly.into());
        }
        if !place.overwrite {
            signature::guard_content(place.at, &device)?;
        }
        let available = device.geometry().size;
        if available < place.size {
            return Err(too_small(place, available));
        }
        let device = Slice::new(device, ByteRange::new(0, place.size))?;
        block::fill(&device, place.seed, progress)?;
        Ok(Self {
            device: Arc::new(device),
            reach: None,
            description: Device {
                kind: "nbd".to_owned(),
                path_kind: "nbd".to_owned(),
                cache: "unknown".to_owned(),
                engine: "nbd".to_owned(),
                size: place.size,
                ..Device::default()
            },
            warnings: Vec::new(),
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn export(
        place: Place<'_>,
        _: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Self, LabError> {
        Err(LabError::invalid(
            format!("{} needs Linux", place.at.display()),
            "Give `at` a directory or a file.",
        ))
    }

    /// None at all, for plans of simulated drives.
    pub fn none() -> Self {
        Self {
            device: Arc::new(NullDevice::new(0)),
            reach: None,
            description: Device::default(),
            warnings: Vec::new(),
        }
    }

    /// An extent in memory, for the cipher tier.
    ///
    /// # Errors
    /// [`LabError`] if so much is not free.
    pub fn memory(size: u64, seed: u64) -> Result<Self, LabError> {
        if let Some(available) = probe::available_memory().filter(|free| *free < size) {
            return Err(LabError::invalid(
                format!("{available} bytes of memory are free, but the plan needs {size}"),
                "Use a smaller `size`.",
            ));
        }
        let ram = RamDevice::resident(size);
        block::fill(&ram, seed, &mut |_| ControlFlow::Continue(()))?;
        Ok(Self {
            device: Arc::new(ram),
            reach: None,
            description: Device {
                kind: "ram".to_owned(),
                path_kind: "memory".to_owned(),
                cache: "none".to_owned(),
                engine: "memory".to_owned(),
                size,
                ..Device::default()
            },
            warnings: Vec::new(),
        })
    }

    /// Takes over a file or device that the user named.
    fn overwrite(
        place: Place<'_>,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<FileDevice, LabError> {
        let device = FileDevice::open(
            place.at,
            &FileOptions {
                write: true,
                direct: true,
                engine: place.engine,
                hold: Hold::Usual,
            },
        )?;
        if !place.overwrite {
            signature::guard_content(place.at, &device)?;
        }
        let available = device.geometry().size;
        if available < place.size {
            return Err(too_small(place, available));
        }
        let extent = ByteRange::new(0, place.size);
        block::fill(&Slice::new(&device, extent)?, place.seed, progress)?;
        Ok(device)
    }
}
