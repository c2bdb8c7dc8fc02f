//! The model test: any stack of devices against a `Vec<u8>`.
//!
//! For the tests of this crate and, with the feature `model`, of those that
//! build devices of their own. Everything here panics with what differed.

use crate::{
    AlignedBuffer, BlockDevice, BlockError, ByteRange, Completion, Operation, Queue, QueueOptions,
    Request, Wait,
};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;

/// The content that a discarded range reads as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discarded {
    /// Zeros, and the model insists on it.
    Zeros,
    /// Anything; the model looks and insists that it stays so.
    Anything,
}

/// A model test; the same values do the same requests.
#[derive(Clone, Debug)]
pub struct Model {
    /// Chooses the requests and their data.
    pub seed: u64,
    /// Random requests on each of the two roads, synchronous and queued.
    pub steps: u32,
    /// Longest request, in bytes.
    pub longest: u64,
    /// Queue depth, at least 1.
    pub depth: u32,
    /// The device's promise about discarded ranges.
    pub discarded: Discarded,
}

impl Model {
    /// 400 steps, requests up to 64 KiB, depth 8, discards unspecified. Miri, which takes a
    /// hundred times as long, has 40 steps and requests up to 4 KiB.
    pub fn new(seed: u64) -> Self {
        let (steps, longest) = if cfg!(miri) {
            (40, 4 << 10)
        } else {
            (400, 64 << 10)
        };
        Self {
            seed,
            steps,
            longest,
            depth: 8,
            discarded: Discarded::Anything,
        }
    }

    /// Tries `device`, whatever it contains now; at most a few MiB, since its
    /// content is kept and compared as a whole.
    ///
    /// Checks the refusal of misaligned and outlying requests, and random reads, writes, flushes
    /// and discards, one at a time and in flight. It also checks that tags and buffers come back,
    /// and the rules of [`Queue`].
    pub fn run(&self, device: &dyn BlockDevice) {
        let mut run = Run {
            model: self,
            device,
            bytes: vec![0; device.geometry().size as usize],
            random: Xoshiro256PlusPlus::seed_from_u64(self.seed),
            buffers: Vec::new(),
        };
        let geometry = device.geometry();
        assert!(geometry.logical_block.is_power_of_two() && geometry.logical_block >= 512);
        assert_eq!(geometry.size % u64::from(geometry.logical_block), 0);
        assert!(geometry.size >= 8 * u64::from(geometry.logical_block));
        device
            .read_at(0, &mut run.bytes)
            .expect("the device is readable as a whole");

        run.refuses_invalid_requests();
        run.one_at_a_time();
        run.compare_all();
        run.in_flight();
        run.compare_all();
        run.overflowing_queue();
        run.compare_all();
    }
}

struct Run<'a> {
    model: &'a Model,
    device: &'a dyn BlockDevice,
    /// The content that the device must have.
    bytes: Vec<u8>,
    random: Xoshiro256PlusPlus,
    /// Buffers that came back, for using the same memory again.
    buffers: Vec<AlignedBuffer>,
}

impl<'a> Run<'a> {
    fn below(&mut self, bound: u64) -> u64 {
        self.random.next_u64() % bound
    }

    /// An aligned range, now and then at either end of the device.
    fn range(&mut self) -> ByteRange {
        let geometry = self.device.geometry();
        let block = u64::from(geometry.logical_block);
        let blocks = geometry.size / block;
        let longest = (self.model.longest / block).clamp(1, blocks);
        let length = match self.below(4) {
            0 => 1,
            1 => 1 + self.below(longest.min(8)),
            _ => 1 + self.below(longest),
        };
        let offset = match self.below(16) {
            0 => 0,
            1 => blocks - length,
            _ => self.below(blocks - length + 1),
        };
        ByteRange::new(offset * block, length * block)
    }

    fn operation(&mut self) -> Operation {
        let discards = self.device.geometry().discard_granularity.is_some();
        match self.below(20) {
            0 => Operation::Flush,
            1 | 2 if discards => Operation::Discard { length: 0 },
            3..=10 => Operation::Write,
            _ => Operation::Read,
        }
    }

    fn expected(&mut self, range: ByteRange) -> &mut [u8] {
        &mut self.bytes[range.offset as usize..(range.offset + range.length) as usize]
    }

    #[track_caller]
    fn same(&mut self, range: ByteRange, found: &[u8]) {
        let seed = self.model.seed;
        if self.expected(range) == found {
            return;
        }
        if let Some(at) = self
            .expected(range)
            .iter()
            .zip(found)
            .position(|(expected, found)| expected != found)
        {
            panic!(
                "seed {seed}: the read of {range:?} differs from the model at byte {at}: {:#04x} instead of {:#04x}",
                found[at],
                self.expected(range)[at]
            );
        }
    }

