//! What is refused before anything is measured, and what a disk refuses.

use super::{STORE, TINY, assert_no_litter, in_small_tmpfs, sandbox};
use std::path::Path;
use std::process::Command;
use testkit::two_lines;

#[test]
fn bad_arguments_are_refused_before_anything_happens() {
    let sandbox = sandbox();
    sandbox.write("unknown.toml", TINY.replace("queue_depth", "que_depth"));
    sandbox.write("torn.toml", &TINY[..40]);
    let cases: &[(&[&str], &str)] = &[
        (&["run", "--cipher", "ase-xts-plain64"], "ase"),
        (&["run", "--cipher", "aes-xts-plain65"], "plain65"),
        (&["run", "--key-size", "100"], "100"),
        (
            &[
                "run",
                "--cipher",
                "serpent-xts-plain64",
                "--key-size",
                "1024",
            ],
            "1024",
        ),
        (&["run", "--sector-size", "520"], "520"),
        (&["run", "--repeat", "0"], "repetitions"),
        (&["run", "--size", "1KB"], "extent"),
        (&["run", "quik"], "quik"),
        (&["run", "nowhere.toml"], "nowhere.toml"),
        (&["run", "unknown.toml"], "line 19"),
        (&["run", "torn.toml"], "torn"),
        (&["run", "--at", "nowhere"], "nowhere"),
        (&["run", "--at", "/dev/null"], "/dev/null"),
        (&["run", "--energy", "fuel"], "no energy sensor fuel"),
        (&["run", "--system", "veracrypt"], "veracrypt"),
        (&["run", "--html", "no/such/dir/x.html"], "x.html"),
        (&["run", "--html", "no/such/x.html", "--dry-run"], "x.html"),
        (&["run", "--size", "999PB"], "free"),
        (&["run", "--size", "999PB", "--dry-run"], "free"),
        (&["run", "--baseline", "nix"], "nix"),
        (&["run", "--baseline", "nix", "--dry-run"], "nix"),
        (&["show", "nothing"], "nothing"),
        (&["show", "--store", "mistyped.db"], "mistyped.db"),
        (
            &["volume", "serve", "v", "--nbd", "10809"],
            "localhost:10809",
        ),
        (&["plans", "show", "quikc"], "quikc"),
        (&["doctor", "--at", "nowhere"], "nowhere"),
    ];
    for (arguments, word) in cases {
        let error = sandbox.fails(2, *arguments);
        assert!(error.contains(word), "{arguments:?}: {error}");
    }
    assert!(sandbox.fails(2, &["run", "quik"]).contains("quick"));
    assert!(
        sandbox
            .fails(2, &["run", "unknown.toml"])
            .contains("queue_depth")
    );
    let unknown = sandbox.run(&["run", "--backend", "gpu"]);
    assert_eq!(unknown.status.code(), Some(2));
    let said = String::from_utf8_lossy(&unknown.stderr);
    assert!(
        said.contains("vaes512") && said.contains("portable"),
        "{said}"
    );
    for arguments in [
        &["run", "--system", "truecript"][..],
        &["run", "--size", "many"],
        &["frobnicate"],
        &[],
    ] {
        // clap's own words, which may be more than two lines.
        assert_eq!(
            sandbox.run(arguments).status.code(),
            Some(2),
            "{arguments:?}"
        );
    }
    let none = sandbox.ok(&["list", "--store", "mistyped.db"]);
    assert!(
        none.starts_with("mistyped.db does not exist. No runs"),
        "{none}"
    );
    assert!(!sandbox.path("mistyped.db").exists());
    assert_no_litter(&sandbox);
}

#[test]
fn data_is_not_overwritten_unasked() {
    let sandbox = sandbox();
    let file = sandbox.path("precious");
    std::fs::write(&file, vec![7; 16 << 20]).unwrap();
    let error = sandbox.fails(4, &["run", "tiny.toml", "--at", "precious"]);
    assert!(error.contains("--yes"), "{error}");
    assert_eq!(std::fs::read(&file).unwrap(), vec![7; 16 << 20]);
    sandbox.ok(&["run", "tiny.toml", "--at", "precious", "--yes", "--quick"]);
    // Too small is found before anything is overwritten.
    std::fs::write(&file, vec![7; 4096]).unwrap();
    sandbox.fails(2, &["run", "tiny.toml", "--at", "precious", "--yes"]);
    assert_eq!(std::fs::read(&file).unwrap(), vec![7; 4096]);
}

