//! The directory with the file, as the kernel asks for it.

use super::Place;
use crate::{Access, Export, Lane, Zeros};
use block::{BlockError, ByteRange};
use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenAccMode, OpenFlags, RenameFlags, ReplyAttr,
    ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs,
    ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::FallocateFlags;
use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The most bytes of a request.
const PIECE: u32 = 1 << 20;

/// Of a part of one that stays in a core's cache.
const CACHED_PART: usize = 256 << 10;

/// Nothing but the mount changes the file, so what the kernel knows stays true.
const FOREVER: Duration = Duration::from_secs(u32::MAX as u64);

/// The file in a directory; a file that is mounted on is the root itself.
const INSIDE: INodeNo = INodeNo(2);

/// As [`Filesystem::statfs`] says.
const LONGEST_NAME: usize = 255;

/// The purposes for which a [`FileHandle`] was opened.
const FOR_READING: FileHandle = FileHandle(0);
const FOR_WRITING: FileHandle = FileHandle(1);

/// Of lseek(2).
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

self_cell::self_cell!(
    /// A lane with the export that it leads to: the threads are fuser's, which
    /// keep nothing between two requests.
    struct OwnLane {
        owner: Arc<Export>,
        #[not_covariant]
        dependent: Lane,
    }
);

thread_local! {
    /// Each of fuser's threads serves one session, for as long as it lives.
    static LANE: RefCell<Option<OwnLane>> = const { RefCell::new(None) };
}

/// A directory with one file, or one file alone.
pub(super) struct FileSystem {
    export: Arc<Export>,
    /// The name of the file in its directory; `None` for a file alone.
    name: Option<OsString>,
    /// Bytes that are written together.
    part: usize,
    since: SystemTime,
    owner: (u32, u32),
}

fn errno(error: &BlockError) -> Errno {
    Errno::from_i32(error.errno())
}

impl FileSystem {
    /// A server with one thread encrypts and writes parts that fit into its core's cache, where it
    /// has just copied them. Several threads are meant for disks, which want large requests.
    pub(super) fn new(export: Arc<Export>, place: &Place, threads: usize) -> Self {
        Self {
            export,
            part: match threads {
                1 => CACHED_PART,
                _ => PIECE as usize,
            },
            name: match place {
                Place::In { name, .. } => Some(name.clone()),
                Place::Over(_) => None,
            },
            since: SystemTime::now(),
            owner: (
                rustix::process::getuid().as_raw(),
                rustix::process::getgid().as_raw(),
            ),
        }
    }

    /// Does something by this thread's lane.
    fn by_lane<T>(
        &self,
        work: impl FnOnce(&mut Lane<'_>) -> Result<T, BlockError>,
    ) -> Result<T, Errno> {
        LANE.with_borrow_mut(|own| {
            if own.is_none() {
                // The kernel may ask for memory by writing to what stands on this file: this thread
                // must not wait for that. Only root may say so, and only root mounts such things.
                let _ = rustix::process::configure_io_flusher_behavior(true);
                let lane = OwnLane::try_new(Arc::clone(&self.export), |export| {
                    export.lane(PIECE as usize)
                });
                *own = Some(lane.map_err(|error| errno(&error))?);
            }
            match own {
                Some(own) => own.with_dependent_mut(|_, lane| work(lane)),
                None => Err(BlockError::QueueFull { depth: 1 }),
            }
            .map_err(|error| errno(&error))
        })
    }

    fn file(&self) -> INodeNo {
        match self.name {
            Some(_) => INSIDE,
            None => INodeNo::ROOT,
        }
    }

    fn attributes(&self, inode: INodeNo) -> Option<FileAttr> {
        let writable = self.export.access() == Access::Write;
        let (kind, perm, nlink, size) = match inode {
            file if file == self.file() => {
                let perm = if writable { 0o600 } else { 0o400 };
                (FileType::RegularFile, perm, 1, self.export.size())
            }
            INodeNo::ROOT => (FileType::Directory, 0o500, 2, 0),
            _ => return None,
        };
        Some(FileAttr {
            ino: inode,
            size,
            blocks: size / 512,
            atime: self.since,
            mtime: self.since,
            ctime: self.since,
            crtime: self.since,
            kind,
            perm,
            nlink,
            uid: self.owner.0,
            gid: self.owner.1,
            rdev: 0,
            blksize: self.export.geometry().physical_block.max(4096),
            flags: 0,
        })
    }

    fn allocate(&self, range: ByteRange, mode: i32) -> Result<(), Errno> {
        let mode = FallocateFlags::from_bits_retain(mode as u32);
        let zeros = match mode - FallocateFlags::KEEP_SIZE {
            FallocateFlags::PUNCH_HOLE if self.export.punches() => Zeros::Punched,
            FallocateFlags::PUNCH_HOLE if self.export.discards() => Zeros::Written,
            FallocateFlags::ZERO_RANGE => Zeros::Written,
            _ if self.export.access() == Access::Read => return Err(Errno::EROFS),
            _ => return Err(Errno::EOPNOTSUPP),
        };
        // Behind the end there is nothing, and nothing grows there.
        let end = range.offset.saturating_add(range.length);
        if end > self.export.size() && !mode.contains(FallocateFlags::KEEP_SIZE) {
            return Err(Errno::ENOSPC);
        }
        let start = range.offset.min(self.export.size());
        let range = ByteRange::new(start, end.min(self.export.size()) - start);
        self.by_lane(|lane| lane.zero(range, zeros))
    }

    fn seek(&self, offset: u64, hole: bool) -> Result<u64, Errno> {
        let size = self.export.size();
        if offset >= size {
            return Err(Errno::ENXIO);
        }
        let rest = ByteRange::new(offset, size - offset);
        let extents = self.export.extents(rest).map_err(|error| errno(&error))?;
        let found = extents.iter().find(|extent| extent.hole == hole);
        match found {
            Some(extent) => Ok(extent.range.offset.max(offset)),
            // The end of a file is a hole.
            None if hole => Ok(size),
            None => Err(Errno::ENXIO),
        }
    }
}

impl Filesystem for FileSystem {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // The kernel works without the features that it lacks, so errors are ignored.
        let _ = config.set_max_write(PIECE);
        if let Err(most) = config.set_max_readahead(PIECE) {
            let _ = config.set_max_readahead(most);
        }
        for wish in [
            InitFlags::FUSE_ASYNC_DIO,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP,
        ] {
            let _ = config.add_capabilities(wish);
        }
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name.len() > LONGEST_NAME {
            return reply.error(Errno::ENAMETOOLONG);
        }
        let known = self.name.as_deref() == Some(name);
        match self.attributes(INSIDE) {
            Some(attributes) if parent == INodeNo::ROOT && known => {
                reply.entry(&FOREVER, &attributes, Generation(0));
            }
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode) {
            Some(attributes) => reply.attr(&FOREVER, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let other_size = size.is_some_and(|size| size != self.export.size());
        match self.attributes(inode) {
            None => reply.error(Errno::ENOENT),
            _ if other_size || mode.is_some() || uid.is_some() || gid.is_some() => {
                reply.error(Errno::EPERM);
            }
            // Times are not kept, but a program that copies them along must not fail.
            Some(attributes) => reply.attr(&FOREVER, &attributes),
        }
    }

    // Nothing can be made here, or taken away: symlink and link say so already,
    // and who creates a file is referred to mknod.

    fn mknod(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(Errno::EPERM);
    }

    fn mkdir(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(Errno::EPERM);
    }

    fn unlink(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EPERM);
    }

