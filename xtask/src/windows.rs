//! The program for Windows: built by mingw, tried under wine, packed. Wine says
//! whether results are right, and nothing of Windows' speed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::emulated::{add_library, has_library};
use crate::package::{VERSION, contents};
use crate::packages::present;
use crate::root;
use crate::tests::{Ran, test};

/// What the program has there: all that is not for Linux alone.
const FEATURES: &[&str] = &["--features", "rustcrypto"];

/// Rust's name of the target.
const TARGET: &str = "x86_64-pc-windows-gnu";

const LINKER: &str = "x86_64-w64-mingw32-gcc";

/// What the C library of Rust asks for random numbers, which wine 8 does not have.
const SHIM: &str = "\
#define RtlGenRandom SystemFunction036
unsigned char __stdcall RtlGenRandom(void *buffer, unsigned long length);
__declspec(dllexport) int __stdcall ProcessPrng(unsigned char *buffer, unsigned long long length)
{
    return RtlGenRandom(buffer, (unsigned long)length);
}
";
const SHIM_NAME: &str = "bcryptprimitives.dll";

/// Tests of the program that are run with that for Windows as well: by file, and
/// which of its tests.
const PROGRAM_TESTS: &[(&str, &[&str])] = &[
    ("windows", &["--include-ignored"]),
    ("volumes", &["golden"]),
];

/// Tests of crates, built for Windows: package, targets, and which of its tests.
const CRATE_TESTS: &[(&str, &[&str], &[&str])] = &[
    (
        "cryptmark-block",
        &[
            "--lib", "--test", "queue", "--test", "stacks", "--test", "windows",
        ],
        &[],
    ),
    // Known answers, and every backend against the reference: portable, and what
    // this processor has beside it.
    ("cryptmark-cipher", &["--lib", "--test", "it"], &[]),
];

/// Builds the program and runs the tests, as far as there is what that takes; says
/// in `ran` what there is not. Prints in the end how much of what was run.
pub fn run(ran: &mut Ran) -> bool {
    if let Some(what) = missing(&[LINKER, "wine", "zip", "unzip"]) {
        ran.skipped
            .push(format!("the program for Windows: {what} is missing"));
        return true;
    }
    println!("\n── the program for Windows, under wine");
    let wine = match Wine::set_up() {
        Ok(wine) => wine,
        Err(error) => {
            eprintln!("wine cannot be set up: {error}");
            return false;
        }
    };
    if !crate::cargo(
        &[
            &["build", "--package", "cryptmark", "--target", TARGET],
            FEATURES,
        ]
        .concat(),
    ) {
        return false;
    }
    let program = match wine.runner(&built("debug")) {
        Ok(program) => program,
        Err(error) => {
            eprintln!("{error}");
            return false;
        }
    };
    let mut passed = true;
    let mut told = Vec::new();
    let mut run = |what: String, cargo: &mut Command| {
        let before = ran.passed;
        let all = test(cargo, ran);
        let count = ran.passed - before;
        let verdict = if all { "" } else { ", and others FAILED" };
        told.push(format!("{what}: {count} passed{verdict}"));
        // A name that no test has any more would pass as well.
        passed &= all && count > 0;
    };
    for (file, which) in PROGRAM_TESTS {
        let mut cargo = crate::cargo_command();
        cargo
            .args(["test", "--workspace", "--test", file])
            .args(crate::tests::FEATURES)
            .arg("--")
            .args(*which)
            .env("CRYPTMARK_WINDOWS", &program);
        run(format!("the program, by tests/{file}"), &mut cargo);
    }
    for (package, targets, which) in CRATE_TESTS {
        let mut cargo = wine.command(env!("CARGO"));
        cargo
            .args(["test", "--target", TARGET, "--package", package])
            .args(*targets)
            .arg("--")
            .args(*which)
            .env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", "wine");
        run(format!("tests of {package}"), &mut cargo);
    }
    // That the package works does not depend on how the program was built.
    let packed = tried_package(&built("debug"), &target().join("wine/packed"));
    told.push(format!(
        "the package, unpacked and asked for its version: {}",
        if packed { "passed" } else { "FAILED" }
    ));
    println!("\nrun under {}:", wine.version());
    for line in told {
        println!("  {line}");
    }
    passed && packed
}

/// The first tool that is not there and cannot be had.
fn missing(tools: &[&str]) -> Option<String> {
    if let Some(tool) = tools.iter().find(|tool| !present(tool)) {
        Some((*tool).to_owned())
    } else if !has_library(TARGET) && !add_library(TARGET) {
        Some("Rust's standard library".to_owned())
    } else {
        None
    }
}

/// The program, built for Windows in one of cargo's profiles.
fn built(profile: &str) -> PathBuf {
    target().join(TARGET).join(profile).join("cryptmark.exe")
}

/// Cargo's folder for what it builds.
fn target() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// Wine with a machine of its own.
struct Wine {
    prefix: PathBuf,
}

