//! [`NbdDevice`]: an NBD export as a device, whoever serves it.

use super::secure::{Security, Session};
use super::server::Place;
use super::transport::{Input, Wire, send_all};
use super::wire::{self, be16, be32, be64, chunk, command, info, option, reply, transmission};
use block::{
    AlignedBuffer, BlockDevice, BlockError, ByteRange, Completion, Geometry, Operation, Part,
    Queue, QueueOptions, Request, Wait,
};
use rustix::event::{PollFd, PollFlags, poll};
use std::collections::{HashMap, VecDeque};
use std::io::{self, IoSlice};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Received at a time, but for what reads ask for.
const INPUT_BYTES: usize = 16 << 10;

/// Why an export could not be reached.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody answers there.
    #[error("cannot reach an NBD server at {place}")]
    Connect {
        /// Where.
        place: Place,
        /// Why not.
        source: io::Error,
    },
    /// The server said no.
    #[error("the NBD server does not give its export (its reply is {code:#x})")]
    Refused {
        /// What it replied.
        code: u32,
    },
    /// The server does not speak the protocol.
    #[error("the NBD server's {0} is not what the protocol says")]
    Protocol(&'static str),
    /// The connection broke.
    #[error("the connection to the NBD server broke")]
    Io(#[from] io::Error),
}

impl ClientError {
    /// What the user can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Connect { .. } => "Check that the server runs, and its address.",
            Self::Refused { .. } => "Check the export's name; nbdinfo --list tells the names.",
            Self::Protocol(_) | Self::Io(_) => "See what the server says about it.",
        }
    }
}

/// An export of an NBD server.
///
/// Every queue is a connection of its own where the server lets several
/// clients write, which all of today do.
pub struct NbdDevice {
    place: Place,
    name: String,
    security: Option<Box<dyn Security>>,
    geometry: Geometry,
    flags: u16,
    first: Mutex<Road>,
}

impl NbdDevice {
    /// Connects to the export called `name`; the empty name is the default.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn connect(place: &Place, name: &str) -> Result<Self, ClientError> {
        Self::begin(place, name, None)
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
        Self::begin(place, name, Some(Box::new(tls)))
    }

    fn begin(
        place: &Place,
        name: &str,
        security: Option<Box<dyn Security>>,
    ) -> Result<Self, ClientError> {
        let (road, size, flags) = Road::begin(place, name, security.as_deref())?;
        let trims = flags & transmission::SEND_TRIM != 0;
        Ok(Self {
            place: place.clone(),
            name: name.to_owned(),
            security,
            geometry: Geometry {
                size: size & !511,
                logical_block: 512,
                physical_block: 4096,
                discard_granularity: trims.then_some(512),
                discard_zeroes: false,
            },
            flags,
            first: Mutex::new(road),
        })
    }

    fn once(&self, request: Request) -> Completion {
        let mut road = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        road.send(request, self.geometry, self.flags);
        road.finish_one()
    }
}

impl BlockDevice for NbdDevice {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        let mut done = 0;
        self.geometry.check(offset, into.len() as u64)?;
        for part in into.chunks_mut(wire::MOST_PAYLOAD as usize) {
            let buffer = AlignedBuffer::new(part.len());
            let answer = self.once(Request::new(Operation::Read, offset + done, buffer, 0));
            answer.result?;
            part.copy_from_slice(&answer.request.buffer);
            done += part.len() as u64;
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        let mut done = 0;
        self.geometry.check(offset, data.len() as u64)?;
        for part in data.chunks(wire::MOST_PAYLOAD as usize) {
            let buffer = AlignedBuffer::from(part);
            self.once(Request::new(Operation::Write, offset + done, buffer, 0))
                .result?;
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
        let mut done = 0;
        while done < range.length {
            let length = (range.length - done).min(1 << 30);
            let discard = Operation::Discard { length };
            let buffer = AlignedBuffer::empty();
            self.once(Request::new(discard, range.offset + done, buffer, 0))
                .result?;
            done += length;
        }
        match self.geometry.discard_granularity {
            Some(_) => Ok(()),
            None => Err(BlockError::Unsupported {
                operation: block::OperationKind::Discard,
            }),
        }
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue + '_>, BlockError> {
        options.checked_depth()?;
        let (road, ..) =
            Road::begin(&self.place, &self.name, self.security.as_deref()).map_err(|error| {
                let source = match error {
                    ClientError::Connect { source, .. } | ClientError::Io(source) => source,
                    _ => io::ErrorKind::ConnectionRefused.into(),
                };
                gone(&self.place, source)
            })?;
        Ok(Box::new(NbdQueue {
            device: self,
            road,
            options,
        }))
    }
}

struct NbdQueue<'a> {
    device: &'a NbdDevice,
    road: Road,
    options: QueueOptions,
}

