//! [`NbdDevice`]: an NBD export as a device, for any server.
//!
//! ```text
//! queue ─┐                        ┌─ Road ── server       Unflushed: writes that were
//! queue ─┼─ Line: who waits for ──┤                       acknowledged, for when the
//! read_at┘  which reply           └─ gone → lasting.rs    server loses them
//! ```

mod error;
mod lasting;
mod line;
mod pieces;
mod queue;
mod road;
mod socket;
#[cfg(test)]
mod tests;
mod unflushed;
mod uri;

pub use error::ClientError;
pub use road::{Address, Offer};
pub use uri::Uri;

use super::secure::Security;
use super::server::Place;
use super::wire::transmission;
use block::{
    AlignedBuffer, BlockDevice, BlockError, ByteRange, Completion, Geometry, Operation,
    OperationKind, Queue, QueueOptions, Request, Wait,
};
use lasting::Recovery;
use line::{Line, State};
use pieces::Pieces;
use queue::NbdQueue;
use road::{Pending, Road, Server};
use std::any::Any;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use unflushed::Unflushed;

/// Connections to a server that lets one client have several, as nbdcopy makes
/// them.
const LINES: usize = 4;

/// How long a server may take to greet.
const GREETING: Duration = Duration::from_secs(10);

/// Bytes of one discard.
const MOST_DISCARD: u64 = 1 << 30;

/// Buffers of finished requests that are kept for the next.
const MOST_BUFFERS: usize = 8;

/// An export of an NBD server.
///
/// It has up to four connections if the server lets a client have several
/// (`NBD_FLAG_CAN_MULTI_CONN`), otherwise one. Queues and callers share them.
///
/// A device that was [connected](Self::connect) ends with its connection. One that was
/// [opened](Self::open) lasts. All connections are made anew when one breaks, or when a request is
/// not answered for half of its [patience](Self::with_patience). Pauses between attempts grow from
/// 10 ms to 2 s. Then
///
/// 1. writes and discards that were acknowledged since the last flush are sent again, in their
///    order, because the server may have lost them. Up to 64 MiB are kept for that; then the server
///    has to flush. So a successful flush means what it always means, and no completion is reported
///    twice;
/// 2. requests that were not answered are sent again: each may be carried out twice.
///
/// A request without an answer at the end of its patience fails, and so do all other requests that
/// wait. After that, the device tries the server at most once a second. Kept writes stay kept, and
/// a later flush succeeds only if the server accepts them. If the export has another size or other
/// abilities than before, every request fails until the export is as it was.
///
/// A connection that breaks while the server lives is given a second to end on the server's side. A
/// server that carries out a request of an ended connection later than that may overwrite newer
/// data. The protocol does not forbid that.
pub struct NbdDevice {
    server: Server,
    offer: Offer,
    geometry: Geometry,
    /// How long a request may take.
    patience: Duration,
    lasts: bool,
    /// Says whether to go on waiting for the server.
    waits: Box<dyn Fn() -> bool + Send + Sync>,
    lines: Vec<Line>,
    /// Counts the makings of the connections; changes with all lines locked.
    generation: AtomicU64,
    recovery: Mutex<Recovery>,
    /// Whether a request was answered since the connections were made.
    was_answered: AtomicBool,
    unflushed: Mutex<Unflushed>,
    /// Held by who lets the server flush, because too much is kept.
    settling: Mutex<()>,
    owners: AtomicU64,
    buffers: Mutex<Vec<AlignedBuffer>>,
    /// What keeps other processes from the export. It goes after the connections.
    _keeper: Option<Box<dyn Any + Send + Sync>>,
}

impl NbdDevice {
    /// How long a request may take in all before it fails.
    pub const PATIENCE: Duration = Duration::from_secs(120);

