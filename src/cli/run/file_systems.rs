//! `cryptmark run` on the tier of file systems.

#[cfg(target_os = "linux")]
mod agents;
#[cfg(not(target_os = "linux"))]
#[path = "file_systems/elsewhere.rs"]
mod agents;

use super::{Destination, Failure, RunOptions, TierName, print, seed_of_now};
use bytesize::ByteSize;
use lab::file_system::Operation;
use lab::file_system::plan::FileSystemPlan;
use lab::plan::{Experiment, Until};
use std::fmt::Write as _;
use std::path::Path;

/// The plan if none is named.
const PLAN: &str = "file-systems";

/// The default of the option for plans.
const UNNAMED: &str = "quick";

/// The plan that `options` ask for, with their changes; `None` if it isn't a plan of file systems.
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
                format!("the plan {name} measures file systems"),
                "Omit --tier, or choose another plan: `cryptmark plans`.",
            ));
        }
        (Experiment::Sweep(_), _) => {
            return Err(Failure::new(
                2,
                format!("{name} is a sweep of simulated drives"),
                format!("Run it: cryptmark drive sweep {name}."),
            ));
        }
        (Experiment::KeyDerivations, _) => {
            return Err(Failure::new(
                2,
                format!("{name} is the plan kdf, which takes no options of its own"),
                "Run it: cryptmark run kdf.",
            ));
        }
        (Experiment::Storage(_), _) if asked || options.jobs.is_some() => {
            return Err(Failure::new(
                2,
                format!("the plan {name} does not measure file systems"),
                "Choose file-systems or crypto-fs, or omit the plan: `cryptmark plans`.",
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
        plan.until = None;
    }
    if let Some(until) = Until::changed(plan.until, options.time, options.precision) {
        plan.until = Some(until);
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
    if options.dry_run {
        return print(&describe(plan, &options.at));
    }
    let destination = Destination::open(&options.output, store)?;
    let seed = options.seed.unwrap_or_else(seed_of_now);
    measure(options, plan, seed, destination)
}

/// Measures a plan.
pub(super) fn measure(
    options: &RunOptions,
    plan: &FileSystemPlan,
    seed: u64,
    destination: Destination<'_>,
) -> Result<(), Failure> {
    agents::run(options, plan.clone(), seed, destination)
}

impl RunOptions {
    /// Refuses options that would have no effect here.
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
                format!("{name} does not apply to file systems"),
                "Omit it. --jobs sets how many operations run at a time.",
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
}

/// The output of `--dry-run`.
pub(super) fn describe(plan: &FileSystemPlan, at: &Path) -> String {
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
    let how_long = match &plan.until {
        Some(until) => format!(
            "until every cost is known to within {} percentage points, for about {} s",
            until.precision, until.seconds
        ),
        None => format!("{} times", plan.repetitions),
    };
    let _ = writeln!(
        text,
        "on: plain (twice), {}, each with {}; {how_long}",
        names(&systems),
        names(&plan.ciphers),
    );
    text
}
