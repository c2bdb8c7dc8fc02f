//! A discard of the free space of a mounted file system, tried.

use super::{Layer, LayerError, Layers};
use crate::{AlignedBuffer, BlockDevice, BlockError, ByteRange, program};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::Stdio;

/// The amount that is written and deleted, MiB.
pub const WRITTEN: u64 = 32;

/// What came of a discard.
#[derive(Debug)]
pub struct Trial {
    /// The bytes that the file system discarded, or why it did not.
    pub sent: Result<u64, String>,
    /// The layers below it, the topmost first, and the bytes that each discarded.
    pub heard: Vec<(Layer, u64)>,
}

impl Trial {
    /// Writes a file in `directory`, where a file system is mounted, deletes it, and has all free
    /// space discarded.
    ///
    /// # Errors
    /// [`LayerError::Unwritten`], [`LayerError::Uncounted`], [`LayerError::NoFstrim`] and
    /// [`LayerError::Strange`].
    pub fn run(directory: &Path, layers: &Layers) -> Result<Self, LayerError> {
        let failed = |source: io::Error| LayerError::Unwritten {
            directory: directory.to_owned(),
            source,
        };
        let path = directory.join(format!(".cryptmark-trim-{}", std::process::id()));
        let written = write(&path).map_err(failed);
        let before = layers.counts().map_err(LayerError::Uncounted);
        // Also what could not be written whole.
        let removed = fs::remove_file(&path).map_err(failed);
        written.and(removed)?;
        rustix::fs::syncfs(File::open(directory).map_err(failed)?)
            .map_err(|error| failed(error.into()))?;
        let sent = fstrim(directory)?;
        let after = layers.counts().map_err(LayerError::Uncounted);
        let counts = before?.into_iter().zip(after?);
        let discarded = counts.map(|(before, after)| after.saturating_sub(before));
        let heard = layers.names().cloned().zip(discarded).collect();
        Ok(Self { sent, heard })
    }
}

fn write(path: &Path) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    let mut noise = AlignedBuffer::new(1 << 20);
    for round in 0..WRITTEN {
        for (at, byte) in noise.iter_mut().enumerate() {
            *byte = (((at as u64 + round) * 2_654_435_761) >> 13) as u8;
        }
        file.write_all(&noise)?;
    }
    file.sync_all()
}

/// Tells the file system to discard what is free: how much that was, or why not.
fn fstrim(directory: &Path) -> Result<Result<u64, String>, LayerError> {
    let output = program::command("fstrim")
        .arg("-v")
        .arg(directory)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(LayerError::NoFstrim)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().next().unwrap_or("it gives no reason");
        return Ok(Err(said.trim_start_matches("fstrim: ").to_owned()));
    }
    // DIR: 58.9 MiB (61767680 bytes) trimmed
    let said = String::from_utf8_lossy(&output.stdout);
    let bytes = said
        .rsplit_once('(')
        .and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    let said = said.trim().to_owned();
    bytes.map(Ok).ok_or(LayerError::Strange { said })
}

/// The state of a part of an image, as an observer sees it that knows the image from before its
/// use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Nothing is stored there.
    Hole,
    /// It is as it was.
    Same,
    /// It was written.
    Written,
}

/// The state of every `field` bytes of `range` of an image now, beside what it was before.
///
/// # Errors
/// Those of reading both.
pub fn seen(
    [now, before]: [&dyn BlockDevice; 2],
    range: ByteRange,
    field: usize,
) -> Result<Vec<Seen>, BlockError> {
    let [mut new, mut old] = [(); 2].map(|()| AlignedBuffer::new(field));
    let mut map = Vec::new();
    for at in (range.offset..range.offset + range.length).step_by(field) {
        now.read_at(at, &mut new)?;
        before.read_at(at, &mut old)?;
        let extents = now.extents(ByteRange::new(at, field as u64))?;
        map.push(match *new == *old {
            _ if extents.iter().all(|extent| extent.hole) => Seen::Hole,
            true => Seen::Same,
            false => Seen::Written,
        });
    }
    Ok(map)
}
