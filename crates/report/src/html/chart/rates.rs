//! Rates of bare ciphers under one load: a bar a cipher, the fastest library's
//! in grey below it.

use super::{Canvas, Caption, Drawn, WIDTH, draw, palette};
use crate::ciphers::Line;
use crate::figure;
use lab::record::{Interval, Trial};
use maud::Markup;

/// Heights of the bars, and of the gap below them.
const BAR: i32 = 10;
const PEER: i32 = 5;
const GAP: i32 = 9;

pub(crate) fn render(title: &str, lines: &[Line<'_>]) -> Markup {
    let rows: Vec<(&Line<'_>, Caption)> = lines
        .iter()
        .map(|line| {
            let name = format!(
                "{}, {}",
                line.name(),
                line.trial.sector_bytes.unwrap_or_default()
            );
            let rate = figure::number(line.trial.throughput_mb_s.median);
            let value = match line.best_peer() {
                Some((_, ratio, _)) => format!("{rate}, {} ×", figure::number(ratio.median)),
                None => rate,
            };
            (line, Caption::new(&name, value))
        })
        .collect();
    let height = rows
        .iter()
        .map(|(_, caption)| caption.height() + BAR + PEER + GAP)
        .sum();
    let label = format!("Rates: {title}");
    draw(&label, height, |canvas| paint(canvas, &rows, height))
}

fn paint(canvas: &Canvas<'_>, rows: &[(&Line<'_>, Caption)], height: i32) -> Drawn {
    let rate =
        |trial: &Trial| Some(trial.throughput_mb_s).filter(|rate: &Interval| figure::finite(*rate));
    let highest = rows
        .iter()
        .flat_map(|(line, _)| std::iter::once(line.trial).chain(line.peers.iter().copied()))
        .filter_map(rate)
        .fold(0.0, |highest: f64, rate| {
            highest.max(rate.high).max(rate.median)
        });
    // Room for the cap of the longest whisker.
    let scale = |value: f64| match highest > 0.0 {
        true => 1 + ((value / highest).clamp(0.0, 1.0) * f64::from(WIDTH - 3)) as i32,
        false => 1,
    };
    let mut y = 0;
    for (line, caption) in rows {
        caption.draw(canvas, y)?;
        y += caption.height();
        if let Some(rate) = rate(line.trial) {
            let colour = palette::of(line.trial);
            canvas.rectangle((0, y), (scale(rate.median), y + BAR), colour)?;
            let (low, high) = (scale(rate.low), scale(rate.high));
            canvas.whisker(low, high, y + BAR / 2, 2, palette::INK)?;
        }
        y += BAR;
        if let Some(rate) = line.peers.first().and_then(|peer| rate(peer)) {
            canvas.rectangle((0, y), (scale(rate.median), y + PEER), palette::GREY)?;
        }
        y += PEER + GAP;
    }
    canvas.line((0, 0), (0, height), 1, palette::GRID)
}
