//! Latency of one workload: the whole distribution, tail stretched.

use super::{Canvas, Drawn, Hang, LINE, WIDTH, clipped, decades, draw, palette};
use crate::figure;
use crate::group::{Group, Row};
use maud::Markup;
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
    let height = PLOT + curves.len() as i32 * LINE + 6;
    let label = format!("Latency distribution of {}", group.title());
    Some(draw(&label, height, |canvas| paint(canvas, &curves)))
}

/// Each further nine of a percentile gets the same room.
fn stretch(percentile: f64) -> f64 {
    -(1.0 - percentile / 100.0).log10()
}

fn paint(canvas: &Canvas<'_>, curves: &[Curve<'_>]) -> Drawn {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let low = points().fold(f64::MAX, |low, (_, us)| low.min(*us)) / 1.15;
    let high = points().fold(0.0, |high: f64, (_, us)| high.max(*us)) * 1.15;
    let last = points().fold(2.0, |last: f64, (at, _)| last.max(*at));

    let (plot, legend) = canvas.area.split_vertically(PLOT);
    let mut chart = ChartBuilder::on(&plot)
        .margin_top(10)
        .margin_right(26)
        .margin_bottom(26)
        .margin_left(62)
        .build_cartesian_2d(0.0..last, (low..high).log_scale())?;
    let (left, foot) = chart.backend_coord(&(0.0, low));
    for us in decades(low, high) {
        let (right, y) = chart.backend_coord(&(last, us));
        canvas.line((left, y), (right, y), 1, palette::GRID)?;
        canvas.text(&tick(us), (left - 6, y), Hang::Right, palette::MUTED)?;
    }
    for percentile in NAMED
        .iter()
        .filter(|percentile| stretch(**percentile) <= last)
    {
        let (x, top) = chart.backend_coord(&(stretch(*percentile), high));
        canvas.line((x, top), (x, foot), 1, palette::GRID)?;
        let name = format!("p{percentile}");
        canvas.text(&name, (x, foot + 14), Hang::Middle, palette::MUTED)?;
    }
    for curve in curves {
        let colour = palette::of(curve.row.trial);
        chart.draw_series(LineSeries::new(
            curve.points.iter().copied(),
            colour.stroke_width(2),
        ))?;
    }
    for curve in curves {
        for named in &NAMED[..4] {
            let Some(us) = at(&curve.points, stretch(*named)) else {
                continue;
            };
            let place = chart.backend_coord(&(stretch(*named), us));
            canvas.mark(curve.number, place, palette::of(curve.row.trial))?;
        }
    }
    let legend = Canvas { area: legend };
    for (line, curve) in (0..).zip(curves) {
        let middle = line * LINE + LINE / 2;
        legend.mark(curve.number, (8, middle), palette::of(curve.row.trial))?;
        let label = clipped(&curve.row.label, WIDTH - 24);
        legend.text(&label, (22, middle), Hang::Left, palette::INK)?;
    }
    Ok(())
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
