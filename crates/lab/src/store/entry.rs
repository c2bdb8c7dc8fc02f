//! [`Entry`]: what a writer says about a run. It's also how run files are written: each
//! line is one JSON object, and a batch of trials counts only once its last line is there.

use super::StoreError;
use crate::record::{Run, SCHEMA, Trial};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// One thing that a writer says about a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Entry {
    /// The run begins.
    Begin(Header),
    /// Trials, each in place of the one at its position.
    Trials {
        /// Id of the run.
        run: String,
        /// Position and JSON.
        trials: Vec<(u32, String)>,
    },
    /// The run has ended.
    Finish(Header),
}

/// A run without its trials, and the same as JSON.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Header {
    pub(super) run: Run,
    pub(super) json: String,
}

/// A line of a run file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line<'a> {
    Begin(#[serde(borrow)] &'a RawValue),
    Finish(#[serde(borrow)] &'a RawValue),
    /// The first line of a file that was written as a whole.
    Run {
        /// Trials in the file.
        trials: usize,
        /// Bytes behind this line.
        bytes: u64,
        #[serde(borrow)]
        record: &'a RawValue,
    },
    Trial {
        #[serde(borrow)]
        run: Cow<'a, str>,
        at: u32,
        /// Whether the next line belongs to the same batch.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        more: bool,
        #[serde(borrow)]
        record: &'a RawValue,
    },
}

/// The content of a run file.
#[derive(Default)]
pub(super) struct Lines<'a> {
    /// The latest header of the run, as JSON.
    pub(super) header: Option<&'a str>,
    /// Records by position.
    pub(super) trials: BTreeMap<u32, &'a str>,
    /// Whether bytes are missing from a file that was written as a whole.
    pub(super) is_cut: bool,
}

/// The reason why a line cannot be read, and the position of the trial that it would hold.
pub(super) type Unreadable = (Option<u32>, serde_json::Error);

/// Trials of a run as JSON, with their positions.
pub(super) fn records<'a>(
    run: &str,
    trials: impl Iterator<Item = (u32, &'a Trial)>,
) -> Result<Vec<(u32, String)>, StoreError> {
    let mut records = Vec::new();
    for (ordinal, trial) in trials {
        let unstorable = |source| StoreError::Unstorable {
            run: run.to_owned(),
            ordinal: Some(ordinal),
            source,
        };
        let record = serde_json::to_string(trial).map_err(unstorable)?;
        // JSON writes NaN and infinity as null, which no reader would accept.
        serde_json::from_str::<Trial>(&record).map_err(unstorable)?;
        records.push((ordinal, record));
    }
    Ok(records)
}

impl Entry {
    pub(super) fn begin(run: &Run) -> Result<Self, StoreError> {
        Header::of(run, true).map(Self::Begin)
    }

    pub(super) fn finish(run: &Run) -> Result<Self, StoreError> {
        Header::of(run, run.partial).map(Self::Finish)
    }

    pub(super) fn trials(run: &str, trials: &[(u32, &Trial)]) -> Result<Self, StoreError> {
        Ok(Self::Trials {
            run: run.to_owned(),
            trials: records(run, trials.iter().copied())?,
        })
    }

    /// Its lines in a file.
    pub(super) fn to_lines(&self) -> serde_json::Result<String> {
        let mut text = String::new();
        match self {
            Self::Begin(header) => line(&mut text, &Line::Begin(raw(&header.json)?))?,
            Self::Finish(header) => line(&mut text, &Line::Finish(raw(&header.json)?))?,
            Self::Trials { run, trials } => {
                let last = trials.len().saturating_sub(1);
                for (place, (at, record)) in trials.iter().enumerate() {
                    trial_line(&mut text, run, *at, place < last, record)?;
                }
            }
        }
        Ok(text)
    }
}

fn raw(json: &str) -> serde_json::Result<&RawValue> {
    serde_json::from_str(json)
}

fn line(text: &mut String, line: &Line<'_>) -> serde_json::Result<()> {
    text.push_str(&serde_json::to_string(line)?);
    text.push('\n');
    Ok(())
}

fn trial_line(
    text: &mut String,
    run: &str,
    at: u32,
    more: bool,
    record: &str,
) -> serde_json::Result<()> {
    let record = raw(record)?;
    let run = Cow::Borrowed(run);
    line(
        text,
        &Line::Trial {
            run,
            at,
            more,
            record,
        },
    )
}

/// The text of a file with a whole run: the header, and a line for each trial.
pub(super) fn whole_file(
    run: &str,
    header: &str,
    trials: &BTreeMap<u32, &str>,
) -> serde_json::Result<String> {
    let mut lines = String::new();
    for (at, record) in trials {
        trial_line(&mut lines, run, *at, false, record)?;
    }
    let mut text = String::new();
    line(
        &mut text,
        &Line::Run {
            trials: trials.len(),
            bytes: lines.len() as u64,
            record: raw(header)?,
        },
    )?;
    text.push_str(&lines);
    Ok(text)
}

