//! What encryption costs in every workload: ratios to plain with their
//! intervals, a line at 1, and the band that A/A pairs reach.

use super::{Caption, Drawing, Hang, LINE, WIDTH, clipped, palette, ticks};
use crate::figure;
use crate::group::{Group, Row};
use lab::record::{Interval, Overhead};
use maud::Markup;

/// Height of the strip that shows an interval.
const STRIP: i32 = 18;
/// Height of a workload's name and the gap below it.
const TITLE: i32 = LINE + 5;
/// Ratios beyond are drawn at the edge; the numbers beside them are exact.
const HIGHEST: f64 = 3.0;

struct Line<'a> {
    row: &'a Row<'a>,
    overhead: &'a Overhead,
    caption: Caption,
}

struct Block<'a> {
    title: String,
    lines: Vec<Line<'a>>,
    again: Option<Interval>,
}

/// The chart, or nothing when no cell was compared with plain.
pub(crate) fn render(groups: &[Group<'_>]) -> Option<Markup> {
    let blocks: Vec<Block<'_>> = groups.iter().filter_map(block).collect();
    if blocks.is_empty() {
        return None;
    }
    let height = blocks.iter().map(Block::height).sum::<i32>() + 2 * LINE + 6;
    Some(paint(&blocks, height))
}

fn block<'a>(group: &'a Group<'_>) -> Option<Block<'a>> {
    let lines: Vec<Line<'a>> = group
        .rows
        .iter()
        .filter_map(|row| {
            let overhead = row.trial.overhead.as_ref()?;
            figure::finite(overhead.ratio).then(|| Line {
                row,
                overhead,
                caption: Caption::new(
                    &row.label,
                    figure::difference_in_short(overhead.ratio, overhead.verdict),
                ),
            })
        })
        .collect();
    let again = group
        .again
        .and_then(|again| again.overhead.as_ref())
        .map(|overhead| overhead.ratio)
        .filter(|ratio| figure::finite(*ratio));
    (!lines.is_empty()).then(|| Block {
        title: group.title(),
        lines,
        again,
    })
}

impl Block<'_> {
    fn height(&self) -> i32 {
        let lines = self.lines.iter().map(|line| line.caption.height() + STRIP);
        TITLE + lines.sum::<i32>() + 12
    }

    /// The upper edge of every line's strip, where the block begins at `y`.
    fn strips(&self, y: i32) -> impl Iterator<Item = i32> {
        let mut y = y + TITLE;
        self.lines.iter().map(move |line| {
            let top = y + line.caption.height();
            y = top + STRIP;
            top
        })
    }

    fn ends(&self) -> impl Iterator<Item = f64> {
        self.lines
            .iter()
            .map(|line| line.overhead.ratio)
            .chain(self.again)
            .flat_map(|ratio| [ratio.low, ratio.median, ratio.high])
    }
}

fn paint(blocks: &[Block<'_>], height: i32) -> Markup {
    let ends = || blocks.iter().flat_map(Block::ends);
    let low = ends().fold(0.95, f64::min).max(0.0);
    let high = ends().fold(1.05, f64::max).min(HIGHEST);
    let margin = (high - low) * 0.04;
    let (low, high) = ((low - margin).max(0.0), high + margin);
    let x = |ratio: f64| {
        let share = (ratio.clamp(low, high) - low) / (high - low);
        (share * f64::from(WIDTH - 1)) as i32
    };
    let foot = height - 2 * LINE - 4;
    let ticks = ticks(low, high, 4);
    let mut drawing = Drawing::new(
        "Throughput of encrypted systems divided by plain".to_owned(),
        "A dot a system with its 95 % interval; left of 1 is slower than plain. \
         The grey band is how much plain differs from itself.",
        height,
    );
    drawing.scenery(|canvas| {
        for tick in &ticks {
            let middle = (x(*tick)).clamp(14, WIDTH - 14);
            let text = format!("{}", (tick * 1000.0).round() / 1000.0);
            let place = (middle, foot + LINE / 2 + 2);
            canvas.text(&text, place, Hang::Middle, palette::MUTED)?;
        }
        let foot_text = "encrypted ÷ plain; left of 1 is slower";
        let middle = (WIDTH / 2, foot + LINE + LINE / 2 + 2);
        canvas.text(foot_text, middle, Hang::Middle, palette::MUTED)?;
        let mut y = 0;
        for block in blocks {
            let title = clipped(&block.title, WIDTH);
            canvas.text(&title, (0, y + LINE / 2), Hang::Left, palette::MUTED)?;
            // The grid keeps to the strips, so that no line crosses a text.
            for top in block.strips(y) {
                let bottom = top + STRIP - 3;
                if let Some(again) = block.again {
                    let right = x(again.high).max(x(again.low) + 1);
                    canvas.rectangle((x(again.low), top), (right, bottom), palette::BAND)?;
                }
                for tick in &ticks {
                    canvas.line((x(*tick), top), (x(*tick), bottom), 1, palette::GRID)?;
                }
                canvas.line((x(1.0), top), (x(1.0), bottom), 2, palette::MUTED)?;
            }
            y += block.height();
        }
        Ok(())
    });
    let mut y = 0;
    for block in blocks {
        for (line, top) in block.lines.iter().zip(block.strips(y)) {
            let ratio = line.overhead.ratio;
            let tip = format!(
                "{}, {}: {}; ratio {}",
                block.title,
                line.row.label,
                figure::overhead(line.overhead),
                figure::ratio(ratio)
            );
            drawing.row(line.row.trial, &tip, |canvas| {
                line.caption.draw(canvas, top - line.caption.height())?;
                let middle = i32::midpoint(top, top + STRIP - 3);
                let colour = palette::of(line.row.trial);
                canvas.whisker(x(ratio.low), x(ratio.high), middle, 2, colour)?;
                canvas.mark(0, (x(ratio.median), middle), colour)
            });
        }
        y += block.height();
    }
    drawing.finish()
}
