//! [`Event`]: what an agent tells, one JSON object a line.

use crate::error::LabError;
use crate::record::{Exposure, Moved};
use crate::system::engine_file::EngineBackend;
use crate::system::with_causes;
use serde::{Deserialize, Serialize};

/// Something happened in a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// The job has begun on this kernel.
    Begun {
        /// Name and release.
        kernel: String,
        /// The version that the file system's program reports.
        maker: String,
        /// Whether it counts user and system time apart without ticks.
        exact: bool,
    },
    /// The backend with which the engine encrypts.
    Engine {
        /// The system's place among the job's subjects.
        subject: usize,
        /// The backend.
        backend: EngineBackend,
    },
    /// A system cannot be measured here; its cells stay empty.
    Absent {
        /// Its place among the job's subjects.
        subject: usize,
        /// Why, and what would bring it.
        reason: String,
    },
    /// The storage of a system was looked at without the key.
    Exposed {
        /// The system's place among the job's subjects.
        subject: usize,
        /// The visible part; the session adds the names.
        exposure: Box<Exposure>,
    },
    /// An operation is about to begin.
    Visiting {
        /// The system's place; the first stands behind the last again.
        cell: usize,
        /// The operation's place.
        operation: usize,
        /// From 0.
        round: u32,
    },
    /// An operation is done.
    Sample {
        /// The system's place; the first stands behind the last again.
        cell: usize,
        /// The operation's place.
        operation: usize,
        /// From 0.
        round: u32,
        /// The measured times.
        sample: OperationSample,
    },
    /// All rounds are done, and everything is taken down.
    Done,
    /// The job has ended early; everything is taken down.
    Failed {
        /// The failure.
        what: String,
        /// The remedy.
        remedy: String,
        /// Whether the job ended because it was asked to stop.
        interrupted: bool,
    },
}

impl Event {
    /// The end of a job by an error.
    pub fn failed(error: &LabError) -> Self {
        Self::Failed {
            what: with_causes(error),
            remedy: error.remedy().to_owned(),
            interrupted: error.is_interrupted(),
        }
    }
}

/// The measured times of an operation, seconds. `None` marks a quantity that was not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OperationSample {
    /// When it began, Unix time.
    pub begun: f64,
    /// Elapsed time.
    pub wall: f64,
    /// User CPU time of the processes that did the operation, and of the engine's server.
    pub user: Option<f64>,
    /// System CPU time of the same processes.
    pub sys: Option<f64>,
    /// CPU time of the kernel's own threads during the operation.
    pub workers: Option<f64>,
    /// Encrypting and decrypting.
    pub crypto: Option<f64>,
    /// Bytes and requests that moved between the file system and its device.
    pub moved: Option<Moved>,
    /// Bytes of files that were handled.
    pub bytes: u64,
    /// Files that were handled, or 1.
    pub requests: u64,
    /// The relative speed of its core during the operation, where 1 is full speed. The process that
    /// runs the agent fills it in.
    #[serde(skip)]
    pub pace: Option<f64>,
}

impl OperationSample {
    /// The sample as it would have been at the core's full speed, if the speed is known.
    pub fn at_full_pace(&self) -> Self {
        let pace = self.pace.unwrap_or(1.0);
        let scaled = |part: Option<f64>| part.map(|seconds| seconds * pace);
        Self {
            wall: self.wall * pace,
            user: scaled(self.user),
            sys: scaled(self.sys),
            workers: scaled(self.workers),
            crypto: scaled(self.crypto),
            pace: None,
            ..*self
        }
    }
}
