//! The project's own chores: `cargo xtask test`, `cargo xtask edges`, …

#![forbid(unsafe_code)]

mod api;
mod arm_model;
mod book;
mod budget;
mod edges;
mod emulated;
mod fuzz;
mod library;
mod msrv;
mod package;
mod packages;
mod pictures;
mod promises;
mod prose;
mod publish;
mod python;
mod results;
mod sanitizers;
mod sbom;
mod tests;
mod tools;
mod ublk;
mod unpacked;
mod windows;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;
use tools::Tool;

const USAGE: &str = "\
cargo xtask COMMAND

  test           install what the tests need (as root, with apt) and run them all
  install        what longer tests need, alone: tests, ceph, deny (cargo-deny), elsewhere (Spark, Azurite), suites (pjdfstest, fsx),
                 lab-kernel (both versions of docs/LAB-KERNEL.md, built in the user's cache)
  emulated       all of the cipher crate's tests on other machines, by QEMU
  arm-model      instructions and modelled cycles a byte of ciphers on Arm, as tables for docs/ARM.md [FILTER]
  windows        the program for Windows: built, and tried under wine [--zip packs it in target/package as it is shipped]
  ublk           disks of a kernel that has the ublk driver, in QEMU: KERNEL UBLK_DRV.KO
  constant-time  prove it of every cipher and backend; writes crates/cipher/constant_time.tsv [--no-timing] [FILTER]
  edges          check who imports whom, that unsafe stays in its rooms, and that Linux is asked for
  book           the pages of docs/ as a website in target/book, by mdBook
  pictures       docs/pictures/terminal.svg and report.png, of the stored run results/quick.json.zst
  promises       break each promise of docs/SECURITY.md in a copy, and see its test fail [NAME]...
  prose          length of sentences, banned phrases and long lines in docs, comments and messages, and their limits
  python         the Python package as a wheel, tested with each PYTHON [--release] [--arm builds and tests one for aarch64 too] [PYTHON]...
  results        the tables of docs/RESULTS.md and docs/RESULTS-FILES.md, from the runs in results/
  library        the library for C with its header and manual page, below PREFIX
  api            documentation without a warning, and the public items of published crates as in their api.txt
                 [--write writes these files anew]
  msrv           check the published crates by the oldest compiler that the manifest promises
  publish        pack the published crates and build them from their packages; nothing is uploaded
  sanitizers     tests by Miri, AddressSanitizer, ThreadSanitizer and loom, on a nightly compiler [miri|address|thread|orders]...
  fuzz           every parser by libFuzzer, on a nightly compiler with cargo-fuzz [SECONDS] [TARGET]...
  sbom           what the program and the published crates are made of, as CycloneDX in target/package
  package        Debian package and static programs, in target/package [--test tries them, --short as CI does]
  budget         crates, size of the program, CPU seconds and memory of a clean release build, and their limits
  ci             what CI runs: fmt, clippy, api, msrv, edges, prose, cargo-deny, test, package --short, budget

CONTRIBUTING.md names longer tests and the benchmarks, which are cargo's.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rest = arguments.get(1..).unwrap_or_default();
    let done = match arguments.first().map(String::as_str) {
        Some("test") => tests::run(),
        Some("emulated") => tests::run_emulated(),
        Some("arm-model") => match rest {
            [] => arm_model::run(""),
            [filter] => arm_model::run(filter),
            _ => usage(),
        },
        Some("install") => install(rest),
        Some("windows") => match rest {
            [] => tests::run_windows(),
            [zip] if zip == "--zip" => {
                packages::provide_windows();
                windows::zip()
            }
            _ => usage(),
        },
        Some("edges") => edges::check(&root()),
        Some("ci") => ci(),
        Some("constant-time") => constant_time(rest),
        Some("ublk") => match rest {
            [kernel, module] => ublk::run(kernel, module),
            _ => usage(),
        },
        // What cargo calls to run the tests there.
        Some("ublk-boot") => match rest {
            [kernel, module, tests, ..] => ublk::boot(kernel, module, tests),
            _ => usage(),
        },
        Some("book") => book::build(),
        Some("pictures") => pictures::run(),
        Some("promises") => promises::run(rest),
        Some("prose") => prose::run(),
        Some("python") => tests::run_python(rest),
        Some("results") => results::run(),
        Some("api") => match rest {
            [] => api::run(false),
            [write] if write == "--write" => api::run(true),
            _ => usage(),
        },
        Some("msrv") => msrv::run(),
        Some("publish") => publish::dry_run(),
        Some("fuzz") => fuzz::run(rest),
        Some("sanitizers") => sanitizers::run(rest),
        Some("sbom") => sbom::run(),
        Some("package") => package::run(rest),
        Some("library") => match rest {
            [prefix] => library::install(prefix),
            _ => usage(),
        },
        Some("budget") => budget::run(),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Not what was asked for.
fn usage() -> bool {
    eprint!("{USAGE}");
    false
}

fn ci() -> bool {
    // The build comes before the tests, so that they find the program.
    step("format", || cargo(&["fmt", "--all", "--check"]))
        && step("clippy", || {
            let everything = ["clippy", "--workspace", "--all-targets"];
            cargo(&[&everything, tests::FEATURES, &["--", "-D", "warnings"]].concat())
        })
        && step("documentation and public items", || api::run(false))
        && step("oldest compiler", msrv::run)
        && step("edges", || edges::check(&root()))
        && step("prose", prose::run)
        && step("dependencies", tools::deny)
        && step("test", tests::run)
        && step("package", package::short)
        && step("budget", budget::run)
}

fn step(name: &str, run: impl FnOnce() -> bool) -> bool {
    println!("── {name}");
    let begin = Instant::now();
    let done = run();
    let seconds = begin.elapsed().as_secs();
    match done {
        true => println!("── {name} took {seconds} s"),
        false => eprintln!("── {name} failed after {seconds} s"),
    }
    done
}

/// Examines the ciphers as they are shipped, with names for valgrind's log.
fn constant_time(rest: &[String]) -> bool {
    packages::provide();
    let mut arguments = vec!["test", "--release", "--package", "cryptmark-cipher"];
    for profile in [
        "profile.release.strip='none'",
        "profile.release.debug='line-tables-only'",
    ] {
        arguments.extend(["--config", profile]);
    }
    arguments.extend(["--test", "constant_time", "--", "prove"]);
    arguments.extend(rest.iter().map(String::as_str));
    cargo(&arguments)
}

/// What others test file systems with, at these versions.
const SUITES: [Tool; 2] = [
    Tool {
        name: "pjdfstest",
        version: "0.2.2",
        options: &[],
    },
    Tool {
        name: "fsx",
        version: "0.3.2",
        options: &[],
    },
];

/// Provides what some of the longer tests need.
fn install(rest: &[String]) -> bool {
    let [what] = rest else {
        return usage();
    };
    match what.as_str() {
        "tests" => {}
        "ceph" => packages::provide_ceph(),
        "deny" => return tools::provide_deny(),
        "elsewhere" => packages::provide_elsewhere(),
        "lab-kernel" => {
            packages::provide();
            return cargo(&["build", "--package", "cryptmark"])
                && tests::lab_kernels(&["5.10", "6.1"]);
        }
        "suites" => {
            packages::provide_for_suites();
            let built = SUITES
                .iter()
                .all(|tool| tools::told(tool.provide()).is_some());
            if !built {
                return false;
            }
        }
        _ => return usage(),
    }
    packages::provide();
    true
}

/// Runs cargo in the workspace; true when it succeeded.
fn cargo(arguments: &[&str]) -> bool {
    cargo_command()
        .args(arguments)
        .status()
        .is_ok_and(|status| status.success())
}

/// Cargo, in the workspace's root, without what the cargo that runs this program says of it:
/// build scripts of some crates would take that for a change, and everything behind
/// them would be built again each time cargo is called this way and by hand in turns.
fn cargo_command() -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(root());
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name.as_ref());
        }
    }
    command
}

/// The workspace's root.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."))
        .to_owned()
}
