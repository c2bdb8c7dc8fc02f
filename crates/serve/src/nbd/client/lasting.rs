//! How a device outlives its connections.
//!
//! The thread that finds a line broken locks all lines and makes all their connections anew. So
//! acknowledged writes are sent again before any other thread reads or writes, and nothing else is
//! under way meanwhile.

use super::line::State;
use super::pieces::Pieces;
use super::road::{Offer, Pending, Road, Traffic};
use super::{ClientError, GREETING, NbdDevice, failed};
use crate::nbd::wire::transmission;
use block::{AlignedBuffer, ByteRange, Operation, Request};
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Pauses between two attempts: the first, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The time without a further attempt after an attempt was given up.
const REST: Duration = Duration::from_secs(1);

/// How long a server may take to end connections that are given up.
const FAREWELL: Duration = Duration::from_secs(1);

/// Writes that are sent again at a time.
const REPLAYED: usize = 32;

/// The flags that must not change: with others, the same name leads to a different export.
const RELIED_ON: u16 = transmission::READ_ONLY
    | transmission::SEND_FLUSH
    | transmission::SEND_TRIM
    | transmission::CAN_MULTI_CONN;

/// The outcome of earlier attempts to reconnect.
#[derive(Default)]
pub struct Recovery {
    /// The pause before the next attempt, where nothing came over the last
    /// connections.
    pause: Duration,
    /// The last error after which the device gave up, and the time.
    given_up: Option<(Instant, Arc<ClientError>)>,
}

impl NbdDevice {
    /// The first connection and the others, all to a server that is still the same when the last is
    /// made. A server that was restarted meanwhile does not know the earlier writes.
    pub(super) fn all_roads(
        &self,
        first: Road,
        patience: Duration,
    ) -> Result<Vec<Road>, ClientError> {
        let mut roads = vec![first];
        while roads.len() < self.lines.len() {
            let (road, offer) = Road::begin(&self.server, patience)?;
            self.check(&offer)?;
            roads.push(road);
        }
        if roads.len() > 1 && self.geometry.size > 0 {
            roads[0].prove(self.geometry.logical_block, patience)?;
        }
        Ok(roads)
    }

    fn check(&self, is: &Offer) -> Result<(), ClientError> {
        let same = |flags: u16| flags & RELIED_ON;
        let was = self.offer;
        match (is.size, is.block, same(is.flags)) == (was.size, was.block, same(was.flags)) {
            true => Ok(()),
            false => Err(ClientError::Changed { was, is: *is }),
        }
    }

    /// Makes all connections anew; if that fails, all requests fail. Does nothing if another thread
    /// has reconnected since the generation `seen`, or if the device does not last.
    pub(super) fn recover(&self, seen: u64) {
        let mut recovery = self.recovery.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.lasts || self.generation.load(Ordering::Relaxed) != seen {
            return;
        }
        for line in &self.lines {
            line.leave();
        }
        let mut states: Vec<MutexGuard<'_, State>> =
            self.lines.iter().map(|line| line.lock()).collect();
        let outcome = self.attempts(&mut recovery, &mut states);
        self.generation.fetch_add(1, Ordering::Relaxed);
        match outcome {
            Ok(()) => {
                recovery.given_up = None;
            }
            Err(error) => {
                for state in &mut states {
                    state.road = None;
                    fail_all(state, &error);
                }
                // An attempt that ended with the old error was not a new try.
                match &recovery.given_up {
                    Some((_, known)) if Arc::ptr_eq(known, &error) => {}
                    _ => recovery.given_up = Some((Instant::now(), error)),
                }
            }
        }
        drop(states);
        for line in &self.lines {
            line.tell();
        }
    }

