//! [`Mapping`]: plain data that describes an opened volume.

use block::ByteRange;
use cipher::{Backend, CipherSpec, IvSector, Key, SectorLayout, Sharing};

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
}
