//! The part of files that the storage of a system shows, found by looking at it.
//!
//! A small tree is written: its files differ in content, name, length of the name, size and time
//! of change. Then the storage is read without the key, and each property is looked for. Values
//! that differ by as little as one byte tell an exact size from a rounded one.

use super::content::{Noise, Place};
use crate::record::{Entry, Exposure, Shown, Space};
use rustix::fs::{Timespec, Timestamps};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The paths and sizes of the tree, bytes; `WORD` is of one tree alone. No two names have the same
/// length, nor two files the same size; no two directories hold as many.
const FILES: &[(&str, u64)] = &[
    ("my-last-will.odt", 10_000),
    ("letters/note.txt", 1),
    ("letters/mother.txt", 1000),
    ("letters/2024/landlord.txt", 1001),
    ("letters/2024/x", 500),
    ("letters/2024/the-tax-office-WORD.txt", 4096),
    ("letters/2024/insurance-claim-of-WORD.txt", 4097),
    (
        "pictures/the-garden-behind-the-house-in-the-first-week-of-May-WORD.jpg",
        100_000,
    ),
    (
        "pictures/WORD-the-same-garden-in-the-evening-with-all-of-the-family-around-the-table-under-the-tree.jpg",
        60_001,
    ),
];

/// The tree that is put into the storage of a system.
pub(super) struct Tree {
    files: Vec<(String, u64)>,
    noise: Noise,
}

/// The time of change of the first file, Unix time; each later one is a day younger.
const FIRST: i64 = 1_000_000_000;
const DAY: i64 = 86_400;

/// Bytes of content that are looked for at a time.
const SAMPLE: usize = 32;

/// Entries that are kept for people.
const KEPT: usize = 12;

/// Bytes that are read of a device at a time.
const PIECE: usize = 4 << 20;

impl Tree {
    /// The one of `seed`: no other holds the same names or bytes.
    pub(super) fn new(seed: u64) -> Self {
        let word = format!("{seed:016x}");
        let name = |path: &str| path.replace("WORD", &word);
        Self {
            files: FILES
                .iter()
                .map(|(path, size)| (name(path), *size))
                .collect(),
            noise: Noise::new(seed, 1 << 20),
        }
    }

    fn content(&self, index: usize) -> &[u8] {
        let place = Place {
            job: 0,
            index: index as u32,
        };
        self.noise.slice(place, 0, self.files[index].1 as usize)
    }

    /// Writes the tree below `root`.
    pub(super) fn write(&self, root: &Path) -> io::Result<()> {
        for (index, (name, _)) in self.files.iter().enumerate() {
            let path = root.join(name);
            if let Some(directory) = path.parent() {
                fs::create_dir_all(directory)?;
            }
            let mut file = File::create_new(&path)?;
            file.write_all(self.content(index))?;
            file.sync_all()?;
            drop(file);
            let time = Timespec {
                tv_sec: FIRST + index as i64 * DAY,
                tv_nsec: 0,
            };
            let times = Timestamps {
                last_access: time,
                last_modification: time,
            };
            let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
            rustix::fs::utimensat(rustix::fs::CWD, &path, &times, flags)?;
        }
        Ok(())
    }
}

/// A stored directory, as it is without a key.
#[derive(Debug, Default)]
pub(super) struct Stored {
    files: BTreeMap<PathBuf, (u64, i64)>,
    directories: BTreeSet<PathBuf>,
    /// Sizes of all files together, and of the blocks of files and directories; bytes.
    pub(super) bytes: u64,
    pub(super) allocated: u64,
}

impl Stored {
    /// Reads the directory `root`, without the files' content.
    pub(super) fn read(root: &Path) -> io::Result<Self> {
        let mut stored = Self::default();
        stored.add(root, Path::new(""))?;
        Ok(stored)
    }

    fn add(&mut self, root: &Path, below: &Path) -> io::Result<()> {
        for entry in fs::read_dir(root.join(below))? {
            let entry = entry?;
            let (path, found) = (below.join(entry.file_name()), entry.metadata()?);
            self.allocated += found.blocks() * 512;
            if found.is_dir() {
                self.add(root, &path)?;
                self.directories.insert(path);
            } else {
                self.bytes += found.len();
                self.files.insert(path, (found.len(), found.mtime()));
            }
        }
        Ok(())
    }

