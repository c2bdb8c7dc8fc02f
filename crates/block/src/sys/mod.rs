//! The unsafe room of this crate: aligned memory, the io_uring ring, some ioctls.
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
//! * [`mapper`] passes it one to as many bytes as their head says.

#[cfg(target_os = "linux")]
pub(crate) mod ioctl;
#[cfg(target_os = "linux")]
pub(crate) mod mapper;
pub(crate) mod memory;
#[cfg(target_os = "linux")]
pub(crate) mod ring;
