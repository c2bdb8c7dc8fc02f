//! `cargo xtask package`: what is given to people who do not build. Programs
//! with the features that packages have, a Debian package and archives of static programs, with
//! manual pages, completions, documents and licences.
//!
//! Nothing in them depends on when and where they are built, so far as that is
//! in our hands: paths are cut from the programs, archives are sorted, and every
//! date is the commit's.

mod archive;
mod check;
pub mod contents;
mod headers;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::packages::present;
use crate::root;
use crate::tools::Tool;

/// The version of the workspace.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What packages are built with: all but `fleet-report`, whose DataFusion would make the
/// program three times as large for what one person of a fleet asks now and then.
pub const FEATURES: &[&str] = &["--features", "fleet,rustcrypto,tls,ublk"];

/// A machine that the program is built for.
pub struct Target {
    /// Rust's name.
    pub name: &'static str,
    /// What has to be there for it: programs, and who brings them.
    tools: &'static [(&'static str, &'static str)],
    /// Environment of its build, where cargo's own choice does not do.
    environment: &'static [(&'static str, &'static str)],
    /// What runs its programs here.
    pub emulator: Option<&'static str>,
}

/// The machine that this runs on, as the Debian package has it.
pub const HOST: Target = Target {
    name: "x86_64-unknown-linux-gnu",
    tools: &[("cc", "gcc")],
    environment: &[],
    emulator: None,
};

/// Machines whose programs are static.
pub const STATIC: &[Target] = &[
    Target {
        name: "x86_64-unknown-linux-musl",
        tools: &[("musl-gcc", "musl-tools")],
        environment: &[],
        emulator: None,
    },
    Target {
        name: "aarch64-unknown-linux-musl",
        tools: &[
            ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"),
            ("apt-get", "apt"),
        ],
        environment: &[
            ("CC_aarch64_unknown_linux_musl", "aarch64-linux-gnu-gcc"),
            (
                "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER",
                "aarch64-linux-gnu-gcc",
            ),
        ],
        emulator: Some("qemu-aarch64-static"),
    },
];

/// Builds everything; with `--test` also tries it; with `--short` only what CI
/// has time for.
pub fn run(arguments: &[String]) -> bool {
    let test = match arguments {
        [] => false,
        [flag] if flag == "--test" => true,
        [flag] if flag == "--short" => return short(),
        _ => return crate::usage(),
    };
    crate::packages::provide_for_packages();
    match make() {
        Ok(made) if test => check::all(&made),
        Ok(_) => true,
        Err(error) => {
            eprintln!("{error}");
            false
        }
    }
}

/// What was made.
pub struct Made {
    /// The Debian package.
    pub debian: PathBuf,
    /// The host's program.
    pub program: PathBuf,
    /// The static programs, in the order of [`STATIC`].
    pub programs: Vec<PathBuf>,
    /// Their archives.
    pub archives: Vec<PathBuf>,
    /// What `SHA256SUMS` says.
    pub sums: String,
}

/// Where packages go.
fn folder() -> PathBuf {
    root().join("target/package")
}

/// Where Cargo.toml tells cargo-deb to look.
fn staged() -> PathBuf {
    folder().join("stage")
}

fn make() -> Result<Made, String> {
    let program = build(&HOST)?;
    let programs: Result<Vec<_>, _> = STATIC.iter().map(build).collect();
    pack(&program, &programs?, &folder())
}

/// Packs the host's `program` and the static `programs`, in the order of
/// [`STATIC`], in `folder`.
pub fn pack(program: &Path, programs: &[PathBuf], folder: &Path) -> Result<Made, String> {
    let date = date()?;
    contents::stage(program, HOST.name, &staged())?;
    let debian = debian(program, folder, date, &[])?;
    let mut archives = Vec::new();
    for (target, program) in STATIC.iter().zip(programs) {
        // Its libraries may be others; its pages are the same.
        let documents = contents::folder_of_documents(&staged());
        contents::licences(target.name, FEATURES, &documents)?;
        let name = format!("cryptmark-{VERSION}-{}", target.name);
        archives.push(archive::pack(program, &staged(), &name, folder, date)?);
    }
    let mut files: Vec<&Path> = archives.iter().map(PathBuf::as_path).collect();
    files.push(&debian);
    let materials = crate::sbom::write(folder)?;
    files.extend(materials.iter().map(PathBuf::as_path));
    let sums = archive::sums(folder, &files)?;
    Ok(Made {
        debian,
        program: program.to_owned(),
        programs: programs.to_vec(),
        archives,
        sums,
    })
}

/// The Debian package of the program that lies beside this one, whatever it was
/// built for, made and tried: what CI has time for.
pub fn short() -> bool {
    crate::packages::provide();
    let tried = || -> Result<bool, String> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let folder = folder().join("short");
        let program = folder.join("cryptmark");
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let built = own.with_file_name("cryptmark");
        // Without its symbols it is a tenth of the size.
        output(Command::new("strip").arg("-o").args([&program, &built]))?;
        contents::stage(&program, HOST.name, &staged())?;
        // Who tries a package does not wait for a small one.
        let package = debian(&program, &folder, date()?, &["--fast"])?;
        Ok(check::debian_alone(&package))
    };
    tried().unwrap_or_else(|error| {
        eprintln!("{error}");
        false
    })
}

