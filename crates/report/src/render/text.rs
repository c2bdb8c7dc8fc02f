//! A document on a terminal, in lines that also survive a ticket.

use crate::document::{Cell, Column, Document, Kind, Row, Rows, TERMINAL, Table};
use crate::figure;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, LineStyle};

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

/// Blocks in lines; headings and tables stand apart.
pub(crate) fn render(document: &Document, style: &Style) -> String {
    let mut lines = Lines::default();
    let mut heading = false;
    for block in document.parts(TERMINAL) {
        // The content of a heading follows it without an empty line.
        let of_heading = std::mem::replace(&mut heading, matches!(block.kind, Kind::Heading(..)));
        lines.apart |= match block.kind {
            Kind::Heading(..) | Kind::Gap => true,
            Kind::Table(_) | Kind::Verbatim(_) => !of_heading,
            _ => false,
        };
        match &block.kind {
            Kind::Heading(_, text) | Kind::Text(_, text) => lines.add(style.wrapped(text)),
            Kind::List(title, items) => {
                let indent = if title.is_some() { "    " } else { "  " };
                let title = title.iter().map(|title| format!("  {title}"));
                let items = items.iter().map(|item| format!("{indent}{item}"));
                title
                    .chain(items)
                    .for_each(|line| lines.add(style.wrapped(&line)));
            }
            Kind::Table(table) => {
                lines.add(drawn(table, style));
                lines.apart = true;
            }
            Kind::Verbatim(verbatim) => {
                lines.add(verbatim.iter().map(|line| figure::one_line(line)).collect());
                lines.apart = true;
            }
            Kind::Warnings(warnings) => {
                let warnings = warnings.iter().map(|warning| format!("warning: {warning}"));
                warnings.for_each(|line| lines.add(style.wrapped(&line)));
            }
            Kind::Charts(_) | Kind::Columns(_) | Kind::Facts(_) | Kind::Gap | Kind::Markup(_) => {}
        }
    }
    let mut text = lines.done.join("\n");
    text.push('\n');
    text
}

#[derive(Default)]
struct Lines {
    done: Vec<String>,
    /// Whether what comes next stands apart from what is above it.
    apart: bool,
}

impl Lines {
    fn add(&mut self, lines: Vec<String>) {
        if std::mem::take(&mut self.apart) && !self.done.is_empty() {
            self.done.push(String::new());
        }
        self.done.extend(lines);
    }
}

/// The table with as many columns as fit, or as stacked lines if none fit.
fn drawn(table: &Table, style: &Style) -> Vec<String> {
    let steps: Vec<Vec<&Column>> = steps(table);
    let fits = |lines: &Vec<String>| {
        lines
            .iter()
            .all(|line| line.chars().count() <= style.columns())
    };
    let lines = steps
        .iter()
        .map(|columns| laid_out(table, columns, style))
        .find(fits);
    let lines =
        lines.unwrap_or_else(|| stacked(table, steps.last().map_or(&[], Vec::as_slice), style));
    lines.iter().map(|line| style.paint(line)).collect()
}

/// The columns of a terminal, and fewer and fewer of them.
fn steps(table: &Table) -> Vec<Vec<&Column>> {
    let on_terminal = |column: &&Column| column.on & TERMINAL != 0;
    let columns: Vec<&Column> = table.columns.iter().filter(on_terminal).collect();
    let mut steps: Vec<u8> = columns.iter().map(|column| column.until).collect();
    steps.sort_unstable();
    steps.dedup();
    let least = |step: u8| {
        columns
            .iter()
            .copied()
            .filter(|column| column.until >= step)
            .collect()
    };
    steps.into_iter().map(least).collect()
}

/// The cells of a row under `columns`.
fn cells<'a>(table: &'a Table, row: &'a Row, columns: &[&Column]) -> Vec<(&'a Column, String)> {
    let kept = |column: &Column| columns.iter().any(|kept| std::ptr::eq(*kept, column));
    let cells = table
        .columns
        .iter()
        .zip(&row.cells)
        .filter(|(column, _)| kept(column));
    let shown = |cell: &Cell| cell.short.as_ref().unwrap_or(&cell.text).clone();
    cells.map(|(column, cell)| (column, shown(cell))).collect()
}

