//! The section of published figures as text, Markdown and HTML.

use super::{Beside, Block, cost_here, printed};
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
    let mut lines = drawn(&columns, &[&[0, 1, 2, 3, 4, 5], &[0, 2, 5]], &rows, style).into_iter();
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
        if !rows.is_empty() {
            out.push(String::new());
            out.extend(drawn(&columns, &[&[0, 1, 2, 3]], &rows, style));
        }
    }
    out
}

/// A table of the first of `choices` of columns that fits, and the last choice
/// broken off at the edge where none does: two lines of header, one for each row.
fn drawn<const N: usize>(
    names: &[&str],
    choices: &[&[usize]],
    rows: &[[String; N]],
    style: &Style,
) -> Vec<String> {
    let draw = |columns: &[usize]| {
        let header: Vec<&str> = columns.iter().map(|&place| names[place]).collect();
        let header: Vec<String> = header.iter().map(|name| style.text(name)).collect();
        let header: Vec<&str> = header.iter().map(String::as_str).collect();
        let mut table = style.table(&header);
        for row in rows {
            let indented = |place: usize| match place {
                0 => format!("  {}", row[0]),
                place => row[place].clone(),
            };
            table.add_row(columns.iter().map(|&place| style.text(&indented(place))));
        }
        for place in 1..columns.len() {
            // Words stand on the left, numbers on the right.
            let is_word = N == 4 && columns[place] == 1;
            if let Some(column) = table.column_mut(place).filter(|_| !is_word) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let lines = table.lines().map(|line| line.trim_end().to_owned());
        lines.collect::<Vec<String>>()
    };
    let width = |line: &String| line.chars().count();
    let mut drawings = choices.iter().map(|columns| draw(columns));
    let fits = |lines: &Vec<String>| lines.iter().all(|line| width(line) <= style.columns());
    drawings
        .find(fits)
        .unwrap_or_else(|| stacked(names, rows, style))
}

/// No table, for what is too narrow: as many lines all the same.
fn stacked<const N: usize>(names: &[&str], rows: &[[String; N]], style: &Style) -> Vec<String> {
    let cut = |line: String| {
        let line = style.text(&line);
        line.chars().take(style.columns()).collect::<String>()
    };
    let ends = |cells: &[&str]| {
        let (first, last) = (cells.first(), cells.last());
        format!("  {}: {}", first.unwrap_or(&""), last.unwrap_or(&""))
    };
    let mut lines = vec![cut(ends(names)), String::new()];
    for row in rows {
        let cells: Vec<&str> = row.iter().map(String::as_str).collect();
        lines.push(cut(ends(&cells)));
    }
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
