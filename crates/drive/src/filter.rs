//! [`Filter`]: a driver that keeps the drive from its next request while it
//! encrypts, or that works on pieces of requests.

use crate::Processor;
use crate::demand::{Demand, Drive};
use block::OperationKind;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Largest piece that TrueCrypt asks a drive for, bytes.
const PIECE: u64 = 256 << 10;

/// Until a thread works that was asleep, nanoseconds: an event, a scheduler and
/// a core that wakes. Assumed.
const WAKE: u64 = 15_000;

/// A driver before a drive, which it is handed at every call.
#[derive(Debug)]
pub(crate) enum Filter {
    /// [`Driver::InTurn`](crate::Driver::InTurn).
    InTurn(Processor),
    /// [`Driver::TrueCrypt`](crate::Driver::TrueCrypt).
    TrueCrypt(Box<TrueCrypt>),
}

/// TrueCrypt's driver.
#[derive(Debug)]
pub(crate) struct TrueCrypt {
    processor: Processor,
    waiting: BinaryHeap<Reverse<Demand>>,
    threads: Threads,
}

/// A request that a filter is done with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filtered {
    pub(crate) demand: Demand,
    /// When.
    pub(crate) done: u64,
    /// How much later it is done, since the host saw the request before it,
    /// because of the cipher and of threads that wake; nanoseconds.
    pub(crate) crypto: u64,
}

/// When TrueCrypt's threads have nothing more to do.
#[derive(Clone, Copy, Debug, Default)]
struct Threads {
    requests: Mark,
    drive: Mark,
    decryption: Mark,
    /// When each of the two buffers is free.
    buffers: [Mark; 2],
    /// The range that was read ahead: first byte and length.
    ahead: Option<(u64, u64)>,
    /// When the host had its last request back.
    host: Mark,
}

/// A point in time, and how much of the way there the driver took: of several
/// things that something waits for, the last one is the way.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    at: u64,
    driver: u64,
}

impl Mark {
    fn or_later(self, other: Self) -> Self {
        match other.at > self.at {
            true => other,
            false => self,
        }
    }

    /// The same while the driver works.
    fn working(self, time: u64) -> Self {
        Self {
            at: self.at + time,
            driver: self.driver + time,
        }
    }

    /// When a thread begins with what comes now, that has done all else at
    /// `free`.
    fn woken(self, free: Self) -> Self {
        match free.at > self.at {
            true => free,
            false => self.working(WAKE),
        }
    }
}

impl Filter {
    /// As [`Drive::submit`].
    pub(crate) fn submit(&mut self, drive: &mut dyn Drive, demand: Demand) {
        match self {
            Self::InTurn(_) => drive.submit(demand),
            Self::TrueCrypt(driver) => driver.waiting.push(Reverse(demand)),
        }
    }

    /// As [`Drive::next_start`].
    pub(crate) fn next_start(&self, drive: &dyn Drive) -> Option<u64> {
        match self {
            Self::InTurn(_) => drive.next_start(),
            Self::TrueCrypt(driver) => {
                let first = driver.waiting.peek();
                first.map(|Reverse(demand)| demand.arrival)
            }
        }
    }

    /// As [`Drive::serve`].
    pub(crate) fn serve(&mut self, drive: &mut dyn Drive) -> Option<Filtered> {
        match self {
            Self::InTurn(processor) => {
                let (demand, moved) = drive.serve()?;
                let crypto = match demand.operation {
                    OperationKind::Read | OperationKind::Write => processor.time(demand.bytes),
                    OperationKind::Flush | OperationKind::Discard => 0,
                };
                // Encrypting before or behind a request takes the same from the drive.
                let done = moved + crypto;
                drive.hold(done);
                Some(Filtered {
                    demand,
                    done,
                    crypto,
                })
            }
            Self::TrueCrypt(driver) => {
                let Reverse(demand) = driver.waiting.pop()?;
                Some(driver.through_threads(drive, demand))
            }
        }
    }
}

impl TrueCrypt {
    pub(crate) fn new(processor: Processor) -> Self {
        Self {
            processor,
            waiting: BinaryHeap::new(),
            threads: Threads::default(),
        }
    }

    fn through_threads(&mut self, drive: &mut dyn Drive, demand: Demand) -> Filtered {
        let arrived = Mark {
            at: demand.arrival,
            driver: self.threads.host.driver,
        };
        let last = match demand.operation {
            OperationKind::Write => self.pieces(drive, demand, arrived, true),
            OperationKind::Read => self.pieces(drive, demand, arrived, false),
            OperationKind::Flush | OperationKind::Discard => {
                let begun = arrived.or_later(self.threads.drive);
                self.ask(drive, begun, demand)
            }
        };
        let before = self.threads.host;
        let waited = last.at.saturating_sub(before.at.max(demand.arrival));
        let crypto = last.driver.saturating_sub(before.driver).min(waited);
        self.threads.host = before.or_later(last);
        Filtered {
            demand,
            done: last.at,
            crypto,
        }
    }

    /// The second thread asks the drive, and waits.
    fn ask(&mut self, drive: &mut dyn Drive, begun: Mark, demand: Demand) -> Mark {
        drive.submit(Demand {
            arrival: begun.at,
            ..demand
        });
        let (_, at) = drive.serve().expect("it was asked for something");
        self.threads.drive = Mark { at, ..begun };
        self.threads.drive
    }

    /// Reads or writes a request piece by piece; when the last one is done.
    fn pieces(
        &mut self,
        drive: &mut dyn Drive,
        demand: Demand,
        arrived: Mark,
        write: bool,
    ) -> Mark {
        let mut now = arrived.woken(self.threads.requests);
        let end = demand.offset + demand.bytes;
        let mut piece = demand;
        let mut last = now;
        while piece.offset < end {
            piece.bytes = PIECE.min(end - piece.offset);
            let encryption = self.processor.shared_time(piece.bytes);
            now = now.or_later(self.threads.buffers[0]);
            if write {
                now = now.working(encryption);
            }
            let begun = now.woken(self.threads.drive);
            let read = self.threads.ahead == Some((piece.offset, piece.bytes));
            let moved = match read && !write {
                true => begun,
                false => self.ask(drive, begun, piece),
            };
            self.threads.drive = moved;
            self.threads.buffers = [self.threads.buffers[1], moved];
            last = moved;
            if !write {
                last = moved.woken(self.threads.decryption).working(encryption);
                self.threads.decryption = last;
            }
            self.threads.ahead = None;
            piece.offset += piece.bytes;
        }
        self.threads.requests = now;
        if !write {
            self.read_ahead(drive, piece);
        }
        last
    }

    /// `piece` is the last one that was read, but begins where that ended.
    fn read_ahead(&mut self, drive: &mut dyn Drive, piece: Demand) {
        let now = self.threads.drive;
        let next = self.waiting.peek();
        let pending = next.is_some_and(|Reverse(demand)| demand.arrival < now.at);
        if !pending && piece.offset + piece.bytes <= drive.capacity() {
            self.ask(drive, now, piece);
            self.threads.ahead = Some((piece.offset, piece.bytes));
        }
    }
}
