//! A fleet as text, for a terminal.

use super::{FleetReport, Quantiles, change};
use crate::figure;
use std::fmt::Write as _;

/// Groups of a property that a terminal shows.
const GROUPS: usize = 20;
/// Width of names.
const NAME: usize = 46;

/// The whole text.
pub fn render(report: &FleetReport) -> String {
    let count = |number: u64| figure::grouped(&number.to_string());
    let mut text = format!(
        "{}: {} trials of {} run(s), {} of them beside plain\n",
        figure::one_line(&report.place),
        count(report.trials),
        count(report.runs),
        count(report.compared),
    );
    for breakdown in &report.overhead {
        let _ = writeln!(
            text,
            "\n{:<NAME$}{:>12}{:>10}{:>10}{:>10}{:>10}{:>10}",
            format!("Encrypted against plain, by {}", breakdown.by),
            "trials",
            "p5",
            "p25",
            "median",
            "p75",
            "p95",
        );
        for group in breakdown.groups.iter().take(GROUPS) {
            let _ = write!(text, "{:<NAME$}{:>12}", name(group), count(group.trials));
            for ratio in [group.p5, group.p25, group.p50, group.p75, group.p95] {
                let _ = write!(text, "{:>10}", change(ratio));
            }
            text.push('\n');
        }
        let rest = breakdown.groups.len().saturating_sub(GROUPS);
        if rest > 0 {
            let _ = writeln!(text, "and {rest} more: --json has them all");
        }
    }
    outliers(&mut text, report);
    regressions(&mut text, report);
    text
}

fn name(group: &Quantiles) -> String {
    let name = figure::one_line(&group.name);
    match name.chars().count() {
        fits if fits < NAME => name,
        _ => name.chars().take(NAME - 2).chain(['…']).collect(),
    }
}

fn outliers(text: &mut String, report: &FleetReport) {
    let found = report.outliers.found;
    if found == 0 {
        text.push_str("\nNo trial is far from all alike.\n");
        return;
    }
    let _ = writeln!(
        text,
        "\nFar from all alike: {} trial(s)",
        figure::grouped(&found.to_string())
    );
    for outlier in &report.outliers.farthest {
        let _ = writeln!(
            text,
            "{}: {} where {} have {} ({}…{})\n  {}, {}",
            figure::one_line(&outlier.run),
            change(outlier.ratio),
            outlier.trials,
            change(outlier.p50),
            change(outlier.p25),
            change(outlier.p75),
            figure::one_line(&outlier.alike.name()),
            figure::one_line(&outlier.alike.place()),
        );
    }
    let rest = found.saturating_sub(report.outliers.farthest.len() as u64);
    if rest > 0 {
        let _ = writeln!(
            text,
            "and {} less far away",
            figure::grouped(&rest.to_string())
        );
    }
}

fn regressions(text: &mut String, report: &FleetReport) {
    if report.regressions.is_empty() {
        text.push_str("\nNo version is slower than the one before it.\n");
        return;
    }
    let _ = writeln!(
        text,
        "\nSlower with a version: {}",
        report.regressions.len()
    );
    for regression in &report.regressions {
        let _ = writeln!(
            text,
            "{} → {}: {} → {} ({} and {} trials)\n  {}, {}",
            figure::one_line(&regression.before),
            figure::one_line(&regression.after),
            change(regression.before_ratio),
            change(regression.after_ratio),
            regression.before_trials,
            regression.after_trials,
            figure::one_line(&regression.alike.name()),
            figure::one_line(&regression.alike.place()),
        );
    }
}
