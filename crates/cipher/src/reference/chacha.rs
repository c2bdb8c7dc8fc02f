//! ChaCha as in Bernstein, "ChaCha, a variant of Salsa20", 2008, with its
//! number of rounds, and XChaCha as in draft-irtf-cfrg-xchacha-03, section 2.

/// Adds ChaCha's stream to `data`. `iv` is the number of the first block, 32
/// bits, little endian, and the nonce.
pub fn add_chacha(rounds: usize, key: &[u8; 32], iv: &[u8; 16], data: &mut [u8]) {
    let mut state = initial(key, iv);
    for block in data.chunks_mut(64) {
        let after = permuted(rounds, state);
        let sums = state.iter().zip(after).map(|(x, y)| x.wrapping_add(y));
        for (byte, stream) in block.iter_mut().zip(sums.flat_map(u32::to_le_bytes)) {
            *byte ^= stream;
        }
        state[12] = state[12].wrapping_add(1);
    }
}

/// Adds XChaCha's stream to `data`. `iv` is the nonce, 24 bytes, and, as in the
/// Linux kernel, the number of the first block, 32 bits, little endian.
pub fn add_xchacha(rounds: usize, key: &[u8; 32], iv: &[u8; 32], data: &mut [u8]) {
    let (start, rest) = iv.split_first_chunk().expect("32 bytes");
    let state = permuted(rounds, initial(key, start));
    let mut subkey = [0; 32];
    let words = state[..4].iter().chain(&state[12..]);
    for (bytes, word) in subkey.chunks_mut(4).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    let mut iv = [0; 16];
    iv[..8].copy_from_slice(&rest[8..]);
    iv[8..].copy_from_slice(&rest[..8]);
    add_chacha(rounds, &subkey, &iv, data);
}

fn initial(key: &[u8; 32], iv: &[u8; 16]) -> [u32; 16] {
    let bytes = [&b"expand 32-byte k"[..], key, iv].concat();
    let mut words = bytes.as_chunks().0.iter();
    std::array::from_fn(|_| u32::from_le_bytes(*words.next().expect("64 bytes")))
}

fn permuted(rounds: usize, mut state: [u32; 16]) -> [u32; 16] {
    for round in 0..rounds {
        for i in 0..4 {
            let turn = round % 2;
            let column = |row: usize| 4 * row + (i + row * turn) % 4;
            quarter_round(&mut state, column(0), column(1), column(2), column(3));
        }
    }
    state
}

fn quarter_round(state: &mut [u32; 16], a: usize, b: usize, c: usize, d: usize) {
    for (first, second) in [(16, 12), (8, 7)] {
        state[a] = state[a].wrapping_add(state[b]);
        state[d] = (state[d] ^ state[a]).rotate_left(first);
        state[c] = state[c].wrapping_add(state[d]);
        state[b] = (state[b] ^ state[c]).rotate_left(second);
    }
}
