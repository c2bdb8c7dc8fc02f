//! `cryptmark volume export` and `import`: the whole plaintext, out and in.

use super::arguments::VolumeArguments;
use super::disk::Names;
use super::losses;
use super::open::{READ, unlock};
use super::protection::ProtectionArguments;
use super::secrets::{SecretArguments, unreadable};
#[cfg(target_os = "linux")]
use crate::cli::confine;
use crate::cli::progress::Progress;
use crate::cli::whole::{self, Kind, Target};
use crate::cli::{Failure, standard};
use block::layer::Protected;
use block::transfer::{self, TransferError};
use block::{BlockDevice, BlockError, Draft, PathKind};
use clap::Args;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use volume::Access;
use volume::judge::Use;
use volume::operate::Filling;

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
pub fn export(options: &ExportOptions, names: &Names) -> Result<(), Failure> {
    let output = standard::output(&options.output);
    let named = options.volume.with(names);
    named.check_distinct("--output", output)?;
    let to_stdout = options.output == Path::new("-");
    if to_stdout {
        standard::check_output()?;
    }
    let devices = named.steady_devices()?;
    let opened = unlock(&named, &options.secret, &devices, READ)?;
    let volume = opened.device(devices.header(), devices.data())?;
    let output = match to_stdout {
        true => Output::Standard,
        false => Output::open(options, volume.geometry().size)?,
    };
    let stop = crate::cli::stop_on_signal()?;
    #[cfg(target_os = "linux")]
    {
        let sources = std::iter::once(options.volume.image()).chain(options.volume.named_header());
        confine::Confinement::around(sources, output.names())?.enter()?;
    }
    let progress = Progress::bytes(options.no_progress, volume.geometry().size);
    let report = |done| tell(&progress, &stop, done);
    let outcome = output.fill(&options.output, &volume, &report);
    progress.finish();
    outcome
}

/// Where the plaintext goes: open, and examined.
enum Output {
    Standard,
    /// A pipe or a terminal.
    Stream(File),
    /// A block device.
    Disk(Target),
    /// A file that appears when it is whole.
    New(Target, Draft),
}

impl Output {
    fn open(options: &ExportOptions, needed: u64) -> Result<Self, Failure> {
        let path = &options.output;
        let unwritable = |error: io::Error| whole::unwritable(path, &error);
        let target = Target::of(path, Kind::Plaintext, options.yes)?;
        if let Some(pipe) = target.stream().map_err(unwritable)? {
            return Ok(Self::Stream(pipe));
        }
        let Some(mut device) = target.disk() else {
            let draft = target.draft(0o600).map_err(unwritable)?;
            draft.file().set_len(needed).map_err(unwritable)?;
            return Ok(Self::New(target, draft));
        };
        let room = io::Seek::seek(&mut device, io::SeekFrom::End(0)).map_err(unwritable)?;
        if room < needed {
            let what = format!(
                "{} has {room} bytes, and the volume {needed}",
                path.display()
            );
            let remedy = "Nothing was written. Name a larger device, or a file.";
            return Err(Failure::new(2, what, remedy));
        }
        Ok(Self::Disk(target))
    }

    /// The folder in which the file gets its name.
    #[cfg(target_os = "linux")]
    fn names(&self) -> Vec<confine::Allowed> {
        match self {
            Self::New(target, _) => vec![(target.folder().to_owned(), confine::name())],
            _ => Vec::new(),
        }
    }

    /// Writes the plaintext; `path` is how the user calls it.
    fn fill(
        self,
        path: &Path,
        volume: &dyn BlockDevice,
        report: transfer::Report,
    ) -> Result<(), Failure> {
        let unwritable = |error: io::Error| whole::unwritable(path, &error);
        match self {
            Self::Standard => {
                transfer::to_writer(volume, &mut io::stdout(), report)?;
                // A file that it leads to may have failed, or have no room, without a word until now.
                Ok(standard::sync_output().map_err(TransferError::Output)?)
            }
            Self::Stream(mut pipe) => Ok(transfer::to_writer(volume, &mut pipe, report)?),
            Self::Disk(target) => over_disk(path, &target, volume, report),
            Self::New(target, draft) => {
                transfer::to_file(volume, draft.file(), true, report)?;
                target.publish(draft).map_err(unwritable)?;
                #[cfg(unix)]
                if std::fs::metadata(path).is_ok_and(|file| is_for_others(&file.permissions())) {
                    let path = path.display();
                    eprintln!("warning: other users can read {path}, as before");
                }
                Ok(())
            }
        }
    }
}

/// Writes to a block device.
fn over_disk(
    path: &Path,
    target: &Target,
    volume: &dyn BlockDevice,
    report: transfer::Report,
) -> Result<(), Failure> {
    let Some(device) = target.disk() else {
        return Ok(());
    };
    let unwritable = |error: io::Error| whole::unwritable(path, &error);
    let written = AtomicU64::new(0);
    let report = |done| {
        written.fetch_max(done, Ordering::Relaxed);
        report(done)
    };
    let copied = transfer::to_file(volume, device, false, &report).map_err(Failure::from);
    let synced = copied.and_then(|()| device.sync_all().map_err(unwritable));
    synced.map_err(|failure| {
        failure.after(
            format!(
                "{} is overwritten with plaintext, {}",
                path.display(),
                so_far(written.into_inner())
            ),
            "The old contents there are lost. Run the export again from the start, or erase the \
             plaintext.",
        )
    })
}