    /// The files and directories that are not in `earlier`. Files of one name that lie in several directories belong
    /// to the system, so they are left out.
    fn since(mut self, earlier: &Self) -> Self {
        let mut uses: BTreeMap<_, u32> = BTreeMap::new();
        for path in self.files.keys() {
            *uses
                .entry(path.file_name().map(ToOwned::to_owned))
                .or_default() += 1;
        }
        self.files.retain(|path, _| {
            let uses = uses[&path.file_name().map(ToOwned::to_owned)];
            uses == 1 && !earlier.files.contains_key(path)
        });
        self.directories
            .retain(|path| !earlier.directories.contains(path));
        self
    }

    /// The shape of the tree of directories, whatever their names are.
    fn shape(&self) -> String {
        fn of(directories: &BTreeSet<PathBuf>, below: &Path) -> String {
            let mut inner: Vec<String> = directories
                .iter()
                .filter(|path| path.parent() == Some(below))
                .map(|path| of(directories, path))
                .collect();
            inner.sort();
            format!("({})", inner.concat())
        }
        of(&self.directories, Path::new(""))
    }
}

/// `ENOKEY`.
const NO_KEY: i32 = 126;

impl Tree {
    /// The visible part of the tree in the directory `root`, of which `before` was seen before the tree was
    /// written.
    pub(super) fn in_directory(&self, root: &Path, before: &Stored) -> io::Result<Exposure> {
        let stored = Stored::read(root)?.since(before);
        let samples = Samples::new(self);
        let mut contents = Shown::Hidden;
        for path in stored.files.keys() {
            match fs::read(root.join(path)) {
                Ok(bytes) => {
                    if samples
                        .found_in(&bytes)
                        .any(|found| found == Sample::Content)
                    {
                        contents = Shown::Exact;
                    }
                }
                // fscrypt's files cannot be opened without the key: what is stored for them is looked
                // for on the device.
                Err(error) if error.raw_os_error() == Some(NO_KEY) => {}
                Err(error) => return Err(error),
            }
        }
        let shown = |paths: Vec<&PathBuf>| paths.into_iter().any(|path| self.holds_name(path));
        let names = shown(stored.files.keys().chain(&stored.directories).collect());
        let length = |path: &Path| path.file_name().map_or(0, |name| name.len() as u64);
        let lengths = stored.files.keys().map(|path| length(path)).collect();
        let sizes = stored.files.values().map(|(size, _)| *size).collect();
        let times: BTreeSet<i64> = stored.files.values().map(|(_, time)| *time).collect();
        let written: Vec<PathBuf> = self.files.iter().map(|(path, _)| path.into()).collect();
        let real = Stored {
            directories: written
                .iter()
                .flat_map(|path| path.ancestors().skip(1))
                .filter(|path| !path.as_os_str().is_empty())
                .map(Path::to_owned)
                .collect(),
            ..Stored::default()
        };
        let exact = |is: bool| if is { Shown::Exact } else { Shown::Hidden };
        let every_time =
            (0..self.files.len() as i64).all(|day| times.contains(&(FIRST + day * DAY)));
        let entry = |(path, (bytes, modified)): (&PathBuf, &(u64, i64))| Entry {
            path: path.to_string_lossy().into_owned(),
            bytes: *bytes,
            modified: *modified,
        };
        Ok(Exposure {
            contents,
            names: exact(names),
            name_lengths: told_apart(&written.iter().map(|path| length(path)).collect(), lengths),
            sizes: told_apart(&self.files.iter().map(|(_, size)| *size).collect(), sizes),
            times: exact(every_time),
            count: exact(stored.files.len() == self.files.len()),
            tree: exact(stored.shape() == real.shape()),
            entries: stored.files.iter().map(entry).take(KEPT).collect(),
            ..Exposure::default()
        })
    }

    /// The visible part of the tree on the device or in the file `path`: content and names.
    pub(super) fn on_device(&self, path: &Path) -> io::Result<(Shown, Shown)> {
        let mut device = File::open(path)?;
        let mut piece = vec![0; PIECE];
        let samples = Samples::new(self);
        let (mut contents, mut names, mut kept) = (Shown::Hidden, Shown::Hidden, 0);
        loop {
            let more = device.read(&mut piece[kept..])?;
            if more == 0 {
                return Ok((contents, names));
            }
            for found in samples.found_in(&piece[..kept + more]) {
                match found {
                    Sample::Content => contents = Shown::Exact,
                    Sample::Name => names = Shown::Exact,
                }
            }
            // What lies across two pieces is whole in the second.
            let end = kept + more;
            kept = end.min(OVERLAP);
            piece.copy_within(end - kept..end, 0);
        }
    }