    fn rename(
        &self,
        _: &Request,
        _: INodeNo,
        _: &OsStr,
        _: INodeNo,
        _: &OsStr,
        _: RenameFlags,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::EPERM);
    }

    fn open(&self, _: &Request, inode: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let write = flags.acc_mode() != OpenAccMode::O_RDONLY;
        if inode != self.file() {
            return reply.error(Errno::EISDIR);
        }
        if write && self.export.access() == Access::Read {
            return reply.error(Errno::EROFS);
        }
        let handle = if write { FOR_WRITING } else { FOR_READING };
        // Not FOPEN_DIRECT_IO: it lets a buffered read that overlaps a direct
        // write keep what was there before. O_DIRECT goes around the cache anyway.
        reply.opened(handle, FopenFlags::FOPEN_KEEP_CACHE);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let rest = self.export.size().saturating_sub(offset);
        let length = u64::from(size.min(PIECE)).min(rest) as usize;
        if length == 0 {
            return reply.data(&[]);
        }
        let mut reply = Some(reply);
        let done = self.by_lane(|lane| {
            let data = lane.read(offset, length)?;
            if let Some(reply) = reply.take() {
                reply.data(data);
            }
            Ok(())
        });
        if let (Err(error), Some(reply)) = (done, reply) {
            reply.error(error);
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let rest = self.export.size().saturating_sub(offset);
        let length = (data.len() as u64).min(rest).min(u64::from(PIECE)) as usize;
        // As at the end of a disk.
        if length == 0 && !data.is_empty() {
            return reply.error(Errno::ENOSPC);
        }
        let done = self.by_lane(|lane| {
            let mut at = offset;
            for part in data[..length].chunks(self.part) {
                lane.space(part.len()).copy_from_slice(part);
                lane.write(at)?;
                at += part.len() as u64;
            }
            Ok(())
        });
        match done {
            Ok(()) => reply.written(length as u32),
            Err(error) => reply.error(error),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, handle: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        if handle == FOR_READING {
            return reply.ok();
        }
        answer(self.by_lane(|lane| lane.flush()), reply);
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        answer(self.by_lane(|lane| lane.flush()), reply);
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        answer(self.allocate(ByteRange::new(offset, length), mode), reply);
    }

    fn lseek(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let found = match (u64::try_from(offset), whence) {
            (Ok(offset), SEEK_DATA) => self.seek(offset, false),
            (Ok(offset), SEEK_HOLE) => self.seek(offset, true),
            _ => Err(Errno::EINVAL),
        };
        match found {
            Ok(offset) => reply.offset(offset as i64),
            Err(error) => reply.error(error),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        // The mount is a file, which has no entries.
        let Some(name) = &self.name else {
            return reply.error(Errno::ENOTDIR);
        };
        let entries = [
            (INodeNo::ROOT, FileType::Directory, OsStr::new(".")),
            (INodeNo::ROOT, FileType::Directory, OsStr::new("..")),
            (INSIDE, FileType::RegularFile, name),
        ];
        for (next, (inode, kind, name)) in (1..).zip(entries).skip(offset as usize) {
            if reply.add(inode, next, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        // A loop device takes the block for the smallest discard.
        let block = self.export.geometry().discard_granularity.unwrap_or(4096);
        let blocks = self.export.size() / u64::from(block);
        reply.statfs(blocks, 0, 0, 1, 0, block, LONGEST_NAME as u32, block);
    }
}

fn answer(done: Result<(), Errno>, reply: ReplyEmpty) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}
