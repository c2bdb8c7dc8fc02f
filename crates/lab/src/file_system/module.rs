//! What the kernel has, or can load.

use super::FileSystemError;
use std::fs;
use std::process::{Command, Stdio};

/// A part of the kernel that a measurement needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// For people.
    pub what: &'static str,
    /// The module that brings it.
    pub module: &'static str,
    /// Whether it is there.
    pub found: fn() -> bool,
}

/// The device-mapper target.
pub(super) const DM_CRYPT: Part = Part {
    what: "dm-crypt",
    module: "dm-crypt",
    found: || {
        fs::metadata("/dev/mapper/control").is_ok() && fs::metadata("/sys/module/dm_crypt").is_ok()
    },
};

/// Loop devices that encrypt.
pub(super) const CRYPTOLOOP: Part = Part {
    what: "cryptoloop, which went with Linux 5.16",
    module: "cryptoloop",
    found: || fs::metadata("/sys/module/cryptoloop").is_ok(),
};

/// Block devices as flash.
pub(super) const BLOCK2MTD: Part = Part {
    what: "block2mtd",
    module: "block2mtd",
    found: || fs::metadata("/sys/module/block2mtd").is_ok(),
};

impl Part {
    /// Loads what is not there, if that is allowed.
    ///
    /// # Errors
    /// [`FileSystemError::NoModule`].
    pub(super) fn provide(self) -> Result<(), FileSystemError> {
        if (self.found)() {
            return Ok(());
        }
        load(self.module);
        match (self.found)() {
            true => Ok(()),
            false => Err(FileSystemError::NoModule {
                what: self.what,
                module: self.module,
            }),
        }
    }
}

/// Loads a file system's module, if the kernel does not have it.
///
/// # Errors
/// [`FileSystemError::NoModule`].
pub(super) fn provide_file_system(name: &'static str) -> Result<(), FileSystemError> {
    if is_known(name) {
        return Ok(());
    }
    load(name);
    match is_known(name) {
        true => Ok(()),
        false => Err(FileSystemError::NoModule {
            what: name,
            module: name,
        }),
    }
}

fn is_known(file_system: &str) -> bool {
    let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    known
        .lines()
        .any(|line| line.rsplit('\t').next() == Some(file_system))
}

fn load(module: &str) {
    // Whether it worked is seen by what is there afterwards.
    let _ = Command::new("modprobe")
        .args(["--quiet", module])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}
