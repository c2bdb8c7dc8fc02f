//! Debian's packages for a machine that this is not, unpacked without installing them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::package::output;

/// Unpacks `packages` for `architecture` into `folder`, where their files stay as well. Apt is
/// given lists of its own, so that the machine's stay as they are.
pub fn unpack(architecture: &str, packages: &[&str], folder: &Path) -> Result<(), String> {
    let apt = folder.join("apt");
    fs::create_dir_all(apt.join("lists/partial")).map_err(|error| error.to_string())?;
    let options = [
        format!("APT::Architecture={architecture}"),
        format!("APT::Architectures={architecture}"),
        format!("Dir::State={}", apt.display()),
        format!("Dir::State::Lists={}", apt.join("lists").display()),
        "Dir::State::Status=/dev/null".to_owned(),
        format!("Dir::Cache={}", apt.display()),
        // Who fetches as somebody else could not write into this folder.
        "APT::Sandbox::User=root".to_owned(),
    ];
    let run = |words: &[&str]| {
        let options = options.iter().flat_map(|option| ["-o", option]);
        let mut command = Command::new("apt-get");
        output(command.args(options).args(words).current_dir(folder))
    };
    // Sources of other people that lack this machine are no reason to stop.
    let updated = run(&["--quiet", "update"]);
    run(&[&["--quiet", "download"], packages].concat())
        .map_err(|error| format!("{error}\n{}", updated.err().unwrap_or_default()))?;
    let fetched = fetched(folder);
    if fetched.len() < packages.len() {
        return Err(format!("apt-get did not download {}", packages.join(", ")));
    }
    for package in fetched {
        let mut extract = Command::new("dpkg-deb");
        output(extract.arg("--extract").args([&package, folder]))?;
    }
    // The lists are a hundred times as large.
    fs::remove_dir_all(apt).map_err(|error| error.to_string())
}

/// The packages' files in `folder`.
pub fn fetched(folder: &Path) -> Vec<PathBuf> {
    let mut fetched: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|suffix| suffix == "deb"))
        .collect();
    fetched.sort();
    fetched
}
