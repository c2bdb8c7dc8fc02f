//! `cryptmark lab`: builds the lab kernels, and runs commands in them.

use super::progress::Progress;
use super::volume::disk::Names;
use super::{Failure, print, stop_on_signal};
use block::hold::{self, Hold};
use bytesize::ByteSize;
use clap::{Args, Subcommand, ValueEnum};
use lab::kernel::{Disk, Job, KernelError, Lab, Outputs, Version, standard_cache};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use volume::VolumeError;

/// The memory of the lab kernel, MiB: the least with which it boots and has some left, and the most
/// that it can use. Its flash chip in memory takes 64, and the kernel takes 26.
const MEMORY: std::ops::RangeInclusive<u64> = 128..=65536;

/// Options of `cryptmark lab`.
#[derive(Debug, Args)]
pub struct LabOptions {
    #[command(subcommand)]
    command: LabCommand,
}

/// The commands.
#[derive(Debug, Subcommand)]
enum LabCommand {
    /// Build a lab kernel in the user's cache; this takes minutes and downloads up to 150 MB from Debian's archive
    Build(BuildOptions),
    /// Run a command in a lab kernel, as root on this system's files; its writes are discarded
    Run(RunOptions),
}

/// A lab kernel, as an option names it.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kernel {
    /// Linux 5.10: dm-crypt, cryptoloop, fscrypt, eCryptfs, jffs2, cramfs
    #[value(name = "5.10")]
    V5_10,
    /// Linux 6.1: the same without cryptoloop, and with HCTR2
    #[value(name = "6.1")]
    V6_1,
}

impl From<Kernel> for Version {
    fn from(kernel: Kernel) -> Self {
        match kernel {
            Kernel::V5_10 => Self::V5_10,
            Kernel::V6_1 => Self::V6_1,
        }
    }
}

/// Options of `cryptmark lab build`.
#[derive(Debug, Args)]
struct BuildOptions {
    /// The kernel to build
    #[arg(long, value_enum, value_name = "VERSION", default_value = "5.10")]
    kernel: Kernel,
    /// Show no progress
    #[arg(long)]
    no_progress: bool,
}

/// Options of `cryptmark lab run`.
#[derive(Debug, Args)]
struct RunOptions {
    /// The kernel in which the command runs
    #[arg(long, value_enum, value_name = "VERSION", default_value = "5.10")]
    kernel: Kernel,
    /// A directory of this system in which the command may write (repeatable)
    #[arg(long, value_name = "DIR")]
    writable: Vec<PathBuf>,
    /// A file or block device to attach as a disk: /dev/ubda, /dev/ubdb, … (repeatable)
    #[arg(long, value_name = "FILE")]
    disk: Vec<PathBuf>,
    /// Attach the disks read-only
    #[arg(long, requires = "disk")]
    read_only: bool,
    /// Memory of the lab, which also holds the discarded writes
    #[arg(long, value_name = "SIZE", default_value = "512MiB")]
    memory: ByteSize,
    /// Stop the command after this many seconds
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// The command and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    command: Vec<OsString>,
}

/// Runs the command.
pub fn run(options: LabOptions) -> Result<(), Failure> {
    match options.command {
        LabCommand::Build(options) => build(&options),
        LabCommand::Run(options) => start(options),
    }
}

fn build(options: &BuildOptions) -> Result<(), Failure> {
    let stop = stop_on_signal()?;
    let progress = Progress::steps(options.no_progress);
    let version = options.kernel.into();
    let built = Lab::build(version, &standard_cache()?, &stop, &mut |at| {
        progress.step(&at.step.to_string(), at.done, at.total);
    });
    progress.finish();
    print(&format!("{}\n", built?.path().display()))
}

fn start(options: RunOptions) -> Result<(), Failure> {
    let stop = stop_on_signal()?;
    let mebibytes = options.memory.as_u64() >> 20;
    if !MEMORY.contains(&mebibytes) {
        return Err(Failure::new(
            2,
            format!("a lab cannot have {} of memory", options.memory),
            "Give it from 128MiB to 64GiB.",
        ));
    }
    let mut job = Job::new(options.command)?;
    job.memory_mib = mebibytes as u32;
    job.patience = options.timeout.map(Duration::from_secs);
    job.writable = options
        .writable
        .iter()
        .map(|path| directory(path))
        .collect::<Result<_, _>>()?;
    for path in &options.disk {
        // From its start on the lab's kernel locks what it writes to, and a lock of this
        // process would keep it out.
        drop(hold::open(path, !options.read_only, Hold::Usual).map_err(VolumeError::Block)?);
        if !options.read_only {
            Names::default().check_settled(path)?;
        }
    }
    job.disks = options
        .disk
        .into_iter()
        .map(|path| Disk {
            path,
            read_only: options.read_only,
        })
        .collect();
    match Lab::find(options.kernel.into())?.run(&job, Outputs::own()?, &stop)? {
        0 => Ok(()),
        code => Err(Failure::told(code)),
    }
}

/// The directory's own path: the lab sees no links into it.
fn directory(path: &Path) -> Result<PathBuf, Failure> {
    let canonical = path.canonicalize().and_then(|path| match path.is_dir() {
        true => Ok(path),
        false => Err(std::io::ErrorKind::NotADirectory.into()),
    });
    canonical.map_err(|error| {
        Failure::new(
            2,
            format!("cannot make {} writable: {error}", path.display()),
            "Name a directory that exists.",
        )
    })
}

impl From<KernelError> for Failure {
    fn from(error: KernelError) -> Self {
        let code = match &error {
            KernelError::Interrupted => 130,
            KernelError::Io { .. }
            | KernelError::TooManyDisks { .. }
            | KernelError::Relative { .. } => 2,
            _ => 1,
        };
        Self::of(code, &error, error.remedy())
    }
}
