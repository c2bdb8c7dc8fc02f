//! Reading `sysfs`: folders, words and numbers.

use super::Fault;
use std::fs;
use std::path::{Path, PathBuf};

/// The folders in `folder`, by name. An absent folder has none.
pub(super) fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    folders.sort();
    folders
}

/// The last part of a path.
pub(super) fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The trimmed text of a file; `None` if there is none.
pub(super) fn word(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The number in a file.
///
/// # Errors
/// [`Fault::Denied`], [`Fault::Gone`], [`Fault::Unreadable`], [`Fault::NotANumber`].
pub(super) fn number(path: &Path) -> Result<i64, Fault> {
    let text = fs::read_to_string(path);
    let text = text.map_err(|error| Fault::reading(path.to_owned(), &error))?;
    text.trim().parse().map_err(|_| Fault::NotANumber {
        path: path.to_owned(),
    })
}

/// The number of a file such as `energy12_input`; `None` if the name has another form.
pub(super) fn index(file: &str, before: &str, behind: &str) -> Option<u32> {
    let digits = file.strip_prefix(before)?.strip_suffix(behind)?;
    digits.parse().ok()
}
