//! The program for Windows, under wine: what it can, what it says of the rest, and
//! that its results are those of the program for Linux. `cargo xtask windows` builds
//! it and runs these.
//!
//! Wine has files and memory of Linux below it: unbuffered requests arrive there as
//! any other, and no figure of these runs says anything of Windows.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

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

/// A place of the test's own, for both programs.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs::create_dir(folder.path().join("at")).unwrap();
        fs::write(folder.path().join("tiny.toml"), TINY).unwrap();
        fs::write(folder.path().join("sweep.toml"), SWEEP).unwrap();
        fs::write(folder.path().join("line"), "velvet juniper\n").unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, program: &Path, arguments: &[&str]) -> Output {
        let store = match program == Path::new(NATIVE) {
            true => "linux.db",
            false => "windows.db",
        };
        Command::new(program)
            .args(arguments)
            .current_dir(self.0.path())
            .env("CRYPTMARK_STORE", store)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    #[track_caller]
    fn ok(&self, program: &Path, arguments: &[&str]) -> Vec<u8> {
        let output = self.run(program, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        output.stdout
    }

    /// By the program for Windows.
    #[track_caller]
    fn windows(&self, arguments: &[&str]) -> String {
        String::from_utf8(self.ok(&windows(), arguments)).unwrap()
    }

    #[track_caller]
    fn native(&self, arguments: &[&str]) -> String {
        String::from_utf8(self.ok(Path::new(NATIVE), arguments)).unwrap()
    }

    #[track_caller]
    fn refused(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.run(&windows(), arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert_eq!(said.lines().count(), 2, "{arguments:?}: {said}");
        said
    }

    #[track_caller]
    fn record(&self, name: &str) -> Value {
        serde_json::from_slice(&fs::read(self.path(name)).unwrap()).unwrap()
    }
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
    let text = Desk::new().windows(&["doctor"]);
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
    let desk = Desk::new();
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
        let said = desk.refused(2, arguments);
        assert!(said.contains("needs Linux"), "{said}");
    }
    let said = desk.refused(
        2,
        &["run", "tiny.toml", "--system", "dm-crypt", "--at", "at"],
    );
    assert!(said.contains("dm-crypt (it needs Linux)"), "{said}");
    assert!(
        desk.windows(&["--help"]).contains("mount") == desk.native(&["--help"]).contains("mount")
    );
}

#[test]
#[ignore = "cargo xtask windows builds the program for Windows"]
fn files_are_measured_around_the_cache_by_threads_and_leave_nothing_behind() {
    let desk = Desk::new();
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
    let table = desk.windows(&run);
    assert!(
        table.contains("rand-4k-read") && table.contains("Stored as"),
        "{table}"
    );
    let record = desk.record("run.json");
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
    assert_eq!(fs::read_dir(desk.path("at")).unwrap().count(), 0);
    assert!(
        fs::read_to_string(desk.path("page.html"))
            .unwrap()
            .contains("rand-4k-read")
    );
    for file in ["report.md", "report.csv", "report.json"] {
        desk.windows(&["report", "latest", "-o", file]);
        assert!(fs::metadata(desk.path(file)).unwrap().len() > 500, "{file}");
    }
    // A file of the user's own is not overwritten unasked, and is when asked.
    fs::write(desk.path("own"), vec![7; 16 << 20]).unwrap();
    let said = desk.refused(4, &["run", "tiny.toml", "--at", "own"]);
    assert!(said.contains("--yes"), "{said}");
    desk.windows(&["run", "tiny.toml", "--at", "own", "--yes"]);
}

/// The Java comparison's procedure: the same plan on both systems, one run carried
/// to the other, and rates by the clock.
#[test]
#[ignore = "cargo xtask windows builds the program for Windows"]
fn runs_of_both_systems_are_compared_when_that_is_said() {
    let desk = Desk::new();
    let plan = ["run", "java-os", "--quick", "--cipher", "aes-ecb", "--json"];
    desk.windows(&[&plan[..], &["windows.json"]].concat());
    let record = desk.record("windows.json");
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
    desk.native(&[&plan[..], &["linux.json", "--system", "builtin"]].concat());
    desk.native(&["import", "windows.json"]);
    let id = |file: &str| desk.record(file)["run"].as_str().unwrap().to_owned();
    let (windows, linux) = (id("windows.json"), id("linux.json"));
    let native = Path::new(NATIVE);
    let mixed = desk.run(native, &["compare", &windows, &linux]);
    assert_eq!(mixed.status.code(), Some(2));
    let both = [
        "compare",
        &windows,
        &linux,
        "--across-machines",
        "--normalise",
        "cycles",
    ];
    let text = desk.native(&both);
    assert!(text.contains("encrypt-400k"), "{text}");
}

#[test]
#[ignore = "cargo xtask windows builds the program for Windows"]
fn simulated_drives_do_the_same_on_both_systems() {
    let desk = Desk::new();
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
        let (one, other) = (desk.windows(&arguments), desk.native(&arguments));
        assert!(one.len() > 100 && one == other, "{arguments:?}");
    }
}

