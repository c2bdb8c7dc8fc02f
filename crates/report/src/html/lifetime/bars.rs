//! How long the drive lasts under each setup.

use super::colour;
use crate::html::chart::{Canvas, Caption, Drawn, WIDTH, draw, palette};
use crate::lifetime::{Life, Lifetime, lasts};
use maud::Markup;

/// Height of a bar, and of the gap below it.
const BAR: i32 = 14;
const GAP: i32 = 10;

pub(super) fn render(record: &Lifetime) -> Markup {
    let rows: Vec<(&Life, Caption)> = record
        .setups
        .iter()
        .map(|life| {
            let caption = Caption::new(&record.name(life.setup), lasts(life.lifetime_years));
            (life, caption)
        })
        .collect();
    let height = rows
        .iter()
        .map(|(_, caption)| caption.height() + BAR + GAP)
        .sum();
    draw("Lifetime in years", height, |canvas| {
        paint(canvas, &rows, height)
    })
}

fn paint(canvas: &Canvas<'_>, rows: &[(&Life, Caption)], height: i32) -> Drawn {
    let years = rows.iter().map(|(life, _)| life.lifetime_years);
    let longest = years.fold(f64::MIN_POSITIVE, f64::max);
    let mut y = 0;
    for (life, caption) in rows {
        caption.draw(canvas, y)?;
        y += caption.height();
        let length = life.lifetime_years / longest * f64::from(WIDTH - 1);
        let end = 1 + length as i32;
        canvas.rectangle((0, y), (end, y + BAR), colour(life.setup))?;
        y += BAR + GAP;
    }
    canvas.line((0, 0), (0, height), 1, palette::GRID)
}
