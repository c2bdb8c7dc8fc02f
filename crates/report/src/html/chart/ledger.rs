//! Where the driving threads' time went: shares of wall × threads, stacked.

use super::{Canvas, Caption, Drawing, Drawn, Hang, LINE, WIDTH, clipped, palette, width};
use crate::figure;
use crate::group::{Group, Row};
use lab::record::{TimeSplit, Trial};
use maud::Markup;
use plotters::style::RGBColor;

const BAR: i32 = 20;
const GAP: i32 = 8;
/// Height of a workload's name and the gap below it.
const TITLE: i32 = LINE + 5;

/// A part of the ledger: its name, its colour, how to read it from a record.
type Part = (&'static str, RGBColor, fn(&TimeSplit) -> Option<f64>);

const PARTS: [Part; 5] = [
    ("crypto", palette::VERMILLION, |time| time.crypto),
    ("copy", palette::YELLOW, |time| time.copy),
    ("submit", palette::PURPLE, |time| time.submit),
    ("wait", palette::SKY, |time| time.wait),
    ("other", palette::GREY, |time| time.other),
];

/// The chart, or nothing when no cell has a ledger.
pub(crate) fn render(groups: &[Group<'_>]) -> Option<Markup> {
    let blocks: Vec<(String, Vec<(&Row<'_>, Caption)>)> = groups
        .iter()
        .map(|group| {
            let rows = group
                .rows
                .iter()
                .filter(|row| !shares(row.trial).is_empty())
                .map(|row| {
                    let known: f64 = shares(row.trial).iter().map(|(_, share)| share).sum();
                    // The parts are to add up; a reader must see when they do not.
                    let value = match (known - 1.0).abs() < 0.02 {
                        true => String::new(),
                        false => format!("{} accounted for", figure::share(Some(known))),
                    };
                    (row, Caption::new(&row.label, value))
                })
                .collect::<Vec<_>>();
            (group.title(), rows)
        })
        .filter(|(_, rows)| !rows.is_empty())
        .collect();
    if blocks.is_empty() {
        return None;
    }
    let block_height = |rows: &[(&Row<'_>, Caption)]| {
        let rows = rows.iter().map(|(_, caption)| caption.height() + BAR + GAP);
        TITLE + rows.sum::<i32>() + 6
    };
    let height = 2 * LINE
        + blocks
            .iter()
            .map(|(_, rows)| block_height(rows))
            .sum::<i32>();
    let mut drawing = Drawing::new(
        "Where the time went".to_owned(),
        "A bar a system, divided into shares of the driving threads' time.",
        height,
    );
    drawing.scenery(legend);
    let mut y = 2 * LINE;
    for (title, rows) in &blocks {
        drawing.scenery(|canvas| {
            let title = clipped(title, WIDTH);
            canvas.text(&title, (0, y + LINE / 2), Hang::Left, palette::MUTED)
        });
        y += TITLE;
        for (row, caption) in rows {
            let tip = format!("{title}, {}: {}", row.label, in_words(row.trial));
            drawing.row(row.trial, &tip, |canvas| {
                caption.draw(canvas, y)?;
                bar(canvas, row.trial, y + caption.height())
            });
            y += caption.height() + BAR + GAP;
        }
        y += 6;
    }
    Some(drawing.finish())
}

/// `crypto 12 %, wait 80 %`.
fn in_words(trial: &Trial) -> String {
    let parts: Vec<String> = shares(trial)
        .into_iter()
        .map(|(part, share)| format!("{} {}", PARTS[part].0, figure::share(Some(share))))
        .collect();
    parts.join(", ")
}

fn legend(canvas: &Canvas<'_>) -> Drawn {
    let mut x = 0;
    for (name, colour, _) in PARTS {
        canvas.rectangle((x, 3), (x + 12, 15), colour)?;
        canvas.text(name, (x + 17, 9), Hang::Left, palette::INK)?;
        x += 17 + width(name) + 12;
    }
    Ok(())
}

fn bar(canvas: &Canvas<'_>, trial: &Trial, y: i32) -> Drawn {
    let mut start = 0.0;
    for (part, share) in shares(trial) {
        let end = (start + share).min(1.0);
        let x = |share: f64| (share * f64::from(WIDTH)) as i32;
        if x(end) > x(start) {
            let (_, colour, _) = PARTS[part];
            canvas.rectangle((x(start), y), (x(end), y + BAR), colour)?;
            let text = figure::share(Some(share));
            if width(&text) + 6 < x(end) - x(start) {
                let middle = (i32::midpoint(x(start), x(end)), y + BAR / 2);
                canvas.text(&text, middle, Hang::Middle, palette::ON_COLOUR)?;
            }
        }
        start = end;
    }
    Ok(())
}

/// The known parts, by position in [`PARTS`], as shares of wall × threads.
fn shares(trial: &Trial) -> Vec<(usize, f64)> {
    let total = trial.time_s.wall * f64::from(trial.threads.max(1));
    if !total.is_finite() || total <= 0.0 {
        return Vec::new();
    }
    PARTS
        .iter()
        .enumerate()
        .filter_map(|(part, (_, _, read))| Some((part, read(&trial.time_s)? / total)))
        .filter(|(_, share)| share.is_finite() && *share >= 0.0)
        .collect()
}
