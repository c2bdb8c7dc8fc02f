//! [`Extent`]: what is stored of a range, and what is a hole.

use crate::ByteRange;

/// A run of bytes, and whether something is stored there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Where.
    pub range: ByteRange,
    /// Nothing is stored, and it reads as zeros.
    pub hole: bool,
}

impl Extent {
    /// Puts `self` behind `extents`, as one with the last where both are alike
    /// and meet; nothing where it is empty.
    pub fn append_to(self, extents: &mut Vec<Self>) {
        match extents.last_mut() {
            _ if self.range.length == 0 => {}
            Some(last) if last.hole == self.hole && last.range.end() == Some(self.range.offset) => {
                last.range.length += self.range.length;
            }
            _ => extents.push(self),
        }
    }
}