/// Lives on all cores, and their means and intervals.
#[test]
#[ignore = "cargo xtask windows builds the program for Windows"]
fn sweeps_find_the_same_on_both_systems_and_are_shared() {
    let desk = Desk::new();
    let small = desk
        .windows(&["drive", "show", "mlc-128g"])
        .replace("\"128 GB\"", "\"256 MB\"")
        .replace("pages_per_block = 256", "pages_per_block = 64")
        .replace("channels = 8", "channels = 2")
        .replace("chips_per_channel = 4", "chips_per_channel = 1");
    fs::write(desk.path("small.toml"), small).unwrap();
    let trials = |json: String| serde_json::from_str::<Value>(&json).unwrap()["trials"].clone();
    let sweep = [
        "drive",
        "sweep",
        "sweep.toml",
        "--no-progress",
        "--json",
        "-",
    ];
    let (one, other) = (trials(desk.windows(&sweep)), trials(desk.native(&sweep)));
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
    desk.windows(&cut);
    for shard in ["1/2", "2/2"] {
        desk.windows(&["run", "shared.toml", "--shard", shard, "--no-progress"]);
    }
    let shared = trials(desk.windows(&["show", "sweep", "--json"]));
    assert_eq!(shared, one);
}

#[test]
#[ignore = "cargo xtask windows builds the program for Windows"]
fn volumes_made_on_one_system_hold_the_same_on_the_other() {
    const SIZE: usize = 3 << 20;
    let desk = Desk::new();
    let content: Vec<u8> = (0..SIZE).map(|at| (at * 7 / 5 + at / 4096) as u8).collect();
    fs::write(desk.path("content"), &content).unwrap();
    let (wine, native) = (windows(), PathBuf::from(NATIVE));
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
                let _ = fs::remove_file(desk.path(old));
            }
            let secret = ["--type", kind, "--passphrase-file", "line"];
            let pim = match kind {
                "veracrypt" => &extra[..2],
                _ => &[],
            };
            let make = ["volume", "create", "v.img", "--size", "24MiB"];
            desk.ok(maker, &[&make[..], &secret, extra].concat());
            let info = ["volume", "info", "v.img"];
            // Nothing of such a volume shows without its passphrase.
            let secret_of_info = if kind == "veracrypt" {
                &secret[..]
            } else {
                &secret[..2]
            };
            let info = desk.ok(reader, &[&info[..], secret_of_info, pim].concat());
            assert!(!info.is_empty());
            let import = ["volume", "import", "v.img", "--input", "content"];
            desk.ok(maker, &[&import[..], &secret, pim].concat());
            let export = ["volume", "export", "v.img", "--output", "out"];
            desk.ok(reader, &[&export[..], &secret, pim].concat());
            let read = fs::read(desk.path("out")).unwrap();
            assert!(read.len() > SIZE && read[..SIZE] == content[..], "{kind}");
        }
    }
    let said = desk.run(
        &wine,
        &[
            "volume",
            "open",
            "v.img",
            "--type",
            "veracrypt",
            "--veracrypt-pim",
            "1",
            "--passphrase-file",
            "tiny.toml",
        ],
    );
    assert_eq!(said.status.code(), Some(3));
    // As an editor of Windows ends a line.
    fs::write(desk.path("line"), "velvet juniper\r\n").unwrap();
    desk.windows(&[
        "volume",
        "open",
        "v.img",
        "--type",
        "veracrypt",
        "--veracrypt-pim",
        "1",
        "--passphrase-file",
        "line",
    ]);
}
