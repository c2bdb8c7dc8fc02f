//! What headers say, as data for programs.

use crate::error::impossible;
use crate::luks2::{Keyslot, Place, Priority, Recovered, SegmentKind};
use crate::parts::{Kind, Obstacle, Part};
use crate::{
    Format, Limits, Opened, VolumeError, bestcrypt, bitlk, fvault2, luks1, luks2, tcrypt, volume,
};
use block::{BlockDevice, FileDevice, FileOptions};
use serde_json::{Map, Value, json};
use std::path::Path;

/// What the header of the volume at `path` says without any secret, as [`header`] has it. `None`
/// finds the format by its signature.
///
/// # Errors
/// Those of [`header`]; [`VolumeError::NoSignature`], [`VolumeError::StartLost`], and
/// [`VolumeError::Block`] with what is wrong at `path`.
pub fn at(path: &Path, format: Option<Format>) -> Result<Value, VolumeError> {
    let options = FileOptions {
        direct: false,
        ..FileOptions::default()
    };
    on(&FileDevice::open(path, &options)?, format)
}

/// What the header of the volume on `device` says without any secret, as [`header`] has it. `None`
/// finds the format by its signature.
///
/// # Errors
/// Those of [`at`].
pub fn on(device: &dyn BlockDevice, format: Option<Format>) -> Result<Value, VolumeError> {
    let format = match format {
        Some(format) => format,
        None => volume::detect(device)?,
    };
    header(format, device)
}

/// What the header of a volume of `format` on `device` says without any secret: an object with
/// `format` and members that depend on the format, such as `uuid`, `cipher`, `key_bits` and
/// `keyslots` by their numbers. Lengths and offsets are bytes. A member `unusable` says why
/// something cannot be used.
///
/// # Errors
/// [`VolumeError::Impossible`] for a format whose header says nothing without the passphrase; those of
/// reading the header.
pub fn header(format: Format, device: &dyn BlockDevice) -> Result<Value, VolumeError> {
    Ok(match format {
        Format::Luks1 => luks1(device)?,
        Format::Luks2 => luks2(&luks2::Header::read(device)?),
        Format::Bestcrypt => bestcrypt(&bestcrypt::Header::read(device)?),
        Format::Fvault2 => fvault2(&fvault2::Header::read(device)?),
        Format::Bitlk => bitlk(&bitlk::Header::read(device)?, device),
        Format::Tcrypt
        | Format::Veracrypt
        | Format::Plain
        | Format::Cryptoloop
        | Format::LoopAes => {
            return Err(impossible(
                format!(
                    "{} has no header that can be read without its passphrase",
                    format.article()
                ),
                "Open it with `cryptmark volume open`.",
            ));
        }
    })
}

