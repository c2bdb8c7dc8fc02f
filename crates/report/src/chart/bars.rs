//! A bar a row, whole or in parts, with the interval of its median.

use super::{
    Canvas, Caption, Chart, Drawing, Drawn, Hang, LINE, Label, WIDTH, clipped, palette, width,
};
use crate::figure;
use lab::record::Interval;
use maud::Markup;
use plotters::style::RGBColor;

/// Heights: of a bar, of one with words on it, of the one below it, of the gap
/// between rows, and of a title with its gap.
const BAR: i32 = 14;
const WORDED: i32 = 20;
const PEER: i32 = 5;
const GAP: i32 = 9;
const TITLE: i32 = LINE + 5;

/// Bars on one scale.
#[derive(Default)]
pub(crate) struct Bars {
    /// What the colours of parts mean.
    pub(crate) legend: Vec<(&'static str, RGBColor)>,
    /// Bars under a title, which may be empty.
    pub(crate) blocks: Vec<(String, Vec<Bar>)>,
    /// What the width stands for; the longest bar where absent.
    pub(crate) whole: Option<f64>,
}

/// A row.
#[derive(Default)]
pub(crate) struct Bar {
    pub(crate) label: Label,
    /// One after the other: a length, its colour, and words where they fit.
    pub(crate) parts: Vec<(f64, RGBColor, String)>,
    pub(crate) interval: Option<Interval>,
    /// The length of a thin grey bar below.
    pub(crate) peer: Option<f64>,
}

impl Bar {
    /// In one piece, where its length is known.
    pub(crate) fn whole(label: Label, length: Option<Interval>, colour: RGBColor) -> Self {
        let interval = length.filter(|length| figure::finite(*length));
        let part = |length: Interval| (length.median, colour, String::new());
        Self {
            label,
            parts: interval.map(part).into_iter().collect(),
            interval,
            peer: None,
        }
    }

    fn longest(&self) -> f64 {
        let parts: f64 = self.parts.iter().map(|(length, ..)| length).sum();
        let others = self.interval.map(|interval| interval.high);
        others.into_iter().chain(self.peer).fold(parts, f64::max)
    }
}

impl Bars {
    /// Bars without a title.
    pub(crate) fn of(bars: impl Iterator<Item = Bar>) -> Self {
        Self {
            blocks: vec![(String::new(), bars.collect())],
            ..Self::default()
        }
    }

    pub(super) fn draw(&self, chart: &Chart) -> Markup {
        let bars = || self.blocks.iter().flat_map(|(_, bars)| bars);
        let worded = bars().any(|bar| bar.parts.iter().any(|(_, _, words)| !words.is_empty()));
        let bar = if worded { WORDED } else { BAR };
        let peers = bars().any(|bar| bar.peer.is_some());
        let below = GAP + if peers { PEER } else { 0 };
        let captions = |bars: &[Bar]| -> Vec<Caption> {
            bars.iter().map(|bar| Caption::of(&bar.label)).collect()
        };
        let top = if self.legend.is_empty() { 0 } else { LINE + 8 };
        let mut height = top;
        for (title, bars) in &self.blocks {
            height += if title.is_empty() { 0 } else { TITLE };
            height += captions(bars)
                .iter()
                .map(|caption| caption.height() + bar + below)
                .sum::<i32>();
        }
        let longest = || {
            bars()
                .map(Bar::longest)
                .filter(|length| length.is_finite())
                .fold(0.0, f64::max)
        };
        let scale = Scale(self.whole.unwrap_or_else(longest));
        let mut drawing = Drawing::new(chart, height);
        drawing.scenery(|canvas| {
            legend(canvas, &self.legend)?;
            canvas.line((0, top), (0, height), 1, palette::GRID)
        });
        let mut y = top;
        for (title, bars) in &self.blocks {
            if !title.is_empty() {
                drawing.scenery(|canvas| {
                    let title = clipped(title, WIDTH);
                    canvas.text(&title, (0, y + LINE / 2), Hang::Left, palette::MUTED)
                });
                y += TITLE;
            }
            for (row, caption) in bars.iter().zip(captions(bars)) {
                let upper = y + caption.height();
                drawing.row(&row.label, |canvas| {
                    caption.draw(canvas, y)?;
                    paint(canvas, row, &scale, (upper, upper + bar))
                });
                y = upper + bar + below;
            }
        }
        drawing.finish()
    }
}

/// The length that the width stands for.
struct Scale(f64);

impl Scale {
    /// With room for the cap of the longest whisker.
    fn x(&self, length: f64) -> i32 {
        let share = if self.0 > 0.0 {
            (length / self.0).clamp(0.0, 1.0)
        } else {
            0.0
        };
        1 + (share * f64::from(WIDTH - 3)) as i32
    }
}

fn legend(canvas: &Canvas<'_>, parts: &[(&str, RGBColor)]) -> Drawn {
    let mut x = 0;
    for (name, colour) in parts {
        canvas.rectangle((x, 3), (x + 12, 15), *colour)?;
        canvas.text(name, (x + 17, 9), Hang::Left, palette::INK)?;
        x += 17 + width(name) + 12;
    }
    Ok(())
}

fn paint(canvas: &Canvas<'_>, bar: &Bar, scale: &Scale, (top, foot): (i32, i32)) -> Drawn {
    let mut start = 0.0;
    let mut left = 0;
    for (length, colour, words) in &bar.parts {
        start += length;
        let right = scale.x(start);
        if right > left && *length > 0.0 {
            canvas.rectangle((left, top), (right, foot), *colour)?;
            if !words.is_empty() && width(words) + 6 < right - left {
                let middle = (i32::midpoint(left, right), i32::midpoint(top, foot));
                canvas.text(words, middle, Hang::Middle, palette::ON_COLOUR)?;
            }
            left = right;
        }
    }
    if let Some(interval) = bar.interval {
        let (low, high) = (scale.x(interval.low), scale.x(interval.high));
        canvas.whisker(low, high, i32::midpoint(top, foot), 2, palette::INK)?;
    }
    match bar.peer {
        Some(peer) => canvas.rectangle((0, foot), (scale.x(peer), foot + PEER), palette::GREY),
        None => Ok(()),
    }
}