/// The header and the number of trials of a file of `size` bytes that was written as a
/// whole, from its first line alone; `None` for any other file.
pub(super) fn whole_header(first: &[u8], size: u64) -> Option<(&str, usize)> {
    match serde_json::from_slice(first).ok()? {
        Line::Run {
            trials,
            bytes,
            record,
        } if bytes.checked_add(first.len() as u64) == Some(size) => Some((record.get(), trials)),
        _ => None,
    }
}

/// A part of a file that counts as a whole.
enum Part<'a> {
    Begin(&'a RawValue),
    Finish(&'a RawValue),
    Run { bytes: u64, record: &'a RawValue },
    Trials(Vec<(u32, &'a RawValue)>),
}

/// Reads a file part by part, and returns the number of its valid bytes. The rest is the torn end
/// of an entry, whose writer never got a confirmation.
fn parts<'a>(
    bytes: &'a [u8],
    mut take: impl FnMut(Part<'a>, usize) -> Result<(), Unreadable>,
) -> Result<usize, Unreadable> {
    let (mut read, mut safe, mut ordinal) = (0, 0, None);
    let mut batch = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if line.last() != Some(&b'\n') {
            break;
        }
        read += line.len();
        let part = match serde_json::from_slice(line).map_err(|error| (ordinal, error))? {
            Line::Begin(record) => Part::Begin(record),
            Line::Finish(record) => Part::Finish(record),
            Line::Run { bytes, record, .. } => Part::Run { bytes, record },
            Line::Trial {
                at, more, record, ..
            } => {
                batch.push((at, record));
                ordinal = Some(at.saturating_add(1));
                if more {
                    continue;
                }
                Part::Trials(std::mem::take(&mut batch))
            }
        };
        ordinal = ordinal.or(Some(0));
        take(part, bytes.len() - read)?;
        safe = read;
    }
    Ok(safe)
}

/// How many bytes of a file count.
pub(super) fn safe_length(bytes: &[u8]) -> Result<usize, Unreadable> {
    parts(bytes, |_, _| Ok(()))
}

impl<'a> Lines<'a> {
    /// Reads a file.
    ///
    /// # Errors
    /// A line that cannot be read.
    pub(super) fn of(bytes: &'a [u8]) -> Result<Self, Unreadable> {
        let mut lines = Self::default();
        parts(bytes, |part, left| {
            match part {
                Part::Begin(record) | Part::Finish(record) => lines.header = Some(record.get()),
                Part::Run { bytes, record } => {
                    lines.header = Some(record.get());
                    lines.is_cut = (left as u64) < bytes;
                }
                Part::Trials(batch) => {
                    let batch = batch.into_iter().map(|(at, record)| (at, record.get()));
                    lines.trials.extend(batch);
                }
            }
            Ok(())
        })?;
        Ok(lines)
    }
}

impl Header {
    pub(super) fn of(run: &Run, partial: bool) -> Result<Self, StoreError> {
        let unstorable = |source| StoreError::Unstorable {
            run: run.run.clone(),
            ordinal: None,
            source,
        };
        let header = Run {
            partial,
            trials: Vec::new(),
            schema: run.schema.clone(),
            run: run.run.clone(),
            plan: run.plan.clone(),
            started: run.started.clone(),
            seed: run.seed,
            shard: run.shard.clone(),
            fingerprint: run.fingerprint.clone(),
            host: run.host.clone(),
            noise: run.noise.clone(),
            paper: run.paper.clone(),
            conditioning: run.conditioning.clone(),
            marks: run.marks.clone(),
            exposures: run.exposures.clone(),
            warnings: run.warnings.clone(),
        };
        let json = serde_json::to_string(&header).map_err(unstorable)?;
        serde_json::from_str::<Run>(&json).map_err(unstorable)?;
        Ok(Self { run: header, json })
    }
}

/// A run of its header and its records, as they are stored.
///
/// # Errors
/// A record that cannot be read, or has a schema of another version.
pub(super) fn assemble<'a>(
    id: &str,
    header: &str,
    trials: impl IntoIterator<Item = (u32, &'a str)>,
) -> Result<Run, StoreError> {
    // Read first: a record of another schema need not fit the fields of this one.
    #[derive(Deserialize)]
    struct Envelope {
        schema: String,
    }
    let broken = |ordinal| {
        let run = id.to_owned();
        move |source| StoreError::Record {
            run,
            ordinal,
            source,
        }
    };
    let envelope: Envelope = serde_json::from_str(header).map_err(broken(None))?;
    if envelope.schema != SCHEMA {
        return Err(StoreError::Schema {
            run: id.to_owned(),
            found: envelope.schema,
            known: SCHEMA,
        });
    }
    let mut run: Run = serde_json::from_str(header).map_err(broken(None))?;
    for (ordinal, record) in trials {
        let trial = serde_json::from_str(record).map_err(broken(Some(ordinal)))?;
        run.trials.push(trial);
    }
    Ok(run)
}
