//! A bar a row, whole or in parts, with the interval of its median.

use super::palette::{self, Colour};
use super::{
    Caption, Drawing, Hang, LINE, Label, WIDTH, clipped, path, rectangle, text, whisker, width,
};
use crate::figure;
use lab::record::Interval;
use maud::{Markup, html};

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
    /// The meaning of the colours of parts.
    pub(crate) legend: Vec<(&'static str, Colour)>,
    /// Bars under a title, which may be empty.
    pub(crate) blocks: Vec<(String, Vec<Bar>)>,
    /// The value that the whole width stands for; the longest bar when absent.
    pub(crate) whole: Option<f64>,
}

/// A row.
#[derive(Default)]
pub(crate) struct Bar {
    pub(crate) label: Label,
    /// The parts, one after the other: a length, its colour, and a text that is
    /// drawn if it fits.
    pub(crate) parts: Vec<(f64, Colour, String)>,
    pub(crate) interval: Option<Interval>,
    /// The length of a thin grey bar below.
    pub(crate) peer: Option<f64>,
}

impl Bar {
    /// A bar in one piece, if its length is known.
    pub(crate) fn whole(label: Label, length: Option<Interval>, colour: Colour) -> Self {
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

    fn draw(&self, scale: &Scale, (top, foot): (i32, i32)) -> Markup {
        let middle = i32::midpoint(top, foot);
        let (mut start, mut left) = (0.0, 0);
        let parts = self.parts.iter().filter_map(|(length, colour, words)| {
            start += length;
            let right = scale.x(start);
            if right <= left || *length <= 0.0 {
                return None;
            }
            let from = std::mem::replace(&mut left, right);
            let fits = !words.is_empty() && width(words) + 6 < right - from;
            let at = (i32::midpoint(from, right), middle);
            Some(html! {
                (rectangle((from, top), (right, foot), colour))
                @if fits { (text(words, at, Hang::Middle, palette::ON_COLOUR)) }
            })
        });
        html! {
            @for part in parts { (part) }
            @if let Some(Interval { low, high, .. }) = self.interval {
                (whisker(scale.x(low), scale.x(high), middle, palette::INK))
            }
            @if let Some(peer) = self.peer {
                (rectangle((0, foot), (scale.x(peer), foot + PEER), palette::GREY))
            }
        }
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

    pub(super) fn draw(&self) -> Drawing {
        let bars = || self.blocks.iter().flat_map(|(_, bars)| bars);
        let worded = bars().any(|bar| bar.parts.iter().any(|(_, _, words)| !words.is_empty()));
        let bar = if worded { WORDED } else { BAR };
        let peers = bars().any(|bar| bar.peer.is_some());
        let below = GAP + if peers { PEER } else { 0 };
        let top = if self.legend.is_empty() { 0 } else { LINE + 8 };
        let longest = || {
            bars()
                .map(Bar::longest)
                .filter(|length| length.is_finite())
                .fold(0.0, f64::max)
        };
        let scale = Scale(self.whole.unwrap_or_else(longest));
        let mut drawing = Drawing {
            scenery: vec![legend(&self.legend)],
            ..Drawing::default()
        };
        let mut y = top;
        for (title, bars) in &self.blocks {
            if !title.is_empty() {
                let (title, at) = (clipped(title, WIDTH), (0, y + LINE / 2));
                drawing
                    .scenery
                    .push(text(&title, at, Hang::Left, palette::MUTED));
                y += TITLE;
            }
            for row in bars {
                let caption = Caption::of(&row.label);
                let upper = y + caption.height();
                let shapes = row.draw(&scale, (upper, upper + bar));
                drawing.row(&row.label, html! { (caption.draw(y)) (shapes) });
                y = upper + bar + below;
            }
        }
        drawing
            .scenery
            .push(path(&[(0, top), (0, y)], 1, palette::GRID));
        drawing.height = y;
        drawing
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

fn legend(parts: &[(&str, Colour)]) -> Markup {
    let mut next = 0;
    let entries = parts.iter().map(|(name, colour)| {
        let x = next;
        next += 17 + width(name) + 12;
        html! {
            (rectangle((x, 3), (x + 12, 15), colour))
            (text(name, (x + 17, 9), Hang::Left, palette::INK))
        }
    });
    html! { @for entry in entries { (entry) } }
}
