//! The cipher crate's tests on machines that are not here: 64-bit Arm with its
//! kernels, 32 bits, big-endian. QEMU runs programs for other CPUs; that says
//! whether their results are right, and nothing of their speed.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::packages::present;
use crate::root;
use crate::tests::test;

/// A machine that Debian has a linker and a C library for, and QEMU a program.
struct Machine {
    /// What it is there to show.
    purpose: &'static str,
    /// Rust's name.
    target: &'static str,
    /// Debian's name.
    triplet: &'static str,
    emulator: &'static str,
    /// Parts of the names of tests that take too long in emulation.
    left_out: &'static [&'static str],
}

const MACHINES: &[Machine] = &[
    Machine {
        purpose: "kernels for aarch64",
        target: "aarch64-unknown-linux-gnu",
        triplet: "aarch64-linux-gnu",
        emulator: "qemu-aarch64-static",
        left_out: &[],
    },
    Machine {
        purpose: "32 bits",
        target: "armv7-unknown-linux-gnueabihf",
        triplet: "arm-linux-gnueabihf",
        emulator: "qemu-arm-static",
        left_out: &[],
    },
    Machine {
        purpose: "big-endian",
        target: "s390x-unknown-linux-gnu",
        triplet: "s390x-linux-gnu",
        emulator: "qemu-s390x-static",
        left_out: &[],
    },
];

/// Runs the tests on every machine that there is what it takes for; says in
/// `skipped` which there is not.
pub fn run(skipped: &mut Vec<String>) -> bool {
    let mut passed = true;
    for machine in MACHINES {
        let Machine {
            purpose, target, ..
        } = machine;
        match machine.missing() {
            Some(what) => skipped.push(format!("{purpose}, on {target}: {what} is missing")),
            None => {
                println!("\n── {purpose}: the cipher crate on {target}, emulated");
                if !machine.left_out.is_empty() {
                    println!("without {}", machine.left_out.join(", "));
                }
                passed &= machine.test(skipped);
            }
        }
    }
    passed
}

impl Machine {
    fn linker(&self) -> String {
        format!("{}-gcc", self.triplet)
    }

    /// The C library's folder.
    fn system(&self) -> String {
        format!("/usr/{}", self.triplet)
    }

    /// What is not there and cannot be had.
    fn missing(&self) -> Option<String> {
        let tools = [self.linker(), self.emulator.to_owned()];
        let libc = format!("{}/lib/libc.so", self.system());
        if let Some(tool) = tools.into_iter().find(|tool| !present(tool)) {
            Some(tool)
        } else if !Path::new(&libc).is_file() {
            Some(libc)
        } else if !has_library(self.target) && !add_library(self.target) {
            Some("Rust's standard library".to_owned())
        } else {
            None
        }
    }

    fn test(&self, skipped: &mut Vec<String>) -> bool {
        let name = self.target.to_uppercase().replace('-', "_");
        let runner = format!("{} -L {}", self.emulator, self.system());
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args([
                "test",
                "--package",
                "cryptmark-cipher",
                "--lib",
                "--test",
                "it",
            ])
            .args(["--target", self.target])
            .env(format!("CARGO_TARGET_{name}_LINKER"), self.linker())
            .env(format!("CARGO_TARGET_{name}_RUNNER"), runner)
            .arg("--");
        for tests in self.left_out {
            cargo.args(["--skip", tests]);
        }
        test(&mut cargo, skipped)
    }
}

/// Whether Rust's standard library for `target` is installed.
fn has_library(target: &str) -> bool {
    let found = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", target])
        .current_dir(root())
        .stderr(Stdio::null())
        .output();
    found.is_ok_and(|found| Path::new(String::from_utf8_lossy(&found.stdout).trim()).is_dir())
}

fn add_library(target: &str) -> bool {
    let added = Command::new("rustup")
        .args(["target", "add", target])
        .current_dir(root())
        .status();
    added.is_ok_and(|status| status.success()) && has_library(target)
}