fn laid_out(table: &Table, columns: &[&Column], style: &Style) -> Vec<String> {
    let by = table.grouped.as_ref().filter(|by| by.on & TERMINAL != 0);
    let all: Vec<&Column> = by.into_iter().chain(columns.iter().copied()).collect();
    let name = |column: &&Column| match column.bare {
        true => String::new(),
        false => style.text(column.short.as_ref().unwrap_or(&column.name)),
    };
    let mut drawn = style.drawn(&all.iter().map(name).collect::<Vec<_>>());
    for (number, Rows { title, rows, .. }) in table.groups.iter().enumerate() {
        if by.is_none() && !title.is_empty() {
            if number > 0 {
                drawn.add_row([""]);
            }
            drawn.add_row([style.text(title)]);
        }
        for (number, row) in rows.iter().enumerate() {
            let title = by.map(|_| style.text(table.title(title, number)));
            let cell = |(column, text): (&Column, String)| match column.bare {
                true => style.text(&format!("  {text}")),
                false => style.text(&text),
            };
            drawn.add_row(
                title
                    .into_iter()
                    .chain(cells(table, row, columns).into_iter().map(cell)),
            );
        }
    }
    for (place, _) in all.iter().enumerate().filter(|(_, known)| known.right) {
        if let Some(column) = drawn.column_mut(place) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    drawn
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

/// The rows as lines instead of a table, for narrow terminals. The names of a row and its figures
/// are on one line, and its texts below it.
fn stacked(table: &Table, columns: &[&Column], style: &Style) -> Vec<String> {
    let by = table.grouped.as_ref().filter(|by| by.on & TERMINAL != 0);
    let indent = if columns.iter().any(|column| column.bare) {
        "  "
    } else {
        ""
    };
    let mut lines = Vec::new();
    for (number, Rows { title, rows, .. }) in table.groups.iter().enumerate() {
        if by.is_none() && !title.is_empty() {
            if number > 0 {
                lines.push(String::new());
            }
            lines.extend(style.wrapped(title));
        }
        for row in rows {
            let mut names: Vec<String> = by.map(|_| title.clone()).into_iter().collect();
            let mut figures = Vec::new();
            let mut words = Vec::new();
            let mut named = false;
            for (column, text) in cells(table, row, columns) {
                named |= column.right;
                let name = column.short.as_ref().unwrap_or(&column.name);
                match column.right {
                    _ if text.is_empty() => {}
                    true if column.alone => figures.push(text),
                    true => figures.push(format!("{name} {text}")),
                    false if named => words.push(text),
                    false => names.push(text),
                }
            }
            let names = names.join(", ");
            lines.extend(style.wrapped(&match figures.is_empty() {
                true => format!("{indent}{names}"),
                false => format!("{indent}{names}: {}", figures.join("; ")),
            }));
            words
                .iter()
                .for_each(|words| lines.extend(style.wrapped(&format!("    {words}"))));
        }
    }
    lines
}

impl Style {
    /// Columns that may be used.
    fn columns(&self) -> usize {
        usize::from(self.width.clamp(20, WIDEST))
    }

    /// Text from a record or from here, as this style may show it.
    fn text(&self, text: &str) -> String {
        let text = figure::one_line(text);
        if self.unicode {
            return text;
        }
        text.chars()
            .map(|c| match c {
                'µ' => "u".to_owned(),
                '–' => "-".to_owned(),
                '±' => "+-".to_owned(),
                '÷' => "/".to_owned(),
                '−' => "-".to_owned(),
                '→' => "->".to_owned(),
                '…' => "...".to_owned(),
                '×' => "x".to_owned(),
                '·' => "|".to_owned(),
                c if c.is_ascii() => c.to_string(),
                _ => "?".to_owned(),
            })
            .collect()
    }

    /// A table without vertical lines, a rule below its header.
    fn drawn(&self, header: &[String]) -> comfy_table::Table {
        let rule = if self.unicode { '─' } else { '-' };
        let mut table = comfy_table::Table::new();
        table
            .load_style(NOTHING.header_separator(LineStyle::none().fill(rule)))
            .set_header(header.to_vec());
        for column in table.column_iter_mut() {
            column.set_padding((0, 3));
        }
        table
    }

    /// Colours the verdicts in a finished line: its layout stays as it is.
    fn paint(&self, line: &str) -> String {
        const YELLOW: &str = "\x1b[33m";
        const GREEN: &str = "\x1b[32m";
        const PLAIN: &str = "\x1b[0m";
        if !self.colour {
            return line.to_owned();
        }
        line.replace("slower by", &format!("{YELLOW}slower{PLAIN} by"))
            .replace("faster by", &format!("{GREEN}faster{PLAIN} by"))
            .replace("% longer", &format!("% {YELLOW}longer{PLAIN}"))
            .replace("% shorter", &format!("% {GREEN}shorter{PLAIN}"))
    }

    /// `text`, broken at spaces into lines that fit; what follows the first line is
    /// indented by two more.
    fn wrapped(&self, text: &str) -> Vec<String> {
        let mut lines = Vec::new();
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
        lines
    }
}
