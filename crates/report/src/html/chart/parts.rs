//! What an operation on a file system took on every system: a bar a system,
//! whose parts are parts of the real time.

use super::{Canvas, Caption, Drawing, Drawn, Hang, LINE, WIDTH, palette, width};
use crate::figure;
use lab::record::Trial;
use maud::Markup;
use plotters::style::RGBColor;

/// Height of a bar, and of the gap below it.
const BAR: i32 = 14;
const GAP: i32 = 8;

/// By how much the parts may exceed the whole, which others were measured with.
const SLACK: f64 = 1.02;

const PARTS: [(&str, RGBColor); 3] = [
    ("crypto", palette::VERMILLION),
    ("other CPU time", palette::SKY),
    ("waiting", palette::GREY),
];

/// A chart of one operation; `rows` have a label each.
pub(crate) fn render(title: &str, rows: &[(String, &Trial)]) -> Markup {
    let rows: Vec<(&Trial, Caption, String)> = rows
        .iter()
        .map(|(label, trial)| {
            let value = figure::duration_us(mean(trial) * 1e6);
            let tip = format!("{label}: {value}");
            (*trial, Caption::new(label, value), tip)
        })
        .collect();
    let bars: i32 = rows
        .iter()
        .map(|(_, caption, _)| caption.height() + BAR + GAP)
        .sum();
    let top = LINE + 8;
    let longest = rows.iter().map(|(trial, ..)| mean(trial));
    let longest = longest.filter(|s| s.is_finite()).fold(0.0, f64::max);
    let mut drawing = Drawing::new(
        format!("What {title} took"),
        "A bar a system, in its parts: crypto, other CPU time, waiting.",
        top + bars,
    );
    drawing.scenery(|canvas| {
        legend(canvas)?;
        canvas.line((0, top), (0, top + bars), 1, palette::GRID)
    });
    let mut y = top;
    for (trial, caption, tip) in &rows {
        drawing.row(trial, tip, |canvas| {
            caption.draw(canvas, y)?;
            bar(canvas, trial, longest, y + caption.height())
        });
        y += caption.height() + BAR + GAP;
    }
    drawing.finish()
}

fn legend(canvas: &Canvas<'_>) -> Drawn {
    let mut x = 0;
    for (name, colour) in PARTS {
        canvas.rectangle((x, 3), (x + 12, 15), colour)?;
        canvas.text(name, (x + 17, 9), Hang::Left, palette::INK)?;
        x += 17 + width(name) + 12;
    }
    Ok(())
}

fn bar(canvas: &Canvas<'_>, trial: &Trial, longest: f64, y: i32) -> Drawn {
    let x = |seconds: f64| match longest > 0.0 {
        true => ((seconds / longest).clamp(0.0, 1.0) * f64::from(WIDTH - 1)) as i32,
        false => 0,
    };
    let mut begin = 0.0;
    for ((_, colour), part) in PARTS.into_iter().zip(parts(trial)) {
        let end = begin + part;
        if x(end) > x(begin) {
            canvas.rectangle((x(begin), y), (x(end), y + BAR), colour)?;
        }
        begin = end;
    }
    Ok(())
}

/// Seconds of one repetition.
fn mean(trial: &Trial) -> f64 {
    trial.time_s.wall / f64::from(trial.repetitions.max(1))
}

/// Seconds of [`PARTS`] in one repetition, which are together what it took. Where
/// several cores worked at a time, only encryption is told from the rest.
fn parts(trial: &Trial) -> [f64; 3] {
    let each = |sum: f64| sum / f64::from(trial.repetitions.max(1));
    let (time, wall) = (&trial.time_s, mean(trial));
    if !wall.is_finite() || wall <= 0.0 {
        return [0.0; 3];
    }
    let crypto = each(time.crypto.unwrap_or(0.0)).clamp(0.0, wall);
    let busy = time.cpu.map(|cpu| each(cpu + time.workers.unwrap_or(0.0)));
    match busy.filter(|busy| *busy <= wall * SLACK) {
        Some(busy) => {
            let busy = busy.clamp(crypto, wall);
            [crypto, busy - crypto, wall - busy]
        }
        None => [crypto, wall - crypto, 0.0],
    }
}