    /// Whether a component of `path` is a name of the tree.
    fn holds_name(&self, path: &Path) -> bool {
        let path = path.to_string_lossy();
        let mut known = self.files.iter().flat_map(|(known, _)| known.split('/'));
        // A short name stands in others by chance.
        known.any(|name| name.len() >= 8 && path.contains(name))
    }
}

/// Bytes that are looked at twice.
const OVERLAP: usize = 64;

/// The part of a file that a sample belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sample {
    Content,
    Name,
}

/// Bytes of the tree that stand elsewhere by chance only if its noise does.
struct Samples<'a> {
    known: Vec<(&'a [u8], Sample)>,
    /// Whether a sample begins with these two bytes.
    heads: Vec<bool>,
}

impl<'a> Samples<'a> {
    /// The beginning and the middle of each file, and the names that are long enough.
    fn new(tree: &'a Tree) -> Self {
        let mut known = Vec::new();
        for (index, (path, _)) in tree.files.iter().enumerate() {
            let whole = tree.content(index);
            let at = [0, whole.len() / 2].into_iter();
            known.extend(at.filter_map(|at| Some((whole.get(at..at + SAMPLE)?, Sample::Content))));
            let names = path.split('/').filter(|name| name.len() >= SAMPLE);
            known.extend(names.map(|name| (name.as_bytes(), Sample::Name)));
        }
        let mut heads = vec![false; 1 << 16];
        for (sample, _) in &known {
            heads[head(sample)] = true;
        }
        Self { known, heads }
    }

    fn found_in(&self, bytes: &[u8]) -> impl Iterator<Item = Sample> {
        let begins = |at: &usize| self.heads[head(&bytes[*at..])];
        let whole = move |at: usize| {
            let mut known = self.known.iter();
            known.find(|(sample, _)| bytes[at..].starts_with(sample))
        };
        (0..bytes.len().saturating_sub(1))
            .filter(begins)
            .filter_map(whole)
            .map(|(_, kind)| *kind)
    }
}

/// The first two bytes as a number.
fn head(bytes: &[u8]) -> usize {
    usize::from(bytes[0]) << 8 | usize::from(bytes[1])
}

/// How far `stored` numbers tell `real` ones apart, of which no two are equal. Both are unordered;
/// the greater of two real numbers has the greater stored one.
fn told_apart(real: &BTreeSet<u64>, mut stored: Vec<u64>) -> Shown {
    stored.sort_unstable();
    let Some(least) = stored.first() else {
        return Shown::Hidden;
    };
    if stored.len() != real.len() || stored.last() == Some(least) {
        return Shown::Hidden;
    }
    let mut alike: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for (stored, real) in stored.into_iter().zip(real) {
        alike.entry(stored).or_default().push(*real);
    }
    // Real numbers are in order.
    let span = |real: &Vec<u64>| real.last().zip(real.first()).map(|(high, low)| high - low);
    match alike.values().filter_map(span).max() {
        Some(span) if span > 0 => Shown::Within(span),
        _ => Shown::Exact,
    }
}

/// Files of each size whose space is counted.
pub(super) const COUNTED: u32 = 4;

/// The sizes, bytes.
pub(super) const SIZES: [u64; 3] = [1 << 10, 100 << 10, 10 << 20];

/// Writes as many files of `size` bytes below `root`.
pub(super) fn write_counted(root: &Path, size: u64, noise: &Noise) -> io::Result<()> {
    for index in 0..COUNTED {
        let mut file = File::create_new(root.join(format!("{size}-{index}")))?;
        let mut offset = 0;
        while offset < size {
            let length = (size - offset).min(noise.longest() as u64);
            file.write_all(noise.slice(Place { job: 1, index }, offset, length as usize))?;
            offset += length;
        }
        file.sync_all()?;
    }
    Ok(())
}