    /// Connects to the export called `name`; the empty name is the default.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn connect(place: &Place, name: &str) -> Result<Self, ClientError> {
        Self::begin(Server {
            address: address(place),
            name: name.to_owned(),
            security: None,
        })
    }

    /// The same by TLS, which the server has to offer.
    ///
    /// # Errors
    /// [`ClientError`].
    #[cfg(feature = "tls")]
    pub fn connect_securely(
        place: &Place,
        name: &str,
        tls: super::ClientTls,
    ) -> Result<Self, ClientError> {
        Self::begin(Server {
            address: address(place),
            name: name.to_owned(),
            security: Some(Box::new(tls)),
        })
    }

    /// Opens the export that `uri` names, for as long as it is there: see above.
    /// The server has to be there now.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn open(uri: &Uri) -> Result<Self, ClientError> {
        let device = Self::begin(Server {
            address: uri.address.clone(),
            name: uri.export.clone(),
            security: security(uri)?,
        })?;
        Ok(Self {
            lasts: true,
            ..device
        })
    }

    /// Requests fail when they have taken as long as that; 120 s unless told
    /// otherwise.
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// While the server does not answer, `waits` is asked before each attempt whether to go on. If
    /// not, all requests fail as after their patience.
    pub fn asking(self, waits: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self {
            waits: Box::new(waits),
            ..self
        }
    }

    /// The same with what lives as long as it, and a little longer.
    pub(crate) fn kept_by(self, keeper: impl Any + Send + Sync) -> Self {
        Self {
            _keeper: Some(Box::new(keeper)),
            ..self
        }
    }

    /// Whether the server refuses writes.
    pub fn is_read_only(&self) -> bool {
        self.offer.has(transmission::READ_ONLY)
    }

    fn begin(server: Server) -> Result<Self, ClientError> {
        let (road, offer) = Road::begin(&server, GREETING)?;
        let count = match offer.has(transmission::CAN_MULTI_CONN) {
            true => LINES,
            false => 1,
        };
        let block = offer.block.max(512);
        let trims = offer.has(transmission::SEND_TRIM);
        let device = Self {
            geometry: Geometry {
                size: offer.size - offer.size % u64::from(block),
                logical_block: block,
                physical_block: block.max(4096),
                discard_granularity: trims.then_some(block),
                discard_zeroes: false,
            },
            server,
            offer,
            patience: Self::PATIENCE,
            lasts: false,
            waits: Box::new(|| true),
            lines: (0..count).map(|_| Line::default()).collect(),
            generation: AtomicU64::new(0),
            recovery: Mutex::default(),
            was_answered: AtomicBool::new(true),
            unflushed: Mutex::default(),
            settling: Mutex::default(),
            owners: AtomicU64::new(0),
            buffers: Mutex::default(),
            _keeper: None,
        };
        let roads = device.all_roads(road, GREETING)?;
        for (line, road) in device.lines.iter().zip(roads) {
            line.connect(&mut line.lock(), road);
        }
        Ok(device)
    }

    /// How long a request may be without an answer before its connection counts as
    /// broken.
    fn silence(&self) -> Duration {
        self.patience / 2
    }

    fn unflushed(&self) -> MutexGuard<'_, Unflushed> {
        self.unflushed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether acknowledged writes may be lost, and are kept.
    fn keeps(&self) -> bool {
        self.lasts && self.offer.has(transmission::SEND_FLUSH)
    }

    /// A number for a new owner of requests.
    fn owner(&self) -> u64 {
        self.owners.fetch_add(1, Ordering::Relaxed)
    }

    fn line(&self, owner: u64) -> &Line {
        &self.lines[(owner % self.lines.len() as u64) as usize]
    }

    fn checked(&self, request: &Request) -> Result<(), BlockError> {
        let kind = request.operation.kind();
        if matches!(kind, OperationKind::Write | OperationKind::Discard) && self.is_read_only() {
            return Err(BlockError::ReadOnly);
        }
        self.geometry.check_request(request)?;
        let most = match request.operation {
            Operation::Discard { .. } => u64::from(u32::MAX),
            _ => u64::from(self.offer.most),
        };
        match request.length() <= most {
            true => Ok(()),
            false => Err(failed(request, io::ErrorKind::InvalidInput.into())),
        }
    }

    /// Hands a request over.
    fn submit(&self, owner: u64, request: Request) {
        let since = Instant::now();
        let line = self.line(owner);
        let changes = matches!(
            request.operation.kind(),
            OperationKind::Write | OperationKind::Discard
        );
        let mut outcome = self.checked(&request);
        if outcome.is_ok() && changes && self.keeps() {
            outcome = self.settle();
        }
        let mut state = line.lock();
        let flush = request.operation == Operation::Flush;
        // A flush that the server does not have, or an empty request, is done.
        let empty = !flush && request.length() == 0;
        let nothing = empty || (flush && !self.offer.has(transmission::SEND_FLUSH));
        if outcome.is_err() || nothing {
            return state.finish(owner, request, outcome);
        }
        if !self.lasts && state.road.is_none() {
            let error = self.gone(io::ErrorKind::NotConnected.into());
            return state.finish(owner, request, Err(error));
        }
        let pending = Pending {
            request,
            owner,
            since,
            sent: since,
            error: None,
            arrived: Pieces::default(),
            covers: self.unflushed().next(),
        };
        let sent = state.send(pending, self.silence());
        self.distribute(line, &mut state, owner);
        if let Err(error) = sent {
            self.broke(line, &mut state, &error);
        }
    }

    /// Has the server flush if too much is kept.
    fn settle(&self) -> Result<(), BlockError> {
        if !self.unflushed().is_full() {
            return Ok(());
        }
        let _settling = self.settling.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have had the server flush meanwhile.
        let full = self.unflushed().is_full();
        match full {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// A finished request of `owner`, who has some under way. Where connections
    /// are to be made anew, that is waited for even with [`Wait::No`].
    fn reap(&self, owner: u64, wait: Wait) -> Option<Completion> {
        let begun = Instant::now();
        let line = self.line(owner);
        let mut state = line.lock();
        loop {
            if let Some(done) = state.take(owner) {
                return Some(done);
            }
            let present = &mut *state;
            let Some(road) = &mut present.road else {
                // Its requests have failed already where the device does not last.
                let seen = self.generation.load(Ordering::Relaxed);
                drop(state);
                self.recover(seen);
                state = line.lock();
                continue;
            };
            if present.receiving {
                if wait == Wait::No {
                    return None;
                }
                state = line.sleep(state);
                continue;
            }
            let deadline = present.traffic.deadline(self.silence());
            // No thread may have looked for a long time, or the server may send many messages that
            // answer nothing.
            let outcome = if begun.elapsed() < self.silence() && road.has_news() {
                let received = state.receive(self.silence());
                self.distribute(line, &mut state, owner);
                received
            } else if Instant::now() >= deadline {
                Err(io::ErrorKind::TimedOut.into())
            } else if wait == Wait::No {
                return None;
            } else {
                let socket = std::sync::Arc::clone(road.socket());
                state.receiving = true;
                drop(state);
                let news = socket.await_news(deadline);
                state = line.lock();
                state.receiving = false;
                // A sleeping thread receives the next reply if this one does not.
                line.tell();
                // Others may have broken it, or made it anew.
                match (&state.road, news) {
                    (Some(road), Err(error)) if std::sync::Arc::ptr_eq(road.socket(), &socket) => {
                        Err(error)
                    }
                    _ => Ok(()),
                }
            };
            if let Err(error) = outcome {
                self.broke(line, &mut state, &error);
            }
        }
    }

    /// Gives their owners what was answered; tells them, unless it is all of
    /// `present`, who looks anyway.
    fn distribute(&self, line: &Line, state: &mut State, present: u64) {
        let mut others = false;
        while let Some(Pending {
            mut request,
            owner,
            error,
            covers,
            ..
        }) = state.traffic.answered.pop_front()
        {
            others |= owner != present;
            self.was_answered.store(true, Ordering::Relaxed);
            let result = match error {
                None => Ok(()),
                Some(number) => Err(failed(&request, as_system(number))),
            };
            match (request.operation, &result) {
                (Operation::Write | Operation::Discard { .. }, Ok(())) if self.keeps() => {
                    self.unflushed().keep(&mut request);
                }
                (Operation::Flush, Ok(())) if self.keeps() => self.unflushed().forget(covers),
                // It is unknown which writes are durable, so all are sent again before the next
                // flush.
                (Operation::Flush, Err(_)) if self.keeps() => state.road = None,
                _ => {}
            }
            state.finish(owner, request, result);
        }
        if others {
            line.tell();
        }
    }

    /// Has a broken line's requests fail, if nothing is made anew.
    fn broke(&self, line: &Line, state: &mut State, error: &io::Error) {
        state.road = None;
        if !self.lasts {
            for (_, pending) in std::mem::take(&mut state.traffic.under_way) {
                let source = error
                    .raw_os_error()
                    .map_or_else(|| error.kind().into(), io::Error::from_raw_os_error);
                let Pending { request, owner, .. } = pending;
                let result = Err(match error.kind() {
                    // It is there, and what it says makes no sense.
                    io::ErrorKind::InvalidData => failed(&request, source),
                    _ => self.gone(source),
                });
                state.finish(owner, request, result);
            }
        }
        line.tell();
    }

    /// The error for a server that no longer serves.
    fn gone(&self, source: io::Error) -> BlockError {
        BlockError::ServerGone {
            address: self.server.address.to_string(),
            source,
        }
    }

    /// Carries one request out.
    fn once(&self, request: Request) -> Completion {
        let owner = self.owner();
        self.submit(owner, request);
        let done = self.reap(owner, Wait::Yes);
        self.line(owner).lock().leave(owner);
        done.expect("a request is under way until it is reaped")
    }

    /// A buffer, of which `length` bytes show.
    fn buffer(&self, length: usize) -> AlignedBuffer {
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = buffers
            .iter()
            .position(|buffer| buffer.capacity() == length);
        match fits {
            Some(index) => buffers.swap_remove(index),
            None => AlignedBuffer::new(length),
        }
    }

    fn put_back(&self, buffer: AlignedBuffer) {
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        if buffers.len() == MOST_BUFFERS {
            buffers.remove(0);
        }
        buffers.push(buffer);
    }

    /// Bytes of a request that the server takes.
    fn most(&self) -> usize {
        let block = self.geometry.logical_block;
        (self.offer.most - self.offer.most % block).max(block) as usize
    }
}

impl BlockDevice for NbdDevice {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        let mut done = 0;
        self.geometry.check(offset, into.len() as u64)?;
        for part in into.chunks_mut(self.most()) {
            let buffer = self.buffer(part.len());
            let answer = self.once(Request::new(Operation::Read, offset + done, buffer, 0));
            answer.result?;
            part.copy_from_slice(&answer.request.buffer);
            self.put_back(answer.request.buffer);
            done += part.len() as u64;
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        let mut done = 0;
        self.geometry.check(offset, data.len() as u64)?;
        for part in data.chunks(self.most()) {
            let mut buffer = self.buffer(part.len());
            buffer.copy_from_slice(part);
            let answer = self.once(Request::new(Operation::Write, offset + done, buffer, 0));
            answer.result?;
            self.put_back(answer.request.buffer);
            done += part.len() as u64;
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), BlockError> {
        let request = Request::new(Operation::Flush, 0, AlignedBuffer::empty(), 0);
        self.once(request).result
    }

    fn discard(&self, range: ByteRange) -> Result<(), BlockError> {
        self.geometry.check(range.offset, range.length)?;
        if self.geometry.discard_granularity.is_none() {
            return Err(BlockError::Unsupported {
                operation: OperationKind::Discard,
            });
        }
        let mut done = 0;
        while done < range.length {
            let length = (range.length - done).min(MOST_DISCARD);
            let discard = Operation::Discard { length };
            let buffer = AlignedBuffer::empty();
            self.once(Request::new(discard, range.offset + done, buffer, 0))
                .result?;
            done += length;
        }
        Ok(())
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        Ok(Box::new(NbdQueue::open(self, options)?))
    }
}

fn address(place: &Place) -> Address {
    match place {
        Place::Unix(path) => Address::Unix(path.clone()),
        Place::Tcp(address) => Address::Tcp {
            host: address.ip().to_string(),
            port: address.port(),
        },
    }
}

#[cfg(feature = "tls")]
fn security(uri: &Uri) -> Result<Option<Box<dyn Security>>, ClientError> {
    let Some(tls) = &uri.tls else {
        return Ok(None);
    };
    let opened = super::ClientTls::open(&tls.certificates, &tls.hostname)?;
    Ok(Some(Box::new(opened)))
}

#[cfg(not(feature = "tls"))]
fn security(uri: &Uri) -> Result<Option<Box<dyn Security>>, ClientError> {
    match &uri.tls {
        None => Ok(None),
        Some(_) => Err(ClientError::WithoutTls),
    }
}

/// The system error for a server's error number, which may be any number: EIO if it is 4096 or
/// more.
fn as_system(number: u32) -> io::Error {
    let known = i32::try_from(number).ok().filter(|known| *known < 4096);
    io::Error::from_raw_os_error(known.unwrap_or(super::wire::errno::EIO as i32))
}

fn failed(request: &Request, source: io::Error) -> BlockError {
    BlockError::Io {
        operation: request.operation.kind(),
        offset: request.offset,
        length: request.length(),
        source,
    }
}