impl Queue for NbdQueue<'_> {
    fn submit(&mut self, request: Request) {
        let depth = self.options.depth;
        if self.in_flight() >= depth {
            let result = Err(BlockError::QueueFull { depth });
            return self.road.done.push_back(Completion { request, result });
        }
        let since = self.options.meter.now();
        self.road
            .send(request, self.device.geometry, self.device.flags);
        self.options.meter.charge(Part::Submit, since);
    }

    fn reap(&mut self, wait: Wait) -> Option<Completion> {
        let since = self.options.meter.now();
        while self.road.done.is_empty() && !self.road.pending.is_empty() {
            if wait == Wait::No && !self.road.is_readable() {
                break;
            }
            self.road.receive();
        }
        self.options.meter.charge(Part::Wait, since);
        self.road.done.pop_front()
    }

    fn in_flight(&self) -> u32 {
        (self.road.pending.len() + self.road.done.len()) as u32
    }
}

/// A connection, secure or not.
struct Stream {
    socket: Socket,
    session: Option<Box<dyn Session>>,
}

/// It never blocks by itself: who waits does it in one place.
enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    fn open(place: &Place) -> io::Result<Self> {
        match place {
            Place::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_nonblocking(true)?;
                Ok(Self::Unix(stream))
            }
            Place::Tcp(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                Ok(Self::Tcp(stream))
            }
        }
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }

    fn wire(&self) -> &dyn Wire {
        match self {
            Self::Unix(stream) => stream,
            Self::Tcp(stream) => stream,
        }
    }

    /// Waits until one of `events` is there; `None` for as long as it takes.
    fn wait(&self, events: PollFlags, patience: Option<Duration>) -> io::Result<PollFlags> {
        let descriptor = self.descriptor();
        let mut waiting = [PollFd::from_borrowed_fd(descriptor, events)];
        let patience = patience.map(|_| rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        });
        loop {
            match poll(&mut waiting, patience.as_ref()) {
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(_) => return Ok(waiting[0].revents()),
            }
        }
    }
}

impl Wire for Socket {
    fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.wire().receive(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait(PollFlags::IN, None)?;
                }
                other => return other,
            }
        }
    }

    fn send(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.wire().send(parts)
    }

    fn end(&self) {
        self.wire().end();
    }

    fn cut(&self) {
        self.wire().cut();
    }

    fn set_patience(&self, patience: Option<Duration>) -> io::Result<()> {
        self.wire().set_patience(patience)
    }
}

impl Stream {
    fn has_received(&self) -> bool {
        let session = self.session.as_deref();
        session.is_some_and(|session| session.has_received())
    }
}

impl Wire for Stream {
    fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        match &self.session {
            Some(session) => session.receive(&self.socket, into),
            None => self.socket.receive(into),
        }
    }

    fn send(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match &self.session {
            Some(session) => session.send(&self.socket, parts),
            None => self.socket.send(parts),
        }
    }

    fn flush(&self) -> io::Result<()> {
        match &self.session {
            Some(session) => session.flush(&self.socket),
            None => Ok(()),
        }
    }

    fn end(&self) {
        self.socket.end();
    }

    fn cut(&self) {
        self.socket.cut();
    }

    fn set_patience(&self, patience: Option<Duration>) -> io::Result<()> {
        self.socket.set_patience(patience)
    }
}

