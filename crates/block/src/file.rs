//! [`FileDevice`]: a regular file or a block device of the system.

#[cfg(target_os = "linux")]
mod extents;
mod footer;
mod open;
mod shared;
mod system;
mod threads;

pub(crate) use shared::Shared;

use crate::hold::{self, Held};
use crate::signature::{self, Content};
use crate::testfile::Nameless;
use crate::{
    BlockDevice, BlockError, ByteRange, Extent, Geometry, Hold, InlineQueue, OperationKind, Part,
    Queue, QueueOptions,
};
use std::fmt;
use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};
use std::sync::Arc;
#[cfg(target_os = "linux")]
use std::sync::{Mutex, PoisonError};

/// How the queue of a file reaches the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// Linux's io_uring: one thread, many requests.
    IoUring,
    /// `pread` and `pwrite`, or what the system has for them, on a thread for each
    /// request in flight, 64 at most.
    Threads,
    /// `pread` and `pwrite` inside `submit`: one request at a time, whatever
    /// the depth.
    Pread,
}

impl Engine {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::IoUring, Self::Threads, Self::Pread];

    /// The name in records: `io_uring`, `threads` or `pread`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::IoUring => "io_uring",
            Self::Threads => "threads",
            Self::Pread => "pread",
        }
    }

    /// Whether this system provides the engine: io_uring may be missing,
    /// switched off or filtered; the others always work.
    pub fn is_available(self) -> bool {
        self != Self::IoUring || open::ring_permitted()
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The kind of object that a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathKind {
    /// A file in a file system.
    RegularFile,
    /// A disk, a partition or something that acts as one.
    BlockDevice,
}

impl PathKind {
    /// The kind of an object with this metadata; `None` if it cannot serve as a device. On systems
    /// other than Linux, only files can.
    pub fn of(metadata: &Metadata) -> Option<Self> {
        system::kind(metadata)
    }
}

impl fmt::Display for PathKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RegularFile => "regular file",
            Self::BlockDevice => "block device",
        })
    }
}

/// How to open a [`FileDevice`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOptions {
    /// Open for writing too.
    pub write: bool,
    /// Go around the page cache where the file system can.
    pub direct: bool,
    /// `None` chooses. `pread` is taken on memory-backed file systems, where io_uring hands every
    /// request to a worker thread (measured: 25–32 thousand requests a second instead of more than
    /// 700 thousand). It is also taken in User-Mode Linux, where such requests never finish.
    /// Elsewhere it is io_uring if the system permits it, else threads.
    pub engine: Option<Engine>,
    /// Whom it keeps out for as long as it is open.
    pub hold: Hold,
}

impl Default for FileOptions {
    /// Read only, direct, the engine chosen, held as usual.
    fn default() -> Self {
        Self {
            write: false,
            direct: true,
            engine: None,
            hold: Hold::Usual,
        }
    }
}

/// How the lock is taken under which cryptsetup changes a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderLock {
    /// So that nobody changes the header while the device is written: by
    /// [`keep_header`](BlockDevice::keep_header).
    WhileWritten,
    /// So that nobody changes the header, if the lock can be had at once.
    IfFree,
    /// So that nobody changes the header.
    Shared,
    /// So that nobody reads it either.
    Alone,
}

/// A regular file or a block device.
///
/// The size is the file's at the time of opening, rounded down to the logical
/// block. Once a read or a flush has found the file shorter, writes and flushes fail
/// ([`BlockError::CutOff`]); a write of its last bytes that comes first hides it. Flushes fail
/// once the file has lost its last name ([`BlockError::Removed`]). A
/// discard punches a hole into a file, which afterwards reads as zeros; on a block
/// device the content is then up to the device. A flush is `fdatasync`, or
/// `FlushFileBuffers`.
pub struct FileDevice {
    shared: Arc<Shared>,
    engine: Engine,
    #[cfg(target_os = "linux")]
    lock: Mutex<Option<hold::MetadataLock>>,
    /// The path that names it in errors, if the lock is shared while something is written.
    locks: Option<PathBuf>,
    /// Keeps others out.
    _held: Option<Held>,
    /// Lets the file be opened again for as long as this is.
    alive: Option<Arc<Nameless>>,
    /// Whether something stands in the file behind the device.
    has_footer: bool,
}

