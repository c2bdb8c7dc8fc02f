//! Cargo's own tools, in target/tools: built there once, of a version that was looked at.

use crate::{cargo, root};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A program that `cargo install` builds.
pub struct Tool {
    /// The crate, whose program has the same name.
    pub name: &'static str,
    /// The version.
    pub version: &'static str,
    /// Further options of `cargo install`.
    pub options: &'static [&'static str],
}

/// What checks dependencies. Without optimisation it is there in half of the time.
const DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
    options: &["--debug"],
};

impl Tool {
    /// The program, built if it is not there.
    pub fn provide(&self) -> Result<PathBuf, String> {
        let Self {
            name,
            version,
            options,
        } = *self;
        let tools = root().join("target/tools");
        let program = tools.join("bin").join(name);
        let known = fs::read_to_string(tools.join(".crates.toml")).unwrap_or_default();
        if program.exists() && known.contains(&format!("\"{name} {version} (")) {
            return Ok(program);
        }
        println!("── installing {name} in target/tools");
        let folder = tools.to_string_lossy();
        let install = ["install", name, "--locked", "--force", "--version", version];
        match cargo(&[&install, options, &["--root", &folder]].concat()) {
            true => Ok(program),
            false => Err(format!("{name} could not be installed")),
        }
    }
}

/// Installs what checks dependencies.
pub fn provide_deny() -> bool {
    told(DENY.provide()).is_some()
}

/// Whether licences, versions and sources of all dependencies are as deny.toml has them.
/// Advisories need a network.
pub fn deny() -> bool {
    let Some(deny) = told(DENY.provide()) else {
        return false;
    };
    let checked = Command::new(deny)
        .current_dir(root())
        .args(["check", "licenses", "bans", "sources"])
        .status();
    checked.is_ok_and(|status| status.success())
}

/// What was wanted; on an error `None`, and the error is told.
pub fn told<T>(outcome: Result<T, String>) -> Option<T> {
    outcome.inspect_err(|error| eprintln!("{error}")).ok()
}
