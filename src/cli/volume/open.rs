//! `cryptmark volume open`: does it open, and as what?

use super::arguments::{Devices, Volume, VolumeArguments};
use super::disk::Names;
use super::secrets::SecretArguments;
use crate::cli::progress::Progress;
use crate::cli::{Failure, limits, print, stop_on_signal};
use block::{BlockError, signature};
use clap::Args;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use volume::judge::{State, Use};
use volume::operate;
use volume::{
    Access, Format, Limits, Locked, LuksHeader, Opened, Row, VolumeError, Warning, bestcrypt,
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
    if let Some(text) = backup(options, volume, &devices, opened_as)? {
        return print(&text);
    }
    let opened = unlock(volume, &options.secret, &devices, READ)?;
    let mut text = match (opened.slot, &opened.bitlk) {
        (Some(slot), Some(_)) => format!("protector   {slot}\n"),
        (Some(slot), None) => keyslot(slot),
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
            let tried = match volume.plain_parameters().is_default_plain() {
                true => " Both were tried.",
                false => "",
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
    let slot = unlocked.slot.map_or_else(String::new, keyslot);
    print(&format!(
        "{slot}key         {} bits\n",
        unlocked.key.len() * 8
    ))
}

/// Opens the header in a file that ends where the data would begin, and says so; nothing if there
/// are data, or no header of LUKS.
fn backup(
    options: &OpenOptions,
    volume: &Volume,
    devices: &Devices,
    format: Format,
) -> Result<Option<String>, Failure> {
    let device = devices.data();
    let header = LuksHeader::read(device);
    let Some(header) = header.ok().filter(|header| header.is_alone(device)) else {
        return Ok(None);
    };
    if volume.header_path().is_some() || !matches!(format, Format::Luks1 | Format::Luks2) {
        return Ok(None);
    }
    volume.refuse_foreign_options(format)?;
    let secret = options.secret.secret(format, volume.image())?;
    let unlocked = header.unlock(device, &secret, volume.key_slot(), &limits()?)?;
    let slot = unlocked.slot.map_or_else(String::new, keyslot);
    Ok(Some(format!(
        "{slot}key         {} bits\nthe header is sound, and what was given opens it; this is a \
         backup of a header, without data\n",
        unlocked.key.len() * 8
    )))
}

fn keyslot(slot: u32) -> String {
    format!("keyslot     {slot}\n")
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
    let place = devices.place();
    let said = |error| volume.at(error);
    let options = volume.open_options(access, accepted)?;
    let locked = Locked::find(&place, &options).map_err(said)?;
    let secret = match secret.given() {
        None if locked.opens_by_itself() => None,
        _ => Some(secret.secret(locked.format(), volume.image())?),
    };
    let opened = searching(|watch| locked.unlock(secret.as_ref(), watch))?;
    let opened = opened.map_err(said)?;
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

/// A search for a key derivation, as the user sees it.
pub struct Search {
    bar: Progress,
    stop: Arc<AtomicBool>,
}

/// Does `work`, and shows how far its search for a key derivation is.
pub fn searching<T>(work: impl FnOnce(operate::Report<'_>) -> T) -> Result<T, Failure> {
    let search = Search::start()?;
    Ok(work(&|done, total| search.watch(done, total)))
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
    pub fn watch(&self, done: u64, total: u64) -> ControlFlow<()> {
        self.bar.searched(done, total);
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
