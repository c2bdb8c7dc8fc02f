//! `cryptmark volume convert`: a LUKS1 header made one of LUKS2, where it is.

use super::disk::{Disk, check_distinct};
use crate::cli::{Failure, print_done};
use clap::Args;
use std::path::PathBuf;
use volume::{Format, luks1, luks2};

/// Options of `cryptmark volume convert`.
///
/// Keyslots keep their numbers and passphrases, the data stays where it is, and
/// no passphrase is asked for. `volume header backup` before, and `restore`
/// afterwards, is the way back.
#[derive(Debug, Args)]
pub struct ConvertOptions {
    /// The LUKS1 volume: a file, a block device or an NBD export
    image: PathBuf,
    /// What it shall be: luks2
    #[arg(long = "type", value_name = "TYPE")]
    kind: String,
    /// The file or device with the header, if it is not the volume itself
    #[arg(long, value_name = "FILE")]
    header: Option<PathBuf>,
}

/// Runs the command.
pub fn run(options: &ConvertOptions) -> Result<(), Failure> {
    if Format::named(&options.kind) != Some(Format::Luks2) {
        return Err(Failure::new(
            2,
            format!("no volume is converted to `{}`", options.kind),
            "Give --type luks2; for all else copy with `volume export` and `volume import`.",
        ));
    }
    let path = options.header.as_ref().unwrap_or(&options.image);
    let device = Disk::for_header(path)?;
    if let Some(header) = &options.header {
        check_distinct("--header", header, &options.image)?;
        // Who uses the data has read the old header.
        Disk::open(&options.image, true)?;
    }
    let shown = path.display();
    match Format::detect(&device)? {
        Some(Format::Luks1) => {
            luks2::Header::convert(&device, luks1::Header::read(&device)?)?;
            print_done(&format!("{shown} is a LUKS2 volume\n"));
            Ok(())
        }
        Some(Format::Luks2) => {
            // A cut may have left the first copy of the header half written.
            luks2::Header::read(&device)?.repair(&device, false)?;
            print_done(&format!("{shown} is a LUKS2 volume already\n"));
            Ok(())
        }
        _ => Err(Failure::new(
            2,
            format!("{shown} has no LUKS1 header"),
            "Only LUKS1 volumes become LUKS2; name a detached header with --header.",
        )),
    }
}
