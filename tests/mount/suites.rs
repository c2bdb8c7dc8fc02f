//! Suites that others wrote for file systems and their files: `cargo xtask install suites`
//! builds them from crates.io.

use crate::mounts::Mounts;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::{Expect as _, have};

/// A suite's program; a word where it is not there.
fn suite(name: &str) -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("target/tools/bin")
        .join(name);
    if !program.exists() {
        println!("skipped: {name} is not built (cargo xtask install suites)");
        return None;
    }
    Some(program)
}

/// What of pjdfstest fails in `folder`, and how many tests said something.
fn posix(sandbox: &Mounts, program: &Path, folder: &Path) -> (BTreeSet<String>, usize) {
    sandbox.write(
        "suite.toml",
        "[features]\n[features.posix_fallocate]\n[settings]\nnaptime = 0.01\n\
         [dummy_auth]\nentries = [[\"nobody\", \"nogroup\"], [\"daemon\", \"daemon\"]]\n",
    );
    let output = Command::new(program)
        .args(["--configuration-file", "suite.toml", "--path"])
        .arg(folder)
        .current_dir(sandbox.path(""))
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let ended = |word: &str| {
        said.lines()
            .filter(|line| line.trim_end().ends_with(word))
            .filter_map(|line| line.split_whitespace().next())
            .map(str::to_owned)
            .collect::<BTreeSet<_>>()
    };
    let (failed, passed) = (ended("FAILED"), ended("ok"));
    println!(
        "{}: {} tests passed, {} failed, {} asked for what is not here",
        folder.display(),
        passed.len(),
        failed.len(),
        ended("skipped").len()
    );
    let told = failed.len() + passed.len();
    assert!(
        told > 0,
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    (failed, told)
}

/// What fails on ext4 in a volume fails on ext4 without one, too.
#[test]
fn pjdfstest() {
    let Some(program) = suite("pjdfstest") else {
        return;
    };
    let Some(sandbox) = Mounts::new(200) else {
        return;
    };
    if !have(&["mkfs.ext4"]) {
        return;
    }
    let make = |path: PathBuf| Command::new("mkfs.ext4").arg("-qF").arg(path).succeeds();
    sandbox.mount(&["--as", "file"]);
    make(sandbox.path("d/volume"));
    sandbox.umount();
    sandbox.mount(&["--trim", "pass"]);
    let (failed, told) = posix(&sandbox, &program, &sandbox.path("d"));
    sandbox.umount();

    let plain = fs::File::create(sandbox.path("plain")).unwrap();
    plain.set_len(180 << 20).unwrap();
    make(sandbox.path("plain"));
    fs::create_dir(sandbox.path("f")).unwrap();
    let mut mount = Command::new("mount");
    mount
        .arg("-oloop")
        .arg(sandbox.path("plain"))
        .arg(sandbox.path("f"))
        .succeeds();
    let (without, told_there) = posix(&sandbox, &program, &sandbox.path("f"));
    Command::new("umount").arg(sandbox.path("f")).succeeds();
    println!("on both: {without:?}");
    assert_eq!(failed, without);
    assert_eq!(told, told_there);
    assert!(told > 300, "{told} tests are not the suite");
}

/// Runs fsx on `file` for so many operations.
fn exercise(sandbox: &Mounts, program: &Path, file: &Path, settings: &str) {
    sandbox.write("fsx.toml", settings);
    for seed in ["1", "2", "3"] {
        let mut run = Command::new(program);
        run.args(["-f", "fsx.toml", "-S", seed, "-N", "30000", "-P"]);
        run.arg(sandbox.path(""))
            .arg(file)
            .current_dir(sandbox.path(""))
            .succeeds();
    }
}

/// The file that FUSE shows, which keeps its size, and a file on ext4 in it.
#[test]
fn fsx() {
    let Some(program) = suite("fsx") else { return };
    let Some(sandbox) = Mounts::new(120) else {
        return;
    };
    if !have(&["mkfs.ext4"]) {
        return;
    }
    let weights = "read = 10\nwrite = 10\nmapread = 10\nmapwrite = 10\ninvalidate = 1\n\
                   fsync = 1\nfdatasync = 1\npunch_hole = 2\nsendfile = 2\nposix_fadvise = 1\n";
    let fixed = format!(
        "flen = 8388608\nblockmode = true\nnosizechecks = true\n[opsize]\nmax = 262144\n\
         [weights]\n{weights}close_open = 0\ntruncate = 0\nposix_fallocate = 0\n"
    );
    let free = format!(
        "flen = 8388608\n[opsize]\nmax = 262144\n\
         [weights]\n{weights}close_open = 1\ntruncate = 2\nposix_fallocate = 1\ncopy_file_range = 2\n"
    );
    for policy in ["pass", "zero"] {
        sandbox.mount(&["--as", "file", "--trim", policy]);
        exercise(&sandbox, &program, &sandbox.path("d/volume"), &fixed);
        Command::new("mkfs.ext4")
            .arg("-qF")
            .arg(sandbox.path("d/volume"))
            .succeeds();
        sandbox.umount();
        sandbox.mount(&["--trim", policy]);
        exercise(&sandbox, &program, &sandbox.path("d/file"), &free);
        sandbox.umount();
    }
}
