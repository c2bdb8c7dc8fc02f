//! [`Derivations`]: what unlocking a volume costs, and what a guess costs.

use super::{Changes, Schedule, Setting, from_toml, within};
use crate::error::LabError;
use crate::system::unlock::{ITER_TIME_MS, RECIPES, Recipe};
use crate::workload::{Mix, Pattern, Workload};
use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// Rounds if no number is given: the least that an interval needs. A derivation takes the same time
/// again and again, and all of them half a minute.
const ROUNDS: u32 = 3;

/// The key derivations of the volume formats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Derivations {
    /// File stem or embedded name; not part of the TOML.
    #[serde(skip)]
    pub name: String,
    /// One line for the list of plans.
    pub title: String,
    /// Always `kdf`.
    tier: String,
    /// Repetitions of every derivation, 1 to 1000.
    #[serde(default = "rounds")]
    pub repetitions: u32,
    /// Target duration of calibrated derivations, ms, 1 to 60,000.
    #[serde(default = "two_seconds")]
    pub iter_time: u32,
}

fn rounds() -> u32 {
    ROUNDS
}

pub(super) fn two_seconds() -> u32 {
    ITER_TIME_MS
}

/// Refuses a target of calibrated derivations that is out of its range.
pub(super) fn check_iter_time(ms: u32) -> Result<(), LabError> {
    within("iter_time", u64::from(ms), 1, 60_000)
}

/// What does not apply to key derivations: they take nothing but time.
fn refuses(setting: Setting) -> Option<&'static str> {
    match setting {
        Setting::FirstLook | Setting::Repetitions => None,
        _ => Some("key derivations"),
    }
}

impl Derivations {
    /// Reads a plan from TOML and checks every value.
    ///
    /// # Errors
    /// [`LabError`] with line and suggestion, or the error of an impossible value.
    pub fn parse(name: &str, text: &str) -> Result<Self, LabError> {
        let mut plan: Self = from_toml(name, text, refuses)?;
        plan.name = name.to_owned();
        plan.validate()?;
        Ok(plan)
    }

    pub(super) fn validate(&self) -> Result<(), LabError> {
        within("repetitions", u64::from(self.repetitions), 1, 1000)?;
        check_iter_time(self.iter_time)
    }

    pub(super) fn apply(&mut self, changes: &Changes) {
        if changes.first_look {
            self.iter_time = self.iter_time.min(Changes::LOOK_ITER_TIME);
        }
        if let Some(repetitions) = changes.repetitions {
            self.repetitions = repetitions;
        }
    }

    pub(super) fn refuses(&self, setting: Setting) -> Option<&'static str> {
        refuses(setting)
    }

    pub(super) fn describe(&self) -> String {
        let mut text = format!(
            "plan {}: {}\nin memory; no storage is touched\n",
            self.name, self.title
        );
        for recipe in RECIPES {
            let _ = match recipe.is_calibrated() {
                true => writeln!(
                    text,
                    "  {}, calibrated to {} ms",
                    recipe.name, self.iter_time
                ),
                false => writeln!(text, "  {}", recipe.name),
            };
        }
        let _ = writeln!(
            text,
            "each to unlock and to guess, {} times: {} visits",
            self.repetitions,
            u64::from(self.repetitions) * (2 * RECIPES.len() as u64 + 1)
        );
        text
    }

    /// How a session derives `recipes`, each a workload.
    pub fn schedule(&self, recipes: &[Recipe]) -> Schedule {
        Schedule {
            name: self.name.clone(),
            repetitions: self.repetitions,
            workloads: recipes.iter().map(workload).collect(),
            is_bare: true,
            ..Schedule::default()
        }
    }
}

/// The workload of a recipe: its name, size and threads. A derivation has no access pattern.
pub(crate) fn workload(recipe: &Recipe) -> Workload {
    Workload::new(recipe.name, Pattern::Sequential, Mix::Encrypt, ByteSize(0))
}
