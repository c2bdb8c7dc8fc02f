//! A plan on file systems, measured by agents on this kernel and in the lab kernel.

use crate::cli::VERSION;
use crate::cli::run::{Destination, Failure, Progress, RunOptions, energy, stop_on_signal};
use crate::cli::volume::disk::Names;
use block::hold::{self, Hold};
use block::signature;
use bytesize::ByteSize;
use lab::LabError;
use lab::experiment::FileSystems;
use lab::file_system::agent::Ended;
use lab::file_system::{Backing, Kernel};
use lab::kernel::{KernelError, Lab, Version};
use lab::run::new_id;
use lab::session::Session;
use lab::session::file_system::Surroundings;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Measures.
pub(super) fn run(
    options: &RunOptions,
    mut plan: FileSystems,
    seed: u64,
    destination: Destination<'_>,
) -> Result<(), Failure> {
    let (at, _held) = options.backing(&mut plan)?;
    plan.in_directory = !rustix::process::geteuid().is_root() && plan.encrypts_files_here();
    let program = std::env::current_exe().map_err(|error| {
        Failure::new(
            1,
            format!("cannot find this program: {error}"),
            "Start it from where it is installed.",
        )
    })?;
    let stop = stop_on_signal()?;
    let progress = Progress::new(options.output.no_progress, 0);
    let labs = [(Kernel::Lab, Version::V5_10), (Kernel::Lab6, Version::V6_1)]
        .map(|(kernel, version)| (kernel, Lab::find(version)));
    let boot = |kernel: Kernel, arguments: &[OsString], writable: &Path, stop: &AtomicBool| {
        let lab = labs.iter().find(|(known, _)| *known == kernel);
        match lab.map(|(_, lab)| lab) {
            Some(Ok(lab)) => in_lab(lab, &program, arguments, writable, stop),
            Some(Err(error)) => Err(unusable_kernel(error)),
            None => unreachable!("an agent of this kernel is not booted"),
        }
    };
    let absent = labs.iter().filter_map(|(kernel, lab)| {
        let error = lab.as_ref().err()?;
        Some((*kernel, format!("{error}. {}", error.remedy())))
    });
    let surroundings = Surroundings {
        program: &program,
        at,
        named: options.at(),
        boot: &boot,
        absent: absent.collect(),
    };
    let session = Session::of_file_systems(&plan, surroundings, seed, new_id())?;
    let metering = energy::metering(options, true, &stop, &progress)?;
    let session = session.built_as(VERSION).metered_by(metering);
    destination.begin(session.header())?;
    destination.receive(&progress, |keeper| session.measure(&stop, keeper))
}

/// Memory of the lab kernel, MiB. Every system under jffs2 has an image there and the cache of one.
/// Memory that it does not use takes none of this machine's.
const LAB_MEMORY: u32 = 3072;

/// The bytes that programs there keep when they free them, by mallopt(3). The first access to a
/// page costs as much as ten system calls elsewhere. `mkfs.cramfs` would take and give back 256 KiB
/// for every 4 KiB that it packs.
const KEPT_MEMORY: &str = "67108864";

/// Runs this program in the lab kernel.
fn in_lab(
    kernel: &Lab,
    program: &Path,
    arguments: &[OsString],
    writable: &Path,
    stop: &AtomicBool,
) -> Result<Ended, LabError> {
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

fn unusable_kernel(error: &KernelError) -> LabError {
    LabError::failed(error.to_string(), error.remedy())
}

impl RunOptions {
    /// The storage for the measurements. Data that are there may be overwritten, and a device is
    /// used whole. A file is returned open, with its lock. Devices are held by the mounts on them.
    fn backing(&self, plan: &mut FileSystems) -> Result<(Backing, Option<File>), Failure> {
        let unusable = |error: std::io::Error| {
            Failure::new(
                2,
                format!("cannot use {}: {error}", self.at().display()),
                "Give --at a directory, a file or a block device.",
            )
        };
        if lab::system::names_export(self.at()) {
            return Err(Failure::new(
                2,
                "file systems are not measured on NBD exports",
                "Measure the export as a block device, without --tier fs. If the kernel has a disk for it, measure that.",
            ));
        }
        let at = fs::canonicalize(self.at()).map_err(unusable)?;
        if at.is_dir() {
            return Ok((Backing::File(at), None));
        }
        signature::guard(&at, self.yes).map_err(LabError::from)?;
        Names::default().check_settled(&at)?;
        let held = match at.is_file() {
            true => Some(hold::open(&at, true, Hold::Usual).map_err(LabError::from)?),
            false => None,
        };
        let size = File::open(&at).and_then(|mut file| file.seek(SeekFrom::End(0)));
        plan.size = ByteSize(size.map_err(unusable)? / 4096 * 4096);
        plan.validate()?;
        Ok((Backing::Named(at), held))
    }
}
