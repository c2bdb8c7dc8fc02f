//! A dot with its interval a row, on a scale that all rows share.

use super::palette::{self, Colour};
use super::{
    Axis, Caption, Drawing, Hang, LINE, Label, WIDTH, clipped, mark, path, rectangle, text, whisker,
};
use crate::figure;
use maud::{Markup, html};

/// Heights: of the strip that shows a row, of a title with its gap, of the gap
/// below a block.
const STRIP: i32 = 18;
const TITLE: i32 = LINE + 5;
const GAP: i32 = 12;

/// Rows on one scale.
pub(crate) struct Dots {
    pub(crate) scale: Scale,
    /// The text below the scale.
    pub(crate) foot: &'static str,
    pub(crate) blocks: Vec<Block>,
}

/// The meaning of a horizontal position.
pub(crate) enum Scale {
    /// A ratio, with a line at 1; values beyond `most` are drawn at the edge.
    Ratio { most: f64 },
    /// Seconds, logarithmic.
    Seconds,
}

/// Rows under a title, which may be empty.
pub(crate) struct Block {
    pub(crate) title: String,
    /// The range within which two measurements of the same target differ.
    pub(crate) band: Option<[f64; 2]>,
    pub(crate) rows: Vec<Dot>,
}

/// A row.
pub(crate) struct Dot {
    pub(crate) label: Label,
    pub(crate) at: f64,
    pub(crate) colour: Colour,
    pub(crate) interval: [f64; 2],
    /// The middle half, as a box.
    pub(crate) half: Option<[f64; 2]>,
    /// Something else, as a diamond.
    pub(crate) other: Option<(f64, Colour)>,
}

impl Dot {
    pub(crate) fn new(label: Label, at: f64, interval: [f64; 2], colour: Colour) -> Self {
        Self {
            label,
            at,
            colour,
            interval,
            half: None,
            other: None,
        }
    }

    fn draw(&self, x: impl Fn(f64) -> i32, middle: i32) -> Markup {
        let [low, high] = self.interval.map(&x);
        let line = if self.half.is_some() {
            palette::BLUE
        } else {
            self.colour
        };
        html! {
            @if let Some((at, colour)) = self.other { (mark(3, (x(at), middle), colour)) }
            (whisker(low, high, middle, line))
            @if let Some([low, high]) = self.half.map(|half| half.map(&x)) {
                (rectangle((low, middle - 4), (high.max(low + 1), middle + 4), palette::SKY))
            }
            (mark(0, (x(self.at), middle), self.colour))
        }
    }
}

impl Dots {
    /// Rows without a title.
    pub(crate) fn of(scale: Scale, foot: &'static str, rows: Vec<Dot>) -> Self {
        let (title, band) = (String::new(), None);
        Self {
            scale,
            foot,
            blocks: vec![Block { title, band, rows }],
        }
    }

    pub(super) fn draw(&self) -> Drawing {
        let axis = self.axis();
        // Room for the marks at both edges.
        let x = &|value: f64| 6 + (axis.share(value) * f64::from(WIDTH - 13)) as i32;
        let mut drawing = Drawing::default();
        let mut y = 0;
        for block in &self.blocks {
            let (title, is_titled) = (clipped(&block.title, WIDTH), !block.title.is_empty());
            let words = text(&title, (0, y + LINE / 2), Hang::Left, palette::MUTED);
            drawing.scenery.push(words);
            y += if is_titled { TITLE } else { 0 };
            for row in &block.rows {
                // The grid keeps to the strip below the caption, so that no line crosses a text.
                let caption = Caption::of(&row.label);
                let top = y + caption.height();
                let foot = top + STRIP - 3;
                drawing
                    .scenery
                    .push(self.grid(block, &axis, x, (top, foot)));
                let shapes = row.draw(x, i32::midpoint(top, foot));
                drawing.row(&row.label, html! { (caption.draw(y)) (shapes) });
                y = top + STRIP;
            }
            y += if is_titled { GAP } else { 0 };
        }
        drawing.scenery.push(axis.names(x, y + LINE / 2 + 2));
        let below = (WIDTH / 2, y + LINE + LINE / 2 + 2);
        let words = text(self.foot, below, Hang::Middle, palette::MUTED);
        drawing.scenery.push(words);
        drawing.height = y + LINE + 4 + if self.foot.is_empty() { 0 } else { LINE };
        drawing
    }

    /// The background of a row of `block`.
    fn grid(
        &self,
        block: &Block,
        axis: &Axis,
        x: impl Fn(f64) -> i32,
        (top, foot): (i32, i32),
    ) -> Markup {
        html! {
            @if let Some([low, high]) = block.band {
                (rectangle((x(low), top), (x(high).max(x(low) + 1), foot), palette::BAND))
            }
            @for (at, _) in &axis.ticks {
                (path(&[(x(*at), top), (x(*at), foot)], 1, palette::GRID))
            }
            @if let Scale::Ratio { .. } = self.scale {
                (path(&[(x(1.0), top), (x(1.0), foot)], 2, palette::MUTED))
            }
        }
    }

    fn axis(&self) -> Axis {
        let values = || {
            self.blocks.iter().flat_map(|block| {
                let rows = block.rows.iter().flat_map(|row| {
                    let others = row.other.iter().map(|(at, _)| *at);
                    row.interval.into_iter().chain([row.at]).chain(others)
                });
                rows.chain(block.band.into_iter().flatten())
            })
        };
        match self.scale {
            Scale::Ratio { most } => {
                let low = values().fold(0.95, f64::min).max(0.0);
                let high = values().fold(1.05, f64::max).min(most);
                let margin = (high - low) * 0.04;
                Axis::linear((low - margin).max(0.0), high + margin, 4, |tick| {
                    format!("{}", (tick * 1000.0).round() / 1000.0)
                })
            }
            Scale::Seconds => {
                let low = values().fold(f64::MAX, f64::min) / 1.3;
                let high = values().fold(f64::MIN_POSITIVE, f64::max) * 1.3;
                Axis::logarithmic(low, high, |seconds| figure::duration_us(seconds * 1e6))
            }
        }
    }
}
