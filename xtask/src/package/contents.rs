//! What lies beside the program in every package: manual pages, completions,
//! documents, licences.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{VERSION, output};
use crate::root;

/// Documents of the tree that are handed on, and the folders of the book's pages.
const DOCUMENTS: &[&str] = &["README.md", "CHANGELOG.md", "CONTRIBUTING.md"];
const PAGES: &[&str] = &[
    "docs",
    "docs/how-to",
    "docs/method",
    "docs/decisions",
    "docs/pictures",
];

/// What a page is, or shows.
const SUFFIXES: &[&str] = &["md", "svg", "png"];

/// Licences of the program itself, as its tree has them.
const LICENCES: &[(&str, &str)] = &[
    ("LICENSE-MIT", "LICENSE-MIT"),
    ("LICENSE-APACHE", "LICENSE-APACHE"),
    // The lab kernel's configuration and patches, which the program carries.
    ("crates/lab/kernel/COPYING", "LICENSE-GPL-2.0"),
];

/// A shell, and where below `share` it looks for completions.
const SHELLS: &[(&str, &str)] = &[
    ("bash", "bash-completion/completions/cryptmark"),
    ("zsh", "zsh/site-functions/_cryptmark"),
    ("fish", "fish/vendor_completions.d/cryptmark.fish"),
];

/// Lays out below `staged/share` what `program`, which was built for `target`
/// by Rust's name, and the tree give.
pub fn stage(program: &Path, target: &str, staged: &Path) -> Result<(), String> {
    let share = staged.join("share");
    // What an earlier version had must not be in this one.
    let _ = fs::remove_dir_all(staged);
    let manual = folder(&share.join("man/man1"))?;
    output(
        Command::new(program)
            .args(["man", "--out-dir"])
            .arg(&manual),
    )?;
    for (shell, place) in SHELLS {
        let script = output(Command::new(program).args(["completions", shell]))?;
        write(&share.join(place), &script)?;
    }
    documents(&folder_of_documents(staged))?;
    licences(target, super::FEATURES, &folder_of_documents(staged))
}

/// The folder of documents in what is staged.
pub fn folder_of_documents(staged: &Path) -> PathBuf {
    staged.join("share/doc/cryptmark")
}

/// Copies into `documents` what people read: README, changelog, the book's pages,
/// laid out as in the tree, so that their links hold; and the program's licences.
pub fn documents(documents: &Path) -> Result<(), String> {
    folder(documents)?;
    for name in DOCUMENTS {
        copy(&root().join(name), &documents.join(name))?;
    }
    for (from, name) in LICENCES {
        copy(&root().join(from), &documents.join(name))?;
    }
    for name in PAGES {
        let pages = folder(&documents.join(name))?;
        for page in files(&root().join(name))? {
            let suffix = page.extension().unwrap_or_default();
            if SUFFIXES.iter().any(|known| suffix == *known) {
                copy(&page, &pages.join(page.file_name().unwrap_or_default()))?;
            }
        }
    }
    Ok(())
}

