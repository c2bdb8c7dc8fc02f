//! [`SsdDrive`]: chips, channels and an interface, each busy until some time.
//!
//! Pages are striped over the chips: an erase block of the translation layer is
//! a block on each chip of a stripe, written a page after the other. The host's
//! unit is 4 KiB; a page of flash is programmed when its last unit is there.

use super::Ssd;
use crate::DriveError;
use crate::demand::{Demand, Drive};
use crate::ftl::{Flash, Ftl, Layout, LogLayout, MOST_PAGES_PER_BLOCK, Policy};
use block::OperationKind;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Bytes of the host's unit.
const UNIT: u64 = 4096;

/// A solid-state drive at work.
#[derive(Clone, Debug)]
pub struct SsdDrive {
    ftl: Ftl,
    chips: Chips,
    /// Chips of a stripe; each stripe has a log.
    logs: u32,
    command: u64,
    /// Nanoseconds that the controller is busy with each read and each write.
    busy_per_read: u64,
    busy_per_write: u64,
    controller_free: u64,
    controller_busy: u64,
    /// Nanoseconds for a byte between host and drive.
    interface: f64,
    interface_free: u64,
    interface_busy: u64,
    /// Units that fit into the memory, and those in it, with when they leave.
    cache: u64,
    cached: VecDeque<u64>,
    waiting: BinaryHeap<Reverse<Demand>>,
    held: u64,
}

/// The chips and channels that the translation layer keeps busy.
#[derive(Clone, Debug)]
struct Chips {
    /// Now, for what the translation layer does.
    now: u64,
    free: Vec<u64>,
    busy: Vec<u64>,
    channels: Vec<u64>,
    channel_busy: Vec<u64>,
    units_per_page: u32,
    /// Units of a block of the translation layer, and chips under it.
    units_per_block: u32,
    stripe: u32,
    blocks_per_log: u32,
    read: u64,
    program: u64,
    erase: u64,
    /// Nanoseconds for a page, and for a unit, on a channel.
    page: u64,
    unit: u64,
    /// When the last program ends.
    programmed: u64,
    /// The last unit of each log, where its page is not full.
    begun: Vec<Option<u32>>,
    /// Units that are being moved out of a block: from and to.
    moving: Vec<(u32, u32)>,
}

impl SsdDrive {
    /// A drive that is erased.
    ///
    /// # Errors
    /// [`DriveError`] where its numbers make no drive.
    pub fn new(ssd: &Ssd, policy: Policy, seed: u64) -> Result<Self, DriveError> {
        let ssd = ssd.clone().checked()?;
        let page = ssd.page.as_u64();
        let fits = page.is_multiple_of(UNIT);
        DriveError::require(fits, "page", page, "a multiple of 4096 bytes")?;
        let units_per_page = (page / UNIT) as u32;
        let units_of_chip = units_per_page * ssd.pages_per_block;
        let all = ssd.channels * ssd.chips_per_channel;
        let fitting = (MOST_PAGES_PER_BLOCK / units_of_chip).clamp(1, all);
        // As many chips as divide them all.
        let stripe = (1..=fitting)
            .rev()
            .find(|chips| all.is_multiple_of(*chips))
            .unwrap_or(1);
        let logs = all / stripe;
        let units_per_block = units_of_chip * stripe;
        let physical = ssd.capacity.as_u64() as f64 * (1.0 + ssd.over_provisioning);
        let bytes = f64::from(units_per_block) * UNIT as f64 * f64::from(logs);
        let blocks_per_log = (physical / bytes).round() as u32;
        let layout = Layout {
            blocks: blocks_per_log * logs,
            pages_per_block: units_per_block,
            logical_pages: u32::try_from(ssd.capacity.as_u64() / UNIT).unwrap_or(u32::MAX),
        };
        // Flash pages go to the logs in turn, `log_of`.
        let flash_pages = layout.logical_pages.div_ceil(units_per_page);
        let log = LogLayout {
            blocks: blocks_per_log,
            logical_pages: flash_pages.div_ceil(logs) * units_per_page,
        };
        let ftl = Ftl::split(layout, policy, seed, &vec![log; logs as usize])?;
        let nanoseconds = |us: f64| (us * 1e3) as u64;
        let on_channel = |bytes: u64| (bytes as f64 * 1e3 / ssd.channel_mb_s) as u64;
        Ok(Self {
            ftl,
            logs,
            command: nanoseconds(ssd.command_us),
            busy_per_read: ssd.read_iops.map_or(0, |iops| (1e9 / iops) as u64),
            busy_per_write: ssd.write_iops.map_or(0, |iops| (1e9 / iops) as u64),
            controller_free: 0,
            controller_busy: 0,
            interface: 1e3 / ssd.interface_mb_s,
            interface_free: 0,
            interface_busy: 0,
            cache: ssd.cache.as_u64() / UNIT,
            cached: VecDeque::new(),
            waiting: BinaryHeap::new(),
            held: 0,
            chips: Chips {
                now: 0,
                free: vec![0; all as usize],
                busy: vec![0; all as usize],
                channels: vec![0; ssd.channels as usize],
                channel_busy: vec![0; ssd.channels as usize],
                units_per_page,
                units_per_block,
                stripe,
                blocks_per_log,
                read: nanoseconds(ssd.read_us),
                program: nanoseconds(ssd.program_us),
                erase: nanoseconds(ssd.erase_ms * 1e3),
                page: on_channel(page),
                unit: on_channel(UNIT),
                programmed: 0,
                begun: vec![None; logs as usize],
                moving: Vec::new(),
            },
        })
    }

