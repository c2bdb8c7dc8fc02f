//! [`Record`]: a device that remembers all changes, so that a power cut can be
//! played at any moment of its past.
//!
//! ```text
//! tick      1     2     3     4     5     6     7     8     9
//! write A   begun ───── done
//! write B         begun ───────────────── done
//! flush                       begun ─ done
//!                                           └ cut at 7: A is settled, B is not
//! ```
//!
//! A flush settles the changes that were done before it began, and no other. Of
//! changes that are not settled, a disk with a volatile cache may have kept any
//! blocks, in any order. For each block that comes to a choice of which of the
//! changes are kept, since the last one that is kept counts.

use crate::{
    BlockDevice, BlockError, ByteRange, Completion, Geometry, Operation, Queue, QueueOptions,
    Request, Wait,
};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Records writes, discards and flushes with the data, in the order in which
/// they began. All of it stays in memory.
///
/// Of requests for the same block that are in flight together, the one that
/// began last is taken to be the last. A request of a queue is done when it is reaped. One that failed is never
/// done: some of it may have reached the device.
#[derive(Debug)]
pub struct Record<D> {
    device: D,
    log: Mutex<Log>,
}

/// The changes that a [`Record`] has seen, by its own clock. Every beginning and every end of a
/// request has a tick of its own, from 1.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// The unit in which survivors of a power cut are chosen, bytes.
    block: u64,
    ticks: u64,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    change: Change,
    offset: u64,
    begun: u64,
    done: Option<u64>,
}

#[derive(Clone, Debug)]
enum Change {
    Write(Box<[u8]>),
    Discard { length: u64 },
    Flush,
}

/// A power cut, and what of the unsettled changes it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// It comes before whatever has this tick.
    pub at: u64,
    /// The unsettled changes that survive.
    pub survivors: Survivors,
}

/// Which of the unsettled changes survive a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survivors {
    /// None: the cache is lost.
    None,
    /// All that had begun: the log up to the cut, in its order.
    All,
    /// Each change as a whole, or nothing of it, by chance.
    Changes {
        /// Decides the chance.
        seed: u64,
    },
    /// Each block of each change, by chance: torn everywhere.
    Blocks {
        /// Decides the chance.
        seed: u64,
    },
}

impl<D: BlockDevice> Record<D> {
    /// A record that is empty so far.
    pub fn new(device: D) -> Self {
        let block = u64::from(device.geometry().logical_block);
        Self {
            device,
            log: Mutex::new(Log {
                block,
                ..Log::default()
            }),
        }
    }

    /// Takes a tick from the clock, to tell what came before it and what after.
    pub fn tick(&self) -> u64 {
        self.lock().tick()
    }

    /// Everything recorded so far.
    pub fn log(&self) -> Log {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries a change out between its beginning and its end.
    fn recorded(
        &self,
        offset: u64,
        change: Change,
        carry_out: impl FnOnce() -> Result<(), BlockError>,
    ) -> Result<(), BlockError> {
        let index = self.lock().begin(offset, change);
        carry_out()?;
        self.lock().end(index);
        Ok(())
    }
}

impl Log {
    /// The tick after the last.
    pub fn end_of_time(&self) -> u64 {
        self.ticks + 1
    }

    /// Writes, discards and flushes.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Changes that were not done when a flush began that was: what only a
    /// device sees that works on several requests at once.
    pub fn overtaken(&self) -> usize {
        let flushes = || self.entries.iter().filter(|entry| entry.is_flush());
        self.entries
            .iter()
            .filter(|entry| !entry.is_flush())
            .filter(|entry| {
                flushes().any(|flush| {
                    entry.begun < flush.begun
                        && entry.done.is_none_or(|done| done > flush.begun)
                        && flush.done.is_some()
                })
            })
            .count()
    }