impl Wine {
    /// Makes the machine, with the library that it lacks.
    fn set_up() -> std::io::Result<Self> {
        let folder = target().join("wine");
        fs::create_dir_all(&folder)?;
        let wine = Self {
            prefix: folder.join("prefix"),
        };
        let system = wine.prefix.join("drive_c/windows/system32");
        if !system.is_dir() {
            succeed(wine.command("wine").args(["wineboot", "--init"]))?;
        }
        let source = folder.join("shim.c");
        fs::write(&source, SHIM)?;
        succeed(
            Command::new(LINKER)
                .args(["-O2", "-shared", "-o"])
                .arg(system.join(SHIM_NAME))
                .arg(&source)
                .arg("-ladvapi32"),
        )?;
        Ok(wine)
    }

    /// A command to which wine is this machine.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("WINEPREFIX", &self.prefix)
            .env("WINEDEBUG", "-all")
            // It would ask for .NET and a browser.
            .env("WINEDLLOVERRIDES", "mscoree,mshtml=");
        command
    }

    /// What it calls itself, or `wine`.
    fn version(&self) -> String {
        let said = self.command("wine").arg("--version").output();
        let said = said.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        said.unwrap_or_else(|_| "wine".to_owned())
    }

    /// A script that runs `program` with its arguments.
    fn runner(&self, program: &Path) -> std::io::Result<PathBuf> {
        use std::os::unix::fs::PermissionsExt;
        let script = target().join("wine/cryptmark");
        let text = format!(
            "#!/bin/sh\n\
             export WINEPREFIX='{}' WINEDEBUG=-all WINEDLLOVERRIDES=mscoree,mshtml=\n\
             exec wine '{}' \"$@\"\n",
            self.prefix.display(),
            program.display()
        );
        fs::write(&script, text)?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
        Ok(script)
    }
}

/// Runs a command that says nothing.
fn succeed(command: &mut Command) -> std::io::Result<()> {
    let status = command.stdin(Stdio::null()).status()?;
    match status.success() {
        true => Ok(()),
        false => Err(std::io::Error::other(format!("{command:?}: {status}"))),
    }
}

/// Builds the program as it is shipped, packs it with what belongs to it, unpacks that
/// and asks the program for its version, where wine is.
pub fn zip() -> bool {
    if let Some(what) = missing(&[LINKER, "zip", "unzip"]) {
        eprintln!("the program for Windows cannot be packed: {what} is missing");
        return false;
    }
    let build: &[&str] = &["build", "--release", "--locked", "--package", "cryptmark"];
    let built = crate::cargo(&[build, &["--target", TARGET], FEATURES].concat());
    built && tried_package(&self::built("release"), &target().join("package"))
}

/// Packs `program` in `folder`; whether it works when it is unpacked.
fn tried_package(program: &Path, folder: &Path) -> bool {
    pack(program, folder)
        .and_then(|package| try_package(&package))
        .inspect_err(|error| eprintln!("{error}"))
        .is_ok()
}

/// Some of what is packed beside the program.
const TEXTS: &[&str] = &[
    "README.md",
    "CHANGELOG.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "THIRD-PARTY.txt",
    "docs/how-to/what-will-luks-cost.md",
];

fn pack(program: &Path, folder: &Path) -> std::io::Result<PathBuf> {
    let name = format!("cryptmark-{VERSION}-x86_64-windows");
    let content = folder.join(&name);
    let package = folder.join(format!("{name}.zip"));
    for old in [&content, &package] {
        let _ = fs::remove_dir_all(old);
        let _ = fs::remove_file(old);
    }
    fs::create_dir_all(&content)?;
    fs::copy(program, content.join("cryptmark.exe"))?;
    contents::documents(&content)
        .and_then(|()| contents::licences(TARGET, &[], &content))
        .map_err(std::io::Error::other)?;
    let mut zip = Command::new("zip");
    zip.args(["-q", "-r", "-X"]).arg(&package).arg(&name);
    succeed(zip.current_dir(folder))?;
    println!(
        "{}: {:.1} MB",
        package.display(),
        fs::metadata(&package)?.len() as f64 / 1e6
    );
    Ok(package)
}

fn try_package(package: &Path) -> std::io::Result<()> {
    if !present("wine") {
        println!("skipped: the package for Windows (wine is missing)");
        return Ok(());
    }
    let wine = Wine::set_up()?;
    let folder = target().join("wine/package");
    let _ = fs::remove_dir_all(&folder);
    succeed(
        Command::new("unzip")
            .arg("-q")
            .arg(package)
            .arg("-d")
            .arg(&folder),
    )?;
    let name = package.file_stem().unwrap_or_default();
    for text in TEXTS {
        fs::metadata(folder.join(name).join(text))?;
    }
    let program = folder.join(name).join("cryptmark.exe");
    let output = wine
        .command("wine")
        .arg(program)
        .arg("--version")
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}");
    let lines: Vec<&str> = said.lines().collect();
    let ours = |line: &&str| line.starts_with(&format!("cryptmark {VERSION}"));
    let target = format!("target: {TARGET}");
    match lines.first().is_some_and(ours) && lines.contains(&target.as_str()) {
        true => Ok(()),
        false => Err(std::io::Error::other(format!("the program says {said:?}"))),
    }
}
