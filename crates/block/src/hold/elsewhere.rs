//! Systems on which files are opened without a lock. Other users of a file are neither looked for
//! nor kept out.

use super::{Hold, User, unopened};
use crate::{BlockError, PathKind};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

pub(super) fn open(path: &Path, _: PathKind, write: bool, _: Hold) -> Result<File, BlockError> {
    let mut options = OpenOptions::new();
    let opened = options.read(true).write(write).open(path);
    opened.map_err(|source| unopened(path, source))
}

pub(super) fn release(_: &File) {}

pub(super) fn writers(_: &Path) -> Vec<User> {
    Vec::new()
}

pub(super) fn is_same(one: &Path, other: &Path) -> io::Result<bool> {
    Ok(one.canonicalize()? == other.canonicalize()?)
}
