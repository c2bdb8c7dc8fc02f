//! Runs as Markdown: for issues, wikis and change logs.

use crate::group::{self, Group};
use crate::{advice, benchmark, beside, ciphers, figure, file_systems, kdf, marks, steady, sweep};
use lab::record::Run;

/// A section a run: advice, environment, noise floor, a table a workload, warnings.
pub fn render(runs: &[Run]) -> String {
    if runs.is_empty() {
        return "No run.\n".to_owned();
    }
    runs.iter().map(section).collect::<Vec<_>>().join("\n")
}

fn section(run: &Run) -> String {
    let mut out = format!(
        "# What encryption costs: {}\n\n{}\n\n",
        escape(&run.plan),
        escape(&advice::sentence(run))
    );
    let partial = if run.partial { ", partial" } else { "" };
    for (name, value) in [
        ("Run", format!("{}{partial}, {}", run.run, run.started)),
        ("Machine", figure::machine(run)),
        ("Device", figure::devices(run).join("; ")),
        ("Noise floor", figure::noise(run)),
    ] {
        out.push_str(&format!("* {name}: {}\n", escape(&value)));
    }
    if benchmark::is_benchmark(run) {
        out.push_str(&benchmark::markdown(run));
    }
    if ciphers::is_bare(run) {
        out.push_str(&ciphers::markdown::tables(run));
    } else if kdf::is_kdf(run) {
        out.push_str(&kdf::markdown(run));
    } else if file_systems::is_fs(run) {
        out.push_str(&file_systems::markdown(run));
    } else {
        for group in group::groups(&run.trials) {
            out.push_str(&table(&group));
        }
    }
    out.push_str(&sweep::markdown(run));
    out.push_str(&steady::markdown(run));
    out.push_str(&marks::markdown(run));
    out.push_str(&beside::markdown(run));
    let warnings = group::warnings(run);
    if !warnings.is_empty() {
        out.push_str("\n## Warnings\n\n");
    }
    for warning in warnings {
        out.push_str(&format!("* {}\n", escape(&warning)));
    }
    out
}

fn table(group: &Group<'_>) -> String {
    let mut out = format!(
        "\n## {}\n\n{}. Medians with their 95 % interval.\n\n\
         | system | rate | n | p50 | p99 | against plain | crypto | limit |\n\
         |---|---:|---:|---:|---:|---|---:|---|\n",
        escape(&group.title()),
        escape(&group.detail())
    );
    for row in &group.rows {
        let (rate, unit) = figure::rate(row.trial);
        let cost = row
            .trial
            .overhead
            .as_ref()
            .map_or_else(String::new, figure::overhead);
        let cells = [
            row.label.clone(),
            format!("{} {unit}", figure::interval(rate)),
            rate.n.to_string(),
            figure::duration_us(row.trial.latency_us.p50),
            figure::duration_us(row.trial.latency_us.p99),
            cost,
            figure::share(figure::crypto_share(row.trial)),
            figure::limit(row.trial).to_owned(),
        ];
        let cells: Vec<String> = cells.iter().map(|cell| escape(cell)).collect();
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    if let Some(overhead) = group.again.and_then(|again| again.overhead.as_ref()) {
        out.push_str(&format!(
            "\nPlain against itself (A/A): {}\n",
            escape(&figure::overhead(overhead))
        ));
    }
    out
}

/// Text that Markdown shows as it is, in a table cell as well.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in figure::one_line(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '#' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}
