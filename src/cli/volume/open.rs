//! `cryptmark volume open`: does it open, and as what?

use super::arguments::{Devices, Volume, VolumeArguments};
use super::disk::Names;
use super::header::{check_to_write, unlock_alone};
use super::losses;
use super::secrets::SecretArguments;
use crate::cli::progress::Progress;
use crate::cli::{Failure, limits, print, stop_on_signal};
use block::{BlockError, signature};
use cipher::Key;
use clap::Args;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use volume::judge::{State, Use};
use volume::operate;
use volume::{
    Access, Format, Limits, Opened, Opening, Parameters, Row, Secret, Terms, VolumeError, Warning,
    bestcrypt, has_equal_halves, tcrypt,
};

/// Options of `cryptmark volume open`.
#[derive(Debug, Args)]
pub struct OpenOptions {
    #[command(flatten)]
    volume: VolumeArguments,
    #[command(flatten)]
    secret: SecretArguments,
}

/// Runs the command.
pub fn run(options: &OpenOptions, names: &Names) -> Result<(), Failure> {
    let volume = &options.volume.with(names);
    let devices = volume.devices(Use::Read)?;
    let opened_as = volume.format(devices.header())?;
    if opened_as == Format::Bestcrypt && !volume.is_experimental() {
        return bestcrypt(options, volume, &devices);
    }
    if let Some(text) = unlock_alone(volume, &options.secret, &devices)? {
        return print(&text);
    }
    let opened = unlock(volume, &options.secret, &devices, READ)?;
    let mut text = match (opened.slot, &opened.bitlk) {
        (Some(slot), Some(_)) => format!("protector   {slot}\n"),
        (Some(slot), None) => format!("keyslot     {slot}\n"),
        (None, _) => String::new(),
    };
    let rows = opened.rows.iter().map(|Row { mapping, .. }| mapping);
    let whole = opened.bitlk.iter().map(|bitlk| &bitlk.mapping);
    for mapping in rows.chain(whole) {
        text += &format!("cipher      {}\n", mapping.spec);
        text += &format!("key         {} bits\n", mapping.key.len() * 8);
        text += &format!("sector size {} bytes\n", mapping.layout.size.bytes());
        text += &format!(
            "data        {} bytes from {}\n",
            mapping.data.length, mapping.data.offset
        );
        text += &format!("first IV    {}\n", mapping.first.get());
    }
    if let Some(sealed) = &opened.sealed {
        text += &format!("cipher      {}\n", sealed.encryption);
        text += &format!("integrity   {}\n", sealed.integrity);
        text += &format!("key         {} bits\n", sealed.key.len() * 8);
        text += &format!("sector size {} bytes\n", sealed.sector_size.bytes());
    }
    if let Some(writers) = volume.writers() {
        text += &format!("in use      for writing, {writers}\n");
    }
    let is_unfit = |warning: &Warning| matches!(warning, Warning::Unfit { .. });
    let is_warned = opened.warnings.iter().any(is_unfit);
    let plaintext = opened.device(devices.header(), devices.data())?;
    let found = match signature::names(&plaintext) {
        Ok(found) => found,
        // A sector without a right tag was never written, or is lost.
        Err(BlockError::Tampered { .. }) => Vec::new(),
        Err(error) => return Err(VolumeError::Block(error).into()),
    };
    let names: Vec<_> = found.iter().map(ToString::to_string).collect();
    if !names.is_empty() {
        text += &format!("holds       {}\n", names.join(", "));
    } else if volume.is_headless() {
        text += "holds       unknown data\n";
        if !is_warned {
            eprintln!(
                "warning: the plaintext has no known signature: check the passphrase, cipher and \
                 hash"
            );
        }
        if opened_as == Format::Plain {
            let tried = match volume.earlier_plain()? {
                Some(_) => " Both were tried.",
                None => "",
            };
            eprintln!("{PLAIN_DEFAULTS}.{tried}");
        }
    }
    print(&text)
}

/// The default parameters of plain mode, with which a volume was made if its maker gave none.
const PLAIN_DEFAULTS: &str = "warning: cryptsetup's plain mode without options is \
     `-c aes-cbc-essiv:sha256 -s 256 --hash ripemd160` up to 2.6, and `-c aes-xts-plain64 -s 256 \
     --hash sha256` from 2.7 on";

/// Checks the passphrase of a BestCrypt container. This works even if its data cannot be opened.
fn bestcrypt(options: &OpenOptions, volume: &Volume, devices: &Devices) -> Result<(), Failure> {
    volume.refuse_foreign_options(Format::Bestcrypt)?;
    let header = bestcrypt::Header::read(devices.data())?;
    let secret = options.secret.secret(Format::Bestcrypt, volume.image())?;
    let unlocked = header.unlock(devices.data(), &secret, &Limits::default())?;
    let slot = unlocked
        .slot
        .map_or_else(String::new, |slot| format!("keyslot     {slot}\n"));
    print(&format!(
        "{slot}key         {} bits\n",
        unlocked.key.len() * 8
    ))
}

