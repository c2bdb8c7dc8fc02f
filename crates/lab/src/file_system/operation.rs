//! [`Operation`]: what is done with a file system.

use super::FileSystem;
use crate::error::LabError;
use crate::workload::{Mix, Pattern, Workload};
use bytesize::ByteSize;
use serde::{Deserialize, Serialize, Serializer};
use std::path::PathBuf;

/// Most bytes that one system call moves.
const MOST_BUFFER: u64 = 64 << 20;

/// Most files of an operation.
const MOST_FILES: u32 = 1_000_000;

/// A timed operation, with the files it is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    /// Name in the plan and in records, `read-10m`.
    pub name: String,
    /// The kind of the operation.
    pub op: Kind,
    /// The shell's command line for `op = "command"`, run in the mounted directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Number of files; none when absent, or one if a size is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u32>,
    /// Their sizes, in turns.
    #[serde(default, skip_serializing_if = "Sizes::is_empty")]
    pub file_size: Sizes,
    /// Whether they lie in one directory or in a tree of them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub layout: Layout,
    /// Whether their names are short or long.
    #[serde(default, skip_serializing_if = "is_default")]
    pub names: Names,
    /// Bytes of a system call that reads or writes.
    #[serde(default = "buffer", serialize_with = "exactly")]
    pub buffer: ByteSize,
    /// The only file systems on which it runs; all when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<FileSystem>,
    /// Bytes of the device for this operation, if they differ from the plan's.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "exactly_if_any"
    )]
    pub size: Option<ByteSize>,
}

/// The kind of an operation. An operation ends only when its writes have reached the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Makes the file system. A file system that is made from a tree then holds the tree's files.
    Mkfs,
    /// Mounts the file system with the files in it.
    Mount,
    /// Creates the files and writes them.
    Write,
    /// Reads the files.
    Read,
    /// Copies the files within the file system.
    Copy,
    /// Asks for the attributes of the files.
    Stat,
    /// Removes the files.
    Remove,
    /// Reads the names in all directories.
    List,
    /// Renames each file within its directory.
    Rename,
    /// Reads every buffer's length of each file once, in an order without a pattern.
    #[serde(rename = "random-read")]
    RandomRead,
    /// Opens, writes one buffer's length at the end, and closes, for one file after the other,
    /// until all have their sizes.
    Append,
    /// Creates the files with holes: of every sixteen buffers' lengths the first is written.
    Sparse,
    /// Writes to the device itself as many bytes as the files have, each file's in
    /// one request, around all caches and without a file system.
    Encrypt,
    /// Runs a command of the user's own.
    Command,
}

impl Kind {
    /// The word used in plans and records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mkfs => "mkfs",
            Self::Mount => "mount",
            Self::Write => "write",
            Self::Read => "read",
            Self::Copy => "copy",
            Self::Stat => "stat",
            Self::Remove => "remove",
            Self::List => "list",
            Self::Rename => "rename",
            Self::RandomRead => "random-read",
            Self::Append => "append",
            Self::Sparse => "sparse",
            Self::Encrypt => "encrypt",
            Self::Command => "command",
        }
    }

    /// Whether it changes what is in the file system.
    pub const fn writes(self) -> bool {
        matches!(
            self,
            Self::Write
                | Self::Copy
                | Self::Remove
                | Self::Rename
                | Self::Append
                | Self::Sparse
                | Self::Encrypt
                | Self::Command
        )
    }
}

/// How files lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// In one directory.
    #[default]
    Flat,
    /// In a tree: twenty files in a directory, ten such directories in each above.
    Tree,
}

/// How files are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Names {
    /// Ten bytes.
    #[default]
    Short,
    /// 140 bytes: eCryptfs takes 143.
    Long,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn buffer() -> ByteSize {
    ByteSize::kib(64)
}

/// Written for people, a size is rounded.
fn exactly<S: Serializer>(size: &ByteSize, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(size.as_u64())
}

fn exactly_if_any<S: Serializer>(size: &Option<ByteSize>, to: S) -> Result<S::Ok, S::Error> {
    size.map(|size| size.as_u64()).serialize(to)
}

fn all_exactly<S: Serializer>(sizes: &[ByteSize], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(sizes.iter().map(ByteSize::as_u64))
}

