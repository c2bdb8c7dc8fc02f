//! [`TestFile`]: a place to measure on that leaves nothing behind.

use crate::{
    AlignedBuffer, BlockDevice, BlockError, Engine, FileDevice, FileOptions, Operation,
    QueueOptions, Request, Wait,
};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::fs::{FallocateFlags, OFlags, StatVfs, fallocate, statvfs};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::ops::ControlFlow;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Writes in flight while the file is filled.
const DEPTH: u32 = 4;

/// Left free on the file system for everyone else; a 64th of a small one.
const RESERVE: u64 = 64 << 20;

/// Names tried before giving up, where files without a name are not supported.
const ATTEMPTS: u32 = 16;

/// A file without a name, full of incompressible data, that vanishes when it
/// is dropped or the program ends, however it ends.
#[derive(Debug)]
pub struct TestFile {
    file: File,
    directory: PathBuf,
    size: u64,
}

impl TestFile {
    /// The file's content is made in pieces of this many bytes.
    pub const CHUNK: u64 = 4 << 20;

    /// Creates a file in `directory` of `size` bytes, rounded up to a multiple
    /// of 4096 and at least that, and writes all of it with data that follows
    /// from `seed`, so that it is nowhere sparse; then flushes it.
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
        let size = size.clamp(1, i64::MAX as u64 - 4095).next_multiple_of(4096);
        let space = statvfs(directory).map_err(|errno| failed(errno.into()))?;
        if let Some(error) = too_small(&space, size) {
            return Err(error);
        }
        let file = nameless(directory).map_err(failed)?;
        allocate(&file, size)
            .map_err(|source| no_space(&source, directory, size).unwrap_or(failed(source)))?;
        let test_file = Self {
            file,
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

    /// Opens the file for reading and writing, around the page cache where
    /// that is possible; `engine` as in [`FileOptions::engine`].
    pub fn device(&self, engine: Option<Engine>) -> Result<FileDevice, BlockError> {
        self.device_with(&FileOptions {
            write: true,
            direct: true,
            engine,
            exclusive: false,
        })
    }

    /// Opens the file with other options; each device has a page-cache mode of
    /// its own. The file is always writable; `options.write` decides about the
    /// device.
    pub fn device_with(&self, options: &FileOptions) -> Result<FileDevice, BlockError> {
        // Opening anew, and not duplicating, keeps O_DIRECT apart. Without
        // /proc the duplicates have to share it.
        let again = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(again)
            .or_else(|_| self.file.try_clone())
            .map_err(|source| BlockError::Create {
                directory: self.directory.clone(),
                source,
            })?;
        FileDevice::from_file(file, &self.directory, options)
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
        match self.file.metadata() {
            Ok(metadata) => Ok(metadata.blocks() * 512),
            Err(source) => Err(BlockError::Examine {
                path: self.directory.clone(),
                source,
            }),
        }
    }

    /// Fills `into` with what [`create`](Self::create) writes to the start of
    /// chunk number `chunk`, at byte `chunk` × [`CHUNK`](Self::CHUNK).
    pub fn content(seed: u64, chunk: u64, into: &mut [u8]) {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(chunk.wrapping_mul(GOLDEN)))
            .fill_bytes(into);
    }
}

/// The refusal of a file system that has no room for `size` bytes.
fn too_small(space: &StatVfs, size: u64) -> Option<BlockError> {
    // Some file systems do not know their size and say 0.
    if space.f_blocks == 0 {
        return None;
    }
    let available = space.f_bavail.saturating_mul(space.f_frsize);
    let reserve = RESERVE.min(space.f_blocks.saturating_mul(space.f_frsize) / 64);
    let needed = size.saturating_add(reserve);
    (available < needed).then_some(BlockError::NoSpace { needed, available })
}

/// What an error of the system means if it means that the disk is full.
fn no_space(source: &io::Error, directory: &Path, needed: u64) -> Option<BlockError> {
    if source.kind() != io::ErrorKind::StorageFull {
        return None;
    }
    let available = statvfs(directory).map_or(0, |space| space.f_bavail * space.f_frsize);
    Some(BlockError::NoSpace { needed, available })
}

/// A file that has no name any more, or never had one.
fn nameless(directory: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    let unnamed = options
        .clone()
        // Not exclusive: another program that is to reach it is lent a name.
        .custom_flags(OFlags::TMPFILE.bits() as i32)
        .open(directory);
    match unnamed.as_ref().map_err(io::Error::raw_os_error) {
        // Kernels and file systems that do not know O_TMPFILE see a directory
        // being opened for writing.
        Err(Some(errno))
            if errno == Errno::OPNOTSUPP.raw_os_error()
                || errno == Errno::ISDIR.raw_os_error()
                || errno == Errno::INVAL.raw_os_error() => {}
        _ => return unnamed,
    }
    options.create_new(true);
    let mut attempts = 0;
    loop {
        let random = RandomState::new().hash_one(attempts) as u32;
        let path = directory.join(format!(".cryptmark-{random:08x}"));
        match options.open(&path) {
            Ok(file) => {
                std::fs::remove_file(&path)?;
                return Ok(file);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempts < ATTEMPTS => {
                attempts += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Takes the space before it is written to, so that too little is known early.
fn allocate(file: &File, size: u64) -> io::Result<()> {
    loop {
        match fallocate(file, FallocateFlags::empty(), 0, size) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            // The writes will do it.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return file.set_len(size),
            Err(errno) => return Err(errno.into()),
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
