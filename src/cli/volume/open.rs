//! `cryptmark volume open`: does it open, and as what?

use super::arguments::VolumeArguments;
use super::secrets::SecretArguments;
use crate::cli::{Failure, print};
use clap::Args;
use volume::{CryptDevice, Limits, Opened};

/// Options of `cryptmark volume open`.
#[derive(Debug, Args)]
pub struct OpenOptions {
    #[command(flatten)]
    volume: VolumeArguments,
    #[command(flatten)]
    secret: SecretArguments,
}

/// Runs the command.
pub fn run(options: &OpenOptions) -> Result<(), Failure> {
    let devices = options.volume.devices(false)?;
    let opened = unlock(&options.volume, &options.secret, &devices)?;
    let mapping = &opened.mapping;
    let mut text = match opened.slot {
        Some(slot) => format!("keyslot     {slot}\n"),
        None => String::new(),
    };
    text += &format!("cipher      {}\n", mapping.spec);
    text += &format!("key         {} bits\n", mapping.key.len() * 8);
    text += &format!("sector size {} bytes\n", mapping.layout.size.bytes());
    text += &format!(
        "data        {} bytes from {}\n",
        mapping.data.length, mapping.data.offset
    );
    text += &format!("first IV    {}\n", mapping.first.get());
    // Only now is it certain that the data can be had.
    CryptDevice::new(&devices.data, opened.mapping)?;
    print(&text)
}

/// Opens the volume that the options name.
pub fn unlock(
    volume: &VolumeArguments,
    secret: &SecretArguments,
    devices: &super::arguments::Devices,
) -> Result<Opened, Failure> {
    let format = volume.format(devices.header())?;
    let opening = volume.opening(format)?;
    let secret = secret.secret(format, volume.image())?;
    let limits = Limits::default();
    Ok(opening.unlock(devices.header(), &devices.data, &secret, &limits)?)
}
