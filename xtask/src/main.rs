//! The project's own chores: `cargo xtask test`, `cargo xtask edges`, …

#![forbid(unsafe_code)]

mod book;
mod edges;
mod emulated;
mod package;
mod packages;
mod tests;
mod ublk;
mod windows;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "\
cargo xtask COMMAND

  test          install what the tests need (as root, with apt) and run them all
  emulated      all of the cipher crate's tests on other machines, by QEMU
  windows       the program for Windows: built, and tried under wine
  windows-zip   the same, as it is shipped, packed in target/package
  lab-kernel    build the kernel of docs/LAB-KERNEL.md in the user's cache
  edges         check who imports whom, that unsafe stays in its rooms, and that Linux is asked for
  ci            what CI runs: fmt, clippy, edges, a release build, test
  bench-fio     beside fio: agreement and load generation [DIRECTORY PAIRS SECONDS]
  bench-find    A/A, delay, slowdown, ledger, timers [DIRECTORY]
  bench-cipher  every cipher, beside its peers
  bench-unlock  unlocking beside its key derivation alone [PAIRS]
  bench-report  the page of 5,000 trials, and of runs in files: written, shown [FILE.json...]
  bench-serve   our NBD server and mounts beside others, on one core; our client beside nbdcopy [ROUNDS SECONDS nbd|files|mounting|client]
  book          the pages of docs/ as a website in target/book, by mdBook
  constant-time prove it of every cipher and backend; writes crates/cipher/constant_time.tsv [--no-timing] [FILTER]
  fuzz          any bytes for a parser: TARGET EXECUTIONS [ALREADY DONE]
  power-loss    cut the power under exported volumes, each so many times [SAMPLES]
  serve-long    servers for as long as wanted: fio verifies, NBD and FUSE are killed [SECONDS KILLS]
  serve-suites  suites of others on mounted volumes: pjdfstest and fsx, built from crates.io
  nbd-long      servers that have a volume's bytes are killed under verified load [KILLS OF EACH]
  ceph          a Ceph on this machine, which has a volume's bytes: OSDs killed under verified load [KILLS]
  fleet-long    200 writers on a PostgreSQL server that is restarted under them [RUNS OF EACH], and its rate
  fleet-reports the tests of reports on fleets, which take minutes more to build
  fleet-elsewhere  exported trials in a store as Azure's, and read by Spark
  fleet-trials  synthetic trials into PostgreSQL, out as Parquet, and what reports on them cost [TRIALS WRITERS]
  ublk          disks of a kernel that has the ublk driver, in QEMU: KERNEL UBLK_DRV.KO
  package       Debian package and static programs, in target/package [--test tries them, --short as CI does]
  budget        time of a clean release build and size of the binary
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rest = arguments.get(1..).unwrap_or_default();
    let done = match arguments.first().map(String::as_str) {
        Some("test") => tests::run(),
        Some("emulated") => tests::run_emulated(),
        Some("windows") => tests::run_windows(),
        Some("windows-zip") => {
            packages::provide_windows();
            windows::zip()
        }
        Some("lab-kernel") => {
            packages::provide();
            cargo(&["build", "--package", "cryptmark"]) && tests::lab_kernel()
        }
        Some("edges") => edges::check(&root()),
        Some("ci") => ci(),
        Some("bench-fio") => bench("cryptmark-lab", "fio", rest),
        Some("bench-find") => bench("cryptmark-lab", "findings", rest),
        Some("bench-serve") => bench("cryptmark", "serve", rest),
        Some("bench-cipher") => bench("cryptmark-cipher", "sectors", rest),
        Some("bench-report") => bench("cryptmark-report", "page", rest),
        Some("bench-unlock") => bench("cryptmark-volume", "unlock", rest),
        Some("constant-time") => constant_time(rest),
        Some("fuzz") => fuzz(rest),
        Some("power-loss") => power_loss(rest),
        Some("serve-long") => serve_long(rest),
        Some("serve-suites") => serve_suites(),
        Some("nbd-long") => nbd_long(rest),
        Some("ceph") => ceph(rest),
        Some("fleet-long") => fleet_long(rest),
        Some("fleet-reports") => tests::run_fleet_reports(),
        Some("fleet-elsewhere") => fleet_elsewhere(),
        Some("fleet-trials") => fleet_trials(rest),
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
        Some("package") => package::run(rest),
        Some("budget") => budget(),
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
        && step("edges", || edges::check(&root()))
        && step("test", tests::run)
        && step("package", package::short)
}

fn step(name: &str, run: impl FnOnce() -> bool) -> bool {
    println!("── {name}");
    let done = run();
    if !done {
        eprintln!("── {name} failed");
    }
    done
}

