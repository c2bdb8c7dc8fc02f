//! `cryptmark volume export` and `import`: the whole plaintext, out and in.

use super::arguments::{Devices, VolumeArguments};
use super::losses;
use super::open::unlock;
use super::protection::ProtectionArguments;
use super::secrets::SecretArguments;
use crate::cli::Failure;
use crate::cli::progress::Progress;
use crate::cli::whole::{self, Other};
use block::hold::{self, Hold};
use block::layer::Protected;
use block::signature::{self, Content};
use block::transfer::{self, TransferError};
use block::{BlockDevice, BlockError, ByteRange, PathKind};
use clap::Args;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use volume::{Access, Format, Storage, VolumeError};

/// Options of `cryptmark volume export`.
#[derive(Debug, Args)]
pub struct ExportOptions {
    #[command(flatten)]
    volume: VolumeArguments,
    #[command(flatten)]
    secret: SecretArguments,
    /// Where to write the plaintext; - is standard output
    #[arg(long, short, value_name = "FILE|-")]
    output: PathBuf,
    /// Overwrite what the output holds
    #[arg(long)]
    yes: bool,
    /// Show no progress
    #[arg(long)]
    no_progress: bool,
}

/// Options of `cryptmark volume import`.
#[derive(Debug, Args)]
pub struct ImportOptions {
    #[command(flatten)]
    volume: VolumeArguments,
    #[command(flatten)]
    secret: SecretArguments,
    /// Where to read the plaintext; - is standard input
    #[arg(long, short, value_name = "FILE|-")]
    input: PathBuf,
    #[command(flatten)]
    protection: ProtectionArguments,
    /// Overwrite what the volume holds
    #[arg(long)]
    yes: bool,
    /// Show no progress
    #[arg(long)]
    no_progress: bool,
}

impl ImportOptions {
    /// Whether the volume has no header of its own.
    pub fn is_headless(&self) -> bool {
        self.volume.is_headless()
    }
}

/// Writes the plaintext of a volume.
pub fn export(options: &ExportOptions) -> Result<(), Failure> {
    options.volume.check_distinct("--output", &options.output)?;
    let devices = options.volume.steady_devices()?;
    let opened = unlock(&options.volume, &options.secret, &devices, Access::Read)?;
    let volume = opened.device(devices.header(), devices.data())?;
    let stop = crate::cli::stop_on_signal()?;
    let progress = Progress::bytes(options.no_progress, volume.geometry().size);
    let report = |done| tell(&progress, &stop, done);
    let outcome = if options.output == Path::new("-") {
        match transfer::to_writer(&volume, &mut io::stdout(), &report) {
            // Whoever read has enough of it.
            Err(TransferError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                Ok(())
            }
            outcome => outcome.map_err(Failure::from),
        }
    } else {
        to_file(options, &volume, &report)
    };
    progress.finish();
    outcome
}

/// Writes to a file that appears when it is whole, or to a block device.
fn to_file(
    options: &ExportOptions,
    volume: &dyn BlockDevice,
    report: transfer::Report,
) -> Result<(), Failure> {
    let path = &options.output;
    let unwritable = |error| {
        Failure::new(
            1,
            format!("cannot write {}: {error}", path.display()),
            "Check the path, its permissions and the free space.",
        )
    };
    let existing = std::fs::metadata(path).ok();
    match existing.map(|existing| PathKind::of(&existing)) {
        None => {}
        Some(Some(PathKind::RegularFile)) => {
            losses::guard(path, options.yes)?;
            // Who writes to it would go on with a file that has no name any more.
            hold::open(path, true, Hold::Usual).map_err(VolumeError::Block)?;
        }
        Some(Some(PathKind::BlockDevice)) => {
            losses::guard(path, options.yes)?;
            let device = hold::open(path, true, Hold::Usual).map_err(VolumeError::Block)?;
            transfer::to_file(volume, &device, false, report)?;
            return device.sync_all().map_err(unwritable);
        }
        Some(None) => {
            let mut pipe = File::options().write(true).open(path).map_err(unwritable)?;
            return Ok(transfer::to_writer(volume, &mut pipe, report)?);
        }
    }
    let file = whole::draft(path).map_err(unwritable)?;
    file.as_file()
        .set_len(volume.geometry().size)
        .map_err(unwritable)?;
    transfer::to_file(volume, file.as_file(), true, report)?;
    whole::publish(file, path, Other::Goes).map_err(unwritable)
}

