//! The checksums CRC-32 and CRC-32C.

/// The change of the register of CRC-32 (IEEE) that each bit of the next byte causes. Secrets would
/// index a table of bytes, so there is none.
const IEEE: [u32; 8] = {
    let mut shares = [0; 8];
    let mut crc = 1;
    let mut bit = 8;
    while bit > 0 {
        bit -= 1;
        crc = shifted(0xedb8_8320, crc);
        shares[bit] = crc;
    }
    shares
};

/// The change of the register of CRC-32C (Castagnoli) that each value of the next byte causes.
const CASTAGNOLI: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = shifted(0x82f6_3b78, crc);
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// The register after a zero bit. The bits of both are reversed.
const fn shifted(polynomial: u32, crc: u32) -> u32 {
    (crc >> 1) ^ (polynomial & (crc & 1).wrapping_neg())
}

/// The register of IEEE 802.3's after one more byte.
pub(crate) const fn step(crc: u32, byte: u8) -> u32 {
    let out = crc ^ byte as u32;
    let mut crc = crc >> 8;
    let mut bit = 0;
    while bit < 8 {
        crc ^= IEEE[bit] & (out >> bit & 1).wrapping_neg();
        bit += 1;
    }
    crc
}

/// The checksum of IEEE 802.3.
pub(crate) fn crc32<'a>(bytes: impl IntoIterator<Item = &'a u8>) -> u32 {
    !bytes
        .into_iter()
        .fold(u32::MAX, |crc, &byte| step(crc, byte))
}

/// Castagnoli's checksum without the final inversion, as Core Storage has it. `bytes`
/// must not be secret: they index a table.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |crc, byte| {
        (crc >> 8) ^ CASTAGNOLI[usize::from(crc as u8 ^ byte)]
    })
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
