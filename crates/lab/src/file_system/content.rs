//! The content of the files of a measurement. It is noise derived from a seed, so a later read can
//! be compared byte for byte.

use super::Files;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Bytes after which a file's content repeats.
const PERIOD: usize = 4 << 20;

/// Distance between the beginnings of files: odd, so that no two soon begin alike.
const STRIDE: usize = 99_991;

/// The noise of a job, from which every write takes its bytes.
#[derive(Debug)]
pub struct Noise {
    /// One period, and its beginning again for slices that cross its end.
    pool: Vec<u8>,
    longest: usize,
}

impl Noise {
    /// Noise for slices of at most `longest` bytes.
    pub fn new(seed: u64, longest: usize) -> Self {
        let mut pool = vec![0; PERIOD];
        Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(&mut pool);
        while pool.len() < PERIOD + longest {
            let more = (PERIOD + longest - pool.len()).min(PERIOD);
            pool.extend_from_within(..more);
        }
        Self { pool, longest }
    }

    /// `length` bytes of a file's content from `offset`.
    ///
    /// # Panics
    /// If `length` is more than the longest slice.
    pub fn slice(&self, file: Place, offset: u64, length: usize) -> &[u8] {
        assert!(length <= self.longest, "longer than the longest slice");
        let begin = (u64::from(file.job) << 20 | u64::from(file.index)) as usize;
        let begin = begin.wrapping_mul(STRIDE) % PERIOD;
        let at = (begin + (offset % PERIOD as u64) as usize) % PERIOD;
        &self.pool[at..at + length]
    }

    /// The most bytes of a slice.
    pub fn longest(&self) -> usize {
        self.longest
    }
}

/// A file, identified by its job and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The job that the file belongs to.
    pub job: u32,
    /// The number of the file.
    pub index: u32,
}

impl Place {
    /// The directory of `job`'s files below `root`.
    pub fn directory(root: &Path, job: u32) -> PathBuf {
        root.join(format!("job{job}"))
    }
}

/// The files that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Present {
    /// The files.
    Files,
    /// The files under the names of copies.
    Renamed,
    /// The files, and a copy of each.
    Both,
    /// The files, of which only some pieces were written: the first of every
    /// [`SPARSE`] of this length, bytes.
    Sparse(u64),
}

/// Pieces of a file with holes of which one is written.
pub const SPARSE: u64 = 16;

/// Compares the files below `root` with the content that was written.
///
/// # Errors
/// The first file that is missing, unreadable or different, with the fault.
pub fn compare(
    root: &Path,
    files: &Files,
    jobs: u32,
    present: Present,
    noise: &Noise,
) -> Result<(), String> {
    let holes = match present {
        Present::Sparse(piece) => Some(piece),
        _ => None,
    };
    for job in 0..jobs {
        let directory = Place::directory(root, job);
        for index in 0..files.count {
            let place = Place { job, index };
            let compare = |path: PathBuf| {
                compare_file(
                    &directory.join(path),
                    place,
                    files.size(index),
                    holes,
                    noise,
                )
            };
            if present != Present::Renamed {
                compare(files.path(index))?;
            }
            if matches!(present, Present::Renamed | Present::Both) {
                compare(files.copy(index))?;
            }
        }
        let expected = files.count as usize * if present == Present::Both { 2 } else { 1 };
        let found = count(&directory).map_err(|error| format!("{}: {error}", root.display()))?;
        if found != expected {
            return Err(format!("there are {found} files instead of {expected}"));
        }
    }
    Ok(())
}

/// Files in `directory` and below; none if it does not exist.
fn count(directory: &Path) -> io::Result<usize> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let mut found = 0;
    for entry in entries {
        let entry = entry?;
        found += match entry.file_type()?.is_dir() {
            true => count(&entry.path())?,
            false => 1,
        };
    }
    Ok(found)
}

/// Compares what stands on a device, one file's bytes after the other, with what
/// was written there.
///
/// # Errors
/// The first that is unreadable or different.
pub fn compare_device(
    device: &Path,
    files: &Files,
    jobs: u32,
    noise: &Noise,
) -> Result<(), String> {
    let unreadable = |error: io::Error| format!("the device cannot be read: {error}");
    let mut open = File::open(device).map_err(unreadable)?;
    for job in 0..jobs {
        for index in 0..files.count {
            let size = files.size(index) as usize;
            let mut read = vec![0; size];
            open.read_exact(&mut read).map_err(unreadable)?;
            if read != noise.slice(Place { job, index }, 0, size) {
                return Err(format!("the device has wrong content in request {index}"));
            }
        }
    }
    Ok(())
}

