//! Files with secrets. No command writes to one: it would be lost. Every file in a folder of key
//! files is a key file, so this program makes no file there: with it, the same options would open
//! nothing any more.

use super::disk::{Names, check_distinct};
use crate::cli::{Failure, standard};
use clap::ArgMatches;
use std::path::{Path, PathBuf};

/// The arguments that name key files or folders of them.
const KEY_FILES: [&str; 3] = ["keyfiles", "outer_keyfiles", "protection_keyfiles"];

/// The arguments that name files which commands make.
const MADE: [&str; 4] = ["header", "output", "fuse", "resume"];

/// The arguments that name files with secrets, and their options.
const SECRETS: [(&str, &str); 11] = [
    ("passphrase_file", "--passphrase-file"),
    ("key_file", "--key-file"),
    ("volume_key_file", "--volume-key-file"),
    ("new_passphrase_file", "--new-passphrase-file"),
    ("new_key_file", "--new-key-file"),
    ("passphrase_files", "--keep-passphrase-file"),
    ("key_files", "--keep-key-file"),
    ("keyfiles", "--keyfile"),
    ("outer_keyfiles", "--outer-keyfile"),
    ("protection_keyfiles", "--protection-keyfile"),
    ("protection_passphrase_file", "--protection-passphrase-file"),
];

/// Refuses a command that would write to a file with its secrets, or make a file in a folder of its
/// key files.
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
    let written = || MADE.iter().chain(&["image"]).flat_map(|id| paths(id));
    // Of a folder, the files in it, which may be links to other places.
    let each = |path: PathBuf| match path.read_dir() {
        Ok(files) => files.flatten().map(|file| file.path()).collect(),
        Err(_) => vec![path],
    };
    for (id, option) in SECRETS {
        for secret in paths(id).into_iter().flat_map(each) {
            for written in written().filter(|path| path != Path::new("-")) {
                check_distinct(option, standard::input(&secret), &written)?;
            }
        }
    }
    let new: &[_] = match name {
        "create" => &["key_file", "keyfiles", "new_key_file"],
        "reencrypt" if here.get_flag("encrypt") => &["key_file"],
        _ => &["new_key_file"],
    };
    let new = new.iter().flat_map(|id| paths(id));
    for (key, image) in new.zip(paths("image").iter().cycle()) {
        if let Some(warning) = block::warn_of_memory(&key, image) {
            eprintln!("warning: {warning}");
        }
    }
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
