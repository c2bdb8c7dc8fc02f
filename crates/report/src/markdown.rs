//! Runs as Markdown: for issues, wikis and change logs.

use crate::{render, run};
use lab::record::Run;

/// A section a run: advice, environment, noise floor, a table a workload, warnings.
pub fn render(runs: &[Run]) -> String {
    if runs.is_empty() {
        return "No run.\n".to_owned();
    }
    let section = |run| render::markdown::render(&run::document(run));
    runs.iter().map(section).collect::<Vec<_>>().join("\n")
}
