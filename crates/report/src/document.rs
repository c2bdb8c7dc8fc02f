//! A report as data: what each section says, written once, for whichever output
//! shows it.

use crate::chart::Chart;
use crate::{figure, group};
use lab::record::Trial;
use maud::{Markup, html};
use std::borrow::Cow;

/// Outputs in which a part stands, one bit each.
pub(crate) type Outputs = u8;
pub(crate) const TERMINAL: Outputs = 1;
pub(crate) const MARKDOWN: Outputs = 2;
pub(crate) const PAGE: Outputs = 4;
pub(crate) const ALL: Outputs = TERMINAL | MARKDOWN | PAGE;

/// A report.
#[derive(Default)]
pub(crate) struct Document {
    /// The title that a browser shows.
    pub(crate) title: String,
    /// Whether its forms go to the program that serves it.
    pub(crate) served: bool,
    /// A script of its own, beside the one that every page has; empty for none.
    pub(crate) script: &'static str,
    /// The subject, and the answer.
    pub(crate) head: Vec<Block>,
    pub(crate) body: Vec<Block>,
}

impl Document {
    /// The parts that stand in an output, one after the other.
    pub(crate) fn parts(&self, on: Outputs) -> Vec<&Block> {
        let mut parts = Vec::new();
        let mut waiting: Vec<&Block> = self.head.iter().chain(&self.body).rev().collect();
        while let Some(block) = waiting.pop() {
            match &block.kind {
                _ if block.on & on == 0 => {}
                Kind::Columns(columns) => waiting.extend(columns.iter().flatten().rev()),
                _ => parts.push(block),
            }
        }
        parts
    }
}

/// A part of a document.
pub(crate) struct Block {
    pub(crate) on: Outputs,
    pub(crate) kind: Kind,
}

/// The kind of a part.
pub(crate) enum Kind {
    /// Level 1 is a page's name, 2 what it is about, 3 and 4 sections.
    Heading(u8, String),
    /// A paragraph.
    Text(Tone, String),
    /// Points, under a title that is not a heading.
    List(Option<String>, Vec<String>),
    Table(Table),
    Charts(Vec<Figure>),
    /// Parts that are placed side by side if there is room.
    Columns(Vec<Vec<Block>>),
    /// Names with what they mean.
    Facts(Vec<(String, String)>),
    /// Lines that are copied, and so never broken.
    Verbatim(Vec<String>),
    Warnings(Vec<String>),
    /// An empty line on a terminal.
    Gap,
    /// Content that only a page can show.
    Markup(Markup),
}

/// The purpose of a paragraph.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// The answer.
    Lead,
    Plain,
    /// How to read what follows.
    Note,
    /// The place and time of the measurement.
    Meta,
    /// A warning that readers must not miss.
    Warning,
}

/// A chart with its caption.
pub(crate) struct Figure {
    pub(crate) title: String,
    pub(crate) note: String,
    pub(crate) chart: Chart,
}

impl Block {
    fn new(kind: Kind) -> Self {
        Self { on: ALL, kind }
    }

    /// The same in some outputs only.
    pub(crate) fn on(self, on: Outputs) -> Self {
        Self { on, ..self }
    }

    pub(crate) fn heading(level: u8, text: impl Into<String>) -> Self {
        Self::new(Kind::Heading(level, text.into()))
    }