/// What a table says of a part of a disk: `name`, `label`, `uuid`, `kind`, `partition_type`, and
/// `ranges` on the disk in bytes. A member `unusable` or `read_only` says why it is that.
pub fn part(part: &Part) -> Map<String, Value> {
    let (kind, code) = match &part.kind {
        Kind::GptPartition { type_uuid } => ("gpt", Some(type_uuid.clone())),
        Kind::MbrPartition { type_code } => ("mbr", Some(format!("{type_code:02x}"))),
        Kind::LogicalVolume => ("lvm", None),
        Kind::RaidData => ("raid", None),
    };
    let ranges = part.ranges.iter();
    let ranges: Value = ranges
        .map(|range| json!({ "offset": range.offset, "length": range.length }))
        .collect();
    let obstacle = part.obstacle.as_ref().map(|obstacle| match obstacle {
        Obstacle::Unusable(reason) => ("unusable", json!(reason)),
        Obstacle::ReadOnly(reason) => ("read_only", json!(reason)),
    });
    let members = [
        ("name", json!(part.name)),
        ("label", json!(part.label)),
        ("uuid", json!(part.uuid)),
        ("kind", json!(kind)),
        ("ranges", ranges),
    ];
    let code = code.map(|code| ("partition_type", json!(code)));
    let members = members.into_iter().chain(code).chain(obstacle);
    members
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// What the header of a TrueCrypt or VeraCrypt volume says, which `opening` has unlocked.
///
/// # Errors
/// Those of [`tcrypt::Prf::kdf`].
pub fn tcrypt(
    opening: &tcrypt::Opening,
    unlocked: &tcrypt::Unlocked,
) -> Result<Value, VolumeError> {
    let (header, family) = (&unlocked.header, opening.family);
    let kdf = unlocked.prf.kdf(family, unlocked.place, opening.pim)?;
    Ok(json!({
        "format": family.format().name(),
        "header": match unlocked.place {
            tcrypt::Place::Normal => "normal",
            tcrypt::Place::NormalBackup => "backup of the normal one",
            tcrypt::Place::Hidden => "hidden",
            tcrypt::Place::HiddenBackup => "backup of the hidden one",
            tcrypt::Place::System => "system",
        },
        "header_offset": unlocked.offset,
        "header_version": header.version,
        "least_program": format!("{:x}.{:02x}", header.least_program >> 8, header.least_program & 0xff),
        "cipher": unlocked.spec.to_string(),
        "kdf": kdf.to_string(),
        "volume_bytes": header.volume_size,
        "hidden_bytes": header.hidden_size,
        "data_offset": header.data_offset,
        "encrypted_bytes": header.encrypted_bytes,
        "sector_size": header.sector_size,
        "flags": header.flags,
        "volume_time": header.volume_time,
        "header_time": header.header_time,
    }))
}

/// The mappings of an opened volume, an array.
pub(crate) fn mappings(opened: &Opened) -> Value {
    let rows = opened.rows.iter().map(|row| &row.mapping);
    let whole = opened.bitlk.iter().map(|bitlk| &bitlk.mapping);
    let mut said: Vec<Value> = rows
        .chain(whole)
        .map(|mapping| {
            json!({
                "cipher": mapping.spec.to_string(),
                "key_bits": mapping.key.len() * 8,
                "sector_size": mapping.layout.size.bytes(),
                "offset": mapping.data.offset,
                "length": mapping.data.length,
                "first_iv": mapping.first.get(),
            })
        })
        .collect();
    said.extend(opened.sealed.iter().map(|sealed| {
        json!({
            "cipher": sealed.encryption.to_string(),
            "integrity": sealed.integrity.to_string(),
            "key_bits": sealed.key.len() * 8,
            "sector_size": sealed.sector_size.bytes(),
        })
    }));
    Value::Array(said)
}

/// An object of things by their numbers or names.
fn members(said: impl IntoIterator<Item = (impl ToString, Value)>) -> Value {
    let named = said.into_iter();
    Value::Object(named.map(|(name, said)| (name.to_string(), said)).collect())
}

fn bestcrypt(header: &bestcrypt::Header) -> Value {
    let slots = header.keyslots.iter();
    let keyslots = slots.map(|slot| (slot.number, json!({ "type": slot.kind.name() })));
    json!({
        "format": "bestcrypt",
        "description": header.description,
        "key_generator": format!("{}, version {}", header.generator, header.generator_version),
        "iterations": header.iterations,
        "hash": header.hash.name(),
        "cipher": "aes",
        "mode": header.mode.to_string(),
        "data_offset": header.data_start,
        "data_bytes": header.data_length,
        "keyslots": members(keyslots),
    })
}

fn bitlk(header: &bitlk::Header, device: &dyn BlockDevice) -> Value {
    let size = device.geometry().size;
    let encrypted = header.conversion.encrypted_bytes(size);
    let protectors = header.protectors.iter().map(|protector| {
        let name = protector.name.as_deref();
        let said = json!({
            "type": protector.kind.name(),
            "changed": windows_time(protector.modified),
            "opened_by": protector.kind.opened_by(),
            "name": name.filter(|name| !name.is_empty()),
        });
        (&protector.identifier, without_unknowns(said))
    });
    let lost = header.conversion.lost();
    without_unknowns(json!({
        "format": "bitlk",
        "made_by": match header.generation {
            bitlk::Generation::Vista => "Windows Vista",
            bitlk::Generation::Seven => "Windows 7 or later",
            bitlk::Generation::ToGo => "BitLocker To Go",
        },
        "uuid": header.identifier.to_string(),
        "description": header.description,
        "created": windows_time(header.created),
        "metadata_version": header.version,
        "copies": header.copies.each_ref().map(ToString::to_string),
        "cipher": header.method.spec().to_string(),
        "key_bits": header.method.key_bytes() * 8,
        "sector_size": header.sector_size.bytes(),
        "state": header.conversion.state.name(),
        "volume_bytes": size,
        "encrypted_bytes": encrypted,
        "encrypt_on_write": header.conversion.is_on_write(),
        "bitmaps": lost.map(|damage| format!("damaged: {damage}")),
        "protectors": members(protectors),
    }))
}

fn without_unknowns(mut said: Value) -> Value {
    if let Some(members) = said.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    said
}

fn fvault2(header: &fvault2::Header) -> Value {
    let users = header.users.iter().map(|user| {
        without_unknowns(json!({
            "identifier": user.identifier,
            "hint": user.hint,
            "kdf": format!("pbkdf2-sha256, {} iterations", user.iterations),
        }))
    });
    let extents: Vec<Value> = header
        .extents
        .iter()
        .map(|extent| {
            json!({
                "start": extent.start,
                "offset": extent.place.offset,
                "size": extent.place.length,
            })
        })
        .collect();
    without_unknowns(json!({
        "format": "fvault2",
        "physical_volume": header.physical.to_string(),
        "family": header.family.to_string(),
        "name": header.name,
        "cipher": "aes-xts-plain64",
        "key_bits": 256,
        "state": header.conversion,
        "volume_bytes": header.size,
        "data_offset": header.extents.first().map(|extent| extent.place.offset),
        "extents": (extents.len() > 1).then_some(extents),
        "users": members(users.enumerate()),
    }))
}

/// A time in 100 ns since 1601, as Windows counts.
fn windows_time(ticks: u64) -> Option<String> {
    const SECONDS_TO_1970: i64 = 11_644_473_600;
    let seconds = (ticks / 10_000_000) as i64 - SECONDS_TO_1970;
    let time = jiff::Timestamp::from_second(seconds).ok()?;
    (ticks > 0).then(|| time.to_string())
}

/// The fields of a header, including one that cannot be used.
fn luks1(device: &dyn BlockDevice) -> Result<Value, VolumeError> {
    let outline = luks1::Outline::read(device)?;
    let texts = &outline.texts;
    let mut keyslots = serde_json::Map::new();
    for (number, keyslot) in (0_u32..).zip(&outline.keyslots) {
        let said = match &keyslot.unusable {
            Some(why) => json!({ "unusable": why.to_string() }),
            None if keyslot.active => json!({
                "kdf": format!("pbkdf2-{}", texts.hash),
                "iterations": keyslot.iterations,
                "offset": keyslot.offset,
                "stripes": keyslot.stripes,
            }),
            None => continue,
        };
        keyslots.insert(number.to_string(), said);
    }
    let mut info = json!({
        "format": "luks1",
        "uuid": texts.uuid.lossy(),
        "cipher": texts.notation(),
        "key_bits": outline.key_bytes * 8,
        "hash": texts.hash.lossy(),
        "payload_offset": outline.payload_offset,
        "keyslots": keyslots,
    });
    if let Err(error) = luks1::Header::read(device) {
        info["unusable"] = json!(error.to_string());
    }
    Ok(info)
}

fn luks2(header: &luks2::Header) -> Value {
    let metadata = &header.metadata;
    let keyslots = metadata.keyslots.iter().map(|(number, keyslot)| {
        let bound = metadata
            .digests
            .values()
            .any(|digest| digest.keyslots.contains(number) && !digest.segments.is_empty());
        let mut said = match keyslot {
            Keyslot::Luks2(keyslot) => json!({
                "type": "luks2",
                "key_bits": keyslot.key_bytes * 8,
                "priority": match keyslot.priority {
                    Priority::Ignore => "ignore",
                    Priority::Normal => "normal",
                    Priority::Prefer => "prefer",
                },
                "bound": bound,
                "kdf": keyslot.kdf.to_string(),
                "cipher": keyslot.encryption,
                "cipher_key_bits": keyslot.area_key_bytes * 8,
                "af_stripes": keyslot.af.stripes,
                "af_hash": keyslot.af.hash.name(),
                "offset": keyslot.area.offset,
                "size": keyslot.area.length,
            }),
            Keyslot::Other {
                kind,
                key_bytes,
                area,
                ..
            } => without_unknowns(json!({
                "type": kind,
                "key_bits": key_bytes.map(|bytes| bytes * 8),
                "offset": area.map(|area| area.offset),
                "size": area.map(|area| area.length),
            })),
        };
        if let Err(error) = header.check_keyslot(*number, &Limits::default()) {
            said["unusable"] = json!(error.to_string());
        }
        (number, said)
    });
    let segments = metadata.segments.iter().map(|(number, segment)| {
        let mut said = json!({
            "offset": segment.offset,
            "size": segment.size.map_or(json!("dynamic"), |bytes| json!(bytes)),
        });
        match &segment.kind {
            SegmentKind::Linear => said["type"] = json!("linear"),
            SegmentKind::Other { kind, .. } if segment.is_of_the_drive() => {
                said["type"] = json!(kind);
                said["unusable"] = json!("hardware encryption of the drive (OPAL)");
            }
            SegmentKind::Other { kind, why } => {
                said["type"] = json!(kind);
                said["unusable"] = json!(why.to_string());
            }
            SegmentKind::Crypt(crypt) => {
                said["type"] = json!("crypt");
                said["cipher"] = json!(crypt.encryption);
                said["sector_size"] = json!(crypt.sector_size.bytes());
                said["iv_tweak"] = json!(crypt.iv_tweak);
                if let Some(integrity) = &crypt.integrity {
                    said["integrity"] = json!(integrity.kind);
                }
            }
        }
        if !segment.flags.is_empty() {
            said["flags"] = json!(segment.flags);
        }
        (number, said)
    });
    let digests = metadata.digests.iter().map(|(number, digest)| {
        let (kdf, unusable) = match &digest.verifier {
            Ok(verifier) => (Some(verifier.kdf.to_string()), None),
            Err(why) => (None, Some(why.to_string())),
        };
        let said = json!({
            "keyslots": digest.keyslots,
            "segments": digest.segments,
            "kdf": kdf,
            "unusable": unusable,
        });
        (number, without_unknowns(said))
    });
    let tokens = header.tokens().into_iter().map(|(number, token)| {
        let mut said = json!({ "type": token.kind, "keyslots": token.keyslots });
        if let Some(words) = token.opened_by {
            said["opened_by"] = json!(words);
        }
        if let Some(members) = said.as_object_mut() {
            members.extend(token.details);
        }
        (number, said)
    });
    let mut info = json!({
        "format": "luks2",
        "uuid": header.binary.uuid.lossy(),
        "label": header.binary.label.lossy(),
        "subsystem": header.binary.subsystem.lossy(),
        "epoch": header.binary.seqid,
        "header_bytes": header.binary.header_size,
        "keyslots_bytes": metadata.config.keyslots_size,
        "copies": match header.recovered {
            Recovered::Both => "both are good",
            Recovered::Only(Place::Primary) => "only the first counts",
            Recovered::Only(Place::Secondary) => "only the second counts",
        },
        "flags": metadata.config.flags,
        "requirements": metadata.config.requirements,
        "keyslots": members(keyslots),
        "segments": members(segments),
        "digests": members(digests),
        "tokens": members(tokens),
    });
    if let Err(error) = header.check_data() {
        info["unusable"] = json!(error.to_string());
    }
    info
}
