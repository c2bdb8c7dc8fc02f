//! Where bytes live: disks, files, memory, and devices over devices.
//!
//! [`BlockDevice`] is the one interface; [`Queue`] its asynchronous half, with
//! owned page-aligned buffers. Places are [`FileDevice`], [`RamDevice`] and
//! [`NullDevice`]; everything in [`layer`] stands on another device and looks
//! the same from above. This crate knows no encryption, and no clock but the
//! one that the caller puts into the [`Meter`].
//!
//! Nothing here writes to a device without being asked to. A device opened for writing is held for
//! as long as it is open ([`hold`]). Before you overwrite a device, check its content by
//! [`signature`]. Items that are hidden from this documentation serve the program `cryptmark`, and
//! change in any version.
//!
//! # Example
//!
//! A [`FileDevice`] is used like the disk in memory here.
//!
//! ```
//! use block::{AlignedBuffer, BlockDevice, Meter, Operation, QueueOptions, RamDevice, Request, Wait};
//! use std::rc::Rc;
//!
//! let device = RamDevice::new(1 << 20);
//! let meter = Rc::new(Meter::off());
//! let mut queue = device.queue(QueueOptions { depth: 2, meter })?;
//! for (tag, offset) in [(1, 0), (2, 8192)] {
//!     let mut buffer = AlignedBuffer::new(4096);
//!     buffer.fill(tag as u8);
//!     queue.submit(Request::new(Operation::Write, offset, buffer, tag));
//! }
//! // The requests come back in any order, each with its buffer.
//! while let Some(completion) = queue.reap(Wait::Yes) {
//!     completion.result?;
//! }
//! let mut sector = [0; 512];
//! device.read_at(8192, &mut sector)?;
//! assert_eq!(sector, [2; 512]);
//! # Ok::<(), block::BlockError>(())
//! ```

#![deny(unsafe_code)]

mod buffer;
#[cfg(target_os = "linux")]
pub mod confine;
mod device;
mod draft;
mod error;
mod extent;
mod folder;
mod inline;
pub mod layer;
mod meter;
#[doc(hidden)]
#[cfg(any(test, feature = "model"))]
pub mod model;
mod null;
mod queue;
mod ram;
mod range;

mod file;
#[doc(hidden)]
#[cfg(target_os = "linux")]
pub mod file_keys;
pub mod hold;
#[cfg(target_os = "linux")]
pub mod layers;
#[cfg(target_os = "linux")]
mod loop_device;
#[cfg(target_os = "linux")]
mod mapped_device;
#[doc(hidden)]
pub mod plain;
mod positioned;
pub mod program;
pub mod signature;
mod testfile;
pub mod transfer;
#[cfg(target_os = "linux")]
mod uring;
#[doc(hidden)]
pub mod xml;

#[allow(unsafe_code)]
mod sys;

pub use buffer::AlignedBuffer;
pub use device::{BlockDevice, Geometry};
pub use draft::Draft;
#[doc(hidden)]
pub use draft::save;
pub use error::BlockError;
pub use extent::Extent;
#[doc(hidden)]
pub use folder::{folder_of, sync_name, warn_of_memory};
pub use inline::InlineQueue;
pub use meter::{Clock, Meter, Part};
pub use null::NullDevice;
pub use queue::{
    Completion, Operation, OperationKind, Queue, QueueOptions, Request, Timeline, Wait,
};
pub use ram::RamDevice;
pub use range::ByteRange;

pub use file::{Engine, FileDevice, FileOptions, HeaderLock, PathKind};
pub use hold::Hold;
#[doc(hidden)]
#[cfg(target_os = "linux")]
pub use loop_device::LoopDevice;
#[doc(hidden)]
#[cfg(target_os = "linux")]
pub use mapped_device::MappedDevice;
#[doc(hidden)]
pub use testfile::{TestFile, fill};
