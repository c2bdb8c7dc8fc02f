//! `cargo xtask book`: the pages of docs/ as a website, by mdBook.

use crate::root;
use crate::tools::{Tool, told};
use std::process::Command;

/// Without its server for the web: pages are files. Without optimisation, which would take
/// most of the time and save a second of each book.
const MDBOOK: Tool = Tool {
    name: "mdbook",
    version: "0.5.4",
    options: &["--debug", "--no-default-features", "--features", "search"],
};

/// Builds the book into target/book, with a mdBook of the project's own in
/// target/tools; to build that takes minutes, once.
pub fn build() -> bool {
    let Some(mdbook) = told(MDBOOK.provide()) else {
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
