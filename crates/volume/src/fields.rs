//! Fields of binary headers.

use crate::crc::crc32;
use std::borrow::Cow;
use std::fmt;

/// A header whose length was checked: the accessors panic behind its end.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl Fields<'_> {
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

    /// Whether the checksum at `at` is that of all the bytes, itself as zero.
    pub(crate) fn has_crc32(&self, at: usize) -> bool {
        let parts = self.0[..at].iter().chain(&[0; 4]).chain(&self.0[at + 4..]);
        crc32(parts) == self.le32(at)
    }

    /// The text in `length` bytes from `at`, up to its first zero.
    ///
    /// A text without one takes all of them, as cryptsetup reads it.
    pub(crate) fn text(&self, at: usize, length: usize) -> HeaderText {
        let bytes = self.0[at..][..length].split(|&byte| byte == 0).next();
        HeaderText(bytes.unwrap_or_default().to_vec())
    }
}

/// A text in UTF-16, little endian, up to its first zero.
pub(crate) fn utf16(bytes: &[u8]) -> String {
    let units = bytes.as_chunks().0.iter();
    let units = units.map(|unit| u16::from_le_bytes(*unit));
    char::decode_utf16(units.take_while(|&unit| unit != 0))
        .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

/// A text of a header as it stands there: it need not be UTF-8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderText(Vec<u8>);

impl HeaderText {
    /// The bytes that the header has.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text, with replacement characters for what is not UTF-8.
    pub fn lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl From<String> for HeaderText {
    fn from(text: String) -> Self {
        Self(text.into_bytes())
    }
}

impl fmt::Display for HeaderText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.lossy())
    }
}
