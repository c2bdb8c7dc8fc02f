//! A client that sends what it is told to, right or wrong.

use crate::nbd::wire::{self, be16, be32, be64, chunk, command, option, reply};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// A connection, after the greeting.
pub struct Raw {
    pub stream: UnixStream,
    pub structured: bool,
    cookie: u64,
}

/// The answer to a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// 0 or the protocol's number.
    pub error: u32,
    /// The data that was read.
    pub data: Vec<u8>,
    /// Extents and their states.
    pub extents: Vec<(u32, u32)>,
}

impl Raw {
    /// Connects, and answers the greeting with `flags`.
    pub fn greet(path: &Path, flags: u32) -> Self {
        let mut stream = UnixStream::connect(path).unwrap();
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting).unwrap();
        assert_eq!(be64(&greeting, 0), wire::SERVER_MAGIC);
        assert_eq!(be64(&greeting, 8), wire::OPTION_MAGIC);
        assert_eq!(be16(&greeting, 16), 3);
        stream.write_all(&flags.to_be_bytes()).unwrap();
        Self {
            stream,
            structured: false,
            cookie: 0,
        }
    }

    /// In transmission with the export called `name`.
    pub fn with(path: &Path, name: &str, structured: bool) -> Self {
        let mut raw = Self::greet(path, 3);
        if structured {
            raw.structured = true;
            assert_eq!(raw.option(option::STRUCTURED_REPLY, &[])[0].0, reply::ACK);
            let mut context = name_of(name);
            context.extend_from_slice(&1_u32.to_be_bytes());
            context.extend_from_slice(&name_of(wire::BASE_ALLOCATION));
            let replies = raw.option(option::SET_META_CONTEXT, &context);
            assert_eq!(replies[0].0, reply::META_CONTEXT);
        }
        let replies = raw.option(option::GO, &go(name));
        assert_eq!(replies.last().unwrap().0, reply::ACK);
        raw
    }

    /// Sends an option; its replies, of which the last is final.
    pub fn option(&mut self, kind: u32, data: &[u8]) -> Vec<(u32, Vec<u8>)> {
        self.stream.write_all(&option_bytes(kind, data)).unwrap();
        let mut replies = Vec::new();
        loop {
            let mut head = [0; 20];
            self.stream.read_exact(&mut head).unwrap();
            assert_eq!(be64(&head, 0), wire::OPTION_REPLY_MAGIC);
            assert_eq!(be32(&head, 8), kind);
            let mut data = vec![0; be32(&head, 16) as usize];
            self.stream.read_exact(&mut data).unwrap();
            let code = be32(&head, 12);
            replies.push((code, data));
            if code == reply::ACK || code >> 31 == 1 {
                return replies;
            }
        }
    }

    /// Sends a request, with what it carries.
    pub fn send(&mut self, command: u16, flags: u16, offset: u64, length: u32, data: &[u8]) -> u64 {
        self.cookie += 1;
        let request = wire::Request {
            flags,
            command,
            cookie: self.cookie,
            offset,
            length,
        };
        self.stream.write_all(&request.bytes()).unwrap();
        self.stream.write_all(data).unwrap();
        self.cookie
    }

    /// Sends a request and takes its answer.
    pub fn ask(&mut self, command: u16, flags: u16, offset: u64, length: u32) -> Answer {
        let cookie = self.send(command, flags, offset, length, &[]);
        let reads = (command == command::READ).then_some((offset, length));
        let (answered, answer) = self.answer(reads);
        assert_eq!(answered, cookie);
        answer
    }

    /// Writes and takes the answer.
    pub fn write(&mut self, flags: u16, offset: u64, data: &[u8]) -> u32 {
        let cookie = self.send(command::WRITE, flags, offset, data.len() as u32, data);
        let (answered, answer) = self.answer(None);
        assert_eq!(answered, cookie);
        answer.error
    }

    /// The next whole answer, to a read of that range or something else.
    pub fn answer(&mut self, reads: Option<(u64, u32)>) -> (u64, Answer) {
        let mut answer = Answer::default();
        let (start, length) = reads.unwrap_or_default();
        if !self.structured {
            let mut head = [0; wire::SIMPLE_BYTES];
            self.stream.read_exact(&mut head).unwrap();
            assert_eq!(be32(&head, 0), wire::SIMPLE_MAGIC);
            answer.error = be32(&head, 4);
            if answer.error == 0 {
                answer.data = vec![0; length as usize];
                self.stream.read_exact(&mut answer.data).unwrap();
            }
            return (be64(&head, 8), answer);
        }
        loop {
            let mut head = [0; wire::CHUNK_BYTES];
            self.stream.read_exact(&mut head).unwrap();
            assert_eq!(be32(&head, 0), wire::CHUNK_MAGIC);
            let mut data = vec![0; be32(&head, 16) as usize];
            self.stream.read_exact(&mut data).unwrap();
            match be16(&head, 6) {
                chunk::NONE => assert!(data.is_empty()),
                chunk::OFFSET_DATA => {
                    assert_eq!(be64(&data, 0), start + answer.data.len() as u64);
                    answer.data.extend_from_slice(&data[8..]);
                }
                chunk::BLOCK_STATUS => {
                    answer.extents = data[4..]
                        .chunks_exact(8)
                        .map(|extent| (be32(extent, 0), be32(extent, 4)))
                        .collect();
                }
                chunk::ERROR => {
                    assert_eq!(data.len(), 6 + usize::from(be16(&data, 4)));
                    answer.error = be32(&data, 0);
                    assert_ne!(answer.error, 0);
                }
                other => panic!("a chunk of type {other}"),
            }
            if be16(&head, 4) & chunk::DONE != 0 {
                if answer.error == 0 {
                    assert_eq!(answer.data.len(), length as usize);
                }
                return (be64(&head, 8), answer);
            }
        }
    }

    /// Whether the server has ended the connection, and sent nothing more.
    pub fn is_over(&mut self) -> bool {
        let mut rest = Vec::new();
        // Data that the server did not read makes the end an error.
        let _ = self.stream.read_to_end(&mut rest);
        rest.is_empty()
    }
}

/// An option as it is sent.
pub fn option_bytes(kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = wire::OPTION_MAGIC.to_be_bytes().to_vec();
    bytes.extend_from_slice(&kind.to_be_bytes());
    bytes.extend_from_slice(&(data.len() as u32).to_be_bytes());
    bytes.extend_from_slice(data);
    bytes
}

/// A name behind its length.
pub fn name_of(name: &str) -> Vec<u8> {
    let mut bytes = (name.len() as u32).to_be_bytes().to_vec();
    bytes.extend_from_slice(name.as_bytes());
    bytes
}

/// The data of the options GO and INFO, asking for all information.
pub fn go(name: &str) -> Vec<u8> {
    let mut bytes = name_of(name);
    bytes.extend_from_slice(&3_u16.to_be_bytes());
    for kind in 1..=3_u16 {
        bytes.extend_from_slice(&kind.to_be_bytes());
    }
    bytes
}