fn compare_file(
    path: &Path,
    place: Place,
    size: u64,
    holes: Option<u64>,
    noise: &Noise,
) -> Result<(), String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let unreadable = |error: io::Error| format!("{name} cannot be read: {error}");
    let mut file = File::open(path).map_err(unreadable)?;
    let mut read = vec![0; noise.longest().min(1 << 20)];
    let mut offset = 0;
    loop {
        let length = file.read(&mut read).map_err(unreadable)?;
        if length == 0 {
            break;
        }
        let expected = noise.slice(place, offset, length);
        let is_right = match holes {
            None => read[..length] == *expected,
            Some(piece) => {
                (offset..)
                    .zip(&read[..length])
                    .zip(expected)
                    .all(
                        |((at, read), noise)| match (at / piece).is_multiple_of(SPARSE) {
                            true => read == noise,
                            false => *read == 0,
                        },
                    )
            }
        };
        if !is_right {
            return Err(format!("{name} has wrong content near byte {offset}"));
        }
        offset += length as u64;
    }
    match offset == size {
        true => Ok(()),
        false => Err(format!("{name} has {offset} bytes instead of {size}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::operation::{Layout, Names};
    use super::*;

    fn write(root: &Path, files: &Files, noise: &Noise) {
        for index in 0..files.count {
            let place = Place { job: 0, index };
            let path = Place::directory(root, 0).join(files.path(index));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let mut content = Vec::new();
            while (content.len() as u64) < files.size(index) {
                let left = files.size(index) as usize - content.len();
                let slice = noise.slice(place, content.len() as u64, left.min(noise.longest()));
                content.extend_from_slice(slice);
            }
            std::fs::write(path, content).unwrap();
        }
    }

    #[test]
    fn every_kind_of_damage_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let noise = Noise::new(7, 64 << 10);
        let files = Files {
            count: 3,
            sizes: vec![5_000_000, 100],
            layout: Layout::Tree,
            names: Names::Long,
        };
        write(root, &files, &noise);
        let compared = |jobs, present| compare(root, &files, jobs, present, &noise);
        assert_eq!(compared(1, Present::Files), Ok(()));
        assert!(compared(1, Present::Both).is_err());
        assert!(compared(1, Present::Renamed).is_err());
        assert!(compared(1, Present::Sparse(4096)).is_err());
        assert!(compared(2, Present::Files).is_err());

        let victim = Place::directory(root, 0).join(files.path(0));
        let good = std::fs::read(&victim).unwrap();
        for damage in 0..3 {
            let mut bad = good.clone();
            match damage {
                0 => bad[4_999_999] ^= 1,
                1 => bad.truncate(4_999_999),
                _ => bad.push(0),
            }
            std::fs::write(&victim, bad).unwrap();
            assert!(compared(1, Present::Files).is_err(), "{damage}");
        }
        std::fs::write(&victim, good).unwrap();
        std::fs::write(root.join("job0/foreign"), "x").unwrap();
        let wrong = compared(1, Present::Files).unwrap_err();
        assert_eq!(wrong, "there are 4 files instead of 3");
    }

    #[test]
    fn a_changed_byte_on_a_device_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let device = folder.path().join("device");
        let noise = Noise::new(7, 64 << 10);
        let files = Files {
            count: 3,
            sizes: vec![1024, 512],
            ..Files::default()
        };
        let mut bytes = Vec::new();
        for job in 0..2 {
            for index in 0..3 {
                let size = files.size(index) as usize;
                bytes.extend_from_slice(noise.slice(Place { job, index }, 0, size));
            }
        }
        std::fs::write(&device, &bytes).unwrap();
        assert_eq!(compare_device(&device, &files, 2, &noise), Ok(()));
        assert!(compare_device(&device, &files, 3, &noise).is_err());
        bytes[2560 + 1024] ^= 1;
        std::fs::write(&device, &bytes).unwrap();
        let wrong = compare_device(&device, &files, 2, &noise).unwrap_err();
        assert!(wrong.ends_with("in request 1"), "{wrong}");
        assert_eq!(compare_device(&device, &files, 1, &noise), Ok(()));
    }

    #[test]
    fn files_differ_from_each_other_and_follow_from_the_seed() {
        let noise = Noise::new(1, 4096);
        let place = |job, index| Place { job, index };
        let first = noise.slice(place(0, 0), 0, 4096);
        assert_ne!(first, noise.slice(place(0, 1), 0, 4096));
        assert_ne!(first, noise.slice(place(1, 0), 0, 4096));
        assert_ne!(first, noise.slice(place(0, 0), 4096, 4096));
        assert_eq!(first, Noise::new(1, 9999).slice(place(0, 0), 0, 4096));
        assert_ne!(first, Noise::new(2, 4096).slice(place(0, 0), 0, 4096));
    }
}
