//! [`TestFile`]: a place to measure on that leaves nothing behind.

#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub(crate) use unix::Nameless;
#[cfg(unix)]
use unix::space;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub(crate) use windows::Nameless;
#[cfg(windows)]
use windows::space;

use crate::{
    AlignedBuffer, BlockDevice, BlockError, Engine, FileDevice, FileOptions, Hold, Operation,
    QueueOptions, Request, Wait,
};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Writes in flight while the file is filled.
const DEPTH: u32 = 4;

/// Left free on the file system for everyone else; a 64th of a small one.
const RESERVE: u64 = 64 << 20;

/// Names tried before giving up, where files without a name are not supported.
const ATTEMPTS: u32 = 16;

/// A file without a name, full of incompressible data, that vanishes when it
/// and the devices of it are dropped or the program ends, however it ends. On
/// Windows it has a name until then.
#[derive(Debug)]
pub struct TestFile {
    file: Arc<Nameless>,
    directory: PathBuf,
    size: u64,
}

impl TestFile {
    /// The file's content is made in pieces of this many bytes.
    pub const CHUNK: u64 = 4 << 20;

    /// Creates a file in `directory` of `size` bytes, rounded up to a multiple of 4096 and at least
    /// that. Writes all of it with data that follows from `seed`, so that it is nowhere sparse;
    /// then flushes it.
    ///
    /// `progress` is told the bytes written so far, after every 4 MiB, and may
    /// stop the work: [`BlockError::Interrupted`]. Other errors:
    /// [`BlockError::NoSpace`] with what is needed (including a small reserve)
    /// and what is free, [`BlockError::Create`], and what
    /// [`FileDevice`] reports.
    pub fn create(
        directory: &Path,
        size: u64,
        seed: u64,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Self, BlockError> {
        let failed = |source| BlockError::Create {
            directory: directory.to_owned(),
            source,
        };
        let size = whole_pages(size);
        Self::fits(directory, size)?;
        let file = Nameless::create(directory).map_err(failed)?;
        file.allocate(size)
            .map_err(|source| no_space(&source, directory, size).unwrap_or(failed(source)))?;
        let test_file = Self {
            file: Arc::new(file),
            directory: directory.to_owned(),
            size,
        };
        let device = test_file.device(None)?;
        fill(&device, seed, progress).map_err(|error| match error {
            BlockError::Io { ref source, .. } => no_space(source, directory, size).unwrap_or(error),
            error => error,
        })?;
        Ok(test_file)
    }

    /// Whether `directory` has room for a file of `size` bytes: [`BlockError::NoSpace`] if not,
    /// [`BlockError::Create`] if it cannot be asked.
    pub fn fits(directory: &Path, size: u64) -> Result<(), BlockError> {
        let space = space(directory).map_err(|source| BlockError::Create {
            directory: directory.to_owned(),
            source,
        })?;
        too_small(space, whole_pages(size)).map_or(Ok(()), Err)
    }

    /// Opens the file for reading and writing, around the page cache where
    /// that is possible; `engine` as in [`FileOptions::engine`].
    pub fn device(&self, engine: Option<Engine>) -> Result<FileDevice, BlockError> {
        self.device_with(&FileOptions {
            write: true,
            direct: true,
            engine,
            hold: Hold::Usual,
        })
    }

    /// Opens the file with other options; each device has a page-cache mode of
    /// its own. The file is always writable; `options.write` decides about the
    /// device.
    pub fn device_with(&self, options: &FileOptions) -> Result<FileDevice, BlockError> {
        let file = self
            .file
            .open_again(options.write)
            .map_err(|source| BlockError::Create {
                directory: self.directory.clone(),
                source,
            })?;
        let device = FileDevice::from_file(file, &self.directory, options)?;
        Ok(device.keeping(Arc::clone(&self.file)))
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Where the file lives.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Bytes that the file system says it keeps for the file: less than
    /// [`size`](Self::size) on one that compresses, deduplicates, or does not
    /// tell.
    pub fn allocated(&self) -> Result<u64, BlockError> {
        self.file.allocated().map_err(|source| BlockError::Examine {
            path: self.directory.clone(),
            source,
        })
    }

    /// Fills `into` with what [`create`](Self::create) writes to the start of
    /// chunk number `chunk`, at byte `chunk` × [`CHUNK`](Self::CHUNK).
    pub fn content(seed: u64, chunk: u64, into: &mut [u8]) {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(chunk.wrapping_mul(GOLDEN)))
            .fill_bytes(into);
    }
}

/// The space of a file system, bytes.
struct Space {
    /// The space that this user may still fill.
    available: u64,
    /// The size of the file system; 0 if it is unknown.
    total: u64,
}

/// The size of a file that was asked to have `size` bytes.
fn whole_pages(size: u64) -> u64 {
    size.clamp(1, i64::MAX as u64 - 4095).next_multiple_of(4096)
}

/// The refusal of a file system that has no room for `size` bytes.
fn too_small(space: Space, size: u64) -> Option<BlockError> {
    let Space { available, total } = space;
    if total == 0 {
        return None;
    }
    let needed = size.saturating_add(RESERVE.min(total / 64));
    (available < needed).then_some(BlockError::NoSpace { needed, available })
}

/// The [`BlockError::NoSpace`] for a system error that means a full disk; `None` for other errors.
fn no_space(source: &io::Error, directory: &Path, needed: u64) -> Option<BlockError> {
    if source.kind() != io::ErrorKind::StorageFull {
        return None;
    }
    let available = space(directory).map_or(0, |space| space.available);
    Some(BlockError::NoSpace { needed, available })
}

/// Makes a file by `create`, which gets names in `directory` until one is new.
fn under_a_new_name<T>(directory: &Path, create: impl Fn(&Path) -> io::Result<T>) -> io::Result<T> {
    let mut attempts = 0;
    loop {
        let random = RandomState::new().hash_one(attempts) as u32;
        match create(&directory.join(format!(".cryptmark-{random:08x}"))) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempts < ATTEMPTS => {
                attempts += 1;
            }
            outcome => return outcome,
        }
    }
}

