//! [`Fault`]: a device that fails on purpose, the same way every time.

use crate::error::errno;
use crate::{
    BlockDevice, BlockError, ByteRange, Geometry, InlineQueue, OperationKind, Queue, QueueOptions,
};
use std::sync::{Mutex, PoisonError};

/// When a [`Rule`] strikes. Counts are of the requests that match the rule's
/// operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The nth request, from 1, and only it.
    Nth(u64),
    /// The nth request, from 1, and all after it.
    From(u64),
    /// Every request that touches the range.
    Touching(ByteRange),
    /// The request that crosses this many bytes in all, and all after it: a
    /// disk that is full.
    AfterBytes(u64),
}

/// The effect of a rule on a request that matches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing is done and this error number reported.
    Fail(i32),
    /// The first `keep` bytes of a write are stored, rounded down to the
    /// logical block; then it fails with EIO. Other operations just fail.
    Torn {
        /// Bytes that reach the device.
        keep: u64,
    },
    /// One bit of the data is inverted, modulo the length, in what is read or
    /// stored; success is reported.
    Flip {
        /// The bit: 0 is the lowest bit of the first byte.
        bit: u64,
    },
    /// Success is reported and nothing done: a lost write, a lying flush. A
    /// read leaves the buffer as it was.
    Lose,
}

/// One planned fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The operation that it concerns; `None` for all.
    pub operation: Option<OperationKind>,
    /// The trigger of the fault.
    pub trigger: Trigger,
    /// The effect on the request.
    pub effect: Effect,
}

impl Rule {
    /// A fault for one kind of operation.
    pub fn on(operation: OperationKind, trigger: Trigger, effect: Effect) -> Self {
        Self {
            operation: Some(operation),
            trigger,
            effect,
        }
    }
}

/// Applies the first [`Rule`] that matches a request; each rule counts on its
/// own, struck or not.
///
/// Its queue carries requests out inside `submit`, so that their order, and
/// with it the plan, does not depend on time.
#[derive(Debug)]
pub struct Fault<D> {
    device: D,
    plan: Mutex<Vec<Counting>>,
}

#[derive(Debug)]
struct Counting {
    rule: Rule,
    requests: u64,
    bytes: u64,
}

impl<D: BlockDevice> Fault<D> {
    /// `rules` in the order of precedence.
    pub fn new(device: D, rules: impl IntoIterator<Item = Rule>) -> Self {
        let plan = rules
            .into_iter()
            .map(|rule| Counting {
                rule,
                requests: 0,
                bytes: 0,
            })
            .collect();
        Self {
            device,
            plan: Mutex::new(plan),
        }
    }

    fn strike(&self, operation: OperationKind, range: ByteRange) -> Option<Effect> {
        let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        let mut effect = None;
        for counting in plan.iter_mut() {
            if counting.matches(operation, range) && effect.is_none() {
                effect = Some(counting.rule.effect);
            }
        }
        effect
    }
}

impl Counting {
    fn matches(&mut self, operation: OperationKind, range: ByteRange) -> bool {
        if self.rule.operation.is_some_and(|only| only != operation) {
            return false;
        }
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(range.length);
        match self.rule.trigger {
            Trigger::Nth(n) => self.requests == n,
            Trigger::From(n) => self.requests >= n,
            Trigger::Touching(area) => area.overlaps(range),
            Trigger::AfterBytes(bytes) => self.bytes > bytes,
        }
    }
}

fn failure(errno: i32) -> Result<(), BlockError> {
    Err(BlockError::Injected { errno })
}

fn flip(data: &mut [u8], bit: u64) {
    if !data.is_empty() {
        let bit = bit % (data.len() as u64 * 8);
        data[(bit / 8) as usize] ^= 1 << (bit % 8);
    }
}

impl<D: BlockDevice> BlockDevice for Fault<D> {
    fn geometry(&self) -> Geometry {
        self.device.geometry()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        let range = self.geometry().check(offset, into.len() as u64)?;
        match self.strike(OperationKind::Read, range) {
            None => self.device.read_at(offset, into),
            Some(Effect::Fail(errno)) => failure(errno),
            Some(Effect::Torn { .. }) => failure(errno::EIO),
            Some(Effect::Lose) => Ok(()),
            Some(Effect::Flip { bit }) => {
                self.device.read_at(offset, into)?;
                flip(into, bit);
                Ok(())
            }
        }
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        let geometry = self.geometry();
        let range = geometry.check(offset, data.len() as u64)?;
        match self.strike(OperationKind::Write, range) {
            None => self.device.write_at(offset, data),
            Some(Effect::Fail(errno)) => failure(errno),
            Some(Effect::Lose) => Ok(()),
            Some(Effect::Torn { keep }) => {
                let keep = keep.min(range.length);
                let keep = keep - keep % u64::from(geometry.logical_block);
                self.device.write_at(offset, &data[..keep as usize])?;
                failure(errno::EIO)
            }
            Some(Effect::Flip { bit }) => {
                let mut data = data.to_vec();
                flip(&mut data, bit);
                self.device.write_at(offset, &data)
            }
        }
    }

    fn flush(&self) -> Result<(), BlockError> {
        match self.strike(OperationKind::Flush, ByteRange::new(0, 0)) {
            None | Some(Effect::Flip { .. }) => self.device.flush(),
            Some(Effect::Fail(errno)) => failure(errno),
            Some(Effect::Torn { .. }) => failure(errno::EIO),
            Some(Effect::Lose) => Ok(()),
        }
    }

