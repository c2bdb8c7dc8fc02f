//! Charts: data that a section gives, drawn as SVG, narrow so that a phone shows
//! them at full size.
//!
//! Ink, grid and bands are drawn in fixed colours that the style sheet maps to
//! the colours of the page, light or dark; [`palette`] holds the rest.

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
use maud::{Escaper, Markup, PreEscaped, html};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::fmt::Write as _;

/// A chart.
pub(crate) struct Chart {
    /// What a screen reader announces it as.
    pub(crate) label: String,
    /// How it is read.
    pub(crate) about: &'static str,
    pub(crate) plot: Plot,
}

/// What a chart draws.
pub(crate) enum Plot {
    Bars(bars::Bars),
    Dots(dots::Dots),
    Curves(curves::Curves),
    Strips(strips::Strips),
}

/// How charts are read whose values stand in a table beside them.
pub(crate) const TABLED: &str = "The values are in the table.";

impl Chart {
    pub(crate) fn new(label: impl Into<String>, about: &'static str, plot: Plot) -> Self {
        let label = label.into();
        Self { label, about, plot }
    }

    /// The chart as SVG, or in its place why there is none.
    pub(crate) fn render(&self) -> Markup {
        match &self.plot {
            Plot::Bars(bars) => bars.draw(self),
            Plot::Dots(dots) => dots.draw(self),
            Plot::Curves(curves) => curves.draw(self),
            Plot::Strips(strips) => strips.draw(self),
        }
    }
}

/// What a row or a curve says in words.
#[derive(Default)]
pub(crate) struct Label {
    pub(crate) name: String,
    /// Its value in short, beside the name.
    pub(crate) value: String,
    /// Its values in full, for who points at it and for who hears it.
    pub(crate) tip: String,
    /// What it is picked by; without, it cannot be pointed at.
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
/// How many different marks there are.
const MARKS: usize = 4;
/// Height of a line of text.
pub(crate) const LINE: i32 = 19;

/// What a drawing fails with; drawing into memory has no reason to.
pub(crate) type DrawingError = DrawingAreaErrorKind<std::io::Error>;
pub(crate) type Drawn = Result<(), DrawingError>;

pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A chart in the making: what belongs to no row, and then row by row, so that a
/// reader can point at a row, hear it, and pick it.
struct Drawing<'a> {
    chart: &'a Chart,
    height: i32,
    body: String,
    rows: bool,
    failed: Option<DrawingError>,
}

impl<'a> Drawing<'a> {
    /// `chart` with `height` units.
    fn new(chart: &'a Chart, height: i32) -> Self {
        Self {
            chart,
            height: height.max(1),
            body: String::new(),
            rows: false,
            failed: None,
        }
    }

    /// What belongs to no row: axes, grid, what colours mean.
    fn scenery(&mut self, paint: impl for<'b> FnOnce(&Canvas<'b>) -> Drawn) {
        self.body.push_str("<g aria-hidden=\"true\">");
        self.layer(paint);
    }

    /// A row.
    fn row(&mut self, label: &Label, paint: impl for<'b> FnOnce(&Canvas<'b>) -> Drawn) {
        self.curve(0, label, paint);
    }

    /// The `number`th curve: further ones are dashed, so that colour is not all
    /// that tells them apart.
    fn curve(
        &mut self,
        number: usize,
        label: &Label,
        paint: impl for<'b> FnOnce(&Canvas<'b>) -> Drawn,
    ) {
        let Some(pick) = &label.pick else {
            return self.scenery(paint);
        };
        const DASHES: [&str; 4] = [
            "",
            " class=\"dashed\"",
            " class=\"dotted\"",
            " class=\"mixed\"",
        ];
        self.rows = true;
        self.body.push_str("<g role=\"img\"");
        self.body.push_str(DASHES[number / MARKS % DASHES.len()]);
        self.body.push_str(" data-system=\"");
        self.escaped(&pick.system);
        self.body.push_str("\" data-cipher=\"");
        self.escaped(&pick.cipher);
        self.body.push_str("\"><title>");
        self.escaped(&figure::one_line(&label.tip));
        self.body.push_str("</title>");
        self.layer(paint);
    }

    fn escaped(&mut self, text: &str) {
        // Writing into a string does not fail.
        let _ = Escaper::new(&mut self.body).write_str(text);
    }

    /// Draws and ends the group that was begun.
    fn layer(&mut self, paint: impl for<'b> FnOnce(&Canvas<'b>) -> Drawn) {
        let mut svg = String::new();
        let drawn = {
            let size = (WIDTH as u32, self.height as u32);
            let canvas = Canvas {
                area: SVGBackend::with_string(&mut svg, size).into_drawing_area(),
            };
            paint(&canvas).and_then(|()| canvas.area.present())
        };
        if let Err(error) = drawn {
            self.failed.get_or_insert(error);
        }
        let body = svg.split_once('>').map_or("", |(_, body)| body);
        let body = body.trim_end().trim_end_matches("</svg>");
        self.body.push_str(&lean(body));
        self.body.push_str("</g>");
    }

    /// The chart, or in its place why there is none.
    fn finish(self) -> Markup {
        if let Some(error) = self.failed {
            return html! { p class="warning" { "This chart could not be drawn: " (error) } };
        }
        // A group, whose rows are images; or an image, where there are none.
        let role = if self.rows { "group" } else { "img" };
        // The size is left to the style sheet; inside HTML the name space is implied.
        html! {
            svg viewBox=(format!("0 0 {WIDTH} {}", self.height)) role=(role) aria-label=(self.chart.label) {
                desc { (self.chart.about) }
                (PreEscaped(self.body))
            }
        }
    }
}

