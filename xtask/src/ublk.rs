//! The ublk tests on a kernel that has the driver, in QEMU: few machines that
//! build this have one. That says whether a disk works, and nothing of its
//! speed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::packages::present;
use crate::root;

/// What it takes, and the Debian package that brings it.
const TOOLS: &[(&str, &str)] = &[
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("busybox", "busybox-static"),
    ("cpio", "cpio"),
];

/// Seconds that the machine may take.
const PATIENCE: &str = "600";

/// What the machine says when the tests have passed there.
const PASSED: &str = "ublk-tests: 0";

/// Loads the module, runs the tests, says how they ended: not well, where the
/// driver is not there and they have nothing to test.
const INIT: &str = "#!/bin/busybox sh
busybox=/bin/busybox
$busybox mount -t devtmpfs dev /dev
$busybox mount -t proc proc /proc
$busybox mount -t sysfs sys /sys
$busybox insmod /ublk_drv.ko
$busybox test -c /dev/ublk-control && /bin/tests ublk --nocapture --test-threads 1
echo \"ublk-tests: $?\"
$busybox poweroff -f
";

/// Has cargo build the tests, and [`boot`] run them on `kernel`, with the
/// driver `module`.
pub fn run(kernel: &str, module: &str) -> bool {
    for (tool, package) in TOOLS {
        if !present(tool) {
            eprintln!("missing: {tool}; as root: apt-get install {package}");
            return false;
        }
    }
    let Ok(own) = std::env::current_exe() else {
        return false;
    };
    let runner = format!("{} ublk-boot {kernel} {module}", own.display());
    crate::cargo_command()
        .args(["test", "--package", "cryptmark-serve", "--lib"])
        .args(["--features", "ublk", "ublk"])
        .env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", runner)
        .current_dir(root())
        .status()
        .is_ok_and(|status| status.success())
}

/// Boots `kernel` with nothing but `module` and the program `tests`, which it
/// runs; whether they passed.
pub fn boot(kernel: &str, module: &str, tests: &str) -> bool {
    let folder = root().join(format!("target/ublk-{}", std::process::id()));
    let passed = pack(&folder, module, tests) && start(kernel, &folder);
    // A folder that stays behind is in the way of nobody.
    let _ = fs::remove_dir_all(&folder);
    passed
}

/// Makes the first file system: what `folder/root` has, as `folder/initrd`.
fn pack(folder: &Path, module: &str, tests: &str) -> bool {
    let system = folder.join("root");
    let copied = || -> std::io::Result<()> {
        for inside in ["bin", "dev", "proc", "sys", "tmp"] {
            fs::create_dir_all(system.join(inside))?;
        }
        fs::copy(module, system.join("ublk_drv.ko"))?;
        fs::copy(tests, system.join("bin/tests"))?;
        let busybox = output("sh", &["-c", "command -v busybox"])?;
        fs::copy(busybox.trim(), system.join("bin/busybox"))?;
        // Every absolute path that the linker resolves.
        let libraries = output("ldd", &[tests])?;
        for library in libraries
            .split_whitespace()
            .filter(|word| word.starts_with('/'))
        {
            let place = system.join(library.trim_start_matches('/'));
            fs::create_dir_all(place.parent().unwrap_or(&system))?;
            fs::copy(library, place)?;
        }
        fs::write(system.join("init"), INIT)
    };
    if let Err(error) = copied() {
        eprintln!("cannot pack {tests}: {error}");
        return false;
    }
    let archive = "chmod 755 init && find . | cpio --quiet -o -H newc > ../initrd";
    Command::new("sh")
        .args(["-c", archive])
        .current_dir(&system)
        .status()
        .is_ok_and(|status| status.success())
}

fn start(kernel: &str, folder: &Path) -> bool {
    let machine = Command::new("timeout")
        .args([PATIENCE, "qemu-system-x86_64"])
        // Emulated: a nested machine may lack instructions that kernels use.
        .args(["-accel", "tcg,thread=multi", "-cpu", "max"])
        .args(["-smp", "2", "-m", "1024", "-nographic", "-no-reboot"])
        .args(["-append", "console=ttyS0 quiet panic=-1"])
        .args(["-kernel", kernel, "-initrd"])
        .arg(folder.join("initrd"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut machine) = machine else {
        eprintln!("QEMU could not be started");
        return false;
    };
    let mut passed = false;
    if let Some(said) = machine.stdout.take() {
        for line in BufReader::new(said).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            passed |= line.trim_end().ends_with(PASSED);
            println!("{line}");
        }
    }
    machine.wait().is_ok_and(|status| status.success()) && passed
}

fn output(program: &str, arguments: &[&str]) -> std::io::Result<String> {
    let output = Command::new(program).args(arguments).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
