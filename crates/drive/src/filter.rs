//! [`Filter`]: a driver that encrypts between a host and a drive, and the
//! processor that it does it with.

use crate::DriveError;
use crate::demand::{Demand, Drive};
use block::OperationKind;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Largest piece that TrueCrypt asks a drive for, bytes.
const PIECE: u64 = 256 << 10;

/// How a driver encrypts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Filter {
    /// Rate of the cipher on all cores that it uses, 10⁶ bytes a second.
    pub cipher_mb_s: f64,
    /// What it takes until a thread works that was asleep, microseconds.
    pub wake_us: f64,
    /// What it does meanwhile.
    pub manner: Manner,
}

/// What a driver does while the processor encrypts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// The drive waits: data are encrypted where its interrupt is served, as
    /// simple filter drivers do. No thread is woken.
    InTurn,
    /// As TrueCrypt's driver for Windows, versions 5.0 and later. Its first
    /// thread takes a request, cuts it into pieces of 256 KiB and encrypts what
    /// is written, into one of two buffers; its second one reads or writes a
    /// piece at a time; its third one decrypts what was read. Behind the last
    /// piece of a read the second thread reads as much again, unless it has
    /// something else to do: a stream finds that there, a random read waits for it.
    TrueCrypt,
}

/// A drive as seen through a filter.
pub struct Filtered {
    filter: Filter,
    below: Box<dyn Drive>,
    /// For [`Manner::TrueCrypt`].
    waiting: BinaryHeap<Reverse<Demand>>,
    threads: Threads,
    held: u64,
}

/// When TrueCrypt's threads have nothing more to do.
#[derive(Clone, Copy, Debug, Default)]
struct Threads {
    requests: u64,
    drive: u64,
    decryption: u64,
    /// When each of the two buffers is free.
    buffers: [u64; 2],
    /// What was read ahead: first byte and length.
    ahead: Option<(u64, u64)>,
}

impl Filtered {
    /// `below` through a filter.
    ///
    /// # Errors
    /// [`DriveError::OutOfRange`] names the number.
    pub fn new(below: Box<dyn Drive>, filter: Filter) -> Result<Self, DriveError> {
        for (name, value, right) in [
            ("cipher rate", filter.cipher_mb_s, filter.cipher_mb_s > 0.0),
            ("wake_us", filter.wake_us, filter.wake_us >= 0.0),
        ] {
            if !(right && value < 1e9) {
                return Err(DriveError::OutOfRange {
                    name,
                    value: value.to_string(),
                    possible: "more than 0, and less than 1000000000",
                });
            }
        }
        Ok(Self {
            filter,
            below,
            waiting: BinaryHeap::new(),
            threads: Threads::default(),
            held: 0,
        })
    }

    /// Nanoseconds for so many bytes.
    fn encryption(&self, bytes: u64) -> u64 {
        (bytes as f64 * 1e3 / self.filter.cipher_mb_s) as u64
    }

    /// When a thread that has done all else at `free` begins with what comes to
    /// it at `now`.
    fn woken(&self, free: u64, now: u64) -> u64 {
        match free > now {
            true => free,
            false => now + (self.filter.wake_us * 1e3) as u64,
        }
    }

    /// The second thread asks the drive, and waits.
    fn ask(&mut self, now: u64, demand: Demand) -> u64 {
        self.below.submit(Demand {
            arrival: now,
            ..demand
        });
        let (_, done) = self.below.serve().expect("it was asked for something");
        self.threads.drive = done;
        done
    }

    fn through_threads(&mut self, demand: Demand) -> u64 {
        let write = match demand.operation {
            OperationKind::Write => true,
            OperationKind::Read => false,
            OperationKind::Flush | OperationKind::Discard => {
                let now = demand.arrival.max(self.held).max(self.threads.drive);
                return self.ask(now, demand);
            }
        };
        let mut now = self.woken(self.threads.requests, demand.arrival.max(self.held));
        let end = demand.offset + demand.bytes;
        let mut piece = demand;
        let mut last = now;
        while piece.offset < end {
            piece.bytes = PIECE.min(end - piece.offset);
            now = now.max(self.threads.buffers[0]);
            if write {
                now += self.encryption(piece.bytes);
            }
            let begun = self.woken(self.threads.drive, now);
            let read = self.threads.ahead == Some((piece.offset, piece.bytes));
            let moved = match read && !write {
                true => begun,
                false => self.ask(begun, piece),
            };
            self.threads.drive = moved;
            self.threads.buffers = [self.threads.buffers[1], moved];
            last = moved;
            if !write {
                let decrypting = self.woken(self.threads.decryption, moved);
                last = decrypting + self.encryption(piece.bytes);
                self.threads.decryption = last;
            }
            self.threads.ahead = None;
            piece.offset += piece.bytes;
        }
        self.threads.requests = now;
        if !write {
            self.read_ahead(piece);
        }
        last
    }

    /// `piece` is the last one that was read, but begins where that ended.
    fn read_ahead(&mut self, piece: Demand) {
        let now = self.threads.drive;
        let next = self.waiting.peek();
        let pending = next.is_some_and(|Reverse(demand)| demand.arrival < now);
        if !pending && piece.offset + piece.bytes <= self.capacity() {
            self.ask(now, piece);
            self.threads.ahead = Some((piece.offset, piece.bytes));
        }
    }
}

impl Drive for Filtered {
    fn duplicate(&self) -> Box<dyn Drive> {
        Box::new(Self {
            filter: self.filter,
            below: self.below.duplicate(),
            waiting: self.waiting.clone(),
            threads: self.threads,
            held: self.held,
        })
    }

    fn capacity(&self) -> u64 {
        self.below.capacity()
    }

    fn discard_granularity(&self) -> Option<u32> {
        self.below.discard_granularity()
    }

    fn submit(&mut self, demand: Demand) {
        match self.filter.manner {
            Manner::InTurn => self.below.submit(demand),
            Manner::TrueCrypt => self.waiting.push(Reverse(demand)),
        }
    }

    fn hold(&mut self, until: u64) {
        self.held = self.held.max(until);
        self.below.hold(until);
    }

    fn next_start(&self) -> Option<u64> {
        match self.filter.manner {
            Manner::InTurn => self.below.next_start(),
            Manner::TrueCrypt => {
                let first = self.waiting.peek();
                first.map(|Reverse(demand)| demand.arrival.max(self.held))
            }
        }
    }

    fn serve(&mut self) -> Option<(Demand, u64)> {
        match self.filter.manner {
            // Encrypting before or behind a request takes the same from the drive.
            Manner::InTurn => {
                let (demand, done) = self.below.serve()?;
                let done = done + self.encryption(demand.bytes);
                self.below.hold(done);
                Some((demand, done))
            }
            Manner::TrueCrypt => {
                let Reverse(demand) = self.waiting.pop()?;
                let done = self.through_threads(demand);
                Some((demand, done))
            }
        }
    }

    fn utilisation(&self, end: u64) -> f64 {
        self.below.utilisation(end)
    }
}
