//! The errors of other crates as the lab's, with their remedies.

use super::Verdict;
use crate::error::LabError;
use block::BlockError;
use cipher::CipherError;
use drive::DriveError;
use volume::VolumeError;
#[cfg(target_os = "linux")]
use {::serve::fuse::FuseError, ::serve::nbd::ClientError, ::serve::nbd::ServeError};

impl From<BlockError> for LabError {
    fn from(error: BlockError) -> Self {
        VolumeError::Block(error).into()
    }
}

impl From<CipherError> for LabError {
    fn from(error: CipherError) -> Self {
        VolumeError::Cipher(error).into()
    }
}

impl From<VolumeError> for LabError {
    fn from(error: VolumeError) -> Self {
        Self::new(error.verdict(), error.to_string(), error.remedy()).because(error)
    }
}

impl From<DriveError> for LabError {
    fn from(error: DriveError) -> Self {
        Self::invalid(error.to_string(), error.remedy()).because(error)
    }
}

#[cfg(target_os = "linux")]
impl From<ClientError> for LabError {
    fn from(error: ClientError) -> Self {
        let verdict = match error.is_bad_input() {
            true => Verdict::BadInput,
            false => Verdict::Failed,
        };
        Self::new(verdict, error.to_string(), error.remedy()).because(error)
    }
}

#[cfg(target_os = "linux")]
impl From<ServeError> for LabError {
    fn from(error: ServeError) -> Self {
        Self::failed(error.to_string(), error.remedy()).because(error)
    }
}

/// Of our own file only the system's part may be missing.
#[cfg(target_os = "linux")]
impl From<FuseError> for LabError {
    fn from(error: FuseError) -> Self {
        let failed = Self::failed(error.to_string(), error.remedy());
        failed.because(error).absent()
    }
}