    pub(crate) fn lead(text: impl Into<String>) -> Self {
        Self::new(Kind::Text(Tone::Lead, text.into()))
    }

    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::new(Kind::Text(Tone::Plain, text.into()))
    }

    pub(crate) fn note(text: impl Into<String>) -> Self {
        Self::new(Kind::Text(Tone::Note, text.into()))
    }

    pub(crate) fn meta(text: impl Into<String>) -> Self {
        Self::new(Kind::Text(Tone::Meta, text.into()))
    }

    pub(crate) fn warning(text: impl Into<String>) -> Self {
        Self::new(Kind::Text(Tone::Warning, text.into()))
    }

    pub(crate) fn list(items: impl IntoIterator<Item = String>) -> Self {
        Self::new(Kind::List(None, items.into_iter().collect()))
    }

    pub(crate) fn titled(
        title: impl Into<String>,
        items: impl IntoIterator<Item = String>,
    ) -> Self {
        Self::new(Kind::List(Some(title.into()), items.into_iter().collect()))
    }

    pub(crate) fn table(table: Table) -> Self {
        Self::new(Kind::Table(table))
    }

    /// Charts, on the page.
    pub(crate) fn charts(figures: Vec<Figure>) -> Self {
        Self::new(Kind::Charts(figures)).on(PAGE)
    }

    /// One chart without a caption, on the page.
    pub(crate) fn chart(chart: Chart) -> Self {
        let (title, note) = (String::new(), String::new());
        Self::charts(vec![Figure { title, note, chart }])
    }

    pub(crate) fn columns(columns: Vec<Vec<Block>>) -> Self {
        Self::new(Kind::Columns(columns))
    }

    /// Names with what they mean, on the page.
    pub(crate) fn facts<N: Into<String>, V: Into<String>>(
        facts: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let facts = facts
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()));
        Self::new(Kind::Facts(facts.collect())).on(PAGE)
    }

    /// The meaning of words and charts, at the end of a page.
    pub(crate) fn how_to_read<const N: usize>(words: [(&str, &str); N]) -> [Self; 3] {
        let heading = Self::heading(3, "How to read this").on(PAGE);
        [Self::markup(html! { hr; }), heading, Self::facts(words)]
    }

    pub(crate) fn verbatim(lines: Vec<String>) -> Self {
        Self::new(Kind::Verbatim(lines))
    }

    pub(crate) fn warnings(warnings: Vec<String>) -> Self {
        Self::new(Kind::Warnings(warnings))
    }

    pub(crate) fn gap() -> Self {
        Self::new(Kind::Gap).on(TERMINAL)
    }

    pub(crate) fn markup(markup: Markup) -> Self {
        Self::new(Kind::Markup(markup)).on(PAGE)
    }
}

/// Figures in rows.
#[derive(Default)]
pub(crate) struct Table {
    /// The column that names the groups. Without this column, each group has a title row of its
    /// own.
    pub(crate) grouped: Option<Column>,
    /// Whether the column of groups has a title in the first row of each alone.
    pub(crate) once: bool,
    /// The first of them names the rows.
    pub(crate) columns: Vec<Column>,
    pub(crate) groups: Vec<Rows>,
}

/// A column.
pub(crate) struct Column {
    pub(crate) name: Cow<'static, str>,
    /// Its name on a terminal.
    pub(crate) short: Option<Cow<'static, str>>,
    pub(crate) on: Outputs,
    /// Whether it has figures, which stand on the right.
    pub(crate) right: bool,
    /// It is left out of a terminal's table at the step after this one, as the
    /// terminal gets narrower.
    pub(crate) until: u8,
    /// Whether a terminal shows no name, and sets the cells in.
    pub(crate) bare: bool,
    /// Whether its cells say without its name what they are.
    pub(crate) alone: bool,
}

/// Rows of one kind.
#[derive(Default)]
pub(crate) struct Rows {
    pub(crate) title: String,
    /// More on the kind.
    pub(crate) detail: String,
    pub(crate) rows: Vec<Row>,
    /// A remark on all the rows, on the page.
    pub(crate) remark: Option<String>,
}

/// A row: a cell for each column.
#[derive(Default)]
pub(crate) struct Row {
    pub(crate) cells: Vec<Cell>,
    pub(crate) pick: Option<Pick>,
    /// A hint for readers who point at its name.
    pub(crate) hint: Option<String>,
    /// Behind its name, on the page.
    pub(crate) note: Option<String>,
}

/// The text of a cell, and its sort key.
#[derive(Default)]
pub(crate) struct Cell {
    pub(crate) text: String,
    /// On a terminal.
    pub(crate) short: Option<String>,
    pub(crate) value: Option<f64>,
}

