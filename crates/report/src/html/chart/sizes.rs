//! The rate of one cipher over the size of requests, by the engine and by the
//! libraries.

use super::{Canvas, Drawing, DrawingError, Drawn, Hang, LINE, WIDTH, clipped, decades, palette};
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
    let frame = Frame::of(&curves);
    let mut drawing = Drawing::new(
        label.to_owned(),
        "A curve a system: its rate over the size of requests; both scales are logarithmic.",
        PLOT + curves.len() as i32 * LINE + 6,
    );
    drawing.scenery(|canvas| grid(canvas, &frame));
    for (number, (trial, points)) in curves.iter().enumerate().rev() {
        let values: Vec<String> = points
            .iter()
            .map(|(size, rate)| {
                format!("{} {}", figure::bytes(*size as u64), figure::number(*rate))
            })
            .collect();
        let tip = format!("{}, MB/s: {}", name(trial), values.join(", "));
        drawing.curve(number, trial, &tip, |canvas| {
            curve(canvas, &frame, number, trial, points)
        });
    }
    Some(drawing.finish())
}

/// Where a size and a rate lie.
type Plot<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<LogCoord<f64>, LogCoord<f64>>>;

struct Frame {
    low: f64,
    high: f64,
    first: f64,
    last: f64,
}

impl Frame {
    fn of(curves: &[(&Trial, Vec<(f64, f64)>)]) -> Self {
        let points = || curves.iter().flat_map(|(_, points)| points);
        Self {
            low: points().fold(f64::MAX, |low, (_, rate)| low.min(*rate)) / 1.3,
            high: points().fold(0.0, |high: f64, (_, rate)| high.max(*rate)) * 1.3,
            first: points().fold(f64::MAX, |first, (size, _)| first.min(*size)),
            last: points().fold(0.0, |last: f64, (size, _)| last.max(*size)),
        }
    }

    /// The plot on top of `canvas`, and the room for the legend below.
    fn on<'a>(&self, canvas: &Canvas<'a>) -> Result<(Plot<'a>, Canvas<'a>), DrawingError> {
        let (plot, legend) = canvas.area.split_vertically(PLOT);
        let sizes = (self.first..self.last).log_scale();
        let chart = ChartBuilder::on(&plot)
            .margin_top(10)
            .margin_right(26)
            .margin_bottom(26)
            .margin_left(62)
            .build_cartesian_2d(sizes, (self.low..self.high).log_scale())?;
        Ok((chart, Canvas { area: legend }))
    }
}

fn grid(canvas: &Canvas<'_>, frame: &Frame) -> Drawn {
    let (chart, _) = frame.on(canvas)?;
    let (left, foot) = chart.backend_coord(&(frame.first, frame.low));
    for rate in decades(frame.low, frame.high) {
        let (right, y) = chart.backend_coord(&(frame.last, rate));
        canvas.line((left, y), (right, y), 1, palette::GRID)?;
        canvas.text(&tick(rate), (left - 6, y), Hang::Right, palette::MUTED)?;
    }
    for size in sizes(frame.first as u64, frame.last as u64) {
        let (x, top) = chart.backend_coord(&(size as f64, frame.high));
        canvas.line((x, top), (x, foot), 1, palette::GRID)?;
        let name = figure::bytes(size);
        canvas.text(&name, (x, foot + 14), Hang::Middle, palette::MUTED)?;
    }
    Ok(())
}

/// The curve with its marks, and its line of the legend.
fn curve(
    canvas: &Canvas<'_>,
    frame: &Frame,
    number: usize,
    trial: &Trial,
    points: &[(f64, f64)],
) -> Drawn {
    let (mut chart, legend) = frame.on(canvas)?;
    let colour = match number {
        0 => palette::of(trial),
        _ => palette::GREY,
    };
    let style = colour.stroke_width(2);
    chart.draw_series(LineSeries::new(points.iter().copied(), style))?;
    for point in points {
        canvas.mark(number, chart.backend_coord(point), colour)?;
    }
    let middle = number as i32 * LINE + LINE / 2;
    legend.mark(number, (8, middle), colour)?;
    let name = clipped(&name(trial), WIDTH - 24);
    legend.text(&name, (22, middle), Hang::Left, palette::INK)
}

/// The system with its backend or version.
fn name(trial: &Trial) -> String {
    match &trial.backend {
        Some(backend) => format!("{}, {backend}", trial.system),
        None => format!("{} {}", trial.system, trial.system_version),
    }
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
