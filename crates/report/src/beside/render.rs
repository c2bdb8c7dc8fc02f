//! The section of published figures as text, Markdown and HTML.

use super::{Beside, Block, cost_here, printed};
use crate::html::chart::ratios;
use crate::markdown::escape;
use crate::text::Style;
use comfy_table::CellAlignment;
use lab::record::Run;
use maud::{Markup, html};

const HEADING: &str = "Beside the paper";

/// Columns of pairs of systems, and of costs.
const SYSTEMS: [&str; 4] = ["what", "systems", "there", "here"];
const COSTS: [&str; 4] = ["workload", "published", "there", "here"];

impl Beside<'_> {
    /// Columns of the ciphers.
    fn columns(&self) -> [String; 6] {
        let base = &self.paper.base;
        [
            "cipher".to_owned(),
            "there".to_owned(),
            format!("÷ {base} there"),
            "here, median".to_owned(),
            "mean".to_owned(),
            format!("÷ {base} here"),
        ]
    }

    fn cells(&self, block: &Block<'_>) -> Vec<[String; 6]> {
        let base = block.base(self.paper);
        let cells = block.members.iter().map(|member| {
            let ratios = base.map(|base| (member.ratio_there(&base), member.ratio_here(&base)));
            let (there, here) = ratios.unwrap_or_default();
            let [median, mean] = [member.median(), member.mean()];
            [member.name(), member.there(), there, median, mean, here]
        });
        cells.collect()
    }

    fn systems(&self) -> Vec<[String; 4]> {
        let cells = self.systems.iter().map(|pair| {
            let (first, second) = (pair.first, pair.second);
            [
                format!("{}, {}", first.what(), first.name()),
                format!("{} ÷ {}", first.published.system, second.published.system),
                first.ratio_there(&second),
                first.ratio_here(&second),
            ]
        });
        cells.collect()
    }

    fn costs(&self) -> Vec<[String; 4]> {
        let cells = self.costs.iter().map(|&(published, trial)| {
            let member = super::Member { published, trial };
            [
                member.what(),
                format!(
                    "{}, {}, {}",
                    published.system,
                    member.name(),
                    published.figure
                ),
                printed(published),
                cost_here(published, trial),
            ]
        });
        cells.collect()
    }

    /// A chart for each block that has ratios to its base.
    fn charts(&self) -> Vec<(String, Markup)> {
        let chart = |block: &Block<'_>| {
            let ratios = block.ratios(self.paper);
            let title = block.title();
            (!ratios.is_empty()).then(|| (title.clone(), ratios::render(&title, &ratios)))
        };
        self.blocks.iter().filter_map(chart).collect()
    }

    fn about(&self) -> String {
        format!("{HEADING}: {}.", self.paper.document)
    }
}

/// The section on a terminal; nothing where there is none.
pub(crate) fn text(run: &Run, style: &Style) -> Vec<String> {
    let mut out = Vec::new();
    let Some(beside) = Beside::of(run) else {
        return out;
    };
    style.wrap(&mut out, &beside.about());
    style.wrap(&mut out, &beside.paper.differs);
    if let Some(sentence) = beside.sentence() {
        style.wrap(&mut out, &sentence);
    }
    let columns = beside.columns();
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let rows: Vec<[String; 6]> = beside.blocks.iter().flat_map(|b| beside.cells(b)).collect();
    let lines = drawn(&columns, &[0, 1, 2, 3, 4, 5], &rows, style)
        .or_else(|| drawn(&columns, &[0, 2, 5], &rows, style))
        .unwrap_or_else(|| stacked(&columns, &rows, style));
    let mut lines = lines.into_iter();
    if !rows.is_empty() {
        out.push(String::new());
        // The header and its rule, then a line for each row.
        out.extend(lines.by_ref().take(2));
    }
    for block in &beside.blocks {
        style.wrap(&mut out, &block.title());
        out.extend(lines.by_ref().take(block.members.len()));
        if let Some(order) = block.order_in_words() {
            style.wrap(&mut out, &format!("  {order}"));
        }
    }
    for (columns, rows) in [(SYSTEMS, beside.systems()), (COSTS, beside.costs())] {
        if rows.is_empty() {
            continue;
        }
        out.push(String::new());
        match drawn(&columns, &[0, 1, 2, 3], &rows, style) {
            Some(lines) => out.extend(lines),
            None => {
                for [what, of, there, here] in rows {
                    style.wrap(
                        &mut out,
                        &format!("{what}: {there} there ({of}), here {here}"),
                    );
                }
            }
        }
    }
    out
}

