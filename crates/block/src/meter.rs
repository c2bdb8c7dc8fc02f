//! [`Meter`]: a thread's stopwatch, handed down a stack of devices.
//!
//! This crate owns no clock that could be trusted for nanoseconds: the lab
//! injects one. Every layer charges what it did to one [`Part`], so that the
//! lab's ledger adds up without anyone knowing who sits below whom.

use std::cell::Cell;

/// The parts of the ledger that layers can charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Encrypting and decrypting.
    Crypto,
    /// Copying between buffers in user space.
    Copy,
    /// System calls that hand requests over.
    Submit,
    /// Nothing to do until the device answers.
    Wait,
}

/// Reads the injected clock, in ticks.
pub type Clock = fn() -> u64;

/// One thread's accumulators, in ticks of the injected clock.
#[derive(Debug, Default)]
pub struct Meter {
    clock: Option<Clock>,
    paused: Cell<bool>,
    spent: [Cell<u64>; 4],
}

impl Meter {
    /// A meter that reads no clock and charges nothing.
    pub fn off() -> Self {
        Self::default()
    }

    /// A meter that reads `clock`.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock: Some(clock),
            ..Self::default()
        }
    }

    /// Switches the meter off for a while, or on again. Call it between calls of a queue, because a
    /// charge reads the clock twice within one call.
    pub fn pause(&self, paused: bool) {
        self.paused.set(paused);
    }

    /// The time now in ticks; 0 when the meter is off or paused.
    #[inline]
    pub fn now(&self) -> u64 {
        match self.clock {
            Some(clock) if !self.paused.get() => clock(),
            _ => 0,
        }
    }

    /// Charges the time since `since` to `part` and returns the time now.
    #[inline]
    pub fn charge(&self, part: Part, since: u64) -> u64 {
        let now = self.now();
        let spent = &self.spent[part as usize];
        spent.set(spent.get() + now.saturating_sub(since));
        now
    }

    /// Ticks charged to `part` so far.
    pub fn spent(&self, part: Part) -> u64 {
        self.spent[part as usize].get()
    }
}
