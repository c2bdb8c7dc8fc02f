//! `cargo xtask test`: every test, with what it could not run named and counted.

mod programs;

use crate::emulated::{self, Extent};
use crate::{packages, python, root, windows};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Marks a line in which a test says what it could not run, and why.
pub const SKIPPED: &str = "skipped: ";

/// The reasons for which tests may be skipped.
const ALLOWED: &str = include_str!("../allowed_skips.txt");

/// What came of tests.
#[derive(Default)]
pub struct Ran {
    /// How many passed.
    pub passed: usize,
    /// What could not be run, and why.
    pub skipped: Vec<String>,
    /// What the tests that failed said.
    pub failures: Vec<String>,
}

impl Ran {
    /// Passes the output of test programs on, counts what passed and collects what was skipped and
    /// what failed.
    fn listen(&mut self, output: impl BufRead) {
        let mut failures = Failures::default();
        let mut whole = Whole::default();
        for line in output.split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            self.failures.extend(whole.next(&line));
            if let Some(at) = line.find(SKIPPED) {
                self.skipped.push(line[at + SKIPPED.len()..].to_owned());
            }
            self.passed += passed(&line).unwrap_or_default();
            if failures.has(&line) {
                self.failures.push(line.clone().into_owned());
            }
            println!("{line}");
        }
        self.failures.extend(whole.end());
    }
}

/// What cargo builds with the features that are tested everywhere: all but
/// `fleet-report`, whose DataFusion takes longer to compile than half of everything
/// else.
pub const FEATURES: &[&str] = &[
    "--features",
    "fleet,model,postgres,programs,reference,rustcrypto,tls,ublk",
];

/// Provides what tests need, runs them here and some of the cipher crate's on
/// other machines; sums up.
pub fn run() -> bool {
    packages::provide();
    sum_up(|ran| {
        let all = [&["test", "--workspace"], FEATURES].concat();
        for left in [
            "reports on fleets (cargo test --workspace --all-features --test fleet)",
            "Spark and a store as Azure's (cargo xtask install elsewhere)",
            "a Ceph (cargo xtask install ceph)",
        ] {
            ran.skipped.push(left.to_owned());
        }
        // Tests without the kernel say that they skipped it.
        let _ = crate::cargo(&[&all[..], &["--no-run"]].concat()) && lab_kernels(&["5.10"]);
        let mut here = programs::run(&all, ran);
        let mut documentation = crate::cargo_command();
        documentation
            .args(&all)
            .args(["--doc", "--no-fail-fast", "--"]);
        here &= test(&mut documentation, ran);
        let windows = "the program for Windows (cargo xtask windows builds and tries it)";
        ran.skipped.push(windows.to_owned());
        let python = python::short(ran);
        emulated::run(Extent::Short, ran) && here && python
    })
}

/// Has the program that lies beside this one build lab kernels, unless they
/// are there. Tests use whichever is there; each takes minutes.
pub fn lab_kernels(versions: &[&str]) -> bool {
    let Ok(own) = std::env::current_exe() else {
        return false;
    };
    versions.iter().all(|version| {
        Command::new(own.with_file_name("cryptmark"))
            .args(["lab", "build", "--kernel", version])
            .status()
            .is_ok_and(|status| status.success())
    })
}

/// Provides what tests need, runs all of the cipher crate's on other machines,
/// sums up.
pub fn run_emulated() -> bool {
    packages::provide();
    sum_up(|ran| emulated::run(Extent::Whole, ran))
}

/// Provides what it takes, builds the program for Windows and runs tests of it,
/// sums up.
pub fn run_windows() -> bool {
    packages::provide_windows();
    sum_up(windows::run)
}

/// Builds and tests the Python package, sums up.
pub fn run_python(rest: &[String]) -> bool {
    packages::provide();
    sum_up(|ran| python::run(rest, ran))
}

fn sum_up(tests: impl FnOnce(&mut Ran) -> bool) -> bool {
    let mut ran = Ran::default();
    let passed = tests(&mut ran);
    let mut skipped = ran.skipped;
    skipped.sort();
    skipped.dedup();
    println!(
        "\n{} tests or parts of tests could not run here",
        skipped.len()
    );
    for line in &skipped {
        println!("  {line}");
    }
    // Last, for who sees only the end of what was printed.
    for line in ran.failures {
        println!("{line}");
    }
    skipped.retain(|line| !is_allowed(line));
    for line in &skipped {
        println!("skipped, and not in xtask/allowed_skips.txt: {line}");
    }
    passed && skipped.is_empty()
}

/// Says what is skipped, and why; whether that is allowed.
pub fn skip(reason: &str) -> bool {
    println!("{SKIPPED}{reason}");
    is_allowed(reason)
}

/// Whether a test may be skipped for this reason.
fn is_allowed(reason: &str) -> bool {
    let patterns = ALLOWED.lines().map(str::trim);
    let mut patterns = patterns.filter(|line| !line.is_empty() && !line.starts_with('#'));
    patterns.any(|pattern| matches(pattern, reason))
}

/// Whether `text` is `pattern`, in which each `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(text) = text.strip_prefix(first) else {
        return false;
    };
    let mut ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    ends.any(|at| matches(rest, &text[at..]))
}

/// Runs `cargo`, a `cargo test` up to the arguments of the tests, and listens to it.
pub fn test(cargo: &mut Command, ran: &mut Ran) -> bool {
    let child = cargo
        // Passing tests, too, are to be heard when they skip something.
        .arg("--show-output")
        .current_dir(root())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        eprintln!("cargo could not be started");
        return false;
    };
    if let Some(output) = child.stdout.take() {
        ran.listen(BufReader::new(output));
    }
    child.wait().is_ok_and(|status| status.success())
}

