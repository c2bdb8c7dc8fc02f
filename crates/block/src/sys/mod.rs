//! The unsafe room of this crate: aligned memory, the io_uring ring, some ioctls, and what
//! Windows has for them.
//!
//! Everything outside is safe code over the types here. The safety case:
//!
//! * [`memory::Pages`] owns one allocation, knows its length, and lends it
//!   only through `&self` and `&mut self`. All bytes are initialised.
//! * [`ring::Ring`] lends the memory of a request to the kernel. It *owns* the
//!   request for as long, gives it back only after the kernel's completion for
//!   it was taken from the ring, and on drop waits for every completion, or
//!   leaks the memory where it cannot wait. So the kernel never touches memory
//!   that safe code can reach.
//! * [`ioctl`] passes the kernel a reference to an array of the size that the
//!   request code names, a number, or nothing.
//! * [`lock`] passes it one to a `struct flock`.
//! * [`file_keys`] passes arrays of the sizes that the kernel is told.
//! * [`mapper`] passes it one to as many bytes as their head says.
//! * [`windows`] passes handles that are borrowed for the call, and structures with
//!   their sizes; the handle that it gets is owned by the `File` it returns.

#[cfg(target_os = "linux")]
pub(crate) mod file_keys;
#[cfg(target_os = "linux")]
pub(crate) mod ioctl;
#[cfg(target_os = "linux")]
pub(crate) mod lock;
#[cfg(target_os = "linux")]
pub(crate) mod mapper;
pub(crate) mod memory;
#[cfg(target_os = "linux")]
pub(crate) mod ring;
#[cfg(windows)]
pub(crate) mod windows;
