//! `cargo xtask python`: the Python package, built as a wheel, installed and tested.

mod aarch64;

use crate::tests::{FEATURES, Ran};
use crate::{cargo, root};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What builds wheels. Zig links them for C libraries that are older than this machine's.
const BUILDERS: &[&str] = &["maturin==1.16.0", "ziglang==0.17.1"];

/// What tests of the package and its examples use, the first with each Python. Tests of what cannot
/// be had are skipped.
const USED: &[&str] = &[
    "fsspec",
    "matplotlib",
    "pandas",
    "pyarrow",
    "dissect.target",
    "dissect.extfs",
];

/// The C library 2.17, the oldest for which Rust builds.
const PLATFORM: &str = "manylinux2014";

const FOLDER: &str = "bindings/python";

/// Builds a wheel and tests it with each of the interpreters in `rest`, or with `python3`.
/// `--release` builds it as it is shipped, and `--arm` builds and tests one for aarch64 too.
pub fn run(rest: &[String], ran: &mut Ran) -> bool {
    let (options, mut pythons): (Vec<&str>, Vec<&str>) = rest
        .iter()
        .map(String::as_str)
        .partition(|argument| argument.starts_with("--"));
    if options
        .iter()
        .any(|option| !["--release", "--arm"].contains(option))
    {
        eprintln!("cargo xtask python [--release] [--arm] [PYTHON]...");
        return false;
    }
    let has = |option| options.contains(&option);
    if pythons.is_empty() {
        pythons.push("python3");
    }
    let folder = root().join("target/python");
    let tools = folder.join("tools");
    if !provide("python3", &tools, BUILDERS) {
        ran.skipped
            .push("Python: there is no venv, or no package index for maturin and Zig".into());
        return true;
    }
    let profile: &[&str] = if has("--release") {
        &["--release"]
    } else {
        &[]
    };
    let Some(wheel) = build(&tools, &folder.join("wheels"), profile) else {
        return false;
    };
    if has("--arm") && !aarch64::run(&tools, profile, ran) {
        return false;
    }
    pythons.iter().enumerate().all(|(number, python)| {
        println!("\n── the package with {python}");
        let installed = folder.join(format!("installed-{number}"));
        // A folder that is not there is as fresh.
        let _ = fs::remove_dir_all(&installed);
        if !provide(python, &installed, &[&wheel.to_string_lossy()]) {
            eprintln!("the wheel could not be installed for {python}");
            return false;
        }
        let used = if number == 0 { USED } else { &USED[..1] };
        for package in used {
            let _ = pip(&installed, &["--only-binary", ":all:", package]);
        }
        test(Command::new(installed.join("bin/python")), ran)
    })
}

/// Tests the package with the system's Python as `cargo test` has built the crates, without a wheel
/// and without a network. That takes half a minute.
pub fn short(ran: &mut Ran) -> bool {
    let known = "import sys; sys.exit(sys.version_info < (3, 9))";
    let known = Command::new("python3").args(["-c", known]).status();
    if !known.is_ok_and(|status| status.success()) {
        ran.skipped.push("Python: there is no Python 3.9".into());
        return true;
    }
    println!("\n── the Python package");
    let package = root().join("target/python/package");
    let _ = fs::remove_dir_all(&package);
    // With the tests, so that crates have the features with which they are built already.
    let all = ["build", "--workspace", "--lib", "--tests"];
    let built = cargo(&[&all, FEATURES].concat());
    built && stage(&package.join("cryptmark")).is_ok() && {
        let mut python = Command::new("python3");
        python.env("PYTHONPATH", &package);
        test(python, ran)
    }
}

/// Lays out the package in `folder`, as a wheel would.
fn stage(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    for entry in fs::read_dir(root().join(FOLDER).join("python/cryptmark"))? {
        let path = entry?.path();
        if let (true, Some(name)) = (path.is_file(), path.file_name()) {
            fs::copy(&path, folder.join(name))?;
        }
    }
    let library = root().join("target/debug/libcryptmark_native.so");
    fs::copy(library, folder.join("_native.abi3.so")).map(drop)
}

/// Makes a virtual environment of `python` in `folder`, with `packages`.
fn provide(python: &str, folder: &Path, packages: &[&str]) -> bool {
    let there = folder.join("bin/python").exists();
    let made = there
        || Command::new(python)
            .args(["-m", "venv"])
            .arg(folder)
            .status()
            .is_ok_and(|status| status.success());
    made && pip(folder, packages)
}

/// Installs packages in the virtual environment `folder`.
fn pip(folder: &Path, packages: &[&str]) -> bool {
    Command::new(folder.join("bin/python"))
        .args(["-m", "pip", "install", "--quiet"])
        .args(["--disable-pip-version-check"])
        .args(packages)
        .status()
        .is_ok_and(|status| status.success())
}

/// Builds a wheel in `folder`, alone there.
fn build(tools: &Path, folder: &Path, options: &[&str]) -> Option<PathBuf> {
    let _ = fs::remove_dir_all(folder);
    // Maturin runs Zig as a module of the first `python3`.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(tools.join("bin")).chain(std::env::split_paths(&path));
    let built = Command::new(tools.join("bin/maturin"))
        .current_dir(root().join(FOLDER))
        .args(["build", "--locked", "--zig"])
        .args(["--compatibility", PLATFORM, "--out"])
        .arg(folder)
        .args(options)
        .env("PATH", std::env::join_paths(path).ok()?)
        // The same bytes each time: files in the wheel have this time, and not that of the build.
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .status();
    let mut wheels = fs::read_dir(folder).ok()?;
    let wheel = wheels.next()?.ok()?.path();
    built.is_ok_and(|status| status.success()).then_some(wheel)
}

/// Runs the tests with `python`.
fn test(mut python: Command, ran: &mut Ran) -> bool {
    let child = python
        .current_dir(root().join(FOLDER).join("tests"))
        .args(["-X", "dev", "-W", "ignore::DeprecationWarning"])
        .args(["-m", "unittest", "--verbose"])
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        eprintln!("{python:?} could not be started");
        return false;
    };
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            match line.strip_prefix("skipped: ") {
                Some(reason) => ran.skipped.push(reason.to_owned()),
                None => println!("{line}"),
            }
        }
    }
    let passed = child.wait().is_ok_and(|status| status.success());
    if !passed {
        let failed = "tests of the Python package failed; their output says more";
        ran.failures.push(failed.to_owned());
    }
    passed
}
