//! `cryptmark run` on the tier of file systems.

use super::{Destination, Failure, Progress, RunOptions, TierName, print};
use super::{run_id, seed_of_now, stop_on_signal};
use crate::cli::VERSION;
use block::signature;
use bytesize::ByteSize;
use lab::file_system::agent::Ended;
use lab::file_system::plan::FileSystemPlan;
use lab::file_system::{Backing, Operation};
use lab::kernel::{KernelError, Lab};
use lab::plan::Experiment;
use lab::session::SessionError;
use lab::session::file_system::{Boot, FileSystems, Surroundings};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// The plan where none is named.
const PLAN: &str = "file-systems";

/// What the option for plans says where none is named.
const UNNAMED: &str = "quick";

/// The plan that `options` ask for, with what they change in it; nothing where
/// it is none of file systems.
pub(super) fn plan(options: &RunOptions) -> Result<Option<FileSystemPlan>, Failure> {
    let asked = matches!(options.tier, Some(TierName::Fs)) || !options.commands.is_empty();
    let name = match options.plan.as_str() {
        UNNAMED if asked => PLAN,
        name => name,
    };
    let mut plan = match (Experiment::load(name)?, options.tier) {
        (Experiment::FileSystems(plan), None | Some(TierName::Fs)) => plan,
        (Experiment::FileSystems(_), Some(_)) => {
            return Err(Failure::new(
                2,
                format!("the plan {name} is one of file systems"),
                "Leave --tier out, or choose another plan: `cryptmark plans`.",
            ));
        }
        (Experiment::Storage(_), _) if asked || options.jobs.is_some() => {
            return Err(Failure::new(
                2,
                format!("the plan {name} is none of file systems"),
                "Choose file-systems or crypto-fs, or leave the plan out: `cryptmark plans`.",
            ));
        }
        (Experiment::Storage(_), _) => return Ok(None),
    };
    if options.quick
        && let Some(quick) = &plan.quick
        && let Experiment::FileSystems(quick) = Experiment::load(quick)?
    {
        plan = quick;
    }
    options.refuse_what_is_no_file_systems()?;
    if let Some(size) = options.size {
        plan.size = size;
    }
    if options.quick {
        plan.repetitions = 3;
    }
    if let Some(repeat) = options.repeat {
        plan.repetitions = repeat;
    }
    if !options.systems.is_empty() {
        plan.systems.clone_from(&options.systems);
    }
    if !options.ciphers.is_empty() {
        plan.ciphers.clone_from(&options.ciphers);
        // The plan's key size belongs to the plan's ciphers.
        plan.key_size = None;
    }
    if let Some(bits) = options.key_size {
        plan.key_size = Some(bits);
    }
    if let Some(size) = options.sector_sizes.first() {
        plan.sector_size = *size;
    }
    if let Some(jobs) = options.jobs {
        plan.jobs = jobs;
    }
    if !options.commands.is_empty() {
        let commands = options.commands.iter();
        plan.operations = commands.map(|line| Operation::command(line)).collect();
    }
    plan.validate()?;
    Ok(Some(plan))
}

/// Runs the command.
pub(super) fn run(
    options: &RunOptions,
    plan: &FileSystemPlan,
    store: Option<&str>,
) -> Result<(), Failure> {
    let mut plan = plan.clone();
    if options.dry_run {
        return print(&describe(&plan, &options.at));
    }
    let destination = Destination::open(options, store)?;
    let at = options.backing(&mut plan)?;
    let program = std::env::current_exe().map_err(|error| {
        Failure::new(
            1,
            format!("cannot find this program: {error}"),
            "Start it from where it is installed.",
        )
    })?;
    let stop = stop_on_signal()?;
    let progress = Progress::new(options.no_progress, 0);
    let seed = options.seed.unwrap_or_else(seed_of_now);
    let kernel = Lab::find();
    let boot = |arguments: &[OsString], writable: &Path, stop: &AtomicBool| match &kernel {
        Ok(kernel) => in_lab(kernel, &program, arguments, writable, stop),
        Err(error) => Err(unusable_kernel(error)),
    };
    let lab: Result<&Boot<'_>, String> = match &kernel {
        Ok(_) => Ok(&boot),
        Err(error) => Err(format!("{error}. {}", error.remedy())),
    };
    let surroundings = Surroundings {
        program: &program,
        at,
        named: &options.at,
        lab,
    };
    let session = FileSystems::open(&plan, surroundings, seed, run_id())?.built_as(VERSION);
    destination.begin(session.header())?;
    destination.receive(&progress, |keeper| session.measure(&stop, keeper))
}

