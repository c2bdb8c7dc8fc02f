//! A strip of columns a row: how many of each, or how much of each.

use super::{Axis, Canvas, Caption, Chart, Drawing, Drawn, Hang, LINE, Label, WIDTH, palette};
use maud::Markup;
use plotters::prelude::*;

/// Heights of a histogram, of a map, and of the gap below either.
const TALL: i32 = 40;
const FLAT: i32 = 18;
const GAP: i32 = 12;

/// Strips on one scale.
pub(crate) struct Strips {
    pub(crate) kind: Strip,
    /// What the width means, where that is said.
    pub(crate) scale: Option<Axis>,
    pub(crate) rows: Vec<(Label, RGBColor, Vec<f64>)>,
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
    pub(super) fn draw(&self, chart: &Chart) -> Markup {
        let rows: Vec<_> = self
            .rows
            .iter()
            .map(|row @ (label, _, columns)| {
                let high = match self.kind {
                    Strip::Histogram => TALL,
                    Strip::Map if columns.is_empty() => 0,
                    Strip::Map => FLAT,
                };
                (row, Caption::of(label), high)
            })
            .collect();
        let heights = rows
            .iter()
            .map(|(_, caption, high)| caption.height() + high + GAP);
        let foot: i32 = heights.sum();
        let below = if self.scale.is_some() { LINE } else { 0 };
        let mut drawing = Drawing::new(chart, foot + below);
        let mut y = 0;
        for ((label, colour, columns), caption, high) in &rows {
            let top = y + caption.height();
            drawing.row(label, |canvas| {
                caption.draw(canvas, y)?;
                match self.kind {
                    Strip::Histogram => histogram(canvas, columns, *colour, top),
                    Strip::Map => map(canvas, columns, *colour, top),
                }
            });
            y = top + high + GAP;
        }
        drawing.scenery(|canvas| {
            let ticks = self
                .scale
                .iter()
                .flat_map(|scale| scale.ticks.iter().map(move |tick| (scale, tick)));
            for (scale, (at, name)) in ticks {
                let (x, hang) = match (scale.share(*at) * f64::from(WIDTH)) as i32 {
                    0 => (0, Hang::Left),
                    x if x > WIDTH - 20 => (WIDTH, Hang::Right),
                    x => (x, Hang::Middle),
                };
                canvas.text(name, (x, foot + LINE / 2), hang, palette::MUTED)?;
            }
            Ok(())
        });
        drawing.finish()
    }
}

fn edge(column: usize, columns: usize) -> i32 {
    (column * WIDTH as usize / columns.max(1)) as i32
}

fn histogram(canvas: &Canvas<'_>, columns: &[f64], colour: RGBColor, top: i32) -> Drawn {
    let foot = top + TALL;
    let highest = columns.iter().copied().fold(1.0, f64::max);
    for (at, value) in columns
        .iter()
        .enumerate()
        .filter(|(_, value)| **value > 0.0)
    {
        // What is there is seen.
        let upper = foot - ((value / highest * f64::from(TALL)) as i32).max(2);
        let (left, next) = (edge(at, columns.len()), edge(at + 1, columns.len()));
        canvas.rectangle((left, upper), ((next - 1).max(left + 1), foot), colour)?;
    }
    canvas.line((0, foot), (WIDTH, foot), 1, palette::GRID)
}

fn map(canvas: &Canvas<'_>, columns: &[f64], colour: RGBColor, top: i32) -> Drawn {
    if columns.is_empty() {
        return Ok(());
    }
    for (at, share) in columns.iter().enumerate() {
        let corners = [edge(at, columns.len()), edge(at + 1, columns.len())];
        let corners = [(corners[0], top), (corners[1], top + FLAT)];
        let style = colour.mix(*share).filled();
        canvas.area.draw(&Rectangle::new(corners, style))?;
    }
    let corners = [(0, top), (WIDTH - 1, top + FLAT)];
    canvas
        .area
        .draw(&Rectangle::new(corners, palette::MUTED.stroke_width(1)))
}
