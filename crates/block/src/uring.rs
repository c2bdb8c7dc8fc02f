//! The io_uring engine: a safe [`Queue`] over the ring in `sys`.
//!
//! One system call a submission; one for all completions that are there.
//! `timeline.device` ends when a completion is taken from the ring; all that
//! are taken together get the same stamp.

use crate::file::Shared;
use crate::sys::ring::{Answer, Ring};
use crate::{BlockError, Completion, Operation, Part, Queue, QueueOptions, Request, Wait};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

pub(crate) struct UringQueue {
    ring: Ring,
    shared: Arc<Shared>,
    options: QueueOptions,
    finished: VecDeque<Completion>,
    /// The ring failed for good; nothing more is submitted.
    broken: bool,
}

impl UringQueue {
    pub(crate) fn open(shared: Arc<Shared>, options: QueueOptions) -> Result<Self, BlockError> {
        let depth = options.checked_depth()?;
        let ring =
            Ring::new(Arc::clone(&shared.file), depth).map_err(|source| BlockError::Engine {
                engine: "io_uring",
                source,
            })?;
        Ok(Self {
            ring,
            shared,
            finished: VecDeque::with_capacity(depth as usize),
            options,
            broken: false,
        })
    }

    fn refuse(&mut self, request: Request, error: BlockError) {
        self.finished.push_back(Completion {
            request,
            result: Err(error),
        });
    }

    /// Moves what the kernel has finished to `finished`; `now` is the time if
    /// someone just read it.
    fn drain(&mut self, mut now: Option<u64>) {
        while let Some(answer) = self.ring.pop() {
            let Answer {
                mut request,
                started,
                result,
            } = answer;
            let now = *now.get_or_insert_with(|| self.options.meter.now());
            request.timeline.device += now.saturating_sub(started);
            let result = result.map_err(|source| {
                self.shared.heed(&source);
                BlockError::Io {
                    operation: request.operation.kind(),
                    offset: request.offset,
                    length: request.length(),
                    source,
                }
            });
            let result = match request.operation {
                Operation::Flush => result.and_then(|()| self.shared.check_kept()),
                _ => result,
            };
            self.finished.push_back(Completion { request, result });
        }
    }

    /// Fails everything in flight because the ring refuses to work.
    fn give_up(&mut self, error: &io::Error) {
        self.broken = true;
        for (request, _) in self.ring.abandon() {
            let error = BlockError::Io {
                operation: request.operation.kind(),
                offset: request.offset,
                length: request.length(),
                source: error
                    .raw_os_error()
                    .map_or_else(|| error.kind().into(), io::Error::from_raw_os_error),
            };
            self.refuse(request, error);
        }
    }
}

impl Queue for UringQueue {
    fn submit(&mut self, mut request: Request) {
        if self.in_flight() >= self.options.depth {
            let depth = self.options.depth;
            return self.refuse(request, BlockError::QueueFull { depth });
        }
        if let Err(error) = self.shared.admit(&request) {
            return self.refuse(request, error);
        }
        let started = self.options.meter.now();
        let in_kernel = match request.operation {
            Operation::Read | Operation::Write => !request.buffer.is_empty(),
            Operation::Flush => true,
            // The ring has no call for discarding on a block device.
            Operation::Discard { length } => length > 0 && !self.shared.is_block_device(),
        };
        if !in_kernel || self.broken {
            let result = self.shared.carry_out(&mut request);
            let now = self.options.meter.charge(Part::Submit, started);
            request.timeline.device += now.saturating_sub(started);
            return self.finished.push_back(Completion { request, result });
        }
        if let Err(request) = self.ring.push(request, started) {
            let depth = self.options.depth;
            return self.refuse(request, BlockError::QueueFull { depth });
        }
        let entered = self.ring.enter(0);
        self.options.meter.charge(Part::Submit, started);
        if let Err(error) = entered {
            self.give_up(&error);
        }
    }

    fn reap(&mut self, wait: Wait) -> Option<Completion> {
        if self.finished.is_empty() {
            self.drain(None);
        }
        // Completions appear when the kernel is entered; so does the room for
        // what it did not take before.
        let look = wait == Wait::No && self.ring.lent() > 0;
        if self.finished.is_empty() && (look || self.ring.has_backlog()) {
            if let Err(error) = self.ring.enter(0) {
                self.give_up(&error);
            }
            self.drain(None);
        }
        while self.finished.is_empty() && wait == Wait::Yes && self.ring.lent() > 0 {
            let since = self.options.meter.now();
            let entered = self.ring.enter(1);
            let now = self.options.meter.charge(Part::Wait, since);
            match entered {
                Ok(()) => self.drain(Some(now)),
                Err(error) => self.give_up(&error),
            }
        }
        self.finished.pop_front()
    }

    fn in_flight(&self) -> u32 {
        (self.ring.lent() + self.finished.len()) as u32
    }
}
