//! A document as one HTML file: no network, light and dark, phone and print.
//!
//! The page's script sorts, filters and shows values; without it the page says
//! the same. The browser runs that script only, by its hash.

use crate::document::{Block, Column, Document, Figure, Kind, PAGE, Rows, Table, Tone};
use crate::figure;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

const SCRIPT: &str = include_str!("script.js");

/// Number of rows from which a page is large. Browsers then do not lay out content that is out of
/// sight. A screenshot of the whole page would lack that content, so smaller pages do without this.
const LARGE: usize = 1000;

/// The whole file.
pub(crate) fn render(document: &Document) -> String {
    let large = rows(document) > LARGE;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="generator" content="cryptmark";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content=(policy(document));
                title { (document.title) }
                style { (PreEscaped(include_str!("style.css"))) }
            }
            body {
                a class="skip" href="#figures" { "Skip to the content" }
                header {
                    (blocks(&document.head))
                    div id="pick" {}
                }
                main id="figures" class=[large.then_some("large")] { (blocks(&document.body)) }
                @for script in scripts(document) { script { (PreEscaped(script)) } }
            }
        }
    }
    .into_string();
    harmless(&page)
}

/// A page without characters that reverse the direction of its text. Escaping excludes only markup.
pub(crate) fn harmless(page: &str) -> String {
    let harmless = |c| {
        if c != '\n' && figure::steers(c) {
            ' '
        } else {
            c
        }
    };
    page.chars().map(harmless).collect()
}

fn rows(document: &Document) -> usize {
    let rows = |block: &&Block| match &block.kind {
        Kind::Table(table) => table.groups.iter().map(|group| group.rows.len()).sum(),
        _ => 0,
    };
    document.parts(PAGE).iter().map(rows).sum()
}

/// The scripts of a page.
fn scripts(document: &Document) -> impl Iterator<Item = &'static str> {
    let scripts = [SCRIPT, document.script].into_iter();
    scripts.filter(|script| !script.is_empty())
}

/// The page's content security policy. A page may fetch nothing, whatever a record holds, and may
/// run no scripts but its own. Forms go only to the program that serves the page, if there is one.
/// A page with a script of its own may ask that program, and may make pictures.
fn policy(document: &Document) -> String {
    let hashes = scripts(document)
        .map(|script| format!(" 'sha256-{}'", STANDARD.encode(Sha256::digest(script))));
    let hashes: String = hashes.collect();
    let forms = if document.served { "'self'" } else { "'none'" };
    let own = match document.script {
        "" => "",
        _ => " connect-src 'self'; img-src blob: data:;",
    };
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src{hashes};{own} \
         base-uri 'none'; form-action {forms}"
    )
}

/// Parts of a document alone.
pub(crate) fn blocks(blocks: &[Block]) -> Markup {
    html! { @for block in blocks.iter().filter(|block| block.on & PAGE != 0) { (block_of(block)) } }
}

fn block_of(block: &Block) -> Markup {
    match &block.kind {
        Kind::Heading(1, text) => html! { h1 { (text) } },
        Kind::Heading(2, text) => html! { h2 { (text) } },
        Kind::Heading(3, text) => html! { h3 { (text) } },
        Kind::Heading(_, text) => html! { h4 { (text) } },
        Kind::Text(tone, text) => html! { p class=[class(*tone)] { (text) } },
        Kind::List(title, items) => html! {
            @if let Some(title) = title { p { strong { (title) } } }
            ul { @for item in items { li { (item) } } }
        },
        Kind::Table(table) => table_of(table),
        Kind::Charts(figures) => {
            html! { div class="charts" { @for figure in figures { (figure_of(figure)) } } }
        }
        Kind::Columns(columns) => {
            let has_table = |block: &Block| matches!(block.kind, Kind::Table(_));
            let tabled = columns.iter().flatten().any(has_table);
            html! {
                div class={ "charts pair" @if tabled { " tabled" } } {
                    @for column in columns { section { (self::blocks(column)) } }
                }
            }
        }
        Kind::Facts(facts) => html! {
            dl { @for (name, value) in facts { div { dt { (name) } dd { (value) } } } }
        },
        Kind::Verbatim(lines) => html! { pre { (lines.join("\n")) } },
        Kind::Warnings(warnings) if warnings.is_empty() => html! {},
        Kind::Warnings(warnings) => html! {
            h3 { "Warnings" }
            ul class="warning" { @for warning in warnings { li { (warning) } } }
        },
        Kind::Gap => html! {},
        Kind::Markup(markup) => markup.clone(),
    }
}

fn class(tone: Tone) -> Option<&'static str> {
    match tone {
        Tone::Lead => Some("lead"),
        Tone::Plain => None,
        Tone::Note => Some("note"),
        Tone::Meta => Some("meta"),
        Tone::Warning => Some("warning"),
    }
}

fn figure_of(figure: &Figure) -> Markup {
    html! {
        figure {
            @if !figure.title.is_empty() {
                figcaption {
                    strong { (figure.title) }
                    @if !figure.note.is_empty() { " " span class="note" { (figure.note) } }
                }
            }
            (figure.chart.render())
        }
    }
}

/// A table that the script sorts, and filters by its rows that can be picked. A phone shows the
/// column name next to each value.
fn table_of(table: &Table) -> Markup {
    let stands = |column: &&Column| column.on & PAGE != 0;
    let columns: Vec<&Column> = table.columns.iter().filter(stands).collect();
    let sorts = table
        .groups
        .iter()
        .flat_map(|group| &group.rows)
        .any(|row| row.pick.is_some());
    let side = |column: &Column| (!column.right).then_some("word");
    html! {
        div class="scroll" { table class=[sorts.then_some("sorts")] {
            thead { tr { @for column in &columns { th scope="col" class=[side(column)] { (column.name) } } } }
            @for Rows { title, detail, rows, remark } in &table.groups {
                tbody {
                    @if !title.is_empty() {
                        tr class="group" { th colspan=(columns.len()) scope="rowgroup" {
                            (title) @if !detail.is_empty() { " " span class="note" { (detail) } }
                        } }
                    }
                    @for row in rows {
                        @let cells = table.columns.iter().zip(&row.cells).filter(|(column, _)| stands(column));
                        tr data-system=[row.pick.as_ref().map(|pick| &pick.system)]
                            data-cipher=[row.pick.as_ref().map(|pick| &pick.cipher)] {
                            @for (number, (column, cell)) in cells.enumerate() {
                                @if number == 0 {
                                    th scope="row" title=[row.hint.as_ref()] {
                                        (cell.text) @if let Some(note) = &row.note { " " span class="note" { (note) } }
                                    }
                                } @else {
                                    td class=[side(column)] data-name=(column.name) data-value=[cell.value] { (cell.text) }
                                }
                            }
                        }
                    }
                    @if let Some(remark) = remark {
                        tr class="order" { td colspan=(columns.len()) { (remark) } }
                    }
                }
            }
        } }
    }
}
