//! Fields of binary headers.

use crate::Damage;

/// A header whose length was checked: the accessors panic behind its end.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    /// The `N` bytes from `at`.
    pub(crate) fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        *self.0[at..]
            .first_chunk()
            .expect("the header is long enough")
    }

    pub(crate) fn be16(&self, at: usize) -> u16 {
        u16::from_be_bytes(self.array(at))
    }

    pub(crate) fn be32(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.array(at))
    }

    pub(crate) fn be64(&self, at: usize) -> u64 {
        u64::from_be_bytes(self.array(at))
    }

    pub(crate) fn le16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.array(at))
    }

    pub(crate) fn le32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }

    pub(crate) fn le64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }

    /// The text in `length` bytes from `at`, which ends with its first zero.
    pub(crate) fn text(&self, name: &str, at: usize, length: usize) -> Result<&'a str, Damage> {
        let bytes = self.0[at..][..length]
            .split(|&byte| byte == 0)
            .next()
            .unwrap_or_default();
        match std::str::from_utf8(bytes) {
            Ok(text) if bytes.len() < length => Ok(text),
            _ => Err(Damage::Kind {
                field: name.into(),
                expected: "a text that ends with a zero byte",
            }),
        }
    }
}
