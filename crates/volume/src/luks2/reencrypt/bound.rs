//! The keyed digest over the metadata of a reencryption.
//!
//! The header's own checksum needs no key, so that any program that can write to the disk can make
//! one. This digest is PBKDF2 over both volume keys, the `reencrypt` key slot and the backup
//! segments. Without the keys, no program can pretend that a reencryption has begun.
//!
//! Source: cryptsetup's code for its requirements `online-reencrypt-v2` and `-v3`.

use super::{Backup, KEYSLOT_KIND, Keys, backup};
use cipher::Key;
use serde_json::{Map, Value};

/// The longest text of the metadata that can be bound.
const MOST_TEXT: usize = 64;

/// The input of the digest; `None` if the metadata lack a member. `keys` that belong to one digest
/// are given once.
pub(super) fn message(
    json: &Map<String, Value>,
    version: u8,
    slot: u32,
    keys: &Keys,
) -> Option<Key> {
    let mut message = vec![b'v', b'0' + version];
    message.extend(keys.old.as_bytes());
    message.extend(keys.new.as_bytes());
    let keyslot = &json["keyslots"][slot.to_string()];
    if keyslot["type"] != KEYSLOT_KIND {
        return None;
    }
    let area = &keyslot["area"];
    text(&mut message, &keyslot["mode"])?;
    text(&mut message, &keyslot["direction"])?;
    text(&mut message, &area["type"])?;
    number(&mut message, &area["offset"])?;
    number(&mut message, &area["size"])?;
    let kind = area["type"].as_str()?;
    if kind.ends_with("checksum") {
        text(&mut message, &area["hash"])?;
        short_number(&mut message, &area["sector_size"])?;
    }
    if kind.starts_with("datashift") {
        number(&mut message, &area["shift_size"])?;
    }
    segment(&mut message, backup(json, Backup::Previous)?)?;
    segment(&mut message, backup(json, Backup::Final)?)?;
    if let Some(moved) = backup(json, Backup::Moved) {
        segment(&mut message, moved)?;
    }
    Some(Key::new(message))
}

fn segment(message: &mut Vec<u8>, segment: &Value) -> Option<()> {
    text(message, &segment["type"])?;
    number(message, &segment["offset"])?;
    match segment["size"].as_str()? {
        "dynamic" => text(message, &segment["size"])?,
        _ => number(message, &segment["size"])?,
    }
    match segment["type"].as_str()? {
        "linear" => Some(()),
        "crypt" => {
            number(message, &segment["iv_tweak"])?;
            text(message, &segment["encryption"])?;
            short_number(message, &segment["sector_size"])
        }
        _ => None,
    }
}

fn text(message: &mut Vec<u8>, value: &Value) -> Option<()> {
    let text = value.as_str()?;
    let fits = (1..=MOST_TEXT).contains(&text.len());
    fits.then(|| message.extend(text.as_bytes()))
}

fn number(message: &mut Vec<u8>, value: &Value) -> Option<()> {
    let number: u64 = value.as_str()?.parse().ok()?;
    message.extend(number.to_be_bytes());
    Some(())
}

fn short_number(message: &mut Vec<u8>, value: &Value) -> Option<()> {
    let number = u32::try_from(value.as_u64()?).ok()?;
    message.extend(number.to_be_bytes());
    Some(())
}
