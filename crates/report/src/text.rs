//! The answer on a terminal: one table that also survives a ticket.

use crate::advice;
use crate::benchmark;
use crate::beside;
use crate::ciphers;
use crate::figure;
use crate::file_systems;
use crate::group::{self, Group};
use crate::kdf;
use crate::marks;
use crate::steady;
use crate::sweep;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, LineStyle, Table};
use lab::record::{Run, Trial};

/// How the text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal; more than 110 are not used.
    pub width: u16,
    /// Whether verdicts are coloured.
    pub colour: bool,
    /// Whether `µ`, `–` and lines may be used; ASCII alone otherwise.
    pub unicode: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            width: 110,
            colour: false,
            unicode: true,
        }
    }
}

/// Columns beyond which a table is harder to read, and breaks in a ticket.
const WIDEST: u16 = 110;

/// The answer, the machine, the noise floor, the cells by workload, the warnings.
pub fn table(run: &Run, style: &Style) -> String {
    let mut lines = Vec::new();
    style.wrap(&mut lines, &advice::sentence(run));
    lines.push(String::new());
    let partial = if run.partial { ", PARTIAL" } else { "" };
    style.wrap(
        &mut lines,
        &format!("{} · run {} · {}{partial}", run.plan, run.run, run.started),
    );
    style.wrap(&mut lines, &figure::machine(run));
    for device in figure::devices(run) {
        style.wrap(&mut lines, &device);
    }
    style.wrap(&mut lines, &format!("Noise floor: {}", figure::noise(run)));
    lines.push(String::new());

    let groups = group::groups(&run.trials);
    if benchmark::is_benchmark(run) {
        lines.extend(benchmark::text(run, style));
    } else if ciphers::is_bare(run) {
        lines.extend(ciphers::text::tables(run, style));
    } else if kdf::is_kdf(run) {
        lines.extend(kdf::text(run, style));
    } else if file_systems::is_fs(run) {
        lines.extend(file_systems::text(run, style));
    } else if groups.is_empty() {
        lines.push("No cell was measured.".to_owned());
    } else {
        lines.extend(cells(&groups, style));
    }
    lines.push(String::new());
    let sections = [
        sweep::text(run, style),
        steady::text(run, style),
        marks::text(run, style),
        beside::text(run, style),
    ];
    for section in sections {
        if !section.is_empty() {
            lines.extend(section);
            lines.push(String::new());
        }
    }
    for warning in group::warnings(run) {
        style.wrap(&mut lines, &format!("warning: {warning}"));
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

impl Style {
    /// Columns that may be used.
    pub(crate) fn columns(&self) -> usize {
        usize::from(self.width.clamp(20, WIDEST))
    }

    /// Text from a record or from here, as this style may show it.
    pub(crate) fn text(&self, text: &str) -> String {
        let text = figure::one_line(text);
        if self.unicode {
            return text;
        }
        text.chars()
            .map(|c| match c {
                'µ' => "u".to_owned(),
                '–' => "-".to_owned(),
                '±' => "+-".to_owned(),
                '×' => "x".to_owned(),
                '·' => "|".to_owned(),
                c if c.is_ascii() => c.to_string(),
                _ => "?".to_owned(),
            })
            .collect()
    }

    /// A table without vertical lines, a rule below its header.
    pub(crate) fn table(&self, header: &[&str]) -> Table {
        let rule = if self.unicode { '─' } else { '-' };
        let mut table = Table::new();
        table
            .load_style(NOTHING.header_separator(LineStyle::none().fill(rule)))
            .set_header(header.to_vec());
        for column in table.column_iter_mut() {
            column.set_padding((0, 3));
        }
        table
    }

    /// Colours the verdicts in a finished line: its layout stays as it is.
    pub(crate) fn paint(&self, line: &str) -> String {
        const YELLOW: &str = "\x1b[33m";
        const GREEN: &str = "\x1b[32m";
        const PLAIN: &str = "\x1b[0m";
        if !self.colour {
            return line.to_owned();
        }
        line.replace("slower by", &format!("{YELLOW}slower{PLAIN} by"))
            .replace("faster by", &format!("{GREEN}faster{PLAIN} by"))
    }

    /// Adds `text`, broken at spaces into lines that fit; what follows the
    /// first line is indented by two more.
    pub(crate) fn wrap(&self, lines: &mut Vec<String>, text: &str) {
        let text = self.text(text);
        let words = text.trim_start();
        let indent = text.len() - words.len();
        let mut line = " ".repeat(indent);
        let mut used = indent;
        for (number, word) in words.split(' ').enumerate() {
            let length = word.chars().count();
            if number > 0 && used + 1 + length > self.columns() {
                lines.push(std::mem::replace(&mut line, " ".repeat(indent + 2)));
                used = indent + 2;
            } else if number > 0 {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
            used += length;
        }
        lines.push(line);
    }
}

/// Which columns a table has: as many as fit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    Whole,
    WithoutLedger,
    WithoutLatency,
}

fn cells(groups: &[Group<'_>], style: &Style) -> Vec<String> {
    let fits = |lines: &Vec<String>| {
        lines
            .iter()
            .all(|line| line.chars().count() <= style.columns())
    };
    [Layout::Whole, Layout::WithoutLedger, Layout::WithoutLatency]
        .into_iter()
        .map(|layout| laid_out(groups, style, layout))
        .find(fits)
        .unwrap_or_else(|| stacked(groups, style))
        .iter()
        .map(|line| style.paint(line))
        .collect()
}

fn laid_out(groups: &[Group<'_>], style: &Style, layout: Layout) -> Vec<String> {
    let mut table = style.table(&match layout {
        Layout::Whole => vec!["", "rate", "p99", "against plain", "crypto", "limit"],
        Layout::WithoutLedger => vec!["", "rate", "p99", "against plain"],
        Layout::WithoutLatency => vec!["", "rate", "against plain"],
    });
    for (number, group) in groups.iter().enumerate() {
        if number > 0 {
            table.add_row([""]);
        }
        table.add_row([style.text(&group.title())]);
        for row in &group.rows {
            add(
                &mut table,
                &row.label,
                Some(row.trial),
                row.trial,
                style,
                layout,
            );
        }
        if let Some(again) = group.again {
            // Only its ratio says something new: the noise floor of this workload.
            add(&mut table, &group::label(again), None, again, style, layout);
        }
    }
    let right: &[usize] = match layout {
        Layout::Whole => &[1, 2, 4],
        Layout::WithoutLedger => &[1, 2],
        Layout::WithoutLatency => &[1],
    };
    for column in right {
        if let Some(column) = table.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

/// No table, for what is too narrow: each cell on a line, its cost below.
fn stacked(groups: &[Group<'_>], style: &Style) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        if number > 0 {
            lines.push(String::new());
        }
        style.wrap(&mut lines, &group.title());
        let cost = |lines: &mut Vec<String>, trial: &Trial| {
            if let Some(overhead) = &trial.overhead {
                style.wrap(lines, &format!("    {}", figure::overhead(overhead)));
            }
        };
        for row in &group.rows {
            let (rate, unit) = figure::rate(row.trial);
            let rate = figure::with_unit(rate.median, unit);
            style.wrap(&mut lines, &format!("  {}: {rate}", row.label));
            cost(&mut lines, row.trial);
        }
        if let Some(again) = group.again {
            style.wrap(&mut lines, &format!("  {}", group::label(again)));
            cost(&mut lines, again);
        }
    }
    lines
}

/// Adds the row of `trial`; `figures` is left out where only the ratio counts.
fn add(
    table: &mut Table,
    label: &str,
    figures: Option<&Trial>,
    trial: &Trial,
    style: &Style,
    layout: Layout,
) {
    let figure = |text: fn(&Trial) -> String| {
        figures.map_or_else(String::new, |trial| style.text(&text(trial)))
    };
    let label = style.text(&format!("  {label}"));
    let rate = figure(|trial| {
        let (rate, unit) = figure::rate(trial);
        figure::with_unit(rate.median, unit)
    });
    let p99 = figure(|trial| figure::duration_us(trial.latency_us.p99));
    let cost = trial
        .overhead
        .as_ref()
        .map_or_else(String::new, |overhead| {
            style.text(&figure::overhead(overhead))
        });
    match layout {
        Layout::Whole => {
            let crypto = figure(|trial| figure::share(figure::crypto_share(trial)));
            let limit = figure(|trial| figure::limit(trial).to_owned());
            table.add_row([label, rate, p99, cost, crypto, limit]);
        }
        Layout::WithoutLedger => {
            table.add_row([label, rate, p99, cost]);
        }
        Layout::WithoutLatency => {
            table.add_row([label, rate, cost]);
        }
    }
}
