//! Commands run as they would anywhere, and leave no trace where they may not.

use crate::sandbox::{PROGRAM, assert_nothing_runs, lab, on_each, run, sandbox, succeed};
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;
use testkit::Sandbox;

#[test]
fn exit_codes_are_the_commands_own() {
    on_each(check_exit_codes);
}

fn check_exit_codes(sandbox: &Sandbox, kernel: &[&str]) {
    for (command, code) in [
        (&["true"][..], 0),
        (&["sh", "-c", "exit 7"], 7),
        (&["sh", "-c", "exit 255"], 255),
        (&["sh", "-c", "kill -9 $$"], 128 + 9),
        (&["no-such-program-anywhere"], 127),
        // Words of the shell's that no program has for a name.
        (&["exit"], 127),
        (&["/etc/passwd"], 126),
    ] {
        let arguments = [&["run"], kernel, &["--"], command].concat();
        let output = lab(sandbox, &arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{command:?} {output:?}");
        assert!(output.stdout.is_empty(), "{command:?}");
    }
    assert_nothing_runs(sandbox);
}

#[test]
fn output_comes_out_byte_for_byte_and_unmixed() {
    on_each(check_output);
}

fn check_output(sandbox: &Sandbox, kernel: &[&str]) {
    let bytes: Vec<u8> = (0..=255).cycle().take(3 << 20).collect();
    sandbox.write("bytes", &bytes);
    let output = run(
        sandbox,
        kernel,
        "cat bytes; cat bytes >&2; echo '<3>a kernel message' >/dev/kmsg; test ! -t 1",
    );
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout == bytes, "{} bytes", output.stdout.len());
    assert!(output.stderr == bytes, "{} bytes", output.stderr.len());
}

#[test]
fn words_environment_and_directory_are_the_callers() {
    let Some(sandbox) = sandbox() else { return };
    let words = ["it's", "a  b", "$HOME", "*", "new\nline", "", "-n", "ü"];
    let script = "printf '%s|' \"$@\"; printf '%s|' \"$VARIABLE\" \"$PWD\" \"$(id -u)\"; cat";
    let output = lab(
        &sandbox,
        &[&["run", "--", "sh", "-c", script, "sh"], &words[..]].concat(),
    )
    .env("VARIABLE", "it's\n$PATH")
    .output()
    .unwrap();
    let expected = format!(
        "{}|it's\n$PATH|{}|0|",
        words.join("|"),
        sandbox.directory().display()
    );
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        expected,
        "{output:?}"
    );
}

#[test]
fn only_what_is_named_is_written() {
    on_each(check_writes);
}

fn check_writes(sandbox: &Sandbox, kernel: &[&str]) {
    sandbox.write("kept", "before");
    sandbox.write("out/changed", "before");
    let said = succeed(
        sandbox,
        kernel,
        "echo after >kept; echo new >made; rm -r home; echo after >out/changed; mkdir out/folder; \
         echo text >out/folder/made; cat kept made; ln -s nowhere out/link; mv out/folder/made out/moved",
    );
    assert_eq!(said, "after\nnew\n");
    assert_eq!(sandbox.read("kept"), b"before");
    assert!(!sandbox.path("made").exists() && sandbox.path("home").exists());
    assert_eq!(sandbox.read("out/changed"), b"after\n");
    assert_eq!(sandbox.read("out/moved"), b"text\n");
    assert_eq!(
        fs::read_link(sandbox.path("out/link")).unwrap().to_str(),
        Some("nowhere")
    );
}

#[test]
fn disks_are_disks() {
    on_each(check_disks);
}

fn check_disks(sandbox: &Sandbox, kernel: &[&str]) {
    // Names that a kernel's command line could not hold.
    let name = "a disk, with: odd \"name\"";
    sandbox.write(name, vec![7; 1 << 20]);
    sandbox.write("second", vec![0; 2 << 20]);
    let both = ["--disk", name, "--disk", "second"];
    let said = succeed(
        sandbox,
        &[kernel, &both].concat(),
        "blockdev --getsize64 /dev/ubda /dev/ubdb; printf written | dd of=/dev/ubda bs=1 seek=512 conv=notrunc,fsync 2>/dev/null",
    );
    assert_eq!(said, "1048576\n2097152\n");
    let bytes = sandbox.read(name);
    assert_eq!(
        (bytes.len(), &bytes[510..521]),
        (1 << 20, &b"\x07\x07written\x07\x07"[..])
    );
    let output = run(
        sandbox,
        &[kernel, &["--disk", name, "--read-only"]].concat(),
        "printf again >/dev/ubda",
    );
    assert!(!output.status.success());
    assert!(sandbox.read(name) == bytes);
}

#[test]
fn a_user_sees_what_the_user_may_see() {
    let Some(sandbox) = sandbox() else { return };
    if !rustix::process::geteuid().is_root() {
        println!("skipped: a user in the lab kernel: needs root to become one");
        return;
    }
    let nobody = 65534;
    sandbox.write("secret", "of root's");
    let modes = [
        ("secret", 0o600),
        ("", 0o755),
        ("cache", 0o755),
        ("out", 0o755),
    ];
    for (name, mode) in modes {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(sandbox.path(name), mode).unwrap();
    }
    std::os::unix::fs::chown(sandbox.path("out"), Some(nobody), Some(nobody)).unwrap();
    // The program of a test may lie where only root may go.
    let program = sandbox.path("cryptmark");
    fs::copy(PROGRAM, &program).unwrap();
    let script = "id -u; cat secret; echo no >secret; echo yes >out/made; cat out/made; grep -c . /proc/mounts >/dev/null && echo mounted";
    let mut command = Command::new(&program);
    command.args(["lab", "run", "--writable", "out", "--", "sh", "-c", script]);
    let output = sandbox
        .prepare(command)
        .uid(nobody)
        .gid(nobody)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "0\nyes\nmounted\n", "{output:?}");
    assert_eq!(sandbox.read("secret"), b"of root's");
    let made = fs::metadata(sandbox.path("out/made")).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&made), nobody);
}

#[test]
fn what_cannot_be_run_is_said_in_two_lines() {
    let Some(sandbox) = sandbox() else { return };
    for (arguments, code, words) in [
        (
            &["run", "--disk", "nowhere", "--", "true"][..],
            2,
            "nowhere",
        ),
        (
            &["run", "--writable", "nowhere", "--", "true"],
            2,
            "nowhere",
        ),
        (&["run", "--memory", "127MiB", "--", "true"], 2, "memory"),
        (&["run"], 2, "COMMAND"),
    ] {
        let output = lab(&sandbox, arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?} {said}");
        assert!(said.contains(words), "{arguments:?} {said}");
    }
    // Where there is no kernel.
    for (options, remedy) in [
        (&[][..], "`cryptmark lab build`"),
        (&["--kernel", "6.1"], "`cryptmark lab build --kernel 6.1`"),
    ] {
        let output = lab(&sandbox, &[&["run"], options, &["--", "true"]].concat())
            .env("XDG_CACHE_HOME", sandbox.path("home"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(remedy), "{said}");
        assert_eq!(said.lines().count(), 2, "{said}");
    }
}
