//! [`Lane`]: one driving thread, from its first request to its last completion.

use super::full::Full;
use super::source::Source;
use super::{Ledger, Options, Sample, histogram, interrupted};
use crate::clock::Clock;
use crate::error::LabError;
use crate::probe::CpuTimes;
use crate::workload::Workload;
use block::{BlockDevice, BlockError, Meter, Operation, Part, Queue, QueueOptions, Request, Wait};
use hdrhistogram::Histogram;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Barrier;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Most readings of the clock that the layers take for one request.
const READINGS: f64 = 6.0;

/// Share of a request's time that metering may cost before it is done in windows.
const METERING: f64 = 0.01;

/// Length of a window in which the parts are metered, and of the pause after it. A slice may
/// be over after 30 ms, and its first window sees the queue being filled.
const WINDOW: Duration = Duration::from_millis(1);
const PAUSE: Duration = Duration::from_millis(29);
const PAUSE_IN_A_SLICE: Duration = Duration::from_millis(9);

/// When the parts are metered.
struct Windows {
    window: u64,
    pause: u64,
    /// Ticks a request must last to be metered always.
    long: u64,
    metering: bool,
    since: u64,
    until: u64,
    /// Ticks metered in windows that are over.
    metered: u64,
    /// Counts windows, so that a request knows whether it began in this one.
    epoch: u64,
}

impl Windows {
    fn new(clock: &Clock, start: u64, pause: Duration) -> Self {
        let window = clock.ticks(WINDOW);
        let reading = clock.cost_ns / 1e9 * clock.hz;
        Self {
            window,
            pause: clock.ticks(pause),
            long: (reading * READINGS / METERING) as u64,
            metering: true,
            since: start,
            until: start + window,
            metered: 0,
            epoch: 1,
        }
    }

    /// Ends a window or a pause; `mean` is the time of a request so far.
    #[cold]
    fn turn(&mut self, now: u64, mean: u64, meter: &Meter) {
        if !self.metering {
            self.metering = true;
            self.epoch += 1;
            self.since = now;
            self.until = now + self.window;
        } else if mean < self.long {
            self.metering = false;
            self.metered += now - self.since;
            self.until = now + self.pause;
        } else {
            self.until = now + self.window;
        }
        meter.pause(!self.metering);
    }

    /// Ticks metered until `now`, the end of the repetition.
    fn total(&self, now: u64) -> u64 {
        match self.metering {
            // The last request may have opened a window after its own end.
            true => self.metered + now.saturating_sub(self.since),
            false => self.metered,
        }
    }
}

/// The measurements of one driving thread; times are in ticks.
pub(super) struct Lane {
    wall: u64,
    /// Part of the wall time in which the parts were metered.
    metered: u64,
    bytes: u64,
    requests: u64,
    metered_requests: u64,
    latency: Histogram<u64>,
    crypto: u64,
    copy: u64,
    submit: u64,
    wait: u64,
    other: u64,
    latency_sum: u64,
    crypto_sum: u64,
    device_sum: u64,
    full: Full,
}

impl Lane {
    /// Drives the requests of some of the workload's threads.
    pub(super) fn drive(
        device: &dyn BlockDevice,
        workload: &Workload,
        options: Options<'_>,
        threads: Range<u32>,
        start_line: Option<&Barrier>,
    ) -> Result<Self, LabError> {
        let clock = options.clock;
        let meter = Rc::new(if options.metered {
            Meter::new(clock.reader())
        } else {
            Meter::off()
        });
        let in_flight = workload.queue_depth * threads.len() as u32;
        let queue = device.queue(QueueOptions {
            depth: in_flight,
            meter: Rc::clone(&meter),
        });
        let size = device.geometry().size;
        let sources = threads.map(|index| Source::new(size, workload, options, index));
        let sources: Vec<Source> = sources.collect();
        // Every thread must arrive, also one that got no queue.
        if let Some(start_line) = start_line {
            start_line.wait();
        }
        let mut lane = Self {
            wall: 0,
            metered: 0,
            bytes: 0,
            requests: 0,
            metered_requests: 0,
            latency: histogram(),
            crypto: 0,
            copy: 0,
            submit: 0,
            wait: 0,
            other: 0,
            latency_sum: 0,
            crypto_sum: 0,
            device_sum: 0,
            full: Full::new(in_flight as usize, options.slice),
        };
        lane.timed_loop(options, &meter, &mut *queue?, sources)?;
        lane.crypto = meter.spent(Part::Crypto);
        lane.copy = meter.spent(Part::Copy);
        lane.submit = meter.spent(Part::Submit);
        lane.wait = meter.spent(Part::Wait);
        Ok(lane)
    }