/// Encrypts into a volume.
pub fn import(options: &ImportOptions) -> Result<(), Failure> {
    let unreadable = |error: io::Error| {
        Failure::new(
            2,
            format!("cannot read {}: {error}", options.input.display()),
            "Check the path and its permissions.",
        )
    };
    options.volume.check_distinct("--input", &options.input)?;
    let input = match options.input == Path::new("-") {
        true => Input::Stream(Box::new(io::stdin())),
        false => Input::open(&options.input).map_err(unreadable)?,
    };
    let devices = options.volume.devices(true)?;
    let opened = unlock(&options.volume, &options.secret, &devices, Access::Write)?;
    let rows = opened.rows.iter();
    let rows: Vec<_> = rows.map(|row| (row.storage, row.mapping.data)).collect();
    let hidden = options.protection.range(&options.volume, &devices)?;
    let data = Protected::new(devices.data(), hidden);
    let volume = opened.device::<&dyn BlockDevice>(devices.header(), &data)?;
    let size = volume.geometry().size;
    let length = match input {
        Input::File(_, length) if length > size => {
            return Err(TransferError::TooLong { size }.into());
        }
        Input::File(_, length) => length,
        Input::Stream(_) => size,
    };
    if !options.yes {
        guard_import(options, &devices, &volume)?;
    }
    if let Input::File(..) = input {
        let mut left = length;
        for (storage, range) in rows {
            if storage == Storage::Data {
                let needed = ByteRange::new(range.offset, range.length.min(left));
                devices.data().reserve(needed)?;
            }
            left = left.saturating_sub(range.length);
        }
    }
    let stop = crate::cli::stop_on_signal()?;
    let progress = Progress::bytes(options.no_progress, length);
    let report = |done| tell(&progress, &stop, done);
    let outcome = match input {
        Input::File(file, length) => transfer::from_file(&volume, &file, length, &report),
        Input::Stream(mut stream) => transfer::from_reader(&volume, &mut stream, &report).map(drop),
    };
    progress.finish();
    Ok(outcome?)
}

/// Refuses to write over what the volume holds, and over what its device holds if
/// nothing there says that it is this volume.
fn guard_import(
    options: &ImportOptions,
    devices: &Devices,
    volume: &dyn BlockDevice,
) -> Result<(), Failure> {
    let image = options.volume.image();
    // A fresh volume decrypts to noise, so that only what has a name counts.
    match signature::names(volume) {
        Ok(found) if found.is_empty() => {}
        Ok(found) => return Err(losses::refusal_inside(image, found)),
        // What has no right tag was never written, or is lost.
        Err(BlockError::Tampered { .. }) => {}
        Err(error) => return Err(VolumeError::Block(error).into()),
    }
    let format = options.volume.format(devices.header())?;
    let vouched = std::ptr::eq(devices.header(), devices.data())
        && !matches!(format, Format::Plain | Format::Cryptoloop | Format::LoopAes);
    if vouched {
        return Ok(());
    }
    // Data without a header, and of one that is elsewhere, is noise; what has a name is
    // something else, which the wrong type or the wrong header would destroy.
    let found = signature::names(devices.data()).map_err(VolumeError::Block)?;
    if !found.is_empty() {
        return Err(losses::refusal(image, &Content { found, data: None }));
    }
    match signature::readable(devices.data()).map_err(VolumeError::Block)? {
        None => Ok(()),
        Some(place) => Err(Failure::new(
            4,
            format!(
                "{} holds data at byte {place} that are not encrypted, and would be lost",
                image.display()
            ),
            "Check the --type and --header. If nobody needs the data, confirm with --yes.",
        )),
    }
}

/// Where the plaintext comes from.
enum Input {
    /// Something with places, and its bytes.
    File(File, u64),
    /// Something that comes once.
    Stream(Box<dyn io::Read + Send>),
}

impl Input {
    fn open(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        if PathKind::of(&file.metadata()?).is_none() {
            return Ok(Self::Stream(Box::new(file)));
        }
        let length = io::Seek::seek(&mut file, io::SeekFrom::End(0))?;
        Ok(Self::File(file, length))
    }
}

/// Shows the bytes that are done, and says whether to go on.
pub fn tell(progress: &Progress, stop: &AtomicBool, done: u64) -> ControlFlow<()> {
    progress.filled(done);
    match stop.load(Ordering::Relaxed) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}
