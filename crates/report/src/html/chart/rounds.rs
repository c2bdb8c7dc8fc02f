//! What a test tracks, round by round, until the drive is steady.

use super::{Canvas, Drawing, DrawingError, Drawn, Hang, LINE, WIDTH, clipped, palette, ticks};
use crate::figure;
use lab::record::Trial;
use maud::Markup;
use plotters::prelude::*;

const PLOT: i32 = 190;

/// A curve of rates.
pub(crate) struct Curve<'a> {
    pub(crate) name: String,
    pub(crate) trial: &'a Trial,
    /// MB/s of each round, in their order.
    pub(crate) rates: &'a [f64],
}

/// The chart, or nothing where fewer than two rounds were measured; the last
/// `window` rounds lie on a band. A screen reader hears `label`.
pub(crate) fn render(label: &str, curves: &[Curve<'_>], window: usize) -> Option<Markup> {
    let rounds = curves.iter().map(|curve| curve.rates.len()).max()?;
    let finite = |curve: &Curve<'_>| curve.rates.iter().all(|rate| rate.is_finite());
    if rounds < 2 || !curves.iter().all(finite) {
        return None;
    }
    let rates = curves.iter().flat_map(|curve| curve.rates);
    let frame = Frame {
        rounds: rounds as f64,
        highest: rates.fold(0.0, |highest: f64, rate| highest.max(*rate)) * 1.05,
    };
    if frame.highest <= 0.0 {
        return None;
    }
    let mut drawing = Drawing::new(
        label.to_owned(),
        "A curve a cell: its rate in MB/s, round by round; the band is the last rounds, by which it is judged.",
        PLOT + curves.len() as i32 * LINE + 6,
    );
    drawing.scenery(|canvas| grid(canvas, &frame, window.min(rounds)));
    for (number, curve) in curves.iter().enumerate().rev() {
        let values: Vec<String> = curve
            .rates
            .iter()
            .map(|rate| figure::number(*rate))
            .collect();
        let tip = format!("{}, MB/s by round: {}", curve.name, values.join(", "));
        drawing.curve(number, curve.trial, &tip, |canvas| {
            paint(canvas, &frame, number, curve)
        });
    }
    Some(drawing.finish())
}

type Plot<'a> = ChartContext<
    'a,
    SVGBackend<'a>,
    Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
>;

struct Frame {
    rounds: f64,
    highest: f64,
}

impl Frame {
    /// The plot on top of `canvas`, and the room for the legend below.
    fn on<'a>(&self, canvas: &Canvas<'a>) -> Result<(Plot<'a>, Canvas<'a>), DrawingError> {
        let (plot, legend) = canvas.area.split_vertically(PLOT);
        let chart = ChartBuilder::on(&plot)
            .margin_top(10)
            .margin_right(14)
            .margin_bottom(26)
            .margin_left(62)
            .build_cartesian_2d(1.0..self.rounds, 0.0..self.highest)?;
        Ok((chart, Canvas { area: legend }))
    }
}

fn grid(canvas: &Canvas<'_>, frame: &Frame, window: usize) -> Drawn {
    let (chart, _) = frame.on(canvas)?;
    let place = |round: f64, rate: f64| chart.backend_coord(&(round, rate));
    canvas.rectangle(
        place(frame.rounds - window as f64 + 1.0, frame.highest),
        place(frame.rounds, 0.0),
        palette::BAND,
    )?;
    for rate in ticks(0.0, frame.highest, 4) {
        let ((left, y), (right, _)) = (place(1.0, rate), place(frame.rounds, rate));
        canvas.line((left, y), (right, y), 1, palette::GRID)?;
        let text = figure::number(rate);
        canvas.text(&text, (left - 6, y), Hang::Right, palette::MUTED)?;
    }
    let whole = |round: &f64| round.fract() == 0.0;
    for round in ticks(1.0, frame.rounds, 6).into_iter().filter(whole) {
        let (x, foot) = place(round, 0.0);
        let text = format!("{round:.0}");
        canvas.text(&text, (x, foot + 14), Hang::Middle, palette::MUTED)?;
    }
    Ok(())
}

fn paint(canvas: &Canvas<'_>, frame: &Frame, number: usize, curve: &Curve<'_>) -> Drawn {
    let (mut chart, legend) = frame.on(canvas)?;
    let colour = palette::of(curve.trial);
    let points = (1..).map(f64::from).zip(curve.rates.iter().copied());
    let points: Vec<(f64, f64)> = points.collect();
    let style = colour.stroke_width(2);
    chart.draw_series(LineSeries::new(points.iter().copied(), style))?;
    for point in &points {
        canvas.mark(number, chart.backend_coord(point), colour)?;
    }
    let middle = number as i32 * LINE + LINE / 2;
    legend.mark(number, (8, middle), colour)?;
    let name = clipped(&curve.name, WIDTH - 24);
    legend.text(&name, (22, middle), Hang::Left, palette::INK)
}