/// Whether other users may read a file with these rights.
#[cfg(unix)]
fn is_for_others(rights: &std::fs::Permissions) -> bool {
    std::os::unix::fs::PermissionsExt::mode(rights) & 0o044 != 0
}

/// Encrypts into a volume.
pub fn import(options: &ImportOptions, names: &Names) -> Result<(), Failure> {
    let source = standard::input(&options.input);
    let named = options.volume.with(names);
    named.check_distinct("--input", source)?;
    if source != options.input
        && let Some(option) = options.secret.takes_all_input()
    {
        return Err(Failure::new(
            2,
            format!("{option} - takes all of standard input, and leaves nothing for --input -"),
            "Name a file for one of them.",
        ));
    }
    let input = match options.input == Path::new("-") {
        true => {
            standard::check_input()?;
            Input::Stream(Box::new(io::stdin()))
        }
        false => Input::open(&options.input).map_err(|error| unreadable(&options.input, error))?,
    };
    let devices = named.devices(Use::WriteData)?;
    let accepted = losses::accepted(options.yes);
    let terms = (Access::Write, accepted);
    let opened = unlock(&named, &options.secret, &devices, terms)?;
    let hidden = options.protection.range(&named, &devices)?;
    let data = Protected::new(devices.data(), hidden);
    // Blocks that were never written must not be taken for data.
    let mut filling = Filling::of(&opened);
    let volume = opened.device::<&dyn BlockDevice>(devices.header(), &data)?;
    let size = volume.geometry().size;
    let length = match input {
        Input::File(_, length) if length > size => {
            return Err(TransferError::TooLong { size }.into());
        }
        Input::File(_, length) => length,
        Input::Stream(_) => size,
    };
    let block = u64::from(volume.geometry().logical_block);
    let touched = length.next_multiple_of(block);
    let fitting = format!(
        "Give less input: the outer volume has {} bytes before the hidden one.",
        filling.before(hidden)
    );
    if let Input::File(..) = input
        && filling.reaches(hidden, touched)
    {
        return Err(Failure::new(
            4,
            format!(
                "the {length} bytes of input would reach the hidden volume in {}; nothing was \
                 written",
                options.volume.image().display()
            ),
            fitting,
        ));
    }
    if !options.yes {
        let views: [&dyn BlockDevice; 2] = [devices.header(), &data];
        let checked = filling.check_blank(&volume, views, devices.data());
        checked.map_err(|error| losses::of("the volume in ", options.volume.image(), error))?;
    }
    if let Input::File(..) = input {
        filling.reserve(devices.data(), touched)?;
    }
    let stop = crate::cli::stop_on_signal()?;
    let progress = Progress::bytes(options.no_progress, length);
    let written = AtomicU64::new(0);
    let report = |done| {
        written.fetch_max(done, Ordering::Relaxed);
        tell(&progress, &stop, done)
    };
    let is_stream = matches!(input, Input::Stream(_));
    let outcome = match input {
        Input::File(file, length) => {
            transfer::from_file(&volume, &file, length, &report).map(|()| length)
        }
        Input::Stream(mut stream) => transfer::from_reader(&volume, &mut stream, &report),
    };
    progress.finish();
    let image = options.volume.image().display();
    match outcome {
        // Volumes of other formats protect their own areas.
        Err(TransferError::Block(BlockError::Protected { .. })) if hidden.length > 0 => {
            Err(Failure::new(
                4,
                format!(
                    "the input reaches the hidden volume in {}, which is as it was; of the outer one \
                 at least {} bytes had been written",
                    image,
                    written.into_inner()
                ),
                fitting,
            ))
        }
        Err(error) => {
            let remedy = match error {
                TransferError::TooLong { .. } => "Give less input, or a larger volume.",
                TransferError::Stopped => "Run the import again from the start.",
                _ => "Remove the cause, and run the import again from the start.",
            };
            Err(Failure::from(error).after(
                format!(
                    "the volume in {image} is overwritten, {}",
                    so_far(written.into_inner())
                ),
                format!("The old contents there are lost, and the rest is as it was. {remedy}"),
            ))
        }
        Ok(imported) => {
            if is_stream && imported < size {
                eprintln!(
                    "note: the input has {imported} bytes; what the volume holds behind them is as \
                     it was"
                );
            }
            Ok(())
        }
    }
}

/// How far an output is overwritten, of which so many bytes are known to be written.
fn so_far(bytes: u64) -> String {
    match bytes {
        0 => "perhaps, from its start on".to_owned(),
        bytes => format!("at least its first {bytes} bytes"),
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
        if file.metadata()?.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
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
