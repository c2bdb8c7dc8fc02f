//! The fixed newstyle negotiation, as the server holds it.

use super::transport::{Input, Wire, send_all};
use super::wire::{self, be16, be32, be64, info, option, reply, transmission};
use crate::{Access, Export};
use std::io;
use std::sync::Arc;

/// An export and its name.
#[derive(Clone)]
pub struct Named {
    /// As clients ask for it; the first export is also called the empty name.
    pub name: String,
    /// For people; nothing is told of an empty one.
    pub description: String,
    /// The export itself.
    pub export: Arc<Export>,
}

/// The result of the negotiation between client and server.
#[derive(Clone)]
pub struct Agreed {
    /// The export that the client chose.
    pub export: Arc<Export>,
    /// Replies come in chunks.
    pub structured: bool,
    /// The client may ask what is stored.
    pub allocation: bool,
    /// The end of the answer, to be sent once the client counts as one that has chosen.
    pub answer: Vec<u8>,
}

/// How a negotiation ended.
pub enum Outcome {
    /// The transmission begins.
    Agreed(Agreed),
    /// TLS begins, and then [`go_on`].
    Secure(Greeted),
    /// The client left, or has to.
    Ended,
}

/// The flags in a client's greeting.
#[derive(Clone, Copy)]
pub struct Greeted {
    no_zeroes: bool,
}

/// The use of TLS in a negotiation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tls {
    /// None.
    Off,
    /// Clients may use it.
    Offered,
    /// Clients must use it.
    Required,
    /// This client uses it.
    On,
}

/// The identifier of the context `base:allocation` here.
pub const ALLOCATION_ID: u32 = 1;

/// Greets a client, and answers its options until it has chosen, or TLS is to
/// begin.
pub fn negotiate(
    wire: &dyn Wire,
    input: &mut Input,
    exports: &[Named],
    tls: Tls,
) -> io::Result<Outcome> {
    match greet(wire, input)? {
        Some(greeted) => talk(wire, input, exports, tls, greeted),
        None => Ok(Outcome::Ended),
    }
}

/// Answers the options of a client that has begun TLS: what it has said before
/// counts no more, but for its greeting.
pub fn go_on(
    wire: &dyn Wire,
    input: &mut Input,
    exports: &[Named],
    greeted: Greeted,
) -> io::Result<Outcome> {
    talk(wire, input, exports, Tls::On, greeted)
}

/// Nothing for a client that speaks something else.
fn greet(wire: &dyn Wire, input: &mut Input) -> io::Result<Option<Greeted>> {
    let flags = wire::FIXED_NEWSTYLE | wire::NO_ZEROES;
    send_all(
        wire,
        &[
            &wire::SERVER_MAGIC.to_be_bytes(),
            &wire::OPTION_MAGIC.to_be_bytes(),
            &flags.to_be_bytes(),
        ],
    )?;
    let Some(answer) = input.take::<4>(wire)? else {
        return Ok(None);
    };
    let answer = u32::from_be_bytes(answer);
    let no_zeroes = answer & u32::from(wire::NO_ZEROES) != 0;
    let known = u32::from(flags);
    let fixed = answer & !known == 0 && answer & u32::from(wire::FIXED_NEWSTYLE) != 0;
    Ok(fixed.then_some(Greeted { no_zeroes }))
}

fn talk(
    wire: &dyn Wire,
    input: &mut Input,
    exports: &[Named],
    tls: Tls,
    greeted: Greeted,
) -> io::Result<Outcome> {
    let mut talk = Talk {
        wire,
        exports,
        tls,
        structured: false,
        allocation: None,
        greeted,
    };
    // Well-behaved clients send less than ten.
    for _ in 0..1000 {
        let Some(head) = input.take::<16>(wire)? else {
            break;
        };
        let (magic, kind, length) = (be64(&head, 0), be32(&head, 8), be32(&head, 12));
        if magic != wire::OPTION_MAGIC || length > wire::LONGEST_OPTION {
            break;
        }
        let mut data = vec![0; length as usize];
        input.fill(wire, &mut data)?;
        if let Some(outcome) = talk.answer(kind, &data)? {
            return Ok(outcome);
        }
    }
    Ok(Outcome::Ended)
}

struct Talk<'a> {
    wire: &'a dyn Wire,
    exports: &'a [Named],
    tls: Tls,
    structured: bool,
    /// The export for which the context was chosen.
    allocation: Option<Arc<Export>>,
    greeted: Greeted,
}