/// Finds what failed tests said in the output of a test program, which lists them
/// between two lines `failures:`.
#[derive(Default)]
struct Failures {
    listed: bool,
    backtrace: bool,
}

impl Failures {
    /// Whether `line`, the next one, is of a failed test, and of no backtrace.
    fn has(&mut self, line: &str) -> bool {
        if line == "failures:" {
            self.listed = !self.listed;
            return false;
        }
        let heading = line.starts_with("---- ");
        self.backtrace = !heading && (self.backtrace || line == "stack backtrace:");
        self.listed && !self.backtrace
    }
}

/// Finds test programs that ended before they said what came of them: a signal ends one
/// without a word.
#[derive(Default)]
struct Whole {
    running: bool,
    last: String,
}

impl Whole {
    /// What the program said last that ended before this line.
    fn next(&mut self, line: &str) -> Option<String> {
        let mut words = line.split(' ');
        let begins = words.next() == Some("running")
            && words
                .next()
                .is_some_and(|count| count.parse::<usize>().is_ok())
            && words.next().is_some_and(|word| word.starts_with("test"));
        let cut_off = if begins { self.end() } else { None };
        self.running = begins || self.running && !line.starts_with("test result: ");
        if !line.is_empty() {
            line.clone_into(&mut self.last);
        }
        cut_off
    }

    /// The same of the last program.
    fn end(&mut self) -> Option<String> {
        let said = &self.last;
        let what = format!("a test program ended in the middle; the last that it said: {said}");
        std::mem::take(&mut self.running).then_some(what)
    }
}

/// How many tests passed, by the line that ends a test program's output.
fn passed(line: &str) -> Option<usize> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    counts.split_once(" passed")?.0.parse().ok()
}

#[test]
fn one_feature_is_left_out() {
    let mut manifests = vec![root().join("Cargo.toml")];
    let crates = std::fs::read_dir(root().join("crates")).unwrap();
    manifests.extend(crates.map(|folder| folder.unwrap().path().join("Cargo.toml")));
    let mut features = std::collections::BTreeSet::new();
    for manifest in manifests {
        let text = std::fs::read_to_string(manifest).unwrap();
        let manifest: toml::Table = text.parse().unwrap();
        let own = manifest.get("features").and_then(toml::Value::as_table);
        features.extend(own.into_iter().flat_map(toml::Table::keys).cloned());
    }
    // `report` is what `fleet-report` has of the crate `fleet`.
    assert!(features.remove("fleet-report") && features.remove("report"));
    let features: Vec<String> = features.into_iter().collect();
    assert_eq!(FEATURES[1], features.join(","));
    let config = std::fs::read_to_string(root().join(".cargo/config.toml")).unwrap();
    assert!(config.contains(&format!("\"test --workspace --features {}\"", FEATURES[1])));
}

#[test]
fn failures_are_found_without_their_backtraces() {
    let output = "test good ... ok\ntest bad ... FAILED\n\nsuccesses:\n\n---- good stdout ----\n\
        fine\n\nsuccesses:\n    good\n\nfailures:\n---- bad stdout ----\n\
        thread 'bad' panicked at a.rs:1:2:\nleft is not right\nstack backtrace:\n   0: main\n\
        ---- worse stdout ----\nno\nfailures:\n    bad\n    worse\n\ntest result: FAILED.";
    let mut failures = Failures::default();
    let found: Vec<&str> = output.lines().filter(|line| failures.has(line)).collect();
    let expected = [
        "---- bad stdout ----",
        "thread 'bad' panicked at a.rs:1:2:",
        "left is not right",
        "---- worse stdout ----",
        "no",
    ];
    assert_eq!(found, expected);
}

#[test]
fn programs_that_end_in_the_middle_are_found() {
    let found = |output: &str| {
        let mut whole = Whole::default();
        let mut found: Vec<String> = output.lines().filter_map(|line| whole.next(line)).collect();
        found.extend(whole.end());
        found
    };
    let good = "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed\n\n";
    assert!(found(good).is_empty());
    for output in [
        format!("{good}running 2 tests\ntest b ... ok\n\n{good}"),
        format!("{good}running 2 tests\ntest b ... ok\n"),
    ] {
        let [cut_off] = &found(&output)[..] else {
            panic!("one program ended in the middle of {output}");
        };
        assert!(cut_off.ends_with("test b ... ok"), "{cut_off}");
    }
}

#[test]
fn results_are_counted() {
    let line = "test result: ok. 41 passed; 0 failed; 2 ignored; 0 measured; 5 filtered out";
    assert_eq!(passed(line), Some(41));
    assert_eq!(passed("test result: FAILED. 3 passed; 1 failed"), Some(3));
    assert_eq!(passed("test a_test ... ok"), None);
}

#[test]
fn skips_are_allowed_by_name() {
    assert!(is_allowed("this CPU has no AVX2"));
    assert!(is_allowed("f2fs: the kernel or its program is not there"));
    assert!(is_allowed("3 commands of the book: it takes minutes"));
    for reason in ["", "*", "# a comment", "cryptsetup is not installed"] {
        assert!(!is_allowed(reason), "{reason}");
    }
    assert!(matches("a*c*", "abc") && matches("a*c*", "abcabcd") && !matches("a*c", "abcd"));
}
