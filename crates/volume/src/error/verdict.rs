//! [`Verdict`]: what an error means for the user.

use super::VolumeError;
use block::BlockError;

/// The meaning of an error for the user; each one has its own exit code in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The operation was possible and failed.
    Failed,
    /// An input cannot be used: options, a header, a file.
    BadInput,
    /// The passphrase or key fits nothing.
    WrongSecret,
    /// Refused, because data would be lost.
    Protected,
    /// Stopped by the user.
    Interrupted,
}

impl VolumeError {
    /// Whether it is about one place of the device alone, so that another one
    /// may still be read.
    pub(crate) fn is_of_place(&self) -> bool {
        matches!(self, Self::Block(error) if error.is_of_place())
    }

    /// What is changed already, in words, if that is so and not known from the error alone.
    #[doc(hidden)]
    pub fn change(&self) -> Option<String> {
        match self {
            Self::Rewritten { .. } => {
                Some("the header or its copy may be written already".to_owned())
            }
            Self::Partly { image, .. } => Some(format!(
                "a part of the data in {} is converted",
                image.display()
            )),
            _ => None,
        }
    }

    /// The meaning of the error for the user.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Overwritten { error }
            | Self::Rewritten { error }
            | Self::Partly { error, .. } => error.verdict(),
            Self::NoKeyslotFits { .. }
            | Self::KeyslotsUntried { .. }
            | Self::NoKeyslot { .. }
            | Self::NoHeaderFits
            | Self::NoProtectorFits { .. }
            | Self::RecoveryPassword { .. }
            | Self::WrongVolumeKey => Verdict::WrongSecret,
            Self::Block(
                BlockError::Io { .. }
                | BlockError::ServerGone { .. }
                | BlockError::CutOff { .. }
                | BlockError::Removed
                | BlockError::Lost { .. }
                | BlockError::Tampered { .. },
            )
            | Self::OutOfMemory { .. }
            | Self::NoRoom(_)
            | Self::CannotWrite { .. }
            | Self::NotKept { .. }
            | Self::NoBackupFolder
            | Self::Caller(_)
            | Self::Forked { .. }
            | Self::Unverified { .. } => Verdict::Failed,
            Self::LastKeyslot { .. }
            | Self::Judged(_)
            | Self::Standing { .. }
            | Self::HeaderChanged { .. }
            | Self::Reencrypting
            | Self::Unfinished(_)
            | Self::RecoveryNeeded
            | Self::UnboundReencryption
            | Self::Decrypted { .. }
            | Self::OtherData
            | Self::ForeignReencryption
            | Self::Unwritable { .. } => Verdict::Protected,
            Self::Stopped | Self::Block(BlockError::Interrupted) => Verdict::Interrupted,
            Self::Block(
                BlockError::InUse { .. }
                | BlockError::Mounted { .. }
                | BlockError::Swap { .. }
                | BlockError::Holds { .. }
                | BlockError::Protected { .. },
            ) => Verdict::Protected,
            _ => Verdict::BadInput,
        }
    }
}
