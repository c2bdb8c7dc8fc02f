//! The io_uring ring, owning every buffer that the kernel may touch.
//!
//! States of a slot: *free* (no request) → *lent* (the request sits in the
//! slot, the kernel may use its buffer) → *free* (the request was handed out
//! by [`Ring::pop`]). Invariants:
//!
//! * a buffer is lent by exactly one submission entry at a time;
//! * a slot is freed only when the completion of its entry has been taken;
//! * [`AlignedBuffer`]s do not move their bytes, so moving a request is fine;
//! * the slot's request is private: no reference into its buffer exists while
//!   it is lent.

use crate::{AlignedBuffer, Operation, Request};
use io_uring::{IoUring, opcode, squeue, types};
use rustix::fs::FallocateFlags;
use std::fs::File;
use std::io;
use std::mem;
use std::sync::Arc;

/// The file's index in the ring's table of registered files.
const FILE: types::Fixed = types::Fixed(0);

/// Most bytes in one submission entry; the rest is resubmitted.
const LONGEST: usize = 1 << 30;

/// Attempts to get a reluctant kernel to answer before a dropped ring gives
/// its memory up.
const PATIENCE: u32 = 10_000;

pub(crate) struct Ring {
    ring: IoUring,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// The kernel did not take everything at the last `enter`.
    backlog: bool,
    /// Keeps the description open that the ring has registered.
    _file: Arc<File>,
}

#[derive(Default)]
struct Slot {
    request: Option<Request>,
    /// The caller's own number.
    started: u64,
    /// Bytes transferred so far.
    done: usize,
}

/// A request that the kernel is done with.
pub(crate) struct Answer {
    pub(crate) request: Request,
    pub(crate) started: u64,
    pub(crate) result: io::Result<()>,
}

impl Ring {
    /// A ring for `depth` requests on `file`.
    ///
    pub(crate) fn new(file: Arc<File>, depth: u32) -> io::Result<Self> {
        let ring = Self::set_up(depth)?;
        ring.submitter()
            .register_files(&[std::os::fd::AsRawFd::as_raw_fd(&*file)])?;
        Ok(Self {
            ring,
            slots: (0..depth).map(|_| Slot::default()).collect(),
            free: (0..depth).rev().collect(),
            backlog: false,
            _file: file,
        })
    }

    /// A ring for one thread, whose completions are worked off when it asks
    /// for them; a plain one where the kernel is older than 6.1.
    fn set_up(depth: u32) -> io::Result<IoUring> {
        IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            // Without it a call that submits would not see what there is to work off.
            .setup_taskrun_flag()
            .build(depth)
            .or_else(|_| IoUring::new(depth))
    }

    /// Whether this process may use io_uring at all.
    pub(crate) fn permitted() -> io::Result<()> {
        IoUring::new(1).map(drop)
    }

