//! The measuring capabilities of a Linux machine.

use crate::kernel::{Lab, Version};
use crate::probe::Capability;
use std::fs;
use std::path::Path;

/// Inspects the machine without changing it.
pub fn capabilities() -> Vec<Capability> {
    vec![
        Capability {
            name: "io_uring",
            purpose: "many requests in flight from one thread",
            state: io_uring(),
        },
        Capability {
            name: "FUSE",
            purpose: "serving a volume as a file without root",
            state: node(
                "/dev/fuse",
                "load the module: modprobe fuse (a container needs /dev/fuse)",
            ),
        },
        Capability {
            name: "loop devices",
            purpose: "file systems on volumes served as files",
            state: node("/dev/loop-control", "load the module: modprobe loop"),
        },
        Capability {
            name: "device-mapper",
            purpose: "measuring the kernel's dm-crypt",
            state: node(
                "/dev/mapper/control",
                "load the module: modprobe dm-crypt (needs root and a kernel that has it)",
            ),
        },
        Capability {
            name: "lab kernel 5.10",
            purpose: "dm-crypt, cryptoloop, jffs2 and cramfs without root",
            state: Lab::find(Version::V5_10)
                .map(|lab| lab.path().display().to_string())
                .map_err(|_| "build it, on x86-64 Debian: `cryptmark lab build`"),
        },
        Capability {
            name: "lab kernel 6.1",
            purpose: "a newer dm-crypt, and HCTR2, without root",
            state: Lab::find(Version::V6_1)
                .map(|lab| lab.path().display().to_string())
                .map_err(|_| "build it, on x86-64 Debian: `cryptmark lab build --kernel 6.1`"),
        },
        Capability {
            name: "ublk",
            purpose: "serving a volume as a block device",
            state: node(
                "/dev/ublk-control",
                "load the module: modprobe ublk_drv (Linux 6.5 or later)",
            ),
        },
        Capability {
            name: "AF_ALG",
            purpose: "measuring the kernel's ciphers from user space",
            state: af_alg(),
        },
        Capability {
            name: "CPU governor",
            purpose: "a steady clock",
            state: match super::host::line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
            {
                Some(governor) if governor == "performance" => Ok(governor),
                Some(_) => Err("cpupower frequency-set -g performance, while measuring"),
                None => Ok("none (the hypervisor or firmware decides)".to_owned()),
            },
        },
    ]
}

fn node(path: &str, remedy: &'static str) -> Result<String, &'static str> {
    match Path::new(path).exists() {
        true => Ok(path.to_owned()),
        false => Err(remedy),
    }
}

fn io_uring() -> Result<String, &'static str> {
    if block::Engine::IoUring.is_available() {
        Ok("permitted".to_owned())
    } else {
        Err(
            "sysctl kernel.io_uring_disabled=0, or a container profile that permits it; threads serve until then",
        )
    }
}

/// The kernel lists the protocol families that it has loaded or built in.
fn af_alg() -> Result<String, &'static str> {
    let loaded = fs::read_to_string("/proc/net/protocols")
        .is_ok_and(|table| table.lines().any(|line| line.starts_with("ALG")));
    match loaded {
        true => Ok("loaded".to_owned()),
        false => Err("load the module: modprobe af_alg (newer kernels have removed it)"),
    }
}
