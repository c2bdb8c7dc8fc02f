//! `cargo xtask book`: the pages of docs/ as a website, by mdBook.

use crate::root;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version that the book was looked at with.
const VERSION: &str = "0.5.4";

/// Builds the book into target/book, with a mdBook of the project's own in
/// target/tools; to build that takes minutes, once.
pub fn build() -> bool {
    let tools = root().join("target/tools");
    let Some(mdbook) = provide(&tools) else {
        return false;
    };
    let done = Command::new(mdbook)
        .arg("build")
        .arg(root().join("docs"))
        .status();
    let done = done.is_ok_and(|status| status.success());
    if done {
        println!("{}", root().join("target/book/index.html").display());
    }
    done
}

/// The program, installed if it is not there.
fn provide(tools: &Path) -> Option<PathBuf> {
    let mdbook = tools.join("bin/mdbook");
    let version = Command::new(&mdbook).arg("--version").output();
    let is_it = |said: Vec<u8>| said.trim_ascii().ends_with(VERSION.as_bytes());
    if version.is_ok_and(|output| is_it(output.stdout)) {
        return Some(mdbook);
    }
    let folder = tools.to_str()?;
    // Without its server for the web: pages are files. Without optimisation, which would
    // take most of the time and save a second of each book.
    let installed = crate::cargo(&[
        "install",
        "mdbook",
        "--locked",
        "--version",
        VERSION,
        "--debug",
        "--no-default-features",
        "--features",
        "search",
        "--root",
        folder,
    ]);
    installed.then_some(mdbook)
}
