//! Progress as lines of JSON on standard error, for the program that started this one.

use serde::{Deserialize, Serialize};
use std::env;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The environment variable that asks for these lines, by the value `json`.
pub const TOLD_BY: &str = "CRYPTMARK_PROGRESS";

/// How often a step is told at most. Reading the lines must not disturb what is measured.
const PACE: Duration = Duration::from_millis(250);

/// A line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "progress")]
pub enum Told {
    /// What is done now.
    Step {
        /// What, in words.
        step: String,
        /// How much of it.
        done: u64,
        /// All of it; 0 if that is not known.
        total: u64,
    },
    /// The store has more of a run.
    Kept {
        /// The id of the run.
        run: String,
    },
    /// It is paused now, until the signal SIGCONT.
    Paused,
    /// It goes on after a pause.
    Resumed,
}

impl Told {
    /// The meaning of a line, if it is one of these.
    pub fn read(line: &str) -> Option<Self> {
        line.starts_with('{')
            .then(|| serde_json::from_str(line).ok())?
    }
}

/// Writes the lines.
pub(super) struct Teller {
    last: Mutex<Option<Instant>>,
}

impl Teller {
    /// `None` if nobody asked for lines.
    pub(super) fn asked_for() -> Option<Self> {
        let asked = env::var_os(TOLD_BY).is_some_and(|value| value == "json");
        asked.then(|| Self {
            last: Mutex::new(None),
        })
    }

    pub(super) fn step(&self, step: &str, done: u64, total: u64) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_some_and(|last| last.elapsed() < PACE) {
            return;
        }
        *last = Some(Instant::now());
        let step = step.to_owned();
        put(&Told::Step { step, done, total });
    }

    pub(super) fn kept(&self, run: &str) {
        let run = run.to_owned();
        put(&Told::Kept { run });
    }

    pub(super) fn pausing(&self, pauses: bool) {
        put(&match pauses {
            true => Told::Paused,
            false => Told::Resumed,
        });
    }
}

fn put(told: &Told) {
    let line = serde_json::to_string(told).expect("a line has nothing that JSON lacks");
    eprintln!("{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_written() {
        for told in [
            Told::Kept { run: "x-1".into() },
            Told::Step {
                step: "round 2 · \"builtin\"\n".into(),
                done: 3,
                total: 9,
            },
            Told::Paused,
            Told::Resumed,
        ] {
            let line = serde_json::to_string(&told).unwrap();
            assert!(!line.contains('\n'));
            assert_eq!(Told::read(&line), Some(told));
        }
        for other in ["", "{", "{}", "error: x", r#"{"progress":"gone"}"#] {
            assert_eq!(Told::read(other), None, "{other}");
        }
    }
}
