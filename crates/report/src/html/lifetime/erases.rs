//! How many blocks had how many erases, one setup below the other.

use super::colour;
use crate::figure;
use crate::html::chart::{Canvas, Caption, Drawn, Hang, LINE, WIDTH, draw, palette, ticks};
use crate::lifetime::{Life, Lifetime};
use maud::Markup;

/// Height of a histogram, and of the gap below it.
const HIGH: i32 = 40;
const GAP: i32 = 10;

/// Columns of all of them, at most.
const COLUMNS: u32 = 76;

pub(super) fn render(record: &Lifetime) -> Markup {
    let rows: Vec<(&Life, Caption)> = record
        .setups
        .iter()
        .map(|life| {
            let value = format!(
                "mean {}, {}",
                figure::number(life.erases_mean()),
                life.counted_until()
            );
            (life, Caption::new(&record.name(life.setup), value))
        })
        .collect();
    let height: i32 = rows
        .iter()
        .map(|(_, caption)| caption.height() + HIGH + GAP)
        .sum();
    draw("Erases of the blocks", height + LINE, |canvas| {
        paint(canvas, &rows, height)
    })
}

fn paint(canvas: &Canvas<'_>, rows: &[(&Life, Caption)], height: i32) -> Drawn {
    let most = rows.iter().filter_map(|(life, _)| life.erases.last());
    let most = most.map(|(erases, _)| *erases).max().unwrap_or(0);
    let step = (most + 1).div_ceil(COLUMNS);
    let columns = (most + 1).div_ceil(step);
    let x_of = |column: u32| (f64::from(column) / f64::from(columns) * f64::from(WIDTH)) as i32;
    let mut y = 0;
    for (life, caption) in rows {
        caption.draw(canvas, y)?;
        y += caption.height() + HIGH;
        let mut blocks = vec![0; columns as usize];
        for (erases, number) in &life.erases {
            blocks[(erases / step) as usize] += number;
        }
        let highest = blocks.iter().copied().max().unwrap_or(0).max(1);
        for (column, blocks) in (0..).zip(blocks).filter(|(_, blocks)| *blocks > 0) {
            let part = f64::from(blocks) / f64::from(highest) * f64::from(HIGH);
            // What is there is seen.
            let top = y - (part as i32).max(2);
            let right = (x_of(column + 1) - 1).max(x_of(column) + 1);
            canvas.rectangle((x_of(column), top), (right, y), colour(life.setup))?;
        }
        canvas.line((0, y), (WIDTH, y), 1, palette::GRID)?;
        y += GAP;
    }
    for tick in ticks(0.0, f64::from(most), 5) {
        let x = (tick / f64::from(columns * step) * f64::from(WIDTH)) as i32;
        let (x, hang) = match x {
            0 => (0, Hang::Left),
            x if x > WIDTH - 20 => (WIDTH, Hang::Right),
            x => (x, Hang::Middle),
        };
        let name = figure::grouped(&format!("{tick:.0}"));
        canvas.text(&name, (x, height + LINE / 2), hang, palette::MUTED)?;
    }
    Ok(())
}
