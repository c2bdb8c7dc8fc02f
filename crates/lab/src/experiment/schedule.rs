//! [`Schedule`]: how a session goes through an experiment.

use super::error::{empty, other_tier, too_small};
use super::{MOST_CELLS, Sizes, distinct, within};
use crate::error::LabError;
use crate::published::repeats::{Beside, Repeats, ScoredBy, no_workload};
use crate::record::Conditioning;
use crate::stats::Looks;
use crate::system::SystemId;
use crate::workload::Workload;
use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

/// The time limit and the precision of a plan measured in slices that does not set its own.
const UNTIL: Until = Until {
    seconds: 60.0,
    precision: 2.0,
};

/// What a session needs to know of an experiment besides its cells: which workloads they are asked,
/// how often, and what stands beside the results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schedule {
    /// The plan's name.
    pub name: String,
    /// Repetitions of every cell; the most of them if there is another end.
    pub repetitions: u32,
    /// Repetitions that are enough of a bare cipher whose requests take far longer than a
    /// workload's `seconds`; as many as of any other when absent.
    pub slow_repetitions: Option<u32>,
    /// The workloads that every cell gets.
    pub workloads: Vec<Workload>,
    /// Slices until every cell is decided, instead of repetitions.
    pub until: Option<Until>,
    /// Rounds until a steady state, with the bytes that condition a device once.
    pub steady: Option<(Conditioning, ByteSize)>,
    /// Scores that are made of the rates.
    pub marks: Vec<ScoredBy>,
    /// The published figures that it repeats.
    pub published: Option<Repeats>,
    /// The only workloads that simulated drives get, by system; all of them when absent.
    pub only: Option<Vec<(SystemId, String)>>,
    /// Whether its cells are in memory, and have no plain side.
    pub is_bare: bool,
    /// Whether its time is virtual.
    pub is_simulated: bool,
}

impl Schedule {
    /// How often what is measured is looked at.
    pub fn looks(&self) -> Looks {
        match self.until {
            Some(_) => Looks::Always,
            None => Looks::Once,
        }
    }

    /// Whether a workload is asked of the simulated drive `name`.
    pub fn asks(&self, name: &str, workload: &str) -> bool {
        let is = |(system, asked): &(SystemId, String)| {
            system.drive() == Some(name) && asked == workload
        };
        self.only.as_ref().is_none_or(|only| only.iter().any(is))
    }
}

/// The end of a plan that is measured in slices.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// Maximum duration, seconds, 1 to 86,400.
    pub seconds: f64,
    /// Precision required of each ratio, percentage points, 0.1 to 50.
    pub precision: f64,
}

impl Until {
    /// Refuses numbers out of their ranges.
    pub(super) fn validate(&self) -> Result<(), LabError> {
        match (1.0..=86_400.0).contains(&self.seconds) && (0.1..=50.0).contains(&self.precision) {
            true => Ok(()),
            false => Err(LabError::invalid(
                "until: seconds must lie between 1 and 86400, precision between 0.1 and 50",
                "Give numbers between these.",
            )),
        }
    }

    /// When a plan is done whose own end is `planned`, if `seconds` or `precision` changes that.
    pub(super) fn changed(
        planned: Option<Self>,
        seconds: Option<f64>,
        precision: Option<f64>,
    ) -> Option<Self> {
        if seconds.or(precision).is_none() {
            return planned;
        }
        let until = planned.unwrap_or(UNTIL);
        Some(Self {
            seconds: seconds.unwrap_or(until.seconds),
            precision: precision.unwrap_or(until.precision),
        })
    }

    /// The end in words.
    pub(super) fn describe(&self) -> String {
        format!(
            "in slices, until every cost is known to within {} percentage points, for {} s at most",
            self.precision, self.seconds
        )
    }
}

/// Checks the number, the values and the names of workloads.
pub(super) fn check_workloads(workloads: &[Workload]) -> Result<(), LabError> {
    if workloads.is_empty() {
        return Err(empty("workloads"));
    }
    within("workloads", workloads.len() as u64, 0, MOST_CELLS)?;
    for workload in workloads {
        workload.validate()?;
    }
    distinct(workloads.iter().map(|workload| workload.name.as_str()))
}

/// Bytes of a test extent: whole sectors of any size.
pub(super) fn extent_of(size: ByteSize) -> u64 {
    size.as_u64() / 4096 * 4096
}

/// Checks that workloads can be asked of a device of `size` that encrypts in `sectors`.
pub(super) fn check_on_device(
    workloads: &[Workload],
    sectors: Option<&Sizes>,
    size: ByteSize,
) -> Result<(), LabError> {
    for workload in workloads {
        let name = &workload.name;
        if workload.op.is_bare() {
            return Err(other_tier(name));
        }
        let torn = |sector: &&u32| !workload.block_bytes().is_multiple_of(u64::from(**sector));
        if let Some(sector) = sectors.and_then(|sectors| sectors.all().iter().find(torn)) {
            return Err(LabError::invalid(
                format!(
                    "workload {name:?}: its blocks do not consist of whole {sector}-byte sectors"
                ),
                "Use a block_size that is a multiple of sector_size.",
            ));
        }
        let needed = workload.buffer_bytes();
        if extent_of(size) < needed {
            return Err(too_small(name, needed, size));
        }
    }
    Ok(())
}

/// Checks that what stands beside the results is of workloads that there are.
pub(super) fn check_published(
    published: Option<&Repeats>,
    marks: &[ScoredBy],
    workloads: &[Workload],
) -> Result<(), LabError> {
    let names = || workloads.iter().map(|workload| workload.name.as_str());
    if let Some(published) = published {
        published.validate(names())?;
    }
    for name in marks.iter().flat_map(|mark| mark.weights.keys()) {
        if !names().any(|known| known == name) {
            return Err(no_workload(name));
        }
    }
    Beside::of(published)?.marks(marks)?;
    Ok(())
}

/// Gives workloads that ask for a thread on each core that many.
pub(super) fn on_all_cores(workloads: &mut [Workload]) {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    for workload in workloads {
        if workload.threads == 0 {
            workload.threads = cores;
        }
    }
}

/// Every workload once with each number of `threads`; as they are if there is none.
pub(super) fn with_threads(workloads: &mut Vec<Workload>, threads: &[u32]) {
    if threads.is_empty() {
        return;
    }
    let each = |workload: &Workload| {
        let of = |&threads: &u32| {
            let name = match threads == workload.threads {
                true => workload.name.clone(),
                false => format!("{}-t{threads}", workload.name),
            };
            Workload {
                threads,
                name,
                ..workload.clone()
            }
        };
        threads.iter().map(of).collect::<Vec<_>>()
    };
    *workloads = workloads.iter().flat_map(each).collect();
}

/// Shortens workloads for a first look.
pub(super) fn shorten(workloads: &mut [Workload]) {
    for workload in workloads {
        workload.seconds = workload.seconds.map(|seconds| seconds.min(0.1));
        let least = workload.block_bytes();
        let short = |bytes: ByteSize| bytes.min(ByteSize::mb(64)).max(ByteSize(least));
        workload.bytes = workload.bytes.map(short);
    }
}

/// Has every repetition last so many seconds.
pub(super) fn last(workloads: &mut [Workload], seconds: Option<f64>) {
    if seconds.is_some() {
        for workload in workloads {
            (workload.seconds, workload.bytes) = (seconds, None);
        }
    }
}
