//! A part of a disk in the place of the whole one, which `--partition` names.

use super::Disk;
use crate::cli::Failure;
use block::{BlockDevice, BlockError, ByteRange, Extent};
use std::path::Path;
use std::sync::Arc;
use volume::VolumeError;
use volume::parts::{Part, PartError, Parts};

/// A part, and the disk that it is on.
pub struct OpenPart {
    whole: Arc<Disk>,
    part: Part,
    device: Box<dyn BlockDevice>,
}

impl OpenPart {
    /// The part called `name` of `whole`, which `place` names.
    ///
    /// # Errors
    /// Exit code 2 if there is none, or if it cannot be used so.
    pub fn of(whole: Disk, place: &Path, name: &str, write: bool) -> Result<Self, Failure> {
        let parts = Parts::find(&whole)?;
        let part = parts.choose(name, write).map_err(|error| {
            let remedy = match error {
                PartError::Obstacle { writing: true, .. } => {
                    "Open it with --read-only, or copy it out."
                }
                PartError::Obstacle { .. } => "Name another part.",
                _ => "`cryptmark volume find` lists the parts.",
            };
            Failure::new(2, format!("{}: {error}", place.display()), remedy)
        })?;
        let part = part.clone();
        let whole = Arc::new(whole);
        let device = part.open(whole.clone()).map_err(VolumeError::Block)?;
        Ok(Self {
            whole,
            part,
            device,
        })
    }

    /// The part.
    pub fn device(&self) -> &dyn BlockDevice {
        &*self.device
    }

    /// The disk that it is on.
    pub fn whole(&self) -> &Disk {
        &self.whole
    }

    /// Where its start is on the disk.
    pub fn first_range(&self) -> Option<ByteRange> {
        self.part.ranges.first().copied()
    }

    /// Calls `work` for what of the disk is `range` of the part.
    pub fn each(
        &self,
        range: ByteRange,
        mut work: impl FnMut(&Disk, ByteRange) -> Result<(), BlockError>,
    ) -> Result<(), BlockError> {
        for piece in self.part.placed(range) {
            work(&self.whole, piece)?;
        }
        Ok(())
    }

    /// The stored ranges and the holes in `range` of the part, from those of the whole disk.
    pub fn extents(&self, range: ByteRange) -> Result<Vec<Extent>, BlockError> {
        let mut found = Vec::new();
        let mut at = range.offset;
        for piece in self.part.placed(range) {
            for extent in self.whole.extents(piece)? {
                let inside = extent.range.offset - piece.offset;
                found.push(Extent {
                    range: ByteRange::new(at + inside, extent.range.length),
                    hole: extent.hole,
                });
            }
            at += piece.length;
        }
        Ok(found)
    }
}
