//! `cargo xtask sbom`: what the program and the published crates are made of, as CycloneDX.
//!
//! The date in them is the commit's, and no path of this machine stands in them.

use crate::package::{FEATURES, HOST, VERSION, date, output};
use crate::publish::CRATES;
use crate::root;
use crate::tools::{Tool, told};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What makes them. Without optimisation it is there in half of the time.
const CYCLONEDX: Tool = Tool {
    name: "cargo-cyclonedx",
    version: "0.5.9",
    options: &["--debug"],
};

/// What it calls its files, beside every manifest of the workspace.
const MADE: &str = "made-by-xtask.cdx";

/// Writes them into target/package.
pub fn run() -> bool {
    let written = told(write(&root().join("target/package")));
    for file in written.iter().flatten() {
        println!("{}", file.display());
    }
    written.is_some()
}

/// Writes them into `folder`; their paths.
pub fn write(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let cyclonedx = CYCLONEDX.provide()?;
    let made = output(
        Command::new(cyclonedx)
            .args(["cyclonedx", "--format", "json", "--spec-version", "1.5"])
            .args(["--quiet", "--target", HOST.name])
            .args(["--override-filename", MADE])
            .args(FEATURES)
            .current_dir(root())
            // Without it they have the time and a number of their own.
            .env("SOURCE_DATE_EPOCH", date()?.to_string()),
    );
    // It writes into the source folders, so its files go whether it succeeded or not.
    let texts: Vec<(PathBuf, String)> = manifests()?
        .into_iter()
        .filter_map(|place| {
            let file = place.join(MADE).with_added_extension("json");
            let text = fs::read_to_string(&file).ok()?;
            let _ = fs::remove_file(&file);
            Some((place, text))
        })
        .collect();
    made?;
    let program = [(root(), "cryptmark")];
    let crates = CRATES
        .iter()
        .map(|one| (root().join("crates").join(one.folder), one.package));
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files = Vec::new();
    for (place, package) in program.into_iter().chain(crates) {
        let found = texts.iter().find(|(of, _)| *of == place);
        let (_, text) = found.ok_or_else(|| format!("there is none of {package}"))?;
        let text = text.replace(&root().display().to_string(), "/cryptmark");
        let file = folder.join(format!("{package}-{VERSION}.cdx.json"));
        fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
        files.push(file);
    }
    Ok(files)
}

/// The folders of the workspace's manifests.
fn manifests() -> Result<Vec<PathBuf>, String> {
    let crates = root().join("crates");
    let entries =
        fs::read_dir(&crates).map_err(|error| format!("{}: {error}", crates.display()))?;
    let mut places = vec![root(), root().join("xtask")];
    places.extend(entries.flatten().map(|entry| entry.path()));
    Ok(places)
}
