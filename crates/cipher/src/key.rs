//! Key bytes: on pages that no core dump and no forked process has, locked while they
//! live, wiped when they die, never printed.

use std::fmt;

use memmap2::MmapMut;
use region::LockGuard;
use zeroize::Zeroize;

use crate::CipherError;

/// The key of a disk cipher, or any other secret.
///
/// The bytes are kept out of the swap file if the system allows it, out of core dumps, and out of
/// forked processes. They are overwritten with zeros on drop, and never show in `Debug`.
pub struct Key {
    // Before the pages, which have to be there when they are unlocked.
    locked: Option<LockGuard>,
    // The system locks and unlocks whole pages. The bytes have pages for themselves, so that
    // unlocking one key cannot unlock its neighbour.
    pages: MmapMut,
    len: usize,
    // The process that has the pages. A forked one has an owner without them.
    process: u32,
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

    /// A key of as many bytes as `fill` says that it has written, `most` at most: so
    /// what is read need not exist anywhere else either. The room for them is not
    /// locked, the key is.
    ///
    /// # Errors
    /// Those of `fill`.
    ///
    /// # Panics
    /// If `fill` says that it has written more than there is room for.
    pub fn read<E>(
        most: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<Self, E> {
        let mut room = Self::unlocked(most);
        let len = fill(room.as_bytes_mut())?;
        Ok(Self::from_slice(&room.as_bytes()[..len]))
    }

    /// The bytes themselves.
    ///
    /// # Panics
    /// In a process that was forked after the key was made, which does not have the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        assert!(
            self.is_here(),
            "the key belongs to another process, from which this one was forked"
        );
        &self.pages[..self.len]
    }

    /// Whether this process has the bytes: it made the key, and was not forked since.
    pub fn is_here(&self) -> bool {
        std::process::id() == self.process
    }

    /// Length in bytes, as cryptsetup counts: both halves of an XTS key.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the key has no bytes at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the system keeps the bytes in memory; it refuses where
    /// `RLIMIT_MEMLOCK` is used up.
    pub fn is_locked(&self) -> bool {
        self.locked.is_some()
    }

    fn zeroed(len: usize) -> Self {
        let mut key = Self::unlocked(len);
        if len > 0 {
            key.locked = region::lock(key.pages.as_ptr(), len).ok();
        }
        key
    }

    fn unlocked(len: usize) -> Self {
        // As of an allocation, nothing sensible can be done without it.
        let pages = MmapMut::map_anon(len.max(1)).expect("there is memory for a key");
        #[cfg(target_os = "linux")]
        for advice in [memmap2::Advice::DontDump, memmap2::Advice::DontFork] {
            // A kernel that knows neither keeps keys as well as it can.
            let _ = pages.advise(advice);
        }
        Self {
            locked: None,
            pages,
            len,
            process: std::process::id(),
        }
    }

    fn as_bytes_mut(&mut self) -> &mut [u8] {
        &mut self.pages[..self.len]
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        if !self.is_here() {
            // Here the pages are not there, and something else may be in their place by now.
            std::mem::forget(self.locked.take());
            if let Ok(page) = MmapMut::map_anon(1) {
                std::mem::forget(std::mem::replace(&mut self.pages, page));
            }
            return;
        }
        self.as_bytes_mut().zeroize();
        // Unlocked only now that nothing secret is left; the pages go after that.
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
    fn what_is_read_is_as_long_as_was_said() {
        for (most, len) in [(0, 0), (1, 0), (1, 1), (513, 9), (8 << 20, 5000)] {
            let key = Key::read(most, |room| {
                assert_eq!(room.len(), most);
                room[..len].fill(7);
                Ok::<_, ()>(len)
            });
            assert_eq!(key.unwrap().as_bytes(), vec![7; len]);
        }
        assert_eq!(Key::read(32, |_| Err::<usize, _>(5)).err(), Some(5));
    }

    /// The flags of the mapping that holds `address`, as smaps names them.
    #[cfg(target_os = "linux")]
    fn flags(address: usize) -> Vec<String> {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut here = false;
        for line in maps.lines() {
            let (first, rest) = line.split_once(' ').unwrap();
            let range = first.split_once('-').and_then(|(start, end)| {
                let number = |text| usize::from_str_radix(text, 16).ok();
                Some(number(start)?..number(end)?)
            });
            match range {
                Some(range) => here = range.contains(&address),
                None if here && first == "VmFlags:" => {
                    return rest.split_whitespace().map(str::to_owned).collect();
                }
                None => {}
            }
        }
        panic!("{address:x} is mapped nowhere");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn no_core_dump_and_no_child_has_it() {
        for len in [1, 64, 5000] {
            let key = Key::random(len).unwrap();
            let flags = flags(key.as_bytes().as_ptr().addr());
            let has = |flag: &str| flags.iter().any(|found| found == flag);
            assert!(has("dd") && has("dc"), "{flags:?}");
            assert_eq!(has("lo"), key.is_locked(), "{flags:?}");
        }
        // The heap has neither: so the test can see the difference.
        let heap = Box::new(5_u8);
        let flags = flags(std::ptr::from_ref(&*heap).addr());
        assert!(!flags.iter().any(|flag| flag == "dd" || flag == "dc"));
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