    /// Writes `bytes` from `offset` on, which takes no time: what was there
    /// before anything is measured.
    ///
    /// # Panics
    /// Beyond the end of the drive.
    pub fn fill(&mut self, offset: u64, bytes: u64) {
        for unit in offset / UNIT..(offset + bytes).div_ceil(UNIT) {
            let log = self.log_of(unit as u32);
            self.ftl.write(log, unit as u32, &mut ());
        }
    }

    /// Forgets `bytes` from `offset` on, of which only whole units count; it takes
    /// no time either.
    ///
    /// # Panics
    /// Beyond the end of the drive.
    pub fn forget(&mut self, offset: u64, bytes: u64) {
        for unit in offset.div_ceil(UNIT)..(offset + bytes) / UNIT {
            self.ftl.discard(unit as u32);
        }
    }

    /// The translation layer, with all that was written.
    pub fn ftl(&self) -> &Ftl {
        &self.ftl
    }

    /// A page always goes to the same log, so that none has more than its share.
    fn log_of(&self, unit: u32) -> usize {
        (unit / self.chips.units_per_page % self.logs) as usize
    }

    /// The interface, for a request that has come to it at `now`.
    fn transfer(&mut self, now: u64, bytes: u64) -> u64 {
        let time = (bytes as f64 * self.interface) as u64;
        self.interface_busy += time;
        self.interface_free = self.interface_free.max(now) + time;
        self.interface_free
    }

    /// Serves a read. Data in the drive's memory passes the interface while the rest arrives.
    fn read(&mut self, now: u64, offset: u64, bytes: u64) -> u64 {
        let mut done = now;
        let mut last = None;
        let end = offset + bytes;
        for unit in offset / UNIT..end.div_ceil(UNIT) {
            let mut there = now;
            if let Some(place) = self.ftl.lookup(unit as u32) {
                // A page is read from its cells once for all its units.
                let page = place / self.chips.units_per_page;
                let from_cells = last != Some(page);
                last = Some(page);
                there = self.chips.fetch(now, place, from_cells);
            }
            let part = (unit * UNIT + UNIT).min(end) - (unit * UNIT).max(offset);
            done = self.transfer(there, part);
        }
        done
    }

    fn write(&mut self, now: u64, offset: u64, bytes: u64) -> u64 {
        let mut done = self.transfer(now, bytes);
        for unit in offset / UNIT..(offset + bytes).div_ceil(UNIT) {
            if self.cached.len() as u64 >= self.cache.max(1) {
                let left = self.cached.pop_front().unwrap_or(0);
                done = done.max(left);
            }
            self.chips.now = self.chips.now.max(done);
            let log = self.log_of(unit as u32);
            self.ftl.write(log, unit as u32, &mut self.chips);
            self.cached.push_back(self.chips.programmed);
        }
        match self.cache {
            0 => done.max(self.chips.programmed),
            _ => done,
        }
    }

    /// Programs the content of pages that are not full yet in another place. It is programmed again
    /// later, with the rest of its page.
    fn flush(&mut self, now: u64) -> u64 {
        let mut done = now.max(self.chips.programmed);
        for log in 0..self.chips.begun.len() {
            if let Some(unit) = self.chips.begun[log].take() {
                done = done.max(self.chips.program_page(unit, now));
            }
        }
        self.cached.drain(..).fold(done, u64::max)
    }
}

impl Chips {
    fn chip(&self, unit: u32) -> usize {
        let block = unit / self.units_per_block;
        let log = block / self.blocks_per_log;
        let page = unit % self.units_per_block / self.units_per_page;
        (log * self.stripe + page % self.stripe) as usize
    }

    /// Keeps a chip busy from `now` on; when it is done.
    fn occupy(&mut self, chip: usize, now: u64, time: u64) -> u64 {
        self.busy[chip] += time;
        self.free[chip] = self.free[chip].max(now) + time;
        self.free[chip]
    }

