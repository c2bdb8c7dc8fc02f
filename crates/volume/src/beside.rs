//! The file beside a volume, in which an interrupted reencryption keeps its header.

use crate::error::{impossible, standing};
use crate::tcrypt;
use crate::{Format, LuksHeader, Parameters, Secret, VolumeError};
use block::BlockDevice;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

/// What the names of such files end in.
const SUFFIX: &str = ".cryptmark-header";

/// The path of the header of the volume at `image` while it is encrypted or decrypted in place.
/// `part` is the name of its partition, if it is one in a file.
pub fn side_header(image: &Path, part: Option<&str>) -> PathBuf {
    let part = part.map_or_else(String::new, |part| format!(".{part}"));
    // All links to it lead to one volume.
    let image = image.canonicalize().unwrap_or_else(|_| image.to_owned());
    let mut name = image.into_os_string();
    name.push(part.replace(['/', '\0'], "-"));
    name.push(SUFFIX);
    name.into()
}

/// Refuses to make the file `path` under a name that an interrupted reencryption would have. It would
/// be taken for its header.
///
/// # Errors
/// [`VolumeError::Impossible`].
pub fn check_new_name(path: &Path) -> Result<(), VolumeError> {
    match path
        .as_os_str()
        .as_encoded_bytes()
        .ends_with(SUFFIX.as_bytes())
    {
        true => Err(impossible(
            format!("{} is a name that is used here itself", path.display()),
            "Give the file another name.",
        )),
        false => Ok(()),
    }
}

/// Refuses the file `side` beside the volume `image` if another user has put it there, if it is no
/// header of a reencryption, or if it is of another volume. Each is a path and what is open there.
///
/// # Errors
/// [`VolumeError::Standing`], and [`VolumeError::OtherData`] for other data than those with which it
/// began.
pub fn check_beside(
    (side, header): (&Path, &dyn BlockDevice),
    (image, data): (&Path, &dyn BlockDevice),
) -> Result<(), VolumeError> {
    let refused = |why: String| {
        Err(standing(
            format!("{} {why}", side.display()),
            "Find out who made that file. Move it away if it does not belong to the volume; \
             otherwise, name it with `header`.",
        ))
    };
    let Ok(found) = fs::symlink_metadata(side) else {
        return Ok(());
    };
    if !found.is_file() {
        return refused("has the name of a reencryption's file, and is none".to_owned());
    }
    if let Some(owner) = stranger(&found, image) {
        return refused(format!("belongs to the user with the number {owner}"));
    }
    // One that is damaged may be mended.
    let is_other = match LuksHeader::read(header) {
        Ok(LuksHeader::Luks1(_)) => true,
        Ok(LuksHeader::Luks2(_)) => false,
        Err(error) => matches!(error, VolumeError::NotThis { .. }),
    };
    if is_other {
        return refused("isn't the header of a reencryption".to_owned());
    }
    // That of a TrueCrypt or VeraCrypt volume knows the noise in the place of the volume's headers.
    if let Ok(LuksHeader::Luks2(header)) = LuksHeader::read(header)
        && header.is_for_another()
    {
        header.check_headers(data)?;
    }
    let read = |device| LuksHeader::read(device).ok().map(|header| header.uuid());
    match (read(header), read(data)) {
        (Some(other), Some(own)) if !other.eq_ignore_ascii_case(&own) => refused(format!(
            "is a header of the volume {other}, and {} is the volume {own}",
            image.display()
        )),
        _ => Ok(()),
    }
}

/// How a TrueCrypt or VeraCrypt volume opens while it is reencrypted: by the file beside it, which
/// has a header of LUKS2, and with the password into which its key files are mixed.
#[derive(Debug)]
pub struct Meanwhile(tcrypt::Opening);

impl Meanwhile {
    /// That of a volume which is called one of `format`, if `header` is such a file.
    ///
    /// # Errors
    /// Those of parameters that make no sense.
    pub fn of(
        format: Option<Format>,
        parameters: &Parameters,
        header: &dyn BlockDevice,
    ) -> Result<Option<Self>, VolumeError> {
        let Some(family) = format.and_then(Format::family) else {
            return Ok(None);
        };
        match LuksHeader::read(header) {
            Ok(LuksHeader::Luks2(header)) if header.is_for_another() => {
                Ok(Some(Self(parameters.tcrypt(family)?)))
            }
            _ => Ok(None),
        }
    }

    /// What opens that header, of what opens the volume.
    ///
    /// # Errors
    /// [`VolumeError::SecretKind`].
    pub fn secret(&self, secret: &Secret) -> Result<Secret, VolumeError> {
        Ok(Secret::Passphrase(self.0.password(secret)?))
    }
}

/// The owner of such a file, unless it is this user, root, or the owner of the volume.
#[cfg(unix)]
fn stranger(found: &Metadata, image: &Path) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let owner = found.uid();
    // Where there is no such folder, only the other two count.
    let known = [Path::new("/proc/self"), image].map(|path| fs::metadata(path).ok());
    let mut known = known.iter().flatten().map(MetadataExt::uid);
    (owner != 0 && !known.any(|known| known == owner)).then_some(owner)
}

#[cfg(not(unix))]
fn stranger(_: &Metadata, _: &Path) -> Option<u32> {
    None
}
