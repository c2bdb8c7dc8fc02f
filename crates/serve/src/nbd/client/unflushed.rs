//! [`Unflushed`]: what a server has acknowledged, and may still lose.

use block::{AlignedBuffer, ByteRange, Operation, Request};
use std::collections::{HashMap, VecDeque};

/// Bytes of writes that are kept; then the server has to flush.
pub const MOST_BYTES: usize = 64 << 20;

/// Writes and discards that are kept; then the server has to flush.
pub const MOST_ENTRIES: usize = 16 << 10;

/// A small write costs as much as this, because buffers take whole pages.
const LEAST_BYTES: usize = 4096;

/// Writes and discards in the order of their acknowledgement, numbered from 0,
/// without those that a flush has made durable.
#[derive(Default)]
pub struct Unflushed {
    kept: VecDeque<Kept>,
    /// The number of the first that is kept.
    first: u64,
    bytes: usize,
    /// Memory of what was made durable, to be used again, by its size.
    spare: HashMap<usize, Vec<AlignedBuffer>>,
}

/// A write, or a discard.
pub struct Kept {
    pub operation: Operation,
    pub offset: u64,
    /// Empty for a discard.
    pub data: AlignedBuffer,
}

impl Kept {
    /// The range that it has changed.
    pub fn range(&self) -> ByteRange {
        match self.operation {
            Operation::Discard { length } => ByteRange::new(self.offset, length),
            _ => ByteRange::new(self.offset, self.data.len() as u64),
        }
    }

    fn cost(&self) -> usize {
        self.data.len().max(LEAST_BYTES)
    }
}

impl Unflushed {
    /// Whether the server has to flush before more can be kept.
    pub fn is_full(&self) -> bool {
        self.bytes >= MOST_BYTES || self.kept.len() >= MOST_ENTRIES
    }

    /// The number that the next one will have.
    pub fn next(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    /// All of it, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Kept> {
        self.kept.iter()
    }

    /// Keeps a write or discard that was acknowledged. A write's buffer is
    /// exchanged for another where that saves copying it.
    pub fn keep(&mut self, request: &mut Request) {
        let length = request.buffer.len();
        let mut data = AlignedBuffer::empty();
        if request.operation == Operation::Write {
            let spare = self.spare.get_mut(&length).and_then(Vec::pop);
            data = spare.unwrap_or_else(|| AlignedBuffer::new(length));
            match request.buffer.capacity() == length {
                true => std::mem::swap(&mut data, &mut request.buffer),
                false => data.copy_from_slice(&request.buffer),
            }
        }
        let kept = Kept {
            operation: request.operation,
            offset: request.offset,
            data,
        };
        self.bytes += kept.cost();
        self.kept.push_back(kept);
    }

    /// Forgets everything with a number below `number`, because it is durable.
    pub fn forget(&mut self, number: u64) {
        if self.first < number {
            self.spare.clear();
        }
        while self.first < number
            && let Some(kept) = self.kept.pop_front()
        {
            self.first += 1;
            self.bytes -= kept.cost();
            let same = self.spare.entry(kept.data.len()).or_default();
            same.push(kept.data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(offset: u64, data: &[u8]) -> Request {
        Request::new(Operation::Write, offset, AlignedBuffer::from(data), 0)
    }

    #[test]
    fn what_is_durable_is_forgotten_and_its_memory_used_again() {
        let mut unflushed = Unflushed::default();
        let mut first = write(0, &[1; 8192]);
        let memory = first.buffer.as_ptr();
        unflushed.keep(&mut first);
        assert_ne!(first.buffer.as_ptr(), memory, "it was copied");
        assert_eq!(first.buffer.len(), 8192);
        let discard = Operation::Discard { length: 4096 };
        unflushed.keep(&mut Request::new(discard, 512, AlignedBuffer::empty(), 0));
        // A part of a larger buffer stays whose it is.
        let mut part = write(512, &[2; 4096]);
        part.buffer.set_len(512);
        let memory = part.buffer.as_ptr();
        unflushed.keep(&mut part);
        assert_eq!(part.buffer.as_ptr(), memory);
        assert_eq!(unflushed.next(), 3);
        let ranges: Vec<_> = unflushed.iter().map(|kept| kept.range()).collect();
        let range = ByteRange::new;
        assert_eq!(ranges, [range(0, 8192), range(512, 4096), range(512, 512)]);

        unflushed.forget(2);
        unflushed.forget(1);
        assert_eq!((unflushed.next(), unflushed.iter().count()), (3, 1));
        let last = unflushed.iter().next().unwrap();
        assert_eq!(last.data[..], [2; 512]);
        let mut again = write(0, &[3; 8192]);
        unflushed.keep(&mut again);
        assert_eq!(again.buffer[..], [1; 8192], "it is the first one's memory");
        unflushed.forget(99);
        assert_eq!((unflushed.next(), unflushed.bytes), (4, 0));
    }

    #[test]
    fn there_is_a_bound_in_bytes_and_in_number() {
        let mut unflushed = Unflushed::default();
        let mut kept = 0;
        while !unflushed.is_full() {
            unflushed.keep(&mut write(0, &vec![0; 1 << 20]));
            kept += 1;
        }
        assert_eq!(kept, MOST_BYTES >> 20);
        unflushed.forget(unflushed.next());
        assert!(!unflushed.is_full());
        for kept in 0.. {
            if unflushed.is_full() {
                assert_eq!(kept, MOST_ENTRIES);
                break;
            }
            unflushed.keep(&mut write(kept as u64 * 512, &[0; 512]));
        }
    }
}
