//! What packages bring beside the program, in the programs that read it: manual
//! pages in groff, completions in their shells. And what the program says of the
//! commit that it is built from.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Whether `program` is there; says that `what` is skipped where it is not.
fn present(program: &str, what: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        println!("skipped: {what} ({program} is missing)");
    }
    there
}

/// What a command that must succeed prints.
fn said(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn completions(shell: &str) -> String {
    said(Command::new(PROGRAM).args(["completions", shell]))
}

#[test]
fn manual_pages_are_whole_and_set_without_a_warning() {
    let folder = folder();
    said(
        Command::new(PROGRAM)
            .args(["man", "--out-dir"])
            .arg(folder.path()),
    );
    let names: BTreeSet<String> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for name in ["cryptmark.1", "cryptmark-volume-key-add.1"] {
        assert!(names.contains(name), "{names:?}");
    }
    assert!(!names.contains("cryptmark-agent.1"), "{names:?}");
    let groff = present("groff", "manual pages, set");
    for name in &names {
        let path = folder.path().join(name);
        let text = std::fs::read_to_string(&path).unwrap().replace("\\-", "-");
        assert!(text.contains("SH NAME") && text.contains("SH \"SEE ALSO\""));
        // Every page of ours that it speaks of is there.
        for word in text.split(|letter: char| !letter.is_alphanumeric() && letter != '-') {
            if word.starts_with("cryptmark-") && text.contains(&format!("{word}(1)")) {
                assert!(names.contains(&format!("{word}.1")), "{name}: {word}");
            }
        }
        if groff {
            let set = Command::new("groff")
                .args(["-ww", "-man", "-Kutf8", "-Tutf8", "-z"])
                .arg(&path)
                .output()
                .unwrap();
            assert!(
                set.status.success() && set.stderr.is_empty(),
                "{name}: {set:?}"
            );
        }
    }
    let main = std::fs::read_to_string(folder.path().join("cryptmark.1")).unwrap();
    for section in ["EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES"] {
        assert!(main.contains(section), "{main}");
    }
    assert_eq!(said(Command::new(PROGRAM).arg("man")), main);
}

/// Lines of a shell that completes what stands before the last colon of `line`.
fn in_bash(script: &Path, words: &[&str]) -> Vec<String> {
    let offers = r#"
        source "$1"; shift
        complete -p cryptmark > /dev/null || exit 1
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _cryptmark cryptmark "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", offers, "bash"])
        .arg(script)
        .arg("cryptmark")
        .args(words);
    said(&mut bash).lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_values_and_names() {
    if !present("bash", "completions in bash") {
        return;
    }
    let folder = folder();
    let script = folder.path().join("cryptmark");
    std::fs::write(&script, completions("bash")).unwrap();
    let offers = |words: &[&str]| in_bash(&script, words);
    assert_eq!(offers(&["vol"]), ["volume"]);
    assert_eq!(offers(&["volume", "key", "a"]), ["add"]);
    assert_eq!(offers(&["run", "--tie"]), ["--tier"]);
    assert_eq!(offers(&["run", "--tier", ""]), ["cipher", "block", "fs"]);
    assert_eq!(offers(&["run", "storage"]), ["storage-ciphers"]);
    assert_eq!(offers(&["plans", "show", "fde"]), ["fde-passmark"]);
    assert_eq!(offers(&["drive", "show", "tlc"]), ["tlc-1t"]);
    assert_eq!(
        offers(&["drive", "lifetime", "--device", "mlc"]),
        ["mlc-128g"]
    );
    // A plan of one's own: nothing of ours fits, and bash goes on to files.
    assert_eq!(offers(&["run", "./mine"]), [""]);
    let commands = offers(&[""]);
    assert!(commands.iter().any(|offer| offer == "doctor"));
    for hidden in ["agent", "engine-file"] {
        assert!(!commands.iter().any(|offer| offer == hidden));
    }
}

