//! Charts: data that a section gives, drawn as SVG, narrow so that a phone shows
//! them at full size.
//!
//! Sizes of text and the colours of ink, grid and bands, light or dark, are those of
//! the page's style sheet.

mod axis;
pub(crate) mod bars;
pub(crate) mod curves;
pub(crate) mod dots;
pub(crate) mod palette;
pub(crate) mod strips;

pub(crate) use axis::Axis;

use crate::document::Pick;
use crate::figure;
use lab::record::Trial;
use maud::{Markup, html};
use palette::Colour;

/// A chart.
pub(crate) struct Chart {
    /// The name that a screen reader announces.
    pub(crate) label: String,
    /// The description of how the chart is read.
    pub(crate) about: &'static str,
    pub(crate) plot: Plot,
}

/// The drawing of a chart.
pub(crate) enum Plot {
    Bars(bars::Bars),
    Dots(dots::Dots),
    Curves(curves::Curves),
    Strips(strips::Strips),
}

/// The description of charts whose values are in a table next to them.
pub(crate) const TABLED: &str = "The values are in the table.";

impl Chart {
    pub(crate) fn new(label: impl Into<String>, about: &'static str, plot: Plot) -> Self {
        let label = label.into();
        Self { label, about, plot }
    }

    /// The chart as SVG.
    pub(crate) fn render(&self) -> Markup {
        let drawing = match &self.plot {
            Plot::Bars(bars) => bars.draw(),
            Plot::Dots(dots) => dots.draw(),
            Plot::Curves(curves) => curves.draw(),
            Plot::Strips(strips) => strips.draw(),
        };
        let view = format!("0 0 {WIDTH} {}", drawing.height.max(1));
        // A group, whose rows are images; or an image, if there are no rows.
        let role = if drawing.rows.is_empty() {
            "img"
        } else {
            "group"
        };
        // The size is left to the style sheet; inside HTML the name space is implied.
        html! {
            svg viewBox=(view) role=(role) aria-label=(self.label) {
                desc { (self.about) }
                g aria-hidden="true" { @for shapes in drawing.scenery { (shapes) } }
                @for row in drawing.rows { (row) }
            }
        }
    }
}

/// The words of a row or a curve.
#[derive(Default)]
pub(crate) struct Label {
    pub(crate) name: String,
    /// Its value in short, next to the name.
    pub(crate) value: String,
    /// Its values in full, for readers who point at it and for screen readers.
    pub(crate) tip: String,
    /// The key by which readers pick it. Without one, it cannot be pointed at.
    pub(crate) pick: Option<Pick>,
}

impl Label {
    /// That of a trial, whose row can be pointed at.
    pub(crate) fn of(
        trial: &Trial,
        name: impl Into<String>,
        value: impl Into<String>,
        tip: String,
    ) -> Self {
        let (name, value) = (name.into(), value.into());
        Self {
            name,
            value,
            tip,
            pick: Some(Pick::of(trial)),
        }
    }
}

/// Width of every chart, in units of its view box.
pub(crate) const WIDTH: i32 = 380;
/// Size of all text, as the style sheet has it: still 12 px on a phone 360 px wide.
pub(crate) const TEXT: f64 = 14.0;
/// How far below the middle of small letters their baseline is.
const BASE: i32 = 4;
/// How many different marks there are.
const MARKS: usize = 4;
/// Height of a line of text.
pub(crate) const LINE: i32 = 19;

/// A point, in view-box units from the upper left corner.
pub(crate) type Point = (i32, i32);

/// A chart in the making.
#[derive(Default)]
struct Drawing {
    height: i32,
    /// The shapes that belong to no row: axes, grid and legend. They lie below the rows.
    scenery: Vec<Markup>,
    /// Groups that a reader can point at, hear and pick. The last group lies on top.
    rows: Vec<Markup>,
}

impl Drawing {
    /// A row.
    fn row(&mut self, label: &Label, shapes: Markup) {
        self.curve(0, label, shapes);
    }

    /// The `number`th curve: further ones are dashed, so that colour is not all
    /// that tells them apart.
    fn curve(&mut self, number: usize, label: &Label, shapes: Markup) {
        const DASHES: [Option<&str>; 4] = [None, Some("dashed"), Some("dotted"), Some("mixed")];
        let Some(pick) = &label.pick else {
            return self.scenery.push(shapes);
        };
        let dashes = DASHES[number / MARKS % DASHES.len()];
        self.rows.push(html! {
            g role="img" class=[dashes] data-system=(pick.system) data-cipher=(pick.cipher) {
                title { (figure::one_line(&label.tip)) }
                (shapes)
            }
        });
    }
}

