//! The table of bare ciphers on a terminal.

use super::{Line, lines, main_loads, more_threads};
use crate::figure;
use crate::text::Style;
use comfy_table::CellAlignment;
use lab::record::{Run, Trial};

/// Which columns a table has: as many as fit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    Whole,
    RateOnly,
}

/// A table for each direction.
pub(crate) fn tables(run: &Run, style: &Style) -> Vec<String> {
    let fits = |lines: &Vec<String>| {
        lines
            .iter()
            .all(|line| line.chars().count() <= style.columns())
    };
    [Layout::Whole, Layout::RateOnly]
        .into_iter()
        .map(|layout| laid_out(run, style, layout))
        .find(fits)
        .unwrap_or_else(|| stacked(run, style))
}

fn laid_out(run: &Run, style: &Style, layout: Layout) -> Vec<String> {
    let mut out = Vec::new();
    for load in main_loads(run) {
        if !out.is_empty() {
            out.push(String::new());
        }
        out.push(style.text(&load.title()));
        // The most threads: numbers between them are in the other reports.
        let parallel = more_threads(run, &load).pop();
        let more = parallel
            .as_ref()
            .map(|load| super::threads(load.threads))
            .unwrap_or_default();
        let mut header = vec!["", "sector", "MB/s"];
        if layout == Layout::Whole {
            header.extend(["c/B", "best library", "const. time"]);
        }
        match parallel {
            Some(_) => header.push(&more),
            None if layout == Layout::Whole => header.push("a request"),
            None => {}
        }
        let alone = parallel.is_none();
        let mut table = style.table(&header);
        let on_more = parallel.map(|load| lines(run, &load)).unwrap_or_default();
        for line in lines(run, &load) {
            let mut row = vec![
                format!("  {}", line.name),
                line.trial
                    .sector_bytes
                    .map_or_else(String::new, |bytes| bytes.to_string()),
                rate(line.trial),
            ];
            if layout == Layout::Whole {
                let constant_time = line.constant_time().to_owned();
                row.extend([line.cycles(), line.against_in_short(), constant_time]);
            }
            if layout == Layout::Whole && alone {
                row.push(line.time());
            }
            if let Some(same) = on_more.iter().find(|other| same(other, &line)) {
                row.push(rate(same.trial));
            }
            table.add_row(row.iter().map(|cell| style.text(cell)));
        }
        for column in [1, 2, 3] {
            if column < header.len()
                && let Some(column) = table.column_mut(column)
            {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        out.extend(table.lines().map(|line| line.trim_end().to_owned()));
    }
    out
}

/// No table, for what is too narrow.
fn stacked(run: &Run, style: &Style) -> Vec<String> {
    let mut out = Vec::new();
    for load in main_loads(run) {
        style.wrap(&mut out, &load.title());
        for line in lines(run, &load) {
            let sector = line.trial.sector_bytes.unwrap_or_default();
            style.wrap(
                &mut out,
                &format!("  {}, {sector}: {} MB/s", line.name, rate(line.trial)),
            );
            style.wrap(&mut out, &format!("    {}", line.against()));
        }
    }
    out
}

fn same(a: &Line<'_>, b: &Line<'_>) -> bool {
    super::alike(a.trial, b.trial)
}

fn rate(trial: &Trial) -> String {
    figure::number(trial.throughput_mb_s.median)
}