/// An SVG's elements without what goes without saying or stands in the style
/// sheet: half of it. Quotes within texts are escaped, so no text is touched.
fn lean(body: &str) -> String {
    let mut lean = body.replace('\n', "");
    for needless in [
        " opacity=\"1\"",
        " stroke=\"none\"",
        " stroke-width=\"1\"",
        " text-anchor=\"start\"",
        " font-family=\"sans-serif\"",
    ] {
        lean = lean.replace(needless, "");
    }
    while let Some(at) = lean.find(" font-size=\"") {
        let start = at + " font-size=\"".len();
        let end = lean[start..]
            .find('"')
            .map_or(lean.len(), |end| start + end + 1);
        lean.replace_range(at..end, "");
    }
    lean
}

/// A drawing area in view-box units, with the few shapes that charts need.
pub(crate) struct Canvas<'a> {
    pub(crate) area: Area<'a>,
}

/// Where a text hangs from its point.
#[derive(Clone, Copy)]
pub(crate) enum Hang {
    Left,
    Middle,
    Right,
}

impl Canvas<'_> {
    /// One line of text, centred vertically on `y`.
    pub(crate) fn text(
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

    pub(crate) fn line(
        &self,
        from: (i32, i32),
        to: (i32, i32),
        width: u32,
        colour: RGBColor,
    ) -> Drawn {
        self.area
            .draw(&PathElement::new([from, to], colour.stroke_width(width)))
    }

    pub(crate) fn rectangle(&self, from: (i32, i32), to: (i32, i32), colour: RGBColor) -> Drawn {
        self.area.draw(&Rectangle::new([from, to], colour.filled()))
    }

    /// A horizontal interval with end caps.
    pub(crate) fn whisker(
        &self,
        low: i32,
        high: i32,
        y: i32,
        width: u32,
        colour: RGBColor,
    ) -> Drawn {
        // One line in one stroke: a large run has thousands.
        let stroke = [
            (low, y - 4),
            (low, y + 4),
            (low, y),
            (high, y),
            (high, y - 4),
            (high, y + 4),
        ];
        self.area
            .draw(&PathElement::new(stroke, colour.stroke_width(width)))
    }

    /// The mark that tells row `row` of a group from the others without colour.
    pub(crate) fn mark(&self, row: usize, (x, y): (i32, i32), colour: RGBColor) -> Drawn {
        match row % MARKS {
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
    pub(crate) fn draw(&self, canvas: &Canvas<'_>, y: i32) -> Drawn {
        let middle = y + LINE / 2;
        canvas.text(&self.label, (0, middle), Hang::Left, palette::INK)?;
        let below = middle + (self.lines() - 1) * LINE;
        canvas.text(&self.value, (WIDTH, below), Hang::Right, palette::MUTED)
    }
}

/// About how wide a text is: nobody can know before a browser chose the font.
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
    fn drawings_say_nothing_twice() {
        let drawn = lean(
            "\n<text x=\"0\" font-size=\"14.1\" opacity=\"1\" fill=\"#000\">\nfont-size=&quot;1&quot;\n</text>\n",
        );
        let text = "<text x=\"0\" fill=\"#000\">font-size=&quot;1&quot;</text>";
        assert_eq!(drawn, text);
    }

    #[test]
    fn long_names_are_clipped() {
        assert_eq!(clipped("AES", 100), "AES");
        let clipped = clipped(&"x".repeat(500), 100);
        assert!(clipped.ends_with('…') && width(&clipped) <= 100);
    }
}
