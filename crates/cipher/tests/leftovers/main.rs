//! A dropped cipher leaves nothing of its key behind: neither on the heap nor
//! on the stack that its setup used.
//!
//! The same work under two keys, on cleared memory that keeps what is freed.
//! Bytes that differ afterwards came from the key, whatever the cipher made of
//! it; pointers do not differ, because all addresses are the same.

mod memory;

use std::cell::RefCell;

use cryptmark_cipher::{Backend, CipherSpec, IvSector, Key, SectorCipher, SectorLayout};

use crate::memory::{Recording, recorded};

/// Fewer bytes for each key are no schedule, and no key: what pads a struct is
/// copied with it, whatever was on the stack.
const FEWEST: usize = 16;

/// Padding is shorter than a word.
const WORD: usize = 8;

/// Bytes of two memories that differ.
fn differing(a: &[u8], b: &[u8]) -> usize {
    assert_eq!(a.len(), b.len(), "the same work allocates the same");
    a.iter().zip(b).filter(|(a, b)| a != b).count()
}

/// The most bytes in a row that differ.
fn longest_run(a: &[u8], b: &[u8]) -> usize {
    let same: Vec<bool> = a.iter().zip(b).map(|(a, b)| a == b).collect();
    let runs = same.split(|&same| same).map(<[bool]>::len);
    runs.max().unwrap_or(0)
}

/// Two keys without a byte in common, and without equal halves.
fn keys(len: usize) -> [Vec<u8>; 2] {
    let key = |seed: usize| (0..len).map(|i| (i * 59 + i / 256 + seed) as u8).collect();
    [key(1), key(138)]
}

/// Every known cipher by every backend.
fn each(mut check: impl FnMut(CipherSpec, Backend)) {
    for known in CipherSpec::KNOWN {
        let spec: CipherSpec = known.parse().unwrap();
        let first = Key::from_slice(&vec![0; spec.default_key_size()]);
        for backend in spec.backends() {
            // The first one may have to choose between two kernels, which allocates.
            drop(spec.cipher(&first, SectorLayout::default(), Some(backend)));
            check(spec, backend);
        }
    }
}

/// The memory that `work` leaves behind under two keys of `spec`, which are made where it works.
fn under_two_keys(spec: CipherSpec, work: impl Fn(&Key, &dyn Fn() -> Vec<u8>)) -> [Recording; 2] {
    let mut source = vec![0; spec.default_key_size()];
    keys(source.len()).map(|key| {
        source.copy_from_slice(&key);
        recorded(|heap| work(&Key::from_slice(&source), heap))
    })
}

#[test]
fn a_dropped_cipher_leaves_no_key_schedule_on_the_heap() {
    each(|spec, backend| {
        // Room for both, because what is allocated inside does not last.
        let alive = RefCell::new(Vec::with_capacity(2));
        let sectors = RefCell::new(vec![0x3c; 67 * 512]);
        let [left, right] = under_two_keys(spec, |key, heap| {
            let mut sectors = sectors.borrow_mut();
            let cipher = spec.cipher(key, SectorLayout::default(), Some(backend));
            let cipher = cipher.unwrap();
            cipher.encrypt(IvSector::new(3), &mut sectors);
            alive.borrow_mut().push(heap());
            cipher.decrypt(IvSector::new(3), &mut sectors);
        });
        // Only if the schedule was there can its absence mean anything.
        let alive = alive.into_inner();
        let there = differing(&alive[0], &alive[1]);
        assert!(there > spec.default_key_size(), "{spec} {backend}: {there}");
        let bytes = differing(&left.heap, &right.heap);
        let run = longest_run(&left.heap, &right.heap);
        assert!(
            bytes < FEWEST * spec.key_count() && run < WORD,
            "{spec} {backend}: {bytes} bytes on the heap, {run} in a row"
        );
    });
}

#[test]
fn setup_leaves_no_key_schedule_on_the_stack() {
    if !cfg!(target_arch = "x86_64") {
        println!("skipped: the stack is looked at on x86-64");
        return;
    }
    each(|spec, backend| {
        // An address of the heap may be another one; what is of the key is there every time.
        let left = (0..4).map(|_| {
            let [left, right] = under_two_keys(spec, |key, _| {
                drop(spec.cipher(key, SectorLayout::default(), Some(backend)));
            });
            differing(&left.stack, &right.stack)
        });
        let left = left.min().unwrap_or_default();
        assert_eq!(left, 0, "{spec} {backend}: bytes of the key on the stack");
    });
}

/// Unwiped data is found; otherwise the tests above would prove nothing.
#[test]
fn what_is_left_is_found() {
    let on_heap = |byte: u8| recorded(|_| drop(vec![byte; 40])).heap;
    assert_eq!(differing(&on_heap(1), &on_heap(2)), 40);
    assert_eq!(longest_run(&on_heap(1), &on_heap(2)), 40);
    assert_eq!(differing(&on_heap(1), &on_heap(1)), 0);
    if cfg!(target_arch = "x86_64") {
        #[inline(never)]
        fn on_stack(byte: u8) {
            std::hint::black_box([byte; 40]);
        }
        let left = |byte| recorded(|_| on_stack(byte)).stack;
        assert!(differing(&left(1), &left(2)) >= 40);
        assert_eq!(differing(&left(1), &left(1)), 0);
    }
}

/// Keys stay out of dumps and of forked processes, and out of the swap file where the system lets
/// them: `dd`, `dc` and `lo` are the flags of such pages.
#[test]
fn keys_are_locked_and_in_no_dump() {
    let key = Key::from_slice(&[7; 64]);
    let Ok(maps) = std::fs::read_to_string("/proc/self/smaps") else {
        println!("skipped: no /proc/self/smaps tells whether memory is locked");
        return;
    };
    let address = key.as_bytes().as_ptr().addr();
    let mut inside = false;
    let mut flags = Vec::new();
    for line in maps.lines() {
        let word = line.split(' ').next().unwrap_or_default();
        let number = |digits| usize::from_str_radix(digits, 16);
        if let Some((Ok(start), Ok(end))) =
            word.split_once('-').map(|(a, b)| (number(a), number(b)))
        {
            inside = (start..end).contains(&address);
        }
        if inside && word == "VmFlags:" {
            flags = line.split(' ').collect();
        }
    }
    assert!(flags.contains(&"dd") && flags.contains(&"dc"), "{flags:?}");
    assert_eq!(flags.contains(&"lo"), key.is_locked(), "{flags:?}");
    if !key.is_locked() {
        // The system must have said so, and not the key alone.
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
        let mut limits = limits.lines();
        let limit = limits.find(|line| line.starts_with("Max locked memory"));
        let bytes = limit.and_then(|line| line.split_whitespace().nth(3)?.parse().ok());
        assert!(bytes.is_some_and(|bytes: u64| bytes < 1 << 20), "{limit:?}");
        println!("skipped: RLIMIT_MEMLOCK does not let keys be locked");
    }
}
