//! A User-Mode Linux kernel that runs a script on the host's file system.

use lab::probe::on_one_core;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const KERNEL: &str = "/usr/bin/linux.uml";

/// From booting to the end of the script.
const PATIENCE: Duration = Duration::from_secs(300);

/// What the kernel's encrypted keys, and so dm-crypt, need before it, then what
/// is tested.
const MODULES: &[&str] = &[
    "aes_generic",
    "cbc",
    "ecb",
    "hmac",
    "sha256_generic",
    "sha1_generic",
    "sha512_generic",
    "ctr",
    "gcm",
    "ghash-generic",
    "cmac",
    "xts",
    "lrw",
    "essiv",
    "authenc",
    "dm-mod",
    "dm-crypt",
    "dm-integrity",
    "loop",
    "serpent_generic",
    "twofish_generic",
    "camellia_generic",
    "blowfish_generic",
    "cast5_generic",
    "cast6_generic",
    "des_generic",
    "anubis",
    "adiantum",
    "chacha_generic",
    "nhpoly1305",
    "algif_skcipher",
    "algif_hash",
    "algif_aead",
    "chacha20poly1305",
];

const PROLOGUE: &str = "#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs run /run
mkdir -p /run/m/lib/modules
ln -s /usr/lib/uml/modules/$(uname -r) /run/m/lib/modules/
";

/// Runs `script` in `folder` as root of the kernel; `None`, with the reason
/// printed, where there is no such kernel.
///
/// # Panics
/// If the kernel does not come to the script's end.
pub fn run(folder: &Path, script: &str) -> Option<()> {
    if !Path::new(KERNEL).exists() {
        println!("skipped: real dm-crypt: user-mode-linux is not installed");
        return None;
    }
    let Some(registers) = registers(folder) else {
        println!("skipped: real dm-crypt: there is no C compiler");
        return None;
    };
    let (init, log, end) = (folder.join("init"), folder.join("log"), folder.join("end"));
    let load: String = MODULES
        .iter()
        .map(|module| format!("modprobe -d /run/m {module} || echo no module {module}\n"))
        .collect();
    let (shown, end_shown) = (folder.display(), end.display());
    let text = format!(
        "{PROLOGUE}cd {shown}\nexec >log 2>&1\n{load}{script}\necho ended >{end_shown}\nhalt -f\n"
    );
    fs::write(&init, text).unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&init, executable).unwrap();

    let mut kernel = Command::new(KERNEL);
    kernel
        .args(["rootfstype=hostfs", "rootflags=/", "rw", "mem=512M"])
        .args(["con=null", "con0=null,fd:1", "quiet"])
        .arg(format!("init={}", init.display()))
        .env("LD_PRELOAD", registers)
        .env("TMPDIR", folder)
        .stdin(Stdio::null())
        .stdout(fs::File::create(folder.join("console")).unwrap())
        .stderr(Stdio::null());
    // Its processes are traced: on several cores every system call wakes one.
    let mut kernel = on_one_core(|| kernel.spawn()).unwrap();
    let start = Instant::now();
    while kernel.try_wait().unwrap().is_none() && start.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(50));
    }
    // Where it ended by itself there is nothing to kill.
    let _ = kernel.kill();
    kernel.wait().unwrap();
    let said = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
    assert!(
        end.exists(),
        "the kernel did not come to the script's end\n{}\n{}",
        said(folder.join("console")),
        said(log)
    );
    Some(())
}

/// The library that lets this kernel run on processors with AMX.
fn registers(folder: &Path) -> Option<PathBuf> {
    let library = folder.join("xstate.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernel/xstate.c");
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-o"])
        .arg(&library)
        .arg(source)
        .status();
    compiled
        .is_ok_and(|status| status.success())
        .then_some(library)
}
