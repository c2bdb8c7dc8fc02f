//! The program for Windows, under wine: what it can, what it says of the rest, and
//! that its results are those of the program for Linux. `cargo xtask windows` builds
//! it and runs these.
//!
//! Wine has files and memory of Linux below it: unbuffered requests arrive there as
//! any other, and no figure of these runs says anything of Windows.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::{Arguments, Expect as _, Sandbox};

const NATIVE: &str = env!("CARGO_BIN_EXE_cryptmark");

/// A plan that is done in a second.
const TINY: &str = r#"
title = "a tiny plan"
size = "8 MiB"
repetitions = 3
ciphers = ["aes-xts-plain64"]

[[workload]]
name = "rand-4k-read"
pattern = "random"
op = "read"
block_size = "4 KiB"
queue_depth = 4
seconds = 0.05

[[workload]]
name = "seq-64k-write"
pattern = "sequential"
op = "write"
block_size = "64 KiB"
seconds = 0.05
"#;

/// Lives of a drive, a tenth of a year long.
const SWEEP: &str = r#"
title = "a small SSD, full and not"
devices = ["small.toml"]
policies = ["pass", "block"]
fills = ["60%", "90%"]
daily = "1 GB"
years = 0.1
ciphers = ["aes-xts-plain64"]
cpu = { aes = "1500MB/s" }

[[workload]]
name = "rand-4k-write"
pattern = "random"
op = "write"
block_size = "4 KiB"
bytes = "8 MiB"
"#;

/// A sandbox for both programs, each with a store.
fn sandbox() -> Sandbox {
    Sandbox::within(env!("CARGO_TARGET_TMPDIR"), NATIVE)
        .with_variable("CRYPTMARK_STORE", "linux.db")
        .with_directory("at")
        .with_file("tiny.toml", TINY)
        .with_file("sweep.toml", SWEEP)
        .with_file("line", "velvet juniper\n")
}

/// The program for Windows.
fn windows_command(sandbox: &Sandbox, arguments: &(impl Arguments + ?Sized)) -> Command {
    let mut command = sandbox.command(windows(), arguments);
    command.env("CRYPTMARK_STORE", "windows.db");
    command
}

/// Runs the program for Windows, which must succeed; its standard output.
#[track_caller]
fn on_windows(sandbox: &Sandbox, arguments: &(impl Arguments + ?Sized)) -> String {
    String::from_utf8(windows_command(sandbox, arguments).succeeds().stdout).unwrap()
}

/// What runs the program for Windows.
fn windows() -> PathBuf {
    let program = std::env::var_os("CRYPTMARK_WINDOWS");
    program
        .expect("cargo xtask windows says where it is")
        .into()
}

#[test]
#[ignore = "cargo xtask windows builds the program for Windows"]
fn doctor_says_what_is_here_and_what_needs_linux() {
    let text = on_windows(&sandbox(), &["doctor"]);
    for words in [
        "Windows",
        "time-stamp counter",
        "core clock under load",
        "aes: ",
        "timers cost",
        "Linux: absent",
        "builtin: present",
        "dm-crypt: absent, it needs Linux",
        "builtin-nbd: absent, it needs Linux",
        "rustcrypto: present",
    ] {
        assert!(text.contains(words), "{words} is not in\n{text}");
    }
    assert!(!text.contains("modprobe"), "{text}");
}

#[test]
#[ignore = "cargo xtask windows builds the program for Windows"]
fn what_needs_linux_says_so_in_two_lines() {
    let sandbox = sandbox();
    for arguments in [
        &["volume", "mount", "v.img", "at", "--as", "file"][..],
        &["volume", "umount", "at"],
        &["volume", "serve", "v.img", "--nbd", "127.0.0.1:1"],
        &["volume", "status"],
        &["volume", "trim-check", "v.img"],
        &["volume", "info", "nbd://127.0.0.1:1/v"],
        &["run", "tiny.toml", "--at", "nbd://127.0.0.1:1/v"],
        &["lab", "build"],
        &["lab", "run", "--memory", "1GiB", "uname"],
        &["run", "--tier", "fs", "--quick"],
    ] {
        let said = windows_command(&sandbox, arguments).fails(2);
        assert!(said.contains("needs Linux"), "{said}");
    }
    let said = windows_command(
        &sandbox,
        &["run", "tiny.toml", "--system", "dm-crypt", "--at", "at"],
    )
    .fails(2);
    assert!(said.contains("dm-crypt (it needs Linux)"), "{said}");
    assert!(
        on_windows(&sandbox, &["--help"]).contains("mount")
            == sandbox.ok(&["--help"]).contains("mount")
    );
}

