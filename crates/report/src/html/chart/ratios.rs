//! Published ratios beside ours, with a line at 1.

use super::{Caption, Drawing, Hang, LINE, WIDTH, palette, ticks};
use lab::record::{Interval, Trial};
use maud::Markup;

/// Height of the strip that shows a ratio.
const STRIP: i32 = 18;
/// Ratios beyond are drawn at the edge; the numbers beside them are exact.
const HIGHEST: f64 = 20.0;

/// What something is divided by something else.
pub(crate) struct Ratio<'a> {
    /// Of what.
    pub(crate) name: String,
    /// Its cell.
    pub(crate) trial: &'a Trial,
    /// Published.
    pub(crate) there: f64,
    /// Measured.
    pub(crate) here: Interval,
}

/// The chart; a screen reader hears `label`.
pub(crate) fn render(label: &str, ratios: &[Ratio<'_>]) -> Markup {
    let rows: Vec<(&Ratio<'_>, Caption)> = ratios
        .iter()
        .map(|ratio| {
            let value = format!("{:.2} there, {:.2} here", ratio.there, ratio.here.median);
            (ratio, Caption::new(&ratio.name, value))
        })
        .collect();
    let strips = rows.iter().map(|(_, caption)| caption.height() + STRIP);
    let height = strips.sum::<i32>() + LINE + 4;

    let values = || {
        let values = |ratio: &Ratio<'_>| [ratio.there, ratio.here.low, ratio.here.high];
        ratios.iter().flat_map(values)
    };
    let low = values().fold(0.95, f64::min).max(0.0);
    let high = values().fold(1.05, f64::max).min(HIGHEST);
    let margin = (high - low) * 0.04;
    let (low, high) = ((low - margin).max(0.0), high + margin);
    let x = |ratio: f64| {
        let share = (ratio.clamp(low, high) - low) / (high - low);
        // Room for the marks at both edges.
        6 + (share * f64::from(WIDTH - 13)) as i32
    };
    let ticks = ticks(low, high, 4);
    let mut drawing = Drawing::new(
        label.to_owned(),
        "A row a cipher: a diamond at the published ratio, a dot with its 95 % interval at ours.",
        height,
    );
    drawing.scenery(|canvas| {
        for tick in &ticks {
            let text = format!("{}", (tick * 1000.0).round() / 1000.0);
            let place = (x(*tick).clamp(14, WIDTH - 14), height - LINE / 2);
            canvas.text(&text, place, Hang::Middle, palette::MUTED)?;
        }
        let mut y = 0;
        for (_, caption) in &rows {
            let top = y + caption.height();
            y = top + STRIP;
            for tick in &ticks {
                canvas.line((x(*tick), top), (x(*tick), y - 3), 1, palette::GRID)?;
            }
            canvas.line((x(1.0), top), (x(1.0), y - 3), 2, palette::MUTED)?;
        }
        Ok(())
    });
    let mut y = 0;
    for (ratio, caption) in &rows {
        let here = ratio.here;
        let tip = format!(
            "{}: {:.2} there, {:.2} ({:.2}–{:.2}) here",
            ratio.name, ratio.there, here.median, here.low, here.high
        );
        let top = y + caption.height();
        drawing.row(ratio.trial, &tip, |canvas| {
            caption.draw(canvas, y)?;
            let middle = i32::midpoint(top, top + STRIP - 3);
            canvas.mark(3, (x(ratio.there), middle), palette::GREY)?;
            canvas.whisker(x(here.low), x(here.high), middle, 2, palette::BLUE)?;
            canvas.mark(0, (x(here.median), middle), palette::BLUE)
        });
        y = top + STRIP;
    }
    drawing.finish()
}