/// One size, or several: `"1 MB"` or `["1 MB", "10 MB"]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "file_size must be a size or a list of sizes")]
pub enum Sizes {
    /// No file.
    #[default]
    None,
    /// All files alike.
    One(#[serde(serialize_with = "exactly")] ByteSize),
    /// In turns.
    Several(#[serde(serialize_with = "all_exactly")] Vec<ByteSize>),
}

impl Sizes {
    fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    fn all(&self) -> &[ByteSize] {
        match self {
            Self::None => &[],
            Self::One(size) => std::slice::from_ref(size),
            Self::Several(sizes) => sizes,
        }
    }
}

/// Files by number and size: equal ones have equal content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// How many.
    pub count: u32,
    /// Bytes of each, in turns.
    pub sizes: Vec<u64>,
    /// How they lie.
    pub layout: Layout,
    /// How they are named.
    pub names: Names,
}

/// Files of a directory, and directories of one above, in a tree.
const IN_A_DIRECTORY: u32 = 20;
const DIRECTORIES: u32 = 10;

/// Bytes of a long name.
const LONG_NAME: usize = 140;

impl Files {
    /// Bytes of file number `index`.
    pub fn size(&self, index: u32) -> u64 {
        match self.sizes.len() {
            0 => 0,
            sizes => self.sizes[index as usize % sizes],
        }
    }

    /// The path of file number `index` below the directory of its job.
    pub fn path(&self, index: u32) -> PathBuf {
        self.place("file", index)
    }

    /// The path of its copy.
    pub fn copy(&self, index: u32) -> PathBuf {
        self.place("copy", index)
    }

    fn place(&self, word: &str, index: u32) -> PathBuf {
        let name = format!("{word}{index:06}");
        let name = match self.names {
            Names::Short => name,
            Names::Long => format!("{name:-<LONG_NAME$}"),
        };
        self.directory(index).join(name)
    }

    /// The directory of file number `index` below that of its job.
    pub fn directory(&self, index: u32) -> PathBuf {
        match self.layout {
            Layout::Flat => PathBuf::new(),
            Layout::Tree => {
                let directory = index / IN_A_DIRECTORY;
                PathBuf::from(format!("{:03}", directory / DIRECTORIES))
                    .join(format!("{:03}", directory % DIRECTORIES))
            }
        }
    }

    /// Number of requests of `buffer` bytes that reach every byte once.
    pub fn pieces(&self, buffer: u64) -> u64 {
        let pieces = |index| self.size(index).div_ceil(buffer);
        (0..self.count).map(pieces).sum()
    }

    /// A short word that identifies the files: equal sets have the same word.
    pub fn word(&self) -> String {
        let sizes = self.sizes.iter().map(|size| format!("-{size}"));
        let word = format!("{}{:?}{:?}", self.count, self.layout, self.names);
        sizes.fold(word, |word, size| word + &size)
    }

    /// Bytes of all.
    pub fn bytes(&self) -> u64 {
        let sizes = (0..self.count).map(|index| self.size(index));
        sizes.fold(0, u64::saturating_add)
    }
}

impl Operation {
    /// The operation as a workload, which gives a session its name and its threads.
    pub fn workload(&self, jobs: u32, cold: bool) -> Workload {
        Workload {
            threads: jobs,
            cold,
            ..Workload::new(&self.name, Pattern::Sequential, Mix::Read, self.buffer)
        }
    }

    /// A command of the user's own, as `--op` gives it.
    pub fn command(line: &str) -> Self {
        Self {
            name: line.to_owned(),
            op: Kind::Command,
            command: Some(line.to_owned()),
            files: None,
            file_size: Sizes::None,
            layout: Layout::Flat,
            names: Names::Short,
            buffer: buffer(),
            on: Vec::new(),
            size: None,
        }
    }

    /// The files it is about.
    pub fn files(&self) -> Files {
        let sizes: Vec<u64> = self.file_size.all().iter().map(ByteSize::as_u64).collect();
        Files {
            count: self
                .files
                .unwrap_or_else(|| sizes.len().try_into().unwrap_or(u32::MAX)),
            sizes,
            layout: self.layout,
            names: self.names,
        }
    }