/// A connection, and what is under way on it.
struct Road {
    place: Place,
    stream: Stream,
    input: Input,
    pending: HashMap<u64, Pending>,
    done: VecDeque<Completion>,
    cookie: u64,
    /// The connection broke; nothing more is sent.
    broken: bool,
}

struct Pending {
    request: Request,
    /// The first error of its reply's chunks.
    error: Option<u32>,
}

impl Road {
    /// Connects and chooses the export; its size and flags.
    fn begin(
        place: &Place,
        name: &str,
        security: Option<&dyn Security>,
    ) -> Result<(Self, u64, u16), ClientError> {
        let socket = Socket::open(place).map_err(|source| ClientError::Connect {
            place: place.clone(),
            source,
        })?;
        let mut road = Self {
            place: place.clone(),
            stream: Stream {
                socket,
                session: None,
            },
            input: Input::new(INPUT_BYTES),
            pending: HashMap::new(),
            done: VecDeque::new(),
            cookie: 0,
            broken: false,
        };
        let greeting: [u8; 18] = road.take()?;
        if be64(&greeting, 0) != wire::SERVER_MAGIC || be64(&greeting, 8) != wire::OPTION_MAGIC {
            return Err(ClientError::Protocol("greeting"));
        }
        let flags = be16(&greeting, 16) & (wire::FIXED_NEWSTYLE | wire::NO_ZEROES);
        if flags & wire::FIXED_NEWSTYLE == 0 {
            return Err(ClientError::Protocol("negotiation"));
        }
        road.send_parts(&[&u32::from(flags).to_be_bytes()])?;
        if let Some(security) = security {
            road.option(option::STARTTLS, &[])?;
            match road.option_reply(option::STARTTLS)? {
                (reply::ACK, _) if road.input.there().is_empty() => {}
                (reply::ACK, _) => return Err(ClientError::Protocol("beginning of TLS")),
                (code, _) => return Err(ClientError::Refused { code }),
            }
            road.stream.session = Some(security.begin(&road.stream.socket)?);
        }
        road.option(option::STRUCTURED_REPLY, &[])?;
        // Without chunks it goes as well.
        let _ = road.option_reply(option::STRUCTURED_REPLY)?;
        let mut wanted = (name.len() as u32).to_be_bytes().to_vec();
        wanted.extend_from_slice(name.as_bytes());
        wanted.extend_from_slice(&0_u16.to_be_bytes());
        road.option(option::GO, &wanted)?;
        let mut found = None;
        loop {
            match road.option_reply(option::GO)? {
                (reply::ACK, _) => break,
                (reply::INFO, data) if data.len() == 12 && be16(&data, 0) == info::EXPORT => {
                    found = Some((be64(&data, 2), be16(&data, 10)));
                }
                (reply::INFO, _) => {}
                (code, _) => return Err(ClientError::Refused { code }),
            }
        }
        let (size, flags) = found.ok_or(ClientError::Protocol("information"))?;
        Ok((road, size, flags))
    }

    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let taken = self.input.take(&self.stream)?;
        taken.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn option(&mut self, kind: u32, data: &[u8]) -> io::Result<()> {
        self.send_parts(&[
            &wire::OPTION_MAGIC.to_be_bytes(),
            &kind.to_be_bytes(),
            &(data.len() as u32).to_be_bytes(),
            data,
        ])
    }

    fn option_reply(&mut self, kind: u32) -> Result<(u32, Vec<u8>), ClientError> {
        let head: [u8; 20] = self.take()?;
        let length = be32(&head, 16);
        if be64(&head, 0) != wire::OPTION_REPLY_MAGIC
            || be32(&head, 8) != kind
            || length > wire::LONGEST_OPTION
        {
            return Err(ClientError::Protocol("reply to an option"));
        }
        let mut data = vec![0; length as usize];
        self.input.fill(&self.stream, &mut data)?;
        Ok((be32(&head, 12), data))
    }

