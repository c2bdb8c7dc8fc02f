//! `cryptmark volume convert`: a LUKS1 header made one of LUKS2 in place, or back.

use super::arguments::VolumeArguments;
use super::disk::Names;
use crate::cli::{Failure, print_done};
use clap::Args;
use std::path::PathBuf;
use volume::judge::Use;
use volume::{Format, operate};

/// Options of `cryptmark volume convert`.
///
/// Key slots keep their numbers and passphrases. The data stay where they are, and no
/// passphrase is needed. A LUKS2 volume becomes LUKS1 only if LUKS1 has all that it uses:
/// 512-byte sectors, PBKDF2, eight key slots, no tokens, no label, no integrity tags.
#[derive(Debug, Args)]
pub struct ConvertOptions {
    /// The LUKS volume: a file, a block device or an NBD export
    image: PathBuf,
    /// The new type: luks1 or luks2
    #[arg(long = "type", value_name = "TYPE")]
    kind: String,
    /// The file or device with the header, if it is not the volume itself
    #[arg(long, value_name = "FILE")]
    header: Option<PathBuf>,
}

/// Runs the command.
pub fn run(options: &ConvertOptions, names: &Names) -> Result<(), Failure> {
    let wanted = Format::parse(&options.kind)?;
    let arguments = VolumeArguments::at_place(&options.image, options.header.as_deref());
    let volume = arguments.with(names);
    let place = volume.devices(Use::ChangeLayout)?.place();
    let shown = options.header.as_ref().unwrap_or(&options.image).display();
    let changed = operate::convert(&place, wanted).map_err(|error| volume.at(error))?;
    let already = if changed { "" } else { " already" };
    let title = wanted.title();
    print_done(&format!("{shown} is a {title} volume{already}\n"));
    Ok(())
}
