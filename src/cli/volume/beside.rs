//! The file IMAGE.cryptmark-header, in which an interrupted reencryption keeps its keys: whether it
//! belongs to the volume.

use super::arguments::side_header;
use super::disk::Disk;
use crate::cli::Failure;
use std::fs::{self, Metadata};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use volume::LuksHeader;
use volume::judge::Use;

/// Refuses such a file that another user has put there, or that is of another volume. One that is
/// used is named once.
///
/// # Errors
/// Exit code 4; those of reading.
pub fn check(image: &Path) -> Result<(), Failure> {
    let side = side_header(image);
    let Ok(found) = fs::symlink_metadata(&side) else {
        return Ok(());
    };
    let refused = |what: String| {
        Err(Failure::new(
            4,
            format!("{} {what}", side.display()),
            "Find out who made that file. Move it away if it does not belong to the volume; \
             otherwise, name it with --header.",
        ))
    };
    if !found.is_file() {
        return refused("has the name of a reencryption's file, and is none".to_owned());
    }
    if let Some(owner) = stranger(&found, image) {
        return refused(format!("belongs to the user with the number {owner}"));
    }
    let read = |path: &Path| LuksHeader::read(&Disk::open(path, Use::Read).ok()?).ok();
    if let (Some(header), Some(own)) = (read(&side), read(image))
        && !header.uuid().eq_ignore_ascii_case(&own.uuid())
    {
        return refused(format!(
            "is a header of the volume {}, and {} is the volume {}",
            header.uuid(),
            image.display(),
            own.uuid()
        ));
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

/// The owner of such a file, unless it is this user, root, or the owner of the volume.
#[cfg(unix)]
fn stranger(found: &Metadata, image: &Path) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let owner = found.uid();
    #[cfg(target_os = "linux")]
    let own = rustix::process::geteuid().as_raw();
    #[cfg(not(target_os = "linux"))]
    let own = 0;
    let of_image = fs::metadata(image).ok().map(|image| image.uid());
    (owner != own && owner != 0 && Some(owner) != of_image).then_some(owner)
}

#[cfg(not(unix))]
fn stranger(_: &Metadata, _: &Path) -> Option<u32> {
    None
}
