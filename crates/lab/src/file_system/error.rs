//! Errors of jobs that arise in several places.

use crate::error::LabError;
use std::io;
use std::path::Path;

/// Something, such as `cannot write`, that failed with a file or directory.
pub(crate) fn unusable(what: &str, path: &Path, source: io::Error) -> LabError {
    let what = format!("{what} {}", path.display());
    LabError::failed(what, "Check the free space and the permissions.").because(source)
}

/// A program that could not be run: it may be missing, and be in a package of Debian.
pub(super) fn not_run(program: &str, package: &str, error: io::Error) -> LabError {
    match error.kind() {
        io::ErrorKind::NotFound => not_installed(program, package),
        _ => unusable("cannot run", program.as_ref(), error),
    }
}

/// A program that is missing, and Debian's package with it.
pub(super) fn not_installed(program: &str, package: &str) -> LabError {
    LabError::invalid(
        format!("{program} is not installed"),
        format!("Install Debian's {package}."),
    )
    .absent()
}

/// A program that failed, and the last line of its output.
pub(super) fn program_failed(program: &str, said: &str) -> LabError {
    LabError::failed(
        format!("{program} failed: {said}"),
        "Run the program by hand on a file of that size to see more.",
    )
    .absent()
}

/// Something that could not be taken down.
pub(super) fn not_removed(what: &Path, source: impl Into<io::Error>) -> LabError {
    LabError::failed(
        format!("cannot remove {}", what.display()),
        "Close the programs that use it. Nothing of it remains after this program ends.",
    )
    .because(source.into())
}

/// A file system that could not be mounted.
pub(super) fn not_mounted(
    file_system: &str,
    device: &Path,
    source: impl Into<io::Error>,
) -> LabError {
    LabError::failed(
        format!("cannot mount {file_system} from {}", device.display()),
        "Look for the reason in the kernel log (dmesg).",
    )
    .because(source.into())
}

/// Only root may attach and mount.
pub(super) fn not_root() -> LabError {
    LabError::invalid(
        "measuring file systems needs root",
        "Run the program as root, or measure inside the lab kernel, with system lab:none.",
    )
}

/// A job that cannot be parsed or read.
pub(crate) fn unreadable_job(error: serde_json::Error) -> LabError {
    LabError::failed(
        "the job cannot be read",
        "Use the same version of the program on both sides.",
    )
    .because(error)
}

/// A system that does not keep or hide what it is given.
pub(super) fn untrustworthy(what: String) -> LabError {
    let remedy = "Do not trust this system with data. Please report it with the run's record.";
    LabError::failed(what, remedy)
}
