//! Tables that the page's script sorts and filters, and that are whole without it.

use super::pick;
use lab::record::Trial;
use maud::{Markup, html};

/// What a cell shows, and what it is sorted by.
pub(crate) struct Cell {
    text: String,
    value: Option<f64>,
}

impl Cell {
    /// Sorted by its words.
    pub(crate) fn word(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            value: None,
        }
    }

    /// Sorted by `value`; last where that is no number.
    pub(crate) fn number(text: String, value: f64) -> Self {
        Self::known(text, Some(value))
    }

    /// The same of what nobody may have measured.
    pub(crate) fn known(text: String, value: Option<f64>) -> Self {
        Self {
            text,
            value: value.filter(|value| value.is_finite()),
        }
    }
}

/// The head of a table.
pub(crate) fn head<'a>(columns: impl IntoIterator<Item = &'a str>) -> Markup {
    html! { thead { tr { @for name in columns { th scope="col" { (name) } } } } }
}

/// A heading over the rows that follow in their `tbody`, over `columns` columns.
pub(crate) fn group(columns: usize, title: Markup) -> Markup {
    html! { tr class="group" { th colspan=(columns) scope="rowgroup" { (title) } } }
}

/// A row of what no reader picks by system or cipher.
pub(crate) fn named<'a>(
    name: Markup,
    columns: impl IntoIterator<Item = &'a str>,
    cells: &[Cell],
) -> Markup {
    html! { tr { th scope="row" { (name) } (values(columns, cells)) } }
}

fn values<'a>(columns: impl IntoIterator<Item = &'a str>, cells: &[Cell]) -> Markup {
    html! {
        @for (column, cell) in columns.into_iter().zip(cells) {
            td data-name=(column) data-value=[cell.value] { (cell.text) }
        }
    }
}

/// A row of `trial`: its name, `title` for who points at it, and its cells
/// under `columns`, which a phone shows beside each value.
pub(crate) fn row<'a>(
    trial: &Trial,
    title: Option<&str>,
    name: Markup,
    columns: impl IntoIterator<Item = &'a str>,
    cells: &[Cell],
) -> Markup {
    let (system, cipher) = (
        pick::system(&trial.system),
        pick::cipher(trial.cipher.as_deref(), trial.key_bits),
    );
    picked(system, &cipher, title, name, columns, cells)
}

/// The same of what is picked as `system` and `cipher`.
pub(crate) fn picked<'a>(
    system: &str,
    cipher: &str,
    title: Option<&str>,
    name: Markup,
    columns: impl IntoIterator<Item = &'a str>,
    cells: &[Cell],
) -> Markup {
    html! {
        tr data-system=(system) data-cipher=(cipher) {
            th scope="row" title=[title] { (name) }
            (values(columns, cells))
        }
    }
}