    #[track_caller]
    fn compare_all(&mut self) {
        let mut found = vec![0; self.bytes.len()];
        self.device.read_at(0, &mut found).unwrap();
        self.same(ByteRange::new(0, found.len() as u64), &found);
    }

    /// Requests that every device must refuse without touching anything.
    fn refuses_invalid_requests(&mut self) {
        let geometry = self.device.geometry();
        let block = u64::from(geometry.logical_block);
        let misaligned = [
            (1, block),
            (block / 2, block),
            (0, block - 1),
            (0, block + 1),
            (geometry.size - 1, 1),
        ];
        let outside = [
            (geometry.size, block),
            (geometry.size - block, 2 * block),
            (u64::MAX - (block - 1), block),
        ];
        let invalid = misaligned.map(|pair| (pair, true)).into_iter();
        let invalid = invalid.chain(outside.map(|pair| (pair, false)));
        let mut queue = self.open();
        let as_expected = |error: &BlockError, misaligned: bool| match error {
            BlockError::Misaligned { .. } => misaligned,
            BlockError::OutOfRange { .. } => !misaligned,
            _ => false,
        };
        for (tag, ((offset, length), misaligned)) in invalid.enumerate() {
            let mut buffer = AlignedBuffer::new(length as usize);
            let check = |result: Result<(), BlockError>| {
                let error = result.expect_err("an invalid request succeeded");
                assert!(
                    as_expected(&error, misaligned),
                    "{length} bytes at {offset}: {error}"
                );
            };
            check(self.device.read_at(offset, &mut buffer));
            check(self.device.write_at(offset, &buffer));
            if geometry.discard_granularity.is_some() {
                check(self.device.discard(ByteRange::new(offset, length)));
            }
            for operation in [Operation::Read, Operation::Write] {
                let buffer = AlignedBuffer::new(length as usize);
                queue.submit(Request::new(operation, offset, buffer, tag as u64));
                let completion = queue.reap(Wait::Yes).expect("a failed completion");
                assert_eq!(completion.request.tag, tag as u64);
                assert_eq!(completion.request.offset, offset);
                assert_eq!(completion.request.buffer.len() as u64, length);
                check(completion.result);
            }
        }
        assert!(queue.reap(Wait::Yes).is_none());
        drop(queue);
        if geometry.discard_granularity.is_none() {
            let range = ByteRange::new(0, block);
            assert!(matches!(
                self.device.discard(range),
                Err(BlockError::Unsupported { .. })
            ));
        }
        self.device.read_at(0, &mut []).expect("an empty read");
        self.device.write_at(0, &[]).expect("an empty write");
        self.compare_all();
    }

    /// The synchronous methods, with memory at odd addresses too.
    fn one_at_a_time(&mut self) {
        let mut memory = AlignedBuffer::new(self.model.longest as usize + 4096);
        for _ in 0..self.model.steps {
            let range = self.range();
            let skew = [0, 1, 512][self.below(3) as usize];
            let buffer = &mut memory[skew..skew + range.length as usize];
            match self.operation() {
                Operation::Read => {
                    self.device.read_at(range.offset, buffer).unwrap();
                    self.same(range, buffer);
                }
                Operation::Write => {
                    self.random.fill_bytes(buffer);
                    self.expected(range).copy_from_slice(buffer);
                    self.device.write_at(range.offset, buffer).unwrap();
                }
                Operation::Flush => self.device.flush().unwrap(),
                Operation::Discard { .. } => {
                    self.device.discard(range).unwrap();
                    self.discarded(range);
                }
            }
        }
    }

    /// Brings the model up to date after a discard.
    fn discarded(&mut self, range: ByteRange) {
        match self.model.discarded {
            Discarded::Zeros => self.expected(range).fill(0),
            Discarded::Anything => {
                let mut found = vec![0; range.length as usize];
                self.device.read_at(range.offset, &mut found).unwrap();
                self.expected(range).copy_from_slice(&found);
            }
        }
    }

