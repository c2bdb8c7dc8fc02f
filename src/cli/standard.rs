//! Standard input and output, and whether there are any.

use super::Failure;
use std::io;
use std::path::Path;

/// Refuses to take data from standard input if it was closed when the program began.
///
/// # Errors
/// Exit code 2.
pub fn check_input() -> Result<(), Failure> {
    #[cfg(target_os = "linux")]
    if is_closed(io::stdin()) {
        return Err(Failure::new(
            2,
            "standard input is closed",
            "Connect it to a file or a pipe, or name a file instead of -.",
        ));
    }
    Ok(())
}

/// Refuses to give data to standard output if it was closed when the program began.
///
/// # Errors
/// Exit code 2.
pub fn check_output() -> Result<(), Failure> {
    #[cfg(target_os = "linux")]
    if is_closed(io::stdout()) {
        return Err(Failure::new(
            2,
            "standard output is closed, so all output would be lost",
            "Send it to a file or a pipe, or name a file instead of -.",
        ));
    }
    Ok(())
}

/// Returns when all that was given to standard output is durable, if it is a file or a disk.
///
/// # Errors
/// Those of that; what cannot be synced, as a pipe, has none.
pub fn sync_output() -> io::Result<()> {
    #[cfg(unix)]
    {
        let output = std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned()?;
        match std::fs::File::from(output).sync_all() {
            Err(error)
                if !matches!(
                    error.kind(),
                    io::ErrorKind::InvalidInput
                        | io::ErrorKind::Unsupported
                        | io::ErrorKind::ReadOnlyFilesystem
                ) =>
            {
                return Err(error);
            }
            _ => {}
        }
    }
    Ok(())
}

/// The file or device that `path` leads to as an input, where - is standard input.
pub fn input(path: &Path) -> &Path {
    named(path, "/dev/stdin")
}

/// The file or device that `path` leads to as an output, where - is standard output.
pub fn output(path: &Path) -> &Path {
    named(path, "/dev/stdout")
}

fn named<'a>(path: &'a Path, standard: &'static str) -> &'a Path {
    match path == Path::new("-") {
        true => Path::new(standard),
        false => path,
    }
}

/// Whether a standard descriptor was closed. Rust's runtime opens /dev/null in its place at the
/// start, for reading and writing. A caller that redirects a descriptor to /dev/null opens it for
/// one of them only.
#[cfg(target_os = "linux")]
fn is_closed(descriptor: impl std::os::fd::AsFd) -> bool {
    use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat, major, minor};
    const NULL: (u32, u32) = (1, 3);
    let is_null = fstat(&descriptor).is_ok_and(|found| {
        FileType::from_raw_mode(found.st_mode) == FileType::CharacterDevice
            && (major(found.st_rdev), minor(found.st_rdev)) == NULL
    });
    let both_ways = |flags: OFlags| flags & OFlags::RWMODE == OFlags::RDWR;
    is_null && fcntl_getfl(&descriptor).is_ok_and(both_ways)
}
