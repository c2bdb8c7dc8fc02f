//! Latency of one workload: the whole distribution, tail stretched.

use super::{Canvas, Drawing, DrawingError, Drawn, Hang, LINE, WIDTH, clipped, decades, palette};
use crate::figure;
use crate::group::{Group, Row};
use maud::Markup;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

const PLOT: i32 = 230;
/// Where the axis ends: beyond, too few requests make a curve.
const LAST: f64 = 99.99;
/// The percentiles that the axis names.
const NAMED: [f64; 5] = [50.0, 90.0, 99.0, 99.9, LAST];

struct Curve<'a> {
    row: &'a Row<'a>,
    number: usize,
    /// (stretched percentile, µs)
    points: Vec<(f64, f64)>,
}

/// The chart, or nothing when no cell has a distribution.
pub(crate) fn render(group: &Group<'_>) -> Option<Markup> {
    let curves: Vec<Curve<'_>> = group
        .rows
        .iter()
        .enumerate()
        .map(|(number, row)| Curve {
            row,
            number,
            points: row
                .trial
                .latency_us
                .curve
                .iter()
                .filter(|(percentile, us)| {
                    (0.0..=LAST).contains(percentile) && us.is_finite() && *us > 0.0
                })
                .map(|(percentile, us)| (stretch(*percentile), *us))
                .collect(),
        })
        .filter(|curve| curve.points.len() > 1)
        .collect();
    if curves.is_empty() {
        return None;
    }
    Some(paint(group, &curves))
}

/// Each further nine of a percentile gets the same room.
fn stretch(percentile: f64) -> f64 {
    -(1.0 - percentile / 100.0).log10()
}

/// Where a percentile and a latency lie.
type Plot<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, LogCoord<f64>>>;

struct Frame {
    low: f64,
    high: f64,
    last: f64,
}

impl Frame {
    fn of(curves: &[Curve<'_>]) -> Self {
        let points = || curves.iter().flat_map(|curve| &curve.points);
        Self {
            low: points().fold(f64::MAX, |low, (_, us)| low.min(*us)) / 1.15,
            high: points().fold(0.0, |high: f64, (_, us)| high.max(*us)) * 1.15,
            last: points().fold(2.0, |last: f64, (at, _)| last.max(*at)),
        }
    }

    /// The plot on top of `canvas`, and the room for the legend below.
    fn on<'a>(&self, canvas: &Canvas<'a>) -> Result<(Plot<'a>, Canvas<'a>), DrawingError> {
        let (plot, legend) = canvas.area.split_vertically(PLOT);
        let chart = ChartBuilder::on(&plot)
            .margin_top(10)
            .margin_right(26)
            .margin_bottom(26)
            .margin_left(62)
            .build_cartesian_2d(0.0..self.last, (self.low..self.high).log_scale())?;
        Ok((chart, Canvas { area: legend }))
    }
}

fn paint(group: &Group<'_>, curves: &[Curve<'_>]) -> Markup {
    let frame = Frame::of(curves);
    let mut drawing = Drawing::new(
        format!("Latency distribution of {}", group.title()),
        "A curve a system over the percentiles of its requests; each further nine has the same room.",
        PLOT + curves.len() as i32 * LINE + 6,
    );
    drawing.scenery(|canvas| grid(canvas, &frame));
    for (line, curve) in (0..).zip(curves) {
        let latency = &curve.row.trial.latency_us;
        let tip = format!(
            "{}: p50 {}, p90 {}, p99 {}, p99.9 {}, slowest {}",
            curve.row.label,
            figure::duration_us(latency.p50),
            figure::duration_us(latency.p90),
            figure::duration_us(latency.p99),
            figure::duration_us(latency.p99_9),
            figure::duration_us(latency.max),
        );
        drawing.curve(curve.number, curve.row.trial, &tip, |canvas| {
            draw(canvas, &frame, curve, line)
        });
    }
    drawing.finish()
}

fn grid(canvas: &Canvas<'_>, frame: &Frame) -> Drawn {
    let (chart, _) = frame.on(canvas)?;
    let (left, foot) = chart.backend_coord(&(0.0, frame.low));
    for us in decades(frame.low, frame.high) {
        let (right, y) = chart.backend_coord(&(frame.last, us));
        canvas.line((left, y), (right, y), 1, palette::GRID)?;
        canvas.text(&tick(us), (left - 6, y), Hang::Right, palette::MUTED)?;
    }
    for percentile in NAMED
        .iter()
        .filter(|percentile| stretch(**percentile) <= frame.last)
    {
        let (x, top) = chart.backend_coord(&(stretch(*percentile), frame.high));
        canvas.line((x, top), (x, foot), 1, palette::GRID)?;
        let name = format!("p{percentile}");
        canvas.text(&name, (x, foot + 14), Hang::Middle, palette::MUTED)?;
    }
    Ok(())
}

/// The curve with its marks, and its `line` of the legend.
fn draw(canvas: &Canvas<'_>, frame: &Frame, curve: &Curve<'_>, line: i32) -> Drawn {
    let (mut chart, legend) = frame.on(canvas)?;
    let colour = palette::of(curve.row.trial);
    let style = colour.stroke_width(2);
    chart.draw_series(LineSeries::new(curve.points.iter().copied(), style))?;
    for named in &NAMED[..4] {
        if let Some(us) = at(&curve.points, stretch(*named)) {
            let place = chart.backend_coord(&(stretch(*named), us));
            canvas.mark(curve.number, place, colour)?;
        }
    }
    let middle = line * LINE + LINE / 2;
    legend.mark(curve.number, (8, middle), colour)?;
    let label = clipped(&curve.row.label, WIDTH - 24);
    legend.text(&label, (22, middle), Hang::Left, palette::INK)
}

/// A round number of microseconds, without needless zeros: `50 µs`.
fn tick(us: f64) -> String {
    let text = figure::duration_us(us);
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') && !number.contains('e') => {
            let number = number.trim_end_matches('0').trim_end_matches('.');
            format!("{number} {unit}")
        }
        _ => text,
    }
}

/// The curve's value at `x`, between its two nearest points.
fn at(points: &[(f64, f64)], x: f64) -> Option<f64> {
    points.windows(2).find_map(|pair| {
        let [(x0, y0), (x1, y1)] = *pair else {
            return None;
        };
        if x < x0 || x > x1 {
            return None;
        }
        let share = if x1 > x0 { (x - x0) / (x1 - x0) } else { 0.0 };
        // Straight on the logarithmic axis.
        Some((y0.ln() + share * (y1.ln() - y0.ln())).exp())
    })
}
