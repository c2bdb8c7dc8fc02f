//! A run on a terminal.

pub use crate::render::text::Style;

use crate::{render, run};
use lab::record::Run;

/// The answer, the machine, the noise floor, the cells by workload, the warnings.
pub fn table(run: &Run, style: &Style) -> String {
    render::text::render(&run::document(run), style)
}