    /// `count` power cuts, the same for the same seed.
    ///
    /// Up to half are spread evenly over the record, with nothing and with all of the cache. If
    /// `count` is eight times as large as the record, every such prefix is among them. The others
    /// come at any time, by chance.
    pub fn cuts(&self, count: usize, seed: u64) -> Vec<Cut> {
        let moments: Vec<u64> = self
            .entries
            .iter()
            .map(|entry| entry.begun + 1)
            .chain(
                self.entries
                    .iter()
                    .filter_map(|entry| Some(entry.done? + 1)),
            )
            .collect();
        if moments.is_empty() {
            return Vec::new();
        }
        let prefixes = (count / 2).min(2 * moments.len());
        let mut cuts: Vec<Cut> = (0..prefixes)
            .map(|number| Cut {
                at: moments[number / 2 * moments.len() / prefixes.div_ceil(2)],
                survivors: match number % 2 {
                    0 => Survivors::None,
                    _ => Survivors::All,
                },
            })
            .collect();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        cuts.resize_with(count, || {
            let at = moments[(random.next_u64() % moments.len() as u64) as usize];
            let (seed, whole) = (random.next_u64(), random.next_u64() % 3 == 0);
            let survivors = match whole {
                true => Survivors::Changes { seed },
                false => Survivors::Blocks { seed },
            };
            Cut { at, survivors }
        });
        cuts
    }

    /// Changes `image`, the content of the device before the first entry, to what the device may
    /// hold after `cut`. Discarded ranges become zeros.
    ///
    /// # Panics
    /// If the image is smaller than the device.
    pub fn play(&self, cut: Cut, image: &mut [u8]) {
        let settled_before = self.settled_before(cut.at);
        let mut chance = match cut.survivors {
            Survivors::Changes { seed } | Survivors::Blocks { seed } => {
                Xoshiro256PlusPlus::seed_from_u64(seed)
            }
            Survivors::None | Survivors::All => Xoshiro256PlusPlus::seed_from_u64(0),
        };
        let begun = self.entries.iter().take_while(|entry| entry.begun < cut.at);
        let changes = begun.filter(|entry| !entry.is_flush());
        let (settled, open): (Vec<&Entry>, Vec<&Entry>) =
            changes.partition(|entry| entry.done.is_some_and(|done| done < settled_before));
        for entry in settled {
            entry.apply(entry.whole(), image);
        }
        // None of these was done before any of the settled ones began, so each
        // of them may come last.
        for entry in open {
            let whole = entry.whole();
            let piece = match cut.survivors {
                Survivors::None => return,
                Survivors::All | Survivors::Changes { .. } => whole.length,
                Survivors::Blocks { .. } => self.block,
            };
            for at in (0..whole.length).step_by(piece.max(1) as usize) {
                if cut.survivors == Survivors::All || chance.next_u64() & 1 == 1 {
                    entry.apply(ByteRange::new(at, piece), image);
                }
            }
        }
    }

    /// When the last flush began that was done at `at`: what was done before
    /// is settled.
    fn settled_before(&self, at: u64) -> u64 {
        self.entries
            .iter()
            .filter(|entry| entry.is_flush() && entry.done.is_some_and(|done| done < at))
            .map(|flush| flush.begun)
            .max()
            .unwrap_or(0)
    }

    fn tick(&mut self) -> u64 {
        self.ticks += 1;
        self.ticks
    }

    fn begin(&mut self, offset: u64, change: Change) -> usize {
        let begun = self.tick();
        self.entries.push(Entry {
            change,
            offset,
            begun,
            done: None,
        });
        self.entries.len() - 1
    }

    fn end(&mut self, index: usize) {
        let tick = self.tick();
        self.entries[index].done = Some(tick);
    }
}

impl Entry {
    fn is_flush(&self) -> bool {
        matches!(self.change, Change::Flush)
    }

    /// All of the change, counted from its first byte.
    fn whole(&self) -> ByteRange {
        let length = match &self.change {
            Change::Write(data) => data.len() as u64,
            Change::Discard { length } => *length,
            Change::Flush => 0,
        };
        ByteRange::new(0, length)
    }

    /// Carries a part of the change out.
    fn apply(&self, part: ByteRange, image: &mut [u8]) {
        let (start, length) = (part.offset as usize, part.length as usize);
        let into = &mut image[self.offset as usize + start..][..length];
        match &self.change {
            Change::Write(data) => into.copy_from_slice(&data[start..][..length]),
            Change::Discard { .. } => into.fill(0),
            Change::Flush => {}
        }
    }
}

impl<D: BlockDevice> BlockDevice for Record<D> {
    fn geometry(&self) -> Geometry {
        self.device.geometry()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        self.device.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        self.geometry().check(offset, data.len() as u64)?;
        self.recorded(offset, Change::Write(data.into()), || {
            self.device.write_at(offset, data)
        })
    }

