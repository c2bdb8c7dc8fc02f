//! The bytes of the NBD protocol: numbers, requests, replies.
//!
//! Source: the NBD project's `doc/proto.md` (2023), its fixed newstyle
//! negotiation and structured replies. All numbers are big-endian.

use block::BlockError;

/// The first eight bytes of a server, `NBDMAGIC`.
pub const SERVER_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// Introduces an option, `IHAVEOPT`.
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// Introduces the reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Introduces a request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Introduces a simple reply.
pub const SIMPLE_MAGIC: u32 = 0x6744_6698;
/// Introduces a chunk of a structured reply.
pub const CHUNK_MAGIC: u32 = 0x668e_33ef;

/// Handshake flag: fixed newstyle.
pub const FIXED_NEWSTYLE: u16 = 1;
/// Handshake flag: no 124 zeros after an export name.
pub const NO_ZEROES: u16 = 2;

/// The options that a client may send before the transmission.
pub mod option {
    pub const EXPORT_NAME: u32 = 1;
    pub const ABORT: u32 = 2;
    pub const LIST: u32 = 3;
    pub const STARTTLS: u32 = 5;
    pub const INFO: u32 = 6;
    pub const GO: u32 = 7;
    pub const STRUCTURED_REPLY: u32 = 8;
    pub const LIST_META_CONTEXT: u32 = 9;
    pub const SET_META_CONTEXT: u32 = 10;
}

/// The kinds of reply to an option.
pub mod reply {
    pub const ACK: u32 = 1;
    pub const SERVER: u32 = 2;
    pub const INFO: u32 = 3;
    pub const META_CONTEXT: u32 = 4;
    pub const ERR_UNSUP: u32 = (1 << 31) + 1;
    pub const ERR_POLICY: u32 = (1 << 31) + 2;
    pub const ERR_INVALID: u32 = (1 << 31) + 3;
    pub const ERR_TLS_REQD: u32 = (1 << 31) + 5;
    pub const ERR_UNKNOWN: u32 = (1 << 31) + 6;
}

/// Kinds of information about an export.
pub mod info {
    pub const EXPORT: u16 = 0;
    pub const NAME: u16 = 1;
    pub const DESCRIPTION: u16 = 2;
    pub const BLOCK_SIZE: u16 = 3;
}

/// The flags that state an export's abilities.
pub mod transmission {
    pub const HAS_FLAGS: u16 = 1 << 0;
    pub const READ_ONLY: u16 = 1 << 1;
    pub const SEND_FLUSH: u16 = 1 << 2;
    pub const SEND_FUA: u16 = 1 << 3;
    pub const SEND_TRIM: u16 = 1 << 5;
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    pub const SEND_DF: u16 = 1 << 7;
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    pub const SEND_CACHE: u16 = 1 << 10;
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Commands of the transmission.
pub mod command {
    pub const READ: u16 = 0;
    pub const WRITE: u16 = 1;
    pub const DISC: u16 = 2;
    pub const FLUSH: u16 = 3;
    pub const TRIM: u16 = 4;
    pub const CACHE: u16 = 5;
    pub const WRITE_ZEROES: u16 = 6;
    pub const BLOCK_STATUS: u16 = 7;
}

/// Flags of a command.
pub mod flag {
    pub const FUA: u16 = 1 << 0;
    pub const NO_HOLE: u16 = 1 << 1;
    pub const DF: u16 = 1 << 2;
    pub const REQ_ONE: u16 = 1 << 3;
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Types of the chunks of a structured reply.
pub mod chunk {
    pub const NONE: u16 = 0;
    pub const OFFSET_DATA: u16 = 1;
    pub const OFFSET_HOLE: u16 = 2;
    pub const BLOCK_STATUS: u16 = 5;
    pub const ERROR: u16 = (1 << 15) + 1;
    /// The flag of a reply's last chunk.
    pub const DONE: u16 = 1;
}

/// Error numbers of the protocol.
pub mod errno {
    pub const EPERM: u32 = 1;
    pub const EIO: u32 = 5;
    pub const ENOMEM: u32 = 12;
    pub const EINVAL: u32 = 22;
    pub const ENOSPC: u32 = 28;
    pub const EOVERFLOW: u32 = 75;
    pub const ENOTSUP: u32 = 95;
}

/// State of an extent in the context `base:allocation`: nothing is stored.
pub const STATE_HOLE: u32 = 1;
/// State of an extent in the context `base:allocation`: it reads as zeros.
pub const STATE_ZERO: u32 = 2;
/// The context that tells what is stored.
pub const BASE_ALLOCATION: &str = "base:allocation";

/// The most bytes of a read or a write.
pub const MOST_PAYLOAD: u32 = 32 << 20;
/// The longest name of an export, and of a context.
pub const LONGEST_NAME: usize = 4096;
/// The most bytes of an option that are kept; a client that sends more is sent away.
pub const LONGEST_OPTION: u32 = 64 << 10;

/// Bytes of a request, without what it carries.
pub const REQUEST_BYTES: usize = 28;
/// Bytes of a simple reply, without what it carries.
pub const SIMPLE_BYTES: usize = 16;
/// Bytes of a chunk, without what it carries.
pub const CHUNK_BYTES: usize = 20;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Bits of [`flag`].
    pub flags: u16,
    /// One of [`command`], or not.
    pub command: u16,
    /// The value that the reply must carry.
    pub cookie: u64,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
}

impl Request {
    /// Reads a request; `None` where the magic is another's.
    pub fn parse(bytes: &[u8; REQUEST_BYTES]) -> Option<Self> {
        (be32(bytes, 0) == REQUEST_MAGIC).then(|| Self {
            flags: be16(bytes, 4),
            command: be16(bytes, 6),
            cookie: be64(bytes, 8),
            offset: be64(bytes, 16),
            length: be32(bytes, 24),
        })
    }

