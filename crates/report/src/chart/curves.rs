//! Curves over two scales, with a legend below.

use super::{
    Axis, Canvas, Chart, Drawing, Drawn, Hang, LINE, Label, WIDTH, clipped, palette, width,
};
use maud::Markup;
use plotters::prelude::*;

/// Height of the plot with its names, and the room for these around it.
const PLOT: i32 = 220;
const TOP: i32 = 10;
const FOOT: i32 = PLOT - 26;
const LEFT: i32 = 62;
const RIGHT: i32 = WIDTH - 26;

/// Least distance between the names of two ticks.
const APART: i32 = 8;

/// Curves that share their scales.
pub(crate) struct Curves {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// From where on the right edge is a band.
    pub(crate) band: Option<f64>,
    pub(crate) curves: Vec<Curve>,
}

/// A curve.
pub(crate) struct Curve {
    pub(crate) label: Label,
    pub(crate) colour: RGBColor,
    pub(crate) points: Vec<(f64, f64)>,
    /// Where the marks are that tell it from others without colour.
    pub(crate) marks: Vec<(f64, f64)>,
    /// Which mark and which dashes it has; none of a broad line that others may hide.
    pub(crate) number: Option<usize>,
}

impl Curves {
    pub(super) fn draw(&self, chart: &Chart) -> Markup {
        let height = PLOT + self.curves.len() as i32 * LINE + 6;
        let mut drawing = Drawing::new(chart, height);
        drawing.scenery(|canvas| self.grid(canvas));
        let mut curves: Vec<(i32, &Curve)> = (0..).zip(&self.curves).collect();
        // What is in colour lies on top.
        curves.sort_by_key(|(_, curve)| curve.colour != palette::GREY);
        for (line, curve) in curves {
            let number = curve.number.unwrap_or(0);
            drawing.curve(number, &curve.label, |canvas| {
                self.curve(canvas, curve, line)
            });
        }
        drawing.finish()
    }

    fn place(&self, (x, y): (f64, f64)) -> (i32, i32) {
        let along = |share: f64, from: i32, to: i32| from + (share * f64::from(to - from)) as i32;
        (
            along(self.x.share(x), LEFT, RIGHT),
            along(self.y.share(y), FOOT, TOP),
        )
    }

    fn grid(&self, canvas: &Canvas<'_>) -> Drawn {
        if let Some(from) = self.band {
            let (left, _) = self.place((from, 0.0));
            canvas.rectangle((left, TOP), (RIGHT, FOOT), palette::BAND)?;
        }
        for (value, name) in &self.y.ticks {
            let (_, y) = self.place((self.x.low(), *value));
            canvas.line((LEFT, y), (RIGHT, y), 1, palette::GRID)?;
            canvas.text(name, (LEFT - 6, y), Hang::Right, palette::MUTED)?;
        }
        // From the right, so that the last has its name.
        let mut next = WIDTH;
        for (value, name) in self.x.ticks.iter().rev() {
            let (x, _) = self.place((*value, self.y.low()));
            let half = width(name) / 2;
            let middle = x.min(WIDTH - half);
            canvas.line((x, TOP), (x, FOOT), 1, palette::GRID)?;
            if middle + half <= next {
                canvas.text(name, (middle, FOOT + 14), Hang::Middle, palette::MUTED)?;
                next = middle - half - APART;
            }
        }
        Ok(())
    }

    /// The curve with its marks, and its `line` of the legend.
    fn curve(&self, canvas: &Canvas<'_>, curve: &Curve, line: i32) -> Drawn {
        let stroke = if curve.number.is_some() { 2 } else { 7 };
        let points: Vec<(i32, i32)> = curve.points.iter().map(|at| self.place(*at)).collect();
        canvas
            .area
            .draw(&PathElement::new(points, curve.colour.stroke_width(stroke)))?;
        let middle = PLOT + line * LINE + LINE / 2;
        canvas.line((0, middle), (16, middle), stroke, curve.colour)?;
        if let Some(number) = curve.number {
            for at in &curve.marks {
                canvas.mark(number, self.place(*at), curve.colour)?;
            }
            canvas.mark(number, (8, middle), curve.colour)?;
        }
        let name = clipped(&curve.label.name, WIDTH - 24);
        canvas.text(&name, (22, middle), Hang::Left, palette::INK)
    }
}
