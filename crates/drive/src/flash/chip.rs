//! [`Chip`]: one flash chip in virtual time.

use super::FlashPreset;
use crate::ftl::Flash;

/// The operations of a chip, with physical page numbers. jffs2 works on this interface.
pub trait RawFlash: Flash {
    /// A page is read.
    fn read(&mut self, page: u32);
}

/// Ignores reads.
impl RawFlash for () {
    fn read(&mut self, _: u32) {}
}

/// A chip that does one thing at a time.
#[derive(Clone, Debug)]
pub struct Chip {
    /// When what it is asked for next can begin, nanoseconds.
    pub(super) now: u64,
    free: u64,
    busy: u64,
    pages_per_block: u32,
    /// The first page of each block that can still be written.
    next: Vec<u32>,
    /// The page whose data are in the chip's register.
    register: Option<u32>,
    read: u64,
    program: u64,
    erase: u64,
    /// A page on the bus, nanoseconds.
    bus: u64,
}

impl Chip {
    /// An erased chip.
    pub fn new(preset: &FlashPreset) -> Self {
        let nanoseconds = |us: f64| (us * 1e3) as u64;
        Self {
            now: 0,
            free: 0,
            busy: 0,
            pages_per_block: preset.pages_per_block,
            next: vec![0; preset.blocks as usize],
            register: None,
            read: nanoseconds(preset.read_us),
            program: nanoseconds(preset.program_us),
            erase: nanoseconds(preset.erase_ms * 1e3),
            bus: (preset.page.as_u64() as f64 * 1e3 / preset.bus_mb_s) as u64,
        }
    }

    /// Sets all times to zero, so that the operations so far took no time.
    pub(super) fn rest(&mut self) {
        (self.now, self.free, self.busy) = (0, 0, 0);
    }

    /// The time when all requested operations are done.
    pub fn free(&self) -> u64 {
        self.free
    }

    /// Nanoseconds in which it was at work.
    pub fn busy(&self) -> u64 {
        self.busy
    }

    fn take(&mut self, time: u64) {
        self.free = self.free.max(self.now) + time;
        self.busy += time;
    }

    /// # Panics
    /// Where a page is written a second time before its block was erased, or
    /// after a later page of its block.
    fn write(&mut self, page: u32) {
        let next = &mut self.next[(page / self.pages_per_block) as usize];
        let place = page % self.pages_per_block;
        assert!(place >= *next, "page {page} is written without an erase");
        *next = place + 1;
        self.register = None;
        self.take(self.bus + self.program);
    }
}

impl Flash for Chip {
    fn program(&mut self, page: u32, _: u32) {
        self.write(page);
    }

    /// Through the bus, out and in again: who copies corrects errors.
    fn relocate(&mut self, from: u32, to: u32) {
        self.read(from);
        self.write(to);
    }

    fn erase(&mut self, block: u32) {
        self.next[block as usize] = 0;
        self.register = None;
        self.take(self.erase);
    }
}

impl RawFlash for Chip {
    /// A page that is already in the register is not read from the cells again.
    fn read(&mut self, page: u32) {
        let cells = match self.register.replace(page) {
            Some(there) if there == page => 0,
            _ => self.read,
        };
        self.take(cells + self.bus);
    }
}
