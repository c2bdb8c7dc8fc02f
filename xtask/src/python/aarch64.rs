//! The package for aarch64, tested by Debian's Python in QEMU.

use super::{USED, build, test};
use crate::emulated::{AARCH64, add_library, has_library};
use crate::packages::present;
use crate::tests::Ran;
use crate::{root, unpacked};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's name of the machine.
const ARCHITECTURE: &str = "arm64";

/// The version of Python that Debian 12 has.
const VERSION: &str = "3.11";

/// Python, and the libraries of its modules that the tests import.
const PACKAGES: &[&str] = &[
    "python3.11-minimal",
    "libpython3.11-minimal",
    "libpython3.11-stdlib",
    "libc6",
    "libcrypt1",
    "libexpat1",
    "libffi8",
    "liblzma5",
    "libbz2-1.0",
    "libssl3",
    "libuuid1",
    "zlib1g",
];

/// Builds a wheel for aarch64 and tests it, as far as that can be done here.
pub fn run(tools: &Path, profile: &[&str], ran: &mut Ran) -> bool {
    let mut skip = |what: &str| {
        ran.skipped.push(format!("Python for aarch64: {what}"));
        true
    };
    if !has_library(AARCH64.target) && !add_library(AARCH64.target) {
        return skip("Rust's standard library is missing");
    }
    let folder = root().join("target/python");
    let target = [profile, &["--target", AARCH64.target]].concat();
    let Some(wheel) = build(tools, &folder.join("wheels-aarch64"), &target) else {
        return false;
    };
    if !present(AARCH64.emulator) {
        return skip(&format!("{} is missing", AARCH64.emulator));
    }
    println!("\n── the package for aarch64, emulated");
    let site = folder.join("site-aarch64");
    match python(&folder.join("aarch64"), &site) {
        Ok(python) => {
            if !install(tools, &site, &wheel.to_string_lossy()) {
                eprintln!("the wheel could not be installed for aarch64");
                return false;
            }
            let _ = install(tools, &site, USED[0]);
            let mut python = Command::new(python);
            python.env("PYTHONPATH", site);
            test(python, ran)
        }
        Err(error) => skip(error.lines().next().unwrap_or_default()),
    }
}

/// Unpacks Python into `folder`, and returns a program in the new folder `site` that runs it.
fn python(folder: &Path, site: &Path) -> Result<PathBuf, String> {
    if unpacked::fetched(folder).is_empty() {
        println!(
            "fetching Python for {ARCHITECTURE} into {}",
            folder.display()
        );
        unpacked::unpack(ARCHITECTURE, PACKAGES, folder)?;
    }
    let _ = fs::remove_dir_all(site);
    let python = site.join("python");
    let script = format!(
        "#!/bin/sh\nexec {} -L '{folder}' '{folder}/usr/bin/python{VERSION}' \"$@\"\n",
        AARCH64.emulator,
        folder = folder.display()
    );
    // Tests start Python by this name, and the kernel cannot start one for another machine.
    let executable = format!(
        "import sys\nsys.executable = {:?}\n",
        python.display().to_string()
    );
    fs::create_dir_all(site)
        .and_then(|()| fs::write(&python, script))
        .and_then(|()| fs::set_permissions(&python, Permissions::from_mode(0o755)))
        .and_then(|()| fs::write(site.join("sitecustomize.py"), executable))
        .map_err(|error| format!("{}: {error}", site.display()))?;
    Ok(python)
}

/// Installs a package for aarch64 in `site`.
fn install(tools: &Path, site: &Path, package: &str) -> bool {
    Command::new(tools.join("bin/python"))
        .args(["-m", "pip", "install", "--quiet"])
        .args(["--disable-pip-version-check", "--only-binary", ":all:"])
        .args(["--platform", "manylinux2014_aarch64"])
        .args(["--python-version", VERSION, "--target"])
        .arg(site)
        .arg(package)
        .status()
        .is_ok_and(|status| status.success())
}
