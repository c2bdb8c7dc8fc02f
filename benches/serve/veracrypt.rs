//! VeraCrypt's console program beside this one: what it serves, and how long it
//! takes to begin.

use super::{CORE, PROGRAM, median, wait_for};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

/// What the images that it opens end with.
pub const IMAGE: &str = ".hc";

/// Long enough for a PIM of 1.
pub const PASSPHRASE: &str = "twenty characters at least";

/// How this program opens what [`creation`] makes.
pub const OPENED: [&str; 6] = [
    "--type",
    "veracrypt",
    "--hash",
    "sha512",
    "--veracrypt-pim",
    "1",
];

/// Its derivations, as this program names them and as it does.
const HASHES: [(&str, &str); 5] = [
    ("sha512", "sha-512"),
    ("sha256", "sha-256"),
    ("whirlpool", "whirlpool"),
    ("blake2s-256", "blake2s-256"),
    ("stribog512", "streebog"),
];

/// Words that make a volume for both programs, quick to open.
pub fn creation(cipher: &str) -> String {
    format!(
        "--type veracrypt --cipher {cipher} --hash sha512 --veracrypt-pim 1 --passphrase-file long \
         --yes --no-progress --quick"
    )
}

/// Whether its console program is there.
pub fn is_installed() -> bool {
    speak(Path::new("/"), true, &["--version"], "").is_some_and(|output| output.status.success())
}

/// Lets it open `image` on the one core: the file that it serves, and its loop device.
pub fn mount(folder: &Path, image: &str) -> (PathBuf, Option<PathBuf>) {
    let words = ["--stdin", "--hash=sha512", "--pim=1", "--mount", image];
    let output = speak(folder, true, &words, PASSPHRASE).expect("it is installed");
    assert!(output.status.success(), "{output:?}");
    let listed = speak(folder, true, &["--list"], "").expect("it is installed");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let line = listed.lines().find(|line| line.contains(image));
    // The image itself may lie below /dev, in memory.
    let device = line.and_then(|line| {
        line.split_whitespace()
            .find(|word| word.starts_with("/dev/loop"))
    });
    (
        folder.join(".veracrypt_aux_mnt1/volume"),
        device.map(PathBuf::from),
    )
}

pub fn dismount(image: &str, folder: &Path) {
    let image = folder.join(image);
    let words = ["--dismount", image.to_str().expect("its name is text")];
    let output = speak(folder, true, &words, "").expect("it is installed");
    assert!(output.status.success(), "{output:?}");
}

fn speak(folder: &Path, one_core: bool, words: &[&str], passphrase: &str) -> Option<Output> {
    let mut command = match one_core {
        true => {
            let mut command = Command::new("taskset");
            command.args(["-c", CORE, "veracrypt"]);
            command
        }
        false => Command::new("veracrypt"),
    };
    let mut child = command
        .args([
            "--text",
            "--non-interactive",
            "--keyfiles=",
            "--protect-hidden=no",
        ])
        .args(["--filesystem=none", "--mount-options=nokernelcrypto"])
        .args(words)
        .current_dir(folder)
        .env("TMPDIR", folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    let mut line = child.stdin.take()?;
    // It reads it where it needs it.
    let _ = writeln!(line, "{passphrase}");
    drop(line);
    child.wait_with_output().ok()
}

/// How long both take from the passphrase to a file, with the usual iterations
/// and on all cores; and how long to refuse a wrong passphrase.
pub fn mounting(folder: &Path, rounds: usize) {
    let there = is_installed();
    if !there {
        println!("\nVeraCrypt is not installed: no times of its own");
    }
    println!("\nOpening a VeraCrypt volume, seconds, median (least–most): here, VeraCrypt");
    let row = |name: &str, ours: Vec<f64>, theirs: Vec<f64>| {
        let text = |times: Vec<f64>| {
            if times.is_empty() {
                return "–".to_owned();
            }
            let (middle, least, most) = median(times);
            format!("{middle:.2} ({least:.2}–{most:.2})")
        };
        println!("{name:<28}{:>24}{:>24}", text(ours), text(theirs));
    };
    std::fs::write(folder.join("wrong"), "no").expect("room in memory");
    for (ours, theirs) in HASHES {
        let image = format!("{ours}{IMAGE}");
        let words = format!(
            "volume create {image} --size 1MiB --type veracrypt --cipher aes --hash {ours} \
             --passphrase-file long --yes --no-progress --quick"
        );
        super::run(
            Command::new(PROGRAM)
                .args(words.split_whitespace())
                .current_dir(folder),
        );
        let (mut here, mut there_times) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            here.push(mounted_here(folder, &image, ours));
            if there {
                let begun = Instant::now();
                let hash = format!("--hash={theirs}");
                let words = ["--stdin", &hash, "--mount", &image];
                let output = speak(folder, false, &words, PASSPHRASE).expect("it is installed");
                assert!(output.status.success(), "{output:?}");
                there_times.push(begun.elapsed().as_secs_f64());
                dismount(&image, folder);
            }
        }
        row(ours, here, there_times);
    }
    let image = format!("sha512{IMAGE}");
    let (mut here, mut there_times) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let begun = Instant::now();
        let words = format!("volume open {image} --type veracrypt --passphrase-file wrong");
        let refused = Command::new(PROGRAM)
            .args(words.split_whitespace())
            .current_dir(folder)
            .output()
            .expect("this program");
        assert_eq!(refused.status.code(), Some(3));
        here.push(begun.elapsed().as_secs_f64());
        if there {
            let begun = Instant::now();
            let refused = speak(folder, false, &["--stdin", "--mount", &image], "no");
            assert!(!refused.expect("it is installed").status.success());
            there_times.push(begun.elapsed().as_secs_f64());
        }
    }
    row("wrong, all derivations", here, there_times);
}

fn mounted_here(folder: &Path, image: &str, hash: &str) -> f64 {
    let file = folder.join("mounted/volume");
    let begun = Instant::now();
    let mut server = Command::new(PROGRAM)
        .args(["volume", "mount", image, "mounted", "--as", "file"])
        .args(["--type", "veracrypt", "--hash", hash])
        .args(["--passphrase-file", "long"])
        .current_dir(folder)
        .stdout(Stdio::null())
        .spawn()
        .expect("this program");
    wait_for(|| std::fs::metadata(&file).is_ok_and(|found| found.len() > 1 << 16));
    let taken = begun.elapsed().as_secs_f64();
    super::stop(&mut server);
    taken
}
