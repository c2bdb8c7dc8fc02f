//! [`Mapping`]: plain data that describes an opened volume.

use crate::judge::{self, State, Use};
use crate::{CryptDevice, VolumeError};
use block::layer::Slice;
use block::{BlockDevice, ByteRange};
use cipher::{
    Algorithm, Backend, CipherSpec, IvSector, Key, Mode, SectorLayout, SectorSize, Sharing,
};

/// An opened volume: our `dmsetup table` line.
#[derive(Debug)]
pub struct Mapping {
    /// Cipher, mode and IV generator.
    pub spec: CipherSpec,
    /// The volume key.
    pub key: Key,
    /// Encryption sector size and IV numbering.
    pub layout: SectorLayout,
    /// Where the data lies on the backing device.
    pub data: ByteRange,
    /// IV number of the first data sector, in the units that `layout` counts.
    pub first: IvSector,
    /// Backend to use; `None` takes the fastest that this processor has.
    pub backend: Option<Backend>,
    /// How several cores share large requests; `None` leaves each to the thread
    /// that submits it.
    pub sharing: Option<Sharing>,
    /// Whether discards reach the backing device (cryptsetup's `--allow-discards`).
    pub allow_discards: bool,
    /// Whether zeros on the backing device are zeros of the plaintext, and not noise. A volume in
    /// which discards make holes must always be read in this way.
    pub holes: bool,
}

impl Mapping {
    /// For the fastest backend and one core, without discards and holes.
    pub(crate) const fn new(
        spec: CipherSpec,
        key: Key,
        layout: SectorLayout,
        data: ByteRange,
        first: IvSector,
    ) -> Self {
        Self {
            spec,
            key,
            layout,
            data,
            first,
            backend: None,
            sharing: None,
            allow_discards: false,
            holes: false,
        }
    }

    /// A second view of the same data.
    pub(crate) fn duplicate(&self) -> Self {
        Self {
            key: Key::from_slice(self.key.as_bytes()),
            ..*self
        }
    }

    /// Refuses to write to `data` if nothing there shows that they are encrypted like this.
    ///
    /// # Errors
    /// Those of [`judge::check_together`].
    pub(crate) fn check_together(
        &self,
        use_: Use,
        data: &dyn BlockDevice,
        accepted: &[State],
    ) -> Result<(), VolumeError> {
        let stored = Slice::new(data, self.data)?;
        let plaintext = CryptDevice::new(data, self.duplicate())?;
        judge::check_together(use_, &stored, &plaintext, accepted)
    }
}

/// Sectors of `size`, whose IVs count units of 512 bytes.
pub(crate) const fn sectors_of(size: SectorSize) -> SectorLayout {
    SectorLayout {
        size,
        large_iv: false,
    }
}

/// Whether a key of XTS is one key twice, which undoes what the second is for.
pub(crate) fn has_equal_halves(spec: CipherSpec, key: &Key) -> bool {
    let (data, tweak) = key.as_bytes().split_at(key.len() / 2);
    let differ = data
        .iter()
        .zip(tweak)
        .fold(0, |differ, (a, b)| differ | (a ^ b));
    spec.mode() == Mode::Xts && !data.is_empty() && data.len() == tweak.len() && differ == 0
}

/// The whole sectors of `device` from `offset` to its end.
pub(crate) fn data_to_end(
    device: &dyn BlockDevice,
    offset: u64,
    layout: SectorLayout,
) -> Result<ByteRange, VolumeError> {
    within(device, described_to_end(device, offset, layout))
}

/// `length` bytes of `device` from `offset`.
pub(crate) fn data_of_size(
    device: &dyn BlockDevice,
    offset: u64,
    length: u64,
    layout: SectorLayout,
) -> Result<ByteRange, VolumeError> {
    let range = within(device, ByteRange { offset, length })?;
    described(offset, length, layout)?;
    Ok(range)
}

/// The same as [`data_to_end`]; one sector if the device ends before `offset`.
pub(crate) fn described_to_end(
    device: &dyn BlockDevice,
    offset: u64,
    layout: SectorLayout,
) -> ByteRange {
    let size = device.geometry().size;
    let sector = layout.size.bytes() as u64;
    let length = size.saturating_sub(offset) / sector * sector;
    ByteRange::new(offset, length.max(sector))
}

/// A data area as a header describes it, whether the device has all of it or not.
pub(crate) fn described(
    offset: u64,
    length: u64,
    layout: SectorLayout,
) -> Result<ByteRange, VolumeError> {
    let sector = layout.size.bytes() as u64;
    match length.is_multiple_of(sector) && length > 0 {
        true => Ok(ByteRange::new(offset, length)),
        false => Err(VolumeError::DataAlignment {
            offset,
            length,
            unit: sector as u32,
        }),
    }
}

/// Refuses a range that is not within `device`.
pub(crate) fn within(device: &dyn BlockDevice, range: ByteRange) -> Result<ByteRange, VolumeError> {
    let size = device.geometry().size;
    match range.end().is_some_and(|end| end <= size) {
        true => Ok(range),
        false => Err(VolumeError::DataArea {
            offset: range.offset,
            length: range.length,
            device: size,
        }),
    }
}

/// The key to give to `spec`: headers keep one even for the null cipher, which
/// takes none.
pub(crate) fn key_for(spec: &CipherSpec, key: &Key) -> Key {
    match spec.algorithms() {
        [Algorithm::Null] => Key::from_slice(&[]),
        _ => Key::from_slice(key.as_bytes()),
    }
}
