//! A sandbox with a copy of the kernel.

use lab::kernel::{Lab, Version, standard_cache};
use std::fs;
use std::process::{Command, Output};
use testkit::{Sandbox, wait_until};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");

/// A sandbox with a copy of the kernel 5.10, so that its processes are told from others'; nothing,
/// with the reason printed, if that kernel was not built.
pub fn sandbox() -> Option<Sandbox> {
    sandbox_of(Version::V5_10)
}

/// Runs a test with each kernel that was built. The test gets a sandbox with a copy of the kernel,
/// and the options of `lab run` that name it.
pub fn on_each(test: impl Fn(&Sandbox, &[&str])) {
    for version in Version::ALL {
        if let Some(sandbox) = sandbox_of(version) {
            println!("on the lab kernel {version}");
            test(&sandbox, &["--kernel", version.name()]);
        }
    }
}

fn sandbox_of(version: Version) -> Option<Sandbox> {
    let kernel = match Lab::find(version) {
        Ok(lab) => lab.path().to_owned(),
        Err(_) if version == Version::V6_1 => {
            println!("skipped: the lab kernel 6.1 is not built (cargo xtask install lab-kernel)");
            return None;
        }
        Err(error) => {
            println!("skipped: the lab kernel: {error} (cargo xtask install lab-kernel)");
            return None;
        }
    };
    // Without a folder for data, all that the program keeps lies in `home`, which stays empty.
    let sandbox = Sandbox::new(PROGRAM)
        .with_path("HOME", "home")
        .without_variable("XDG_DATA_HOME")
        .with_path("TMPDIR", "temporary")
        .with_path("XDG_CACHE_HOME", "cache")
        .with_directory("home")
        .with_directory("temporary")
        .with_directory("out");
    let inside = kernel.strip_prefix(standard_cache().unwrap()).unwrap();
    let copy = sandbox.path("cache/cryptmark/lab-kernel").join(inside);
    fs::create_dir_all(copy.parent().unwrap()).unwrap();
    fs::copy(kernel, copy).unwrap();
    Some(sandbox)
}

/// `cryptmark lab ARGUMENTS` in the sandbox.
pub fn lab(sandbox: &Sandbox, arguments: &[&str]) -> Command {
    sandbox.cryptmark(&[&["lab"], arguments].concat())
}

/// Runs a script in the kernel, which may write to `out`.
pub fn run(sandbox: &Sandbox, options: &[&str], script: &str) -> Output {
    let arguments = [
        &["run", "--writable", "out"],
        options,
        &["--", "sh", "-c", script],
    ];
    lab(sandbox, &arguments.concat()).output().unwrap()
}

/// The same, of a script that must succeed; its output.
pub fn succeed(sandbox: &Sandbox, options: &[&str], script: &str) -> String {
    let output = run(sandbox, options, script);
    let errors = String::from_utf8_lossy(&output.stderr);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{script}\n{said}\n{errors}");
    said
}

/// Waits until no process of this kernel is left.
///
/// # Panics
/// If one stays.
pub fn assert_nothing_runs(sandbox: &Sandbox) {
    wait_until("processes of the kernel are still there", || {
        processes(sandbox).is_empty()
    });
    for name in ["home", "temporary"] {
        let left: Vec<_> = fs::read_dir(sandbox.path(name)).unwrap().collect();
        assert!(left.is_empty(), "{name}: {left:?}");
    }
}

/// Whatever runs the copy of the kernel, what is inside included.
pub fn processes(sandbox: &Sandbox) -> Vec<u32> {
    let cache = sandbox.path("cache");
    let ours = |entry: &fs::DirEntry| {
        fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe.starts_with(&cache))
    };
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter(ours)
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// The number behind a name in a text of lines `name number`.
pub fn number(text: &str, name: &str) -> u64 {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {text}"))
        .parse()
        .unwrap()
}
