//! `volume trim-check`, as root: on volumes of its own, and on what is mounted.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cryptmark");

fn check(arguments: &[&str]) -> Output {
    Command::new(PROGRAM)
        .args(["volume", "trim-check"])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Whether it can run here; says so when not.
fn possible() -> bool {
    let root = fs::metadata("/proc/self").is_ok_and(|own| {
        use std::os::unix::fs::MetadataExt;
        own.uid() == 0
    });
    let there = ["/dev/fuse", "/dev/loop-control", "/sbin/mkfs.ext4"];
    let missing = there.iter().find(|path| !Path::new(path).exists());
    match (root, missing) {
        (true, None) => true,
        (false, _) => {
            println!("skipped: only root can mount");
            false
        }
        (_, Some(path)) => {
            println!("skipped: there is no {path}");
            false
        }
    }
}

#[test]
fn every_policy_does_and_shows_what_it_says() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = check(&["--at", &folder.path().display().to_string()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).unwrap();
    let parts: Vec<&str> = text.split("--trim ").skip(1).collect();
    assert_eq!(parts.len(), 3, "{text}");
    for part in parts {
        let arrives = part.contains("TRIM arrives.");
        let holes = part.matches('·').count();
        match part.split_whitespace().next().unwrap() {
            "block" => assert!(!arrives && holes == 1, "{part}"),
            "zero" => {
                assert!(!arrives && holes == 1, "{part}");
                assert!(part.matches('█').count() > 700, "{part}");
            }
            "pass" => {
                assert!(arrives && holes > 700, "{part}");
                assert!(part.contains("gave back"), "{part}");
            }
            other => panic!("a policy called {other}"),
        }
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "litter");
}

#[test]
fn what_is_mounted_is_checked_down_to_the_file() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (image, at) = (folder.path().join("image"), folder.path().join("at"));
    fs::File::create(&image).unwrap().set_len(80 << 20).unwrap();
    fs::create_dir(&at).unwrap();
    let run = |program: &str, arguments: &[&Path]| {
        let done = Command::new(program).args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{program}: {said}");
    };
    run("/sbin/mkfs.ext4", &[Path::new("-q"), &image]);
    run("mount", &[Path::new("-o"), Path::new("loop"), &image, &at]);
    fs::write(at.join("kept"), vec![1; 8 << 20]).unwrap();
    fs::remove_file(at.join("kept")).unwrap();
    rustix::fs::sync();
    let space = || fs::metadata(&image).unwrap().blocks();
    let before = space();
    let unconfirmed = check(&[&at.display().to_string()]);
    assert_eq!(unconfirmed.status.code(), Some(4), "{unconfirmed:?}");
    let said = String::from_utf8_lossy(&unconfirmed.stderr);
    assert!(said.contains("hidden volume"), "{said}");
    assert_eq!(space(), before, "something was discarded");
    let output = check(&["--yes", &at.display().to_string()]);
    let left = fs::read_dir(&at).unwrap().count();
    run("umount", &[&at]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    assert!(text.contains("TRIM arrives."), "{text}");
    assert!(
        text.contains("/dev/loop") && text.contains("image"),
        "{text}"
    );
    assert_eq!(left, 1, "only lost+found");

    let refused = check(&[&at.display().to_string()]);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        said.contains("nothing is") && said.lines().count() == 2,
        "{said}"
    );
}

#[test]
fn an_interrupted_check_leaves_nothing_behind() {
    if !possible() {
        return;
    }
    for wait in [300, 900, 1700] {
        let folder = tempfile::tempdir().unwrap();
        let child = Command::new(PROGRAM)
            .args(["volume", "trim-check", "--at"])
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(wait));
        let number = child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &number]).status();
        assert!(sent.unwrap().success());
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        // A fast machine may be done by then.
        assert!(matches!(output.status.code(), Some(0 | 130)), "{said}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "litter");
    }
}