/// Builds the program for `target`; its path.
fn build(target: &Target) -> Result<PathBuf, String> {
    for (tool, package) in target.tools {
        if !present(tool) {
            return Err(format!(
                "{tool} is missing, for {}; as root: apt-get install {package}",
                target.name
            ));
        }
    }
    if !crate::emulated::has_library(target.name) && !crate::emulated::add_library(target.name) {
        return Err(format!(
            "Rust's standard library for {0} is missing: rustup target add {0}",
            target.name
        ));
    }
    let folder = folder().join("build");
    println!("── building for {}", target.name);
    let built = builder(target, "build", &root())?
        .args(["--release", "--package", "cryptmark", "--target-dir"])
        .arg(&folder)
        .status();
    match built {
        Ok(status) if status.success() => Ok(folder.join(target.name).join("release/cryptmark")),
        _ => Err(format!("the build for {} failed", target.name)),
    }
}

/// A `cargo` command for `target` in the checkout at `source`, whose programs do
/// not tell where they were built.
pub fn builder(target: &Target, command: &str, source: &Path) -> Result<Command, String> {
    let home = match std::env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cargo"),
    };
    let places = [(source, "/cryptmark"), (&home, "/cargo")];
    let remaps: Vec<String> = places
        .iter()
        .map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()))
        .collect();
    let mut flags: Vec<String> = places
        .iter()
        .map(|(from, to)| format!("-ffile-prefix-map={}={to}", from.display()))
        .collect();
    if target.name == "aarch64-unknown-linux-musl" {
        flags.extend(headers::flags(
            "arm64",
            "aarch64-linux-musl",
            "aarch64-linux-gnu-gcc",
        )?);
    }
    let mut cargo = crate::cargo_command();
    cargo
        .args([command, "--locked", "--target", target.name])
        .args(FEATURES)
        .current_dir(source)
        .env("CARGO_ENCODED_RUSTFLAGS", remaps.join("\x1f"))
        .env(
            format!("CFLAGS_{}", target.name.replace('-', "_")),
            flags.join(" "),
        )
        .envs(target.environment.iter().copied());
    Ok(cargo)
}

/// Packs for Debian. What takes its time is compressing, which without its default features
/// `xz` does: built without optimisation it is there sooner.
const CARGO_DEB: Tool = Tool {
    name: "cargo-deb",
    version: "3.8.0",
    options: &["--debug", "--no-default-features"],
};

/// Makes the Debian package of `program` and of what is staged; `options` are
/// cargo-deb's.
fn debian(program: &Path, folder: &Path, date: u64, options: &[&str]) -> Result<PathBuf, String> {
    let cargo_deb = CARGO_DEB.provide()?;
    // cargo-deb takes the program from a folder that looks like cargo's.
    let target = folder.join("debian");
    let release = target.join("release");
    fs::create_dir_all(&release)
        .and_then(|()| fs::copy(program, release.join("cryptmark")))
        .map_err(|error| format!("{}: {error}", release.display()))?;
    contents::debian_changelog(&staged(), date)?;
    let said = output(
        Command::new(cargo_deb)
            .args(["deb", "--no-build", "--no-strip"])
            .args(options)
            .arg("--output")
            .arg(folder)
            .current_dir(root())
            .env("CARGO_TARGET_DIR", &target)
            .env("SOURCE_DATE_EPOCH", date.to_string()),
    )?;
    said.lines()
        .map(PathBuf::from)
        .find(|path| path.extension().is_some_and(|suffix| suffix == "deb"))
        .ok_or_else(|| format!("cargo-deb names no package: {said}"))
}

/// The date that everything gets, in seconds since 1970: SOURCE_DATE_EPOCH, else
/// the commit's, else that of the manifest, which archives of sources keep.
pub fn date() -> Result<u64, String> {
    let given = std::env::var("SOURCE_DATE_EPOCH").ok();
    let commit = || {
        output(
            Command::new("git")
                .args(["log", "-1", "--format=%ct"])
                .current_dir(root()),
        )
        .ok()
    };
    if let Some(text) = given.or_else(commit) {
        return text
            .trim()
            .parse()
            .map_err(|error| format!("{text:?} is no date: {error}"));
    }
    let manifest = fs::metadata(root().join("Cargo.toml")).and_then(|file| file.modified());
    let since = manifest
        .ok()
        .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    since
        .map(|time| time.as_secs())
        .ok_or_else(|| "Cargo.toml has no date".to_owned())
}

/// What a command prints; an error that names it where it fails.
pub fn output(command: &mut Command) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() {
        true => Ok(said),
        false => Err(format!(
            "{command:?}: {}\n{said}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}
