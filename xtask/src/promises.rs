//! `cargo xtask promises`: breaks each promise of docs/SECURITY.md on purpose, in a copy of the
//! sources, and sees a test fail. Tests of this crate check that the list has every promise.

#[cfg(test)]
mod list;

use crate::{cargo_command, root, tests};
use serde::Deserialize;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// What cargo builds. The program's package gives the libraries the same features each time. Crates
/// that are less optimised than usual are there sooner. A program that a break lets go on for good is
/// ended.
const BUILT: [&str; 10] = [
    "--package",
    "cryptmark",
    "--features",
    "fleet,programs,tls,ublk",
    "--config",
    "profile.dev.package.cryptmark-cipher.opt-level=1",
    "--config",
    "profile.dev.package.cryptmark-volume.opt-level=1",
    "--config",
    "target.'cfg(unix)'.runner=['timeout', '300']",
];

#[derive(Deserialize)]
struct List {
    broken: Vec<Broken>,
    /// Read by tests alone.
    #[cfg_attr(not(test), expect(dead_code))]
    unbroken: Vec<Unbroken>,
}

/// A promise that is broken by writing `to` in place of `from` in `file`.
#[derive(Deserialize)]
struct Broken {
    says: String,
    /// The package, then `lib`, `bin` or the name of a test program, then the test.
    test: [String; 3],
    file: String,
    from: String,
    to: String,
}

/// Words that cannot be broken, and the reason.
#[derive(Deserialize)]
#[cfg_attr(not(test), expect(dead_code))]
struct Unbroken {
    says: String,
    because: String,
}

/// What came of a test that was built and is there.
enum Outcome {
    Passed,
    Failed,
    /// It has passed, and left something out for this reason.
    Skipped(String),
}

fn list() -> List {
    toml::from_str(include_str!("promises/promises.toml")).expect("promises.toml is a list")
}

/// Breaks the promises in whose words, tests or files one of the names is, or all.
pub fn run(names: &[String]) -> bool {
    let mut list = list().broken;
    list.retain(|one| {
        let texts = [&one.says, &one.test[1], &one.test[2], &one.file];
        names.is_empty()
            || names
                .iter()
                .any(|name| texts.iter().any(|text| text.contains(name)))
    });
    let tree = match copy() {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("cannot copy the sources: {error}");
            return false;
        }
    };
    println!("── {} promises, first as they are", list.len());
    let mut whole = HashMap::new();
    for Broken { test, .. } in &list {
        whole.entry(test).or_insert_with(|| ran(test, &tree));
    }
    println!("── each broken");
    let mut all = true;
    for one in &list {
        let begin = Instant::now();
        let (kept, what) = match &whole[&one.test] {
            Ok(Outcome::Failed) => (false, "FAILS UNBROKEN".to_owned()),
            Err(error) => (false, error.clone()),
            _ => match one.attempt(&tree) {
                Ok(Outcome::Failed) => (true, "noticed".to_owned()),
                Ok(Outcome::Passed) => (false, "NOT NOTICED".to_owned()),
                Ok(Outcome::Skipped(reason)) => (tests::skip(&reason), "not tried".to_owned()),
                Err(error) => (false, error),
            },
        };
        all &= kept;
        println!("{what}, {} s: {}", begin.elapsed().as_secs(), one.says);
    }
    all
}

/// Copies the files that git knows. Those that have not changed stay, so that cargo builds little.
fn copy() -> std::io::Result<PathBuf> {
    let tree = root().join("target/promises/tree");
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root())
        .output()?;
    for path in String::from_utf8_lossy(&listed.stdout).split_terminator('\0') {
        let (from, to) = (fs::read(root().join(path))?, tree.join(path));
        if fs::read(&to).is_ok_and(|there| there == from) {
            continue;
        }
        fs::create_dir_all(to.parent().unwrap_or(&tree))?;
        fs::write(to, from)?;
    }
    Ok(tree)
}

impl Broken {
    /// Runs the test while the promise is broken.
    fn attempt(&self, tree: &Path) -> Result<Outcome, String> {
        let path = tree.join(&self.file);
        let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
        let write = |text: &str| fs::write(&path, text).map_err(|error| error.to_string());
        write(&text.replacen(&self.from, &self.to, 1))?;
        let outcome = ran(&self.test, tree);
        write(&text)?;
        outcome
    }
}

/// Builds and runs a test; an error if it cannot be built, or is not there.
fn ran([package, program, name]: &[String; 3], tree: &Path) -> Result<Outcome, String> {
    let cargo = |more: &[&str]| {
        let mut cargo = cargo_command();
        cargo.arg("test").args(BUILT).args(["--package", package]);
        match program.as_str() {
            "lib" => cargo.arg("--lib"),
            "bin" => cargo.arg("--bins"),
            name => cargo.args(["--test", name]),
        };
        let build = root().join("target/promises/build");
        cargo
            .current_dir(tree)
            .env("CARGO_TARGET_DIR", build)
            .args(more);
        cargo.output().map_err(|error| error.to_string())
    };
    let built = cargo(&["--no-run"])?;
    if !built.status.success() {
        eprint!("{}", String::from_utf8_lossy(&built.stderr));
        return Err(format!("{package} does not build"));
    }
    let ran = cargo(&["--", "--show-output", "--exact", name])?;
    let said = String::from_utf8_lossy(&ran.stdout);
    let reason = said
        .lines()
        .find_map(|line| line.strip_prefix(tests::SKIPPED));
    Ok(match (ran.status.success(), reason) {
        (false, _) => Outcome::Failed,
        (true, Some(reason)) => Outcome::Skipped(reason.to_owned()),
        (true, None) if said.contains(&format!("test {name} ... ok")) => Outcome::Passed,
        (true, None) => return Err(format!("{package} has no test {name}")),
    })
}
