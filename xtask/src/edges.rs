//! Who may import whom, where unsafe may live, and who may name options (docs/DESIGN.md).

mod options;
mod systems;

use std::fs;
use std::path::{Path, PathBuf};

/// A crate, and the crates of the house that it may depend on.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("cipher", &[]),
    ("block", &[]),
    ("drive", &["block"]),
    ("volume", &["cipher", "block"]),
    ("serve", &["block"]),
    ("lab", &["block", "cipher", "volume", "serve", "drive"]),
    ("report", &["lab"]),
    ("fleet", &["lab", "report"]),
    ("testkit", &[]),
    ("bindings/c", &["cipher", "volume", "serve"]),
    (
        "bindings/python",
        &["cipher", "block", "volume", "lab", "report"],
    ),
];

/// The folder of a crate by its name in [`MAY_IMPORT`]. Those for other languages have their folder
/// as their name.
fn folder(name: &str) -> PathBuf {
    match name.contains('/') {
        true => name.into(),
        false => Path::new("crates").join(name),
    }
}

/// Inside a crate: sources below the first path may not name any of the words.
const NEVER: &[(&str, &[&str])] = &[
    ("crates/lab/src/stats", &["clock::", "Instant", "block::"]),
    ("crates/lab/src/summary", &["clock::", "Instant"]),
    ("crates/lab/src/trial", &["println!", "print!", "eprint"]),
    (
        "crates/report/src",
        &["lab::system", "lab::clock", "std::fs", "println!"],
    ),
    ("crates/cipher/src", &["std::fs", "Instant", "println!"]),
];

/// The one file that may say a word for all that.
const CHOICE: (&str, &str) = ("crates/cipher/src/choice.rs", "Instant");

/// Only here may the lab name the crates that know encryption and exports.
const TARGETS: &str = "crates/lab/src/system";
const ONLY_IN_TARGETS: &[&str] = &["cipher::", "volume::", "serve::", "drive::"];

/// Folders and files that may say `unsafe`.
const UNSAFE_ROOMS: &[&str] = &[
    "bindings/c/src",
    "bindings/c/tests",
    "crates/cipher/src/arch",
    "crates/cipher/tests/constant_time/controls.rs",
    "crates/cipher/tests/constant_time/memcheck.rs",
    "crates/cipher/tests/constant_time/trace/step.rs",
    "crates/cipher/tests/leftovers/memory.rs",
    "crates/block/src/sys",
    "crates/lab/src/clock",
    "crates/lab/src/system/peer",
    "crates/serve/src/ublk/sys.rs",
];

/// Checks the tree below `root`; prints every offence.
pub fn check(root: &Path) -> bool {
    let mut offences = manifests(root);
    let files = sources(root);
    for file in &files {
        let Ok(text) = fs::read_to_string(root.join(file)) else {
            offences.push(format!("{} cannot be read", file.display()));
            continue;
        };
        offences.extend(offences_in(file, &text));
        offences.extend(options::offences(file, &text));
    }
    offences.extend(systems::offences(root, &files));
    for offence in &offences {
        eprintln!("{offence}");
    }
    println!("{} offences against the house's edges", offences.len());
    offences.is_empty()
}

fn manifests(root: &Path) -> Vec<String> {
    let mut offences = Vec::new();
    for (name, allowed) in MAY_IMPORT {
        let path = root.join(folder(name)).join("Cargo.toml");
        let manifest: toml::Table = match fs::read_to_string(&path).map(|text| text.parse()) {
            Ok(Ok(manifest)) => manifest,
            _ => {
                offences.push(format!("{} cannot be read", path.display()));
                continue;
            }
        };
        for dependency in dependencies(&manifest) {
            let of_the_house = MAY_IMPORT.iter().any(|(other, _)| other == dependency);
            if of_the_house && !allowed.contains(&dependency.as_str()) {
                offences.push(format!("{name} may not depend on {dependency}"));
            }
        }
    }
    offences
}

