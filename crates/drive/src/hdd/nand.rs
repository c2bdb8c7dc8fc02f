//! [`Learnt`]: flash in a disk that holds what is read often.

use super::NandPreset;
use std::collections::{BTreeMap, HashMap};

/// Blocks in the flash, and those that were read once.
#[derive(Clone, Debug)]
pub(super) struct Learnt {
    preset: NandPreset,
    seen: Recent,
    held: Recent,
}

/// So many blocks, of which the least recent makes room.
#[derive(Clone, Debug)]
struct Recent {
    most: u64,
    clock: u64,
    stamps: HashMap<u64, u64>,
    order: BTreeMap<u64, u64>,
}

impl Learnt {
    pub fn new(preset: NandPreset) -> Self {
        Self {
            seen: Recent::new(preset.window),
            held: Recent::new(preset.capacity.as_u64() / preset.block.as_u64()),
            preset,
        }
    }

    /// Whether all of a read is in the flash.
    pub fn has(&self, offset: u64, bytes: u64) -> bool {
        self.blocks(offset, bytes).all(|block| self.held.has(block))
    }

    /// Nanoseconds of a read that it has, which makes its blocks recent.
    pub fn read(&mut self, offset: u64, bytes: u64) -> u64 {
        for block in self.blocks(offset, bytes) {
            self.held.touch(block);
        }
        (self.preset.read_us * 1e3 + bytes as f64 * 1e3 / self.preset.read_mb_s) as u64
    }

    /// Learns from a read of the disk. Blocks that were read before come into the flash, with the
    /// data that the disk reads around them anyway.
    pub fn learn(&mut self, offset: u64, bytes: u64) {
        if bytes > self.preset.longest.as_u64() {
            return;
        }
        for block in self.blocks(offset, bytes) {
            match self.seen.has(block) {
                true => self.held.touch(block),
                false => self.seen.touch(block),
            }
        }
    }

    /// Drops the blocks that a write changes, because the flash no longer holds their current data.
    pub fn written(&mut self, offset: u64, bytes: u64) {
        for block in self.blocks(offset, bytes) {
            self.held.forget(block);
        }
    }

    fn blocks(&self, offset: u64, bytes: u64) -> std::ops::Range<u64> {
        let block = self.preset.block.as_u64();
        offset / block..(offset + bytes).div_ceil(block)
    }
}

impl Recent {
    fn new(most: u64) -> Self {
        Self {
            most,
            clock: 0,
            stamps: HashMap::new(),
            order: BTreeMap::new(),
        }
    }

    fn has(&self, block: u64) -> bool {
        self.stamps.contains_key(&block)
    }

    fn touch(&mut self, block: u64) {
        self.clock += 1;
        if let Some(before) = self.stamps.insert(block, self.clock) {
            self.order.remove(&before);
        }
        self.order.insert(self.clock, block);
        if self.stamps.len() as u64 > self.most
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.stamps.remove(&oldest);
        }
    }

    fn forget(&mut self, block: u64) {
        if let Some(stamp) = self.stamps.remove(&block) {
            self.order.remove(&stamp);
        }
    }
}
