//! Times of unlocking and costs of guessing on one logarithmic scale of seconds.

use super::{Caption, Drawing, Hang, LINE, WIDTH, decades, palette};
use crate::figure;
use lab::record::{Interval, Trial};
use maud::Markup;

/// Height of the strip that shows a row.
const STRIP: i32 = 18;

/// A derivation.
pub(crate) struct Cost<'a> {
    pub(crate) name: String,
    pub(crate) trial: &'a Trial,
    /// Seconds of an unlock.
    pub(crate) unlock: Interval,
    /// Core-seconds of a guess, where that was measured.
    pub(crate) guess: Option<f64>,
}

impl Cost<'_> {
    fn values(&self) -> impl Iterator<Item = f64> {
        let unlock = [self.unlock.low, self.unlock.median, self.unlock.high];
        unlock.into_iter().chain(self.guess)
    }

    fn in_words(&self) -> String {
        let unlock = figure::duration_us(self.unlock.median * 1e6);
        match self.guess {
            Some(guess) => format!("{unlock}; a guess {} core-s", figure::number(guess)),
            None => unlock,
        }
    }
}

/// The chart, or nothing without a time; a screen reader hears `label`.
pub(crate) fn render(label: &str, costs: &[Cost<'_>]) -> Option<Markup> {
    let drawn = |cost: &&Cost<'_>| cost.values().all(|value| value.is_finite() && value > 0.0);
    let rows: Vec<(&Cost<'_>, Caption)> = costs
        .iter()
        .filter(drawn)
        .map(|cost| (cost, Caption::new(&cost.name, cost.in_words())))
        .collect();
    let values = || rows.iter().flat_map(|(cost, _)| cost.values());
    let (low, high) = (
        values().reduce(f64::min)? / 1.3,
        values().reduce(f64::max)? * 1.3,
    );
    let x = |seconds: f64| {
        let share = (seconds / low).ln() / (high / low).ln();
        // Room for the marks at both edges.
        6 + (share * f64::from(WIDTH - 13)) as i32
    };
    let strips = rows.iter().map(|(_, caption)| caption.height() + STRIP);
    let height = strips.sum::<i32>() + LINE + 4;
    let ticks = decades(low, high);
    let mut drawing = Drawing::new(
        label.to_owned(),
        "A row a derivation: a dot with its 95 % interval at the time of an unlock, a diamond at the core-seconds of a guess.",
        height,
    );
    drawing.scenery(|canvas| {
        for tick in &ticks {
            let place = (x(*tick).clamp(18, WIDTH - 18), height - LINE / 2);
            let text = figure::duration_us(tick * 1e6);
            canvas.text(&text, place, Hang::Middle, palette::MUTED)?;
        }
        let mut y = 0;
        for (_, caption) in &rows {
            let top = y + caption.height();
            y = top + STRIP;
            for tick in &ticks {
                canvas.line((x(*tick), top), (x(*tick), y - 3), 1, palette::GRID)?;
            }
        }
        Ok(())
    });
    let mut y = 0;
    for (cost, caption) in &rows {
        let top = y + caption.height();
        let tip = format!("{}: {}", cost.name, cost.in_words());
        drawing.row(cost.trial, &tip, |canvas| {
            caption.draw(canvas, y)?;
            let middle = i32::midpoint(top, top + STRIP - 3);
            if let Some(guess) = cost.guess {
                canvas.mark(3, (x(guess), middle), palette::VERMILLION)?;
            }
            let unlock = cost.unlock;
            canvas.whisker(x(unlock.low), x(unlock.high), middle, 2, palette::BLUE)?;
            canvas.mark(0, (x(unlock.median), middle), palette::BLUE)
        });
        y = top + STRIP;
    }
    Some(drawing.finish())
}