    /// Requests lent to the kernel.
    pub(crate) fn lent(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Takes a request over; `Err` gives it back when all slots are lent. The
    /// kernel sees it at the next [`enter`](Self::enter).
    pub(crate) fn push(&mut self, request: Request, started: u64) -> Result<(), Request> {
        let Some(index) = self.free.pop() else {
            return Err(request);
        };
        self.slots[index as usize] = Slot {
            request: Some(request),
            started,
            done: 0,
        };
        self.queue(index);
        Ok(())
    }

    /// Writes the submission entry for what is left of a slot's request.
    fn queue(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        let Some(request) = &mut slot.request else {
            return;
        };
        let at = request.offset + slot.done as u64;
        let entry: squeue::Entry = match request.operation {
            Operation::Read => {
                let rest = &mut request.buffer[slot.done..];
                let length = rest.len().min(LONGEST) as u32;
                opcode::Read::new(FILE, rest.as_mut_ptr(), length)
                    .offset(at)
                    .build()
            }
            Operation::Write => {
                let rest = &request.buffer[slot.done..];
                let length = rest.len().min(LONGEST) as u32;
                opcode::Write::new(FILE, rest.as_ptr(), length)
                    .offset(at)
                    .build()
            }
            Operation::Flush => opcode::Fsync::new(FILE)
                .flags(types::FsyncFlags::DATASYNC)
                .build(),
            Operation::Discard { length } => opcode::Fallocate::new(FILE, length)
                .offset(at)
                .mode((FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE).bits() as i32)
                .build(),
        };
        let entry = entry.user_data(u64::from(index));
        // SAFETY: the entry's pointer and length lie inside the buffer of the
        // slot's request, which stays in the slot until the completion with
        // this index was taken; `Drop` waits for that or leaks the buffer. The
        // file is registered and kept open by `_file`.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("the submission ring has an entry for every slot");
    }

    /// Hands over what was pushed and waits for `want` completions to be in
    /// the ring. A kernel that is short of memory keeps the entries for the
    /// next call, and nothing is waited for.
    pub(crate) fn enter(&mut self, want: usize) -> io::Result<()> {
        loop {
            match self.ring.submit_and_wait(want) {
                Ok(_) => {
                    self.backlog = false;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::ResourceBusy
                    ) =>
                {
                    self.backlog = true;
                    std::thread::yield_now();
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the kernel has yet to take something that was pushed.
    pub(crate) fn has_backlog(&self) -> bool {
        self.backlog
    }

    /// Takes one finished request from the ring without a system call, unless
    /// the kernel did only a part of one and the rest has to be handed over.
    pub(crate) fn pop(&mut self) -> Option<Answer> {
        loop {
            let entry = self.ring.completion().next()?;
            let index = entry.user_data() as u32;
            // Empty only in a ring that was abandoned.
            let Some(slot) = self.slots.get_mut(index as usize) else {
                continue;
            };
            let Some(request) = slot.request.take() else {
                continue;
            };
            let Some(result) = judge(&request, &mut slot.done, entry.result()) else {
                slot.request = Some(request);
                self.queue(index);
                // An error here comes again at the next `enter`, where it is
                // looked at.
                let _ = self.enter(0);
                continue;
            };
            let started = slot.started;
            self.free.push(index);
            return Some(Answer {
                request,
                started,
                result,
            });
        }
    }

    /// Takes all requests out of a ring that no longer works, for failing
    /// them. Their memory may still be the kernel's, so it is leaked and each
    /// gets a new buffer of the same length.
    pub(crate) fn abandon(&mut self) -> Vec<(Request, u64)> {
        let mut requests = Vec::new();
        for slot in &mut self.slots {
            if let Some(mut request) = slot.request.take() {
                let length = request.buffer.len();
                mem::forget(mem::replace(
                    &mut request.buffer,
                    AlignedBuffer::new(length),
                ));
                requests.push((request, slot.started));
            }
        }
        // No slot may be used again: late completions would be taken for its
        // new request's.
        self.free.clear();
        self.slots.clear();
        requests
    }
}

/// The outcome of a request whose entry came back with `code`; `None` when
/// there is more to do.
fn judge(request: &Request, done: &mut usize, code: i32) -> Option<io::Result<()>> {
    if code < 0 {
        let error = io::Error::from_raw_os_error(-code);
        return match error.kind() {
            io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock => None,
            _ => Some(Err(error)),
        };
    }
    let nothing = match request.operation {
        Operation::Read => io::ErrorKind::UnexpectedEof,
        Operation::Write => io::ErrorKind::WriteZero,
        Operation::Flush | Operation::Discard { .. } => return Some(Ok(())),
    };
    *done += code as usize;
    if *done >= request.buffer.len() {
        Some(Ok(()))
    } else if code == 0 {
        Some(Err(nothing.into()))
    } else {
        None
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let mut patience = PATIENCE;
        while self.lent() > 0 {
            let before = self.lent();
            let entered = self.enter(1);
            while let Some(entry) = self.ring.completion().next() {
                let index = entry.user_data() as u32;
                if self.slots[index as usize].request.take().is_some() {
                    self.free.push(index);
                }
            }
            if self.lent() < before {
                patience = PATIENCE;
            } else {
                patience -= 1;
            }
            if entered.is_err() || patience == 0 {
                self.abandon();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(operation: Operation) -> Request {
        Request::new(operation, 0, AlignedBuffer::new(1024), 0)
    }

    #[test]
    fn partial_transfers_go_on_where_they_stopped() {
        for operation in [Operation::Read, Operation::Write] {
            let (request, mut done) = (request(operation), 0);
            assert!(judge(&request, &mut done, 512).is_none());
            assert!(judge(&request, &mut done, -4).is_none());
            assert!(judge(&request, &mut done, -11).is_none());
            assert_eq!(done, 512);
            assert!(judge(&request, &mut done, 512).is_some_and(|result| result.is_ok()));
        }
    }

    #[test]
    fn no_progress_and_errors_end_a_request() {
        let kind = |operation, code| {
            judge(&request(operation), &mut 0, code)
                .unwrap()
                .unwrap_err()
                .kind()
        };
        assert_eq!(kind(Operation::Read, 0), io::ErrorKind::UnexpectedEof);
        assert_eq!(kind(Operation::Write, 0), io::ErrorKind::WriteZero);
        assert_eq!(kind(Operation::Write, -28), io::ErrorKind::StorageFull);
        assert!(judge(&request(Operation::Flush), &mut 0, 0).is_some_and(|r| r.is_ok()));
    }

    #[test]
    fn an_abandoned_ring_gives_all_requests_back_with_new_memory() {
        if let Err(error) = Ring::permitted() {
            println!("skipped: io_uring: {error}");
            return;
        }
        let file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        let mut ring = Ring::new(Arc::new(file), 4).unwrap();
        let mut addresses = Vec::new();
        for tag in 0..3 {
            let request = Request::new(Operation::Read, 0, AlignedBuffer::new(1024), tag);
            addresses.push(request.buffer.as_ptr());
            assert!(ring.push(request, tag).is_ok());
        }
        ring.enter(3).unwrap();
        let requests = ring.abandon();
        assert_eq!(requests.len(), 3);
        for (request, started) in &requests {
            assert_eq!(request.tag, *started);
            assert_eq!(request.buffer.len(), 1024);
            assert!(!addresses.contains(&request.buffer.as_ptr()));
        }
        assert_eq!(ring.lent(), 0);
        assert!(ring.pop().is_none(), "late completions belong to no one");
        let late = Request::new(Operation::Read, 0, AlignedBuffer::new(1024), 9);
        assert!(ring.push(late, 0).is_err());
    }
}