fn bench(package: &str, name: &str, rest: &[String]) -> bool {
    let mut arguments = vec!["bench", "--package", package, "--bench", name, "--"];
    arguments.extend(rest.iter().map(String::as_str));
    cargo(&arguments)
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

/// Gives a parser spoilt inputs, which a test does for a moment only; it names
/// the targets where it is given none. Millions that were done before are left
/// out: each has inputs of its own.
fn fuzz(rest: &[String]) -> bool {
    let (target, executions, done) = match rest {
        [target, executions] => (target, executions, "0"),
        // Its inputs are not told apart by millions.
        [target, executions, done] if target != "nbd_client" => (target, executions, done.as_str()),
        _ => return usage(),
    };
    let which: &[&str] = match target.as_str() {
        "nbd_client" => &[
            "--package",
            "cryptmark-serve",
            "--lib",
            "any_client_for_long",
        ],
        _ => &["--package", "cryptmark-volume", "--test", "any_volume"],
    };
    cargo_command()
        .args(["test", "--release"])
        .args(which)
        .args(["--", "--ignored", "--nocapture"])
        .env("FUZZ_TARGET", target)
        .env("FUZZ_EXECUTIONS", executions)
        .env("FUZZ_DONE", done)
        .status()
        .is_ok_and(|status| status.success())
}

/// Takes more power cuts than a test has time for.
fn power_loss(rest: &[String]) -> bool {
    let samples = match rest {
        [] => "10000",
        [samples] => samples,
        _ => return usage(),
    };
    cargo_command()
        .args(["test", "--package", "cryptmark", "--test", "power_loss"])
        .args(["--", "--nocapture"])
        .env("POWER_LOSS_SAMPLES", samples)
        .status()
        .is_ok_and(|status| status.success())
}

/// Tests that CI runs for a moment: half an hour of fio's verification, and 200
/// servers killed in each way, unless told otherwise.
fn serve_long(rest: &[String]) -> bool {
    packages::provide();
    let given = |index: usize, usual: &str| {
        let given: Option<&String> = rest.get(index);
        given.map_or_else(|| usual.to_owned(), Clone::clone)
    };
    cargo_command()
        .args([
            "test",
            "--release",
            "--package",
            "cryptmark",
            "--test",
            "serve",
        ])
        .args(["--", "--nocapture", "--test-threads=1", "fio", "killed"])
        .env("VERIFY_SECONDS", given(0, "1800"))
        .env("SERVER_KILLS", given(1, "200"))
        .status()
        .is_ok_and(|status| status.success())
}

/// What others test file systems with, at these versions.
const SUITES: [[&str; 2]; 2] = [["pjdfstest", "0.2.2"], ["fsx", "0.3.2"]];

/// Runs [`SUITES`] on what volumes are mounted as.
fn serve_suites() -> bool {
    packages::provide();
    packages::provide_for_suites();
    let tools = root().join("target/tools");
    let folder = tools.to_string_lossy();
    let installed = SUITES.iter().all(|[name, version]| {
        let install = ["install", name, "--locked", "--version", version, "--root"];
        cargo(&[&install[..], &[&folder]].concat())
    });
    let test = ["test", "--package", "cryptmark", "--test", "mount"];
    let suites = ["--", "--nocapture", "--test-threads=1", "suites::"];
    installed && cargo(&[&test[..], &suites].concat())
}

/// Kills servers that have a volume's bytes more often than a test has time for.
fn nbd_long(rest: &[String]) -> bool {
    packages::provide();
    let kills = match rest {
        [] => "50",
        [kills] => kills,
        _ => return usage(),
    };
    cargo_command()
        .args(["test", "--workspace", "--test", "nbd"])
        .args(tests::FEATURES)
        .args(["--", "--nocapture", "--test-threads=1", "under_load"])
        .env("NBD_KILLS", kills)
        .status()
        .is_ok_and(|status| status.success())
}

/// Has a Ceph keep a volume, while parts of it are killed.
fn ceph(rest: &[String]) -> bool {
    packages::provide_ceph();
    let kills = match rest {
        [] => "3",
        [kills] => kills,
        _ => return usage(),
    };
    cargo_command()
        .args(["test", "--workspace", "--test", "nbd"])
        .args(tests::FEATURES)
        .args(["--", "--ignored", "--nocapture", "an_osd_killed"])
        .env("CEPH_KILLS", kills)
        .status()
        .is_ok_and(|status| status.success())
}

/// Has every writer store more runs than a test has time for, and measures how fast a
/// server takes them and what they need there.
fn fleet_long(rest: &[String]) -> bool {
    packages::provide();
    let runs = match rest {
        [] => "20",
        [runs] => runs,
        _ => return usage(),
    };
    cargo_command()
        .args(["test", "--workspace", "--test", "store_postgres"])
        .args(tests::FEATURES)
        .args(["--", "--include-ignored", "--nocapture", "--test-threads=1"])
        .args(["many_writers", "how_fast_and_how_large"])
        .env("FLEET_RUNS", runs)
        .status()
        .is_ok_and(|status| status.success())
}

/// Tests whose programs are too large to be had for every run.
fn fleet_elsewhere() -> bool {
    packages::provide();
    packages::provide_elsewhere();
    cargo_command()
        .args(["test", "--workspace", "--test", "fleet"])
        .args(tests::FEATURES)
        .args(["--", "--ignored", "--nocapture"])
        .status()
        .is_ok_and(|status| status.success())
}

/// Stores as many trials as many hosts do in years, and reports on them.
fn fleet_trials(rest: &[String]) -> bool {
    packages::provide();
    let mut arguments = vec![
        "bench",
        "--package",
        "cryptmark",
        "--features",
        "fleet-report",
    ];
    arguments.extend(["--bench", "fleet", "--"]);
    arguments.extend(rest.iter().map(String::as_str));
    cargo(&arguments)
}

/// Builds the program from nothing in a folder of its own and weighs it.
fn budget() -> bool {
    const SECONDS: u64 = 240;
    const BYTES: u64 = 25_000_000;
    let target = root().join("target/budget");
    // A folder that is not there is as clean.
    let _ = std::fs::remove_dir_all(&target);
    let start = std::time::Instant::now();
    let folder = target.to_string_lossy().into_owned();
    let built = cargo(&["build", "--release", "--target-dir", &folder]);
    let seconds = start.elapsed().as_secs();
    let size = std::fs::metadata(target.join("release/cryptmark")).map_or(0, |file| file.len());
    println!(
        "clean release build: {seconds} s (budget {SECONDS}); binary: {:.1} MB (budget {:.0})",
        size as f64 / 1e6,
        BYTES as f64 / 1e6
    );
    built && seconds <= SECONDS && size > 0 && size < BYTES
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
