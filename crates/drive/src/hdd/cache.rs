//! A disk's memory: [`Ahead`], what the head reads behind a request, and
//! [`Written`], what waits to be written.

use super::mechanics::Job;

/// The data that was read and that is being read ahead, one run of bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Ahead {
    /// Bytes for it.
    room: u64,
    from: u64,
    /// The end of the data that was there at `since`.
    end: u64,
    since: u64,
    /// The rate of reading ahead, bytes per nanosecond, until the disk does something else.
    rate: Option<f64>,
    /// Where reading ahead ends.
    limit: u64,
}

impl Ahead {
    pub fn new(room: u64) -> Self {
        Self {
            room,
            ..Self::default()
        }
    }

    /// The head goes on behind `offset + bytes` from `since` on.
    pub fn begin(&mut self, offset: u64, bytes: u64, since: u64, rate: f64, capacity: u64) {
        let end = offset + bytes;
        *self = Self {
            room: self.room,
            from: offset,
            end,
            since,
            rate: Some(rate),
            limit: (end + self.room).min(capacity),
        };
    }

    /// Something else is done from `now` on; where the head is then, if it was
    /// reading ahead.
    pub fn stop(&mut self, now: u64) -> Option<u64> {
        self.rate?;
        self.end = self.reach(now);
        self.rate = None;
        Some(self.end)
    }

    /// Forgets it where a write changes it.
    pub fn written(&mut self, offset: u64, bytes: u64) {
        if offset < self.limit.max(self.end) && self.from < offset + bytes {
            *self = Self::new(self.room);
        }
    }

    /// Whether a read at `now` is in it, or goes on where the head is reading.
    pub fn has(&self, now: u64, offset: u64, bytes: u64) -> bool {
        let (next, within) = (self.reach(now), offset + bytes <= self.end);
        let goes_on = self.rate.is_some();
        self.room > 0 && (self.from..=next).contains(&offset) && (goes_on || within)
    }

    /// When all of a read that it [`has`](Self::has) is there, and nanoseconds of
    /// the head that were spent for it alone. Reading goes on behind it.
    pub fn take(&mut self, now: u64, offset: u64, bytes: u64, capacity: u64) -> (u64, u64) {
        let end = offset + bytes;
        let Some(rate) = self.rate else {
            return (now, 0);
        };
        // The head may have come to the limit, and waits there.
        let from = now.max(self.since);
        let come = self.reach(from);
        let there = match end.checked_sub(come) {
            Some(missing) => from + (missing as f64 / rate) as u64,
            None => now,
        };
        self.since = there.max(from);
        self.end = come.max(end);
        self.from = self.from.max(end.saturating_sub(self.room));
        self.limit = (end + self.room).min(capacity);
        (there, (bytes as f64 / rate) as u64)
    }

    fn reach(&self, now: u64) -> u64 {
        let come = self.rate.unwrap_or(0.0) * now.saturating_sub(self.since) as f64;
        (self.end + come as u64).min(self.limit)
    }
}

/// A write in the memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    /// When it came there.
    pub since: u64,
    pub job: Job,
}

/// The writes that wait for the medium.
#[derive(Clone, Debug, Default)]
pub(super) struct Written {
    /// Bytes for it.
    room: u64,
    /// The oldest first.
    pub waiting: Vec<Waiting>,
    /// Bytes of those.
    bytes: u64,
    /// The write under way: its bytes, and the time until which they take room.
    leaving: (u64, u64),
}

impl Written {
    pub fn new(room: u64) -> Self {
        Self {
            room,
            ..Self::default()
        }
    }

    /// Whether so large a write can ever be there.
    pub fn takes(&self, bytes: u64) -> bool {
        bytes <= self.room
    }

    /// Whether there is room for a write at `now`.
    pub fn fits(&self, now: u64, job: &Job) -> bool {
        let (leaving, until) = self.leaving;
        let leaving = if until > now { leaving } else { 0 };
        self.same(job).is_some() || self.bytes + leaving + job.bytes <= self.room
    }

    /// A write of what waits already takes its place.
    pub fn push(&mut self, since: u64, job: Job) {
        match self.same(&job) {
            Some(place) => self.waiting[place].since = since,
            None => {
                self.bytes += job.bytes;
                self.waiting.push(Waiting { since, job });
            }
        }
    }

    /// Takes one out, which is on the medium at `until`.
    pub fn leave(&mut self, place: usize, until: impl FnOnce(&Job) -> u64) {
        let Waiting { job, .. } = self.waiting.remove(place);
        self.bytes -= job.bytes;
        self.leaving = (job.bytes, until(&job));
    }

    /// Whether anything waits that was there at `time`.
    pub fn has_before(&self, time: u64) -> bool {
        self.waiting.iter().any(|waiting| waiting.since <= time)
    }

    /// When what has left the memory is on the medium.
    pub fn on_medium(&self) -> u64 {
        self.leaving.1
    }

    /// Whether all of a read is in one write.
    pub fn has(&self, offset: u64, bytes: u64) -> bool {
        let within = |job: &Job| job.offset <= offset && offset + bytes <= job.offset + job.bytes;
        self.waiting.iter().any(|waiting| within(&waiting.job))
    }

    fn same(&self, job: &Job) -> Option<usize> {
        let same = |other: &Job| other.offset == job.offset && other.bytes == job.bytes;
        self.waiting.iter().position(|waiting| same(&waiting.job))
    }
}