    fn discard(&self, range: ByteRange) -> Result<(), BlockError> {
        let range = self.geometry().check(range.offset, range.length)?;
        match self.strike(OperationKind::Discard, range) {
            None | Some(Effect::Flip { .. }) => self.device.discard(range),
            Some(Effect::Fail(errno)) => failure(errno),
            Some(Effect::Torn { .. }) => failure(errno::EIO),
            Some(Effect::Lose) => Ok(()),
        }
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        Ok(Box::new(InlineQueue::open(self, options, None)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AlignedBuffer, Operation, RamDevice, Request, Wait};

    const EVERYTHING: ByteRange = ByteRange::new(0, u64::MAX);

    fn faulty(rules: impl IntoIterator<Item = Rule>) -> Fault<RamDevice> {
        Fault::new(RamDevice::new(1 << 20), rules)
    }

    fn errno_of(result: Result<(), BlockError>) -> i32 {
        result.map_or_else(|error| error.errno(), |()| 0)
    }

    #[test]
    fn the_nth_of_its_kind_fails_and_no_other() {
        let device = faulty([Rule::on(
            OperationKind::Write,
            Trigger::Nth(2),
            Effect::Fail(errno::EIO),
        )]);
        let mut buffer = [0; 512];
        let outcomes: Vec<i32> = (0..3)
            .map(|n| {
                device.read_at(0, &mut buffer).unwrap();
                errno_of(device.write_at(n * 512, &[1; 512]))
            })
            .collect();
        assert_eq!(outcomes, [0, errno::EIO, 0]);
        device.read_at(512, &mut buffer).unwrap();
        assert_eq!(buffer, [0; 512], "a failed write stores nothing");
    }

    #[test]
    fn a_full_disk_stays_full() {
        let device = faulty([Rule::on(
            OperationKind::Write,
            Trigger::AfterBytes(1024),
            Effect::Fail(errno::ENOSPC),
        )]);
        let outcomes: Vec<i32> = (0..4)
            .map(|_| errno_of(device.write_at(0, &[1; 512])))
            .collect();
        assert_eq!(outcomes, [0, 0, errno::ENOSPC, errno::ENOSPC]);
    }

    #[test]
    fn bad_areas_fail_all_that_touch_them() {
        let device = faulty([Rule {
            operation: None,
            trigger: Trigger::Touching(ByteRange::new(1000, 1)),
            effect: Effect::Fail(errno::EIO),
        }]);
        let mut buffer = [0; 1024];
        assert!(device.read_at(0, &mut buffer).is_err());
        assert!(device.discard(ByteRange::new(512, 512)).is_err());
        assert!(device.read_at(1024, &mut buffer).is_ok());
        assert!(device.flush().is_ok());
    }

    #[test]
    fn torn_writes_keep_whole_blocks() {
        let device = faulty([Rule::on(
            OperationKind::Write,
            Trigger::From(1),
            Effect::Torn { keep: 1500 },
        )]);
        assert_eq!(errno_of(device.write_at(0, &[9; 2048])), errno::EIO);
        let mut buffer = [0; 2048];
        device.read_at(0, &mut buffer).unwrap();
        assert!(buffer[..1024].iter().all(|&byte| byte == 9));
        assert!(buffer[1024..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn one_bit_flips_on_either_way() {
        let read = faulty([Rule::on(
            OperationKind::Read,
            Trigger::Nth(1),
            Effect::Flip { bit: 13 },
        )]);
        let mut buffer = [0; 512];
        read.read_at(0, &mut buffer).unwrap();
        assert_eq!(buffer[1], 1 << 5);
        read.read_at(0, &mut buffer).unwrap();
        assert_eq!(buffer, [0; 512]);

        let written = faulty([Rule::on(
            OperationKind::Write,
            Trigger::Touching(EVERYTHING),
            Effect::Flip { bit: 512 * 8 },
        )]);
        written.write_at(0, &[0; 512]).unwrap();
        written.read_at(0, &mut buffer).unwrap();
        assert_eq!(buffer[0], 1);
    }

    #[test]
    fn lies_are_told_without_doing_anything() {
        let device = faulty([Rule::on(
            OperationKind::Write,
            Trigger::From(2),
            Effect::Lose,
        )]);
        device.write_at(0, &[1; 512]).unwrap();
        device.write_at(0, &[2; 512]).unwrap();
        let mut buffer = [0; 512];
        device.read_at(0, &mut buffer).unwrap();
        assert_eq!(buffer, [1; 512]);
    }

    #[test]
    fn the_first_rule_wins_and_all_count() {
        let device = faulty([
            Rule::on(OperationKind::Flush, Trigger::Nth(1), Effect::Fail(1)),
            Rule::on(OperationKind::Flush, Trigger::Nth(2), Effect::Fail(2)),
            Rule::on(OperationKind::Flush, Trigger::From(1), Effect::Fail(3)),
        ]);
        let outcomes: Vec<i32> = (0..3).map(|_| errno_of(device.flush())).collect();
        assert_eq!(outcomes, [1, 2, 3]);
    }

    #[test]
    fn queued_requests_follow_the_plan_and_keep_their_buffers() {
        let device = faulty([Rule::on(
            OperationKind::Read,
            Trigger::Nth(2),
            Effect::Fail(errno::EIO),
        )]);
        let mut queue = device.queue(QueueOptions::new(4)).unwrap();
        for tag in 0..3 {
            queue.submit(Request::new(
                Operation::Read,
                0,
                AlignedBuffer::new(4096),
                tag,
            ));
        }
        for tag in 0..3 {
            let completion = queue.reap(Wait::Yes).unwrap();
            assert_eq!(completion.request.tag, tag);
            assert_eq!(completion.request.buffer.len(), 4096);
            assert_eq!(completion.result.is_err(), tag == 1);
        }
    }
}
