//! [`Storage`]: the extent that all systems of a run share.

use crate::probe;
use crate::record::Device;
use block::layer::Slice;
use block::{
    BlockDevice, BlockError, ByteRange, Engine, FileDevice, FileOptions, NullDevice, PathKind,
    RamDevice, TestFile, signature,
};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// The extent under test, filled with incompressible data.
pub struct Storage {
    /// The plain device: exactly the extent, nothing beside it.
    pub device: Arc<dyn BlockDevice>,
    /// Where another program reaches it.
    pub reach: Option<Reach>,
    /// What it is.
    pub description: Device,
    /// What the reader of the figures should know about it.
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

/// Why an extent cannot be had.
#[derive(Debug, Error)]
pub enum StorageError {
    /// Nothing is there.
    #[error("{path} does not exist")]
    Missing {
        /// The path.
        path: PathBuf,
    },
    /// It is neither a directory, a file nor a block device.
    #[error("{path} is neither a directory, nor a file, nor a block device")]
    Kind {
        /// The path.
        path: PathBuf,
    },
    /// It is smaller than the plan needs.
    #[error("{path} holds {available} bytes, and the plan needs {needed}")]
    TooSmall {
        /// The path.
        path: PathBuf,
        /// Its size.
        available: u64,
        /// What the plan needs.
        needed: u64,
    },
    /// The device refused.
    #[error(transparent)]
    Block(#[from] BlockError),
}

impl StorageError {
    /// What the user can do about it, one sentence.
    pub fn remedy(&self) -> String {
        match self {
            Self::Missing { .. } => "Give --at a directory, a file or a block device.".into(),
            Self::Kind { .. } => "Give --at a directory, a file or a block device.".into(),
            Self::TooSmall { available, .. } => {
                format!("Use --size {available} or less, or another place.")
            }
            Self::Block(error) => error.remedy().to_owned(),
        }
    }

    /// Whether the program refused in order to protect data.
    pub fn protects_data(&self) -> bool {
        matches!(
            self,
            Self::Block(
                BlockError::InUse { .. }
                    | BlockError::Mounted { .. }
                    | BlockError::Swap { .. }
                    | BlockError::Signature { .. }
                    | BlockError::UnknownData { .. }
            )
        )
    }

    /// Whether the user asked to stop.
    pub fn interrupted(&self) -> bool {
        matches!(self, Self::Block(BlockError::Interrupted))
    }
}

/// Where an extent is to be, and how it is made.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// A directory (a test file is made there and never seen), a file or a block device.
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

impl Storage {
    /// Prepares the extent, filled whole with incompressible data: sparse
    /// files and fresh devices answer without looking. `progress` hears the
    /// bytes filled and may stop it.
    ///
    /// # Errors
    /// [`StorageError`]; nothing stays behind.
    pub fn prepare(
        place: Place<'_>,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Self, StorageError> {
        let path = place.at;
        let metadata = fs::metadata(path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => StorageError::Missing {
                path: path.to_owned(),
            },
            _ => StorageError::Block(BlockError::Open {
                path: path.to_owned(),
                source,
            }),
        })?;
        let mut warnings = Vec::new();
        let device = if metadata.is_dir() {
            let file = TestFile::create(path, place.size, place.seed, progress)?;
            if file.allocated()? < place.size {
                warnings.push(
                    "the file system stores less than was written (it compresses, deduplicates or does not tell): the figures may be those of memory; use another file system"
                        .to_owned(),
                );
            }
            file.device(place.engine)?
        } else if PathKind::of(&metadata).is_some() {
            Self::overwrite(place, progress)?
        } else {
            return Err(StorageError::Kind {
                path: path.to_owned(),
            });
        };

        let mut description = probe::describe(path);
        description.engine = device.engine().to_string();
        description.size = place.size;
        description.cache = if device.is_direct() {
            "direct"
        } else {
            "buffered"
        }
        .to_owned();
        if description.kind == "ram" {
            warnings.push(
                "this file system lives in memory: the figures say what the cipher costs, not what a disk would do; point --at to a disk"
                    .to_owned(),
            );
        } else if !device.is_direct() {
            warnings.push(
                "O_DIRECT was refused, so requests went through the page cache: the figures are those of memory; use another file system"
                    .to_owned(),
            );
        }
        Ok(Self {
            reach: match metadata.is_dir() {
                true => device.path_for_others().map(|open| Reach::Nameless {
                    open,
                    directory: path.to_owned(),
                }),
                false => Some(Reach::Named(path.to_owned())),
            },
            device: Arc::new(Slice::new(
                device,
                ByteRange {
                    offset: 0,
                    length: place.size,
                },
            )?),
            description,
            warnings,
        })
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
    pub fn memory(size: u64, seed: u64) -> Result<Self, StorageError> {
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
    ) -> Result<FileDevice, StorageError> {
        signature::guard(place.at, place.overwrite)?;
        let device = FileDevice::open(
            place.at,
            &FileOptions {
                write: true,
                direct: true,
                engine: place.engine,
                exclusive: true,
            },
        )?;
        let available = device.geometry().size;
        if available < place.size {
            return Err(StorageError::TooSmall {
                path: place.at.to_owned(),
                available,
                needed: place.size,
            });
        }
        let extent = ByteRange::new(0, place.size);
        block::fill(&Slice::new(&device, extent)?, place.seed, progress)?;
        Ok(device)
    }
}
