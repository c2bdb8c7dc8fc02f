//! `--protect-hidden`: the hidden volume in a TrueCrypt or VeraCrypt volume, left as
//! it is by whatever writes to the outer one.

use super::arguments::{Devices, Volume};
use super::open::searching;
use super::secrets::passphrase_in;
use crate::cli::{Failure, limits};
use block::ByteRange;
use clap::Args;
use std::path::PathBuf;
use volume::tcrypt::Keyfiles;
use volume::{Format, Secret, VolumeError, tcrypt};

/// The options that say which hidden volume is to be protected.
#[derive(Clone, Debug, Args)]
pub struct ProtectionArguments {
    /// Protect the hidden volume: nothing is written to its place
    #[arg(long, requires = "protection_passphrase_file")]
    protect_hidden: bool,
    /// File with the hidden volume's passphrase in its first line
    #[arg(long, value_name = "FILE|-", requires = "protect_hidden")]
    protection_passphrase_file: Option<PathBuf>,
    /// PIM of the hidden volume
    #[arg(long, value_name = "PIM", requires = "protect_hidden")]
    protection_pim: Option<u32>,
    /// Key file of the hidden volume; can be repeated
    #[arg(
        long = "protection-keyfile",
        value_name = "FILE",
        requires = "protect_hidden"
    )]
    protection_keyfiles: Vec<PathBuf>,
}

impl ProtectionArguments {
    /// Whether a hidden volume is to be protected.
    pub fn is_given(&self) -> bool {
        self.protect_hidden
    }

    /// Where the hidden volume in `volume` is; nowhere if none is to be protected.
    ///
    /// # Errors
    /// Those of opening it.
    pub fn range(&self, volume: &Volume, devices: &Devices) -> Result<ByteRange, Failure> {
        let Some(path) = &self.protection_passphrase_file else {
            return Ok(ByteRange::new(0, 0));
        };
        let Some(family) = volume.family() else {
            return Err(VolumeError::Foreign {
                parameter: "protect_hidden",
                format: volume.format(devices.header())?,
                formats: &[Format::Tcrypt, Format::Veracrypt],
            }
            .into());
        };
        let opening = tcrypt::Opening {
            place: tcrypt::Place::Hidden,
            pim: self.protection_pim,
            keyfiles: Keyfiles::read(&self.protection_keyfiles)?,
            ..tcrypt::Opening::new(family)
        };
        let secret = Secret::Passphrase(passphrase_in(path)?);
        let limits = limits()?;
        let unlocked = searching(|watch| opening.unlock(devices.data(), &secret, &limits, watch))??;
        Ok(unlocked.within_outer(devices.data())?)
    }
}