    /// Tries until the oldest request has no more patience.
    fn attempts(
        &self,
        recovery: &mut Recovery,
        states: &mut [MutexGuard<'_, State>],
    ) -> Result<(), Arc<ClientError>> {
        if let Some((when, error)) = &recovery.given_up
            && when.elapsed() < REST
        {
            return Err(Arc::clone(error));
        }
        let oldest = states
            .iter()
            .flat_map(|state| state.traffic.under_way.values())
            .map(|pending| pending.since)
            .min();
        let until = oldest.unwrap_or_else(Instant::now) + self.patience;
        recovery.pause = match self.was_answered.swap(false, Ordering::Relaxed) {
            true => Duration::ZERO,
            false => longer(recovery.pause),
        };
        loop {
            std::thread::sleep(recovery.pause.min(left(until)));
            match self.attempt(states, left(until).clamp(FIRST_PAUSE, GREETING)) {
                Ok(()) => return Ok(()),
                Err(error) => {
                    recovery.pause = longer(recovery.pause);
                    // Foreign storage does not become ours again by itself, and a device that has
                    // waited once need not wait again.
                    let over = matches!(error, ClientError::Changed { .. })
                        || recovery.given_up.is_some()
                        || left(until) <= recovery.pause
                        || !(self.waits)();
                    if over {
                        return Err(Arc::new(error));
                    }
                }
            }
        }
    }

    fn attempt(
        &self,
        states: &mut [MutexGuard<'_, State>],
        patience: Duration,
    ) -> Result<(), ClientError> {
        let farewell = Instant::now() + FAREWELL;
        for road in states.iter_mut().filter_map(|state| state.road.take()) {
            road.leave(farewell);
        }
        let (first, offer) = Road::begin(&self.server, patience)?;
        self.check(&offer)?;
        let mut roads = self.all_roads(first, patience)?;
        if let Some(road) = roads.first_mut() {
            self.replay(road)?;
        }
        for ((line, state), road) in self.lines.iter().zip(states.iter_mut()).zip(roads) {
            line.connect(state, road);
        }
        for (line, state) in self.lines.iter().zip(states) {
            let sent = self.send_again(state);
            // Everybody looks after this.
            self.distribute(line, state, u64::MAX);
            sent?;
        }
        Ok(())
    }

    /// Sends what was acknowledged and may be lost, in its order as far as that
    /// matters.
    fn replay(&self, road: &mut Road) -> Result<(), ClientError> {
        let unflushed = self.unflushed();
        let mut traffic = Traffic::default();
        for kept in unflushed.iter() {
            let range = kept.range();
            let meets = |pending: &Pending| {
                ByteRange::new(pending.request.offset, pending.covers).overlaps(range)
            };
            while traffic.under_way.len() >= REPLAYED || traffic.under_way.values().any(meets) {
                self.replayed(road, &mut traffic)?;
            }
            road.socket().wait_until(Instant::now() + self.silence());
            let request = Request::new(kept.operation, kept.offset, AlignedBuffer::empty(), 0);
            let now = Instant::now();
            let pending = Pending {
                request,
                owner: 0,
                since: now,
                sent: now,
                error: None,
                arrived: Pieces::default(),
                // The buffer stays where it is, so this says what is written.
                covers: range.length,
            };
            let payload = (kept.operation == Operation::Write).then_some(&kept.data[..]);
            road.send(pending, payload, &mut traffic)?;
        }
        while !traffic.under_way.is_empty() {
            self.replayed(road, &mut traffic)?;
        }
        took(&mut traffic)
    }

    fn replayed(&self, road: &mut Road, traffic: &mut Traffic) -> Result<(), ClientError> {
        road.socket().wait_until(Instant::now() + self.silence());
        road.receive(traffic)?;
        took(traffic)
    }

    /// Sends what has no answer yet; what has no patience left fails.
    fn send_again(&self, state: &mut State) -> io::Result<()> {
        for (_, mut pending) in std::mem::take(&mut state.traffic.under_way) {
            if pending.since.elapsed() >= self.patience {
                let result = Err(failed(&pending.request, io::ErrorKind::TimedOut.into()));
                state.finish(pending.owner, pending.request, result);
                continue;
            }
            pending.error = None;
            pending.covers = self.unflushed().next();
            // A request that cannot be sent is under way all the same.
            let _ = state.send(pending, self.silence());
        }
        match state.road {
            Some(_) => Ok(()),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

impl Road {
    /// Has the server answer.
    fn prove(&mut self, block: u32, patience: Duration) -> io::Result<()> {
        let now = Instant::now();
        self.socket().wait_until(now + patience);
        let buffer = AlignedBuffer::new(block as usize);
        let pending = Pending {
            request: Request::new(Operation::Read, 0, buffer, 0),
            owner: 0,
            since: now,
            sent: now,
            error: None,
            arrived: Pieces::default(),
            covers: 0,
        };
        let mut traffic = Traffic::default();
        self.send(pending, None, &mut traffic)?;
        while traffic.answered.is_empty() {
            self.receive(&mut traffic)?;
        }
        Ok(())
    }
}

/// Fails if the server refused a write that was sent again.
fn took(traffic: &mut Traffic) -> Result<(), ClientError> {
    let refused = traffic.answered.drain(..).find_map(|write| write.error);
    refused.map_or(Ok(()), |number| Err(ClientError::Replay { number }))
}

fn fail_all(state: &mut State, error: &Arc<ClientError>) {
    for (_, pending) in std::mem::take(&mut state.traffic.under_way) {
        let source = io::Error::new(io::ErrorKind::NotConnected, Arc::clone(error));
        let result = Err(failed(&pending.request, source));
        state.finish(pending.owner, pending.request, result);
    }
}

fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}

fn longer(pause: Duration) -> Duration {
    (2 * pause).clamp(FIRST_PAUSE, LONGEST_PAUSE)
}
