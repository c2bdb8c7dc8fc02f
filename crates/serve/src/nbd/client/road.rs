//! [`Road`]: one connection, from the greeting to the replies.
//!
//! Nothing that a server says makes it allocate more than
//! [`LONGEST_OPTION`](wire::LONGEST_OPTION), and nothing that it does not say makes
//! it wait longer than it was told to.

use super::ClientError;
use super::pieces::Pieces;
use super::socket::{Socket, Stream};
use crate::nbd::secure::Security;
use crate::nbd::transport::{Input, Wire};
use crate::nbd::wire::{self, be16, be32, be64, chunk, command, info, option, reply, transmission};
use block::{AlignedBuffer, Operation, Request};
use rustix::event::PollFlags;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io::{self, IoSlice};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Received at a time, but for what reads ask for.
const INPUT_BYTES: usize = 16 << 10;

/// Replies to one option; well-behaved servers send less than ten.
const MOST_REPLIES: usize = 1000;

/// Blocks that a server may ask for, by the protocol.
const LARGEST_BLOCK: u32 = 64 << 10;

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A socket in the file system.
    Unix(PathBuf),
    /// A host's port; the host's name is asked for at every connection.
    Tcp {
        /// Name or address.
        host: String,
        /// Port.
        port: u16,
    },
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "{}", path.display()),
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

/// An export, and how it is reached.
pub struct Server {
    pub address: Address,
    pub name: String,
    pub security: Option<Box<dyn Security>>,
}

/// The properties of an export, as its server states them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Bytes.
    pub size: u64,
    /// Bits of the protocol's transmission flags.
    pub flags: u16,
    /// Offsets and lengths are multiples of this; a power of two.
    pub block: u32,
    /// The most bytes of a read or a write.
    pub most: u32,
}

impl Offer {
    /// Whether all of `flags` are there.
    pub fn has(&self, flags: u16) -> bool {
        self.flags & flags == flags
    }
}

impl fmt::Display for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let access = match self.has(transmission::READ_ONLY) {
            true => "for reading only",
            false => "for reading and writing",
        };
        write!(f, "{} bytes {access}", self.size)?;
        for (flag, without) in [
            (transmission::SEND_FLUSH, "flushes"),
            (transmission::CAN_MULTI_CONN, "several connections"),
        ] {
            if !self.has(flag) {
                write!(f, ", without {without}")?;
            }
        }
        Ok(())
    }
}

/// A request that was sent, or is to be.
pub struct Pending {
    pub request: Request,
    /// The owner, which gets the completion.
    pub owner: u64,
    /// When it was handed over.
    pub since: Instant,
    /// When it was sent last.
    pub sent: Instant,
    /// The first error of its reply's chunks.
    pub error: Option<u32>,
    /// The parts of a read that have arrived.
    pub arrived: Pieces,
    /// Of a flush: writes before this number are durable when it is done.
    pub covers: u64,
}

/// The requests under way on a connection, by their cookies, and the answered ones.
#[derive(Default)]
pub struct Traffic {
    cookie: u64,
    pub under_way: BTreeMap<u64, Pending>,
    pub answered: VecDeque<Pending>,
}

/// A connection in transmission.
pub struct Road {
    stream: Stream,
    input: Input,
    /// Whether both sides know where the next message begins.
    whole: bool,
}

impl Road {
    /// Connects and chooses the export, within `patience`.
    pub fn begin(server: &Server, patience: Duration) -> Result<(Self, Offer), ClientError> {
        let until = Instant::now() + patience;
        let address = || server.address.clone();
        let socket =
            Socket::open(&server.address, until).map_err(|source| ClientError::Connect {
                address: address(),
                source,
            })?;
        let mut road = Self {
            stream: Stream {
                socket: Arc::new(socket),
                session: None,
            },
            input: Input::new(INPUT_BYTES),
            whole: false,
        };
        road.greet()?;
        if let Some(security) = server.security.as_deref() {
            road.option(option::STARTTLS, &[])?;
            match road.option_reply(option::STARTTLS)? {
                (reply::ACK, _) if road.input.there().is_empty() => {}
                (reply::ACK, _) => return Err(ClientError::Protocol("beginning of TLS")),
                (reply::ERR_UNSUP | reply::ERR_POLICY, _) => {
                    return Err(ClientError::NoTls { address: address() });
                }
                (code, _) => {
                    let address = address();
                    return Err(ClientError::Refused { address, code });
                }
            }
            road.stream.session = Some(security.begin(&*road.stream.socket)?);
        }
        road.option(option::STRUCTURED_REPLY, &[])?;
        // Without chunks it goes as well.
        let _ = road.option_reply(option::STRUCTURED_REPLY)?;
        let offer = road.go(server)?;
        road.whole = true;
        Ok((road, offer))
    }

