//! One operation on a file system, timed from its first system call until what
//! it wrote has reached the device.

use crate::clock::Clock;
use crate::file_system::Files;
use crate::file_system::content::{Noise, Place, SPARSE};
use block::{AlignedBuffer, BlockDevice, BlockError, FileDevice, FileOptions, Hold};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Barrier;

/// The action on the files of each job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFiles {
    /// Create and write.
    Write,
    /// Read.
    Read,
    /// Copy each file in its own directory.
    Copy,
    /// Ask for the attributes.
    Stat,
    /// Remove.
    Remove,
    /// Read the names in all directories.
    List,
    /// Rename each file to the name of its copy.
    Rename,
    /// Read all pieces in an order without a pattern.
    RandomRead,
    /// Create, and write piece by piece, each after opening the file.
    Append,
    /// Create, and write some of the pieces.
    Sparse,
    /// Write to the device at the root itself, each file's bytes in one request.
    Encrypt,
}

/// The files, their place, and the number of concurrent jobs.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    /// The mounted directory, or a device.
    pub root: &'a Path,
    /// The files of each job.
    pub files: &'a Files,
    /// How many do the same at a time, each with files of its own.
    pub jobs: u32,
    /// Bytes of a system call.
    pub buffer: usize,
    /// The content that is written.
    pub noise: &'a Noise,
    /// The device, if it has a cache of its own for the file system's writes.
    pub caching: Option<&'a Path>,
    /// The file system below, if files are encrypted above one.
    pub below: Option<&'a Path>,
}

/// Does `what` with all files; seconds.
///
/// # Errors
/// The first of any job.
pub fn on_files(what: OnFiles, load: Load<'_>) -> io::Result<f64> {
    let clock = Clock::get();
    let start_line = Barrier::new(load.jobs as usize + 1);
    let end = |outcomes: Vec<io::Result<()>>| outcomes.into_iter().collect::<io::Result<()>>();
    if load.jobs == 1 {
        let begun = clock.now();
        lane(what, load, 0)?;
        settle(what, load)?;
        return Ok(clock.seconds(clock.now() - begun));
    }
    std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..load.jobs)
            .map(|job| {
                let start_line = &start_line;
                scope.spawn(move || {
                    start_line.wait();
                    lane(what, load, job)
                })
            })
            .collect();
        start_line.wait();
        let begun = clock.now();
        let outcomes = lanes
            .into_iter()
            .map(|lane| match lane.join() {
                Ok(outcome) => outcome,
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect();
        end(outcomes)?;
        settle(what, load)?;
        Ok(clock.seconds(clock.now() - begun))
    })
}

/// Brings the changes of an operation to the device.
fn settle(what: OnFiles, load: Load<'_>) -> io::Result<()> {
    match what {
        OnFiles::Read | OnFiles::RandomRead | OnFiles::Stat | OnFiles::List | OnFiles::Encrypt => {
            Ok(())
        }
        OnFiles::Write
        | OnFiles::Copy
        | OnFiles::Remove
        | OnFiles::Rename
        | OnFiles::Append
        | OnFiles::Sparse => synced(load),
    }
}

/// Brings all data of the file system to the device.
fn synced(load: Load<'_>) -> io::Result<()> {
    rustix::fs::syncfs(File::open(load.root)?)?;
    if let Some(below) = load.below {
        rustix::fs::syncfs(File::open(below)?)?;
    }
    match load.caching {
        Some(device) => File::open(device)?.sync_all(),
        None => Ok(()),
    }
}

/// One job's part.
fn lane(what: OnFiles, load: Load<'_>, job: u32) -> io::Result<()> {
    let directory = Place::directory(load.root, job);
    match what {
        OnFiles::Encrypt => return encrypt(load, job).map_err(as_system),
        OnFiles::List => return list(&directory),
        OnFiles::RandomRead => return random_read(load, job),
        OnFiles::Append => return append(load, job),
        OnFiles::Write | OnFiles::Sparse => make_directories(load, job)?,
        _ => {}
    }
    let mut buffer = match what {
        OnFiles::Read | OnFiles::Copy => vec![0; load.buffer],
        _ => Vec::new(),
    };
    for index in 0..load.files.count {
        let place = Place { job, index };
        let path = directory.join(load.files.path(index));
        let copy = || directory.join(load.files.copy(index));
        match what {
            OnFiles::Write => write(&path, place, load)?,
            OnFiles::Sparse => write_pieces(&path, place, load)?,
            OnFiles::Read => {
                let mut file = File::open(&path)?;
                while file.read(&mut buffer)? > 0 {}
            }
            OnFiles::Copy => {
                let (mut from, mut to) = (File::open(&path)?, File::create_new(copy())?);
                loop {
                    match from.read(&mut buffer)? {
                        0 => break,
                        length => to.write_all(&buffer[..length])?,
                    }
                }
            }
            OnFiles::Stat => {
                fs::symlink_metadata(&path)?;
            }
            OnFiles::Remove => fs::remove_file(&path)?,
            OnFiles::Rename => fs::rename(&path, copy())?,
            OnFiles::List | OnFiles::RandomRead | OnFiles::Append | OnFiles::Encrypt => {}
        }
    }
    match what {
        OnFiles::Remove => remove_directories(load, job),
        _ => Ok(()),
    }
}

