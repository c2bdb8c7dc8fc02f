//! Throughput of one workload: a bar a system, with the interval of the median.

use super::{Canvas, Caption, Drawn, WIDTH, draw, palette};
use crate::figure;
use crate::group::{Group, Row};
use maud::Markup;

/// Height of a bar, and of the gap below it.
const BAR: i32 = 14;
const GAP: i32 = 10;

pub(crate) fn render(group: &Group<'_>) -> Markup {
    let rows: Vec<(&Row<'_>, Caption)> = group
        .rows
        .iter()
        .map(|row| {
            let value = figure::rate_in_short(row.trial);
            (row, Caption::new(&row.label, value))
        })
        .collect();
    let height = rows
        .iter()
        .map(|(_, caption)| caption.height() + BAR + GAP)
        .sum();
    let label = format!("Throughput of {}", group.title());
    draw(&label, height, |canvas| paint(canvas, &rows, height))
}

fn paint(canvas: &Canvas<'_>, rows: &[(&Row<'_>, Caption)], height: i32) -> Drawn {
    let highest = rows
        .iter()
        .map(|(row, _)| figure::rate(row.trial).0)
        .filter(|rate| figure::finite(*rate))
        .fold(0.0, |highest: f64, rate| {
            highest.max(rate.high).max(rate.median)
        });
    // Room for the cap of the longest whisker.
    let scale = |value: f64| match highest > 0.0 {
        true => 1 + ((value / highest).clamp(0.0, 1.0) * f64::from(WIDTH - 3)) as i32,
        false => 1,
    };
    let mut y = 0;
    for (row, caption) in rows {
        caption.draw(canvas, y)?;
        y += caption.height();
        let (rate, _) = figure::rate(row.trial);
        if figure::finite(rate) {
            let colour = palette::of(row.trial);
            canvas.rectangle((0, y), (scale(rate.median), y + BAR), colour)?;
            let (low, high) = (scale(rate.low), scale(rate.high));
            canvas.whisker(low, high, y + BAR / 2, 2, palette::INK)?;
        }
        y += BAR + GAP;
    }
    canvas.line((0, 0), (0, height), 1, palette::GRID)
}