impl Talk<'_> {
    fn answer(&mut self, kind: u32, data: &[u8]) -> io::Result<Option<Outcome>> {
        match kind {
            option::ABORT => {
                // A client may be gone before it hears this.
                let _ = self.reply(kind, reply::ACK, &[]);
                return Ok(Some(Outcome::Ended));
            }
            option::STARTTLS => match self.tls {
                Tls::Off => self.reply(kind, reply::ERR_POLICY, b"this server has no TLS")?,
                Tls::On => {
                    self.reply(kind, reply::ERR_INVALID, b"the connection already uses TLS")?
                }
                _ if !data.is_empty() => {
                    self.reply(kind, reply::ERR_INVALID, b"this option must not carry data")?;
                }
                Tls::Offered | Tls::Required => {
                    self.reply(kind, reply::ACK, &[])?;
                    return Ok(Some(Outcome::Secure(self.greeted)));
                }
            },
            // It has no other way to be refused.
            option::EXPORT_NAME if self.tls == Tls::Required => return Ok(Some(Outcome::Ended)),
            _ if self.tls == Tls::Required => {
                self.reply(kind, reply::ERR_TLS_REQD, b"this server requires TLS")?;
            }
            option::EXPORT_NAME => return self.export_name(data).map(Some),
            option::LIST if data.is_empty() => {
                for named in self.exports {
                    let name = named.name.as_bytes();
                    let mut entry = (name.len() as u32).to_be_bytes().to_vec();
                    entry.extend_from_slice(name);
                    self.reply(kind, reply::SERVER, &entry)?;
                }
                self.reply(kind, reply::ACK, &[])?;
            }
            option::STRUCTURED_REPLY if data.is_empty() => {
                self.structured = true;
                self.reply(kind, reply::ACK, &[])?;
            }
            option::LIST | option::STRUCTURED_REPLY => {
                self.reply(kind, reply::ERR_INVALID, b"this option must not carry data")?;
            }
            option::INFO | option::GO => return self.info(kind, data),
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => self.context(kind, data)?,
            _ => self.reply(kind, reply::ERR_UNSUP, &[])?,
        }
        Ok(None)
    }

    /// The old way to begin, which cannot be refused but by leaving.
    fn export_name(&self, name: &[u8]) -> io::Result<Outcome> {
        let Some(named) = self.find(name) else {
            return Ok(Outcome::Ended);
        };
        let size = named.export.size().to_be_bytes();
        let flags = self.flags(&named.export).to_be_bytes();
        let zeros = [0; 124];
        let padding = if self.greeted.no_zeroes {
            &[][..]
        } else {
            &zeros
        };
        let answer = [&size[..], &flags, padding].concat();
        Ok(Outcome::Agreed(self.agreed(named, answer)))
    }

    fn info(&self, kind: u32, data: &[u8]) -> io::Result<Option<Outcome>> {
        let Some((name, wanted)) = name_and_rest(data).filter(|(_, rest)| {
            rest.len() >= 2 && rest.len() - 2 == usize::from(be16(rest, 0)) * 2
        }) else {
            self.reply(kind, reply::ERR_INVALID, b"the option is malformed")?;
            return Ok(None);
        };
        let Some(named) = self.find(name) else {
            self.reply(
                kind,
                reply::ERR_UNKNOWN,
                b"there is no export with this name",
            )?;
            return Ok(None);
        };
        let mut export = info::EXPORT.to_be_bytes().to_vec();
        export.extend_from_slice(&named.export.size().to_be_bytes());
        export.extend_from_slice(&self.flags(&named.export).to_be_bytes());
        self.reply(kind, reply::INFO, &export)?;

        let wants = |kind: u16| {
            wanted[2..]
                .chunks_exact(2)
                .any(|pair| be16(pair, 0) == kind)
        };
        for (about, text) in [
            (info::NAME, &named.name),
            (info::DESCRIPTION, &named.description),
        ] {
            if wants(about) && !text.is_empty() {
                let mut told = about.to_be_bytes().to_vec();
                told.extend_from_slice(text.as_bytes());
                self.reply(kind, reply::INFO, &told)?;
            }
        }
        let geometry = named.export.geometry();
        let mut sizes = info::BLOCK_SIZE.to_be_bytes().to_vec();
        let preferred = geometry.physical_block.max(4096);
        for size in [1, preferred, wire::MOST_PAYLOAD] {
            sizes.extend_from_slice(&size.to_be_bytes());
        }
        self.reply(kind, reply::INFO, &sizes)?;
        if kind == option::GO {
            let answer = reply_head(kind, reply::ACK, 0);
            return Ok(Some(Outcome::Agreed(self.agreed(named, answer))));
        }
        self.reply(kind, reply::ACK, &[])?;
        Ok(None)
    }

    /// The contexts that there are, or those that the client chooses.
    fn context(&mut self, kind: u32, data: &[u8]) -> io::Result<()> {
        if kind == option::SET_META_CONTEXT {
            self.allocation = None;
        }
        if !self.structured {
            let why = b"negotiate structured replies first";
            return self.reply(kind, reply::ERR_INVALID, why);
        }
        let Some((name, queries)) =
            name_and_rest(data).and_then(|(name, rest)| Some((name, queries(rest)?)))
        else {
            return self.reply(kind, reply::ERR_INVALID, b"the option is malformed");
        };
        let Some(named) = self.find(name) else {
            let why = b"there is no export with this name";
            return self.reply(kind, reply::ERR_UNKNOWN, why);
        };
        let listing = kind == option::LIST_META_CONTEXT;
        let ours = wire::BASE_ALLOCATION.as_bytes();
        let asked = queries
            .iter()
            .any(|&query| query == ours || (listing && query == b"base:"));
        if asked || (listing && queries.is_empty()) {
            // The identifier means something only once it is chosen.
            let id = if listing { 0 } else { ALLOCATION_ID };
            let mut told = id.to_be_bytes().to_vec();
            told.extend_from_slice(ours);
            if !listing {
                self.allocation = Some(Arc::clone(&named.export));
            }
            self.reply(kind, reply::META_CONTEXT, &told)?;
        }
        self.reply(kind, reply::ACK, &[])
    }

    fn find(&self, name: &[u8]) -> Option<&Named> {
        match name {
            [] => self.exports.first(),
            name => self
                .exports
                .iter()
                .find(|named| named.name.as_bytes() == name),
        }
    }

    fn agreed(&self, named: &Named, answer: Vec<u8>) -> Agreed {
        Agreed {
            answer,
            export: Arc::clone(&named.export),
            structured: self.structured,
            allocation: self
                .allocation
                .as_ref()
                .is_some_and(|export| Arc::ptr_eq(export, &named.export)),
        }
    }

    fn flags(&self, export: &Export) -> u16 {
        use transmission as t;
        let mut flags = t::HAS_FLAGS | t::SEND_FLUSH | t::SEND_FUA | t::CAN_MULTI_CONN;
        flags |= t::SEND_CACHE;
        if self.structured {
            flags |= t::SEND_DF;
        }
        match export.access() {
            Access::Read => flags |= t::READ_ONLY,
            Access::Write => flags |= t::SEND_WRITE_ZEROES | t::SEND_FAST_ZERO,
        }
        if export.discards() {
            flags |= t::SEND_TRIM;
        }
        flags
    }

    fn reply(&self, option: u32, kind: u32, data: &[u8]) -> io::Result<()> {
        let head = reply_head(option, kind, data.len() as u32);
        send_all(self.wire, &[&head, data])
    }
}

/// The head of a reply to an option: magic, option, kind, bytes that follow.
fn reply_head(option: u32, kind: u32, length: u32) -> Vec<u8> {
    let rest = [option, kind, length].map(u32::to_be_bytes).concat();
    [&wire::OPTION_REPLY_MAGIC.to_be_bytes(), &rest[..]].concat()
}

/// A name behind its length, and what follows.
fn name_and_rest(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = be32(data.get(..4)?, 0) as usize;
    if length > wire::LONGEST_NAME {
        return None;
    }
    data[4..].split_at_checked(length)
}

/// The names behind their number; nothing may follow.
fn queries(data: &[u8]) -> Option<Vec<&[u8]>> {
    let count = be32(data.get(..4)?, 0) as usize;
    let mut rest = &data[4..];
    let mut queries = Vec::new();
    for _ in 0..count {
        let (query, after) = name_and_rest(rest)?;
        queries.push(query);
        rest = after;
    }
    rest.is_empty().then_some(queries)
}
