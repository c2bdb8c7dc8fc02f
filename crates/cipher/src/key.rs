//! Key bytes: locked while they live, wiped when they die, never printed.

use std::fmt;
use std::ops::Range;

use region::LockGuard;
use zeroize::Zeroize;

use crate::CipherError;

/// The key of a disk cipher.
///
/// The bytes are kept out of the swap file where the system allows it, are
/// overwritten with zeros on drop, and never show in `Debug`.
pub struct Key {
    // Locking counts in pages: the bytes have theirs for themselves, so that
    // unlocking one key cannot unlock its neighbour on the heap.
    pages: Box<[u8]>,
    bytes: Range<usize>,
    locked: Option<LockGuard>,
}

impl Key {
    /// The key `bytes`, which are wiped at their old place.
    pub fn new(mut bytes: Vec<u8>) -> Self {
        let key = Self::from_slice(&bytes);
        bytes.zeroize();
        key
    }

    /// A copy of `bytes` as a key; wiping the source is the caller's.
    pub fn from_slice(bytes: &[u8]) -> Self {
        let mut key = Self::zeroed(bytes.len());
        key.as_bytes_mut().copy_from_slice(bytes);
        key
    }

    /// A key of `len` bytes from the system's random number generator.
    ///
    /// # Errors
    /// [`CipherError::Random`] if the system has none.
    pub fn random(len: usize) -> Result<Self, CipherError> {
        Self::filled(len, |bytes| Ok(getrandom::fill(bytes)?))
    }

    /// A key of `len` bytes that `fill` writes where they stay: so a derived
    /// key need not exist anywhere else.
    ///
    /// # Errors
    /// Those of `fill`, which sees `len` zero bytes.
    pub fn filled<E>(len: usize, fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<Self, E> {
        let mut key = Self::zeroed(len);
        fill(key.as_bytes_mut())?;
        Ok(key)
    }

    /// The bytes themselves.
    pub fn as_bytes(&self) -> &[u8] {
        &self.pages[self.bytes.clone()]
    }

    /// Length in bytes, as cryptsetup counts: both halves of an XTS key.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the key has no bytes at all.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether the system keeps the bytes in memory; it refuses where
    /// `RLIMIT_MEMLOCK` is used up.
    pub fn is_locked(&self) -> bool {
        self.locked.is_some()
    }

    fn zeroed(len: usize) -> Self {
        let page = region::page::size();
        let own_pages = len.next_multiple_of(page);
        let pages = vec![0_u8; own_pages + page].into_boxed_slice();
        let start = pages.as_ptr().addr().next_multiple_of(page) - pages.as_ptr().addr();
        let bytes = start..start + len;
        let locked = match len {
            0 => None,
            len => region::lock(pages[start..].as_ptr(), len).ok(),
        };
        Self {
            pages,
            bytes,
            locked,
        }
    }

    fn as_bytes_mut(&mut self) -> &mut [u8] {
        &mut self.pages[self.bytes.clone()]
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.as_bytes_mut().zeroize();
        // Unlocked only now that nothing secret is left, and before the
        // allocator gets the pages back.
        self.locked = None;
    }
}

impl From<Vec<u8>> for Key {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(bytes)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_its_bytes_at_any_length() {
        for len in [0, 1, 32, 64, 4095, 4096, 4097, 10_000] {
            let bytes: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let key = Key::from_slice(&bytes);
            assert_eq!(key.as_bytes(), bytes);
            assert_eq!((key.len(), key.is_empty()), (len, len == 0));
            assert_eq!(Key::new(bytes.clone()).as_bytes(), bytes);
        }
    }

    #[test]
    fn starts_on_a_page_of_its_own() {
        let keys: Vec<Key> = (0..16).map(|i| Key::from_slice(&[i; 64])).collect();
        let page = region::page::size();
        for key in &keys {
            assert_eq!(key.as_bytes().as_ptr().addr() % page, 0);
        }
        drop(keys);
    }

    #[test]
    fn a_failing_fill_gives_its_error() {
        assert_eq!(Key::filled(32, |_| Err(5)).err(), Some(5));
    }

    #[test]
    fn random_keys_differ() {
        let (a, b) = (Key::random(64).unwrap(), Key::random(64).unwrap());
        assert_ne!(a.as_bytes(), b.as_bytes());
    }
}
