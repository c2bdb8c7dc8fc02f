//! Charts as SVG, drawn narrow so that a phone shows them at full size.
//!
//! Ink, grid and bands are drawn in fixed colours that the style sheet maps to
//! the colours of the page, light or dark; [`palette`] holds the rest.

pub(super) mod bars;
pub(super) mod forest;
pub(super) mod latency;
pub(super) mod ledger;
pub(super) mod palette;
pub(crate) mod parts;
pub(crate) mod rates;
pub(crate) mod ratios;
pub(crate) mod sizes;

use maud::{Escaper, Markup, PreEscaped, html};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::fmt::Write as _;

/// Width of every chart, in units of its view box.
pub(super) const WIDTH: i32 = 380;
/// Size of all text: still 12 px on a phone 360 px wide.
pub(super) const TEXT: f64 = 14.0;
/// Height of a line of text.
pub(super) const LINE: i32 = 19;

/// What a drawing fails with; drawing into memory has no reason to.
pub(super) type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A chart of `height` units that a screen reader announces as `label`.
pub(super) fn draw(
    label: &str,
    height: i32,
    paint: impl for<'a> FnOnce(&Canvas<'a>) -> Drawn,
) -> Markup {
    let mut svg = String::new();
    let drawn = {
        let size = (WIDTH as u32, height.max(1) as u32);
        let canvas = Canvas {
            area: SVGBackend::with_string(&mut svg, size).into_drawing_area(),
        };
        paint(&canvas).and_then(|()| canvas.area.present())
    };
    if let Err(error) = drawn {
        return html! { p class="warning" { "This chart could not be drawn: " (error) } };
    }
    // The size is left to the style sheet; inside HTML the name space is implied.
    let body = svg.split_once('>').map_or("", |(_, body)| body);
    let mut out = format!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"");
    write!(Escaper::new(&mut out), "{label}").ok();
    out.push_str("\">");
    out.push_str(body);
    PreEscaped(out)
}

/// A drawing area in view-box units, with the few shapes that charts need.
pub(super) struct Canvas<'a> {
    pub(super) area: Area<'a>,
}

/// Where a text hangs from its point.
#[derive(Clone, Copy)]
pub(super) enum Hang {
    Left,
    Middle,
    Right,
}

impl Canvas<'_> {
    /// One line of text, centred vertically on `y`.
    pub(super) fn text(
        &self,
        text: &str,
        (x, y): (i32, i32),
        hang: Hang,
        colour: RGBColor,
    ) -> Drawn {
        let anchor = match hang {
            Hang::Left => HPos::Left,
            Hang::Middle => HPos::Center,
            Hang::Right => HPos::Right,
        };
        // The SVG backend writes size ÷ 1.24.
        let style = ("sans-serif", TEXT * 1.24)
            .into_font()
            .color(&colour)
            .pos(Pos::new(anchor, VPos::Center));
        self.area.draw(&Text::new(text.to_owned(), (x, y), style))
    }

    pub(super) fn line(
        &self,
        from: (i32, i32),
        to: (i32, i32),
        width: u32,
        colour: RGBColor,
    ) -> Drawn {
        self.area
            .draw(&PathElement::new([from, to], colour.stroke_width(width)))
    }

    pub(super) fn rectangle(&self, from: (i32, i32), to: (i32, i32), colour: RGBColor) -> Drawn {
        self.area.draw(&Rectangle::new([from, to], colour.filled()))
    }

    /// A horizontal interval with end caps.
    pub(super) fn whisker(
        &self,
        low: i32,
        high: i32,
        y: i32,
        width: u32,
        colour: RGBColor,
    ) -> Drawn {
        self.line((low, y), (high, y), width, colour)?;
        for x in [low, high] {
            self.line((x, y - 4), (x, y + 4), width, colour)?;
        }
        Ok(())
    }

    /// The mark that tells row `row` of a group from the others without colour.
    pub(super) fn mark(&self, row: usize, (x, y): (i32, i32), colour: RGBColor) -> Drawn {
        match row % 4 {
            0 => self.area.draw(&Circle::new((x, y), 4, colour.filled())),
            1 => self.rectangle((x - 4, y - 4), (x + 4, y + 4), colour),
            2 => self.area.draw(&Polygon::new(
                [(x, y - 5), (x + 5, y + 4), (x - 5, y + 4)],
                colour.filled(),
            )),
            _ => self.area.draw(&Polygon::new(
                [(x, y - 6), (x + 6, y), (x, y + 6), (x - 6, y)],
                colour.filled(),
            )),
        }
    }
}

