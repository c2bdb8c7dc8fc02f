//! Folders of key files. Every file in one of them is a key file, so this program makes no file
//! there: with it, the same options would open nothing any more.

use super::disk::Names;
use crate::cli::Failure;
use clap::ArgMatches;
use std::path::{Path, PathBuf};

/// The arguments that name key files or folders of them.
const KEY_FILES: [&str; 3] = ["keyfiles", "outer_keyfiles", "protection_keyfiles"];

/// The arguments that name files which commands make.
const MADE: [&str; 4] = ["header", "output", "fuse", "resume"];

/// Refuses a command that would make a file in a folder of its key files.
///
/// # Errors
/// Exit code 2.
pub fn check(arguments: &ArgMatches, names: &Names) -> Result<(), Failure> {
    let (mut name, mut here) = ("", arguments);
    while let Some((inner, arguments)) = here.subcommand() {
        (name, here) = (inner, arguments);
    }
    let paths = |id: &str| {
        let all = here.try_get_many::<PathBuf>(id).ok().flatten();
        all.into_iter().flatten().cloned().collect::<Vec<_>>()
    };
    let folders: Vec<PathBuf> = KEY_FILES
        .iter()
        .flat_map(|id| paths(id))
        .filter(|path| path.is_dir())
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    if folders.is_empty() {
        return Ok(());
    }
    let images = paths("image").into_iter();
    let made = MADE.iter().flat_map(|id| paths(id));
    let made: Vec<PathBuf> = match name {
        "create" => made.chain(images).collect(),
        "reencrypt" => made
            .chain(images.map(|image| names.side_header(&image)))
            .collect(),
        _ => made.collect(),
    };
    match made.iter().find(|path| counts_in(&folders, path)) {
        None => Ok(()),
        Some(path) => Err(Failure::new(
            2,
            format!("{} would be in a folder of key files", path.display()),
            "It would count as a key file, and then the same options would open nothing. Name a \
             place in another folder.",
        )),
    }
}

/// Whether a file would be a key file in one of the folders. Names that begin with a dot do not
/// count.
fn counts_in(folders: &[PathBuf], path: &Path) -> bool {
    let is_hidden = |path: &Path| {
        let name = path.file_name().unwrap_or_default();
        name.as_encoded_bytes().starts_with(b".")
    };
    // A link is a file of its own folder, and leads to one of another.
    let ends = [Some(path.to_owned()), path.canonicalize().ok()];
    ends.into_iter().flatten().any(|path| {
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let folder = folder.canonicalize();
        !is_hidden(&path) && folder.is_ok_and(|folder| folders.contains(&folder))
    })
}
