//! The cipher crate's tests on machines that are not here: 64-bit Arm with its
//! kernels, 32 bits, big-endian. QEMU runs programs for other CPUs; that says
//! whether their results are right, and nothing of their speed.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::packages::present;
use crate::root;
use crate::tests::{Ran, test};

/// A machine that Debian has a linker and a C library for, and QEMU a program.
pub struct Machine {
    /// What it is there to show.
    purpose: &'static str,
    /// Rust's name.
    pub target: &'static str,
    /// Debian's name.
    pub triplet: &'static str,
    pub emulator: &'static str,
}

/// 64-bit Arm, which the engine has kernels for.
pub const AARCH64: Machine = Machine {
    purpose: "kernels for aarch64",
    target: "aarch64-unknown-linux-gnu",
    triplet: "aarch64-linux-gnu",
    emulator: "qemu-aarch64-static",
};

const MACHINES: &[Machine] = &[
    AARCH64,
    Machine {
        purpose: "32 bits",
        target: "armv7-unknown-linux-gnueabihf",
        triplet: "arm-linux-gnueabihf",
        emulator: "qemu-arm-static",
    },
    Machine {
        purpose: "big-endian",
        target: "s390x-unknown-linux-gnu",
        triplet: "s390x-linux-gnu",
        emulator: "qemu-s390x-static",
    },
];

/// How much of the tests is run.
#[derive(Clone, Copy)]
pub enum Extent {
    /// The tests through the crate's interface, without those that
    /// [`LEFT_OUT`] names: a few minutes.
    Short,
    /// All of them, which takes far longer.
    Whole,
}

/// Parts of the names of tests that take minutes in emulation. Others show the
/// same for fewer or smaller sectors or for chosen inputs, and how cores share a
/// request depends on no CPU.
const LEFT_OUT: &[&str] = &[
    "of_larger_sectors",
    "a_run_is_its_sectors_one_by_one",
    "several_cores_do_what_one_does",
    "random_inputs",
    "samples::",
];

/// Runs the tests on every machine that there is what it takes for; says in
/// `ran` which there is not.
pub fn run(extent: Extent, ran: &mut Ran) -> bool {
    let mut passed = true;
    for machine in MACHINES {
        let Machine {
            purpose, target, ..
        } = machine;
        match machine.missing() {
            Some(what) => ran
                .skipped
                .push(format!("{purpose}, on {target}: {what} is missing")),
            None => {
                println!("\n── {purpose}: the cipher crate on {target}, emulated");
                if let Extent::Short = extent {
                    println!("without unit tests and {}", LEFT_OUT.join(", "));
                    println!("cargo xtask emulated runs these, too");
                }
                passed &= machine.test(extent, ran);
            }
        }
    }
    passed
}

impl Machine {
    pub fn linker(&self) -> String {
        format!("{}-gcc", self.triplet)
    }

    /// The C library's folder.
    pub fn system(&self) -> String {
        format!("/usr/{}", self.triplet)
    }

    /// What is not there and cannot be had.
    pub fn missing(&self) -> Option<String> {
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

    /// Cargo, which builds for this machine and runs what it has built.
    pub fn cargo(&self, command: &str) -> Command {
        let name = self.target.to_uppercase().replace('-', "_");
        let runner = format!("{} -L {}", self.emulator, self.system());
        let mut cargo = crate::cargo_command();
        cargo
            .args([command, "--target", self.target])
            .env(format!("CARGO_TARGET_{name}_LINKER"), self.linker())
            .env(format!("CARGO_TARGET_{name}_RUNNER"), runner);
        cargo
    }

    fn test(&self, extent: Extent, ran: &mut Ran) -> bool {
        let mut cargo = self.cargo("test");
        cargo.args(["--package", "cryptmark-cipher", "--test", "it"]);
        match extent {
            Extent::Short => {
                cargo.arg("--");
                for tests in LEFT_OUT {
                    cargo.args(["--skip", tests]);
                }
            }
            Extent::Whole => {
                cargo.args(["--lib", "--"]);
            }
        }
        test(&mut cargo, ran)
    }
}

/// Whether Rust's standard library for `target` is installed.
pub fn has_library(target: &str) -> bool {
    let found = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", target])
        .current_dir(root())
        .stderr(Stdio::null())
        .output();
    found.is_ok_and(|found| Path::new(String::from_utf8_lossy(&found.stdout).trim()).is_dir())
}

pub fn add_library(target: &str) -> bool {
    let added = Command::new("rustup")
        .args(["target", "add", target])
        .current_dir(root())
        .status();
    added.is_ok_and(|status| status.success()) && has_library(target)
}
