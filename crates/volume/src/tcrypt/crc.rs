//! The CRC-32 of IEEE 802.3 by bits: a table would be indexed by secrets.

/// The register after one more byte.
pub(super) const fn step(crc: u32, byte: u8) -> u32 {
    let mut crc = crc ^ byte as u32;
    let mut bit = 0;
    while bit < 8 {
        crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        bit += 1;
    }
    crc
}

/// The checksum of `bytes`.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, &byte| step(crc, byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_that_of_ieee_802_3() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }
}
