//! Rates of bare ciphers under one load: a bar a cipher, the fastest library's
//! in grey below it.

use super::{Canvas, Caption, Drawing, Drawn, WIDTH, palette};
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
                line.name,
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
    let highest = rows
        .iter()
        .flat_map(|(line, _)| std::iter::once(line.trial).chain(line.peers.iter().copied()))
        .filter_map(rate)
        .fold(0.0, |highest: f64, rate| {
            highest.max(rate.high).max(rate.median)
        });
    let mut drawing = Drawing::new(
        format!("Rates: {title}"),
        "A bar a cipher with the 95 % interval of its median; below it, in grey, the fastest library.",
        height,
    );
    drawing.scenery(|canvas| canvas.line((0, 0), (0, height), 1, palette::GRID));
    let mut y = 0;
    for (line, caption) in &rows {
        drawing.row(line.trial, &in_words(line), |canvas| {
            caption.draw(canvas, y)?;
            bars(canvas, line, y + caption.height(), highest)
        });
        y += caption.height() + BAR + PEER + GAP;
    }
    drawing.finish()
}

/// `AES-256 XTS, 512-byte sectors: 13,400 (13,132–13,668) MB/s, n 10; 2.24 × openssl`.
fn in_words(line: &Line<'_>) -> String {
    let rate = line.trial.throughput_mb_s;
    let mut words = format!(
        "{}, {}-byte sectors: {} MB/s, n {}",
        line.name,
        line.trial.sector_bytes.unwrap_or_default(),
        figure::interval(rate),
        rate.n
    );
    if line.best_peer().is_some() {
        words.push_str("; against the best library: ");
        words.push_str(&line.against());
    }
    words
}

fn rate(trial: &Trial) -> Option<Interval> {
    Some(trial.throughput_mb_s).filter(|rate| figure::finite(*rate))
}

fn bars(canvas: &Canvas<'_>, line: &Line<'_>, y: i32, highest: f64) -> Drawn {
    // Room for the cap of the longest whisker.
    let scale = |value: f64| match highest > 0.0 {
        true => 1 + ((value / highest).clamp(0.0, 1.0) * f64::from(WIDTH - 3)) as i32,
        false => 1,
    };
    if let Some(rate) = rate(line.trial) {
        let colour = palette::of(line.trial);
        canvas.rectangle((0, y), (scale(rate.median), y + BAR), colour)?;
        let (low, high) = (scale(rate.low), scale(rate.high));
        canvas.whisker(low, high, y + BAR / 2, 2, palette::INK)?;
    }
    if let Some(rate) = line.peers.first().and_then(|peer| rate(peer)) {
        let (top, right) = (y + BAR, scale(rate.median));
        canvas.rectangle((0, top), (right, top + PEER), palette::GREY)?;
    }
    Ok(())
}
