//! [`AlignedBuffer`]: memory that devices and ciphers like.

use crate::sys::memory::Pages;
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// An owned run of bytes that starts on a 4096-byte boundary.
///
/// The address never changes while it lives, however often the value is moved.
#[derive(Default)]
pub struct AlignedBuffer {
    pages: Pages,
    /// Bytes that are shown, from the first.
    length: usize,
}

impl AlignedBuffer {
    /// The alignment of the first byte.
    pub const ALIGNMENT: usize = Pages::ALIGNMENT;

    /// `length` zero bytes; 0 allocates nothing. Aborts when memory is out.
    pub fn new(length: usize) -> Self {
        Self {
            pages: Pages::zeroed(length),
            length,
        }
    }

    /// `count` buffers of `length` zero bytes each, side by side in one allocation, which is freed
    /// with the last of them. Buffers that are used together then lie on huge pages if all of them
    /// together are large.
    pub fn several(count: usize, length: usize) -> Vec<Self> {
        let all = Pages::several(count, length).into_iter();
        all.map(|pages| Self { pages, length }).collect()
    }

    /// `length` bytes that nothing compresses, the next of `random`.
    pub fn noise(length: usize, random: &mut Xoshiro256PlusPlus) -> Self {
        let mut buffer = Self::new(length);
        buffer.fill_with_noise(random);
        buffer
    }

    /// Puts what nothing compresses into it, the next bytes of `random`.
    // Not generic, so that this crate compiles it: without optimisation, which the
    // lab's tests do without, every repetition would wait seconds for its noise.
    pub fn fill_with_noise(&mut self, random: &mut Xoshiro256PlusPlus) {
        random.fill_bytes(self);
    }

    /// Makes the first `length` bytes visible, so that one allocation serves requests of many
    /// lengths. Bytes that become visible keep their earlier content, or are zeros.
    ///
    /// # Panics
    /// If `length` exceeds the capacity.
    pub fn set_len(&mut self, length: usize) {
        assert!(length <= self.capacity(), "the buffer is too small");
        self.length = length;
    }

    /// Splits off everything after the first `at` bytes as a buffer of its own, without copying.
    /// [`append`](Self::append) is the inverse.
    ///
    /// # Panics
    /// Where `at` is more than the length, or not a multiple of [`ALIGNMENT`](Self::ALIGNMENT).
    pub fn split_off(&mut self, at: usize) -> Self {
        let behind = self
            .length
            .checked_sub(at)
            .expect("the buffer is too small");
        self.length = at;
        Self {
            pages: self.pages.split_off(at),
            length: behind,
        }
    }

    /// Puts back what was [split off](Self::split_off).
    ///
    /// # Errors
    /// Gives `behind` back where it is anything but what comes next in memory, or not all
    /// is shown that is before it.
    pub fn append(&mut self, behind: Self) -> Result<(), Self> {
        let Self { pages, length } = behind;
        let joined = match self.length == self.capacity() {
            true => self.pages.append(pages),
            false => Err(pages),
        };
        joined.map_err(|pages| Self { pages, length })?;
        self.length += length;
        Ok(())
    }

    /// The buffer that `parts` were split from, and whether they were: what a device has kept, and
    /// given other memory back for, is copied.
    pub fn joined(parts: impl IntoIterator<Item = Self>) -> (Self, bool) {
        let mut parts = parts.into_iter();
        let mut whole = parts.next().unwrap_or_default();
        let mut same = true;
        for part in parts {
            if let Err(other) = whole.append(part) {
                let mut copy = Self::new(whole.len() + other.len());
                let (before, behind) = copy.split_at_mut(whole.len());
                before.copy_from_slice(&whole);
                behind.copy_from_slice(&other);
                (whole, same) = (copy, false);
            }
        }
        (whole, same)
    }

    /// The most that [`set_len`](Self::set_len) can show.
    pub fn capacity(&self) -> usize {
        self.pages.bytes().len()
    }

    /// A buffer of no bytes, for requests that carry none.
    pub fn empty() -> Self {
        Self::default()
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.pages.bytes()[..self.length]
    }
}

impl DerefMut for AlignedBuffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.pages.bytes_mut()[..self.length]
    }
}

