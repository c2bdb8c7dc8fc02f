//! Curves over two scales, with a legend below.

use super::palette::{self, Colour};
use super::{Axis, Drawing, Hang, LINE, Label, Point, WIDTH, clipped, mark, path, rectangle, text};
use maud::{Markup, html};

/// Height of the plot with its names, and the room for these around it.
const PLOT: i32 = 220;
const TOP: i32 = 10;
const FOOT: i32 = PLOT - 26;
const LEFT: i32 = 62;
const RIGHT: i32 = WIDTH - 26;

/// Curves that share their scales.
pub(crate) struct Curves {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// The value from which on the right edge is a band.
    pub(crate) band: Option<f64>,
    pub(crate) curves: Vec<Curve>,
}

/// A curve.
pub(crate) struct Curve {
    pub(crate) label: Label,
    pub(crate) colour: Colour,
    pub(crate) points: Vec<(f64, f64)>,
    /// Positions of the marks that distinguish it from other curves without colour.
    pub(crate) marks: Vec<(f64, f64)>,
    /// Number of its mark and its dashes; `None` for a broad line that others may hide.
    pub(crate) number: Option<usize>,
}

impl Curves {
    pub(super) fn draw(&self) -> Drawing {
        let mut drawing = Drawing {
            height: PLOT + self.curves.len() as i32 * LINE + 6,
            scenery: vec![self.grid()],
            ..Drawing::default()
        };
        let mut curves: Vec<(i32, &Curve)> = (0..).zip(&self.curves).collect();
        // Coloured curves lie on top.
        curves.sort_by_key(|(_, curve)| curve.colour != palette::GREY);
        for (line, curve) in curves {
            let number = curve.number.unwrap_or(0);
            drawing.curve(number, &curve.label, self.curve(curve, line));
        }
        drawing
    }

    fn place(&self, (x, y): (f64, f64)) -> Point {
        let along = |share: f64, from: i32, to: i32| from + (share * f64::from(to - from)) as i32;
        (
            along(self.x.share(x), LEFT, RIGHT),
            along(self.y.share(y), FOOT, TOP),
        )
    }

    fn grid(&self) -> Markup {
        let x = |value: f64| self.place((value, self.y.low())).0;
        let y = |value: f64| self.place((self.x.low(), value)).1;
        html! {
            @if let Some(from) = self.band {
                (rectangle((x(from), TOP), (RIGHT, FOOT), palette::BAND))
            }
            @for (value, name) in &self.y.ticks {
                (path(&[(LEFT, y(*value)), (RIGHT, y(*value))], 1, palette::GRID))
                (text(name, (LEFT - 6, y(*value)), Hang::Right, palette::MUTED))
            }
            @for (value, _) in &self.x.ticks {
                (path(&[(x(*value), TOP), (x(*value), FOOT)], 1, palette::GRID))
            }
            (self.x.names(x, FOOT + 14))
        }
    }

    /// The curve with its marks, and its `line` of the legend.
    fn curve(&self, curve: &Curve, line: i32) -> Markup {
        let stroke = if curve.number.is_some() { 2 } else { 7 };
        let points: Vec<Point> = curve.points.iter().map(|at| self.place(*at)).collect();
        let middle = PLOT + line * LINE + LINE / 2;
        let name = clipped(&curve.label.name, WIDTH - 24);
        html! {
            (path(&points, stroke, curve.colour))
            (path(&[(0, middle), (16, middle)], stroke, curve.colour))
            @if let Some(number) = curve.number {
                @for at in &curve.marks { (mark(number, self.place(*at), curve.colour)) }
                (mark(number, (8, middle), curve.colour))
            }
            (text(&name, (22, middle), Hang::Left, palette::INK))
        }
    }
}
