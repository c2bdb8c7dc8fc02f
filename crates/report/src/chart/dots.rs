//! A dot with its interval a row, on a scale that all rows share.

use super::{Axis, Caption, Chart, Drawing, Hang, LINE, Label, WIDTH, clipped, palette};
use crate::figure;
use maud::Markup;
use plotters::style::RGBColor;

/// Heights: of the strip that shows a row, of a title with its gap, of the gap
/// below a block.
const STRIP: i32 = 18;
const TITLE: i32 = LINE + 5;
const GAP: i32 = 12;

/// Rows on one scale.
pub(crate) struct Dots {
    pub(crate) scale: Scale,
    /// What stands below the scale.
    pub(crate) foot: &'static str,
    pub(crate) blocks: Vec<Block>,
}

/// What a place from left to right means.
pub(crate) enum Scale {
    /// A ratio, with a line at 1; what is beyond `most` is drawn at the edge.
    Ratio { most: f64 },
    /// Seconds, logarithmic.
    Seconds,
}

/// Rows under a title, which may be empty.
pub(crate) struct Block {
    pub(crate) title: String,
    /// What two measurements of the same differ by.
    pub(crate) band: Option<[f64; 2]>,
    pub(crate) rows: Vec<Dot>,
}

/// A row.
pub(crate) struct Dot {
    pub(crate) label: Label,
    pub(crate) at: f64,
    pub(crate) colour: RGBColor,
    pub(crate) interval: [f64; 2],
    /// The middle half, as a box.
    pub(crate) half: Option<[f64; 2]>,
    /// Something else, as a diamond.
    pub(crate) other: Option<(f64, RGBColor)>,
}

impl Dot {
    pub(crate) fn new(label: Label, at: f64, interval: [f64; 2], colour: RGBColor) -> Self {
        Self {
            label,
            at,
            colour,
            interval,
            half: None,
            other: None,
        }
    }
}

impl Dots {
    /// Rows without a title.
    pub(crate) fn of(scale: Scale, foot: &'static str, rows: Vec<Dot>) -> Self {
        let (title, band) = (String::new(), None);
        Self {
            scale,
            foot,
            blocks: vec![Block { title, band, rows }],
        }
    }

    pub(super) fn draw(&self, chart: &Chart) -> Markup {
        let captions: Vec<Vec<Caption>> = self
            .blocks
            .iter()
            .map(|block| {
                block
                    .rows
                    .iter()
                    .map(|row| Caption::of(&row.label))
                    .collect()
            })
            .collect();
        // The upper edges of strips: captions stand above them, titles above all of a block.
        let mut height = 0;
        let mut strips: Vec<Vec<i32>> = Vec::new();
        let mut titles = Vec::new();
        for (block, captions) in self.blocks.iter().zip(&captions) {
            titles.push(height);
            height += if block.title.is_empty() { 0 } else { TITLE };
            let strip = |caption: &Caption| {
                let top = height + caption.height();
                height = top + STRIP;
                top
            };
            strips.push(captions.iter().map(strip).collect());
            height += if block.title.is_empty() { 0 } else { GAP };
        }
        let foot = height;
        height += LINE + 4 + if self.foot.is_empty() { 0 } else { LINE };

        let axis = self.axis();
        // Room for the marks at both edges.
        let x = |value: f64| 6 + (axis.share(value) * f64::from(WIDTH - 13)) as i32;
        let mut drawing = Drawing::new(chart, height);
        drawing.scenery(|canvas| {
            for (at, name) in &axis.ticks {
                let middle = x(*at).clamp(18, WIDTH - 18);
                canvas.text(
                    name,
                    (middle, foot + LINE / 2 + 2),
                    Hang::Middle,
                    palette::MUTED,
                )?;
            }
            let below = (WIDTH / 2, foot + LINE + LINE / 2 + 2);
            canvas.text(self.foot, below, Hang::Middle, palette::MUTED)?;
            for ((block, strips), title) in self.blocks.iter().zip(&strips).zip(&titles) {
                let words = clipped(&block.title, WIDTH);
                canvas.text(&words, (0, title + LINE / 2), Hang::Left, palette::MUTED)?;
                // The grid keeps to the strips, so that no line crosses a text.
                for &top in strips {
                    let bottom = top + STRIP - 3;
                    if let Some([low, high]) = block.band {
                        let right = x(high).max(x(low) + 1);
                        canvas.rectangle((x(low), top), (right, bottom), palette::BAND)?;
                    }
                    for (at, _) in &axis.ticks {
                        canvas.line((x(*at), top), (x(*at), bottom), 1, palette::GRID)?;
                    }
                    if let Scale::Ratio { .. } = self.scale {
                        canvas.line((x(1.0), top), (x(1.0), bottom), 2, palette::MUTED)?;
                    }
                }
            }
            Ok(())
        });
        for ((block, captions), strips) in self.blocks.iter().zip(&captions).zip(&strips) {
            for ((row, caption), &top) in block.rows.iter().zip(captions).zip(strips) {
                drawing.row(&row.label, |canvas| {
                    caption.draw(canvas, top - caption.height())?;
                    let middle = i32::midpoint(top, top + STRIP - 3);
                    if let Some((at, colour)) = row.other {
                        canvas.mark(3, (x(at), middle), colour)?;
                    }
                    let [low, high] = row.interval.map(&x);
                    let whisker = if row.half.is_some() {
                        palette::BLUE
                    } else {
                        row.colour
                    };
                    canvas.whisker(low, high, middle, 2, whisker)?;
                    if let Some([low, high]) = row.half {
                        let right = x(high).max(x(low) + 1);
                        let corners = ((x(low), middle - 4), (right, middle + 4));
                        canvas.rectangle(corners.0, corners.1, palette::SKY)?;
                    }
                    canvas.mark(0, (x(row.at), middle), row.colour)
                });
            }
        }
        drawing.finish()
    }

    fn axis(&self) -> Axis {
        let values = || {
            self.blocks.iter().flat_map(|block| {
                let rows = block.rows.iter().flat_map(|row| {
                    let others = row.other.iter().map(|(at, _)| *at);
                    row.interval.into_iter().chain([row.at]).chain(others)
                });
                rows.chain(block.band.into_iter().flatten())
            })
        };
        match self.scale {
            Scale::Ratio { most } => {
                let low = values().fold(0.95, f64::min).max(0.0);
                let high = values().fold(1.05, f64::max).min(most);
                let margin = (high - low) * 0.04;
                Axis::linear((low - margin).max(0.0), high + margin, 4, |tick| {
                    format!("{}", (tick * 1000.0).round() / 1000.0)
                })
            }
            Scale::Seconds => {
                let low = values().fold(f64::MAX, f64::min) / 1.3;
                let high = values().fold(f64::MIN_POSITIVE, f64::max) * 1.3;
                Axis::logarithmic(low, high, |seconds| figure::duration_us(seconds * 1e6))
            }
        }
    }
}