impl From<&[u8]> for AlignedBuffer {
    fn from(bytes: &[u8]) -> Self {
        let mut buffer = Self::new(bytes.len());
        buffer.copy_from_slice(bytes);
        buffer
    }
}

/// Buffers hold user data: only the length is shown.
impl fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlignedBuffer")
            .field("length", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether all bytes are `byte`. Miri takes seconds for a loop over a mebibyte.
    fn is_all(byte: u8, bytes: &[u8]) -> bool {
        *bytes == vec![byte; bytes.len()][..]
    }

    #[test]
    fn is_aligned_zero_and_stays_put() {
        for length in [1, 511, 512, 4096, 1 << 20] {
            let buffer = AlignedBuffer::new(length);
            assert_eq!(buffer.as_ptr() as usize % AlignedBuffer::ALIGNMENT, 0);
            assert_eq!(buffer.len(), length);
            assert!(is_all(0, &buffer));
            let address = buffer.as_ptr();
            let moved = Box::new(buffer);
            assert_eq!(moved.as_ptr(), address);
        }
    }

    #[test]
    fn several_are_apart_and_outlive_each_other() {
        for length in [1, 4096, 5000, 1 << 20] {
            let mut all = AlignedBuffer::several(3, length);
            for (buffer, fill) in all.iter_mut().zip(1..) {
                assert_eq!(buffer.as_ptr() as usize % AlignedBuffer::ALIGNMENT, 0);
                assert!(is_all(0, buffer));
                buffer.fill(fill);
            }
            let last = all.pop().unwrap();
            assert!(is_all(2, &all[1]));
            assert!(is_all(1, &all[0]));
            drop(all);
            assert_eq!(last.len(), length);
            assert!(is_all(3, &last));
        }
        assert_eq!(AlignedBuffer::several(2, 0).len(), 2);
        assert!(AlignedBuffer::several(0, 4096).is_empty());
    }

    #[test]
    fn what_was_split_off_can_be_put_back() {
        for (length, at) in [
            (8192, 4096),
            (10_000, 8192),
            (4096, 4096),
            (3 << 20, 1 << 20),
        ] {
            let mut buffer = AlignedBuffer::new(length + 7);
            buffer.set_len(length);
            let address = buffer.as_ptr();
            let mut behind = buffer.split_off(at);
            assert_eq!((buffer.len(), behind.len()), (at, length - at));
            buffer.fill(1);
            behind.fill(2);
            let mut last = behind.split_off(0);
            assert!(behind.is_empty());
            last.set_len(length - at);
            behind.append(last).unwrap();
            buffer.append(behind).unwrap();
            assert_eq!((buffer.as_ptr(), buffer.len()), (address, length));
            assert_eq!(buffer.capacity(), length + 7);
            assert!(is_all(1, &buffer[..at]));
            assert!(is_all(2, &buffer[at..]));
        }
    }

    #[test]
    fn nothing_else_is_put_back() {
        let [mut one, mut other] = [8192, 8192].map(AlignedBuffer::new);
        let [of_one, of_other] = [one.split_off(4096), other.split_off(4096)];
        let of_other = one.append(of_other).unwrap_err();
        assert_eq!((one.len(), of_other.len()), (4096, 4096));
        one.set_len(1);
        let of_one = one.append(of_one).unwrap_err();
        one.set_len(4096);
        one.append(of_one).unwrap();
        other.append(of_other).unwrap();
        assert_eq!((one.len(), other.len()), (8192, 8192));
    }

    #[test]
    fn shows_what_it_is_told_to() {
        let mut buffer = AlignedBuffer::from(&[1u8, 2, 3][..]);
        buffer.set_len(1);
        assert_eq!((&buffer[..], buffer.capacity()), (&[1u8][..], 3));
        buffer.set_len(3);
        assert_eq!(buffer[..], [1, 2, 3]);
    }

    #[test]
    fn empty_is_usable() {
        let mut buffer = AlignedBuffer::empty();
        assert!(buffer.is_empty());
        buffer.fill(1);
        assert_eq!(AlignedBuffer::from(&[1u8, 2][..])[..], [1, 2]);
    }

    #[test]
    fn debug_shows_no_content() {
        assert_eq!(
            format!("{:?}", AlignedBuffer::from(&b"secret"[..])),
            "AlignedBuffer { length: 6, .. }"
        );
    }
}
