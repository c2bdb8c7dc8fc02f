//! The layers below a mount: block devices and files, down to the last.

mod trial;

pub use trial::{Seen, Trial, WRITTEN, seen};

use crate::{BlockError, LoopDevice, signature};
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The most levels of devices on each other. A device may stand on many, and real stacks are lower.
const DEEPEST: usize = 16;

/// A device or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// For people.
    pub name: String,
    source: Source,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    /// The counters of a block device, in /sys.
    Counters(PathBuf),
    /// The space that a file takes.
    Space(PathBuf),
}

impl Layer {
    /// Whether it is a file, which gives back space, and no block device.
    pub fn is_file(&self) -> bool {
        matches!(self.source, Source::Space(_))
    }

    /// Bytes that were discarded so far.
    fn count(&self) -> io::Result<u64> {
        match &self.source {
            Source::Space(path) => {
                // Less space is more that was discarded.
                Ok(u64::MAX - fs::metadata(path)?.blocks() * 512)
            }
            Source::Counters(path) => {
                // Sectors discarded, the fourteenth number (Documentation/block/stat.rst).
                let text = fs::read_to_string(path)?;
                let sectors = text.split_ascii_whitespace().nth(13);
                let sectors = sectors.and_then(|number| number.parse::<u64>().ok());
                sectors
                    .map(|sectors| sectors * 512)
                    .ok_or_else(|| io::ErrorKind::Unsupported.into())
            }
        }
    }
}

/// Why the layers under a mount are not known.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    /// Nothing is mounted there, or it cannot be found out.
    #[error("cannot find what is mounted on {}", directory.display())]
    Unknown {
        /// The directory.
        directory: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// There is no device below.
    #[error("{} is not on a block device", directory.display())]
    None {
        /// The directory.
        directory: PathBuf,
    },
    /// The list of mounts cannot be read.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// Nothing can be written there.
    #[error("cannot write in {}", directory.display())]
    Unwritten {
        /// The directory.
        directory: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// What a layer discarded is not known.
    #[error("cannot read what was discarded")]
    Uncounted(#[source] io::Error),
    /// The program that asks for discards cannot be run.
    #[error("cannot run fstrim")]
    NoFstrim(#[source] io::Error),
    /// It said something that it should not.
    #[error("fstrim printed something unexpected: {said}")]
    Strange {
        /// What it said.
        said: String,
    },
}

/// The layers under a mount, the topmost first.
#[derive(Debug)]
pub struct Layers {
    layers: Vec<Layer>,
}

impl Layers {
    /// The layers below the file system that is mounted on `directory`. If the system does not know
    /// the last one, it is `image`.
    ///
    /// # Errors
    /// [`LayerError::Unknown`] and [`LayerError::None`].
    pub fn under(directory: &Path, image: Option<&Path>) -> Result<Self, LayerError> {
        let unknown = |source: io::Error| LayerError::Unknown {
            directory: directory.to_owned(),
            source,
        };
        let at = directory.canonicalize().map_err(unknown)?;
        let mounts = signature::mounts()?;
        let mount = mounts
            .iter()
            .rev()
            .find(|mount| mount.mount_point == at)
            .ok_or_else(|| unknown(io::Error::other("nothing is")))?;
        let mut layers = Vec::new();
        descend(&mount.device, &mut layers).map_err(unknown)?;
        if let Some(image) = image {
            let image = image.canonicalize().map_err(unknown)?;
            if fs::metadata(&image).map_err(unknown)?.is_file() {
                layers.push(Layer {
                    name: shown(&image),
                    source: Source::Space(image),
                });
            } else {
                descend(&image, &mut layers).map_err(unknown)?;
            }
        }
        layers.dedup();
        if layers.is_empty() {
            let directory = directory.to_owned();
            return Err(LayerError::None { directory });
        }
        Ok(Self { layers })
    }

    /// The layers.
    fn names(&self) -> impl Iterator<Item = &Layer> {
        self.layers.iter()
    }

    /// The bytes that each one has discarded so far.
    ///
    /// # Errors
    /// Those of reading the counters.
    fn counts(&self) -> io::Result<Vec<u64>> {
        self.layers.iter().map(Layer::count).collect()
    }
}

fn shown(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

/// Appends a device and all that it stands on.
fn descend(device: &Path, layers: &mut Vec<Layer>) -> io::Result<()> {
    if layers.len() >= DEEPEST {
        return Ok(());
    }
    let metadata = match fs::metadata(device) {
        Ok(metadata) if metadata.file_type().is_block_device() => metadata,
        // A file system without a device, as overlay or tmpfs.
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let number = metadata.rdev();
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let system = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    layers.push(Layer {
        name: device.display().to_string(),
        source: Source::Counters(system.join("stat")),
    });
    if let Some(backing) = LoopDevice::backing_of(device) {
        if let Ok(metadata) = fs::metadata(&backing)
            && metadata.is_file()
            && !is_fuse(&backing)
        {
            layers.push(Layer {
                name: shown(&backing),
                source: Source::Space(backing),
            });
        }
        return Ok(());
    }
    for below in fs::read_dir(system.join("slaves"))
        .into_iter()
        .flatten()
        .flatten()
    {
        descend(&Path::new("/dev").join(below.file_name()), layers)?;
    }
    Ok(())
}

/// Whether a file is in a FUSE file system, whose numbers for used space are not reliable.
fn is_fuse(path: &Path) -> bool {
    const FUSE_MAGIC: u64 = 0x6573_5546;
    rustix::fs::statfs(path).is_ok_and(|found| found.f_type as u64 == FUSE_MAGIC)
}