    fn flush(&self) -> Result<(), BlockError> {
        self.recorded(0, Change::Flush, || self.device.flush())
    }

    fn discard(&self, range: ByteRange) -> Result<(), BlockError> {
        self.geometry().check(range.offset, range.length)?;
        let length = range.length;
        self.recorded(range.offset, Change::Discard { length }, || {
            self.device.discard(range)
        })
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        Ok(Box::new(RecordQueue {
            below: self.device.queue(options)?,
            record: self,
            submitted: 0,
            pending: BTreeMap::new(),
        }))
    }
}

struct RecordQueue<'a, D> {
    below: Box<dyn Queue + 'a>,
    record: &'a Record<D>,
    submitted: u64,
    /// By the tag that a request has below: its own tag, and its entry.
    pending: BTreeMap<u64, (u64, Option<usize>)>,
}

impl<D: BlockDevice> Queue for RecordQueue<'_, D> {
    fn submit(&mut self, mut request: Request) {
        let change = match request.operation {
            Operation::Read => None,
            Operation::Write => Some(Change::Write((*request.buffer).into())),
            Operation::Flush => Some(Change::Flush),
            Operation::Discard { length } => Some(Change::Discard { length }),
        };
        let passes = self.record.geometry().check_request(&request).is_ok();
        let entry = change
            .filter(|_| passes)
            .map(|change| self.record.lock().begin(request.offset, change));
        self.pending.insert(self.submitted, (request.tag, entry));
        request.tag = self.submitted;
        self.submitted += 1;
        self.below.submit(request);
    }

    fn reap(&mut self, wait: Wait) -> Option<Completion> {
        let mut completion = self.below.reap(wait)?;
        if let Some((tag, entry)) = self.pending.remove(&completion.request.tag) {
            completion.request.tag = tag;
            if let (Some(index), Ok(())) = (entry, &completion.result) {
                self.record.lock().end(index);
            }
        }
        Some(completion)
    }

    fn in_flight(&self) -> u32 {
        self.below.in_flight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::{Effect, Fault, Rule, Trigger};
    use crate::model::{Discarded, Model};
    use crate::{AlignedBuffer, OperationKind, RamDevice};

    /// Blocks of the devices here.
    const BLOCKS: usize = 4;

    /// The content of each block of an image: its first byte.
    fn played(log: &Log, at: u64, survivors: Survivors) -> Vec<u8> {
        let mut image = vec![0; BLOCKS * 512];
        log.play(Cut { at, survivors }, &mut image);
        image.chunks(512).map(|block| block[0]).collect()
    }

    fn record() -> Record<RamDevice> {
        Record::new(RamDevice::new(BLOCKS as u64 * 512))
    }

    #[test]
    fn changes_nothing_of_the_device() {
        Model {
            discarded: Discarded::Zeros,
            ..Model::new(31)
        }
        .run(&Record::new(RamDevice::new(1 << 17)));
    }

    #[test]
    fn a_flush_settles_what_was_done_before_it() {
        let record = record();
        record.write_at(0, &[1; 1024]).unwrap(); // ticks 1 and 2
        record.flush().unwrap(); // 3 and 4
        record.write_at(512, &[2; 1024]).unwrap(); // 5 and 6
        record.discard(ByteRange::new(0, 512)).unwrap(); // 7 and 8
        record.flush().unwrap(); // 9 and 10
        let log = record.log();
        assert_eq!((log.len(), log.end_of_time()), (5, 11));
        for (at, none, all) in [
            (1, [0, 0, 0, 0], [0, 0, 0, 0]),
            (2, [0, 0, 0, 0], [1, 1, 0, 0]),
            (4, [0, 0, 0, 0], [1, 1, 0, 0]),
            (5, [1, 1, 0, 0], [1, 1, 0, 0]),
            (6, [1, 1, 0, 0], [1, 2, 2, 0]),
            (8, [1, 1, 0, 0], [0, 2, 2, 0]),
            (10, [1, 1, 0, 0], [0, 2, 2, 0]),
            (11, [0, 2, 2, 0], [0, 2, 2, 0]),
        ] {
            assert_eq!(played(&log, at, Survivors::None), none, "cut at {at}");
            assert_eq!(played(&log, at, Survivors::All), all, "cut at {at}");
        }
    }

    #[test]
    fn what_is_in_flight_when_a_flush_begins_is_not_settled() {
        let record = record();
        let mut queue = record.queue(QueueOptions::new(2)).unwrap();
        let buffer = AlignedBuffer::from(&[7; 512][..]);
        queue.submit(Request::new(Operation::Write, 0, buffer, 99));
        record.flush().unwrap();
        assert_eq!(queue.reap(Wait::Yes).unwrap().request.tag, 99);
        let log = record.log();
        assert_eq!(log.overtaken(), 1);
        let end = log.end_of_time();
        assert_eq!(played(&log, end, Survivors::None), [0; BLOCKS]);
        assert_eq!(played(&log, end, Survivors::All), [7, 0, 0, 0]);
        queue.submit(Request::new(Operation::Flush, 0, AlignedBuffer::empty(), 1));
        queue.reap(Wait::Yes).unwrap().result.unwrap();
        let log = record.log();
        let end = log.end_of_time();
        assert_eq!(played(&log, end, Survivors::None), [7, 0, 0, 0]);
    }

    #[test]
    fn what_failed_is_never_settled() {
        let rule = Rule::on(
            OperationKind::Write,
            Trigger::Nth(1),
            Effect::Torn { keep: 512 },
        );
        let record = Record::new(Fault::new(RamDevice::new(BLOCKS as u64 * 512), [rule]));
        record.write_at(0, &[3; 1024]).unwrap_err();
        record.flush().unwrap();
        record.write_at(1, &[3; 512]).unwrap_err();
        record.discard(ByteRange::new(0, 1 << 20)).unwrap_err();
        let log = record.log();
        assert_eq!(log.len(), 2, "a refused request is no change");
        let end = log.end_of_time();
        assert_eq!(played(&log, end, Survivors::None), [0; BLOCKS]);
        assert_eq!(played(&log, end, Survivors::All), [3, 3, 0, 0]);
    }

    /// Two unsettled writes of two blocks can leave each block in three ways,
    /// if they are torn, and both blocks alike, if they are not.
    #[test]
    #[cfg_attr(miri, ignore = "hundreds of images take Miri minutes")]
    fn chance_finds_every_order_and_every_tear() {
        let record = record();
        record.write_at(0, &[1; 1024]).unwrap();
        record.write_at(0, &[2; 1024]).unwrap();
        let log = record.log();
        let (mut whole, mut torn) = (BTreeMap::new(), BTreeMap::new());
        for seed in 0..200 {
            let end = log.end_of_time();
            let image = played(&log, end, Survivors::Changes { seed });
            *whole.entry(image).or_insert(0) += 1;
            let image = played(&log, end, Survivors::Blocks { seed });
            *torn.entry(image).or_insert(0) += 1;
        }
        assert_eq!((whole.len(), torn.len()), (3, 9));
        assert!(whole.keys().all(|image| image[0] == image[1]));
    }

    #[test]
    #[cfg_attr(miri, ignore = "hundreds of images take Miri minutes")]
    fn cuts_are_the_same_for_the_same_seed_and_reach_every_prefix() {
        let record = record();
        for value in 1..=10 {
            record.write_at(0, &[value; 512]).unwrap();
            record.flush().unwrap();
        }
        let log = record.log();
        assert_eq!(log.cuts(30, 5), log.cuts(30, 5));
        assert_ne!(log.cuts(30, 5), log.cuts(30, 6));
        let cuts = log.cuts(240, 5);
        assert_eq!(cuts.len(), 240);
        for survivors in [Survivors::None, Survivors::All] {
            let moments: std::collections::BTreeSet<u64> = cuts
                .iter()
                .filter(|cut| cut.survivors == survivors)
                .map(|cut| cut.at)
                .collect();
            assert_eq!(moments.len(), 40);
        }
        assert!(Log::default().cuts(30, 5).is_empty());
    }
}