/// The key by which a reader picks rows and charts: the system, and the usual name of the cipher.
#[derive(Clone)]
pub(crate) struct Pick {
    pub(crate) system: String,
    pub(crate) cipher: String,
}

impl Pick {
    /// `plain` and `none` stand for a system that does not encrypt.
    pub(crate) fn new(system: &str, cipher: Option<&str>, key_bits: Option<u32>) -> Self {
        let plain = group::is_unencrypted(system);
        Self {
            system: if plain { "plain" } else { system }.to_owned(),
            cipher: cipher.map_or_else(
                || "none".to_owned(),
                |cipher| figure::cipher(cipher, key_bits),
            ),
        }
    }

    pub(crate) fn of(trial: &Trial) -> Self {
        Self::new(&trial.system, trial.cipher.as_deref(), trial.key_bits)
    }
}

impl Column {
    pub(crate) fn word(name: impl Into<Cow<'static, str>>) -> Self {
        Self {
            name: name.into(),
            short: None,
            on: ALL,
            right: false,
            until: u8::MAX,
            bare: false,
            alone: false,
        }
    }

    pub(crate) fn number(name: impl Into<Cow<'static, str>>) -> Self {
        Self {
            right: true,
            ..Self::word(name)
        }
    }

    pub(crate) fn on(self, on: Outputs) -> Self {
        Self { on, ..self }
    }

    pub(crate) fn until(self, until: u8) -> Self {
        Self { until, ..self }
    }

    pub(crate) fn alone(self) -> Self {
        Self {
            alone: true,
            ..self
        }
    }

    pub(crate) fn bare(self) -> Self {
        Self { bare: true, ..self }
    }

    pub(crate) fn short(self, short: impl Into<Cow<'static, str>>) -> Self {
        Self {
            short: Some(short.into()),
            ..self
        }
    }
}

impl Table {
    pub(crate) fn new(columns: Vec<Column>, groups: Vec<Rows>) -> Self {
        Self {
            columns,
            groups,
            ..Self::default()
        }
    }

    /// The text in the group column of row `number` of the group `title`.
    pub(crate) fn title<'a>(&self, title: &'a str, number: usize) -> &'a str {
        if number > 0 && self.once { "" } else { title }
    }

    /// One group without a title.
    pub(crate) fn plain(columns: Vec<Column>, rows: Vec<Row>) -> Self {
        Self::new(
            columns,
            vec![Rows {
                rows,
                ..Rows::default()
            }],
        )
    }

    /// Shows its groups in a column of their own, on outputs that have that column.
    pub(crate) fn grouped(self, by: Column) -> Self {
        Self {
            grouped: Some(by),
            ..self
        }
    }
}

impl Row {
    pub(crate) fn new(cells: Vec<Cell>) -> Self {
        Self {
            cells,
            ..Self::default()
        }
    }

    /// The row of a trial, picked by its system and cipher.
    pub(crate) fn of(trial: &Trial, cells: Vec<Cell>) -> Self {
        Self {
            pick: Some(Pick::of(trial)),
            ..Self::new(cells)
        }
    }

    pub(crate) fn hint(self, hint: Option<&str>) -> Self {
        Self {
            hint: hint.map(str::to_owned),
            ..self
        }
    }
}

impl Cell {
    /// Sorted by its text.
    pub(crate) fn word(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// A cell sorted by `value`. It comes last if `value` is not a finite number.
    pub(crate) fn number(text: impl Into<String>, value: f64) -> Self {
        Self::known(text, Some(value))
    }

    /// The same for a value that may not have been measured.
    pub(crate) fn known(text: impl Into<String>, value: Option<f64>) -> Self {
        Self {
            value: value.filter(|value| value.is_finite()),
            ..Self::word(text)
        }
    }

    /// Another text on a terminal.
    pub(crate) fn short(self, short: impl Into<String>) -> Self {
        Self {
            short: Some(short.into()),
            ..self
        }
    }
}
