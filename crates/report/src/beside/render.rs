//! The section of published figures as text, Markdown and HTML.

use super::{Beside, Block, Member, Pair, cost_here, printed};
use crate::html::chart::ratios;
use crate::html::table::{self, Cell};
use crate::markdown::escape;
use crate::text::Style;
use comfy_table::CellAlignment;
use lab::record::{Published, Run, Trial};
use lab::stats;
use maud::{Markup, html};

const HEADING: &str = "Beside the paper";

/// Columns of pairs of systems, and of costs.
const SYSTEMS: [&str; 4] = ["what", "systems", "there", "here"];
const COSTS: [&str; 4] = ["workload", "published", "there", "here"];

impl<'a> Beside<'a> {
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
            let base = base.filter(|base| base.name() != member.name());
            let ratios = base.map(|base| (member.ratio_there(&base), member.ratio_here(&base)));
            let (there, here) = ratios.unwrap_or_default();
            let [median, mean] = [member.median(), member.mean()];
            [member.name(), member.there(), there, median, mean, here]
        });
        cells.collect()
    }

    /// `AES 0.5 Mb/s; Serpent 0.49 Mb/s, 0.98`: each cipher's figure, and its
    /// ratio to the base's.
    fn in_a_line(
        &self,
        block: &Block<'a>,
        name: fn(&Member<'a>) -> String,
        figure: fn(&Member<'a>) -> String,
        ratio: fn(&Member<'a>, &Member<'a>) -> String,
    ) -> String {
        let base = block.base(self.paper);
        let ciphers = block.members.iter().map(|member| {
            let told = format!("{} {}", name(member), figure(member));
            match base.filter(|base| base.name() != member.name()) {
                Some(base) => format!("{told}, {}", ratio(member, &base)),
                None => told,
            }
        });
        ciphers.collect::<Vec<_>>().join("; ")
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
            let member = Member { published, trial };
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
    if beside
        .blocks
        .iter()
        .any(|block| block.base(beside.paper).is_some())
    {
        let base = &beside.paper.base;
        let note =
            format!("Behind a figure stands its ratio to {base}'s, ours with its 95 % interval.");
        style.wrap(&mut out, &note);
    }
    let mut above = String::new();
    for block in &beside.blocks {
        // Several of the document's drives may stand beside the same cells.
        let what = format!("{}, {}", block.members[0].what(), block.ours());
        if what != above {
            out.push(String::new());
            style.wrap(&mut out, &what);
            above = what;
            let here =
                beside.in_a_line(block, Member::our_name, Member::median, Member::ratio_here);
            style.wrap(&mut out, &format!("  here: {here}"));
        }
        let there = beside.in_a_line(block, Member::name, Member::there, Member::ratio_there);
        let order = block.order_in_words();
        let order = order.map_or_else(String::new, |order| format!(". {order}"));
        style.wrap(&mut out, &format!("  {}: {there}{order}", block.source()));
    }
    for (columns, rows) in [(SYSTEMS, beside.systems()), (COSTS, beside.costs())] {
        if rows.is_empty() {
            continue;
        }
        out.push(String::new());
        match drawn(&columns, &rows, style) {
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

/// The rows as a table, if it fits.
fn drawn(columns: &[&str; 4], rows: &[[String; 4]], style: &Style) -> Option<Vec<String>> {
    let mut table = style.table(&columns.map(|name| name));
    for row in rows {
        table.add_row(row.iter().map(|cell| style.text(cell)));
    }
    for place in [2, 3] {
        if let Some(column) = table.column_mut(place) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned());
    let lines: Vec<String> = lines.collect();
    let fits = |line: &String| line.chars().count() <= style.columns();
    lines.iter().all(fits).then_some(lines)
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
        out.push_str(&pipes(&beside.columns(), &beside.cells(block)));
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
            out.push_str(&pipes(&columns.map(str::to_owned), &rows));
        }
    }
    out
}

fn pipes<const N: usize>(columns: &[String; N], rows: &[[String; N]]) -> String {
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
                div class="scroll" { table class="ciphers sorts" {
                    (table::head(columns.iter().map(String::as_str)))
                    @for block in &beside.blocks {
                        tbody {
                            (table::group(columns.len(), html! { (block.title()) }))
                            @for row in beside.rows(block, &columns) { (row) }
                            @if let Some(order) = block.order_in_words() {
                                tr class="order" { td colspan=(columns.len()) { (order) } }
                            }
                        }
                    }
                } }
            }
            @if !beside.systems.is_empty() {
                div class="scroll" { table class="ciphers sorts" {
                    (table::head(SYSTEMS))
                    tbody { @for row in beside.system_rows() { (row) } }
                } }
            }
            @if !beside.costs.is_empty() {
                div class="scroll" { table class="ciphers sorts" {
                    (table::head(COSTS))
                    tbody { @for row in beside.cost_rows() { (row) } }
                } }
            }
        }
    })
}

impl Beside<'_> {
    /// The rows of a block, with what they are sorted by.
    fn rows(&self, block: &Block<'_>, columns: &[String; 6]) -> Vec<Markup> {
        let base = block.base(self.paper);
        let names = || columns.iter().skip(1).map(String::as_str);
        let rows = block.members.iter().zip(self.cells(block));
        let row = |(member, [name, texts @ ..]): (&Member<'_>, [String; 6])| {
            let base = base.filter(|base| base.name() != member.name());
            let values = [
                Some(member.published.value),
                base.map(|base| member.published.value / base.published.value),
                stats::median(&member.figures()),
                member.mean_of_all(),
                base.and_then(|base| member.ratio(&base))
                    .map(|ratio| ratio.median),
            ];
            let cells = texts.into_iter().zip(values);
            let cells: Vec<Cell> = cells
                .map(|(text, value)| Cell::known(text, value))
                .collect();
            table::row(member.trial, None, html! { (name) }, names(), &cells)
        };
        rows.map(row).collect()
    }

    fn system_rows(&self) -> Vec<Markup> {
        let rows = self.systems.iter().zip(self.systems());
        let row = |(pair, [what, of, there, here]): (&Pair<'_>, [String; 4])| {
            let (first, second) = (pair.first, pair.second);
            let ratio = first.ratio(&second).map(|ratio| ratio.median);
            let cells = [
                Cell::word(of),
                Cell::number(there, first.published.value / second.published.value),
                Cell::known(here, ratio),
            ];
            let columns = SYSTEMS.into_iter().skip(1);
            table::row(first.trial, None, html! { (what) }, columns, &cells)
        };
        rows.map(row).collect()
    }

    fn cost_rows(&self) -> Vec<Markup> {
        let rows = self.costs.iter().zip(self.costs());
        let row = |(&(published, trial), [what, of, there, here]): (
            &(&Published, &Trial),
            [String; 4],
        )| {
            // The smaller the ratio, the higher the cost.
            let cost = trial.overhead.as_ref().map(|cost| -cost.ratio.median);
            let cells = [
                Cell::word(of),
                Cell::number(there, published.value),
                Cell::known(here, cost),
            ];
            let columns = COSTS.into_iter().skip(1);
            table::row(trial, None, html! { (what) }, columns, &cells)
        };
        rows.map(row).collect()
    }
}
