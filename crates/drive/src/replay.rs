//! A trace played on a bare translation layer, without time.

use crate::DriveError;
use crate::ftl::{Ftl, Layout, Policy, WearLevelling};
use crate::trace::{Action, Entry, TraceError};
use crate::uniform::Outcome;
use std::ops::ControlFlow;
use thiserror::Error;

/// The translation layer that a trace is played on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Replay {
    /// Sizes.
    pub layout: Layout,
    /// Which block is cleaned.
    pub policy: Policy,
    /// How worn blocks are spared.
    pub wear_levelling: WearLevelling,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Of random victims.
    pub seed: u64,
}

/// Why a trace cannot be played.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// The drive cannot be.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// It asks for bytes that the drive does not have.
    #[error("request {number} of the trace ends at byte {end}, and the drive at {size}")]
    TooSmall {
        /// The request, from 1.
        number: u64,
        /// Behind its last byte.
        end: u64,
        /// Bytes of the drive.
        size: u64,
    },
}

impl ReplayError {
    /// The remedy, as one sentence.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Drive(error) => error.remedy(),
            Self::Trace(error) => error.remedy(),
            Self::TooSmall { .. } => {
                "Give the drive more `blocks`, or larger pages by `page_size`."
            }
        }
    }
}

impl Replay {
    /// Fills the drive in order, plays the trace on it, and counts what the
    /// trace writes. Of a page that is written in part all is written; of one
    /// that is discarded in part nothing is. `report` is told the requests done,
    /// and may end it.
    ///
    /// # Errors
    /// [`ReplayError`]; `Ok(None)` where `report` ended it.
    pub fn play(
        &self,
        trace: impl IntoIterator<Item = Result<Entry, TraceError>>,
        report: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Option<Outcome>, ReplayError> {
        let ftl = Ftl::new(self.layout, self.policy, self.seed)?;
        let mut ftl = ftl.levelling(self.wear_levelling);
        for logical in 0..self.layout.logical_pages {
            ftl.write(0, logical, &mut ());
        }
        let (counts, erases) = (ftl.counts(), ftl.erases().to_vec());
        let size = u64::from(self.layout.logical_pages) * self.page_bytes;
        for (number, entry) in (1..).zip(trace) {
            let entry = entry?;
            let end = entry.offset + entry.bytes;
            if end > size {
                return Err(ReplayError::TooSmall { number, end, size });
            }
            // Both fit: the drive has fewer pages than 2³².
            let pages = |first: u64, end: u64| first as u32..end as u32;
            match entry.action {
                Action::Write => {
                    for logical in pages(
                        entry.offset / self.page_bytes,
                        end.div_ceil(self.page_bytes),
                    ) {
                        ftl.write(0, logical, &mut ());
                    }
                }
                Action::Discard => {
                    for logical in pages(
                        entry.offset.div_ceil(self.page_bytes),
                        end / self.page_bytes,
                    ) {
                        ftl.discard(logical);
                    }
                }
                Action::Read | Action::Flush => {}
            }
            if number.is_multiple_of(1 << 12) && report(number).is_break() {
                return Ok(None);
            }
        }
        let worn = ftl.erases().iter().zip(&erases);
        Ok(Some(Outcome {
            counts: ftl.counts().since(&counts),
            erases: worn.map(|(after, before)| after - before).collect(),
            in_use: ftl.in_use(),
            logs: vec![self.layout.blocks],
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLAY: Replay = Replay {
        layout: Layout {
            blocks: 32,
            pages_per_block: 8,
            logical_pages: 200,
        },
        policy: Policy::Greedy,
        wear_levelling: WearLevelling::None,
        page_bytes: 4096,
        seed: 1,
    };

    fn play(entries: &[Entry]) -> Result<Outcome, ReplayError> {
        let trace = entries.iter().copied().map(Ok);
        let outcome = REPLAY.play(trace, &mut |_| ControlFlow::Continue(()));
        outcome.map(|outcome| outcome.expect("nobody ends it"))
    }

    fn entry(action: Action, offset: u64, bytes: u64) -> Entry {
        Entry {
            time: 0,
            action,
            offset,
            bytes,
        }
    }

    #[test]
    fn parts_of_pages() {
        let outcome = play(&[
            // Pages 0 and 1, in part.
            entry(Action::Write, 100, 4096),
            // Page 3 whole, 2 and 4 in part.
            entry(Action::Discard, 2 * 4096 + 1, 2 * 4096),
            entry(Action::Discard, 3 * 4096 - 1, 4096 + 2),
            entry(Action::Read, 0, 4096),
            entry(Action::Flush, 0, 0),
            // The last page.
            entry(Action::Write, 199 * 4096, 4096),
        ])
        .expect("it fits");
        assert_eq!(outcome.counts.host, 3);
        assert_eq!(outcome.counts.discarded, 1);
        assert_eq!(outcome.in_use, 199);
    }

    #[test]
    fn a_drive_too_small_is_told_with_the_request() {
        let fits = entry(Action::Write, 0, 4096);
        let beyond = entry(Action::Read, 199 * 4096, 4097);
        let error = play(&[fits, beyond]).expect_err("it is too small");
        let ReplayError::TooSmall { number, end, size } = error else {
            panic!("{error}");
        };
        assert_eq!((number, end, size), (2, 200 * 4096 + 1, 200 * 4096));
    }
}