/// Fills a whole device with incompressible data, the same for the same
/// `seed`, and flushes it. `progress` hears the bytes written; when it breaks,
/// the error is [`BlockError::Interrupted`].
pub fn fill(
    device: &dyn BlockDevice,
    seed: u64,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<(), BlockError> {
    let size = device.geometry().size;
    let mut queue = device.queue(QueueOptions::new(DEPTH))?;
    let mut done = 0;
    let mut spare = Vec::new();
    for chunk in 0..size.div_ceil(TestFile::CHUNK) {
        let offset = chunk * TestFile::CHUNK;
        let length = TestFile::CHUNK.min(size - offset) as usize;
        if queue.in_flight() == DEPTH {
            spare.extend(settle(&mut *queue, &mut done, progress)?);
        }
        let mut buffer = spare
            .pop()
            .filter(|spare: &AlignedBuffer| spare.len() == length)
            .unwrap_or_else(|| AlignedBuffer::new(length));
        TestFile::content(seed, chunk, &mut buffer);
        queue.submit(Request::new(Operation::Write, offset, buffer, chunk));
    }
    while settle(&mut *queue, &mut done, progress)?.is_some() {}
    device.flush()
}

/// Waits for one write; gives its buffer back.
fn settle(
    queue: &mut dyn crate::Queue,
    done: &mut u64,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Option<AlignedBuffer>, BlockError> {
    let Some(completion) = queue.reap(Wait::Yes) else {
        return Ok(None);
    };
    completion.result?;
    *done += completion.request.length();
    match progress(*done) {
        ControlFlow::Continue(()) => Ok(Some(completion.request.buffer)),
        ControlFlow::Break(()) => Err(BlockError::Interrupted),
    }
}
