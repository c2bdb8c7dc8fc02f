//! A document as Markdown.

use crate::document::{Block, Column, Document, Kind, MARKDOWN, Rows, Table};
use crate::figure;

/// Blocks with an empty line between them.
pub(crate) fn render(document: &Document) -> String {
    let mut out = String::new();
    let mut in_list = false;
    for block in document.parts(MARKDOWN) {
        let Some(text) = shown(block) else { continue };
        let is_list = matches!(block.kind, Kind::List(..));
        if !out.is_empty() {
            out.push_str(if in_list && is_list { "\n" } else { "\n\n" });
        }
        in_list = is_list;
        out.push_str(&text);
    }
    out.push('\n');
    out
}

/// Nothing of what Markdown does not show.
fn shown(block: &Block) -> Option<String> {
    Some(match &block.kind {
        Kind::Heading(level, text) => {
            format!(
                "{} {}",
                "#".repeat(usize::from(*level).saturating_sub(1)),
                escape(text)
            )
        }
        Kind::Text(_, text) => escape(text),
        Kind::List(title, items) => {
            let title = title
                .as_ref()
                .map(|title| format!("{}: ", escape(title)))
                .unwrap_or_default();
            points(items, &title)
        }
        Kind::Table(table) => pipes(table),
        Kind::Verbatim(lines) => {
            let lines = lines
                .iter()
                .map(|line| figure::one_line(line).replace('`', "'"));
            format!("```\n{}\n```", lines.collect::<Vec<_>>().join("\n"))
        }
        Kind::Warnings(warnings) if warnings.is_empty() => return None,
        Kind::Warnings(warnings) => format!("## Warnings\n\n{}", points(warnings, "")),
        Kind::Charts(_) | Kind::Columns(_) | Kind::Facts(_) | Kind::Gap | Kind::Markup(_) => {
            return None;
        }
    })
}

fn points(items: &[String], title: &str) -> String {
    let items: Vec<String> = items
        .iter()
        .map(|item| format!("* {title}{}", escape(item)))
        .collect();
    items.join("\n")
}

fn pipes(table: &Table) -> String {
    let stands = |column: &&Column| column.on & MARKDOWN != 0;
    let by = table.grouped.as_ref().filter(stands);
    let columns: Vec<&Column> = by
        .into_iter()
        .chain(table.columns.iter().filter(stands))
        .collect();
    let names = columns.iter().map(|column| escape(&column.name));
    let mut lines = vec![line(names)];
    let rules = columns
        .iter()
        .map(|column| if column.right { "---:|" } else { "---|" });
    lines.push(format!("|{}", rules.collect::<String>()));
    for Rows { title, rows, .. } in &table.groups {
        for (number, row) in rows.iter().enumerate() {
            let title = by.map(|_| escape(table.title(title, number)));
            let cells = table.columns.iter().zip(&row.cells);
            let cells = cells.filter(|(column, _)| stands(column));
            lines.push(line(
                title
                    .into_iter()
                    .chain(cells.map(|(_, cell)| escape(&cell.text))),
            ));
        }
    }
    lines.join("\n")
}

fn line(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
}

/// Text that Markdown shows as it is, in a table cell as well.
fn escape(text: &str) -> String {
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
