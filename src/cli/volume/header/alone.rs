//! A header without its volume: a backup, which can be tested.

use crate::cli::volume::arguments::{Devices, Volume};
use crate::cli::volume::secrets::SecretArguments;
use crate::cli::{Failure, limits};
use block::BlockDevice;
use volume::LuksHeader;

/// Opens the header in a file that ends where the data would begin, and says so;
/// nothing if there are data, or no header.
pub fn unlock(
    volume: &Volume,
    secret: &SecretArguments,
    devices: &Devices,
) -> Result<Option<String>, Failure> {
    if volume.header_path().is_some() || volume.family().is_some() || volume.is_headless() {
        return Ok(None);
    }
    let device = devices.data();
    let Ok(header) = LuksHeader::read(device) else {
        return Ok(None);
    };
    let (size, data) = (device.geometry().size, header.data_offset());
    let is_whole = size >= header.bytes_with_keyslots().min(data);
    if !is_whole || size > data || header.is_reencrypting() {
        return Ok(None);
    }
    let format = volume.format(device)?;
    volume.refuse_foreign_options(format)?;
    let secret = secret.secret(format, volume.image())?;
    let (slot, limits) = (volume.key_slot(), limits()?);
    let unlocked = match &header {
        LuksHeader::Luks1(header) => header.unlock(device, &secret, slot, &limits)?,
        LuksHeader::Luks2(header) => header.unlock(device, &secret, slot, &limits)?,
    };
    let slot = unlocked
        .slot
        .map_or_else(String::new, |slot| format!("keyslot     {slot}\n"));
    Ok(Some(format!(
        "{slot}key         {} bits\nthe header is sound, and what was given opens it; this is a \
         backup of a header, without data\n",
        unlocked.key.len() * 8
    )))
}