#[test]
fn a_broken_store_is_refused_and_left_alone() {
    let sandbox = sandbox();
    std::fs::create_dir_all(sandbox.path(STORE).parent().unwrap()).unwrap();
    let garbage = b"these are not the records you are looking for".repeat(100);
    sandbox.write(STORE, &garbage);
    for arguments in [
        &["list"][..],
        &["show"],
        &["run", "tiny.toml", "--at", "at"],
    ] {
        let error = sandbox.fails(2, arguments);
        assert!(error.contains("cryptmark/runs"), "{error}");
    }
    assert_eq!(sandbox.read(STORE), garbage);
    assert_no_litter(&sandbox);
}

#[test]
fn a_place_without_space_is_refused_with_both_numbers() {
    let sandbox = sandbox();
    let Some(output) = in_small_tmpfs(
        &sandbox,
        "size=4m",
        "$PROGRAM run tiny.toml --at at; c=$?; ls -A at; exit $c",
    ) else {
        return;
    };
    let error = two_lines(&output, 2, "no space");
    assert!(
        error.contains("needed") && error.contains("free"),
        "{error}"
    );
    assert!(output.stdout.is_empty(), "litter");
}

#[test]
fn a_read_only_place_is_refused() {
    let sandbox = sandbox();
    let Some(output) = in_small_tmpfs(&sandbox, "size=64m,ro", "$PROGRAM run tiny.toml --at at")
    else {
        return;
    };
    let error = two_lines(&output, 2, "read-only");
    assert!(error.contains("Read-only"), "{error}");
}

#[test]
fn a_store_that_fills_up_in_mid_run_is_a_failure_and_what_was_shown_stays() {
    let sandbox = sandbox();
    let script = "$PROGRAM --store at/runs.db store >/dev/null; \
                  dd if=/dev/zero of=at/filler bs=1k 2>/dev/null; \
                  $PROGRAM --store at/runs.db run tiny.toml --at .; c=$?; exit $c";
    let Some(output) = in_small_tmpfs(&sandbox, "size=1m", script) else {
        return;
    };
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.lines().count() == 2 && error.starts_with("error: "),
        "{error}"
    );
}

/// A loop device over a file of the test's own; `None` without the right to make one.
struct Loop(String);

impl Loop {
    fn over(file: &Path) -> Option<Self> {
        let output = Command::new("losetup")
            .args(["--find", "--show"])
            .arg(file)
            .output();
        match output {
            Ok(output) if output.status.success() => Some(Self(
                String::from_utf8(output.stdout).unwrap().trim().to_owned(),
            )),
            _ => {
                println!("skipped: a block device of the test's own (losetup needs root)");
                None
            }
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

#[test]
fn a_block_device_is_measured_when_it_is_empty_and_refused_when_it_is_not() {
    let sandbox = sandbox();
    let image = sandbox.path("image");
    std::fs::File::create(&image)
        .unwrap()
        .set_len(32 << 20)
        .unwrap();
    let Some(device) = Loop::over(&image) else {
        return;
    };
    let device = device.0.as_str();
    let table = sandbox.ok(&["run", "tiny.toml", "--at", device, "--quick"]);
    assert!(table.contains("block-device"), "{table}");
    // What that run left is noise, which may be somebody's.
    let error = sandbox.fails(4, &["run", "tiny.toml", "--at", device]);
    assert!(error.contains("no known signature"), "{error}");

    let made = Command::new("mkfs.ext4")
        .args(["-q", "-F", device])
        .status();
    if !made.is_ok_and(|status| status.success()) {
        println!("skipped: a device with a file system (mkfs.ext4 does not run)");
        return;
    }
    let error = sandbox.fails(4, &["run", "tiny.toml", "--at", device]);
    assert!(error.contains("ext4") && error.contains("--yes"), "{error}");
    let point = sandbox.path("at");
    let mounted = Command::new("mount").arg(device).arg(&point).status();
    if !mounted.is_ok_and(|status| status.success()) {
        println!("skipped: a mounted device (mount does not run)");
        return;
    }
    let error = sandbox.run(&["run", "tiny.toml", "--at", device, "--yes"]);
    let unmounted = Command::new("umount").arg(&point).status().unwrap();
    assert!(unmounted.success());
    let error = two_lines(&error, 4, "mounted");
    assert!(error.contains("mounted"), "{error}");
}

/// A name with line breaks does not look like lines of the program.
#[test]
fn a_name_forges_no_lines() {
    let sandbox = sandbox();
    let name = "x\n  process     1\nerror: .img";
    for command in [
        &["volume", "info", name][..],
        &["run", name],
        &["import", name],
        &["run", "--at", name],
    ] {
        let said = sandbox.fails(2, command);
        // The error and its remedy.
        assert_eq!(said.trim_end().lines().count(), 2, "{said}");
        assert!(said.contains("process     1"), "{said}");
    }
}
