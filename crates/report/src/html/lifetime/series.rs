//! A figure of every setup over time.

use super::colour;
use crate::figure;
use crate::html::chart::{Canvas, Drawn, Hang, LINE, WIDTH, draw, palette, ticks, width};
use crate::lifetime::{Life, Lifetime, Moment, Setup};
use maud::Markup;
use plotters::prelude::*;

const PLOT: i32 = 210;

/// Least distance between the names of two times.
const APART: i32 = 12;

/// The figure that `value` takes of a moment, over time on a scale of powers.
pub(super) fn render(label: &str, record: &Lifetime, value: fn(&Moment) -> f64) -> Markup {
    let height = PLOT + record.setups.len() as i32 * LINE + 6;
    draw(label, height, |canvas| paint(canvas, record, value))
}

fn paint(canvas: &Canvas<'_>, record: &Lifetime, value: fn(&Moment) -> f64) -> Drawn {
    let all = record.setups.iter().flat_map(|life| &life.moments);
    let highest = all.map(value).fold(f64::MIN_POSITIVE, f64::max) * 1.08;
    let (begin, end) = (record.begin(), record.years);

    let (plot, legend) = canvas.area.split_vertically(PLOT);
    let mut chart = ChartBuilder::on(&plot)
        .margin_top(10)
        .margin_right(14)
        .margin_bottom(26)
        .margin_left(48)
        .build_cartesian_2d((begin..end * 1.0001).log_scale(), 0.0..highest)?;
    let (left, foot) = chart.backend_coord(&(begin, 0.0));
    let (right, _) = chart.backend_coord(&(end, 0.0));
    for tick in ticks(0.0, highest, 6) {
        let (_, y) = chart.backend_coord(&(begin, tick));
        canvas.line((left, y), (right, y), 1, palette::GRID)?;
        let name = figure::number(tick);
        let name = name.trim_end_matches(".00").trim_end_matches(".0");
        canvas.text(name, (left - 6, y), Hang::Right, palette::MUTED)?;
    }
    // From the end backwards, so that the last year has its name.
    let mut next = WIDTH;
    for (years, name) in record.times().iter().rev() {
        let (x, _) = chart.backend_coord(&(*years, 0.0));
        let half = width(name) / 2;
        let x_of_name = x.min(WIDTH - half);
        canvas.line((x, foot), (x, foot + 4), 1, palette::MUTED)?;
        if x_of_name + half <= next && x_of_name - half >= 0 {
            let at = (x_of_name, foot + 15);
            canvas.text(name, at, Hang::Middle, palette::MUTED)?;
            next = x_of_name - half - APART;
        }
    }
    for life in &record.setups {
        // A moment tells of the time since the one before it.
        let mut points: Vec<(f64, f64)> = Vec::new();
        let mut since = begin;
        for moment in &life.moments {
            let until = moment.years.clamp(begin, end);
            points.extend([(since, value(moment)), (until, value(moment))]);
            since = until;
        }
        // It goes on as it was last.
        points.extend(points.last().map(|(_, last)| (end, *last)));
        let style = colour(life.setup).stroke_width(stroke(life));
        chart.draw_series(LineSeries::new(points, style))?;
        if let Some(mark) = mark(life.setup) {
            for (years, _) in record.times() {
                if let Some(moment) = life.at(years) {
                    let at = chart.backend_coord(&(years, value(moment)));
                    canvas.mark(mark, at, colour(life.setup))?;
                }
            }
        }
    }
    let legend = Canvas { area: legend };
    for (number, life) in record.setups.iter().enumerate() {
        let middle = number as i32 * LINE + LINE / 2;
        let colour = colour(life.setup);
        legend.line((0, middle), (20, middle), stroke(life), colour)?;
        if let Some(mark) = mark(life.setup) {
            legend.mark(mark, (10, middle), colour)?;
        }
        let name = record.name(life.setup);
        legend.text(&name, (28, middle), Hang::Left, palette::INK)?;
    }
    Ok(())
}

/// What is not encrypted is a broad line below the others, which may hide it.
fn stroke(life: &Life) -> u32 {
    match life.setup {
        Setup::Plain => 7,
        _ => 2,
    }
}

/// The mark that tells a setup from the others without colour.
fn mark(setup: Setup) -> Option<usize> {
    match setup {
        Setup::Plain => None,
        Setup::Passed => Some(0),
        Setup::Blocked => Some(1),
        Setup::Filled => Some(2),
        Setup::Unpartitioned => Some(3),
    }
}