    fn greet(&mut self) -> Result<(), ClientError> {
        let greeting: [u8; 18] = self.take()?;
        if be64(&greeting, 0) != wire::SERVER_MAGIC || be64(&greeting, 8) != wire::OPTION_MAGIC {
            return Err(ClientError::Protocol("greeting"));
        }
        let flags = be16(&greeting, 16) & (wire::FIXED_NEWSTYLE | wire::NO_ZEROES);
        if flags & wire::FIXED_NEWSTYLE == 0 {
            return Err(ClientError::Protocol("negotiation"));
        }
        Ok(self.send_parts(&[&u32::from(flags).to_be_bytes()], &mut Traffic::default())?)
    }

    fn go(&mut self, server: &Server) -> Result<Offer, ClientError> {
        let name = server.name.as_bytes();
        let mut wanted = (name.len() as u32).to_be_bytes().to_vec();
        wanted.extend_from_slice(name);
        for number in [1, info::BLOCK_SIZE] {
            wanted.extend_from_slice(&number.to_be_bytes());
        }
        self.option(option::GO, &wanted)?;
        let mut found = None;
        let mut sizes = (1, wire::MOST_PAYLOAD);
        for _ in 0..MOST_REPLIES {
            match self.option_reply(option::GO)? {
                (reply::ACK, _) => {
                    let (size, flags) = found.ok_or(ClientError::Protocol("information"))?;
                    let (block, most) = sizes;
                    return Ok(Offer {
                        size,
                        flags,
                        block,
                        most,
                    });
                }
                (reply::INFO, data) if data.len() == 12 && be16(&data, 0) == info::EXPORT => {
                    found = Some((be64(&data, 2), be16(&data, 10)));
                }
                (reply::INFO, data) if data.len() == 14 && be16(&data, 0) == info::BLOCK_SIZE => {
                    sizes = block_sizes(be32(&data, 2), be32(&data, 6), be32(&data, 10))?;
                }
                (reply::INFO, _) => {}
                (code, _) => {
                    let address = server.address.clone();
                    return Err(match code {
                        reply::ERR_UNKNOWN => ClientError::NoExport {
                            address,
                            name: server.name.clone(),
                        },
                        reply::ERR_TLS_REQD => ClientError::OnlyTls { address },
                        code => ClientError::Refused { address, code },
                    });
                }
            }
        }
        Err(ClientError::Protocol("information"))
    }

    /// The socket that carries the connection.
    pub fn socket(&self) -> &Arc<Socket> {
        &self.stream.socket
    }