    /// The timed loop; returns when nothing is in flight any more.
    fn timed_loop(
        &mut self,
        options: Options<'_>,
        meter: &Meter,
        queue: &mut dyn Queue,
        mut sources: Vec<Source>,
    ) -> Result<(), LabError> {
        let Options { clock, stop, .. } = options;
        let pause = match options.slice {
            true => PAUSE_IN_A_SLICE,
            false => PAUSE,
        };
        let nanoseconds = 1e9 / clock.hz;
        // (time, window) of submission
        let depth = sources[0].depth as usize;
        let mut started = vec![(0_u64, 0_u64); depth * sources.len()];
        let mut buffers: Vec<_> = sources.iter_mut().flat_map(Source::buffers).collect();
        let mut used = Vec::with_capacity(buffers.len());
        let mut outcome = Ok(());

        let start = clock.now();
        let mut leave = start;
        let mut windows = Windows::new(clock, start, pause);
        let mut tag = 0;
        while let Some(buffer) = buffers.pop() {
            let source = &mut sources[tag / depth];
            if let Ok(request) = source.next(buffer, tag as u64, 0, clock) {
                let enter = clock.now();
                self.other += enter - leave;
                started[tag] = (enter, windows.epoch);
                queue.submit(request);
                leave = clock.now();
            }
            tag += 1;
        }
        while let Some(completion) = queue.reap(Wait::Yes) {
            leave = clock.now();
            let mut request = completion.request;
            let writes = request.operation == Operation::Write && completion.result.is_ok();
            if writes && sources[request.tag as usize / depth].fsync {
                // It lasts until it is stored.
                request.operation = Operation::Flush;
                queue.submit(request);
                continue;
            }
            let (submitted, epoch) = started[request.tag as usize];
            let latency = leave - submitted;
            self.latency
                .saturating_record((latency as f64 * nanoseconds) as u64);
            self.requests += 1;
            // Only the layers' stamps of requests that were metered from
            // beginning to end mean anything.
            if windows.metering && epoch == windows.epoch {
                self.metered_requests += 1;
                self.latency_sum += latency;
                self.crypto_sum += request.timeline.crypto;
                self.device_sum += request.timeline.device;
            }
            self.bytes += request.buffer.len() as u64;
            if let Err(error) = completion.result {
                outcome = outcome.and(Err(failed(&request, error)));
            } else if stop.load(Ordering::Relaxed) {
                outcome = outcome.and(Err(interrupted()));
            }
            let source = &mut sources[request.tag as usize / depth];
            let next = match outcome {
                Ok(()) => source.next(request.buffer, request.tag, leave - start, clock),
                Err(_) => Err(request.buffer),
            };
            // Its room was made before.
            let next = next.map_err(|buffer| used.push(buffer)).ok();
            self.full.answer(leave, next.is_some());
            let enter = clock.now();
            if windows.metering {
                self.other += enter - leave;
            }
            if enter >= windows.until {
                windows.turn(enter, (enter - start) / self.requests, meter);
            }
            if let Some(request) = next {
                started[request.tag as usize] = (enter, windows.epoch);
                queue.submit(request);
            }
        }
        self.wall = leave - start;
        self.metered = windows.total(leave);
        sources[0].keep(used);
        outcome
    }

    pub(super) fn sample(self, clock: &Clock, cpu: Option<CpuTimes>) -> Sample {
        let wall = clock.seconds(self.wall);
        let scaled = |ticks: u64, share: f64| match share > 0.0 {
            true => clock.seconds(ticks) / share,
            false => 0.0,
        };
        let time = self.metered as f64 / self.wall as f64;
        let requests = self.metered_requests as f64 / self.requests as f64;
        Sample {
            wall,
            bytes: self.bytes,
            requests: self.requests,
            latency: self.latency,
            ledger: Ledger {
                threads: wall,
                crypto: scaled(self.crypto, time),
                copy: scaled(self.copy, time),
                submit: scaled(self.submit, time),
                wait: scaled(self.wait, time),
                other: scaled(self.other, time),
                latency: scaled(self.latency_sum, requests),
                request_crypto: scaled(self.crypto_sum, requests),
                request_device: scaled(self.device_sum, requests),
            },
            cpu,
            full: self
                .full
                .rates(self.bytes as f64 / self.requests as f64, clock),
            ..Sample::default()
        }
    }
}

/// The error of a request.
fn failed(request: &Request, error: BlockError) -> LabError {
    let operation = match request.operation {
        Operation::Read => "reading",
        Operation::Write => "writing",
        Operation::Flush => "flushing",
        Operation::Discard { .. } => "discarding",
    };
    let (length, offset) = (request.buffer.len(), request.offset);
    let what = format!("{operation} of {length} bytes at byte {offset} failed");
    LabError::failed(what, error.remedy()).because(error)
}
