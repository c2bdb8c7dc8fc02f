//! New volumes of LUKS.

use super::encryption::{Encryption, plain_cipher};
use super::{Created, Creation, NewKey, begin, natural_sector_size, overwritten};
use crate::judge::{State, Use};
use crate::luks::checked_uuid;
use crate::luks_header::no_argon2;
use crate::luks2::{self, KeyslotOptions};
use crate::operate::wipe::{check_cipher, reserve, shred_header, zero};
use crate::operate::{Report, unwatched};
use crate::place::Place;
use crate::{
    Access, CryptDevice, Draft, Format, Hash, Kdf, Mapping, SealedDevice, SealedMapping,
    VolumeError, luks1,
};
use block::layer::Slice;
use block::{BlockDevice, ByteRange};
use cipher::Key;

/// A header, with room for all key slots, bytes.
const HEADER_BYTES: u64 = 16 << 20;

/// The bytes at either end in which programs look for a file system or a table.
const EDGE: u64 = 1 << 20;

/// Refuses what no place makes possible.
pub(super) fn check(creation: &Creation) -> Result<(), VolumeError> {
    Encryption::of(creation)?;
    creation.parameters.hash()?;
    checked_uuid(creation.uuid.as_deref())?;
    Ok(())
}

/// Refuses a cipher that does not protect the data, and tells what else is weak about it.
pub(super) fn weaknesses(place: &Place, creation: &Creation) -> Result<Vec<String>, VolumeError> {
    match Encryption::of(creation)?.data {
        Some(spec) => {
            let size = place.data().geometry().size;
            check_cipher(Use::Overwrite, spec, size, &creation.accepted)
        }
        None => Ok(Vec::new()),
    }
}

/// How the data of a new volume are reached.
enum Inside {
    Plain(Mapping),
    Sealed(SealedMapping),
}

/// The new header, before it is written.
struct Planned {
    uuid: String,
    inside: Inside,
}

pub(super) fn create(
    place: &mut Place,
    new: &NewKey,
    creation: &Creation,
    had_data: bool,
    report: Report<'_>,
) -> Result<Created, VolumeError> {
    weaknesses(place, creation)?;
    let encryption = Encryption::of(creation)?;
    new.check()?;
    let key = encryption.key(creation.volume_key.as_ref())?;
    let kdf = new.cost.kdf(creation.format, creation.parameters.hash()?)?;
    let [header, data] = place.devices();
    // An impossible request fails here, while the old volume is still there.
    let draft = Draft::new(&header);
    let planned = plan(place, &draft, (creation, &encryption), &key, (new, kdf))?;
    let sealed = match &planned.inside {
        Inside::Sealed(mapping) => Some(SealedDevice::fresh(&data, mapping)?),
        Inside::Plain(_) => None,
    };
    let before_data = creation.parameters.offset.unwrap_or(HEADER_BYTES);
    let size = header.geometry().size;
    reserve(&header, ByteRange::new(0, before_data.min(size)))?;
    if sealed.is_some() {
        reserve(&data, ByteRange::new(0, data.geometry().size))?;
    }
    begin(place, creation)?;
    let range = match &planned.inside {
        Inside::Plain(mapping) => mapping.data,
        Inside::Sealed(_) => ByteRange::new(0, sealed.as_ref().map_or(0, |it| it.geometry().size)),
    };
    let leaves_old_data = had_data && !creation.wipe && sealed.is_none();
    let write = || -> Result<(), VolumeError> {
        if creation.accepted.contains(&State::Data) {
            shred_header(&header)?;
        }
        match (planned.inside, &sealed) {
            (Inside::Plain(mapping), _) if creation.wipe || had_data => {
                take_over(&data, mapping, creation.wipe, report)?;
            }
            // Without a header, the half-written data are not taken for a volume.
            (_, Some(sealed)) => {
                sealed.format()?;
                if !creation.quick {
                    zero(sealed, report)?;
                }
            }
            _ => {}
        }
        draft.write()
    };
    write().map_err(|error| overwritten(place, error))?;
    Ok(Created {
        uuid: Some(planned.uuid),
        cipher: encryption.to_string(),
        key_bits: encryption.key_bytes * 8,
        derivation: kdf.to_string(),
        data: range,
        leaves_old_data,
    })
}

fn plan(
    place: &Place,
    draft: &Draft<'_>,
    (creation, encryption): (&Creation, &Encryption),
    key: &Key,
    (new, kdf): (&NewKey, Kdf),
) -> Result<Planned, VolumeError> {
    let said = &creation.parameters;
    let same_key = || Key::from_slice(key.as_bytes());
    let detached = place.is_apart();
    match (creation.format, kdf) {
        (Format::Luks1, Kdf::Pbkdf2 { hash, iterations }) => {
            let creation = luks1::Creation {
                spec: plain_cipher(creation)?,
                key_bytes: encryption.key_bytes,
                hash,
                iterations,
                payload_offset: said.offset,
                detached,
                uuid: creation.uuid.clone(),
            };
            let header = luks1::Header::create(draft, &creation, key, &new.secret)?;
            let mapping = header.mapping(same_key(), place.data())?;
            Ok(Planned {
                uuid: header.uuid.to_string(),
                inside: Inside::Plain(mapping),
            })
        }
        (Format::Luks1, Kdf::Argon2 { .. }) => Err(no_argon2()),
        _ => {
            let sector_size = said.sector_size()?;
            let creation = luks2::Creation {
                cipher: encryption.cipher.clone(),
                key_bytes: encryption.key_bytes,
                sector_size: sector_size.unwrap_or_else(|| natural_sector_size(place.data())),
                keyslot: KeyslotOptions {
                    af_hash: creation.parameters.hash()?.unwrap_or(Hash::Sha256),
                    // That was decided before.
                    allow_empty: true,
                    stop: creation.stop,
                    ..KeyslotOptions::new(kdf)
                },
                data_offset: said.offset,
                detached,
                label: creation.label.clone(),
                subsystem: creation.subsystem.clone(),
                uuid: creation.uuid.clone(),
            };
            let header = luks2::Header::create(draft, &creation, key, &new.secret)?;
            let inside = match header.is_sealed() {
                true => Inside::Sealed(header.sealed_mapping(same_key(), Access::Write)?),
                false => Inside::Plain(header.mapping(same_key(), place.data())?),
            };
            Ok(Planned {
                uuid: header.binary.uuid.to_string(),
                inside,
            })
        }
    }
}

/// Writes zeros into the volume: everywhere if `wipe`, or where a file system, or a table, of before
/// would be found. It shows later that the data belong to their header.
fn take_over(
    data: &dyn BlockDevice,
    mapping: Mapping,
    wipe: bool,
    report: Report<'_>,
) -> Result<(), VolumeError> {
    let size = mapping.data.length;
    let volume = CryptDevice::new(data, mapping)?;
    if wipe {
        return zero(&volume, report);
    }
    let edge = EDGE.min(size);
    for range in [ByteRange::new(0, edge), ByteRange::new(size - edge, edge)] {
        zero(&Slice::new(&volume, range)?, &unwatched)?;
    }
    Ok(())
}
