//! Quantiles of many ratios, a row a group: a line from 5 % to 95 %, a box around the
//! middle half, a dot at the median.

use super::{Canvas, Caption, Drawn, Hang, LINE, WIDTH, draw, palette, ticks};
use crate::figure;
use crate::fleet::{Quantiles, change};
use maud::Markup;

/// Height of the strip that shows a row.
const STRIP: i32 = 20;
/// Ratios beyond are drawn at the edge; the table has them.
const HIGHEST: f64 = 3.0;

/// The chart, which a screen reader announces as `label`; nothing without a row.
pub(crate) fn render(label: &str, groups: &[Quantiles]) -> Option<Markup> {
    let rows: Vec<(&Quantiles, Caption)> = groups
        .iter()
        .map(|group| {
            let trials = figure::grouped(&group.trials.to_string());
            let value = format!("{}, n {trials}", change(group.p50));
            (group, Caption::new(&group.name, value))
        })
        .collect();
    if rows.is_empty() {
        return None;
    }
    let strips = rows.iter().map(|(_, caption)| caption.height() + STRIP);
    let height = strips.sum::<i32>() + 2 * LINE + 6;
    Some(draw(label, height, |canvas| paint(canvas, &rows, height)))
}

fn paint(canvas: &Canvas<'_>, rows: &[(&Quantiles, Caption)], height: i32) -> Drawn {
    let low = rows.iter().map(|(row, _)| row.p5).fold(0.95, f64::min);
    let high = rows.iter().map(|(row, _)| row.p95).fold(1.05, f64::max);
    let (low, high) = (low.max(0.0), high.min(HIGHEST));
    let x = |ratio: f64| {
        let share = (ratio.clamp(low, high) - low) / (high - low);
        // Room for the dots at both edges.
        6 + (share * f64::from(WIDTH - 13)) as i32
    };
    let ticks = ticks(low, high, 4);
    let mut y = 0;
    for (row, caption) in rows {
        caption.draw(canvas, y)?;
        let top = y + caption.height();
        let (bottom, middle) = (top + STRIP - 4, top + (STRIP - 4) / 2);
        for tick in &ticks {
            canvas.line((x(*tick), top), (x(*tick), bottom), 1, palette::GRID)?;
        }
        canvas.line((x(1.0), top), (x(1.0), bottom), 2, palette::MUTED)?;
        canvas.whisker(x(row.p5), x(row.p95), middle, 2, palette::BLUE)?;
        let (left, right) = (x(row.p25), x(row.p75).max(x(row.p25) + 1));
        canvas.rectangle((left, middle - 4), (right, middle + 4), palette::SKY)?;
        canvas.mark(0, (x(row.p50), middle), palette::INK)?;
        y = top + STRIP;
    }
    for tick in &ticks {
        let place = ((x(*tick)).clamp(14, WIDTH - 14), y + LINE / 2 + 2);
        let text = format!("{}", (tick * 1000.0).round() / 1000.0);
        canvas.text(&text, place, Hang::Middle, palette::MUTED)?;
    }
    let foot = "encrypted ÷ plain; left of 1 is slower";
    canvas.text(
        foot,
        (WIDTH / 2, height - LINE / 2),
        Hang::Middle,
        palette::MUTED,
    )
}
