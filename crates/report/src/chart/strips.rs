//! A strip of columns a row: how many of each, or how much of each.

use super::palette::{self, Colour};
use super::{Axis, Caption, Drawing, LINE, Label, WIDTH, path, rectangle};
use maud::{Markup, html};

/// Heights of a histogram, of a map, and of the gap below either.
const TALL: i32 = 40;
const FLAT: i32 = 18;
const GAP: i32 = 12;

/// Strips on one scale.
pub(crate) struct Strips {
    pub(crate) kind: Strip,
    /// The axis that gives the width its meaning, if there is one.
    pub(crate) scale: Option<Axis>,
    pub(crate) rows: Vec<(Label, Colour, Vec<f64>)>,
}

/// How a column shows its value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strip {
    /// By its height, of the highest of its row.
    Histogram,
    /// By its depth of colour, of 1; a row without columns has no strip.
    Map,
}

impl Strips {
    pub(super) fn draw(&self) -> Drawing {
        let mut drawing = Drawing::default();
        let mut y = 0;
        for (label, colour, columns) in &self.rows {
            let caption = Caption::of(label);
            let top = y + caption.height();
            let (strip, high) = match self.kind {
                Strip::Histogram => (histogram(columns, colour, top), TALL),
                Strip::Map if columns.is_empty() => (Markup::default(), 0),
                Strip::Map => (map(columns, colour, top), FLAT),
            };
            drawing.row(label, html! { (caption.draw(y)) (strip) });
            y = top + high + GAP;
        }
        if let Some(scale) = &self.scale {
            let x = |value: f64| (scale.share(value) * f64::from(WIDTH)) as i32;
            drawing.scenery.push(scale.names(x, y + LINE / 2));
            y += LINE;
        }
        drawing.height = y;
        drawing
    }
}

fn edge(column: usize, columns: usize) -> i32 {
    (column * WIDTH as usize / columns.max(1)) as i32
}

fn histogram(columns: &[f64], colour: Colour, top: i32) -> Markup {
    let foot = top + TALL;
    let highest = columns.iter().copied().fold(1.0, f64::max);
    html! {
        @for (at, value) in columns.iter().enumerate().filter(|(_, value)| **value > 0.0) {
            // Every value above zero must be visible.
            @let upper = foot - ((value / highest * f64::from(TALL)) as i32).max(2);
            @let (left, next) = (edge(at, columns.len()), edge(at + 1, columns.len()));
            (rectangle((left, upper), ((next - 1).max(left + 1), foot), colour))
        }
        (path(&[(0, foot), (WIDTH, foot)], 1, palette::GRID))
    }
}

fn map(columns: &[f64], colour: Colour, top: i32) -> Markup {
    let x = |column| edge(column, columns.len());
    html! {
        @for (at, share) in columns.iter().enumerate() {
            rect x=(x(at)) y=(top) width=(x(at + 1) - x(at)) height=(FLAT) fill=(colour)
                opacity=(format_args!("{share:.2}")) {}
        }
        rect x="0" y=(top) width=(WIDTH - 1) height=(FLAT) fill="none" stroke=(palette::MUTED) {}
    }
}
