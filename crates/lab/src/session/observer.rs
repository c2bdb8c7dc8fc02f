//! [`Observer`]: observes a session and keeps its measurements.

use crate::record::Run;

/// One visit of a cell, for progress.
#[derive(Clone, Debug)]
pub struct Visit<'a> {
    /// The workload's name.
    pub workload: &'a str,
    /// The system and its cipher, `builtin aes-xts-plain64`.
    pub label: &'a str,
    /// Round, from 1.
    pub round: u32,
    /// Number of rounds, if it is known beforehand.
    pub rounds: Option<u32>,
    /// Visits done so far; of slices the tenths of a second.
    pub done: u64,
    /// Visits in all; of slices the most tenths of a second.
    pub visits: u64,
}

/// Observes a session.
pub trait Observer {
    /// A cell is about to be visited. The time that this takes is no measuring time, so a user
    /// may pause here.
    fn visiting(&mut self, visit: &Visit<'_>);

    /// Called when rounds of some workloads are complete. `run` holds
    /// everything measured so far, and `changed` the places in `run.trials`
    /// that are new or different. The call comes every few seconds and at the
    /// end, also of an interrupted session.
    ///
    /// # Errors
    /// The error that kept the observer from storing the run. It ends the
    /// session.
    fn keep(
        &mut self,
        run: &Run,
        changed: &[usize],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;
}

/// An observer that ignores visits and stores nothing.
#[derive(Clone, Copy, Debug)]
pub struct Unwatched;

impl Observer for Unwatched {
    fn visiting(&mut self, _: &Visit<'_>) {}

    fn keep(
        &mut self,
        _: &Run,
        _: &[usize],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(())
    }
}
