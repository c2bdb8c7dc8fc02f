//! [`View`]: what was read of a device, as seen from a place where a volume may begin.

/// Parts of a device.
pub(super) struct Windows {
    /// Each part's offset and bytes, in order.
    pub(super) parts: Vec<(u64, Vec<u8>)>,
    /// Bytes of the device.
    pub(super) size: u64,
}

impl Windows {
    /// The device as if it began at `base`.
    pub(super) fn from(&self, base: u64) -> View<'_> {
        View {
            windows: self,
            base,
        }
    }
}

/// Windows, from a place on.
pub(super) struct View<'a> {
    windows: &'a Windows,
    base: u64,
}

impl View<'_> {
    /// Bytes at an offset, if all of them are inside what was read.
    pub(super) fn at(&self, offset: u64, length: usize) -> Option<&[u8]> {
        let offset = self.base.checked_add(offset)?;
        self.windows.parts.iter().find_map(|(start, bytes)| {
            let start = usize::try_from(offset.checked_sub(*start)?).ok()?;
            bytes.get(start..start.checked_add(length)?)
        })
    }

    pub(super) fn is(&self, offset: u64, magic: &[u8]) -> bool {
        self.at(offset, magic.len()) == Some(magic)
    }

    fn array<const N: usize>(&self, offset: u64) -> Option<[u8; N]> {
        self.at(offset, N)?.try_into().ok()
    }

    pub(super) fn be16(&self, offset: u64) -> Option<u16> {
        self.array(offset).map(u16::from_be_bytes)
    }

    pub(super) fn be32(&self, offset: u64) -> Option<u32> {
        self.array(offset).map(u32::from_be_bytes)
    }

    pub(super) fn le32(&self, offset: u64) -> Option<u32> {
        self.array(offset).map(u32::from_le_bytes)
    }

    /// Bytes from here to the end of the device.
    pub(super) fn size(&self) -> u64 {
        self.windows.size - self.base
    }

    pub(super) fn before_end(&self, distance: u64) -> Option<u64> {
        self.size().checked_sub(distance)
    }
}