/// The horizontal position of a text relative to its point.
#[derive(Clone, Copy)]
pub(crate) enum Hang {
    Left,
    Middle,
    Right,
}

/// One line of text, centred vertically on `y`; empty if there are no words.
pub(crate) fn text(words: &str, (x, y): Point, hang: Hang, colour: Colour) -> Markup {
    let anchor = match hang {
        Hang::Left => None,
        Hang::Middle => Some("middle"),
        Hang::Right => Some("end"),
    };
    html! {
        @if !words.is_empty() {
            text x=(x) y=(y + BASE) text-anchor=[anchor] fill=(colour) { (words) }
        }
    }
}

/// A line through all of `points`.
pub(crate) fn path(points: &[Point], width: u32, colour: Colour) -> Markup {
    let points: Vec<String> = points.iter().map(|(x, y)| format!("{x},{y}")).collect();
    html! { polyline stroke=(colour) stroke-width=(width) points=(points.join(" ")) {} }
}

pub(crate) fn rectangle((left, top): Point, (right, foot): Point, colour: Colour) -> Markup {
    html! { rect x=(left) y=(top) width=(right - left) height=(foot - top) fill=(colour) {} }
}

/// A horizontal interval with end caps.
pub(crate) fn whisker(low: i32, high: i32, y: i32, colour: Colour) -> Markup {
    // One line in one stroke: a large run has thousands.
    let stroke = [
        (low, y - 4),
        (low, y + 4),
        (low, y),
        (high, y),
        (high, y - 4),
        (high, y + 4),
    ];
    path(&stroke, 2, colour)
}

/// The mark that tells row `row` of a group from the others without colour.
pub(crate) fn mark(row: usize, (x, y): Point, colour: Colour) -> Markup {
    let corners = match row % MARKS {
        0 => return html! { circle cx=(x) cy=(y) r="4" fill=(colour) {} },
        1 => return rectangle((x - 4, y - 4), (x + 4, y + 4), colour),
        2 => format!("{x},{} {},{} {},{}", y - 5, x + 5, y + 4, x - 5, y + 4),
        _ => format!("{x},{} {},{y} {x},{} {},{y}", y - 6, x + 6, y + 6, x - 6),
    };
    html! { polygon fill=(colour) points=(corners) {} }
}

/// A label and a value on one line, or on two when they do not fit on one.
pub(crate) struct Caption {
    label: String,
    value: String,
}

impl Caption {
    fn of(label: &Label) -> Self {
        Self {
            label: clipped(&label.name, WIDTH),
            value: clipped(&label.value, WIDTH),
        }
    }

    fn lines(&self) -> i32 {
        let fits = width(&self.label) + width(&self.value) + 10 <= WIDTH;
        if fits { 1 } else { 2 }
    }

    pub(crate) fn height(&self) -> i32 {
        self.lines() * LINE
    }

    /// Draws with the upper edge at `y`.
    pub(crate) fn draw(&self, y: i32) -> Markup {
        let middle = y + LINE / 2;
        let below = middle + (self.lines() - 1) * LINE;
        html! {
            (text(&self.label, (0, middle), Hang::Left, palette::INK))
            (text(&self.value, (WIDTH, below), Hang::Right, palette::MUTED))
        }
    }
}

/// The approximate width of a text. The exact width is unknown until the browser chooses the font.
pub(crate) fn width(text: &str) -> i32 {
    (text.chars().count() as f64 * TEXT * 0.54) as i32
}

/// `text` shortened to what fits into `room`.
pub(crate) fn clipped(text: &str, room: i32) -> String {
    let text = figure::one_line(text);
    if width(&text) <= room {
        return text;
    }
    let keep = (f64::from(room) / (TEXT * 0.54)) as usize;
    text.chars()
        .take(keep.saturating_sub(1))
        .chain(['…'])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_clipped() {
        assert_eq!(clipped("AES", 100), "AES");
        let clipped = clipped(&"x".repeat(500), 100);
        assert!(clipped.ends_with('…') && width(&clipped) <= 100);
    }
}