/// The space of one of these files, by what is stored `before` and `after`.
pub(super) fn space(size: u64, before: &Stored, after: &Stored) -> Space {
    let one = |before: u64, after: u64| after.saturating_sub(before) / u64::from(COUNTED);
    Space {
        file_bytes: size,
        stored_bytes: one(before.bytes, after.bytes),
        allocated_bytes: one(before.allocated, after.allocated),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The storage of a system that stores each file as `store` says.
    fn seen(store: impl Fn(&Path, &[u8]) -> (PathBuf, Vec<u8>), keeps_times: bool) -> Exposure {
        let (clear, stored) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let tree = Tree::new(5);
        tree.write(clear.path()).unwrap();
        let before = Stored::read(stored.path()).unwrap();
        for path in Stored::read(clear.path()).unwrap().files.keys() {
            let from = clear.path().join(path);
            let (to, bytes) = store(path, &fs::read(&from).unwrap());
            let to = stored.path().join(to);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            let mut file = File::create(&to).unwrap();
            file.write_all(&bytes).unwrap();
            if keeps_times {
                let time = fs::metadata(&from).unwrap().modified().unwrap();
                file.set_modified(time).unwrap();
            }
        }
        tree.in_directory(stored.path(), &before).unwrap()
    }

    fn scrambled(bytes: &[u8]) -> Vec<u8> {
        bytes.iter().map(|byte| byte ^ 0x5a).collect()
    }

    #[test]
    fn plain_storage_shows_everything() {
        let exposure = seen(|path, bytes| (path.to_owned(), bytes.to_vec()), true);
        let all = [
            exposure.contents,
            exposure.names,
            exposure.name_lengths,
            exposure.sizes,
            exposure.times,
            exposure.count,
            exposure.tree,
        ];
        assert_eq!(all, [Shown::Exact; 7], "{exposure:?}");
        let listed = exposure.entries.into_iter();
        let listed: BTreeSet<(String, u64)> =
            listed.map(|entry| (entry.path, entry.bytes)).collect();
        assert_eq!(listed, Tree::new(5).files.into_iter().collect());
    }

    #[test]
    fn what_is_rounded_or_hidden_is_said() {
        // Sizes in whole blocks behind a header, names padded to 32.
        let exposure = seen(
            |path, bytes| {
                let pad = |part: &std::ffi::OsStr| {
                    let name = scrambled(part.as_encoded_bytes());
                    let hex: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
                    format!("{hex:x<width$}", width = hex.len().next_multiple_of(32))
                };
                let mut content = scrambled(bytes);
                content.resize(8192 + bytes.len().next_multiple_of(4096), 0);
                (path.iter().map(pad).collect(), content)
            },
            true,
        );
        assert_eq!(
            (exposure.contents, exposure.names, exposure.tree),
            (Shown::Hidden, Shown::Hidden, Shown::Exact)
        );
        assert_eq!(exposure.sizes, Shown::Within(4095));
        // Two digits a byte.
        assert_eq!(exposure.name_lengths, Shown::Within(15));
        assert_eq!(
            (exposure.times, exposure.count),
            (Shown::Exact, Shown::Exact)
        );
    }

    #[test]
    fn blocks_of_one_size_show_nothing() {
        let next = std::cell::Cell::new(0);
        let exposure = seen(
            |_, bytes| {
                next.set(next.get() + 1);
                let mut content = scrambled(bytes);
                content.resize(1 << 17, 0);
                (format!("{:03}", next.get()).into(), content)
            },
            false,
        );
        assert_eq!(exposure.sizes, Shown::Hidden);
        assert_eq!(
            (exposure.tree, exposure.times),
            (Shown::Hidden, Shown::Hidden)
        );
        assert_eq!(exposure.name_lengths, Shown::Hidden);
    }

    #[test]
    fn content_across_two_pieces_of_a_device_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let (path, tree) = (folder.path().join("device"), Tree::new(5));
        let mut bytes = vec![0; PIECE + 1000];
        std::fs::write(&path, &bytes).unwrap();
        let hidden = (Shown::Hidden, Shown::Hidden);
        assert_eq!(tree.on_device(&path).unwrap(), hidden);
        let at = PIECE - 7;
        bytes[at..at + SAMPLE].copy_from_slice(&tree.content(0)[..SAMPLE]);
        let name = tree.files[5].0.rsplit('/').next().unwrap();
        bytes[at + 100..at + 100 + name.len()].copy_from_slice(name.as_bytes());
        std::fs::write(&path, &bytes).unwrap();
        let shown = (Shown::Exact, Shown::Exact);
        assert_eq!(tree.on_device(&path).unwrap(), shown);
    }
}