    /// Keeps a chip's channel busy from `now` on; when it is done.
    fn carry(&mut self, chip: usize, now: u64, time: u64) -> u64 {
        let channel = chip % self.channels.len();
        self.channel_busy[channel] += time;
        self.channels[channel] = self.channels[channel].max(now) + time;
        self.channels[channel]
    }

    /// Reads a unit; when it is in the drive's memory.
    fn fetch(&mut self, now: u64, unit: u32, from_cells: bool) -> u64 {
        let chip = self.chip(unit);
        let ready = match from_cells {
            true => self.occupy(chip, now, self.read),
            false => self.free[chip].max(now),
        };
        self.carry(chip, ready, self.unit)
    }

    /// Programs a page with its last unit.
    fn unit_written(&mut self, unit: u32, now: u64) {
        let log = (unit / self.units_per_block / self.blocks_per_log) as usize;
        let last = unit % self.units_per_page == self.units_per_page - 1;
        self.begun[log] = (!last).then_some(unit);
        if last {
            self.programmed = self.program_page(unit, now);
        }
    }

    /// Programs the page of a unit; when it is done.
    fn program_page(&mut self, unit: u32, now: u64) -> u64 {
        let chip = self.chip(unit);
        let there = self.carry(chip, now, self.page);
        self.occupy(chip, there, self.program)
    }
}

impl Flash for Chips {
    fn program(&mut self, page: u32, _: u32) {
        self.unit_written(page, self.now);
    }

    fn relocate(&mut self, from: u32, to: u32) {
        self.moving.push((from, to));
    }

    /// Reads the valid data of the block from all chips at once, writes it elsewhere, and erases
    /// the block.
    fn erase(&mut self, block: u32) {
        let moving = std::mem::take(&mut self.moving);
        let mut last = None;
        let mut read: Vec<(u64, usize)> = Vec::with_capacity(moving.len());
        for (from, _) in &moving {
            let page = from / self.units_per_page;
            let chip = self.chip(*from);
            let ready = match last == Some(page) {
                true => self.free[chip],
                false => self.occupy(chip, self.now, self.read),
            };
            last = Some(page);
            read.push((ready, chip));
        }
        // A channel carries first what is ready first.
        let mut order: Vec<usize> = (0..read.len()).collect();
        order.sort_unstable_by_key(|&place| read[place].0);
        for place in order {
            let (ready, chip) = read[place];
            read[place].0 = self.carry(chip, ready, self.unit);
        }
        for ((_, to), (there, _)) in moving.iter().zip(&read) {
            self.unit_written(*to, *there);
        }
        self.moving = moving;
        self.moving.clear();
        let first = (block / self.blocks_per_log * self.stripe) as usize;
        for chip in first..first + self.stripe as usize {
            self.occupy(chip, self.now, self.erase);
        }
    }
}

impl Drive for SsdDrive {
    fn duplicate(&self) -> Box<dyn Drive> {
        Box::new(self.clone())
    }

    fn capacity(&self) -> u64 {
        u64::from(self.ftl.layout().logical_pages) * UNIT
    }

    fn discard_granularity(&self) -> Option<u32> {
        Some(UNIT as u32)
    }

    fn submit(&mut self, demand: Demand) {
        let end = demand.offset + demand.bytes;
        assert!(end <= self.capacity(), "within the drive");
        self.waiting.push(Reverse(demand));
    }

    fn hold(&mut self, until: u64) {
        self.held = self.held.max(until);
    }

    fn next_start(&self) -> Option<u64> {
        let first = self.waiting.peek();
        first.map(|Reverse(demand)| demand.arrival.max(self.held))
    }

    fn serve(&mut self) -> Option<(Demand, u64)> {
        let Reverse(demand) = self.waiting.pop()?;
        let Demand { offset, bytes, .. } = demand;
        let busy = match demand.operation {
            OperationKind::Read => self.busy_per_read,
            OperationKind::Write => self.busy_per_write,
            OperationKind::Flush | OperationKind::Discard => 0,
        };
        let taken = demand.arrival.max(self.held).max(self.controller_free);
        self.controller_free = taken + busy;
        self.controller_busy += busy;
        let begun = taken + self.command;
        let done = match demand.operation {
            OperationKind::Read => self.read(begun, offset, bytes),
            OperationKind::Write => self.write(begun, offset, bytes),
            OperationKind::Flush => self.flush(begun),
            OperationKind::Discard => {
                self.forget(offset, bytes);
                begun
            }
        };
        Some((demand, done))
    }

    fn utilisation(&self, end: u64) -> f64 {
        let mean = |busy: &[u64]| busy.iter().sum::<u64>() as f64 / busy.len() as f64;
        let parts = [
            mean(&self.chips.busy),
            mean(&self.chips.channel_busy),
            self.interface_busy as f64,
            self.controller_busy as f64,
        ];
        parts.into_iter().fold(0.0, f64::max) / end as f64
    }
}
