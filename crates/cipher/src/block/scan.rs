//! A look-up that reads its whole table: for key schedules, where it may take
//! long and the index is secret.

/// Entry `x` of a table of words, without a branch or a load that depends on
/// `x`.
pub(crate) fn word(table: &[u32; 256], x: u8) -> u32 {
    let mut found = 0;
    for (i, entry) in table.iter().enumerate() {
        let differs = i as u32 ^ u32::from(x);
        // All ones for zero.
        let mask = (differs.wrapping_sub(1) as i32 >> 31) as u32;
        found |= entry & mask;
    }
    found
}

/// Entry `x` of `table`, without a branch or a load that depends on `x`.
pub(crate) fn look_up(table: &[u8; 256], x: u8) -> u8 {
    let mut found = 0;
    for (i, entry) in table.iter().enumerate() {
        let differs = i as u8 ^ x;
        // All ones for zero.
        let mask = (u16::from(differs).wrapping_sub(1) >> 8) as u8;
        found |= entry & mask;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{look_up, word};

    #[test]
    fn finds_every_entry() {
        let table = std::array::from_fn(|i| (i * 7 + 3) as u8);
        for x in 0..=255 {
            assert_eq!(look_up(&table, x), table[usize::from(x)]);
        }
    }

    #[test]
    fn finds_every_word() {
        let table = std::array::from_fn(|i| (i as u32 + 3).wrapping_mul(0x9e37_79b1));
        for x in 0..=255 {
            assert_eq!(word(&table, x), table[usize::from(x)]);
        }
    }
}
