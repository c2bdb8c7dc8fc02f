//! The file IMAGE.cryptmark-header, in which an interrupted reencryption keeps its keys.

use super::arguments::side_header;
use super::disk::Disk;
use crate::cli::Failure;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use volume::check_beside;
use volume::judge::Use;

/// Refuses such a file that is not the volume's. One that is used is named once.
///
/// # Errors
/// Exit code 4; those of reading.
pub fn check(image: &Path) -> Result<(), Failure> {
    let side = side_header(image);
    if side.symlink_metadata().is_err() {
        return Ok(());
    }
    let [header, data] = [&*side, image].map(|path| Disk::open(path, Use::Read));
    if let (Ok(header), Ok(data)) = (&header, &data) {
        check_beside((&side, header), (image, data))?;
    }
    static NAMED: AtomicBool = AtomicBool::new(false);
    if !NAMED.swap(true, Ordering::Relaxed) {
        eprintln!(
            "note: a reencryption of {} was interrupted, and {} has its header",
            image.display(),
            side.display()
        );
    }
    Ok(())
}
