//! What an observer sees of the drive, from its start to its end.

use super::colour;
use crate::html::chart::{Canvas, Caption, Drawn, WIDTH, draw, palette};
use crate::lifetime::{Life, Lifetime, seen};
use maud::Markup;
use plotters::prelude::*;

/// Height of a map, and of the gap below it.
const HIGH: i32 = 18;
const GAP: i32 = 12;

pub(super) fn render(record: &Lifetime) -> Markup {
    let rows: Vec<(&Life, Caption)> = record
        .setups
        .iter()
        .map(|life| {
            let value = seen(life.leak.as_ref());
            (life, Caption::new(&record.name(life.setup), value))
        })
        .collect();
    let height = rows
        .iter()
        .map(|(life, caption)| row_height(life, caption))
        .sum();
    draw("Noise on the drive", height, |canvas| paint(canvas, &rows))
}

fn row_height(life: &Life, caption: &Caption) -> i32 {
    caption.height() + life.leak.as_ref().map_or(0, |_| HIGH) + GAP
}

fn paint(canvas: &Canvas<'_>, rows: &[(&Life, Caption)]) -> Drawn {
    let mut y = 0;
    for (life, caption) in rows {
        caption.draw(canvas, y)?;
        let top = y + caption.height();
        y += row_height(life, caption);
        let Some(leak) = &life.leak else {
            continue;
        };
        let x_of = |cell: usize| (cell * WIDTH as usize / leak.map.len()) as i32;
        for (cell, noise) in leak.map.iter().enumerate() {
            let style = colour(life.setup).mix(*noise).filled();
            let corners = [(x_of(cell), top), (x_of(cell + 1), top + HIGH)];
            canvas.area.draw(&Rectangle::new(corners, style))?;
        }
        let corners = [(0, top), (WIDTH - 1, top + HIGH)];
        let frame = palette::MUTED.stroke_width(1);
        canvas.area.draw(&Rectangle::new(corners, frame))?;
    }
    Ok(())
}