    /// Writes a request.
    pub fn bytes(&self) -> [u8; REQUEST_BYTES] {
        let mut bytes = [0; REQUEST_BYTES];
        bytes[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.flags.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.command.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_be_bytes());
        bytes[24..].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }
}

/// A simple reply; `error` is 0 or one of [`errno`].
pub fn simple(error: u32, cookie: u64) -> [u8; SIMPLE_BYTES] {
    let mut bytes = [0; SIMPLE_BYTES];
    bytes[..4].copy_from_slice(&SIMPLE_MAGIC.to_be_bytes());
    bytes[4..8].copy_from_slice(&error.to_be_bytes());
    bytes[8..].copy_from_slice(&cookie.to_be_bytes());
    bytes
}

/// The head of a chunk that carries `length` bytes.
pub fn chunk_head(flags: u16, kind: u16, cookie: u64, length: u32) -> [u8; CHUNK_BYTES] {
    let mut bytes = [0; CHUNK_BYTES];
    bytes[..4].copy_from_slice(&CHUNK_MAGIC.to_be_bytes());
    bytes[4..6].copy_from_slice(&flags.to_be_bytes());
    bytes[6..8].copy_from_slice(&kind.to_be_bytes());
    bytes[8..16].copy_from_slice(&cookie.to_be_bytes());
    bytes[16..].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// The number by which a client is told of a failure of the device.
pub fn error_number(error: &BlockError) -> u32 {
    match error {
        BlockError::OutOfRange { .. } | BlockError::Misaligned { .. } => errno::EINVAL,
        error => match error.errno() {
            // EPERM, EACCES, EROFS
            1 | 13 | 30 => errno::EPERM,
            12 => errno::ENOMEM,
            22 => errno::EINVAL,
            // ENOSPC, EFBIG, EDQUOT
            28 | 27 | 122 => errno::ENOSPC,
            95 => errno::ENOTSUP,
            _ => errno::EIO,
        },
    }
}

/// Two bytes at `at`.
pub fn be16(bytes: &[u8], at: usize) -> u16 {
    let mut own = [0; 2];
    own.copy_from_slice(&bytes[at..at + 2]);
    u16::from_be_bytes(own)
}

/// Four bytes at `at`.
pub fn be32(bytes: &[u8], at: usize) -> u32 {
    let mut own = [0; 4];
    own.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(own)
}

/// Eight bytes at `at`.
pub fn be64(bytes: &[u8], at: usize) -> u64 {
    let mut own = [0; 8];
    own.copy_from_slice(&bytes[at..at + 8]);
    u64::from_be_bytes(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_written() {
        let request = Request {
            flags: flag::FUA,
            command: command::WRITE,
            cookie: 0x0102_0304_0506_0708,
            offset: u64::MAX - 5,
            length: 4096,
        };
        assert_eq!(Request::parse(&request.bytes()), Some(request));
        let mut wrong = request.bytes();
        wrong[3] ^= 1;
        assert_eq!(Request::parse(&wrong), None);
    }

    #[test]
    fn failures_keep_their_number() {
        let of = |errno| error_number(&BlockError::Injected { errno });
        assert_eq!(of(28), errno::ENOSPC);
        assert_eq!(of(5), errno::EIO);
        assert_eq!(of(19), errno::EIO);
        assert_eq!(error_number(&BlockError::ReadOnly), errno::EPERM);
    }
}
