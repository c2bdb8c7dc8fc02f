//! [`Line`]: a connection that queues share.
//!
//! A thread that waits for a reply, and finds no other thread receiving, receives the next reply
//! without the lock, for whichever request it is. The other threads sleep until their reply is
//! there. So all can send meanwhile.

use super::road::{Pending, Road, Traffic};
use super::socket::Socket;
use block::{BlockError, Completion, Request};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A connection, or the place of one.
#[derive(Default)]
pub struct Line {
    state: Mutex<State>,
    changed: Condvar,
    /// The socket of the connection, for callers that cannot wait for the lock.
    socket: Mutex<Option<Arc<Socket>>>,
}

/// The state of a line.
#[derive(Default)]
pub struct State {
    /// Nothing while it is broken.
    pub road: Option<Road>,
    pub traffic: Traffic,
    /// Finished requests, by their owners.
    done: HashMap<u64, VecDeque<Completion>>,
    /// A thread waits for the next reply.
    pub receiving: bool,
}

impl Line {
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes `road` the connection of the line.
    pub fn connect(&self, state: &mut State, road: Road) {
        let mut socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        *socket = Some(Arc::clone(road.socket()));
        state.road = Some(road);
    }

    /// Lets the server end the connection. Needs no lock of the line's state.
    pub fn leave(&self) {
        let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(socket) = &*socket {
            socket.leave();
        }
    }

    /// Sleeps until something has changed, or for a while.
    pub fn sleep<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let slept = self.changed.wait_timeout(state, Duration::from_secs(1));
        slept.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Something has changed for others.
    pub fn tell(&self) {
        self.changed.notify_all();
    }
}

impl State {
    /// A finished request of `owner`.
    pub fn take(&mut self, owner: u64) -> Option<Completion> {
        self.done.get_mut(&owner)?.pop_front()
    }

    /// `owner` wants nothing more.
    pub fn leave(&mut self, owner: u64) {
        self.done.remove(&owner);
    }

    /// A request of `owner` is finished.
    pub fn finish(&mut self, owner: u64, request: Request, result: Result<(), BlockError>) {
        let completion = Completion { request, result };
        self.done.entry(owner).or_default().push_back(completion);
    }

    /// Sends a request; where that fails or there is no connection, it is under
    /// way all the same.
    ///
    /// # Errors
    /// Those of the connection, which is none any more.
    pub fn send(&mut self, pending: Pending, silence: Duration) -> io::Result<()> {
        let Some(road) = &mut self.road else {
            self.traffic.wait(pending);
            return Ok(());
        };
        road.socket().wait_until(Instant::now() + silence);
        let sent = road.send(pending, None, &mut self.traffic);
        self.checked(sent)
    }

    /// Receives a reply that has begun.
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    pub fn receive(&mut self, silence: Duration) -> io::Result<()> {
        let Some(road) = &mut self.road else {
            return Ok(());
        };
        road.socket().wait_until(Instant::now() + silence);
        let received = road.receive(&mut self.traffic);
        self.checked(received)
    }

    fn checked(&mut self, outcome: io::Result<()>) -> io::Result<()> {
        if outcome.is_err() {
            self.road = None;
        }
        outcome
    }
}