    /// Sends `parts`; while the server does not take them, takes what it sends.
    fn send_parts(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let mut rest = &mut slices[..];
        IoSlice::advance_slices(&mut rest, 0);
        loop {
            let sent = match rest.is_empty() {
                true => self.stream.flush().map(|()| 0),
                false => self.stream.send(rest),
            };
            match sent {
                Ok(_) if rest.is_empty() => return Ok(()),
                Ok(sent) => IoSlice::advance_slices(&mut rest, sent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let ready = self
                        .stream
                        .socket
                        .wait(PollFlags::IN | PollFlags::OUT, None)?;
                    if ready.contains(PollFlags::IN) && !self.pending.is_empty() {
                        self.receive_reply()?;
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn send(&mut self, mut request: Request, geometry: Geometry, flags: u16) {
        let kind = request.operation.kind();
        let checked = match request.operation {
            Operation::Write | Operation::Discard { .. }
                if flags & transmission::READ_ONLY != 0 =>
            {
                Err(BlockError::ReadOnly)
            }
            _ => geometry.check_request(&request),
        };
        if let Err(error) = checked {
            let result = Err(error);
            return self.done.push_back(Completion { request, result });
        }
        let (command, length) = match request.operation {
            Operation::Read => (command::READ, request.length()),
            Operation::Write => (command::WRITE, request.length()),
            Operation::Flush => (command::FLUSH, 0),
            Operation::Discard { length } => (command::TRIM, length),
        };
        let length = u32::try_from(length)
            .ok()
            .filter(|&length| command == command::TRIM || length <= wire::MOST_PAYLOAD);
        let empty = length == Some(0) && request.operation != Operation::Flush;
        let Some(length) = length.filter(|_| !empty && !self.broken) else {
            let result = match (empty, self.broken) {
                (true, _) => Ok(()),
                (_, true) => Err(gone(&self.place, io::ErrorKind::NotConnected.into())),
                _ => Err(failed(&request, io::ErrorKind::InvalidInput.into())),
            };
            return self.done.push_back(Completion { request, result });
        };
        self.cookie += 1;
        let head = wire::Request {
            flags: 0,
            command,
            cookie: self.cookie,
            offset: if kind == block::OperationKind::Flush {
                0
            } else {
                request.offset
            },
            length,
        };
        // It is not pending before all was sent, so that no reply to it is due.
        let payload = match command {
            command::WRITE => std::mem::take(&mut request.buffer),
            _ => AlignedBuffer::empty(),
        };
        let sent = self.send_parts(&[&head.bytes(), &payload]);
        if command == command::WRITE {
            request.buffer = payload;
        }
        let error = None;
        self.pending.insert(self.cookie, Pending { request, error });
        if let Err(error) = sent {
            self.break_off(&error);
        }
    }

    /// The next answer, of one request that was sent.
    fn finish_one(&mut self) -> Completion {
        loop {
            if let Some(done) = self.done.pop_front() {
                return done;
            }
            self.receive();
        }
    }

    fn is_readable(&self) -> bool {
        !self.input.there().is_empty()
            || self.stream.has_received()
            || self
                .stream
                .socket
                .wait(PollFlags::IN, Some(Duration::ZERO))
                .is_ok_and(|ready| !ready.is_empty())
    }

    /// Receives a reply or a chunk of one.
    fn receive(&mut self) {
        if let Err(error) = self.receive_reply() {
            self.break_off(&error);
        }
    }

    fn receive_reply(&mut self) -> io::Result<()> {
        let wrong = || io::Error::from(io::ErrorKind::InvalidData);
        let head: [u8; wire::SIMPLE_BYTES] = self.take()?;
        let cookie = be64(&head, 8);
        let pending = self.pending.get_mut(&cookie).ok_or_else(wrong)?;
        let reads = pending.request.operation == Operation::Read;
        if be32(&head, 0) == wire::SIMPLE_MAGIC {
            let error = be32(&head, 4);
            if error == 0 && reads {
                self.input.fill(&self.stream, &mut pending.request.buffer)?;
            }
            pending.error = (error != 0).then_some(error);
            self.complete(cookie);
            return Ok(());
        }
        if be32(&head, 0) != wire::CHUNK_MAGIC {
            return Err(wrong());
        }
        let (flags, kind) = (be16(&head, 4), be16(&head, 6));
        let length: [u8; 4] = self
            .input
            .take(&self.stream)?
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        let length = u32::from_be_bytes(length) as usize;
        let start = pending.request.offset;
        let mut place = |input: &mut Input, stream: &Stream, offset: u64, length: usize| {
            let skip = offset
                .checked_sub(start)
                .and_then(|skip| usize::try_from(skip).ok());
            let part = skip
                .filter(|_| reads)
                .and_then(|skip| pending.request.buffer.get_mut(skip..)?.get_mut(..length))
                .ok_or_else(wrong)?;
            match input.there().is_empty() && length == 0 {
                true => Ok(()),
                false => input.fill(stream, part),
            }
        };
        match kind {
            chunk::NONE if length == 0 => {}
            chunk::OFFSET_DATA if length >= 8 => {
                let offset = self
                    .input
                    .take::<8>(&self.stream)?
                    .ok_or(io::ErrorKind::UnexpectedEof)?;
                let offset = u64::from_be_bytes(offset);
                place(&mut self.input, &self.stream, offset, length - 8)?;
            }
            chunk::OFFSET_HOLE if length == 12 => {
                let hole = self
                    .input
                    .take::<12>(&self.stream)?
                    .ok_or(io::ErrorKind::UnexpectedEof)?;
                let skip = be64(&hole, 0).checked_sub(start).ok_or_else(wrong)? as usize;
                pending
                    .request
                    .buffer
                    .get_mut(skip..)
                    .and_then(|rest| rest.get_mut(..be32(&hole, 8) as usize))
                    .ok_or_else(wrong)?
                    .fill(0);
            }
            _ if kind & (1 << 15) != 0 && (4..=wire::LONGEST_OPTION as usize).contains(&length) => {
                let mut told = vec![0; length];
                self.input.fill(&self.stream, &mut told)?;
                pending.error.get_or_insert(be32(&told, 0).max(1));
            }
            _ => return Err(wrong()),
        }
        if flags & chunk::DONE != 0 {
            self.complete(cookie);
        }
        Ok(())
    }

    fn complete(&mut self, cookie: u64) {
        if let Some(Pending { request, error }) = self.pending.remove(&cookie) {
            let result = match error {
                None => Ok(()),
                Some(number) => {
                    let source = io::Error::from_raw_os_error(number as i32);
                    Err(failed(&request, source))
                }
            };
            self.done.push_back(Completion { request, result });
        }
    }

    /// Fails all that is under way.
    fn break_off(&mut self, error: &io::Error) {
        self.broken = true;
        for (_, Pending { request, .. }) in self.pending.drain() {
            let source = error
                .raw_os_error()
                .map_or_else(|| error.kind().into(), io::Error::from_raw_os_error);
            let result = Err(match error.kind() {
                // It is there, and what it says makes no sense.
                io::ErrorKind::InvalidData => failed(&request, source),
                _ => gone(&self.place, source),
            });
            self.done.push_back(Completion { request, result });
        }
    }
}

impl Drop for Road {
    fn drop(&mut self) {
        let leave = wire::Request {
            flags: 0,
            command: command::DISC,
            cookie: 0,
            offset: 0,
            length: 0,
        };
        // The server may be gone before.
        let _ = send_all(&self.stream, &[&leave.bytes()]);
    }
}

/// Whoever served at `place` does no more.
fn gone(place: &Place, source: io::Error) -> BlockError {
    BlockError::ServerGone {
        address: place.to_string(),
        source,
    }
}

fn failed(request: &Request, source: io::Error) -> BlockError {
    BlockError::Io {
        operation: request.operation.kind(),
        offset: request.offset,
        length: request.length(),
        source,
    }
}
