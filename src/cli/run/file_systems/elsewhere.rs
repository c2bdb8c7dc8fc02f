//! File systems are mounted by Linux.

use crate::cli::elsewhere::needs_linux;
use crate::cli::run::{Failure, RunOptions};
use lab::file_system::plan::FileSystemPlan;

/// Says that nothing is measured here.
pub(super) fn run(_: &RunOptions, _: FileSystemPlan, _: Option<&str>) -> Result<(), Failure> {
    Err(needs_linux("measuring file systems"))
}
