//! Explains a file that is not a volume: what it holds.

use super::losses;
use crate::cli::Failure;
use block::BlockDevice;
use block::signature::Wrapped;
use std::path::Path;
use volume::VolumeError;

/// The longest text that is not a block, bytes.
const SHORT: u64 = 512;

/// An error of a file without a signature, with what it holds. A text that describes an image may be
/// shorter than a block.
pub fn with_text(path: &Path, error: VolumeError) -> VolumeError {
    let text = || std::fs::read(path).unwrap_or_default();
    match error {
        VolumeError::NoSignature { holds: None, .. }
            if path.metadata().is_ok_and(|found| found.len() < SHORT) =>
        {
            VolumeError::NoSignature {
                holds: Wrapped::known(&text()).map(Wrapped::name),
                is_blank: false,
            }
        }
        error => error,
    }
}

/// Refuses to look for parts of an image that another program has wrapped.
pub fn check_unwrapped(path: &Path, device: &dyn BlockDevice) -> Result<(), Failure> {
    let none = VolumeError::NoSignature {
        holds: volume::wrapped(device).map(Wrapped::name),
        is_blank: false,
    };
    match with_text(path, none) {
        VolumeError::NoSignature { holds: None, .. } => Ok(()),
        wrapped => Err(losses::at(path, wrapped)),
    }
}