    /// Whether a reply, the end or a failure is there.
    pub fn has_news(&self) -> bool {
        !self.input.there().is_empty()
            || self.stream.has_received()
            || self.stream.socket.has_news()
    }

    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let taken = self.input.take(&self.stream)?;
        taken.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn option(&mut self, kind: u32, data: &[u8]) -> io::Result<()> {
        let head = wire::OPTION_MAGIC.to_be_bytes();
        let length = (data.len() as u32).to_be_bytes();
        let parts = [&head[..], &kind.to_be_bytes(), &length, data];
        self.send_parts(&parts, &mut Traffic::default())
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
    fn send_parts(&mut self, parts: &[&[u8]], traffic: &mut Traffic) -> io::Result<()> {
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
                    let ready = self.stream.socket.wait(PollFlags::IN | PollFlags::OUT)?;
                    if ready.contains(PollFlags::IN) && !traffic.under_way.is_empty() {
                        self.receive(traffic)?;
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a request of `operation`; `payload` is what a write carries. It is
    /// under way from then on, whether that succeeded or not.
    pub fn send(
        &mut self,
        mut pending: Pending,
        payload: Option<&[u8]>,
        traffic: &mut Traffic,
    ) -> io::Result<()> {
        pending.arrived = Pieces::default();
        let request = &mut pending.request;
        let (command, offset) = match request.operation {
            Operation::Read => (command::READ, request.offset),
            Operation::Write => (command::WRITE, request.offset),
            Operation::Flush => (command::FLUSH, 0),
            Operation::Discard { .. } => (command::TRIM, request.offset),
        };
        traffic.cookie += 1;
        let cookie = traffic.cookie;
        let length = payload.map_or(request.length(), |payload| payload.len() as u64);
        let head = wire::Request {
            flags: 0,
            command,
            cookie,
            offset,
            length: length as u32,
        };
        // It is not under way before all was sent, so that no reply to it is due.
        let sent = match (command, payload) {
            (command::WRITE, Some(payload)) => self.send_parts(&[&head.bytes(), payload], traffic),
            (command::WRITE, None) => {
                let own = std::mem::take(&mut request.buffer);
                let sent = self.send_parts(&[&head.bytes(), &own], traffic);
                request.buffer = own;
                sent
            }
            _ => self.send_parts(&[&head.bytes()], traffic),
        };
        self.whole &= sent.is_ok();
        pending.sent = Instant::now();
        traffic.under_way.insert(cookie, pending);
        sent
    }

    /// Receives a reply, or a chunk of one.
    pub fn receive(&mut self, traffic: &mut Traffic) -> io::Result<()> {
        let whole = std::mem::replace(&mut self.whole, false);
        self.receive_reply(traffic)?;
        self.whole = whole;
        Ok(())
    }

    fn receive_reply(&mut self, traffic: &mut Traffic) -> io::Result<()> {
        let wrong = || io::Error::from(io::ErrorKind::InvalidData);
        let head: [u8; wire::SIMPLE_BYTES] = self.take()?;
        let cookie = be64(&head, 8);
        let pending = traffic.under_way.get_mut(&cookie).ok_or_else(wrong)?;
        let reads = pending.request.operation == Operation::Read;
        if be32(&head, 0) == wire::SIMPLE_MAGIC {
            let error = be32(&head, 4);
            if error == 0 && reads {
                self.input.fill(&self.stream, &mut pending.request.buffer)?;
            }
            pending.error = (error != 0).then_some(error);
            traffic.answer(cookie);
            return Ok(());
        }
        if be32(&head, 0) != wire::CHUNK_MAGIC {
            return Err(wrong());
        }
        let (flags, kind) = (be16(&head, 4), be16(&head, 6));
        let length = u32::from_be_bytes(self.take::<4>()?) as usize;
        let start = pending.request.offset;
        // The part of the buffer that a chunk is about.
        let part = |buffer: &mut AlignedBuffer, offset: u64, length: usize| {
            let skip = usize::try_from(offset.checked_sub(start)?).ok()?;
            let end = skip.checked_add(length)?;
            (reads && end <= buffer.len()).then_some(skip..end)
        };
        match kind {
            chunk::NONE if length == 0 => {}
            chunk::OFFSET_DATA if length >= 8 => {
                let offset = u64::from_be_bytes(self.take::<8>()?);
                let buffer = &mut pending.request.buffer;
                let part = part(buffer, offset, length - 8).ok_or_else(wrong)?;
                if !pending.arrived.add(&part) {
                    return Err(wrong());
                }
                self.input.fill(&self.stream, &mut buffer[part])?;
            }
            chunk::OFFSET_HOLE if length == 12 => {
                let hole = self.take::<12>()?;
                let buffer = &mut pending.request.buffer;
                let part = part(buffer, be64(&hole, 0), be32(&hole, 8) as usize);
                let part = part.ok_or_else(wrong)?;
                if !pending.arrived.add(&part) {
                    return Err(wrong());
                }
                buffer[part].fill(0);
            }
            _ if kind & (1 << 15) != 0 && (4..=wire::LONGEST_OPTION as usize).contains(&length) => {
                let mut told = vec![0; length];
                self.input.fill(&self.stream, &mut told)?;
                pending.error.get_or_insert(be32(&told, 0).max(1));
            }
            _ => return Err(wrong()),
        }
        if flags & chunk::DONE != 0 {
            let length = pending.request.buffer.len();
            if reads && pending.error.is_none() && !pending.arrived.are_all_of(length) {
                return Err(wrong());
            }
            traffic.answer(cookie);
        }
        Ok(())
    }

    /// Takes what the server still says until it ends its side, or `until`; so
    /// that what was sent here is not carried out after what is sent elsewhere.
    pub fn leave(mut self, until: Instant) {
        self.whole = false;
        self.stream.socket.leave();
        self.stream.socket.wait_until(until);
        let mut rest = [0; 4096];
        while Instant::now() < until && matches!(self.stream.socket.receive(&mut rest), Ok(1..)) {}
    }
}

impl Traffic {
    /// Has a request wait for a connection.
    pub fn wait(&mut self, pending: Pending) {
        self.cookie += 1;
        self.under_way.insert(self.cookie, pending);
    }

    /// When the oldest request under way counts as lost, after so long a silence.
    pub fn deadline(&self, silence: Duration) -> Instant {
        let oldest = self.under_way.values().next();
        oldest.map_or_else(Instant::now, |pending| pending.sent) + silence
    }

    fn answer(&mut self, cookie: u64) {
        self.answered.extend(self.under_way.remove(&cookie));
    }
}

/// The least and the most bytes of a request, where both and what is best are as
/// the protocol allows them.
fn block_sizes(least: u32, best: u32, most: u32) -> Result<(u32, u32), ClientError> {
    let possible = least.is_power_of_two()
        && least <= LARGEST_BLOCK
        && best.is_power_of_two()
        && best >= least.max(512)
        && most >= least
        && (most == u32::MAX || most.is_multiple_of(least));
    match possible {
        true => Ok((least, most.min(wire::MOST_PAYLOAD))),
        false => Err(ClientError::Protocol("block sizes")),
    }
}

impl Drop for Road {
    fn drop(&mut self) {
        if self.whole {
            let leave = wire::Request {
                flags: 0,
                command: command::DISC,
                cookie: 0,
                offset: 0,
                length: 0,
            };
            // The server may be gone before.
            let _ = self.send_parts(&[&leave.bytes()], &mut Traffic::default());
        }
        // Another thread that waits for the connection need not wait any longer.
        self.stream.cut();
    }
}