impl FileDevice {
    /// Opens what is at `path`, and holds it as [`hold::open`] does.
    ///
    /// # Errors
    /// Those of [`hold::open`], and [`BlockError::Engine`] when the engine asked for is
    /// not available.
    pub fn open(path: &Path, options: &FileOptions) -> Result<Self, BlockError> {
        let file = hold::open(path, options.write, options.hold)?;
        let device = Self::from_file(file, path, options)?;
        Ok(Self {
            _held: Some(Held::of(&device.shared.file)),
            ..device
        })
    }

    /// Makes a device of an open file, which must have been opened for reading
    /// and, if `options.write`, for writing; `path` names it in errors.
    ///
    /// `O_DIRECT` is set or cleared on the file's description, which all
    /// duplicates of the descriptor share; Windows opens the file anew.
    /// `options.hold` has no effect: who opened the file knows how it is held.
    pub fn from_file(file: File, path: &Path, options: &FileOptions) -> Result<Self, BlockError> {
        let (shared, inside_submit) = open::examine(file, path, options)?;
        let engine = open::choose_engine(options.engine, inside_submit)?;
        Ok(Self {
            shared: Arc::new(shared),
            engine,
            #[cfg(target_os = "linux")]
            lock: Mutex::default(),
            locks: None,
            _held: None,
            alive: None,
            has_footer: false,
        })
    }

    /// The same device, with a lock of the header on it as long as it is open, or for its
    /// [writers](BlockDevice::keep_header). If the folder of such locks cannot be used, it goes on
    /// without, as cryptsetup does. `path` names it in errors.
    ///
    /// # Errors
    /// [`BlockError::InUse`] where another program does not let go of it.
    pub fn locking_header(self, path: &Path, how: HeaderLock) -> Result<Self, BlockError> {
        if how == HeaderLock::WhileWritten {
            let locks = Some(path.to_owned());
            return Ok(Self { locks, ..self });
        }
        self.lock_header(path, how)?;
        Ok(self)
    }

    #[cfg(target_os = "linux")]
    fn lock_header(&self, path: &Path, how: HeaderLock) -> Result<(), BlockError> {
        let lock = match how {
            HeaderLock::IfFree => Ok(hold::MetadataLock::shared_if_free(self, path)),
            HeaderLock::Shared | HeaderLock::WhileWritten => {
                hold::MetadataLock::shared(self, path).map(Some)
            }
            HeaderLock::Alone => hold::MetadataLock::of(self, path).map(Some),
        };
        let lock = match lock {
            Err(BlockError::Examine { .. }) => None,
            lock => lock?,
        };
        *self.lock.lock().unwrap_or_else(PoisonError::into_inner) = lock;
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    fn lock_header(&self, _: &Path, _: HeaderLock) -> Result<(), BlockError> {
        Ok(())
    }

    /// The same device, which also keeps `file` in existence: the file goes away with its last
    /// owner.
    pub(crate) fn keeping(self, file: Arc<Nameless>) -> Self {
        Self {
            alive: Some(file),
            ..self
        }
    }

    /// How [`queue`](BlockDevice::queue) reaches the system.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// Whether requests go around the page cache. `false` where that was
    /// refused, and on memory-backed file systems, where it means nothing.
    pub fn is_direct(&self) -> bool {
        self.shared.direct
    }

    /// A path by which other processes of this user can open it for as long as
    /// it is open here, even if it has no name.
    /// Nothing where the system has no such paths.
    pub fn path_for_others(&self) -> Option<PathBuf> {
        system::path_for_others(&self.shared.file)
    }

    /// The open file, whose description has the lock.
    #[cfg(target_os = "linux")]
    pub(crate) fn file(&self) -> &Arc<File> {
        &self.shared.file
    }

    /// The kind of object that the path leads to.
    pub fn path_kind(&self) -> PathKind {
        self.shared.kind
    }
}

impl fmt::Debug for FileDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileDevice")
            .field("file", &self.shared.file)
            .field("geometry", &self.shared.geometry)
            .field("direct", &self.shared.direct)
            .field("engine", &self.engine)
            .field("alive", &self.alive)
            .finish()
    }
}