#[test]
fn fish_completes_commands_and_values() {
    if !present("fish", "completions in fish") {
        return;
    }
    let folder = folder();
    let script = folder.path().join("cryptmark.fish");
    std::fs::write(&script, completions("fish")).unwrap();
    let offers = |line: &str| -> Vec<String> {
        let mut fish = Command::new("fish");
        fish.args(["--no-config", "-c", "source $argv[1]; complete -C $argv[2]"])
            .arg(&script)
            .arg(line)
            .env("HOME", folder.path());
        let text = said(&mut fish);
        let word = |line: &str| line.split('\t').next().unwrap_or_default().to_owned();
        text.lines().map(word).collect()
    };
    assert_eq!(offers("cryptmark vol"), ["volume"]);
    assert_eq!(
        offers("cryptmark volume re"),
        ["recall", "reencrypt", "resize"]
    );
    assert_eq!(offers("cryptmark run --tier bl"), ["block"]);
    let commands = offers("cryptmark ");
    assert!(commands.iter().any(|offer| offer == "doctor"));
    assert!(!commands.iter().any(|offer| offer == "agent"));
}

#[test]
fn zsh_takes_the_completions() {
    if !present("zsh", "completions in zsh") {
        return;
    }
    let folder = folder();
    let script = completions("zsh");
    assert!(!script.contains("agent:"), "a hidden command is offered");
    std::fs::write(folder.path().join("_cryptmark"), script).unwrap();
    // As a system's folder has it: found by its first line, loaded when wanted.
    let load = "fpath=($1 $fpath); autoload -Uz compinit; compinit -u -D; \
                print -r -- $_comps[cryptmark]; autoload +X _cryptmark && whence -w _cryptmark";
    let mut zsh = Command::new("zsh");
    zsh.args(["-f", "-c", load, "zsh"])
        .arg(folder.path())
        .env("HOME", folder.path());
    assert_eq!(said(&mut zsh), "_cryptmark\n_cryptmark: function\n");
}

#[test]
fn the_version_says_what_the_program_is_built_for_and_from() {
    let short = said(Command::new(PROGRAM).arg("-V"));
    let long = said(Command::new(PROGRAM).arg("--version"));
    let version = concat!("cryptmark ", env!("CARGO_PKG_VERSION"));
    assert!(short.starts_with(version), "{short}");
    let lines: Vec<&str> = long.lines().collect();
    assert_eq!(lines[0], short.trim_end());
    assert!(lines[1].starts_with(&format!("target: {}-", std::env::consts::ARCH)));
    let features = lines[2].strip_prefix("features: ").unwrap();
    let has = |feature: &str| features.split(' ').any(|name| name == feature);
    assert_eq!(has("tls"), cfg!(feature = "tls"));
    assert_eq!(has("ublk"), cfg!(feature = "ublk"));
    assert_eq!(has("postgres"), cfg!(feature = "postgres"));
    let of_run = said(Command::new(PROGRAM).args(["run", "-V"]));
    assert!(of_run.contains(env!("CARGO_PKG_VERSION")));
}

#[test]
fn records_have_the_version_with_its_commit() {
    let folder = folder();
    let plan = "title = \"tiny\"\nsize = \"4 MiB\"\nrepetitions = 3\nciphers = [\"aes-xts-plain64\"]\n\
                [[workload]]\nname = \"read\"\npattern = \"random\"\nop = \"read\"\n\
                block_size = \"4 KiB\"\nseconds = 0.01\n";
    std::fs::write(folder.path().join("tiny.toml"), plan).unwrap();
    let run = ["run", "tiny.toml", "--no-progress", "--json", "run.json"];
    said(
        Command::new(PROGRAM)
            .args(run)
            .arg("--store")
            .arg(folder.path().join("runs.db"))
            .current_dir(folder.path()),
    );
    let text = std::fs::read(folder.path().join("run.json")).unwrap();
    let record: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let version = record["host"]["versions"]["cryptmark"].as_str().unwrap();
    let short = said(Command::new(PROGRAM).arg("-V"));
    assert_eq!(format!("cryptmark {version}\n"), short);
}

/// A small program with this one's build script, in a folder.
struct Probe<'a>(&'a Path);