/// What a manifest names as dependencies, those of some systems alone included.
fn dependencies(manifest: &toml::Table) -> impl Iterator<Item = &String> {
    let systems = manifest.get("target").and_then(|all| all.as_table());
    let of_systems = systems
        .into_iter()
        .flat_map(toml::Table::values)
        .filter_map(|system| system.get("dependencies"));
    manifest
        .get("dependencies")
        .into_iter()
        .chain(of_systems)
        .filter_map(toml::Value::as_table)
        .flat_map(toml::Table::keys)
}

fn offences_in(file: &Path, text: &str) -> Vec<String> {
    let name = file.to_string_lossy();
    let code = |line: &str| {
        let line = line.trim_start();
        !line.starts_with("//")
    };
    // A file's tests stand at its end and may use what they like.
    let text = text.split("#[cfg(test)]").next().unwrap_or(text);
    let mut offences = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| code(line)) {
        let mut offend = |what: String| offences.push(format!("{name}:{}: {what}", number + 1));
        let unsafe_code = ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"];
        if unsafe_code.iter().any(|word| line.contains(word))
            && !UNSAFE_ROOMS.iter().any(|room| name.starts_with(room))
        {
            offend("unsafe outside its rooms".into());
        }
        for (place, words) in NEVER {
            for word in words
                .iter()
                .filter(|word| name.starts_with(place) && line.contains(**word))
                .filter(|word| (name.as_ref(), **word) != CHOICE)
            {
                offend(format!("{place} may not say {word}"));
            }
        }
        if name.starts_with("crates/lab/src") && !name.starts_with(TARGETS) {
            for word in ONLY_IN_TARGETS.iter().filter(|word| names(line, word)) {
                offend(format!("{word} only inside {TARGETS}"));
            }
        }
    }
    offences
}

/// Whether `line` names the crate `word`, not a longer word that ends like it.
fn names(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        !line[..at]
            .ends_with(|before: char| before.is_alphanumeric() || before == '_' || before == ':')
    })
}

/// The Rust sources of the program and its crates, with their tests and benches
/// except those in a `tests.rs` beside the code.
fn sources(root: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = ["src", "tests"].map(PathBuf::from).into();
    for (name, _) in MAY_IMPORT {
        let parts = ["src", "tests", "benches"];
        folders.extend(parts.map(|part| folder(name).join(part)));
    }
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder))
            .into_iter()
            .flatten()
            .flatten()
        {
            let path = folder.join(entry.file_name());
            if entry.path().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|suffix| suffix == "rs")
                && !path.ends_with("tests.rs")
            {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offences_are_found_where_they_are() {
        let offences = |file: &str, text: &str| offences_in(Path::new(file), text).len();
        assert_eq!(
            offences("crates/lab/src/experiment.rs", "use cipher::X;"),
            1
        );
        assert_eq!(
            offences("crates/lab/src/system/mod.rs", "use cipher::X;"),
            0
        );
        assert_eq!(
            offences("crates/lab/src/stats.rs", "use crate::clock::X;"),
            1
        );
        assert_eq!(offences("crates/volume/src/crypt.rs", "unsafe { x() }"), 1);
        assert_eq!(offences("crates/block/src/sys/mod.rs", "unsafe { x() }"), 0);
        assert_eq!(offences("crates/cipher/tests/it/x.rs", "unsafe { x() }"), 1);
        assert_eq!(
            offences("crates/cipher/src/spec.rs", "// unsafe { x() }"),
            0
        );
        assert_eq!(
            offences("crates/lab/src/x.rs", "use crate::sub_cipher::X;"),
            0
        );
        assert_eq!(offences("crates/report/src/x.rs", "use lab::system::X;"), 1);
        assert_eq!(offences("crates/cipher/src/key.rs", "Instant::now()"), 1);
        assert_eq!(offences("crates/cipher/src/choice.rs", "Instant::now()"), 0);
    }

    #[test]
    fn dependencies_of_one_system_count() {
        let manifest = "[dependencies]\na = \"1\"\n[target.'cfg(unix)'.dependencies]\nb = \"1\"\n";
        let manifest: toml::Table = manifest.parse().unwrap();
        assert_eq!(dependencies(&manifest).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn this_tree_has_none() {
        assert!(check(&crate::root()));
    }
}