#[test]
#[ignore = "cargo xtask windows builds the program for Windows"]
fn files_are_measured_around_the_cache_by_threads_and_leave_nothing_behind() {
    let sandbox = sandbox();
    let run = [
        "run",
        "tiny.toml",
        "--at",
        "at",
        "--json",
        "run.json",
        "--html",
        "page.html",
    ];
    let table = on_windows(&sandbox, &run);
    assert!(
        table.contains("rand-4k-read") && table.contains("Stored as"),
        "{table}"
    );
    let record = sandbox.read_json("run.json");
    assert_eq!(record["partial"], false);
    let host = &record["host"];
    assert!(host["os"].as_str().unwrap().contains("Windows"), "{host}");
    assert!(host["memory"].as_u64().unwrap() > 1 << 28, "{host}");
    assert!(host["tsc_hz"].as_f64().unwrap() > 1e8, "{host}");
    let trials = record["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 6);
    for trial in trials {
        assert_eq!(trial["device"]["engine"], "threads", "{trial}");
        assert_eq!(trial["device"]["cache"], "direct", "{trial}");
        assert!(trial["throughput_mb_s"]["median"].as_f64().unwrap() > 0.0);
        let time = &trial["time_s"];
        assert!(time["user"].is_f64() && time["sys"].is_f64(), "{time}");
    }
    assert_eq!(fs::read_dir(sandbox.path("at")).unwrap().count(), 0);
    assert!(sandbox.read_text("page.html").contains("rand-4k-read"));
    for file in ["report.md", "report.csv", "report.json"] {
        on_windows(&sandbox, &["report", "latest", "-o", file]);
        assert!(
            fs::metadata(sandbox.path(file)).unwrap().len() > 500,
            "{file}"
        );
    }
    // A file of the user's own is not overwritten unasked, and is when asked.
    sandbox.write("own", vec![7; 16 << 20]);
    let said = windows_command(&sandbox, &["run", "tiny.toml", "--at", "own"]).fails(4);
    assert!(said.contains("--yes"), "{said}");
    on_windows(&sandbox, &["run", "tiny.toml", "--at", "own", "--yes"]);
}

/// The Java comparison's procedure: the same plan on both systems, one run carried
/// to the other, and rates by the clock.
#[test]
#[ignore = "cargo xtask windows builds the program for Windows"]
fn runs_of_both_systems_are_compared_when_that_is_said() {
    let sandbox = sandbox();
    let plan = ["run", "java-os", "--quick", "--cipher", "aes-ecb", "--json"];
    on_windows(&sandbox, &[&plan[..], &["windows.json"]].concat());
    let record = sandbox.read_json("windows.json");
    let warnings = record["warnings"].to_string();
    let java = |trial: &&Value| trial["system"] == "java";
    let trials = record["trials"].as_array().unwrap();
    match trials.iter().find(java) {
        Some(trial) => println!("{}", trial["system_version"]),
        None => {
            assert!(warnings.contains("java is not installed"), "{warnings}");
            println!("skipped: Java on Windows (there is none)");
        }
    }
    sandbox.ok(&[&plan[..], &["linux.json", "--system", "builtin"]].concat());
    sandbox.ok(&["import", "windows.json"]);
    let id = |file: &str| sandbox.read_json(file)["run"].as_str().unwrap().to_owned();
    let (windows, linux) = (id("windows.json"), id("linux.json"));
    let mixed = sandbox.run(&["compare", &windows, &linux]);
    assert_eq!(mixed.status.code(), Some(2));
    let both = [
        "compare",
        &windows,
        &linux,
        "--across-machines",
        "--normalise",
        "cycles",
    ];
    let text = sandbox.ok(&both);
    assert!(text.contains("encrypt-400k"), "{text}");
}

#[test]
#[ignore = "cargo xtask windows builds the program for Windows"]
fn simulated_drives_do_the_same_on_both_systems() {
    let sandbox = sandbox();
    for arguments in [
        &[
            "run",
            "--blocks",
            "512",
            "--hot",
            "20/80",
            "--gc",
            "d-choices:5",
            "--streams",
            "2",
        ][..],
        &[
            "lifetime", "--device", "mlc-128g", "--daily", "20GB", "--fill", "80%", "--years",
            "0.05",
        ],
    ] {
        let arguments = [&["drive"], arguments, &["--json", "-"]].concat();
        let (one, other) = (on_windows(&sandbox, &arguments), sandbox.ok(&arguments));
        assert!(one.len() > 100 && one == other, "{arguments:?}");
    }
}

/// Lives on all cores, and their means and intervals.
#[test]
#[ignore = "cargo xtask windows builds the program for Windows"]
fn sweeps_find_the_same_on_both_systems_and_are_shared() {
    let sandbox = sandbox();
    let small = on_windows(&sandbox, &["drive", "show", "mlc-128g"])
        .replace("\"128 GB\"", "\"256 MB\"")
        .replace("pages_per_block = 256", "pages_per_block = 64")
        .replace("channels = 8", "channels = 2")
        .replace("chips_per_channel = 4", "chips_per_channel = 1");
    sandbox.write("small.toml", small);
    let trials = |json: String| serde_json::from_str::<Value>(&json).unwrap()["trials"].clone();
    let sweep = [
        "drive",
        "sweep",
        "sweep.toml",
        "--no-progress",
        "--json",
        "-",
    ];
    let (one, other) = (
        trials(on_windows(&sandbox, &sweep)),
        trials(sandbox.ok(&sweep)),
    );
    assert_eq!(one.as_array().unwrap().len(), 6);
    assert_eq!(one, other);
    let cut = [
        "fleet",
        "plan",
        "sweep.toml",
        "--hosts",
        "2",
        "-o",
        "shared.toml",
    ];
    on_windows(&sandbox, &cut);
    for shard in ["1/2", "2/2"] {
        on_windows(
            &sandbox,
            &["run", "shared.toml", "--shard", shard, "--no-progress"],
        );
    }
    let shared = trials(on_windows(&sandbox, &["show", "sweep", "--json"]));
    assert_eq!(shared, one);
}

#[test]
#[ignore = "cargo xtask windows builds the program for Windows"]
fn volumes_made_on_one_system_hold_the_same_on_the_other() {
    const SIZE: usize = 3 << 20;
    let sandbox = sandbox();
    let content: Vec<u8> = (0..SIZE).map(|at| (at * 7 / 5 + at / 4096) as u8).collect();
    sandbox.write("content", &content);
    // Volumes are in no store, so both may have the same here.
    let (wine, native) = (windows(), PathBuf::from(NATIVE));
    let ok =
        |program: &Path, arguments: &[&str]| sandbox.command(program, arguments).succeeds().stdout;
    for (kind, extra) in [
        ("luks1", &["--pbkdf-force-iterations", "1000"][..]),
        (
            "luks2",
            &["--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000"],
        ),
        // So small a PIM with so short a passphrase is insisted on.
        ("veracrypt", &["--veracrypt-pim", "1", "--yes"]),
    ] {
        for (maker, reader) in [(&wine, &native), (&native, &wine)] {
            for old in ["v.img", "out"] {
                let _ = fs::remove_file(sandbox.path(old));
            }
            let secret = ["--type", kind, "--passphrase-file", "line"];
            let pim = match kind {
                "veracrypt" => &extra[..2],
                _ => &[],
            };
            let make = ["volume", "create", "v.img", "--size", "24MiB"];
            ok(maker, &[&make[..], &secret, extra].concat());
            let info = ["volume", "info", "v.img"];
            // Nothing of such a volume shows without its passphrase.
            let secret_of_info = if kind == "veracrypt" {
                &secret[..]
            } else {
                &secret[..2]
            };
            let info = ok(reader, &[&info[..], secret_of_info, pim].concat());
            assert!(!info.is_empty());
            let import = ["volume", "import", "v.img", "--input", "content"];
            ok(maker, &[&import[..], &secret, pim].concat());
            let export = ["volume", "export", "v.img", "--output", "out"];
            ok(reader, &[&export[..], &secret, pim].concat());
            let read = sandbox.read("out");
            assert!(read.len() > SIZE && read[..SIZE] == content[..], "{kind}");
        }
    }
    let open = "volume open v.img --type veracrypt --veracrypt-pim 1 --passphrase-file";
    windows_command(&sandbox, &format!("{open} tiny.toml")).ends(3);
    // As an editor of Windows ends a line.
    sandbox.write("line", "velvet juniper\r\n");
    on_windows(&sandbox, &format!("{open} line"));
}