/// Opens a volume for reading, which loses nothing.
pub const READ: (Access, &[State]) = (Access::Read, &[]);

/// Opens the volume that the options name, for this access. If it is going to be written, these
/// losses are accepted.
pub fn unlock(
    volume: &Volume,
    secret: &SecretArguments,
    devices: &Devices,
    (access, accepted): (Access, &[State]),
) -> Result<Opened, Failure> {
    let meanwhile = volume.meanwhile(devices.header())?;
    let format = match &meanwhile {
        Some(_) => Format::Luks2,
        None => volume.format(devices.header())?,
    };
    let mut opening = match &meanwhile {
        Some(_) => Parameters::default().opening(format)?,
        None => volume.opening(format)?,
    };
    let of_header = match (access, volume.named_header()) {
        (Access::Write, Some(named)) => check_to_write(named, volume.image(), devices)?,
        _ => None,
    };
    let secret = match secret.given() {
        None if opening.needs_no_secret(devices.header())? => {
            Secret::Passphrase(Key::from_slice(&[]))
        }
        _ => secret.secret(format, volume.image())?,
    };
    let secret = match &meanwhile {
        Some(meanwhile) => meanwhile.secret(&secret)?,
        None => secret,
    };
    let search = Search::start()?;
    let watch = |progress| search.watch(progress);
    let limits = limits()?;
    let mut header = devices.header();
    // The header of an encrypted system is on the disk, before its partitions.
    if let Opening::Tcrypt(tcrypt) = &mut opening
        && tcrypt.place == tcrypt::Place::System
        && let Some((disk, start)) = devices.data().on_disk()
    {
        tcrypt.partition = Some(start.offset);
        header = disk;
    }
    // A write now might change the data by which the reencryption recognises them.
    let beside = volume.named_header().is_none() && operate::is_beside(&volume.site())?;
    if access == Access::Write && beside {
        return Err(VolumeError::RecoveryNeeded.into());
    }
    let reading = Terms::reading(&limits, &watch);
    let unlock = |opening: &Opening, terms: &Terms| {
        let opened = opening.unlock(header, devices.data(), &secret, terms);
        opened.map_err(|error| losses::at(volume.image(), error))
    };
    let mut opening = &opening;
    let earlier = volume.earlier_plain()?;
    if let Some(earlier) = &earlier
        && !is_known(unlock(opening, &reading)?, devices)?
        && is_known(unlock(earlier, &reading)?, devices)?
    {
        eprintln!(
            "note: the volume was made with the defaults of cryptsetup up to 2.6: \
             -c aes-cbc-essiv:sha256 -s 256 --hash ripemd160"
        );
        opening = earlier;
    }
    let terms = Terms {
        access,
        accepted,
        ..reading
    };
    let opened = unlock(opening, &terms)?;
    let weak = |row: &Row| has_equal_halves(row.mapping.spec, &row.mapping.key);
    if opened.rows.iter().any(weak) {
        eprintln!(
            "warning: both halves of the volume key are the same, so that XTS protects less: \
             copy the data into a new volume"
        );
    }
    drop(search);
    if let Some(warning) = of_header {
        eprintln!("warning: {warning}");
    }
    if opened.by_copy {
        eprintln!(
            "warning: the header is damaged or cannot be read, and its copy opened the volume: \
             `cryptmark volume header repair` rewrites it"
        );
    }
    for warning in &opened.warnings {
        eprintln!("warning: {warning}");
    }
    Ok(opened)
}

/// Whether the plaintext has anything with a name.
fn is_known(opened: Opened, devices: &Devices) -> Result<bool, Failure> {
    let plaintext = opened.device(devices.header(), devices.data())?;
    let names = signature::names(&*plaintext).map_err(VolumeError::Block)?;
    Ok(!names.is_empty())
}

/// A search for a key derivation, as the user sees it.
pub struct Search {
    bar: Progress,
    stop: Arc<AtomicBool>,
}

impl Search {
    /// Begins; Ctrl-C ends it.
    pub fn start() -> Result<Self, Failure> {
        Ok(Self {
            bar: Progress::search(),
            stop: stop_on_signal()?,
        })
    }

    /// Shows how far it is, and says whether to go on.
    pub fn watch(&self, progress: tcrypt::Progress) -> ControlFlow<()> {
        self.bar.searched(progress.done, progress.total);
        match self.stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        self.bar.finish();
    }
}
