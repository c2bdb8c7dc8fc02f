//! [`Repeats`]: which cells of a plan repeat which figures of a document.

use super::{Document, Row};
use crate::error::LabError;
use crate::record::{Mark, Measure, Paper, Published, Trial};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The part of a plan about the document that it repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeats {
    /// The document whose figures are shown next to ours.
    pub document: Document,
    /// The differences between this setting and the document's, in a sentence
    /// or two.
    pub differs: String,
    /// The document's word for the cipher that the others are divided by.
    pub base: String,
    /// Only cells of volumes of this format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// The document's words for systems, and ours.
    pub systems: BTreeMap<String, String>,
    /// The document's words for ciphers, and ours. The empty word stands for
    /// rows that name no cipher.
    pub ciphers: BTreeMap<String, String>,
    /// The figures that were repeated.
    pub figures: Vec<Repeated>,
}

/// A workload or operation with the rows that it repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeated {
    /// Name of the workload or operation in the plan.
    pub workload: String,
    /// The file system that it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fs: Option<String>,
    /// The quantity that the document's numbers measure.
    pub measure: Measure,
    /// Rows of the document.
    pub rows: Vec<u32>,
}

/// A score that a plan asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoredBy {
    /// The name of the score.
    pub name: String,
    /// The source of its formula.
    pub source: String,
    /// Points for each MB/s, by workload.
    pub weights: BTreeMap<String, f64>,
    /// The row with the document's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<u32>,
    /// Its share of a whole suite, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// The row with what encryption takes from that suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_row: Option<u32>,
}

/// The refusal of a workload that the plan lacks.
pub(crate) fn no_workload(name: &str) -> LabError {
    LabError::invalid(
        format!("published: there is no workload or operation {name:?}"),
        "Name a workload or an operation of the plan.",
    )
}

/// The refusal of a row that the document lacks.
fn no_row(number: u32) -> LabError {
    no_figure(&format!("the document has no row {number}"))
}

/// The refusal of a row that has no figure.
fn no_figure(problem: &str) -> LabError {
    LabError::invalid(
        format!("published: {problem}"),
        "Omit the row. `crates/lab/plans/published` in the sources has the rows of the documents.",
    )
}

/// The figures of a plan's document, prepared for its cells.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    paper: Option<Paper>,
    rows: Vec<Row>,
    entries: Vec<Entry>,
}

/// A figure and the cell that repeats it.
#[derive(Clone, Debug)]
struct Entry {
    workload: String,
    fs: Option<String>,
    format: Option<String>,
    system: String,
    cipher: Option<String>,
    published: Published,
}

impl Beside {
    /// The figures that `repeats` names; empty if a plan repeats nothing.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn of(repeats: Option<&Repeats>) -> Result<Self, LabError> {
        let Some(repeats) = repeats else {
            return Ok(Self::default());
        };
        let rows = repeats.document.rows()?;
        let mut entries = Vec::new();
        for repeated in &repeats.figures {
            for &number in &repeated.rows {
                let word = number.to_string();
                let row = rows.iter().find(|row| row.row == word);
                let row = row.ok_or_else(|| no_row(number))?;
                entries.push(repeats.entry(repeated, number, row)?);
            }
        }
        let paper = rows.first().map(|row| Paper {
            document: row.document.clone(),
            differs: repeats.differs.clone(),
            base: repeats.base.clone(),
        });
        Ok(Self {
            paper,
            rows,
            entries,
        })
    }

    /// The scores of a plan, with the document's values.
    ///
    /// # Errors
    /// [`LabError`] if the document lacks such a row.
    pub fn marks(&self, marks: &[ScoredBy]) -> Result<Vec<Mark>, LabError> {
        let printed = |number: Option<u32>| -> Result<Option<f64>, LabError> {
            let Some(number) = number else {
                return Ok(None);
            };
            let word = number.to_string();
            let row = self.rows.iter().find(|row| row.row == word);
            let row = row.ok_or_else(|| no_row(number))?;
            let value = row.number();
            let value = value.map_err(|source| {
                no_figure(&format!("row {number} has no number")).because(source)
            })?;
            Ok(Some(value))
        };
        let mark = |mark: &ScoredBy| {
            Ok(Mark {
                name: mark.name.clone(),
                source: mark.source.clone(),
                weights: mark.weights.clone(),
                published: printed(mark.row)?,
                share: mark.share,
                published_loss: printed(mark.loss_row)?,
            })
        };
        marks.iter().map(mark).collect()
    }

    /// The document's entry for the record of a run.
    pub fn paper(&self) -> Option<Paper> {
        self.paper.clone()
    }

    /// Adds the published figures to `trial`, unless it is a second measurement
    /// of the same cell.
    pub fn fill(&self, trial: &mut Trial) {
        let against = trial.overhead.as_ref().map(|overhead| &overhead.against);
        if against == Some(&trial.system) {
            return;
        }
        let repeats = |entry: &&Entry| {
            entry.workload == trial.workload
                && entry.system == trial.system
                // The plain system has no cipher, even if the document names
                // one.
                && (trial.cipher.is_none() || entry.cipher == trial.cipher)
                && entry.fs.as_ref().is_none_or(|fs| trial.fs() == Some(fs))
                && (trial.cipher.is_none() || entry.format == trial.format)
        };
        let found = self.entries.iter().filter(repeats);
        trial.published = found.map(|entry| entry.published.clone()).collect();
    }
}

impl Repeats {
    /// Checks that every row and every name is there; `workloads` are the
    /// plan's.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn validate<'a>(
        &self,
        workloads: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<(), LabError> {
        for Repeated { workload, .. } in &self.figures {
            if !workloads.clone().any(|name| name == workload) {
                return Err(no_workload(workload));
            }
        }
        Beside::of(Some(self)).map(|_| ())
    }

    fn entry(&self, repeated: &Repeated, number: u32, row: &Row) -> Result<Entry, LabError> {
        let named = |names: &BTreeMap<String, String>, word: &str, what| {
            names.get(word).cloned().ok_or_else(|| {
                LabError::invalid(
                    format!(
                        "published: row {number} refers to {word:?}, which is not among the \
                             {what}"
                    ),
                    format!("Map it in published.{what} to a name of this plan, or omit the row."),
                )
            })
        };
        let value = row
            .number()
            .map_err(|source| no_figure(&format!("row {number} has no number")).because(source))?;
        Ok(Entry {
            workload: repeated.workload.clone(),
            fs: repeated.fs.clone(),
            format: self.format.clone(),
            system: named(&self.systems, &row.system, "systems")?,
            cipher: Some(named(&self.ciphers, &row.cipher, "ciphers")?),
            published: Published {
                document: row.document.clone(),
                value,
                unit: row.unit.clone(),
                figure: row.figure.clone(),
                row: number,
                system: row.system.clone(),
                device: row.device.clone(),
                cipher: row.cipher.clone(),
                measure: repeated.measure,
            },
        })
    }
}
