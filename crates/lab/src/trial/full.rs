//! [`Full`]: the time in which a queue was full.
//!
//! A slice is so short that filling and emptying its queue would distort its rate. In addition,
//! devices answer in bursts, often all requests in flight at once. From the end of one burst to the
//! beginning of another there are fewer answers than the time allows. The rate is therefore taken
//! over whole turns. A turn is as many answers as there are requests in flight, and a stretch is a
//! multiple of that. The result is the mean over all stretches of that length.

use super::Rates;
use crate::clock::Clock;

/// When requests were answered while as many others were in flight as may be.
pub(super) struct Full {
    /// Requests in flight.
    depth: usize,
    /// Answers so far; the first `depth` fill the queue.
    answers: usize,
    /// Ticks of the last of those that fill it and of the next answers: `depth` in all.
    first: Vec<u64>,
    /// Ticks of the last two turns, in a ring that begins at the same answer as `first`.
    last: Vec<u64>,
    /// Place of the next answer in the ring.
    next: usize,
    /// Whether further answers are ignored, because a request did not follow an answer or the visit
    /// is not a slice.
    ended: bool,
}

impl Full {
    /// A meter for `depth` requests in flight. It counts nothing unless the visit is a slice.
    pub(super) fn new(depth: usize, slice: bool) -> Self {
        Self {
            depth,
            answers: 0,
            first: Vec::with_capacity(depth),
            last: vec![0; 2 * depth],
            next: 0,
            ended: !slice,
        }
    }

    /// An answer `at` this tick, and whether another request follows.
    pub(super) fn answer(&mut self, at: u64, followed: bool) {
        if self.ended {
            return;
        }
        self.ended = !followed;
        self.answers += 1;
        if self.answers < self.depth {
            return;
        }
        if self.first.len() < self.depth {
            self.first.push(at);
        }
        self.last[self.next] = at;
        // A division would cost more than a request of the null device.
        self.next += 1;
        if self.next == self.last.len() {
            self.next = 0;
        }
    }

    /// The rates, if each request has `bytes`; `None` if there was no whole turn.
    pub(super) fn rates(&self, bytes: f64, clock: &Clock) -> Option<Rates> {
        let (depth, ring) = (self.depth, self.last.len());
        let last = self.answers.checked_sub(depth)?;
        // All stretches of the most turns but one, or what there is of a single turn.
        let (turns, stretches) = match last / depth {
            0 => return None,
            1 => (1, last % depth + 1),
            turns => (turns - 1, depth),
        };
        let ticks: u64 = (0..stretches)
            .map(|place| self.last[(place + turns * depth) % ring] - self.first[place])
            .sum();
        let seconds = clock.seconds(ticks) / stretches as f64;
        let iops = (turns * depth) as f64 / seconds;
        (seconds > 0.0).then(|| Rates {
            mb_s: iops * bytes / 1e6,
            iops,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests per second for answers at these milliseconds, the last of which no request follows.
    fn rate(depth: usize, answers: &[f64]) -> Option<f64> {
        let clock = Clock::get();
        let mut full = Full::new(depth, true);
        for (number, at) in answers.iter().enumerate() {
            let ticks = (at / 1e3 * clock.hz) as u64;
            full.answer(ticks, number + 1 < answers.len());
        }
        // Later answers empty the queue.
        let end = (answers[answers.len() - 1] / 1e3 * clock.hz) as u64;
        (0..depth).for_each(|_| full.answer(end, false));
        full.rates(4096.0, clock).map(|rates| rates.iops)
    }

    /// Eight in flight, of which all are answered every 8 ms, or one every millisecond, or two
    /// every two: a thousand a second, wherever the slice ends.
    #[test]
    fn bursts_are_as_fast_as_what_is_even() {
        for burst in [1, 2, 4, 8] {
            for answers in 16..80 {
                let at = |number: usize| (number / burst * burst + burst) as f64;
                let answers: Vec<f64> = (0..answers).map(at).collect();
                let rate = rate(8, &answers).unwrap();
                let off = (rate / 1000.0 - 1.0).abs();
                assert!(off < 0.001, "{burst} {}: {rate}", answers.len());
            }
        }
    }

    #[test]
    fn a_slow_start_does_not_count_and_less_than_a_turn_is_nothing() {
        let at = |number: usize| 500.0 + number as f64;
        let answers: Vec<f64> = (0..40).map(at).collect();
        assert!((rate(8, &answers).unwrap() / 1000.0 - 1.0).abs() < 0.001);
        assert_eq!(rate(8, &answers[..15]), None);
        assert_eq!(rate(8, &answers[..3]), None);
    }
}
