//! [`FlashDrive`]: a chip with its layer, one request at a time.

use super::{BlockMap, Chip, FlashLayer, FlashPreset, MtdBlock, RawFlash};
use crate::DriveError;
use crate::demand::{Demand, Drive};
use block::OperationKind;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// A flash chip at work.
#[derive(Clone, Debug)]
pub struct FlashDrive {
    layer: Layer,
    chip: Chip,
    page: u64,
    capacity: u64,
    command: u64,
    /// Nanoseconds for a byte between host and drive.
    interface: f64,
    waiting: BinaryHeap<Reverse<Demand>>,
    /// When it begins with the next request.
    free: u64,
}

#[derive(Clone, Debug)]
enum Layer {
    Mapped(BlockMap),
    Mtd(MtdBlock),
}

impl FlashDrive {
    /// A drive that is erased.
    ///
    /// # Errors
    /// Those of [`FlashPreset::checked`].
    pub fn new(preset: FlashPreset) -> Result<Self, DriveError> {
        let preset = preset.checked()?;
        let layout = preset.layout();
        Ok(Self {
            layer: match preset.layer {
                FlashLayer::BlockMapped => Layer::Mapped(BlockMap::new(layout)),
                FlashLayer::Mtdblock => Layer::Mtd(MtdBlock::new(layout)),
            },
            chip: Chip::new(&preset),
            page: preset.page.as_u64(),
            capacity: preset.capacity.as_u64(),
            command: (preset.command_us * 1e3) as u64,
            interface: 1e3 / preset.interface_mb_s,
            waiting: BinaryHeap::new(),
            free: 0,
        })
    }

    /// Writes the first `bytes`, which takes no time: what was there before
    /// anything is measured.
    ///
    /// # Panics
    /// Beyond the end of the drive.
    pub fn fill(&mut self, bytes: u64) {
        self.write(0, 0, bytes);
        self.flush(0);
        self.chip.rest();
    }

    /// How often each block was erased.
    pub fn erases(&self) -> &[u32] {
        match &self.layer {
            Layer::Mapped(map) => map.erases(),
            Layer::Mtd(mtd) => mtd.erases(),
        }
    }

    fn pages(&self, offset: u64, bytes: u64) -> Range<u32> {
        // Checked: pages are counted in 32 bits.
        (offset / self.page) as u32..(offset + bytes).div_ceil(self.page) as u32
    }

    /// Bytes of a page that a request is about.
    fn part(&self, page: u32, offset: u64, bytes: u64) -> u64 {
        let first = u64::from(page) * self.page;
        (first + self.page).min(offset + bytes) - first.max(offset)
    }

    fn transfer(&self, bytes: u64) -> u64 {
        (bytes as f64 * self.interface) as u64
    }

    /// A page passes the interface while the next one comes from the chip.
    fn read(&mut self, now: u64, offset: u64, bytes: u64) -> u64 {
        self.chip.now = now;
        let mut done = now;
        for page in self.pages(offset, bytes) {
            let place = match &self.layer {
                Layer::Mapped(map) => map.lookup(page),
                Layer::Mtd(mtd) => (!mtd.has(page)).then_some(page),
            };
            if let Some(place) = place {
                self.chip.read(place);
                done = done.max(self.chip.free());
            }
            done += self.transfer(self.part(page, offset, bytes));
        }
        done
    }

    /// The chip writes a page while the next one comes.
    fn write(&mut self, now: u64, offset: u64, bytes: u64) -> u64 {
        let mut come = now;
        for page in self.pages(offset, bytes) {
            let part = self.part(page, offset, bytes);
            come += self.transfer(part);
            self.chip.now = come;
            match &mut self.layer {
                Layer::Mapped(map) => {
                    // The rest of the page has to stay.
                    if let Some(old) = map.lookup(page).filter(|_| part < self.page) {
                        self.chip.read(old);
                    }
                    map.write(page, &mut self.chip);
                }
                Layer::Mtd(mtd) => mtd.write(page, &mut self.chip),
            }
        }
        come.max(self.chip.free())
    }

    fn flush(&mut self, now: u64) -> u64 {
        self.chip.now = now;
        if let Layer::Mtd(mtd) = &mut self.layer {
            mtd.flush(&mut self.chip);
        }
        now.max(self.chip.free())
    }
}

impl Drive for FlashDrive {
    fn duplicate(&self) -> Box<dyn Drive> {
        Box::new(self.clone())
    }

    fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Neither USB keys of that time nor `mtdblock` know any.
    fn discard_granularity(&self) -> Option<u32> {
        None
    }

    fn submit(&mut self, demand: Demand) {
        let end = demand.offset + demand.bytes;
        assert!(end <= self.capacity, "within the drive");
        self.waiting.push(Reverse(demand));
    }

    fn next_start(&self) -> Option<u64> {
        let first = self.waiting.peek();
        first.map(|Reverse(demand)| demand.arrival.max(self.free))
    }

    fn serve(&mut self) -> Option<(Demand, u64)> {
        let begun = self.next_start()? + self.command;
        let Reverse(demand) = self.waiting.pop()?;
        let Demand { offset, bytes, .. } = demand;
        self.free = match demand.operation {
            OperationKind::Read => self.read(begun, offset, bytes),
            OperationKind::Write => self.write(begun, offset, bytes),
            OperationKind::Flush => self.flush(begun),
            OperationKind::Discard => begun,
        };
        Some((demand, self.free))
    }

    fn hold(&mut self, until: u64) {
        self.free = self.free.max(until);
    }

    fn utilisation(&self, end: u64) -> f64 {
        self.chip.busy() as f64 / end as f64
    }
}