/// A label and a value on one line, or on two when they do not fit on one.
pub(super) struct Caption {
    label: String,
    value: String,
}

impl Caption {
    pub(super) fn new(label: &str, value: String) -> Self {
        Self {
            label: clipped(label, WIDTH),
            value: clipped(&value, WIDTH),
        }
    }

    fn lines(&self) -> i32 {
        let fits = width(&self.label) + width(&self.value) + 10 <= WIDTH;
        if fits { 1 } else { 2 }
    }

    pub(super) fn height(&self) -> i32 {
        self.lines() * LINE
    }

    /// Draws with the upper edge at `y`.
    pub(super) fn draw(&self, canvas: &Canvas<'_>, y: i32) -> Drawn {
        let middle = y + LINE / 2;
        canvas.text(&self.label, (0, middle), Hang::Left, palette::INK)?;
        let below = middle + (self.lines() - 1) * LINE;
        canvas.text(&self.value, (WIDTH, below), Hang::Right, palette::MUTED)
    }
}

/// About how wide a text is: nobody can know before a browser chose the font.
pub(super) fn width(text: &str) -> i32 {
    (text.chars().count() as f64 * TEXT * 0.54) as i32
}

/// `text` shortened to what fits into `room`.
pub(super) fn clipped(text: &str, room: i32) -> String {
    let text = crate::figure::one_line(text);
    if width(&text) <= room {
        return text;
    }
    let keep = (f64::from(room) / (TEXT * 0.54)) as usize;
    text.chars()
        .take(keep.saturating_sub(1))
        .chain(['…'])
        .collect()
}

/// Up to `about` round values between `low` and `high`, both included where round.
pub(super) fn ticks(low: f64, high: f64, about: usize) -> Vec<f64> {
    let span = high - low;
    if !span.is_finite() || span <= 0.0 {
        return vec![low];
    }
    let rough = span / about.max(1) as f64;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|step| *step >= rough)
        .unwrap_or(10.0 * power);
    let first = (low / step).ceil() as i64;
    let last = (high / step).floor() as i64;
    (first..=last).map(|at| at as f64 * step).collect()
}

/// Round values for a logarithmic axis, few enough to be read.
pub(super) fn decades(low: f64, high: f64) -> Vec<f64> {
    let factors: &[f64] = match (high / low).log10() {
        span if span < 0.7 => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
        span if span < 2.2 => &[1.0, 2.0, 5.0],
        _ => &[1.0],
    };
    let first = low.log10().floor() as i32;
    let last = high.log10().ceil() as i32;
    (first..=last)
        .flat_map(|power| {
            factors
                .iter()
                .map(move |factor| factor * 10_f64.powi(power))
        })
        .filter(|value| (low..=high).contains(value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        let near = |got: Vec<f64>, want: &[f64]| {
            assert_eq!(got.len(), want.len(), "{got:?}");
            for (a, b) in got.iter().zip(want) {
                assert!((a - b).abs() < 1e-9, "{got:?}");
            }
        };
        near(ticks(0.0, 1.0, 5), &[0.0, 0.2, 0.4, 0.6, 0.8, 1.0]);
        near(ticks(0.83, 1.06, 3), &[0.9, 1.0]);
        near(ticks(1.0, 1.0, 5), &[1.0]);
        near(
            ticks(f64::NAN, 1.0, 5).iter().map(|_| 0.0).collect(),
            &[0.0],
        );
    }

    #[test]
    fn long_names_are_clipped() {
        assert_eq!(clipped("AES", 100), "AES");
        let clipped = clipped(&"x".repeat(500), 100);
        assert!(clipped.ends_with('…') && width(&clipped) <= 100);
    }
}
