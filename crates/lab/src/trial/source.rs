//! [`Source`]: what a driving thread asks for next.

use super::Options;
use crate::clock::{self, Clock};
use crate::workload::{Extent, Pattern, Workload};
use block::{AlignedBuffer, Operation, Request};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::cell::Cell;

/// Chooses one thread's requests.
pub(super) struct Source {
    rng: Xoshiro256PlusPlus,
    pattern: Pattern,
    block: u64,
    pub(super) depth: u32,
    /// First block and number of blocks of this thread's share.
    first: u64,
    blocks: u64,
    next_block: u64,
    /// Requests still to be made, if size bounds the repetition.
    left: u64,
    /// Ticks after which no more requests are made, if time bounds the repetition.
    limit: u64,
    read_threshold: u64,
    /// Bytes at the start of every written block that are zero.
    zeros: usize,
    /// Data from which written blocks are refilled, if a part must compress.
    pristine: Option<AlignedBuffer>,
    /// Whether each write is followed by a flush.
    pub(super) fsync: bool,
    /// Whether this is a slice of a longer repetition.
    slice: bool,
}

thread_local! {
    /// Buffers of the last slice.
    static KEPT: Cell<Vec<AlignedBuffer>> = const { Cell::new(Vec::new()) };
}

/// Distance of the marks that make written blocks differ from each other.
const MARK: usize = 512;

impl Source {
    pub(super) fn new(size: u64, workload: &Workload, options: Options<'_>, index: u32) -> Self {
        let block = workload.block_bytes();
        let threads = u64::from(workload.threads);
        let all = size / block;
        let (first, blocks) = match workload.pattern {
            // Each thread streams through its own share.
            Pattern::Sequential if all >= threads => {
                let share = all / threads;
                (share * u64::from(index), share)
            }
            _ => (0, all),
        };
        let (left, limit) = match workload.extent() {
            Extent::Bytes(bytes) => ((bytes / block / threads).max(1), u64::MAX),
            Extent::Time(time) => (u64::MAX, options.clock.ticks(time)),
        };
        let mut source = Self {
            // Threads of one seed must not visit the same blocks in step.
            rng: Xoshiro256PlusPlus::seed_from_u64(
                options
                    .seed
                    .wrapping_add(u64::from(index).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            ),
            pattern: workload.pattern,
            block,
            depth: workload.queue_depth,
            first,
            blocks,
            next_block: 0,
            left,
            limit,
            read_threshold: workload.read_threshold(),
            zeros: (block * u64::from(workload.compressible) / 100) as usize,
            pristine: None,
            fsync: workload.fsync,
            slice: options.slice,
        };
        if options.slice && blocks > 0 {
            source.next_block = source.random_block();
        }
        if source.zeros > 0 && workload.writes() {
            source.pristine = Some(source.incompressible());
        }
        source
    }

    fn random_block(&mut self) -> u64 {
        ((u128::from(self.rng.next_u64()) * u128::from(self.blocks)) >> 64) as u64
    }

    fn incompressible(&mut self) -> AlignedBuffer {
        AlignedBuffer::noise(self.block as usize, &mut self.rng)
    }

    /// As many buffers as there are requests in flight, full of noise. Making them takes as long as
    /// a slice does. The slices of a thread therefore share them, regardless of their current
    /// content.
    pub(super) fn buffers(&mut self) -> Vec<AlignedBuffer> {
        let (count, length) = (self.depth as usize, self.block as usize);
        if self.slice {
            let kept = KEPT.take();
            let fits = |buffer: &AlignedBuffer| buffer.len() == length;
            if kept.len() == count && kept.iter().all(fits) {
                return kept;
            }
        }
        let mut buffers = AlignedBuffer::several(count, length);
        for buffer in &mut buffers {
            buffer.fill_with_noise(&mut self.rng);
        }
        buffers
    }

    /// Takes back what a slice has used.
    pub(super) fn keep(&self, buffers: Vec<AlignedBuffer>) {
        if self.slice {
            KEPT.set(buffers);
        }
    }

    /// The next request, or its buffer when the repetition is over.
    #[inline]
    pub(super) fn next(
        &mut self,
        mut buffer: AlignedBuffer,
        tag: u64,
        elapsed: u64,
        clock: &Clock,
    ) -> Result<Request, AlignedBuffer> {
        if self.left == 0 || elapsed >= self.limit || self.blocks == 0 {
            return Err(buffer);
        }
        self.left -= 1;
        let block = match self.pattern {
            Pattern::Sequential => {
                let block = self.next_block;
                self.next_block = if block + 1 == self.blocks {
                    0
                } else {
                    block + 1
                };
                block
            }
            Pattern::Random => self.random_block(),
        };
        let reads = match self.read_threshold {
            0 => false,
            always if always >= 1 << 32 => true,
            threshold => self.rng.next_u64() >> 32 < threshold,
        };
        let operation = if reads {
            Operation::Read
        } else {
            // Nothing looks at what is written to a simulated drive.
            if clock.source != clock::Source::Virtual {
                self.freshen(&mut buffer, clock.now());
            }
            Operation::Write
        };
        Ok(Request {
            operation,
            offset: (self.first + block) * self.block,
            buffer,
            tag,
            timeline: Default::default(),
        })
    }

    /// Makes a buffer worth writing: no two writes alike, so that nothing
    /// below deduplicates them, and compressible only as asked.
    fn freshen(&self, buffer: &mut AlignedBuffer, mark: u64) {
        if let Some(pristine) = &self.pristine {
            buffer[..self.zeros].fill(0);
            buffer[self.zeros..].copy_from_slice(&pristine[self.zeros..]);
        }
        for chunk in buffer[self.zeros..].chunks_exact_mut(MARK) {
            chunk[..8].copy_from_slice(&mark.to_le_bytes());
        }
    }
}
