//! `cargo xtask publish`: whether the crates that others may build on can be published.

use crate::{cargo_command, root};

/// A crate that is published.
pub struct Published {
    /// Its folder below `crates/`.
    pub folder: &'static str,
    /// Its package.
    pub package: &'static str,
    /// Its library.
    pub library: &'static str,
}

/// All of them, each after those that it depends on.
pub const CRATES: &[Published] = &[
    Published {
        folder: "block",
        package: "cryptmark-block",
        library: "block",
    },
    Published {
        folder: "cipher",
        package: "cryptmark-cipher",
        library: "cryptmark_cipher",
    },
    Published {
        folder: "drive",
        package: "cryptmark-drive",
        library: "cryptmark_drive",
    },
    Published {
        folder: "serve",
        package: "cryptmark-serve",
        library: "serve",
    },
    Published {
        folder: "volume",
        package: "cryptmark-volume",
        library: "cryptmark_volume",
    },
    Published {
        folder: "lab",
        package: "cryptmark-lab",
        library: "cryptmark_lab",
    },
];

/// Cargo's options that choose them.
pub fn chosen() -> impl Iterator<Item = &'static str> {
    CRATES.iter().flat_map(|one| ["--package", one.package])
}

/// Packs each crate and builds it from its package, and from the packages of those that it depends
/// on. Nothing is uploaded.
pub fn dry_run() -> bool {
    let folder = root().join("target/publish");
    let done = cargo_command()
        .args(["publish", "--dry-run", "--locked"])
        .args(chosen())
        // Backtraces of these builds are of no use.
        .args(["--config", "profile.dev.debug=false", "--target-dir"])
        .arg(&folder)
        .status();
    // A folder that stays is overwritten by the next run.
    let _ = std::fs::remove_dir_all(&folder);
    done.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;

    fn manifest(folder: &str) -> toml::Table {
        let path = root().join("crates").join(folder).join("Cargo.toml");
        fs::read_to_string(path).unwrap().parse().unwrap()
    }

    #[test]
    fn published_crates_say_what_publishing_needs() {
        let listed: BTreeSet<&str> = CRATES.iter().map(|one| one.folder).collect();
        for entry in fs::read_dir(root().join("crates")).unwrap() {
            let folder = entry.unwrap().file_name().into_string().unwrap();
            let manifest = manifest(&folder);
            let package = manifest["package"].as_table().unwrap();
            let is_published = !package.contains_key("publish");
            assert_eq!(is_published, listed.contains(&folder[..]), "{folder}");
            if !is_published {
                continue;
            }
            for field in [
                "description",
                "license",
                "rust-version",
                "readme",
                "include",
            ] {
                assert!(package.contains_key(field), "{folder}: {field}");
            }
            for field in ["keywords", "categories"] {
                let count = package[field].as_array().unwrap().len();
                assert!((1..=5).contains(&count), "{folder}: {field}");
            }
            for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
                let path = root().join("crates").join(&folder).join(file);
                assert!(path.exists(), "{}", path.display());
            }
        }
    }

    #[test]
    fn crates_come_after_what_they_depend_on_in_the_workspaces_version() {
        let workspace: toml::Table = fs::read_to_string(root().join("Cargo.toml"))
            .unwrap()
            .parse()
            .unwrap();
        let shared = &workspace["workspace"]["dependencies"];
        let version = workspace["workspace"]["package"]["version"].as_str();
        for (at, one) in CRATES.iter().enumerate() {
            assert_eq!(shared[one.folder]["version"].as_str(), version);
            let manifest = manifest(one.folder);
            let names = manifest["dependencies"].as_table().unwrap().keys();
            for name in names.filter(|name| CRATES.iter().any(|other| other.folder == *name)) {
                let place = CRATES.iter().position(|other| other.folder == name);
                assert!(place.unwrap() < at, "{} before {name}", one.folder);
            }
        }
    }
}
