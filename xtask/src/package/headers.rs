//! musl's headers for a machine that this is not: Debian has no compiler with
//! them, but its package of headers can be unpacked without installing it.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::output;
use crate::root;

/// Flags with which `compiler` finds musl's headers, and its own, in place of
/// those of the C library that it was made for. `architecture` and `triplet` are
/// Debian's names of the machine.
pub fn flags(architecture: &str, triplet: &str, compiler: &str) -> Result<Vec<String>, String> {
    let folder = root().join(format!("target/tools/musl-{architecture}"));
    let headers = folder.join("usr/include").join(triplet);
    if !headers.is_dir() {
        println!("── fetching musl's headers for {architecture} into target/tools");
        fetch(architecture, &folder)?;
    }
    let own = output(Command::new(compiler).arg("-print-file-name=include"))?;
    Ok(vec![
        "-nostdinc".to_owned(),
        format!("-isystem {}", headers.display()),
        format!("-isystem {}", own.trim()),
    ])
}

/// Unpacks Debian's package into `folder`. Apt is given lists of its own, so
/// that the machine's stay as they are.
fn fetch(architecture: &str, folder: &Path) -> Result<(), String> {
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
    run(&["--quiet", "download", "musl-dev"])
        .map_err(|error| format!("{error}\n{}", updated.err().unwrap_or_default()))?;
    let package = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|suffix| suffix == "deb"))
        .ok_or("apt-get downloaded nothing")?;
    output(
        Command::new("dpkg-deb")
            .arg("--extract")
            .args([&package, folder]),
    )?;
    // The lists are a hundred times as large.
    fs::remove_dir_all(apt).map_err(|error| error.to_string())
}
