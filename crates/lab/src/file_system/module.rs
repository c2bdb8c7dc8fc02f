//! The parts that the kernel has, or can load.

use crate::error::LabError;
use std::fs;
use std::path::Path;
use std::process::Stdio;

/// A part of the kernel that a measurement needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// The name of the part, for people.
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
    found: || Path::new("/dev/mapper/control").exists() && has("dm_crypt"),
};

/// The device-mapper target that stores tags with the sectors.
pub(super) const DM_INTEGRITY: Part = Part {
    what: "dm-integrity",
    module: "dm-integrity",
    // Without parameters it is nowhere in sysfs, and the lab kernel always has it.
    found: || Path::new("/sys/kernel/cryptmark").exists() || has("dm_integrity"),
};

/// Loop devices that encrypt.
pub(super) const CRYPTOLOOP: Part = Part {
    what: "cryptoloop, which Linux 5.16 removed",
    module: "cryptoloop",
    found: || has("cryptoloop"),
};

/// Block devices as flash.
pub(super) const BLOCK2MTD: Part = Part {
    what: "block2mtd",
    module: "block2mtd",
    found: || has("block2mtd"),
};

/// Whether the kernel has a module loaded or built in; its name with `_`.
fn has(module: &str) -> bool {
    let shown = ["/sys/module", "/sys/kernel/cryptmark"];
    if shown
        .iter()
        .any(|folder| Path::new(folder).join(module).exists())
    {
        return true;
    }
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy().into_owned();
    let list = format!("/lib/modules/{release}/modules.builtin");
    let list = fs::read_to_string(list)
        .unwrap_or_default()
        .replace('-', "_");
    list.lines()
        .any(|line| line.ends_with(&format!("/{module}.ko")))
}

impl Part {
    /// Loads what is not there, if that is allowed.
    pub(super) fn provide(self) -> Result<(), LabError> {
        if (self.found)() {
            return Ok(());
        }
        load(self.module);
        match (self.found)() {
            true => Ok(()),
            false => Err(missing(self.what, self.module)),
        }
    }
}

/// A part that the kernel lacks, and the module that brings it.
fn missing(what: &str, module: &str) -> LabError {
    LabError::invalid(
        format!("this kernel has no {what}"),
        format!(
            "Load the module (modprobe {module}), or use the lab kernel, which has it: system \
             lab:…"
        ),
    )
    .absent()
}

/// Loads a file system's module, if the kernel does not have it.
pub(super) fn provide_file_system(name: &'static str) -> Result<(), LabError> {
    if is_known(name) {
        return Ok(());
    }
    load(name);
    match is_known(name) {
        true => Ok(()),
        false => Err(missing(name, name)),
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
    let _ = block::program::command("modprobe")
        .args(["--quiet", module])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}
