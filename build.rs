//! What the program says of itself: its version, the commit that it is built
//! from where that is known, its target and its features. Nothing here depends
//! on when and where it is built.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What the program is built from, beside the crates.
const SOURCES: &[&str] = &["Cargo.toml", "Cargo.lock", "build.rs", "src"];

/// Folders of a crate that the program is not built from.
const NOT_BUILT: &[&str] = &["benches", "tests"];

/// Characters of a commit's hash: git's own choice differs from clone to clone.
const HASH: usize = 12;

fn main() {
    let sources = sources();
    for source in &sources {
        watch(source);
    }
    let version = env("CARGO_PKG_VERSION");
    let (version, day) = match commit(&sources) {
        Some((hash, day)) => (format!("{version} ({hash} {day})"), day),
        None => (version, String::new()),
    };
    println!("cargo::rustc-env=CRYPTMARK_VERSION={version}");
    println!("cargo::rustc-env=CRYPTMARK_DAY={day}");
    println!("cargo::rustc-env=CRYPTMARK_TARGET={}", env("TARGET"));
    println!("cargo::rustc-env=CRYPTMARK_FEATURES={}", features());
}

/// Cargo sets what is asked for here.
fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// Cargo runs this program again where `path` has changed.
fn watch(path: &Path) {
    // It would take what is not there for changed, every time.
    if path.exists() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

/// The files and folders that the program is built from; a change in them
/// builds it anew in any case.
fn sources() -> Vec<PathBuf> {
    let mut sources: Vec<PathBuf> = SOURCES.iter().map(PathBuf::from).collect();
    for part in entries(Path::new("crates"))
        .iter()
        .flat_map(|path| entries(path))
    {
        if !NOT_BUILT.iter().any(|name| part.ends_with(name)) {
            sources.push(part);
        }
    }
    sources.sort();
    sources
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// The commit, marked where `sources` differ from it, and its day: where this
/// folder is the root of a checkout.
fn commit(sources: &[PathBuf]) -> Option<(String, String)> {
    let inside = git(&["rev-parse", "--show-prefix"], &[])?;
    // Sources without a checkout of their own may lie in somebody else's.
    if !inside.is_empty() {
        return None;
    }
    // Every commit and checkout of this work tree adds a line to its log.
    for name in ["HEAD", "logs/HEAD"] {
        watch(Path::new(&git(&["rev-parse", "--git-path", name], &[])?));
    }
    let head = git(&["log", "-1", "--format=%H %cs"], &[])?;
    let (hash, day) = head.split_once(' ')?;
    let changed = git(&["status", "--porcelain", "--"], sources)?;
    let dirty = if changed.is_empty() { "" } else { "-dirty" };
    Some((format!("{}{dirty}", hash.get(..HASH)?), day.to_owned()))
}

/// What git says, if there is one and it has an answer.
fn git(arguments: &[&str], paths: &[PathBuf]) -> Option<String> {
    let output = Command::new("git")
        // The index belongs to who works here.
        .arg("--no-optional-locks")
        .args(arguments)
        .args(paths)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}

/// The features that are built in, in the order of the alphabet.
fn features() -> String {
    let mut features: Vec<String> = std::env::vars()
        .filter_map(|(name, _)| {
            let name = name.strip_prefix("CARGO_FEATURE_")?;
            Some(name.to_lowercase().replace('_', "-"))
        })
        .filter(|name| name != "default")
        .collect();
    features.sort();
    match features.is_empty() {
        true => "none".to_owned(),
        false => features.join(" "),
    }
}
