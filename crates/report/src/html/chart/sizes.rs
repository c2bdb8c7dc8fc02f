//! The rate of one cipher over the size of requests, by the engine and by the
//! libraries.

use super::{Canvas, Drawn, Hang, LINE, WIDTH, clipped, decades, draw, palette};
use crate::figure;
use lab::record::Trial;
use maud::Markup;
use plotters::prelude::*;

const PLOT: i32 = 190;

/// The chart, or nothing where fewer than two sizes were measured. Each of
/// `curves` is one system, its sizes ascending; the first is the one in colour.
pub(crate) fn render(label: &str, curves: &[Vec<&Trial>]) -> Option<Markup> {
    let curves: Vec<(&Trial, Vec<(f64, f64)>)> = curves
        .iter()
        .filter_map(|points| {
            let known = points
                .iter()
                .filter(|trial| trial.block_bytes > 0)
                .map(|trial| (trial.block_bytes as f64, trial.throughput_mb_s.median))
                .filter(|(_, rate)| rate.is_finite() && *rate > 0.0)
                .collect::<Vec<_>>();
            (known.len() > 1).then(|| (points[0], known))
        })
        .collect();
    if curves.is_empty() {
        return None;
    }
    let height = PLOT + curves.len() as i32 * LINE + 6;
    Some(draw(label, height, |canvas| paint(canvas, &curves)))
}

fn paint(canvas: &Canvas<'_>, curves: &[(&Trial, Vec<(f64, f64)>)]) -> Drawn {
    let points = || curves.iter().flat_map(|(_, points)| points);
    let low = points().fold(f64::MAX, |low, (_, rate)| low.min(*rate)) / 1.3;
    let high = points().fold(0.0, |high: f64, (_, rate)| high.max(*rate)) * 1.3;
    let first = points().fold(f64::MAX, |first, (size, _)| first.min(*size));
    let last = points().fold(0.0, |last: f64, (size, _)| last.max(*size));

    let (plot, legend) = canvas.area.split_vertically(PLOT);
    let mut chart = ChartBuilder::on(&plot)
        .margin_top(10)
        .margin_right(26)
        .margin_bottom(26)
        .margin_left(62)
        .build_cartesian_2d((first..last).log_scale(), (low..high).log_scale())?;
    let (left, foot) = chart.backend_coord(&(first, low));
    for rate in decades(low, high) {
        let (right, y) = chart.backend_coord(&(last, rate));
        canvas.line((left, y), (right, y), 1, palette::GRID)?;
        canvas.text(&tick(rate), (left - 6, y), Hang::Right, palette::MUTED)?;
    }
    for size in sizes(first as u64, last as u64) {
        let (x, top) = chart.backend_coord(&(size as f64, high));
        canvas.line((x, top), (x, foot), 1, palette::GRID)?;
        let name = figure::bytes(size);
        canvas.text(&name, (x, foot + 14), Hang::Middle, palette::MUTED)?;
    }
    let colour = |number: usize, trial: &Trial| match number {
        0 => palette::of(trial),
        _ => palette::GREY,
    };
    for (number, (trial, points)) in curves.iter().enumerate().rev() {
        let style = colour(number, trial).stroke_width(2);
        chart.draw_series(LineSeries::new(points.iter().copied(), style))?;
        for point in points {
            canvas.mark(number, chart.backend_coord(point), colour(number, trial))?;
        }
    }
    let legend = Canvas { area: legend };
    for (number, (trial, _)) in curves.iter().enumerate() {
        let middle = number as i32 * LINE + LINE / 2;
        legend.mark(number, (8, middle), colour(number, trial))?;
        let name = match &trial.backend {
            Some(backend) => format!("{}, {backend}", trial.system),
            None => format!("{} {}", trial.system, trial.system_version),
        };
        let name = clipped(&name, WIDTH - 24);
        legend.text(&name, (22, middle), Hang::Left, palette::INK)?;
    }
    Ok(())
}

/// Every second or third power of two, so that their names do not touch.
fn sizes(first: u64, last: u64) -> impl Iterator<Item = u64> {
    let step = if last / first > 512 { 3 } else { 2 };
    (0..64)
        .step_by(step)
        .map_while(move |power| first.checked_mul(1 << power))
        .take_while(move |size| *size <= last)
}

fn tick(rate: f64) -> String {
    match rate {
        rate if rate < 1.0 => figure::number(rate),
        rate => figure::grouped(&format!("{rate:.0}")),
    }
}
