//! A bar a system, with the interval of the median: of one workload its rates,
//! or times where operations are what was measured; scores.

use super::{Canvas, Caption, Drawing, Drawn, WIDTH, palette};
use crate::figure;
use crate::group::{Group, Row};
use lab::record::{Interval, Tier, Trial};
use maud::Markup;

/// Height of a bar, and of the gap below it.
const BAR: i32 = 14;
const GAP: i32 = 10;

/// What a bar stands for.
pub(crate) struct Bar<'a> {
    /// Above it.
    pub(crate) label: String,
    /// Its value, in short and in full.
    pub(crate) short: String,
    pub(crate) full: String,
    /// What it is as long as; no bar where nothing is known.
    pub(crate) length: Option<Interval>,
    /// Whose it is.
    pub(crate) trial: &'a Trial,
}

pub(crate) fn render(group: &Group<'_>) -> Markup {
    let bars: Vec<Bar<'_>> = group.rows.iter().map(of).collect();
    let what = if is_time(group) { "Time" } else { "Rate" };
    draw(format!("{what}: {}", group.title()), &bars)
}

fn of<'a>(row: &Row<'a>) -> Bar<'a> {
    Bar {
        label: row.label.clone(),
        short: in_short(row.trial),
        full: in_full(row.trial),
        length: length(row.trial),
        trial: row.trial,
    }
}

/// The chart of `bars`; a screen reader hears `label`.
pub(crate) fn draw(label: String, bars: &[Bar<'_>]) -> Markup {
    let rows: Vec<(&Bar<'_>, Caption)> = bars
        .iter()
        .map(|bar| (bar, Caption::new(&bar.label, bar.short.clone())))
        .collect();
    let height = rows
        .iter()
        .map(|(_, caption)| caption.height() + BAR + GAP)
        .sum();
    let highest = bars
        .iter()
        .filter_map(|bar| bar.length)
        .fold(0.0, |highest: f64, length| {
            highest.max(length.high).max(length.median)
        });
    let mut drawing = Drawing::new(
        label,
        "A bar a system; the whisker is the 95 % interval of the median.",
        height,
    );
    drawing.scenery(|canvas| canvas.line((0, 0), (0, height), 1, palette::GRID));
    let mut y = 0;
    for (bar, caption) in &rows {
        let tip = format!("{}: {}", bar.label, bar.full);
        drawing.row(bar.trial, &tip, |canvas| {
            caption.draw(canvas, y)?;
            paint(canvas, bar, y + caption.height(), highest)
        });
        y += caption.height() + BAR + GAP;
    }
    drawing.finish()
}

/// Whether the bars of a group are times, of which the shorter is better.
pub(crate) fn is_time(group: &Group<'_>) -> bool {
    group.trial().is_some_and(|trial| trial.tier == Tier::Fs)
}

fn paint(canvas: &Canvas<'_>, bar: &Bar<'_>, y: i32, highest: f64) -> Drawn {
    let Some(length) = bar.length else {
        return Ok(());
    };
    // Room for the cap of the longest whisker.
    let scale = |value: f64| match highest > 0.0 {
        true => 1 + ((value / highest).clamp(0.0, 1.0) * f64::from(WIDTH - 3)) as i32,
        false => 1,
    };
    let colour = palette::of(bar.trial);
    canvas.rectangle((0, y), (scale(length.median), y + BAR), colour)?;
    let (low, high) = (scale(length.low), scale(length.high));
    canvas.whisker(low, high, y + BAR / 2, 2, palette::INK)
}

/// What a bar is as long as.
fn length(trial: &Trial) -> Option<Interval> {
    let length = match trial.tier {
        Tier::Fs => figure::time_us(trial)?,
        _ => figure::rate(trial).0,
    };
    Some(length).filter(|length| figure::finite(*length))
}

fn in_short(trial: &Trial) -> String {
    match trial.tier {
        Tier::Fs => figure::duration_us(trial.latency_us.p50),
        _ => figure::rate_in_short(trial),
    }
}

fn in_full(trial: &Trial) -> String {
    if trial.tier == Tier::Fs {
        return figure::time_us(trial).map_or_else(
            || figure::UNKNOWN.to_owned(),
            |time| {
                let [median, low, high] =
                    [time.median, time.low, time.high].map(figure::duration_us);
                format!("{median} ({low}–{high}, n {})", time.n)
            },
        );
    }
    let (rate, unit) = figure::rate(trial);
    format!("{} {unit}, n {}", figure::interval(rate), rate.n)
}
