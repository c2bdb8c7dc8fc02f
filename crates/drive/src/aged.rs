//! [`Life::aged`]: what it is like to use an SSD that has been written for a while.
//!
//! A life counts pages and knows no time. Here the same file system, set up in the
//! same way, has written to a drive at work, so that requests meet blocks which
//! must be cleaned.

use crate::DriveError;
use crate::demand::Drive;
use crate::fragmented::Fragmented;
use crate::host::{Event, FileSystem};
use crate::lifetime::{Life, Setup};
use crate::preset::LEAST;
use crate::ssd::{Ssd, SsdDrive};
use bytesize::ByteSize;
use std::ops::ControlFlow;

/// Capacities that are written first: about as many until the amplification of a
/// drive that hears of no discards has settled.
const WRITTEN: f64 = 4.0;

impl Life<'_> {
    /// The files on the drive, one after the other, after so much was written to them that
    /// cleaning goes on as it will. Of a larger drive, one of 8 GB with the same shares,
    /// or of the least size that works. `report` is told the share that is done, and may end it.
    ///
    /// # Errors
    /// [`DriveError::OutOfRange`] names the number, [`DriveError::NoSpare`]; `Ok(None)` where
    /// `report` ended it.
    pub fn aged(
        &self,
        setup: Setup,
        report: &mut dyn FnMut(f64) -> ControlFlow<()>,
    ) -> Result<Option<Box<dyn Drive>>, DriveError> {
        self.check(setup)?;
        let enough = ByteSize::b(LEAST).max(self.ssd.least_capacity());
        let ssd = Ssd {
            capacity: enough.min(self.ssd.capacity),
            ..self.ssd.clone()
        };
        let mut drive = SsdDrive::new(&ssd, self.policy, self.seed)?;
        let page = ssd.page.as_u64();
        let all = drive.capacity() / page;
        let pages = (all as f64 * (1.0 - setup.left())) as u32;
        let mut files = FileSystem::new(pages, self.fill, self.overwrites, !self.seed);
        if setup.is_filled() {
            drive.fill(0, u64::from(pages) * page);
        }
        let mut events = Vec::new();
        files.fill(&mut events);
        let mut written = 0;
        let enough = (all as f64 * WRITTEN) as u64;
        let mut told = 0;
        loop {
            for event in events.drain(..) {
                match event {
                    Event::Write(extent) => {
                        written += u64::from(extent.pages);
                        drive.fill(
                            u64::from(extent.first) * page,
                            u64::from(extent.pages) * page,
                        );
                    }
                    Event::Free(extent) if setup.passes_discards() => {
                        drive.forget(
                            u64::from(extent.first) * page,
                            u64::from(extent.pages) * page,
                        );
                    }
                    Event::Free(_) => {}
                }
            }
            if written >= enough {
                break;
            }
            if written - told >= all / 16 {
                told = written;
                if report(written as f64 / enough as f64).is_break() {
                    return Ok(None);
                }
            }
            files.step(&mut events);
        }
        let pieces = files.held().map(|extent| {
            let (first, pages) = (u64::from(extent.first), u64::from(extent.pages));
            (first * page, pages * page)
        });
        let pieces: Vec<_> = pieces.collect();
        Ok(Some(Box::new(Fragmented::over(Box::new(drive), pieces))))
    }
}