/// Some columns of a table as two lines of header and one for each row, if they
/// fit.
fn drawn<const N: usize>(
    names: &[&str],
    columns: &[usize],
    rows: &[[String; N]],
    style: &Style,
) -> Option<Vec<String>> {
    let header: Vec<String> = columns
        .iter()
        .map(|&place| style.text(names[place]))
        .collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut table = style.table(&header);
    for row in rows {
        let cell = |place: usize| match place {
            0 => style.text(&format!("  {}", row[0])),
            place => style.text(&row[place]),
        };
        table.add_row(columns.iter().map(|&place| cell(place)));
    }
    for place in 1..columns.len() {
        // Of the lists the second column is words.
        let is_word = N == SYSTEMS.len() && columns[place] == 1;
        if let Some(column) = table.column_mut(place).filter(|_| !is_word) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned());
    let lines: Vec<String> = lines.collect();
    let fits = |line: &String| line.chars().count() <= style.columns();
    lines.iter().all(fits).then_some(lines)
}

/// No table, for what is too narrow: as many lines all the same, cut off at
/// the edge.
fn stacked<const N: usize>(names: &[&str], rows: &[[String; N]], style: &Style) -> Vec<String> {
    let line = |first: &str, last: &str| {
        let line = style.text(&format!("  {first}: {last}"));
        line.chars().take(style.columns()).collect::<String>()
    };
    let mut lines = vec![line(names[0], names[N - 1]), String::new()];
    lines.extend(rows.iter().map(|row| line(&row[0], &row[N - 1])));
    lines
}

/// The section as Markdown; empty where there is none.
pub(crate) fn markdown(run: &Run) -> String {
    let Some(beside) = Beside::of(run) else {
        return String::new();
    };
    let mut out = format!(
        "\n## {HEADING}\n\n{}. {}\n",
        escape(&beside.paper.document),
        escape(&beside.paper.differs)
    );
    if let Some(sentence) = beside.sentence() {
        out.push_str(&format!("\n{}\n", escape(&sentence)));
    }
    for block in &beside.blocks {
        out.push_str(&format!("\n### {}\n\n", escape(&block.title())));
        out.push_str(&table(&beside.columns(), &beside.cells(block)));
        if let Some(order) = block.order_in_words() {
            out.push_str(&format!("\n{}\n", escape(&order)));
        }
    }
    for (title, columns, rows) in [
        ("Systems", SYSTEMS, beside.systems()),
        ("Against plain", COSTS, beside.costs()),
    ] {
        if !rows.is_empty() {
            out.push_str(&format!("\n### {title}\n\n"));
            out.push_str(&table(&columns.map(str::to_owned), &rows));
        }
    }
    out
}

fn table<const N: usize>(columns: &[String; N], rows: &[[String; N]]) -> String {
    let line = |cells: &[String; N]| {
        let cells: Vec<String> = cells.iter().map(|cell| escape(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut out = line(columns);
    out.push_str(&format!("|{}\n", "---|".repeat(N)));
    out.extend(rows.iter().map(line));
    out
}

/// The section of the page; nothing where there is none.
pub(crate) fn html(run: &Run) -> Option<Markup> {
    let beside = Beside::of(run)?;
    let columns = beside.columns();
    Some(html! {
        section class="beside" {
            h3 { (HEADING) }
            p { (beside.paper.document) }
            p class="note" { (beside.paper.differs) }
            @if let Some(sentence) = beside.sentence() { p { (sentence) } }
            @let charts = beside.charts();
            @if !charts.is_empty() {
                p class="note" {
                    "The diamond is the published ratio to " (beside.paper.base)
                    ", the dot with its 95 % interval is ours."
                }
                div class="charts" {
                    @for (title, svg) in charts {
                        figure { figcaption { (title) } (svg) }
                    }
                }
            }
            @if !beside.blocks.is_empty() {
                div class="scroll" { table class="ciphers" {
                    (head(&columns))
                    @for block in &beside.blocks {
                        tbody {
                            tr class="group" { th colspan=(columns.len()) scope="rowgroup" { (block.title()) } }
                            @for cells in beside.cells(block) { (row(&columns, &cells)) }
                            @if let Some(order) = block.order_in_words() {
                                tr class="order" { td colspan=(columns.len()) { (order) } }
                            }
                        }
                    }
                } }
            }
            @for (columns, rows) in [(SYSTEMS, beside.systems()), (COSTS, beside.costs())] {
                @if !rows.is_empty() {
                    div class="scroll" { table class="ciphers" {
                        (head(&columns.map(str::to_owned)))
                        tbody { @for cells in &rows { (row(&columns.map(str::to_owned), cells)) } }
                    } }
                }
            }
        }
    })
}

fn head<const N: usize>(columns: &[String; N]) -> Markup {
    html! { thead { tr { @for name in columns { th scope="col" { (name) } } } } }
}

fn row<const N: usize>(columns: &[String; N], cells: &[String; N]) -> Markup {
    html! {
        tr {
            th scope="row" { (cells[0]) }
            @for (name, cell) in columns.iter().zip(cells).skip(1) {
                td data-name=(name) { (cell) }
            }
        }
    }
}
