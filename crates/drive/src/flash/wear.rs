//! [`Wear`]: what random writes, or those of a trace, do to the blocks of a
//! chip, without time.

use super::{BlockMap, FlashLayer, FlashPreset, MtdBlock};
use crate::DriveError;
use crate::replay::ReplayError;
use crate::trace::{Action, Entry, TraceError};
use crate::workload::{Hot, PageWorkload, check_times};
use std::ops::{ControlFlow, Range};

/// Bytes that the host writes at once, or a page where that is more.
const UNIT: u64 = 4096;

/// Writes between two reports of progress.
const STRETCH: u64 = 1 << 12;

/// A chip and its layer under a host's writes.
#[derive(Clone, Debug)]
pub struct Wear<'a> {
    preset: &'a FlashPreset,
    layer: Layer,
    host_pages: u64,
}

#[derive(Clone, Debug)]
enum Layer {
    Mapped(BlockMap),
    Mtd(MtdBlock),
}

/// The counts of a run while it was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Worn {
    /// Pages written by the host, in part or whole.
    pub host_pages: u64,
    /// Pages written to the chip.
    pub flash_pages: u64,
    /// Erases of each block.
    pub erases: Vec<u32>,
}

impl Worn {
    /// Flash writes ÷ host writes; `None` where the host wrote nothing.
    pub fn write_amplification(&self) -> Option<f64> {
        (self.host_pages > 0).then(|| self.flash_pages as f64 / self.host_pages as f64)
    }

    /// The amount that the host can write in the same way until the most worn block has had its
    /// erases, 10¹² bytes. `None` if nothing was erased.
    pub fn terabytes_written(&self, preset: &FlashPreset) -> Option<f64> {
        let most = self.erases.iter().max().filter(|most| **most > 0)?;
        let times = f64::from(preset.erase_cycles) / f64::from(*most);
        Some(self.host_pages as f64 * preset.page.as_u64() as f64 * times / 1e12)
    }
}

impl<'a> Wear<'a> {
    /// A chip whose capacity was written once, in order.
    ///
    /// # Errors
    /// Those of [`FlashPreset::checked`].
    pub fn new(preset: &'a FlashPreset) -> Result<Self, DriveError> {
        let layout = preset.clone().checked()?.layout();
        let mut wear = Self {
            preset,
            layer: match preset.layer {
                FlashLayer::BlockMapped => Layer::Mapped(BlockMap::new(layout)),
                FlashLayer::Mtdblock => Layer::Mtd(MtdBlock::new(layout)),
            },
            host_pages: 0,
        };
        wear.write(wear.pages(0, preset.capacity.as_u64()));
        Ok(wear)
    }

    /// Writes 4 KiB, or a page where that is more, at random places: `warmup`
    /// times the capacity, and `measure` times more that are counted. `report` is
    /// told the pages written and how many are to be, and may end it.
    ///
    /// # Errors
    /// [`DriveError::OutOfRange`]; `Ok(None)` where `report` ended it.
    pub fn uniform(
        mut self,
        hot: Option<Hot>,
        [warmup, measure]: [f64; 2],
        seed: u64,
        report: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<Option<Worn>, DriveError> {
        check_times(warmup, measure)?;
        let unit = self.preset.page.as_u64().max(UNIT);
        // Fewer than the pages, which are counted in 32 bits.
        let units = (self.preset.capacity.as_u64() / unit) as u32;
        let mut host = PageWorkload::new(units, hot, 0.0, seed)?;
        let writes = |times: f64| (f64::from(units) * times).round() as u64;
        let (warmup, measure) = (writes(warmup), writes(measure).max(1));
        let mut before = self.so_far();
        for done in 0..warmup + measure {
            let of_unit = unit / self.preset.page.as_u64();
            if done % STRETCH == 0 {
                let all = (warmup + measure) * of_unit;
                if report(done * of_unit, all).is_break() {
                    return Ok(None);
                }
            }
            if done == warmup {
                before = self.so_far();
            }
            let (logical, _) = host.write();
            self.write(self.pages(u64::from(logical) * unit, unit));
        }
        Ok(Some(self.since(&before)))
    }

    /// Plays a trace, whose discards do nothing. `report` is told the requests
    /// done, and may end it.
    ///
    /// # Errors
    /// [`ReplayError`]; `Ok(None)` where `report` ended it.
    pub fn play(
        mut self,
        trace: impl IntoIterator<Item = Result<Entry, TraceError>>,
        report: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Option<Worn>, ReplayError> {
        let size = self.preset.capacity.as_u64();
        let before = self.so_far();
        for (number, entry) in (1..).zip(trace) {
            let Entry {
                action,
                offset,
                bytes,
                ..
            } = entry?;
            let end = offset + bytes;
            if end > size {
                return Err(ReplayError::TooSmall { number, end, size });
            }
            match (action, &mut self.layer) {
                (Action::Write, _) => self.write(self.pages(offset, bytes)),
                (Action::Flush, Layer::Mtd(mtd)) => mtd.flush(&mut ()),
                _ => {}
            }
            if number.is_multiple_of(STRETCH) && report(number).is_break() {
                return Ok(None);
            }
        }
        Ok(Some(self.since(&before)))
    }

    fn pages(&self, offset: u64, bytes: u64) -> Range<u32> {
        let page = self.preset.page.as_u64();
        (offset / page) as u32..(offset + bytes).div_ceil(page) as u32
    }

    fn write(&mut self, pages: Range<u32>) {
        self.host_pages += pages.len() as u64;
        for page in pages {
            match &mut self.layer {
                Layer::Mapped(map) => map.write(page, &mut ()),
                Layer::Mtd(mtd) => mtd.write(page, &mut ()),
            }
        }
    }

    /// All that was written until now, also what is still in memory.
    fn so_far(&mut self) -> Worn {
        let (flash_pages, erases) = match &mut self.layer {
            Layer::Mapped(map) => (map.counts().flash(), map.erases()),
            Layer::Mtd(mtd) => {
                mtd.flush(&mut ());
                (mtd.programmed(), mtd.erases())
            }
        };
        Worn {
            host_pages: self.host_pages,
            flash_pages,
            erases: erases.to_vec(),
        }
    }

    fn since(mut self, before: &Worn) -> Worn {
        let now = self.so_far();
        let worn = now.erases.iter().zip(&before.erases);
        Worn {
            host_pages: now.host_pages - before.host_pages,
            flash_pages: now.flash_pages - before.flash_pages,
            erases: worn.map(|(after, before)| after - before).collect(),
        }
    }
}
