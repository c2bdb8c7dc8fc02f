//! TrueCrypt's whitening (drivers/md/dm-crypt.c's description of it), with the
//! CRC-32 of IEEE 802.3 one bit at a time.

/// Adds the mask of sector `n` to `sector`.
pub(super) fn whiten(seed: &[u8], n: u64, sector: &mut [u8]) {
    let words: Vec<u32> = seed
        .chunks_exact(8)
        .flat_map(|half| {
            let mixed = u64::from_le_bytes(half.try_into().expect("8 bytes")) ^ n;
            [
                crc32(&mixed.to_le_bytes()[..4]),
                crc32(&mixed.to_le_bytes()[4..]),
            ]
        })
        .collect();
    let mask = [words[0] ^ words[3], words[1] ^ words[2]].map(u32::to_le_bytes);
    for (byte, mask) in sector.iter_mut().zip(mask.as_flattened().iter().cycle()) {
        *byte ^= mask;
    }
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = 0;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 {
                crc >> 1 ^ 0xedb8_8320
            } else {
                crc >> 1
            };
        }
    }
    crc
}
