//! [`Array`]: a script for `sbatch` that runs an experiment as a job array.

use lab::shard::FleetPlan;
use std::fmt;
use thiserror::Error;

/// Tasks of an array, at most: Slurm's `MaxArraySize` is 1001 unless a site has
/// changed it, and indices stay below. Of more shards each task runs several.
const TASKS: u32 = 1000;

/// How often a shard is begun again that failed.
const RETRIES: u32 = 5;

/// The end of the experiment in the script.
const END: &str = "END-OF-EXPERIMENT";

/// A value that cannot stand in a script.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{value:?} cannot be {option}")]
pub struct Unfit {
    /// The option.
    pub option: &'static str,
    /// The given value.
    pub value: String,
}

impl Unfit {
    /// The remedy, as one sentence.
    pub fn remedy(&self) -> &'static str {
        "Omit blanks, quotes and control characters."
    }
}

/// The settings of the job that depend on the site.
#[derive(Clone, Debug, Default)]
pub struct Array {
    /// Partition.
    pub partition: Option<String>,
    /// Limit of time of a task, in Slurm's notation.
    pub time: Option<String>,
    /// Memory of a task, in Slurm's notation.
    pub memory: Option<String>,
    /// Cores of a task.
    pub cores: u32,
    /// Tasks at the same time, at most.
    pub at_once: Option<u32>,
    /// The target to measure on every host: a directory, a file or a block device.
    pub at: Option<String>,
    /// The program, by name or path.
    pub program: String,
}

impl Array {
    /// The script.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn script(&self, experiment: &FleetPlan) -> Result<String, Unfit> {
        let shards = experiment.shards();
        let tasks = shards.min(TASKS);
        let name = experiment.name();
        let mut options = vec![
            format!("--job-name={name}"),
            match self.at_once {
                Some(at_once) => format!("--array=1-{tasks}%{at_once}"),
                None => format!("--array=1-{tasks}"),
            },
            "--ntasks=1".to_owned(),
            format!("--cpus-per-task={}", self.cores.max(1)),
            // A task whose node is gone starts again on another.
            "--requeue".to_owned(),
            "--open-mode=append".to_owned(),
            format!("--output={name}-%a.log"),
        ];
        if !experiment.is_simulated() {
            // A task that measures storage must be alone on its node.
            options.push("--exclusive".to_owned());
        }
        for (option, value) in [
            ("--partition", &self.partition),
            ("--time", &self.time),
            ("--mem", &self.memory),
        ] {
            if let Some(value) = value {
                options.push(format!("{option}={}", fit(option, value)?));
            }
        }
        let at = match &self.at {
            Some(at) => format!(" --at {}", Quoted(fit_for_shell("--at", at)?)),
            None => String::new(),
        };
        let program = Quoted(fit_for_shell("--program", &self.program)?);
        let options: String = options.iter().map(|o| format!("#SBATCH {o}\n")).collect();
        let toml = experiment.to_toml();
        if toml.lines().any(|line| line == END) {
            return Err(Unfit {
                option: "part of a plan",
                value: END.to_owned(),
            });
        }
        Ok(format!(
            r#"#!/bin/bash
# The experiment {name} in {shards} shards: sbatch THIS-FILE
# The store is what CRYPTMARK_STORE says where this is submitted, or `store` in
# ~/.config/cryptmark/config.toml; it may hold a password and is not written here.
# `cryptmark fleet status {name}` says what is stored. To submit this again runs
# only what is missing.
{options}
set -u
experiment=$(mktemp --suffix=.toml) || exit 1
trap 'rm -f "$experiment"' EXIT
cat >"$experiment" <<'{END}'
{toml}{END}

failed=0
for ((shard = SLURM_ARRAY_TASK_ID; shard <= {shards}; shard += {tasks})); do
    {program} run "$experiment" --shard "$shard/{shards}"{at} --no-progress
    status=$?
    # 1: it failed here and now, and may succeed elsewhere or later. All else would fail again.
    if [ "$status" -eq 1 ] && [ "${{SLURM_RESTART_COUNT:-0}}" -lt {RETRIES} ]; then
        scontrol requeue "$SLURM_JOB_ID" && sleep 60
    fi
    [ "$status" -eq 0 ] || failed=$status
done
exit "$failed"
"#
        ))
    }
}

/// A value for Slurm.
fn fit<'a>(option: &'static str, value: &'a str) -> Result<&'a str, Unfit> {
    let plain = |c: char| c.is_ascii_graphic() && !"'\"`$\\#".contains(c);
    match !value.is_empty() && value.chars().all(plain) {
        true => Ok(value),
        false => Err(Unfit {
            option,
            value: value.to_owned(),
        }),
    }
}

/// A value that the shell gets in quotes.
fn fit_for_shell<'a>(option: &'static str, value: &'a str) -> Result<&'a str, Unfit> {
    match !value.is_empty() && !value.chars().any(|c| c.is_control() || c == '\'') {
        true => Ok(value),
        false => Err(Unfit {
            option,
            value: value.to_owned(),
        }),
    }
}

struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}'", self.0)
    }
}