/// Memory of the lab kernel, MiB: every system under jffs2 has an image and the
/// cache of one there. What is not used takes nothing of this machine's.
const LAB_MEMORY: u32 = 3072;

/// Bytes that programs there keep when they free them, by mallopt(3). A page that
/// is touched for the first time costs as much as ten system calls elsewhere, and
/// `mkfs.cramfs` would take and give back 256 KiB for every 4 KiB that it packs.
const KEPT_MEMORY: &str = "67108864";

/// Runs this program in the lab kernel.
fn in_lab(
    kernel: &Lab,
    program: &Path,
    arguments: &[OsString],
    writable: &Path,
    stop: &AtomicBool,
) -> Result<Ended, SessionError> {
    let mut command = vec![program.into()];
    command.extend_from_slice(arguments);
    let job = lab::kernel::Job::new(command).map(|mut job| {
        for name in ["MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"] {
            job.environment.push((name.into(), KEPT_MEMORY.into()));
        }
        lab::kernel::Job {
            writable: vec![writable.to_owned()],
            memory_mib: LAB_MEMORY,
            ..job
        }
    });
    let output = job.and_then(|job| kernel.output(&job, stop));
    match output {
        Ok(output) => Ok(Ended {
            how: format!("exit code {}", output.code),
            said: output.errors,
        }),
        Err(error) => Err(unusable_kernel(&error)),
    }
}

fn unusable_kernel(error: &KernelError) -> SessionError {
    SessionError::Agent {
        what: error.to_string(),
        remedy: error.remedy(),
    }
}

impl RunOptions {
    /// What would be ignored in silence.
    fn refuse_what_is_no_file_systems(&self) -> Result<(), Failure> {
        let given = [
            ("--threads", !self.threads.is_empty()),
            ("--cores", self.cores.is_some()),
            ("--driver", self.driver.is_some()),
            ("--backend", self.backend.is_some()),
        ];
        if let Some((name, _)) = given.iter().find(|(_, given)| *given) {
            return Err(Failure::new(
                2,
                format!("{name} says nothing about file systems"),
                "Leave it out; --jobs asks for several at a time.",
            ));
        }
        if self.sector_sizes.len() > 1 {
            return Err(Failure::new(
                2,
                "file systems are measured with one sector size at a time",
                "Give --sector-size once.",
            ));
        }
        Ok(())
    }

    /// Where the bytes are to live; what is there may be overwritten. A device
    /// is used whole.
    fn backing(&self, plan: &mut FileSystemPlan) -> Result<Backing, Failure> {
        let unusable = |error: std::io::Error| {
            Failure::new(
                2,
                format!("cannot use {}: {error}", self.at.display()),
                "Give --at a directory, a file or a block device.",
            )
        };
        let at = fs::canonicalize(&self.at).map_err(unusable)?;
        if at.is_dir() {
            return Ok(Backing::File(at));
        }
        signature::guard(&at, self.yes).map_err(lab::target::StorageError::Block)?;
        let size = File::open(&at).and_then(|mut file| file.seek(SeekFrom::End(0)));
        plan.size = ByteSize(size.map_err(unusable)? / 4096 * 4096);
        plan.validate()?;
        Ok(Backing::Named(at))
    }
}

/// What `--dry-run` prints.
fn describe(plan: &FileSystemPlan, at: &Path) -> String {
    let names = |names: &[String]| names.join(", ");
    let file_systems: Vec<String> = plan.file_systems.iter().map(|f| f.name().into()).collect();
    let systems: Vec<String> = plan.systems.iter().map(|s| s.as_str().into()).collect();
    let mut text = format!(
        "plan {}: {}\n{} on {} at {}, removed afterwards\n",
        plan.name,
        plan.title,
        names(&file_systems),
        plan.size.display().iec(),
        at.display(),
    );
    for operation in &plan.operations {
        let files = operation.files();
        let _ = match files.count {
            0 => writeln!(text, "  {}", operation.name),
            count => writeln!(
                text,
                "  {}: {count} file(s), {} in all",
                operation.name,
                ByteSize(files.bytes()).display().iec()
            ),
        };
    }
    let _ = writeln!(
        text,
        "on: plain (twice), {}, each with {}; {} times",
        names(&systems),
        names(&plan.ciphers),
        plan.repetitions
    );
    text
}
