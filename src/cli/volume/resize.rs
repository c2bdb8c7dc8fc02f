//! `cryptmark volume resize`: more or less data in a file.

use super::arguments::{Extent, VolumeArguments};
use super::disk::Names;
use super::open::searching;
use super::secrets::SecretArguments;
use crate::cli::{Failure, print_done};
use clap::Args;
use volume::judge::Use;
use volume::operate;

/// Options of `cryptmark volume resize`.
#[derive(Debug, Args)]
pub struct ResizeOptions {
    #[command(flatten)]
    volume: VolumeArguments,
    /// The new end of the data and of the file, header included: in 512-byte sectors, or with a unit: 2G or 2GiB (2^30), 2GB (10^9)
    #[arg(long, value_name = "SIZE")]
    to: Extent,
    /// What opens a TrueCrypt or VeraCrypt volume, whose headers are written anew
    #[command(flatten)]
    secret: SecretArguments,
    /// Confirm that data are cut off, or that data behind the volume are lost
    #[arg(long)]
    yes: bool,
}

/// Runs the command.
pub fn run(options: &ResizeOptions, names: &Names) -> Result<(), Failure> {
    let volume = &options.volume.with(names);
    let format = volume.family().map(|family| family.format());
    if let Some(format) = format {
        volume.refuse_foreign_options(format)?;
    }
    let mut place = volume.devices(Use::ChangeLayout)?.place();
    if format.is_none() {
        volume.format(place.header())?;
        volume.check_luks(place.header())?;
    }
    let secret = format.map(|format| options.secret.secret(format, volume.image()));
    let secret = secret.transpose()?;
    let wanted = volume.options(options.yes)?;
    let (to, secret) = (options.to.bytes, secret.as_ref());
    let resized = searching(|watch| operate::resize(&mut place, to, secret, &wanted, watch))?;
    let bytes = resized.map_err(|error| volume.at(error))?;
    if let (None, Some(option)) = (format, options.secret.given()) {
        eprintln!("note: {option} was not needed: a LUKS volume changes its size without a secret");
    }
    if format.is_some() {
        eprintln!(
            "note: space that a volume gains is not filled with noise, and shows how much of it is used"
        );
    }
    print_done(&format!("{bytes} bytes of data\n"));
    Ok(())
}