impl Probe<'_> {
    fn lay(folder: &Path) {
        let manifest = "[package]\nname = \"probe\"\nversion = \"1.2.3\"\nedition = \"2024\"\n\
                        [features]\nzeta = []\nalpha = []\n[workspace]\n";
        let source = "fn main() { print!(\"{}|{}|{}\", env!(\"CRYPTMARK_VERSION\"), \
                      env!(\"CRYPTMARK_DAY\"), env!(\"CRYPTMARK_FEATURES\")) }\n";
        std::fs::create_dir_all(folder.join("src")).unwrap();
        std::fs::create_dir_all(folder.join("crates/part/tests")).unwrap();
        std::fs::write(folder.join("Cargo.toml"), manifest).unwrap();
        std::fs::write(folder.join("src/main.rs"), source).unwrap();
        std::fs::write(folder.join("crates/part/tests/it.rs"), "").unwrap();
        std::fs::write(folder.join(".gitignore"), "/target\n").unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("build.rs");
        std::fs::copy(script, folder.join("build.rs")).unwrap();
    }

    fn git(&self, arguments: &[&str]) -> Output {
        let output = Command::new("git")
            .args(["-c", "user.name=Probe", "-c", "user.email=probe@localhost"])
            .args(arguments)
            .current_dir(self.0)
            .env("GIT_COMMITTER_DATE", "2026-03-04T23:59:00+09:00")
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        output
    }

    /// Builds it; what it prints, and whether it had to be built.
    fn built(&self, options: &[&str]) -> (String, bool) {
        let output = Command::new(env!("CARGO"))
            .args(["build", "--offline", "--verbose"])
            .args(options)
            .current_dir(self.0)
            .env("CARGO_TARGET_DIR", self.0.join("target"))
            .output()
            .unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{told}");
        let said = said(&mut Command::new(self.0.join("target/debug/probe")));
        (said, !told.contains("Fresh probe"))
    }
}

#[test]
fn one_commit_has_one_version_wherever_it_is_built() {
    if !present("git", "versions of commits") {
        return;
    }
    let folder = folder();
    let place = folder.path().join("first");
    Probe::lay(&place);
    let probe = Probe(&place);
    // The tests' folder may lie in a checkout, which is not the probe's.
    let alone = "1.2.3||none".to_owned();
    assert_eq!(probe.built(&[]), (alone.clone(), true));
    assert_eq!(probe.built(&[]), (alone, false));

    probe.git(&["init", "--quiet"]);
    probe.git(&["add", "."]);
    probe.git(&["commit", "--quiet", "--message", "one"]);
    let hash = String::from_utf8(probe.git(&["rev-parse", "HEAD"]).stdout).unwrap();
    let committed = format!("1.2.3 ({} 2026-03-04)|2026-03-04|none", &hash[..12]);
    // Nothing has told cargo that the folder is a checkout now.
    let _ = std::fs::remove_dir_all(place.join("target"));
    assert_eq!(probe.built(&[]), (committed.clone(), true));
    let features = probe.built(&["--features", "zeta,alpha"]).0;
    assert!(features.ends_with("|alpha zeta"), "{features}");
    assert_eq!(probe.built(&[]).0, committed);

    // What it is not built from changes nothing.
    std::fs::write(place.join("crates/part/tests/it.rs"), "// changed").unwrap();
    std::fs::write(place.join("README"), "new").unwrap();
    assert_eq!(probe.built(&[]), (committed.clone(), false));
    // A file that git does not know may well be built.
    std::fs::write(place.join("src/new.rs"), "").unwrap();
    let dirty = format!("{}-dirty 2026-03-04", &hash[..12]);
    assert!(probe.built(&[]).0.contains(&dirty));

    probe.git(&["add", "."]);
    probe.git(&["commit", "--quiet", "--message", "two"]);
    let second = probe.built(&[]).0;
    assert!(!second.contains("dirty") && second != committed, "{second}");

    let clone = folder.path().join("another clone");
    let (from, to) = (place.to_str().unwrap(), clone.to_str().unwrap());
    probe.git(&["clone", "--quiet", from, to]);
    assert_eq!(Probe(&clone).built(&[]).0, second);
    let tree = folder.path().join("work tree");
    probe.git(&[
        "worktree",
        "add",
        "--quiet",
        "--detach",
        tree.to_str().unwrap(),
    ]);
    let tree = Probe(&tree);
    assert_eq!(tree.built(&[]).0, second);
    // A commit in the work tree is seen there.
    tree.git(&["commit", "--quiet", "--allow-empty", "--message", "three"]);
    let third = tree.built(&[]).0;
    assert!(third != second && !third.contains("dirty"), "{third}");
    assert_eq!(probe.built(&[]), (second, false));
}
