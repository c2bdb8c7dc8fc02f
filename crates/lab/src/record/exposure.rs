//! [`Exposure`]: the part of files that storage shows without the key.

use serde::{Deserialize, Serialize};

/// The part of files that can be seen in the storage below a system.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Exposure {
    /// The contract's word for the system.
    pub system: String,
    /// The cipher; `None` for the plain system.
    pub cipher: Option<String>,
    /// The file system.
    pub fs: String,
    /// The bytes of the files.
    pub contents: Shown,
    /// Their names.
    pub names: Shown,
    /// The length of each name, bytes.
    pub name_lengths: Shown,
    /// The size of each file, bytes.
    pub sizes: Shown,
    /// When each was changed.
    pub times: Shown,
    /// How many files there are.
    pub count: Shown,
    /// Which directories lie in which.
    pub tree: Shown,
    /// The stored files as the observer sees them, some at most; empty if there is no file to see.
    pub entries: Vec<Entry>,
    /// Space that files of some sizes take.
    pub space: Vec<Space>,
}

/// How much of a property of files can be seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shown {
    /// Nothing.
    #[default]
    Hidden,
    /// Something, but values that differ by as much as this look alike.
    Within(u64),
    /// The value itself.
    Exact,
}

/// A stored file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its path in the stored directory.
    pub path: String,
    /// Its size, bytes.
    pub bytes: u64,
    /// When it was changed, Unix time in seconds.
    pub modified: i64,
}

/// The space of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Space {
    /// Bytes of the file itself.
    pub file_bytes: u64,
    /// Sizes of all that is stored for it, bytes.
    pub stored_bytes: u64,
    /// Bytes of the blocks that the file system below gives to that and to directories.
    pub allocated_bytes: u64,
}