/// The directories of a job's files, each behind the one that holds it.
fn directories(load: Load<'_>, job: u32) -> Vec<PathBuf> {
    let root = Place::directory(load.root, job);
    let mut known = HashSet::new();
    let mut all = vec![root.clone()];
    for index in 0..load.files.count {
        let lowest = load.files.directory(index);
        let mut above: Vec<&Path> = lowest.ancestors().collect();
        above.reverse();
        for path in above.into_iter().skip(1) {
            if known.insert(path.to_owned()) {
                all.push(root.join(path));
            }
        }
    }
    all
}

fn make_directories(load: Load<'_>, job: u32) -> io::Result<()> {
    directories(load, job).iter().try_for_each(fs::create_dir)
}

fn remove_directories(load: Load<'_>, job: u32) -> io::Result<()> {
    let all = directories(load, job);
    all.iter().rev().try_for_each(fs::remove_dir)
}

/// Reads all names below `directory`.
fn list(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            list(&entry.path())?;
        }
    }
    Ok(())
}

/// Reads every piece of every file once, in an order without a pattern.
fn random_read(load: Load<'_>, job: u32) -> io::Result<()> {
    let directory = Place::directory(load.root, job);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(u64::from(job));
    let mut buffer = vec![0; load.buffer];
    for index in 0..load.files.count {
        let file = File::open(directory.join(load.files.path(index)))?;
        let pieces = load.files.size(index).div_ceil(load.buffer as u64);
        let mut order: Vec<u64> = (0..pieces).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, (random.next_u64() % (at as u64 + 1)) as usize);
        }
        for piece in order {
            file.read_at(&mut buffer, piece * load.buffer as u64)?;
        }
    }
    Ok(())
}

/// Makes the files, and opens one after the other for each piece until all have their sizes.
fn append(load: Load<'_>, job: u32) -> io::Result<()> {
    make_directories(load, job)?;
    let directory = Place::directory(load.root, job);
    let mut offset = 0;
    loop {
        let mut is_done = true;
        for index in 0..load.files.count {
            let left = load.files.size(index).saturating_sub(offset);
            if left == 0 && offset > 0 {
                continue;
            }
            let mut options = OpenOptions::new();
            options.append(true).create(offset == 0);
            let mut file = options.open(directory.join(load.files.path(index)))?;
            let length = left.min(load.buffer as u64);
            file.write_all(
                load.noise
                    .slice(Place { job, index }, offset, length as usize),
            )?;
            is_done &= left <= length;
        }
        if is_done {
            return Ok(());
        }
        offset += load.buffer as u64;
    }
}

/// Creates a file of its size, and writes the first of every [`SPARSE`] pieces.
fn write_pieces(path: &Path, place: Place, load: Load<'_>) -> io::Result<()> {
    let file = File::create_new(path)?;
    let (size, piece) = (load.files.size(place.index), load.buffer as u64);
    file.set_len(size)?;
    let mut offset = 0;
    while offset < size {
        let length = piece.min(size - offset) as usize;
        file.write_all_at(load.noise.slice(place, offset, length), offset)?;
        offset += SPARSE * piece;
    }
    Ok(())
}

/// Writes one job's bytes to the device at the root.
fn encrypt(load: Load<'_>, job: u32) -> Result<(), BlockError> {
    // Other jobs write to other places of it.
    let options = FileOptions {
        write: true,
        hold: Hold::Lent,
        ..FileOptions::default()
    };
    let device = FileDevice::open(load.root, &options)?;
    let mut offset = u64::from(job) * load.files.bytes();
    for index in 0..load.files.count {
        let (place, size) = (Place { job, index }, load.files.size(index));
        device.write_at(offset, load.noise.slice(place, 0, size as usize))?;
        offset += size;
    }
    device.flush()
}

fn write(path: &Path, place: Place, load: Load<'_>) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    let size = load.files.size(place.index);
    let mut offset = 0;
    while offset < size {
        let length = (load.buffer as u64).min(size - offset);
        file.write_all(load.noise.slice(place, offset, length as usize))?;
        offset += length;
    }
    Ok(())
}

/// Writes the files outside the timed part, into a tree from which a file system is made or into
/// one that is to be read.
///
/// # Errors
/// The system's errors.
pub fn populate(load: Load<'_>) -> io::Result<()> {
    if load.files.count == 0 {
        return Ok(());
    }
    (0..load.jobs).try_for_each(|job| lane(OnFiles::Write, load, job))?;
    synced(load)
}

/// Flash that has to be erased before a file system is made on it.
#[derive(Clone, Copy, Debug)]
pub struct Flash {
    /// Bytes of all.
    pub size: u64,
    /// Bytes of an erase block.
    pub erase_bytes: u32,
}

