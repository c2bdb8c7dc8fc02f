//! The unsafe room of this crate: io_uring commands to the ublk driver, and the
//! descriptors that it shares.
//!
//! The safety case:
//!
//! * An I/O command carries no address: data are copied through the character
//!   device, by ordinary reads and writes of a file. So the kernel touches no
//!   memory of ours but the rings.
//! * A control command carries the address of a buffer that [`Control`] owns
//!   for as long as the kernel may use it: [`Control::command`] returns only
//!   when that very command has been completed, or leaks the buffer.
//! * The descriptors are mapped for reading only. The driver writes one before
//!   it completes the command that fetches it, and not again until the answer
//!   was committed, so what is read between is settled; it is read as volatile
//!   bytes, of which every pattern is valid.

use super::layout::{self, DESCRIPTOR_BYTES};
use super::request::Descriptor;
use io_uring::{IoUring, cqueue, opcode, squeue, types};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};

/// The control node, and a ring of large entries for its commands.
pub(super) struct Control {
    node: File,
    ring: IoUring<squeue::Entry128>,
    /// The number of commands so far. It tells the completion of the last command from that of an
    /// earlier one whose wait failed.
    commands: u64,
}

impl Control {
    /// Takes commands for `node`, `/dev/ublk-control`.
    pub(super) fn new(node: File) -> io::Result<Self> {
        Ok(Self {
            node,
            ring: IoUring::builder().build(4)?,
            commands: 0,
        })
    }

    /// Has the driver carry `operation` out, with a buffer that it may read and
    /// change; returns when that is done.
    pub(super) fn command(
        &mut self,
        operation: u32,
        argument: &layout::Control,
        buffer: &mut [u8; 64],
        length: u16,
    ) -> io::Result<()> {
        assert!(usize::from(length) <= buffer.len());
        self.commands += 1;
        let mut lent = Box::new(*buffer);
        let bytes = argument.bytes(lent.as_mut_ptr() as u64, length);
        let entry = opcode::UringCmd80::new(types::Fd(self.node.as_raw_fd()), operation)
            .cmd(bytes)
            .build()
            .user_data(self.commands);
        // SAFETY: the address and the length in the command are those of
        // `lent`, which lives until the command was completed, or is leaked
        // below. The descriptor is that of `node`, which is open.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("one command at a time fits into the ring");
        let answer = loop {
            match self.ring.submit_and_wait(1) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // The kernel may still use the buffer.
                    Box::leak(lent);
                    return Err(error);
                }
                Ok(_) => {
                    // One of an earlier number says nothing of this buffer.
                    let own = |entry: &cqueue::Entry| entry.user_data() == self.commands;
                    if let Some(entry) = self.ring.completion().find(own) {
                        break entry.result();
                    }
                }
            }
        };
        *buffer = *lent;
        match answer {
            0.. => Ok(()),
            error => Err(io::Error::from_raw_os_error(-error)),
        }
    }
}

/// The descriptors of a queue's requests, by tag.
pub(super) struct Descriptors {
    address: NonNull<c_void>,
    mapped: usize,
    depth: u16,
}

impl Descriptors {
    /// Those of `queue`, which is `depth` deep, of the device of `node`.
    pub(super) fn map(node: &File, queue: u16, depth: u16) -> io::Result<Self> {
        let mapped =
            (usize::from(depth) * DESCRIPTOR_BYTES).next_multiple_of(rustix::param::page_size());
        // SAFETY: a new mapping, at an address that the kernel chooses, takes
        // nobody's memory.
        let address = unsafe {
            mmap(
                ptr::null_mut(),
                mapped,
                ProtFlags::READ,
                MapFlags::SHARED | MapFlags::POPULATE,
                node,
                layout::descriptors_at(queue),
            )?
        };
        let address = NonNull::new(address).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self {
            address,
            mapped,
            depth,
        })
    }

    /// The driver's request under `tag`.
    pub(super) fn get(&self, tag: u16) -> Descriptor {
        assert!(tag < self.depth);
        let at = usize::from(tag) * DESCRIPTOR_BYTES;
        // SAFETY: the mapping has descriptors for all tags below the depth, and
        // lives as long as `self`. Bytes need no alignment.
        let bytes = unsafe {
            let place = self.address.as_ptr().cast::<u8>().add(at);
            ptr::read_volatile(place.cast::<[u8; DESCRIPTOR_BYTES]>())
        };
        Descriptor::from_bytes(&bytes)
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, was made with this length, and nothing
        // refers to it any more: `get` gives copies.
        let unmapped = unsafe { munmap(self.address.as_ptr(), self.mapped) };
        debug_assert!(unmapped.is_ok());
    }
}

/// The ring of one queue, for the thread that serves it.
pub(super) struct QueueRing {
    ring: IoUring,
}

/// The driver's answer to a command: its tag, and its result, 0 for a request to serve.
pub(super) struct Event {
    pub(super) tag: u16,
    pub(super) result: i32,
}

impl QueueRing {
    /// A ring for `depth` commands.
    pub(super) fn new(depth: u16) -> io::Result<Self> {
        Ok(Self {
            ring: IoUring::new(depth.into())?,
        })
    }

    /// Prepares a command for the next [`wait`](Self::wait): with
    /// [`layout::FETCH`] a request is asked for under `tag`, with
    /// [`layout::COMMIT_AND_FETCH`] the last one is answered first.
    pub(super) fn push(&mut self, node: &File, operation: u32, queue: u16, event: &Event) {
        let entry = opcode::UringCmd16::new(types::Fd(node.as_raw_fd()), operation)
            .cmd(layout::io_command(queue, event.tag, event.result))
            .build()
            .user_data(event.tag.into());
        // SAFETY: the command carries no address, so no memory is lent.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("the ring has an entry for every tag");
    }

    /// Hands prepared commands over, and waits for `events` of them.
    pub(super) fn wait(&mut self, events: usize) -> io::Result<()> {
        loop {
            match self.ring.submit_and_wait(events) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(_) => return Ok(()),
            }
        }
    }

    /// The next event that came.
    pub(super) fn pop(&mut self) -> Option<Event> {
        let entry = self.ring.completion().next()?;
        Some(Event {
            tag: entry.user_data() as u16,
            result: entry.result(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The completion of an earlier command must not count as the end of this one. Otherwise its
    /// buffer would be freed while the kernel uses it.
    #[test]
    fn an_older_completion_ends_no_command() {
        let node = tempfile::tempfile().unwrap();
        let mut control = match Control::new(node) {
            Ok(control) => control,
            Err(error) => {
                println!("skipped: rings: {error}");
                return;
            }
        };
        let older: squeue::Entry128 = opcode::Nop::new().build().user_data(0).into();
        // SAFETY: it carries no address.
        unsafe { control.ring.submission().push(&older) }.unwrap();
        control.ring.submit_and_wait(1).unwrap();
        let argument = layout::Control { device: 0, data: 0 };
        // A file takes no such command; the one that does nothing has succeeded.
        let answer = control.command(layout::FETCH, &argument, &mut [0; 64], 64);
        assert!(answer.is_err());
    }
}