/// Writes into `documents` the names and licences of all crates that the program
/// for `target`, by Rust's name, is linked with where cargo's options `features`
/// choose its features. Texts that several share are there once.
pub fn licences(target: &str, features: &[&str], documents: &Path) -> Result<(), String> {
    let metadata = [
        "metadata",
        "--locked",
        "--all-features",
        "--format-version=1",
    ];
    let metadata = output(crate::cargo_command().args(metadata))?;
    let metadata: Value = serde_json::from_str(&metadata).map_err(|error| error.to_string())?;
    let mut places = BTreeMap::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let text = |field: &str| package[field].as_str().unwrap_or_default();
        let name = format!("{} v{}", text("name"), text("version"));
        places.insert(name, PathBuf::from(text("manifest_path")));
    }
    let tree = ["tree", "--locked", "--package=cryptmark"];
    let linked = output(crate::cargo_command().args(tree).args(features).args([
        "--edges=normal,no-proc-macro",
        "--prefix=none",
        "--format={p}\t{l}",
        "--target",
        target,
    ]))?;

    let mut names = BTreeMap::new();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in linked.lines() {
        let Some((package, licence)) = line.split_once('\t') else {
            continue;
        };
        // What lies in a folder of the tree is the program itself.
        let name = package.split(" (").next().unwrap_or(package).to_owned();
        if package.contains(" (/") || names.contains_key(&name) {
            continue;
        }
        let manifest = places.get(&name).ok_or(format!("where is {name}?"))?;
        for file in files(manifest.parent().unwrap_or(manifest))? {
            if is_licence(&file) {
                let text = fs::read(&file).map_err(|error| error.to_string())?;
                let text = String::from_utf8_lossy(&text).replace("\r\n", "\n");
                let users = texts.entry(text.trim().to_owned()).or_default();
                users.push(name.clone());
            }
        }
        names.insert(name, licence.trim().to_owned());
    }
    let mut page =
        "The program is linked with these libraries. Their licences follow the list.\n\n"
            .to_owned();
    for (name, licence) in &names {
        page.push_str(&format!("{name}: {licence}\n"));
    }
    for (text, users) in &texts {
        let rule = "─".repeat(72);
        page.push_str(&format!("\n{rule}\n{}\n\n{text}\n", users.join(", ")));
    }
    write(&documents.join("THIRD-PARTY.txt"), &page)
}

fn is_licence(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let name = name.to_uppercase();
    let begins = [
        "LICENSE",
        "LICENCE",
        "COPYING",
        "COPYRIGHT",
        "NOTICE",
        "UNLICENSE",
    ];
    file.is_file() && begins.iter().any(|begin| name.starts_with(begin))
}

/// Writes the changelog that Debian wants of a package: what has changed in the
/// program stands in the one that people read.
pub fn debian_changelog(staged: &Path, date: u64) -> Result<(), String> {
    let day = format!("@{date}");
    let day = output(Command::new("date").args(["--utc", "--rfc-email", "--date", &day]))?;
    let text = format!(
        "cryptmark ({VERSION}-1) stable; urgency=medium\n\n  \
         * See /usr/share/doc/cryptmark/changelog.gz.\n\n \
         -- The cryptmark developers <developers@cryptmark.invalid>  {day}"
    );
    write(&staged.join("changelog.Debian"), &text)
}

fn folder(path: &Path) -> Result<PathBuf, String> {
    fs::create_dir_all(path).map_err(|error| told(path, &error))?;
    Ok(path.to_owned())
}

/// The entries of a folder, in order.
fn files(path: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(path).map_err(|error| told(path, &error))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    Ok(files)
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::copy(from, to).map_err(|error| told(from, &error))?;
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    folder(path.parent().unwrap_or(path))?;
    fs::write(path, text).map_err(|error| told(path, &error))
}

fn told(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who installs a package reads its pages where they lie.
    #[test]
    fn links_of_the_documents_lead_to_documents() {
        let place = tempfile::tempdir().unwrap();
        documents(place.path()).unwrap();
        let mut pages = vec![place.path().join("README.md")];
        for name in PAGES {
            pages.extend(files(&place.path().join(name)).unwrap());
        }
        let mut count = 0;
        let is_text = |page: &&PathBuf| page.extension().is_some_and(|suffix| suffix == "md");
        for page in pages.iter().filter(is_text) {
            let text = fs::read_to_string(page).unwrap();
            for link in text.split("](").skip(1) {
                let link = link.split([')', '#']).next().unwrap();
                if link.starts_with("https://") {
                    continue;
                }
                let led = page.parent().unwrap().join(link);
                assert!(led.exists(), "{}: {link}", page.display());
                count += 1;
            }
        }
        assert!(count > 80, "{count} links");
    }
}