/// A block's mark that it was erased whole: node type 0x2003 of
/// include/uapi/linux/jffs2.h with its length and check sum, little-endian.
const CLEAN_MARKER: [u8; 12] = [
    0x85, 0x19, 0x03, 0x20, 0x0c, 0, 0, 0, 0xb1, 0xb0, 0x1e, 0xe4,
];

/// Fills `bytes` with what erased blocks with their marks hold.
fn erased(bytes: &mut [u8], flash: Flash) {
    bytes.fill(0xff);
    for block in bytes.chunks_mut(flash.erase_bytes as usize) {
        block[..CLEAN_MARKER.len()].copy_from_slice(&CLEAN_MARKER);
    }
}

/// Writes what all of erased flash holds, as `mkfs.jffs2 --pad` does 16 bytes at a
/// time.
fn erase(device: &mut File, flash: Flash) -> io::Result<()> {
    let mut block = vec![0; flash.erase_bytes as usize];
    erased(&mut block, flash);
    (0..flash.size / u64::from(flash.erase_bytes)).try_for_each(|_| device.write_all(&block))
}

/// Bytes of an untimed request: whole erase blocks, and few requests.
const PIECE: usize = 1 << 20;

/// Bytes that all devices take at once.
const BLOCK: usize = 4096;

/// Copies the prepared file system in the file `image` to `device`, outside the timed part. The
/// rest of a flash device is erased. The copy bypasses the device's cache.
///
/// # Errors
/// The system's errors.
pub fn put(image: &Path, device: &Path, flash: Option<Flash>) -> io::Result<()> {
    let mut image = File::open(image)?;
    // The run holds what is below it.
    let options = FileOptions {
        write: true,
        hold: Hold::Lent,
        ..FileOptions::default()
    };
    let device = FileDevice::open(device, &options).map_err(as_system)?;
    let mut piece = AlignedBuffer::new(PIECE);
    let mut offset = 0;
    loop {
        if let Some(flash) = flash {
            erased(&mut piece, flash);
        }
        let length = read_whole(&mut image, &mut piece)?;
        let end = match flash {
            Some(flash) => {
                let block = length.next_multiple_of(flash.erase_bytes as usize);
                piece[length..block].fill(0xff);
                (flash.size - offset).min(PIECE as u64) as usize
            }
            None => length.next_multiple_of(BLOCK),
        };
        if end == 0 {
            break;
        }
        device.write_at(offset, &piece[..end]).map_err(as_system)?;
        offset += end as u64;
    }
    device.flush().map_err(as_system)
}

/// As many bytes as there are, and as fit.
fn read_whole(from: &mut File, into: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < into.len() {
        match from.read(&mut into[length..])? {
            0 => break,
            more => length += more,
        }
    }
    Ok(length)
}

fn as_system(error: BlockError) -> io::Error {
    io::Error::from_raw_os_error(error.errno())
}

/// Runs `maker`, which makes a file system on `device`; flash is erased first. Returns the seconds
/// until the device has it, and the program's output.
///
/// # Errors
/// The program cannot be run, or the device does not take the data.
pub fn make(maker: &mut Command, device: &Path, flash: Option<Flash>) -> io::Result<(f64, Output)> {
    let clock = Clock::get();
    maker.stdin(Stdio::null());
    let begun = clock.now();
    if let Some(flash) = flash {
        let mut device = OpenOptions::new().write(true).open(device)?;
        erase(&mut device, flash)?;
    }
    let output = maker.output()?;
    if output.status.success() {
        OpenOptions::new().write(true).open(device)?.sync_all()?;
    }
    Ok((clock.seconds(clock.now() - begun), output))
}

/// Mounts; seconds, and what is mounted.
///
/// # Errors
/// Those of `mount`.
pub fn mount<T, E>(mount: impl FnOnce() -> Result<T, E>) -> Result<(f64, T), E> {
    let clock = Clock::get();
    let begun = clock.now();
    let mounted = mount()?;
    Ok((clock.seconds(clock.now() - begun), mounted))
}

/// Runs a user's command in the mounted directory, once for every job, concurrently. Returns the
/// seconds, and the output of the first one that failed.
///
/// # Errors
/// The command cannot be run.
pub fn command(line: &str, load: Load<'_>) -> io::Result<(f64, Option<Output>)> {
    let clock = Clock::get();
    let begun = clock.now();
    let mut running = Vec::new();
    for job in 0..load.jobs {
        let mut shell = block::program::command("sh");
        // The line is the user's own, and so is its search path.
        if let Some(path) = std::env::var_os("PATH") {
            shell.env("PATH", path);
        }
        shell.args(["-c", line]).current_dir(load.root);
        shell.env("CRYPTMARK_JOB", job.to_string());
        shell.stdin(Stdio::null()).stdout(Stdio::null());
        running.push(shell.stderr(Stdio::piped()).spawn()?);
    }
    let mut failed = None;
    for shell in running {
        let output = shell.wait_with_output()?;
        if !output.status.success() && failed.is_none() {
            failed = Some(output);
        }
    }
    synced(load)?;
    Ok((clock.seconds(clock.now() - begun), failed))
}