    fn open(&self) -> Box<dyn Queue + 'a> {
        self.device
            .queue(QueueOptions::new(self.model.depth.max(1)))
            .expect("the device opens a queue")
    }

    /// Queued requests; those that conflict are never in flight together,
    /// because their order would be undefined.
    fn in_flight(&mut self) {
        let mut queue = self.open();
        let mut pending: BTreeMap<u64, (Operation, ByteRange)> = BTreeMap::new();
        for tag in 0..u64::from(self.model.steps) {
            let mut operation = self.operation();
            let range = match operation {
                Operation::Flush => ByteRange::new(0, 0),
                _ => self.range(),
            };
            if let Operation::Discard { length } = &mut operation {
                *length = range.length;
            }
            let reads = operation == Operation::Read;
            while pending.len() as u32 >= self.model.depth.max(1)
                || pending.values().any(|(other, occupied)| {
                    !(reads && *other == Operation::Read) && occupied.overlaps(range)
                })
            {
                let completion = queue.reap(Wait::Yes).expect("requests are in flight");
                self.settle(completion, &mut pending);
            }
            let buffer = self.buffer(operation, range);
            queue.submit(Request::new(operation, range.offset, buffer, tag));
            pending.insert(tag, (operation, range));
            assert_eq!(queue.in_flight() as usize, pending.len());
            while self.below(3) == 0 {
                match queue.reap(Wait::No) {
                    Some(completion) => self.settle(completion, &mut pending),
                    None => break,
                }
            }
        }
        while let Some(completion) = queue.reap(Wait::Yes) {
            self.settle(completion, &mut pending);
        }
        assert!(pending.is_empty(), "lost: {pending:?}");
        assert_eq!(queue.in_flight(), 0);
        assert!(queue.reap(Wait::No).is_none());
    }

    /// A buffer for a request; what a write will store enters the model.
    fn buffer(&mut self, operation: Operation, range: ByteRange) -> AlignedBuffer {
        if !matches!(operation, Operation::Read | Operation::Write) {
            return AlignedBuffer::empty();
        }
        let length = range.length as usize;
        let reusable = self.buffers.iter().position(|old| old.len() == length);
        let mut buffer = match reusable {
            Some(index) => self.buffers.swap_remove(index),
            None => AlignedBuffer::new(length),
        };
        self.random.fill_bytes(&mut buffer);
        if operation == Operation::Write {
            self.expected(range).copy_from_slice(&buffer);
        }
        buffer
    }

    fn settle(
        &mut self,
        completion: Completion,
        pending: &mut BTreeMap<u64, (Operation, ByteRange)>,
    ) {
        let Completion { request, result } = completion;
        let (operation, range) = pending
            .remove(&request.tag)
            .expect("a completion belongs to a request, once");
        result.unwrap_or_else(|error| panic!("{operation:?} of {range:?}: {error}"));
        assert_eq!(request.operation, operation);
        assert_eq!(request.offset, range.offset);
        match operation {
            Operation::Read => self.same(range, &request.buffer),
            Operation::Write => assert_eq!(request.buffer.len() as u64, range.length),
            Operation::Discard { .. } => self.discarded(range),
            Operation::Flush => {}
        }
        if !request.buffer.is_empty() {
            self.buffers.push(request.buffer);
        }
    }

    /// One request too many fails; none gets lost. Then the queue is dropped
    /// with requests in flight.
    fn overflowing_queue(&mut self) {
        let block = self.device.geometry().logical_block as usize;
        let mut queue = self.open();
        let depth = u64::from(self.model.depth.max(1));
        let mut seen = vec![false; depth as usize + 1];
        for tag in 0..=depth {
            let buffer = AlignedBuffer::new(block);
            queue.submit(Request::new(Operation::Read, 0, buffer, tag));
        }
        assert_eq!(u64::from(queue.in_flight()), depth + 1);
        let mut refused = 0;
        while let Some(completion) = queue.reap(Wait::Yes) {
            let tag = completion.request.tag as usize;
            assert!(!std::mem::replace(&mut seen[tag], true));
            assert_eq!(completion.request.buffer.len(), block);
            match completion.result {
                Ok(()) => assert_eq!(completion.request.buffer[..], self.bytes[..block]),
                Err(BlockError::QueueFull { depth: stated }) => {
                    assert_eq!(u64::from(stated), depth);
                    refused += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert!(seen.iter().all(|&seen| seen));
        assert_eq!(refused, 1);
        for tag in 0..depth {
            let buffer = AlignedBuffer::new(block);
            queue.submit(Request::new(Operation::Read, 0, buffer, tag));
        }
        drop(queue);
        for depth in [0, QueueOptions::MAX_DEPTH + 1] {
            assert!(matches!(
                self.device.queue(QueueOptions::new(depth)).map(drop),
                Err(BlockError::Depth { .. })
            ));
        }
    }
}
