//! The diffusers of BitLocker (Ferguson 2006, sections 4.2 and 4.3), in the
//! direction in which the paper gives them, and their inverses step by step.

use super::{Aes, ReferenceCipher};

/// Undoes the diffusers of the sector at byte `offset`.
pub(super) fn decrypt(key: &[u8], offset: u64, sector: &mut [u8]) {
    let mut d = words(sector);
    let n = d.len();
    for i in 0..3 * n {
        let i = i % n;
        d[i] = d[i].wrapping_add(b_neighbours(&d, i));
    }
    for i in 0..5 * n {
        let i = i % n;
        d[i] = d[i].wrapping_add(a_neighbours(&d, i));
    }
    store(&d, sector);
    add_sector_key(key, offset, sector);
}

/// Applies the diffusers of the sector at byte `offset`.
pub(super) fn encrypt(key: &[u8], offset: u64, sector: &mut [u8]) {
    add_sector_key(key, offset, sector);
    let mut d = words(sector);
    let n = d.len();
    for i in (0..5 * n).rev() {
        let i = i % n;
        d[i] = d[i].wrapping_sub(a_neighbours(&d, i));
    }
    for i in (0..3 * n).rev() {
        let i = i % n;
        d[i] = d[i].wrapping_sub(b_neighbours(&d, i));
    }
    store(&d, sector);
}

fn a_neighbours(d: &[u32], i: usize) -> u32 {
    let n = d.len();
    d[(i + n - 2) % n] ^ d[(i + n - 5) % n].rotate_left([9, 0, 13, 0][i % 4])
}

fn b_neighbours(d: &[u32], i: usize) -> u32 {
    let n = d.len();
    d[(i + 2) % n] ^ d[(i + 5) % n].rotate_left([0, 10, 0, 25][i % 4])
}

fn add_sector_key(key: &[u8], offset: u64, sector: &mut [u8]) {
    let aes = Aes::new(key);
    let first = u128::from(offset);
    let second = first | 0x80 << 120;
    let sector_key = [first, second].map(|block| aes.encrypt(block.to_le_bytes()));
    for (byte, key) in sector
        .iter_mut()
        .zip(sector_key.as_flattened().iter().cycle())
    {
        *byte ^= key;
    }
}

fn words(sector: &[u8]) -> Vec<u32> {
    let words = sector.as_chunks().0.iter();
    words.map(|word| u32::from_le_bytes(*word)).collect()
}

fn store(words: &[u32], sector: &mut [u8]) {
    for (bytes, word) in sector.as_chunks_mut().0.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
}
