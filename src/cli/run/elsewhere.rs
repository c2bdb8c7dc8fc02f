//! File systems are mounted by Linux.

use crate::cli::elsewhere::needs_linux;
use crate::cli::run::{Destination, Failure, RunOptions};
use lab::experiment::FileSystems;

/// Says that nothing is measured here.
pub(super) fn run(
    _: &RunOptions,
    _: FileSystems,
    _: u64,
    _: Destination<'_>,
) -> Result<(), Failure> {
    Err(needs_linux("measuring file systems"))
}
