//! CRC-32 by bits: a table would be indexed by secrets.

/// What each bit of a byte adds to the register after it, with the polynomial of
/// IEEE 802.3 and with Castagnoli's, their bits reversed.
const IEEE: [u32; 8] = shares(0xedb8_8320);
const CASTAGNOLI: [u32; 8] = shares(0x82f6_3b78);

const fn shares(polynomial: u32) -> [u32; 8] {
    let mut shares = [0; 8];
    let mut crc = 1;
    let mut bit = 8;
    while bit > 0 {
        bit -= 1;
        crc = (crc >> 1) ^ (polynomial & (crc & 1_u32).wrapping_neg());
        shares[bit] = crc;
    }
    shares
}

const fn after(shares: &[u32; 8], crc: u32, byte: u8) -> u32 {
    let out = crc ^ byte as u32;
    let mut crc = crc >> 8;
    let mut bit = 0;
    while bit < 8 {
        crc ^= shares[bit] & (out >> bit & 1).wrapping_neg();
        bit += 1;
    }
    crc
}

/// The register of IEEE 802.3's after one more byte.
pub(crate) const fn step(crc: u32, byte: u8) -> u32 {
    after(&IEEE, crc, byte)
}

/// The checksum of IEEE 802.3.
pub(crate) fn crc32<'a>(bytes: impl IntoIterator<Item = &'a u8>) -> u32 {
    !bytes
        .into_iter()
        .fold(u32::MAX, |crc, &byte| step(crc, byte))
}

/// Castagnoli's checksum without the inversion in the end, as Core Storage has it.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    let next = |crc, &byte: &u8| after(&CASTAGNOLI, crc, byte);
    bytes.iter().fold(u32::MAX, next)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check values of Williams' catalogue.
    #[test]
    fn are_those_of_the_catalogue() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
        assert_eq!(!crc32c(b"123456789"), 0xe306_9283);
    }
}
