//! [`Trim`]: what becomes of discards, decided on purpose.

use crate::{
    BlockDevice, BlockError, ByteRange, Completion, Geometry, Operation, OperationKind, Queue,
    QueueOptions, Request, Wait,
};
use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

/// Zeros that are written at a time in place of a discard.
const ZEROS: usize = 1 << 20;

/// The treatment of discards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TrimPolicy {
    /// Nothing reaches the device; from above it cannot discard.
    #[default]
    Block,
    /// They reach the device. It then knows which ranges are in use, and so does everyone who sees
    /// it.
    Pass,
    /// Zeros are written instead. Above an encrypted device they are noise
    /// below, so the device does not learn what is in use.
    Zero,
}

impl TrimPolicy {
    /// All policies.
    pub const ALL: [Self; 3] = [Self::Block, Self::Pass, Self::Zero];

    /// The name in options and reports: `block`, `pass` or `zero`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Pass => "pass",
            Self::Zero => "zero",
        }
    }
}

impl fmt::Display for TrimPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The word that was to be a [`TrimPolicy`].
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a TRIM policy: block, pass or zero")]
pub struct UnknownTrimPolicy(pub String);

impl FromStr for TrimPolicy {
    type Err = UnknownTrimPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownTrimPolicy> {
        Self::ALL
            .into_iter()
            .find(|policy| policy.name() == text)
            .ok_or_else(|| UnknownTrimPolicy(text.to_owned()))
    }
}

/// A device whose discards follow a [`TrimPolicy`].
#[derive(Debug)]
pub struct Trim<D> {
    device: D,
    policy: TrimPolicy,
}

impl<D: BlockDevice> Trim<D> {
    /// Puts `policy` between `device` and who stands above.
    pub fn new(device: D, policy: TrimPolicy) -> Self {
        Self { device, policy }
    }

    /// The policy.
    pub fn policy(&self) -> TrimPolicy {
        self.policy
    }

    fn write_zeros(&self, range: ByteRange) -> Result<(), BlockError> {
        let zeros = vec![0; ZEROS.min(range.length as usize)];
        let mut done = 0;
        while done < range.length {
            let part = zeros.len().min((range.length - done) as usize);
            self.device.write_at(range.offset + done, &zeros[..part])?;
            done += part as u64;
        }
        Ok(())
    }
}

impl<D: BlockDevice> BlockDevice for Trim<D> {
    fn geometry(&self) -> Geometry {
        let below = self.device.geometry();
        match self.policy {
            TrimPolicy::Pass => below,
            TrimPolicy::Block => Geometry {
                discard_granularity: None,
                discard_zeroes: false,
                ..below
            },
            TrimPolicy::Zero => Geometry {
                discard_granularity: Some(below.logical_block),
                discard_zeroes: true,
                ..below
            },
        }
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        self.device.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        self.device.write_at(offset, data)
    }

    fn flush(&self) -> Result<(), BlockError> {
        self.device.flush()
    }

    fn discard(&self, range: ByteRange) -> Result<(), BlockError> {
        let range = self.geometry().check(range.offset, range.length)?;
        match self.policy {
            TrimPolicy::Pass => self.device.discard(range),
            TrimPolicy::Zero => self.write_zeros(range),
            TrimPolicy::Block => Err(BlockError::Unsupported {
                operation: OperationKind::Discard,
            }),
        }
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        match self.policy {
            TrimPolicy::Pass => self.device.queue(options),
            _ => Ok(Box::new(TrimQueue {
                depth: options.checked_depth()?,
                below: self.device.queue(options)?,
                trim: self,
                geometry: self.geometry(),
                answered: VecDeque::new(),
            })),
        }
    }
}

/// Answers discards itself, and hands all else down.
struct TrimQueue<'a, D> {
    below: Box<dyn Queue + 'a>,
    trim: &'a Trim<D>,
    geometry: Geometry,
    depth: u32,
    answered: VecDeque<Completion>,
}

impl<D: BlockDevice> Queue for TrimQueue<'_, D> {
    fn submit(&mut self, request: Request) {
        if self.in_flight() >= self.depth {
            let result = Err(BlockError::QueueFull { depth: self.depth });
            return self.answered.push_back(Completion { request, result });
        }
        let Operation::Discard { length } = request.operation else {
            return self.below.submit(request);
        };
        let result = self
            .geometry
            .check_request(&request)
            .and_then(|_| self.trim.discard(ByteRange::new(request.offset, length)));
        self.answered.push_back(Completion { request, result });
    }

    fn reap(&mut self, wait: Wait) -> Option<Completion> {
        self.answered.pop_front().or_else(|| self.below.reap(wait))
    }

    fn in_flight(&self) -> u32 {
        self.below.in_flight() + self.answered.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RamDevice;
    use crate::model::{Discarded, Model};

    #[test]
    fn every_policy_is_a_device() {
        for policy in TrimPolicy::ALL {
            let discarded = match policy {
                TrimPolicy::Block => Discarded::Anything,
                TrimPolicy::Pass | TrimPolicy::Zero => Discarded::Zeros,
            };
            let trim = Trim::new(RamDevice::new(1 << 17), policy);
            Model {
                discarded,
                ..Model::new(71)
            }
            .run(&trim);
        }
    }

    #[test]
    fn only_pass_tells_the_device() {
        for (policy, told) in [
            (TrimPolicy::Block, 0),
            (TrimPolicy::Pass, 1),
            (TrimPolicy::Zero, 0),
        ] {
            let below = crate::layer::Trace::new(RamDevice::new(1 << 20));
            let trim = Trim::new(&below, policy);
            trim.write_at(0, &[7; 8192]).unwrap();
            let discarded = trim.discard(ByteRange::new(512, 4096));
            assert_eq!(discarded.is_ok(), policy != TrimPolicy::Block);
            let mut bytes = [1; 8192];
            trim.read_at(0, &mut bytes).unwrap();
            let expected = if policy == TrimPolicy::Block { 7 } else { 0 };
            assert!(bytes[512..4608].iter().all(|&byte| byte == expected));
            let discards = below
                .take()
                .iter()
                .filter(|entry| entry.operation == OperationKind::Discard)
                .count();
            assert_eq!(discards, told, "{policy}");
        }
    }

    #[test]
    fn names_are_read_back() {
        for policy in TrimPolicy::ALL {
            assert_eq!(policy.name().parse::<TrimPolicy>().unwrap(), policy);
        }
        assert!("allow".parse::<TrimPolicy>().is_err());
    }
}
