//! [`Drive`]: a drive in virtual time, and the [`Demand`]s that come to it.

use block::OperationKind;

/// A request to a drive; times are nanoseconds of virtual time. Requests are ordered by arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Demand {
    /// The time of its arrival.
    pub arrival: u64,
    /// Returned with the completion. No other request under way has the same tag.
    pub tag: u64,
    /// The operation.
    pub operation: OperationKind,
    /// First byte; a flush has none.
    pub offset: u64,
    /// Length, bytes; a flush has none.
    pub bytes: u64,
}

/// A drive in virtual time.
pub trait Drive: Send {
    /// The same drive in the same state, requests on their way included.
    fn duplicate(&self) -> Box<dyn Drive>;

    /// Bytes.
    fn capacity(&self) -> u64;

    /// Bytes that are discarded at once, at such a multiple; `None` where
    /// discards do nothing.
    fn discard_granularity(&self) -> Option<u32>;

    /// Puts a request into the queue.
    ///
    /// # Panics
    /// Beyond the end of the drive.
    fn submit(&mut self, demand: Demand);

    /// When it would begin with its next request; `None` where it has none.
    fn next_start(&self) -> Option<u64>;

    /// Serves the next request; returns it and the time when it is done. Every request that arrives
    /// before [`next_start`](Self::next_start) must have been submitted. A flush is done when all
    /// earlier writes are on the medium.
    fn serve(&mut self) -> Option<(Demand, u64)>;

    /// Begins nothing before `until`, because no driver serves the drive until then.
    fn hold(&mut self, until: u64);

    /// Share of the time until `end` in which its busiest part was at work.
    fn utilisation(&self, end: u64) -> f64;
}