    /// Whether it can be done on `file_system`.
    pub fn suits(&self, file_system: FileSystem) -> bool {
        let wanted = self.on.is_empty() || self.on.contains(&file_system);
        // Flash keeps in a cache of its own what another has written below it.
        let under = self.op == Kind::Encrypt && file_system == FileSystem::Jffs2;
        // Nobody makes or mounts what is there.
        let made = matches!(self.op, Kind::Mkfs | Kind::Mount | Kind::Encrypt);
        let there = made && file_system == FileSystem::Directory;
        let refused = file_system.is_read_only() && self.op.writes();
        wanted && !(under || there || refused)
    }

    /// Checks every value.
    ///
    /// # Errors
    /// The first that is impossible.
    pub fn validate(&self) -> Result<(), LabError> {
        let files = self.files();
        let needs_files = !matches!(self.op, Kind::Mkfs | Kind::Mount | Kind::Command);
        let fixed = |fs: &FileSystem| fs.is_read_only();
        let is_request = |size: &u64| size.is_multiple_of(512) && *size <= self.buffer.as_u64();
        let problem = match () {
            () if (self.op == Kind::Command) != self.command.is_some() => {
                "op = \"command\" needs command, and no other op may have it"
            }
            () if needs_files && files.count == 0 => "file_size is missing",
            () if files.count > 0 && files.sizes.is_empty() => "file_size is missing",
            () if files.count > MOST_FILES => "files must be 1000000 or fewer",
            () if self.op == Kind::Encrypt && !files.sizes.iter().all(is_request) => {
                "with op = \"encrypt\", file_size must be a multiple of 512 bytes and no more than \
                 buffer"
            }
            () if !(1..=MOST_BUFFER).contains(&self.buffer.as_u64()) => {
                "buffer must lie between 1 B and 64 MiB"
            }
            () if self.op.writes() && !self.on.is_empty() && self.on.iter().all(fixed) => {
                "cramfs is read-only: use only mkfs, mount, read and stat"
            }
            () => return Ok(()),
        };
        Err(LabError::invalid(
            format!("operation {:?}: {problem}", self.name),
            "Change the value. `cryptmark plans show crypto-fs` prints a plan to copy.",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "name = \"r\"\nop = \"read\"\nfile_size = [\"1 MB\", \"10 MB\"]\n";

    #[test]
    fn sizes_pass_between_processes_exactly() {
        let operation: Operation = toml::from_str(&format!("{VALID}size = \"33 MB\"")).unwrap();
        let text = serde_json::to_string(&operation).unwrap();
        let again: Operation = serde_json::from_str(&text).unwrap();
        assert_eq!(again, operation);
        let files = again.files();
        assert_eq!((files.count, files.bytes()), (2, 11_000_000));
        assert_eq!(again.size, Some(ByteSize::mb(33)));
        let three = Files { count: 3, ..files };
        assert_eq!(three.bytes(), 12_000_000);
    }

    #[test]
    fn impossible_operations_are_refused() {
        let parse = |text: &str| toml::from_str::<Operation>(text).unwrap();
        parse(VALID).validate().unwrap();
        let cases = [
            ("[\"1 MB\", \"10 MB\"]", "[]", "file_size is missing"),
            ("\"r\"", "\"r\"\nfiles = 0", "file_size is missing"),
            ("\"r\"", "\"r\"\nfiles = 1000001", "files must"),
            ("\"r\"", "\"r\"\nbuffer = \"0 B\"", "buffer must"),
            ("\"r\"", "\"r\"\ncommand = \"ls\"", "needs command"),
            ("\"read\"", "\"command\"", "needs command"),
            ("\"read\"", "\"encrypt\"", "multiple of 512"),
            (
                "\"read\"\nfile_size = [\"1 MB\", \"10 MB\"]",
                "\"encrypt\"\nfile_size = \"1000 B\"",
                "multiple of 512",
            ),
            ("\"read\"", "\"write\"\non = [\"cramfs\"]", "read-only"),
        ];
        for (from, to, error) in cases {
            let refused = parse(&VALID.replacen(from, to, 1)).validate().unwrap_err();
            assert!(refused.to_string().contains(error), "{refused}");
        }
        Operation::command("ls").validate().unwrap();
        assert!(parse(VALID).suits(FileSystem::Cramfs));
        let write = parse(&VALID.replacen("\"read\"", "\"write\"", 1));
        assert!(write.suits(FileSystem::Ext2) && !write.suits(FileSystem::Cramfs));
    }
}