impl BlockDevice for FileDevice {
    fn geometry(&self) -> Geometry {
        self.shared.geometry
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        self.shared.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        self.shared.write_at(offset, data)
    }

    fn flush(&self) -> Result<(), BlockError> {
        self.shared.flush()
    }

    fn discard(&self, range: ByteRange) -> Result<(), BlockError> {
        self.shared.discard(range)
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        match self.engine {
            #[cfg(target_os = "linux")]
            Engine::IoUring => Ok(Box::new(crate::uring::UringQueue::open(
                Arc::clone(&self.shared),
                options,
            )?)),
            Engine::Threads => Ok(Box::new(threads::ThreadQueue::open(
                Arc::clone(&self.shared),
                options,
            )?)),
            _ => Ok(Box::new(InlineQueue::open(
                self,
                options,
                Some(Part::Submit),
            )?)),
        }
    }

    fn keep_header(&self, kept: bool) -> Result<(), BlockError> {
        let Some(path) = &self.locks else {
            return Ok(());
        };
        if kept {
            return self.lock_header(path, HeaderLock::Shared);
        }
        #[cfg(target_os = "linux")]
        drop(self.lock.lock().map(|mut lock| lock.take()));
        Ok(())
    }

    /// Reads the open file, even if another file has its name by now. Not for files that are opened
    /// around the page cache.
    fn content(&self) -> Result<Content, BlockError> {
        signature::of_file(&self.shared.file).map_err(|source| failed(OperationKind::Read, source))
    }

    /// A block device counts as stored throughout. So does the rest of a file after its first few
    /// thousand extents. Holes end at block boundaries, or with the range.
    fn extents(&self, range: ByteRange) -> Result<Vec<Extent>, BlockError> {
        let size = self.shared.geometry.size;
        match range.within(ByteRange::new(0, size)) {
            true => self.shared.extents(range),
            false => Err(BlockError::OutOfRange {
                offset: range.offset,
                length: range.length,
                size,
            }),
        }
    }

    /// Nothing is reserved on a block device, or if the system or the file system cannot.
    fn reserve(&self, range: ByteRange) -> Result<(), BlockError> {
        if !self.shared.write {
            return Err(BlockError::ReadOnly);
        }
        if !self.is_resizable() || range.length == 0 {
            return Ok(());
        }
        system::reserve(&self.shared.file, range).map_err(|source| BlockError::Io {
            operation: OperationKind::Write,
            offset: range.offset,
            length: range.length,
            source,
        })
    }

    fn length(&self) -> Result<u64, BlockError> {
        if !self.is_resizable() {
            return Ok(self.shared.geometry.size);
        }
        let metadata = self.shared.file.metadata();
        Ok(metadata
            .map_err(|source| failed(OperationKind::Read, source))?
            .len())
    }

    fn is_resizable(&self) -> bool {
        self.shared.kind == PathKind::RegularFile && !self.has_footer
    }

    /// The file stays held meanwhile. If growing it fails, it is cut back to its old length.
    fn set_len(&mut self, bytes: u64) -> Result<(), BlockError> {
        let operation = OperationKind::Write;
        let is_resizable = self.is_resizable();
        let shared = match Arc::get_mut(&mut self.shared) {
            Some(shared) if is_resizable => shared,
            _ => return Err(BlockError::Unsupported { operation }),
        };
        if !shared.write {
            return Err(BlockError::ReadOnly);
        }
        let before = shared.file.metadata().map(|found| found.len());
        let changed = shared.file.set_len(bytes);
        let done = changed.and_then(|()| shared.file.sync_all());
        if let (Err(_), Ok(before)) = (&done, before)
            && before < bytes
        {
            // The first error is the one that counts.
            let _ = shared.file.set_len(before);
        }
        done.map_err(|source| BlockError::Io {
            operation,
            offset: bytes,
            length: 0,
            source,
        })?;
        shared.geometry.size = bytes - bytes % u64::from(shared.geometry.logical_block);
        Ok(())
    }
}

fn failed(operation: OperationKind, source: std::io::Error) -> BlockError {
    BlockError::Io {
        operation,
        offset: 0,
        length: 0,
        source,
    }
}
